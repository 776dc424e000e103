//! A work on its way: from the hub to the spoke, kept there, back as status, and away again.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::{
    agent_pair::{PATIENCE, Pair},
    harness::cases,
    servers::{Lab, wait},
};

cases!(
    plain: ;
    kubernetes:
        a_work_is_applied_reported_and_deleted,
        a_dropped_manifest_is_pruned_and_an_edited_one_updated,
        drift_is_repaired,
        a_restart_writes_nothing_again,
        a_definition_and_its_object_come_together,
        what_cannot_be_applied_says_why_and_does_not_stop_the_others,
        what_a_vanished_work_applied_goes_after_the_grace_period,
        a_work_that_comes_back_in_time_keeps_its_objects,
);

async fn a_work_is_applied_reported_and_deleted(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    pair.put_manifests("web", &[pair.map("one", "1")]).await;

    let work = pair.until("web", "Available", "True").await;
    assert_eq!(
        work.finalizers(),
        ["cluster.open-cluster-management.io/manifest-work-cleanup"]
    );
    let manifests = work
        .status
        .unwrap()
        .resource_status
        .unwrap()
        .manifests
        .unwrap();
    let found: Vec<_> = manifests[0]
        .conditions
        .0
        .iter()
        .map(|c| (&*c.type_, &*c.status, &*c.reason, &*c.message))
        .collect();
    assert_eq!(
        found,
        [
            (
                "Applied",
                "True",
                "AppliedManifestComplete",
                "Apply manifest complete"
            ),
            (
                "Available",
                "True",
                "ResourceAvailable",
                "Resource is available"
            ),
            ("StatusFeedbackSynced", "True", "NoStatusFeedbackSynced", ""),
        ]
    );
    let map = pair.maps().get("one").await.unwrap();
    let record = pair.record_of("web").await;
    assert_eq!(map.owner_references()[0].uid, record.uid().unwrap());
    let resources = wait::until("the record", PATIENCE, || async {
        let record = pair.record_of("web").await;
        record
            .status
            .and_then(|status| status.applied_resources)
            .ok_or_else(|| "no status".to_owned())
    })
    .await;
    assert_eq!(
        (&*resources[0].resource, resources[0].uid.as_ref()),
        ("configmaps", map.metadata.uid.as_ref())
    );

    pair.delete("web").await;
    assert_eq!(
        pair.value_of("one").await,
        None,
        "the work went before its object"
    );
}

async fn a_dropped_manifest_is_pruned_and_an_edited_one_updated(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    pair.put_manifests("web", &[pair.map("kept", "1"), pair.map("dropped", "1")])
        .await;
    pair.until("web", "Available", "True").await;

    pair.put_manifests("web", &[pair.map("kept", "2")]).await;
    pair.until("web", "Applied", "True").await;
    assert_eq!(pair.value_of("kept").await.as_deref(), Some("2"));
    wait::until("the dropped object to be gone", PATIENCE, || async {
        pair.value_of("dropped")
            .await
            .map_or(Ok(()), |_| Err("it is there".to_owned()))
    })
    .await;
}

async fn drift_is_repaired(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    pair.put_manifests("web", &[pair.map("edited", "1"), pair.map("removed", "1")])
        .await;
    pair.until("web", "Available", "True").await;

    let edit = Patch::Merge(json!({"data": {"key": "wrong", "theirs": "kept"}}));
    pair.maps()
        .patch("edited", &PatchParams::default(), &edit)
        .await
        .unwrap();
    pair.maps()
        .delete("removed", &DeleteParams::default())
        .await
        .unwrap();
    wait::until("both to be repaired", PATIENCE, || async {
        let found = (
            pair.value_of("edited").await,
            pair.value_of("removed").await,
        );
        if found == (Some("1".into()), Some("1".into())) {
            Ok(())
        } else {
            Err(format!("{found:?}"))
        }
    })
    .await;
    let data = pair.maps().get("edited").await.unwrap().data.unwrap();
    assert_eq!(data["theirs"], "kept", "what others added stays");
}

async fn a_restart_writes_nothing_again(lab: Arc<Lab>) {
    let mut pair = Pair::start(&lab).await;
    pair.put_manifests("web", &[pair.map("one", "1"), pair.map("two", "1")])
        .await;
    pair.until("web", "Available", "True").await;
    wait::until("the marks", PATIENCE, || async {
        let annotations = pair
            .record_of("web")
            .await
            .metadata
            .annotations
            .unwrap_or_default();
        annotations
            .get("gitspoke.dev/applied")
            .map(drop)
            .ok_or_else(|| format!("{annotations:?}"))
    })
    .await;
    let versions = || async {
        let (one, two) = (
            pair.maps().get("one").await.unwrap(),
            pair.maps().get("two").await.unwrap(),
        );
        let (work, record) = (
            pair.works().get(&pair.named("web")).await.unwrap(),
            pair.record_of("web").await,
        );
        [
            one.resource_version(),
            two.resource_version(),
            work.resource_version(),
            record.resource_version(),
        ]
    };
    let before = versions().await;
    pair.restart();
    // A second work goes the whole way, and then the first has been looked at, too.
    pair.put_manifests("other", &[pair.map("three", "1")]).await;
    pair.until("other", "Available", "True").await;
    let edit = Patch::Merge(json!({"data": {"key": "wrong"}}));
    pair.maps()
        .patch("two", &PatchParams::default(), &edit)
        .await
        .unwrap();
    wait::until(
        "drift to be repaired after the restart",
        PATIENCE,
        || async {
            let found = pair.value_of("two").await;
            if found.as_deref() == Some("1") {
                Ok(())
            } else {
                Err(format!("{found:?}"))
            }
        },
    )
    .await;
    let after = [
        pair.maps().get("one").await.unwrap().resource_version(),
        pair.works()
            .get(&pair.named("web"))
            .await
            .unwrap()
            .resource_version(),
    ];
    assert_eq!(
        after,
        [before[0].clone(), before[2].clone()],
        "written again although nothing had changed"
    );
}

async fn a_definition_and_its_object_come_together(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let group = format!("{}.example.com", pair.cluster);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {
            "group": group,
            "names": {"kind": "Widget", "plural": "widgets"},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    let object = json!({
        "apiVersion": format!("{group}/v1"),
        "kind": "Widget",
        "metadata": {"name": "a", "namespace": pair.cluster},
    });
    pair.put_manifests("web", &[object, definition]).await;
    let work = pair.until("web", "Available", "True").await;
    assert_eq!(
        work.status
            .unwrap()
            .resource_status
            .unwrap()
            .manifests
            .unwrap()
            .len(),
        2
    );
    pair.delete("web").await;
}

async fn what_cannot_be_applied_says_why_and_does_not_stop_the_others(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let unknown =
        json!({"apiVersion": "example.com/v1", "kind": "Nothing", "metadata": {"name": "a"}});
    let mut homeless = pair.map("homeless", "1");
    homeless["metadata"]["namespace"] = json!(format!("{}-later", pair.cluster));
    pair.put_manifests("web", &[unknown, homeless, pair.map("good", "1")])
        .await;

    let work = pair.until("web", "Applied", "False").await;
    assert_eq!(pair.value_of("good").await.as_deref(), Some("1"));
    let manifests = work
        .status
        .unwrap()
        .resource_status
        .unwrap()
        .manifests
        .unwrap();
    let messages: Vec<_> = manifests
        .iter()
        .map(|m| m.conditions.0[0].message.clone())
        .collect();
    assert_eq!(
        messages[0],
        "Failed to apply manifest: the server doesn't have a resource type \"Nothing\""
    );
    assert!(
        messages[1].starts_with("Failed to apply manifest: namespaces"),
        "{}",
        messages[1]
    );
    assert_eq!(messages[2], "Apply manifest complete");

    let later: Namespace =
        serde_json::from_value(json!({"metadata": {"name": format!("{}-later", pair.cluster)}}))
            .unwrap();
    Api::all(pair.spoke.clone())
        .create(&PostParams::default(), &later)
        .await
        .unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(pair.spoke.clone(), &later.name_any());
    wait::until("the homeless object to be applied", PATIENCE, || async {
        maps.get("homeless")
            .await
            .map(drop)
            .map_err(|error| error.to_string())
    })
    .await;
}

async fn what_a_vanished_work_applied_goes_after_the_grace_period(lab: Arc<Lab>) {
    let mut pair =
        Pair::start_with(&lab, &["--appliedmanifestwork-eviction-grace-period=1s"]).await;
    pair.put_manifests("web", &[pair.map("one", "1")]).await;
    pair.until("web", "Available", "True").await;
    vanish(&mut pair, "web").await;
    wait::until("the object to be evicted", PATIENCE, || async {
        pair.value_of("one")
            .await
            .map_or(Ok(()), |_| Err("it is there".to_owned()))
    })
    .await;
}

async fn a_work_that_comes_back_in_time_keeps_its_objects(lab: Arc<Lab>) {
    let mut pair = Pair::start(&lab).await;
    pair.put_manifests("web", &[pair.map("one", "1")]).await;
    pair.until("web", "Available", "True").await;
    let uid = pair.maps().get("one").await.unwrap().uid();
    vanish(&mut pair, "web").await;
    let is_evicting = async || {
        let status = pair.record_of("web").await.status;
        status
            .and_then(|status| status.eviction_start_time)
            .is_some()
    };
    wait::until("the eviction to start", PATIENCE, || async {
        if is_evicting().await {
            Ok(())
        } else {
            Err("no start time".to_owned())
        }
    })
    .await;
    assert_eq!(pair.maps().get("one").await.unwrap().uid(), uid);

    pair.put_manifests("web", &[pair.map("one", "1")]).await;
    pair.until("web", "Available", "True").await;
    wait::until("the eviction to be called off", PATIENCE, || async {
        if is_evicting().await {
            Err("still evicting".to_owned())
        } else {
            Ok(())
        }
    })
    .await;
    assert_eq!(pair.maps().get("one").await.unwrap().uid(), uid);
}

/// Makes a work vanish without the agent's consent, as a hub that is restored from a backup does.
async fn vanish(pair: &mut Pair, work: &str) {
    let name = pair.named(work);
    let strip = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    pair.kill();
    pair.works()
        .patch(&name, &PatchParams::default(), &strip)
        .await
        .unwrap();
    pair.works()
        .delete(&name, &DeleteParams::default())
        .await
        .unwrap();
    pair.restart();
}
