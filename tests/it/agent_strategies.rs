//! How a work asks its objects to be written.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use crate::{agent_pair::Pair, harness::cases, servers::Lab};

cases!(
    plain: ;
    kubernetes:
        create_only_is_never_repaired,
        read_only_is_never_written,
        a_conflict_is_reported_and_force_settles_it,
);

async fn create_only_is_never_repaired(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    pair.put(
        "web",
        pair.with_strategy("made", "1", &json!({"type": "CreateOnly"})),
    )
    .await;
    pair.until("web", "Available", "True").await;
    let edit = Patch::Merge(json!({"data": {"key": "edited"}}));
    pair.maps()
        .patch("made", &PatchParams::default(), &edit)
        .await
        .unwrap();
    pair.put(
        "web",
        pair.with_strategy("made", "2", &json!({"type": "CreateOnly"})),
    )
    .await;
    pair.until("web", "Applied", "True").await;
    assert_eq!(pair.value_of("made").await.as_deref(), Some("edited"));
    pair.delete("web").await;
    assert_eq!(
        pair.value_of("made").await,
        None,
        "it goes with its work all the same"
    );
}

async fn read_only_is_never_written(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    pair.put(
        "web",
        pair.with_strategy("theirs", "1", &json!({"type": "ReadOnly"})),
    )
    .await;
    pair.until("web", "Applied", "True").await;
    pair.until("web", "Available", "False").await;
    let theirs: ConfigMap = serde_json::from_value(pair.map("theirs", "theirs")).unwrap();
    pair.maps()
        .create(&PostParams::default(), &theirs)
        .await
        .unwrap();
    pair.until("web", "Available", "True").await;
    pair.delete("web").await;
    assert_eq!(pair.value_of("theirs").await.as_deref(), Some("theirs"));
}

async fn a_conflict_is_reported_and_force_settles_it(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let params = PatchParams::apply("theirs");
    pair.maps()
        .patch(
            "contested",
            &params,
            &Patch::Apply(pair.map("contested", "theirs")),
        )
        .await
        .unwrap();
    pair.put(
        "web",
        pair.with_strategy("contested", "ours", &json!({"type": "ServerSideApply"})),
    )
    .await;
    let work = pair.until("web", "Applied", "False").await;
    let manifests = work
        .status
        .unwrap()
        .resource_status
        .unwrap()
        .manifests
        .unwrap();
    let message = &manifests[0].conditions.0[0].message;
    assert!(
        message.contains("conflict with \"theirs\"") && message.contains(".data.key"),
        "{message}"
    );
    assert_eq!(pair.value_of("contested").await.as_deref(), Some("theirs"));

    let force = json!({"type": "ServerSideApply", "serverSideApply": {"force": true, "fieldManager": "work-agent-web"}});
    pair.put("web", pair.with_strategy("contested", "ours", &force))
        .await;
    pair.until("web", "Applied", "True").await;
    assert_eq!(pair.value_of("contested").await.as_deref(), Some("ours"));
}
