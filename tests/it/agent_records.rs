//! Records on the spoke: how they are named and filled, and what becomes of one whose work or agent is another.

use std::sync::Arc;

use gitspoke::api::work::applied::AppliedManifestWork;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{
    agent_pair::{PATIENCE, Pair},
    agent_report::{ALL_IS_WELL, Of},
    harness::cases,
    servers::{Lab, wait},
};

cases!(
    plain: ;
    kubernetes:
        a_record_is_named_filled_and_labelled,
        a_record_comes_back_and_is_taken_over,
        a_switch_of_hubs_leaves_the_objects,
        a_record_is_never_evicted_if_so_told,
);

impl Pair {
    fn records(&self) -> Api<AppliedManifestWork> {
        Api::all(self.spoke.clone())
    }

    async fn until_record(
        &self,
        what: &str,
        work: &str,
        is_right: impl Fn(&Value) -> bool,
    ) -> Value {
        wait::until(what, PATIENCE, || async {
            let record = serde_json::to_value(self.record_of(work).await).unwrap();
            if is_right(&record) {
                Ok(record)
            } else {
                Err(record.to_string())
            }
        })
        .await
    }

    /// Names of the resources on a work's record, as `group/version/resource/namespace/name`.
    pub(crate) async fn until_recorded(&self, work: &str, count: usize) -> Vec<String> {
        let record = self
            .until_record("the objects to be recorded", work, |record| {
                let resources = record["status"]["appliedResources"].as_array();
                resources.map_or(0, Vec::len) == count
            })
            .await;
        let resources = record["status"]["appliedResources"].as_array().unwrap();
        resources
            .iter()
            .map(|resource| {
                assert!(resource["uid"].is_string(), "{resource}");
                ["group", "version", "resource", "namespace", "name"]
                    .map(|part| resource[part].as_str().unwrap_or_default())
                    .join("/")
            })
            .collect()
    }
}

async fn a_record_is_named_filled_and_labelled(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let role = pair.named("role");
    let manifests = [
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": role, "namespace": "stray"}, "rules": [],
        }),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": pair.cluster},
            "spec": {"clusterIP": "None", "ports": [{"port": 80}]},
        }),
        pair.map("b", "1"),
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "metadata": {"name": "n", "namespace": pair.cluster}, "spec": {"podSelector": {}},
        }),
        pair.map("a", "1"),
    ];
    pair.put_manifests("web", &manifests).await;
    let label = async |labels: Value| {
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        let params = PatchParams {
            field_manager: Some("somebody".to_owned()),
            ..PatchParams::default()
        };
        let name = pair.named("web");
        pair.works().patch(&name, &params, &patch).await.unwrap();
    };
    let work = pair.until_says("web", Of::Work, &ALL_IS_WELL).await;

    let hub = lab.hub().await.server();
    let hash = hex(&Sha256::digest(hub.as_bytes()));
    let record = serde_json::to_value(pair.record_of("web").await).unwrap();
    assert_eq!(
        record["metadata"]["name"],
        format!("{hash}-{}", pair.named("web"))
    );
    let spec =
        json!({"hubHash": hash, "manifestWorkName": pair.named("web"), "agentID": pair.cluster});
    assert_eq!(record["spec"], spec);
    let finalizer = "cluster.open-cluster-management.io/applied-manifest-work-cleanup";
    assert_eq!(record["metadata"]["finalizers"], json!([finalizer]));

    let cluster = &pair.cluster;
    let expected = [
        format!("/v1/configmaps/{cluster}/a"),
        format!("/v1/configmaps/{cluster}/b"),
        format!("/v1/services/{cluster}/s"),
        format!("networking.k8s.io/v1/networkpolicies/{cluster}/n"),
        format!("rbac.authorization.k8s.io/v1/clusterroles//{role}"),
    ];
    assert_eq!(pair.until_recorded("web", 5).await, expected, "sorted");

    let map = serde_json::to_value(pair.maps().get("a").await.unwrap()).unwrap();
    let owner = json!([{
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork",
        "name": record["metadata"]["name"], "uid": record["metadata"]["uid"],
    }]);
    assert_eq!(map["metadata"]["ownerReferences"], owner);
    // Everything is written in one name; the work itself is somebody's.
    let work = serde_json::to_value(work).unwrap();
    let record = serde_json::to_value(pair.record_of("web").await).unwrap();
    for object in [&map, &work, &record] {
        for entry in object["metadata"]["managedFields"].as_array().unwrap() {
            let manager = entry["manager"].as_str().unwrap();
            assert!(["work-agent", "somebody"].contains(&manager), "{entry}");
        }
    }

    // Its labels are the work's, also later.
    for (labels, expected) in [
        (
            json!({"one": "1", "two": "2"}),
            json!({"one": "1", "two": "2"}),
        ),
        (
            json!({"one": "other", "two": null}),
            json!({"one": "other"}),
        ),
    ] {
        label(labels).await;
        pair.until_record("the labels to follow", "web", |record| {
            record["metadata"]["labels"] == expected
        })
        .await;
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

async fn a_record_comes_back_and_is_taken_over(lab: Arc<Lab>) {
    let mut pair = Pair::start(&lab).await;
    pair.put_manifests("web", &[pair.map("one", "1")]).await;
    pair.until_says("web", Of::Work, &ALL_IS_WELL).await;
    let (map, record) = (
        pair.maps().get("one").await.unwrap(),
        pair.record_of("web").await,
    );
    // Somebody on the spoke deletes it, to strip all that it applied. The work still asks for it.
    let delete = DeleteParams::default();
    pair.records()
        .delete(&record.name_any(), &delete)
        .await
        .unwrap();
    let maps = pair.objects("v1", "ConfigMap", true);
    let uid = map.uid().unwrap();
    pair.until_object("it to go and come back", &maps, "one", |found| {
        found["metadata"]["uid"]
            .as_str()
            .is_some_and(|now| now != uid)
    })
    .await;
    let anew = pair.record_of("web").await;
    assert_ne!(anew.uid(), record.uid());
    pair.until_says("web", Of::Work, &ALL_IS_WELL).await;

    // What another agent of this hub has recorded is ours now.
    pair.kill();
    let theirs = Patch::Merge(json!({"spec": {"agentID": "theirs"}}));
    let params = PatchParams::default();
    pair.records()
        .patch(&record.name_any(), &params, &theirs)
        .await
        .unwrap();
    pair.restart();
    wait::until("the record to be taken over", PATIENCE, || async {
        let found = pair.records().get(&record.name_any()).await.unwrap();
        if found.spec.agent_id.as_deref() == Some(&pair.cluster) {
            Ok(())
        } else {
            Err(format!("{:?}", found.spec))
        }
    })
    .await;
    assert_eq!(pair.record_of("web").await.uid(), anew.uid());
}

impl Pair {
    /// Makes a record as an agent that served another hub has left it.
    async fn leave_record(&self, hub: &str, agent: &str, object: &Value) -> AppliedManifestWork {
        let name = format!("{hub}-{}", self.named("web"));
        let record = json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork",
            "metadata": {"name": name, "finalizers": ["cluster.open-cluster-management.io/applied-manifest-work-cleanup"]},
            "spec": {"hubHash": hub, "manifestWorkName": self.named("web"), "agentID": agent},
        });
        let record = serde_json::from_value(record).unwrap();
        let create = PostParams::default();
        let record = self.records().create(&create, &record).await.unwrap();
        let mut object = object.clone();
        object["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork",
            "name": name, "uid": record.uid(),
        }]);
        let object_name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let params = PatchParams::apply("work-agent").force();
        let made = self
            .maps()
            .patch(&object_name, &params, &Patch::Apply(object))
            .await
            .unwrap();
        let status = json!({"status": {"appliedResources": [{
            "version": "v1", "resource": "configmaps", "namespace": self.cluster, "name": object_name, "uid": made.uid(),
        }]}});
        let params = PatchParams::default();
        self.records()
            .patch_status(&name, &params, &Patch::Merge(status))
            .await
            .unwrap()
    }
}

async fn a_switch_of_hubs_leaves_the_objects(lab: Arc<Lab>) {
    let mut pair =
        Pair::start_with(&lab, &["--appliedmanifestwork-eviction-grace-period=1s"]).await;
    pair.kill();
    let cluster = pair.cluster.clone();
    let old = pair
        .leave_record("oldhub", &cluster, &pair.map("one", "1"))
        .await;
    let foreign = pair
        .leave_record("otherhub", "another-agent", &pair.map("theirs", "1"))
        .await;
    let uid = pair.maps().get("one").await.unwrap().uid();
    pair.put_manifests("web", &[pair.map("one", "1")]).await;
    pair.restart();
    wait::until("the old record to be evicted", PATIENCE, || async {
        match pair.records().get_opt(&old.name_any()).await.unwrap() {
            None => Ok(()),
            Some(record) => Err(format!("{record:?}")),
        }
    })
    .await;
    pair.until_says("web", Of::Work, &ALL_IS_WELL).await;
    let map = pair.maps().get("one").await.unwrap();
    let record = pair.record_of("web").await;
    let owners: Vec<_> = map.owner_references().iter().map(|one| &one.uid).collect();
    assert_eq!(owners, [&record.uid().unwrap()]);
    assert_eq!(map.uid(), uid);
    // What another agent has recorded is none of our business, however lost it looks.
    let foreign = pair.records().get(&foreign.name_any()).await.unwrap();
    let status = foreign.status.unwrap();
    assert_eq!(status.eviction_start_time, None);
    assert_eq!(pair.value_of("theirs").await.as_deref(), Some("1"));
}

async fn a_record_is_never_evicted_if_so_told(lab: Arc<Lab>) {
    let flag = "--appliedmanifestwork-eviction-grace-period=876000h";
    let mut pair = Pair::start_with(&lab, &[flag]).await;
    pair.kill();
    let cluster = pair.cluster.clone();
    let old = pair
        .leave_record("oldhub", &cluster, &pair.map("one", "1"))
        .await;
    let started = json!({"status": {"evictionStartTime": "2026-01-01T00:00:00Z"}});
    let params = PatchParams::default();
    pair.records()
        .patch_status(&old.name_any(), &params, &Patch::Merge(started))
        .await
        .unwrap();
    pair.restart();
    wait::until("the eviction to be called off", PATIENCE, || async {
        let record = pair.records().get(&old.name_any()).await.unwrap();
        match record.status.unwrap().eviction_start_time {
            None => Ok(()),
            Some(time) => Err(format!("{time:?}")),
        }
    })
    .await;
    assert_eq!(pair.value_of("one").await.as_deref(), Some("1"));
}
