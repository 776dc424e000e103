//! How long one thing takes: a repair, a single change.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use futures::{StreamExt, stream};
use gitspoke::api::work::spec::ManifestWork;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::json;
use tokio::{
    sync::mpsc::UnboundedReceiver,
    time::{Instant, timeout},
};

use super::{
    content::{Size, map_name, spec, work_name},
    observe::{self, Shown},
};

const PATIENCE: Duration = Duration::from_secs(30);

/// Somebody edits this many maps, ten at a time; returns how long each took from the edit's being sent to the watch's
/// showing it repaired, sorted.
pub(crate) async fn repairs(
    spoke: &Client,
    namespace: &str,
    size: Size,
    value: &str,
) -> Vec<Duration> {
    let maps: Api<ConfigMap> = Api::namespaced(spoke.clone(), namespace);
    let mut shown = observe::maps(maps.clone());
    let names: Vec<String> = (0..100)
        .map(|number| map_name(&work_name(number * size.works / 100), 0))
        .collect();
    wait_for(&mut shown, |seen| seen.name == names[99]).await;
    let edit = json!({"data": {"value": "edited by somebody"}});
    let sent: HashMap<String, Instant> = stream::iter(names)
        .map(|name| {
            let (maps, edit) = (maps.clone(), Patch::Merge(edit.clone()));
            async move {
                let sent = Instant::now();
                let params = PatchParams {
                    field_manager: Some("somebody".to_owned()),
                    ..PatchParams::default()
                };
                maps.patch(&name, &params, &edit).await.unwrap();
                (name, sent)
            }
        })
        .buffer_unordered(10)
        .collect()
        .await;
    let mut edited = HashSet::new();
    let mut took = Vec::new();
    while took.len() < sent.len() {
        let seen = wait_for(&mut shown, |_| true).await;
        if seen.value == "edited by somebody" {
            edited.insert(seen.name);
        } else if seen.value == value && edited.remove(&seen.name) {
            took.push(seen.at - sent[&seen.name]);
        }
    }
    took.sort_unstable();
    took
}

/// What one change took, from the hub's having it: until it was applied, until the hub was told.
pub(crate) struct Changes {
    pub(crate) applied: Vec<Duration>,
    pub(crate) reported: Vec<Duration>,
}

/// Changes works one after the other.
pub(crate) async fn changes(hub: &Client, spoke: &Client, namespace: &str, size: Size) -> Changes {
    let works: Api<ManifestWork> = Api::namespaced(hub.clone(), namespace);
    let mut on_hub = observe::works(works.clone());
    let mut on_spoke = observe::maps(Api::namespaced(spoke.clone(), namespace));
    let last = work_name(size.works - 1);
    wait_for(&mut on_hub, |seen| seen.name == last).await;
    wait_for(&mut on_spoke, |seen| seen.name == map_name(&last, 0)).await;
    let (mut applied, mut reported) = (Vec::new(), Vec::new());
    for number in 0..50 {
        let work = work_name(number * size.works / 50);
        let value = format!("single change {number}");
        let mut changed = spec(namespace, &work, size.maps, "2");
        changed["workload"]["manifests"][0]["data"]["value"] = json!(value);
        let patch = Patch::Merge(json!({ "spec": changed }));
        let answer = works
            .patch(&work, &PatchParams::default(), &patch)
            .await
            .unwrap();
        let answered = Instant::now();
        let generation = answer.metadata.generation.unwrap_or(0);
        let there = wait_for(&mut on_hub, |seen| {
            seen.name == work && seen.value.ends_with(&format!(" {generation}"))
        });
        // Whichever is first: the answer, or the watch's showing it.
        let begin = there.await.at.min(answered);
        let done = wait_for(&mut on_spoke, |seen| seen.value == value).await;
        applied.push(done.at.saturating_duration_since(begin));
        let told = format!("available {generation}");
        let told = wait_for(&mut on_hub, |seen| seen.name == work && seen.value == told).await;
        reported.push(told.at.saturating_duration_since(begin));
    }
    applied.sort_unstable();
    reported.sort_unstable();
    Changes { applied, reported }
}

async fn wait_for(shown: &mut UnboundedReceiver<Shown>, is_it: impl Fn(&Shown) -> bool) -> Shown {
    let found = async {
        loop {
            let seen = shown.recv().await.unwrap();
            if is_it(&seen) {
                return seen;
            }
        }
    };
    timeout(PATIENCE, found).await.unwrap()
}

/// The time that this share of them stayed below.
pub(crate) fn quantile(sorted: &[Duration], share: f64) -> Duration {
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}
