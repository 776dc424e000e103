//! How often an agent reports values that keep changing.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::StreamExt;
use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
    runtime::watcher,
};
use serde_json::{Value, json};

use crate::{
    agent_pair::{PATIENCE, Pair},
    harness::cases,
    servers::Lab,
};

cases!(
    plain: ;
    kubernetes: values_that_keep_changing_are_reported_ever_more_rarely,
);

async fn values_that_keep_changing_are_reported_ever_more_rarely(lab: Arc<Lab>) {
    const CHANGES: u32 = 30;
    let pair = Pair::start(&lab).await;
    let mut spec = json!({"workload": {"manifests": [pair.map("busy", "1")]}});
    spec["manifestConfigs"] = json!([{
        "resourceIdentifier": {"resource": "configmaps", "name": "busy", "namespace": pair.cluster},
        "feedbackRules": [{"type": "JSONPaths", "jsonPaths": [{"name": "count", "path": ".data.count"}]}],
    }]);
    pair.put("web", spec).await;
    pair.until("web", "Available", "True").await;

    let config = watcher::Config::default().fields(&format!("metadata.name={}", pair.named("web")));
    let mut seen = watcher(pair.works(), config).boxed();
    let mut versions = BTreeSet::new();
    // Changes come every third of a second, for as long as a report of each second would be ten reports.
    let mut tick = tokio::time::interval(Duration::from_millis(333));
    let mut count = 0;
    let last = loop {
        tokio::select! {
            _ = tick.tick(), if count < CHANGES => {
                count += 1;
                let patch = Patch::Merge(json!({"data": {"count": count.to_string()}}));
                let params = PatchParams { field_manager: Some("somebody".to_owned()), ..PatchParams::default() };
                pair.maps().patch("busy", &params, &patch).await.unwrap();
            }
            event = tokio::time::timeout(PATIENCE, seen.next()) => {
                let event = event.expect("the last value was not reported").unwrap().unwrap();
                if let watcher::Event::InitApply(work) | watcher::Event::Apply(work) = event {
                    versions.insert(work.resource_version().unwrap());
                    let work = serde_json::to_value(work.status).unwrap();
                    let value = work["resourceStatus"]["manifests"][0]["statusFeedback"]["values"][0].clone();
                    if value["fieldValue"]["string"] == json!(CHANGES.to_string()) {
                        break value;
                    }
                }
            }
        }
    };
    assert_eq!(last["name"], Value::from("count"));
    // One version is from before the changes. Then reports come after 1, 3, 7 and 15 seconds.
    let reports = versions.len() - 1;
    assert!(
        (2..=5).contains(&reports),
        "{reports} reports of {CHANGES} changes"
    );
}
