//! What an agent tells on the hub beside a work's status: Events.

use std::sync::Arc;

use k8s_openapi::api::events::v1::Event;
use kube::{Api, api::ListParams};
use serde_json::json;

use crate::{
    agent_pair::{PATIENCE, Pair},
    harness::cases,
    servers::{Lab, wait},
};

cases!(
    plain: ;
    kubernetes:
        failures_and_their_end_are_told_and_success_is_not,
);

async fn failures_and_their_end_are_told_and_success_is_not(lab: Arc<Lab>) {
    let mut pair = Pair::start(&lab).await;
    pair.put_manifests("good", &[pair.map("good", "1")]).await;
    pair.until("good", "Available", "True").await;

    let mut wrong = pair.map("wrong", "1");
    wrong["data"]["key"] = json!(5);
    pair.put_manifests("web", &[wrong.clone(), pair.map("right", "1")])
        .await;
    pair.until("web", "Applied", "False").await;
    let told = until_told(&pair, "web", 1).await;
    let [kind, reason, note] = &told[0];
    assert_eq!((&**kind, &**reason), ("Warning", "AppliedManifestFailed"));
    let object = format!(
        "ConfigMap {}/wrong: Failed to apply manifest: ",
        pair.cluster
    );
    assert!(note.starts_with(&object), "{note}");

    // The failure stays while something else changes: neither this process nor the next tells it again.
    for value in ["2", "3"] {
        pair.put_manifests("web", &[wrong.clone(), pair.map("right", value)])
            .await;
        pair.until("web", "Applied", "False").await;
        pair.restart();
    }

    pair.put_manifests("web", &[pair.map("wrong", "1"), pair.map("right", "1")])
        .await;
    pair.until("web", "Available", "True").await;
    let told = until_told(&pair, "web", 2).await;
    assert_eq!(
        told[1],
        [
            "Normal".to_owned(),
            "AppliedManifestComplete".to_owned(),
            format!("ConfigMap {}/wrong: applied after all", pair.cluster),
        ]
    );
    // Events are written in order: any other would be here by now.
    assert_eq!(told_of(&pair, "good").await, [[""; 3]; 0]);
}

/// What has been told about a work, in order: type, reason and text.
async fn told_of(pair: &Pair, work: &str) -> Vec<[String; 3]> {
    let events: Api<Event> = Api::namespaced(pair.works().into_client(), &pair.cluster);
    let mut found = events.list(&ListParams::default()).await.unwrap().items;
    found.sort_by_key(|event| event.event_time.clone());
    let about = |event: &Event| {
        event
            .regarding
            .as_ref()
            .and_then(|about| about.name.clone())
    };
    found
        .into_iter()
        .filter(|event| about(event) == Some(pair.named(work)))
        .map(|event| {
            assert_eq!(
                event.reporting_controller.as_deref(),
                Some("gitspoke-agent")
            );
            [event.type_, event.reason, event.note].map(Option::unwrap_or_default)
        })
        .collect()
}

async fn until_told(pair: &Pair, work: &str, count: usize) -> Vec<[String; 3]> {
    wait::until("the Events", PATIENCE, || async {
        let told = told_of(pair, work).await;
        if told.len() == count {
            Ok(told)
        } else {
            Err(format!("{told:?}"))
        }
    })
    .await
}
