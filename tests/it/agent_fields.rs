//! Whose fields they are: what the agent takes over from writers before it, and shares with those beside it.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    agent_apply_rules::{deployment, held},
    agent_pair::{Pair, condition},
    agent_report::{ALL_IS_WELL, Of},
    harness::cases,
    servers::Lab,
};

cases!(
    plain: ;
    kubernetes:
        what_was_there_before_is_left_as_it_is,
        only_the_author_s_own_entries_are_taken_over,
        a_reference_that_another_write_holds_goes_too,
        managers_of_two_works_share_an_object,
        dropped_fields_and_keys_go_and_others_stay,
);

/// Whose fields they are was forgotten: what we do not name is not ours to reset, what we drop later goes.
async fn what_was_there_before_is_left_as_it_is(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let deployments = pair.objects("apps/v1", "Deployment", true);
    let mut web = deployment(
        &pair,
        "web",
        &json!({"replicas": 1, "paused": true, "minReadySeconds": 3}),
    );
    let made = serde_json::from_value(web.clone()).unwrap();
    let create = PostParams {
        field_manager: Some("kubectl-create".to_owned()),
        ..PostParams::default()
    };
    deployments.create(&create, &made).await.unwrap();
    pair.edit(&deployments, "web", &json!({"spec": {"replicas": 5}}))
        .await;
    let forget = json!({"metadata": {"managedFields": [{}]}});
    pair.edit(&deployments, "web", &forget).await;

    web["spec"].as_object_mut().unwrap().remove("replicas");
    pair.put_manifests("web", &[web.clone()]).await;
    pair.until_says("web", Of::Work, &ALL_IS_WELL).await;
    let live = pair.object(&deployments, "web").await;
    assert_eq!(live["spec"]["replicas"], 5);
    let rest = held(&live, "before-first-apply", "Update")["f:spec"].clone();
    assert!(rest["f:replicas"].is_object(), "{rest}");
    assert_eq!(
        (rest.get("f:minReadySeconds"), rest.get("f:paused")),
        (None, None)
    );

    web["spec"]
        .as_object_mut()
        .unwrap()
        .remove("minReadySeconds");
    pair.put_manifests("web", &[web]).await;
    pair.until_says("web", Of::Work, &ALL_IS_WELL).await;
    let live = pair.object(&deployments, "web").await;
    assert_eq!(live["spec"].get("minReadySeconds"), None);
    assert_eq!(
        (&live["spec"]["replicas"], &live["spec"]["paused"]),
        (&json!(5), &json!(true))
    );
    pair.edit(&deployments, "web", &json!({"spec": {"replicas": 0}}))
        .await;
}

async fn only_the_author_s_own_entries_are_taken_over(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let maps = pair.objects("v1", "ConfigMap", true);
    let as_manager = |manager: &str| PatchParams {
        field_manager: Some(manager.to_owned()),
        ..PatchParams::default()
    };
    let all = [
        "work-agent",
        "kubectl-create",
        "kubectl-client-side-apply",
        "kubectl-edit",
        "theirs",
    ];
    let mut map = pair.map("one", "1");
    let found: ConfigMap = serde_json::from_value(pair.map("one", "0")).unwrap();
    let create = PostParams {
        field_manager: Some("nobody".to_owned()),
        ..PostParams::default()
    };
    pair.maps().create(&create, &found).await.unwrap();
    for manager in all {
        let patch = Patch::Merge(json!({"data": {manager: "1"}}));
        maps.patch("one", &as_manager(manager), &patch)
            .await
            .unwrap();
        map["data"][manager] = "1".into();
    }
    pair.put_manifests("web", &[map]).await;
    pair.until_says("web", Of::Work, &ALL_IS_WELL).await;
    let live = pair.object(&maps, "one").await;
    let entries = live["metadata"]["managedFields"].as_array().unwrap();
    let mut left: Vec<_> = entries
        .iter()
        .map(|entry| {
            (
                entry["manager"].as_str().unwrap(),
                entry["operation"].as_str().unwrap(),
            )
        })
        .collect();
    left.sort_unstable();
    let expected = [
        ("nobody", "Update"),
        ("theirs", "Update"),
        ("work-agent", "Apply"),
    ];
    assert_eq!(left, expected);
    assert_eq!(
        held(&live, "theirs", "Update"),
        json!({"f:data": {"f:theirs": {}}})
    );

    // Dropped, what was the author's goes and what is somebody else's, too, stays.
    pair.put_manifests("web", &[pair.map("one", "1")]).await;
    pair.until_says("web", Of::Work, &ALL_IS_WELL).await;
    let live = pair.object(&maps, "one").await;
    assert_eq!(live["data"], json!({"key": "1", "theirs": "1"}));
}

/// As OCM's agent leaves it: not applied but written, so that an apply alone takes nothing away.
async fn a_reference_that_another_write_holds_goes_too(lab: Arc<Lab>) {
    let mut pair = Pair::start(&lab).await;
    let maps = pair.objects("v1", "ConfigMap", true);
    pair.put_manifests("web", &[pair.map("kept", "1")]).await;
    pair.until_says("web", Of::Work, &ALL_IS_WELL).await;
    pair.kill();
    let mut entries = pair.object(&maps, "kept").await["metadata"]["managedFields"].clone();
    assert_eq!(entries.as_array().unwrap().len(), 1, "{entries}");
    entries[0]["operation"] = "Update".into();
    let written = json!({"metadata": {"managedFields": entries}});
    pair.edit(&maps, "kept", &written).await;
    let live = pair.object(&maps, "kept").await;
    let reference = &held(&live, "work-agent", "Update")["f:metadata"]["f:ownerReferences"];
    assert!(reference.is_object(), "{live}");
    let orphan = json!({
        "workload": {"manifests": [pair.map("kept", "1")]},
        "deleteOption": {"propagationPolicy": "Orphan"},
    });
    pair.put("web", orphan).await;
    pair.restart();
    pair.until_says("web", Of::Work, &ALL_IS_WELL).await;
    let live = pair.object(&maps, "kept").await;
    assert_eq!(live["metadata"].get("ownerReferences"), None);
    pair.delete("web").await;
    assert_eq!(pair.value_of("kept").await.as_deref(), Some("1"));
}

async fn managers_of_two_works_share_an_object(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let spec = |manager: &str, data: Value| {
        let strategy =
            json!({"type": "ServerSideApply", "serverSideApply": {"fieldManager": manager}});
        let mut spec = pair.with_strategy("shared", "1", &strategy);
        spec["workload"]["manifests"][0]["data"] = data;
        spec
    };
    pair.put("first", spec("work-agent", json!({"a": "1"})))
        .await;
    pair.until_says("first", Of::Work, &ALL_IS_WELL).await;
    pair.put("second", spec("work-agent-x", json!({"b": "1"})))
        .await;
    pair.until_says("second", Of::Work, &ALL_IS_WELL).await;
    let data = async || pair.maps().get("shared").await.unwrap().data.unwrap();
    assert_eq!(json!(data().await), json!({"a": "1", "b": "1"}));
    // A field of the other's is refused, and by nobody taken.
    pair.put("second", spec("work-agent-x", json!({"a": "2", "b": "1"})))
        .await;
    let work = pair.until("second", "Applied", "False").await;
    let (_, reason, message) = condition(&work, 0, "Applied");
    assert_eq!(reason, "AppliedManifestFailed");
    assert!(
        message.contains("conflict with \"work-agent\""),
        "{message}"
    );
    assert_eq!(json!(data().await), json!({"a": "1", "b": "1"}));
    pair.delete("first").await;
    let left = pair.maps().get("shared").await.unwrap();
    let owner = pair.record_of("second").await;
    let owners: Vec<_> = left.owner_references().iter().map(|one| &one.uid).collect();
    assert_eq!(owners, [&owner.uid().unwrap()]);
}

/// Labels, annotations and fields that a manifest no longer names are taken away, and only those.
async fn dropped_fields_and_keys_go_and_others_stay(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let maps = pair.objects("v1", "ConfigMap", true);
    let map = |keys: &[&str]| {
        let all: serde_json::Map<String, Value> = keys
            .iter()
            .map(|key| ((*key).to_owned(), "1".into()))
            .collect();
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": all,
            "metadata": {"name": "one", "namespace": pair.cluster, "labels": all, "annotations": all},
        })
    };
    pair.put_manifests("web", &[map(&["kept", "dropped"])])
        .await;
    pair.until_says("web", Of::Work, &ALL_IS_WELL).await;
    let theirs = json!({"theirs": "1"});
    let patch = json!({"metadata": {"labels": theirs, "annotations": theirs}, "data": theirs});
    pair.edit(&maps, "one", &patch).await;
    pair.put_manifests("web", &[map(&["kept"])]).await;
    pair.until_says("web", Of::Work, &ALL_IS_WELL).await;
    let live = pair.object(&maps, "one").await;
    let left = json!({"kept": "1", "theirs": "1"});
    let metadata = &live["metadata"];
    for found in [&live["data"], &metadata["labels"], &metadata["annotations"]] {
        assert_eq!(*found, left);
    }
}
