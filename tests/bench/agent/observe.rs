//! Watching for the end of a phase, from outside.

use std::{collections::HashSet, time::Duration};

use futures::StreamExt;
use gitspoke::api::work::{applied::AppliedManifestWork, spec::ManifestWork};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::ListParams,
    runtime::{WatchStreamExt, watcher},
};
use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    task::JoinHandle,
    time::{Instant, timeout},
};

use super::content::{Size, work_name};

/// Anything longer is a hang, not a result.
const PATIENCE: Duration = Duration::from_mins(5);

/// Waits until every work is Available in this generation, or, without one, gone. Watches from now on: start it before
/// the load.
pub(crate) fn until_all(
    works: Api<ManifestWork>,
    size: Size,
    generation: Option<i64>,
) -> JoinHandle<Instant> {
    let mut pending: HashSet<String> = (0..size.works).map(work_name).collect();
    let watching = async move {
        let mut events = watcher(works, watcher::Config::default())
            .default_backoff()
            .boxed();
        let mut listed = HashSet::new();
        while !pending.is_empty() {
            let Some(Ok(event)) = events.next().await else {
                continue;
            };
            match (event, generation) {
                (watcher::Event::Init, _) => listed.clear(),
                (
                    watcher::Event::InitApply(work) | watcher::Event::Apply(work),
                    Some(generation),
                ) if is_available(&work, generation) => {
                    pending.remove(&work.name_any());
                }
                (watcher::Event::InitApply(work), None) => {
                    listed.insert(work.name_any());
                }
                (watcher::Event::InitDone, None) => pending.retain(|name| listed.contains(name)),
                (watcher::Event::Delete(work), None) => {
                    pending.remove(&work.name_any());
                }
                _ => {}
            }
        }
        Instant::now()
    };
    spawn(async move { timeout(PATIENCE, watching).await.unwrap() })
}

pub(crate) fn is_available(work: &ManifestWork, generation: i64) -> bool {
    let conditions = work
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|conditions| {
        conditions.0.iter().any(|condition| {
            condition.type_ == "Available"
                && condition.status == "True"
                && condition.observed_generation >= Some(generation)
        })
    })
}

/// Waits until the record of every work has its marks.
pub(crate) async fn until_recorded(spoke: &Client, size: Size) {
    let records: Api<AppliedManifestWork> = Api::all(spoke.clone());
    let end = Instant::now() + PATIENCE;
    loop {
        let all = records.list_metadata(&ListParams::default()).await.unwrap();
        let marked = all
            .items
            .iter()
            .filter(|record| record.annotations().contains_key("gitspoke.dev/applied"));
        if marked.count() >= size.works {
            return;
        }
        assert!(Instant::now() < end, "records are missing");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// What a watch shows, with the moment it did: name and a value.
pub(crate) struct Shown {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) at: Instant,
}

/// Values of the maps in a namespace, as they come.
pub(crate) fn maps(maps: Api<ConfigMap>) -> UnboundedReceiver<Shown> {
    let (sender, receiver) = unbounded_channel();
    spawn(async move {
        let mut events = watcher(maps, watcher::Config::default())
            .default_backoff()
            .applied_objects()
            .boxed();
        while let Some(event) = events.next().await {
            let Ok(map) = event else {
                continue;
            };
            let value = map.data.as_ref().and_then(|data| data.get("value"));
            let shown = Shown {
                name: map.name_any(),
                value: value.cloned().unwrap_or_default(),
                at: Instant::now(),
            };
            if sender.send(shown).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Generations of works: as asked for (`asked N`) and as reported Available (`available N`), as they come.
pub(crate) fn works(works: Api<ManifestWork>) -> UnboundedReceiver<Shown> {
    let (sender, receiver) = unbounded_channel();
    spawn(async move {
        let mut events = watcher(works, watcher::Config::default())
            .default_backoff()
            .applied_objects()
            .boxed();
        while let Some(event) = events.next().await {
            let Ok(work) = event else {
                continue;
            };
            let generation = work.metadata.generation.unwrap_or(0);
            let word = if is_available(&work, generation) {
                "available"
            } else {
                "asked"
            };
            let shown = Shown {
                name: work.name_any(),
                value: format!("{word} {generation}"),
                at: Instant::now(),
            };
            if sender.send(shown).is_err() {
                return;
            }
        }
    });
    receiver
}

#[expect(clippy::disallowed_methods, reason = "a watch beside the load")]
fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    tokio::spawn(future)
}
