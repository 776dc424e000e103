//! Objects that more than one work, agent or person has a hand in.

use std::sync::Arc;

use gitspoke::api::work::applied::AppliedManifestWork;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    agent_pair::{PATIENCE, Pair},
    harness::cases,
    servers::{Lab, wait},
};

cases!(
    plain: ;
    kubernetes:
        two_works_share_an_object,
        works_that_come_at_once_share_an_object,
        another_hub_s_reference_is_kept,
        orphans_stay,
        what_kubectl_made_becomes_ours,
        what_another_agent_made_becomes_ours,
);

async fn two_works_share_an_object(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    for work in ["first", "second"] {
        pair.put_manifests(work, &[pair.map("shared", "1")]).await;
        pair.until(work, "Available", "True").await;
    }
    let owners = || async {
        pair.maps()
            .get("shared")
            .await
            .unwrap()
            .owner_references()
            .len()
    };
    wait::until("both to own it", PATIENCE, || async {
        let found = owners().await;
        if found == 2 {
            Ok(())
        } else {
            Err(format!("{found} owners"))
        }
    })
    .await;
    let uid = pair.maps().get("shared").await.unwrap().uid();
    pair.delete("first").await;
    let left = pair.maps().get("shared").await.unwrap();
    assert_eq!((left.uid(), left.owner_references().len()), (uid, 1));
    pair.delete("second").await;
    assert_eq!(pair.value_of("shared").await, None);
}

async fn works_that_come_at_once_share_an_object(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let names: Vec<String> = (0..8).map(|number| format!("sharer-{number}")).collect();
    futures::future::join_all(
        names
            .iter()
            .map(|name| async { pair.put_manifests(name, &[pair.map("shared", "1")]).await }),
    )
    .await;
    for name in &names {
        pair.until(name, "Available", "True").await;
    }
    wait::until("all to own it", PATIENCE, || async {
        let found = pair
            .maps()
            .get("shared")
            .await
            .unwrap()
            .owner_references()
            .len();
        if found == names.len() {
            Ok(())
        } else {
            Err(format!("{found} owners"))
        }
    })
    .await;
}

async fn another_hub_s_reference_is_kept(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let records: Api<AppliedManifestWork> = Api::all(pair.spoke.clone());
    let name = format!("otherhub-{}", pair.cluster);
    let record: AppliedManifestWork = serde_json::from_value(json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "AppliedManifestWork",
        "metadata": {"name": name},
        "spec": {"hubHash": "otherhub", "manifestWorkName": "theirs", "agentID": "theirs"},
    }))
    .unwrap();
    let record = records
        .create(&PostParams::default(), &record)
        .await
        .unwrap();
    let mut theirs = pair.map("shared", "1");
    theirs["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "AppliedManifestWork",
        "name": name,
        "uid": record.uid(),
    }]);
    let params = PatchParams::apply("work-agent").force();
    let made = pair
        .maps()
        .patch("shared", &params, &Patch::Apply(theirs))
        .await
        .unwrap();
    let status = json!({"status": {"appliedResources": [{
        "version": "v1", "resource": "configmaps", "namespace": pair.cluster, "name": "shared", "uid": made.uid(),
    }]}});
    records
        .patch_status(&name, &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
    // A work of its own shows that the agent has seen what came before it.
    pair.put_manifests("first", &[pair.map("first", "1")]).await;
    pair.until("first", "Available", "True").await;

    pair.put_manifests("web", &[pair.map("shared", "1")]).await;
    pair.until("web", "Available", "True").await;
    let owners = pair
        .maps()
        .get("shared")
        .await
        .unwrap()
        .owner_references()
        .len();
    assert_eq!(owners, 2, "the other hub's agent has lost its object");
    pair.delete("web").await;
    let left = pair.maps().get("shared").await.unwrap();
    assert_eq!(
        left.owner_references()
            .iter()
            .map(|owner| &owner.name)
            .collect::<Vec<_>>(),
        [&name]
    );
}

async fn orphans_stay(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    pair.put_manifests("web", &[pair.map("kept", "1")]).await;
    pair.until("web", "Available", "True").await;
    let spec = json!({
        "workload": {"manifests": [pair.map("kept", "1")]},
        "deleteOption": {"propagationPolicy": "Orphan"},
    });
    pair.put("web", spec).await;
    pair.until("web", "Applied", "True").await;
    assert!(
        pair.maps()
            .get("kept")
            .await
            .unwrap()
            .owner_references()
            .is_empty()
    );
    pair.delete("web").await;
    assert_eq!(pair.value_of("kept").await.as_deref(), Some("1"));
}

async fn what_kubectl_made_becomes_ours(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let made = with_more(&pair);
    let create = ["create", "-f", "-"];
    let output = lab
        .spoke()
        .await
        .kubectl(&create, made.to_string().as_bytes())
        .await;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_what_is_dropped_goes(&pair, made).await;
}

/// Open Cluster Management's agent writes by create and update, under the name that we apply with.
async fn what_another_agent_made_becomes_ours(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let made = with_more(&pair);
    let object: ConfigMap = serde_json::from_value(made.clone()).unwrap();
    let params = PostParams {
        field_manager: Some("work-agent".into()),
        ..PostParams::default()
    };
    pair.maps().create(&params, &object).await.unwrap();
    assert_what_is_dropped_goes(&pair, made).await;
}

fn with_more(pair: &Pair) -> Value {
    let mut map = pair.map("found", "1");
    map["data"]["dropped"] = json!("1");
    map
}

/// A field that somebody made before us and that is in the manifest goes away when the manifest drops it.
async fn assert_what_is_dropped_goes(pair: &Pair, made: Value) {
    pair.put_manifests("web", &[made]).await;
    pair.until("web", "Available", "True").await;
    pair.put_manifests("web", &[pair.map("found", "1")]).await;
    pair.until("web", "Applied", "True").await;
    let data = pair.maps().get("found").await.unwrap().data.unwrap();
    assert_eq!(
        data.keys().collect::<Vec<_>>(),
        ["key"],
        "somebody else still owns what we dropped"
    );
}
