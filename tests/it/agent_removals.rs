//! Who goes and who stays when a work no longer asks for an object.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    ResourceExt,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    agent_pair::{PATIENCE, Pair},
    agent_report::{ALL_IS_WELL, HEALTHY, Of, lines},
    harness::cases,
    servers::{Lab, wait},
};

cases!(
    plain: ;
    kubernetes:
        a_deletion_looks_at_the_live_object,
        what_is_only_created_is_adopted_as_it_is,
        the_last_rank_goes_first,
        a_renamed_object_is_there_before_the_old_one_goes,
        a_rule_keeps_exactly_what_it_names,
        an_object_is_handed_over,
);

impl Pair {
    /// A stranger that owns objects, for those that must not go because their only owner has.
    async fn stranger(&self) -> Value {
        let stranger: ConfigMap = serde_json::from_value(self.map("stranger", "1")).unwrap();
        let made = self.maps().create(&PostParams::default(), &stranger).await;
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "stranger", "uid": made.unwrap().uid()})
    }

    async fn until_gone(&self, work: &str) {
        let (works, name) = (self.works(), self.named(work));
        wait::until(&format!("{work} to be gone"), PATIENCE, || async {
            match works.get_opt(&name).await {
                Ok(None) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }
}

/// All of it happens while the agent is away, and its last look is what it remembers.
async fn a_deletion_looks_at_the_live_object(lab: Arc<Lab>) {
    let mut pair = Pair::start(&lab).await;
    let maps = pair.objects("v1", "ConfigMap", true);
    let works = ["gone", "anew", "owned", "adopted", "disowned", "deleting"];
    let adopted: ConfigMap = serde_json::from_value(pair.map("adopted", "1")).unwrap();
    let create = PostParams::default();
    pair.maps().create(&create, &adopted).await.unwrap();
    for work in works {
        let mut map = pair.map(work, "1");
        if work == "deleting" {
            map["metadata"]["finalizers"] = json!(["example.com/hold"]);
        }
        pair.put_manifests(work, &[map]).await;
    }
    for work in works {
        pair.until_says(work, Of::Work, &ALL_IS_WELL).await;
        pair.until_recorded(work, 1).await;
    }
    let stranger = pair.stranger().await;
    let ours = async |name: &str| {
        let owners = &maps.get(name).await.unwrap().metadata.owner_references;
        serde_json::to_value(owners.as_ref().unwrap()).unwrap()[0].clone()
    };
    let owner_of_anew = ours("anew").await;
    let owner_of_owned = ours("owned").await;
    pair.kill();

    let delete = DeleteParams::default();
    for name in ["gone", "anew", "deleting"] {
        maps.delete(name, &delete).await.unwrap();
    }
    // Another object of the same name, that says to be ours.
    let mut anew = pair.map("anew", "2");
    anew["metadata"]["ownerReferences"] = json!([owner_of_anew, stranger]);
    let anew: ConfigMap = serde_json::from_value(anew).unwrap();
    pair.maps().create(&create, &anew).await.unwrap();
    let owners = |owners: Value| json!({"metadata": {"ownerReferences": owners}});
    pair.edit(&maps, "owned", &owners(json!([owner_of_owned, stranger])))
        .await;
    pair.edit(&maps, "disowned", &owners(json!([stranger])))
        .await;
    for work in works {
        pair.begin_delete(work).await;
    }
    pair.restart();

    for work in ["gone", "anew", "owned", "adopted", "disowned"] {
        pair.until_gone(work).await;
    }
    let left = [
        pair.value_of("anew").await,
        pair.value_of("owned").await,
        pair.value_of("adopted").await,
        pair.value_of("disowned").await,
    ];
    let stays = |value: &str| Some(value.to_owned());
    assert_eq!(
        left,
        [stays("2"), None, None, stays("1")],
        "another object stays, what a stranger owns or what was there before goes, and what is not ours stays"
    );
    // What is already on its way is waited for.
    let name = pair.named("deleting");
    assert!(pair.works().get_opt(&name).await.unwrap().is_some());
    pair.edit(
        &maps,
        "deleting",
        &json!({"metadata": {"finalizers": null}}),
    )
    .await;
    pair.until_gone("deleting").await;
}

async fn what_is_only_created_is_adopted_as_it_is(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let stranger = pair.stranger().await;
    let mut theirs = pair.map("theirs", "theirs");
    theirs["metadata"]["ownerReferences"] = json!([stranger]);
    let theirs: ConfigMap = serde_json::from_value(theirs).unwrap();
    let create = PostParams::default();
    let made = pair.maps().create(&create, &theirs).await.unwrap();
    let create_only = pair.with_strategy("theirs", "ours", &json!({"type": "CreateOnly"}));
    pair.put("web", create_only).await;
    pair.until_says("web", Of::Work, &ALL_IS_WELL).await;
    let found = pair.maps().get("theirs").await.unwrap();
    assert_eq!((found.uid(), &found.data), (made.uid(), &made.data));
    let record = pair.record_of("web").await;
    let owners: Vec<_> = found
        .owner_references()
        .iter()
        .map(|one| &*one.uid)
        .collect();
    let ours = record.uid().unwrap();
    assert_eq!(owners, [stranger["uid"].as_str().unwrap(), &ours]);
    pair.delete("web").await;
    assert_eq!(pair.value_of("theirs").await, None);
}

async fn the_last_rank_goes_first(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "second", "namespace": pair.cluster, "finalizers": ["example.com/hold"]},
        "spec": {"clusterIP": "None", "ports": [{"port": 80}]},
    });
    let job = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "first", "namespace": pair.cluster},
        "spec": {"schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": {"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "a", "image": "a:1"}],
        }}}}},
    });
    pair.put_manifests("web", &[pair.map("last", "1"), service, job])
        .await;
    pair.until_says("web", Of::Work, &ALL_IS_WELL).await;
    pair.begin_delete("web").await;

    let services = pair.objects("v1", "Service", true);
    pair.until_object("the Service to be deleted", &services, "second", |found| {
        found["metadata"]["deletionTimestamp"].is_string()
    })
    .await;
    let jobs = pair.objects("batch/v1", "CronJob", true);
    assert!(jobs.get_opt("first").await.unwrap().is_none());
    let cluster = &pair.cluster;
    let left = [
        format!("/v1/configmaps/{cluster}/last"),
        format!("/v1/services/{cluster}/second"),
    ];
    assert_eq!(pair.until_recorded("web", 2).await, left);
    let map = pair.maps().get("last").await.unwrap();
    assert_eq!(map.metadata.deletion_timestamp, None, "it is not its turn");
    let deleting = "Deleting=True WorkDeleting @now: ManifestWork is being deleted";
    let name = pair.named("web");
    let work = pair.works().get(&name).await.unwrap();
    assert!(
        lines(&work, Of::Work).contains(&deleting.to_owned()),
        "{work:#?}"
    );
    assert_eq!(lines(&work, Of::Manifest(0))[1..], HEALTHY[1..]);

    let release = json!({"metadata": {"finalizers": null}});
    pair.edit(&services, "second", &release).await;
    pair.until_gone("web").await;
    assert_eq!(pair.value_of("last").await, None);
}

async fn a_renamed_object_is_there_before_the_old_one_goes(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let maps = pair.objects("v1", "ConfigMap", true);
    let mut old = pair.map("old", "1");
    old["metadata"]["finalizers"] = json!(["example.com/hold"]);
    pair.put_manifests("web", &[old]).await;
    pair.until_says("web", Of::Work, &ALL_IS_WELL).await;
    pair.put_manifests("web", &[pair.map("new", "1")]).await;
    let old = pair
        .until_object("the old one to be deleted", &maps, "old", |found| {
            found["metadata"]["deletionTimestamp"].is_string()
        })
        .await;
    let version = |object: &Value| -> u64 {
        let text = object["metadata"]["resourceVersion"].as_str().unwrap();
        text.parse().unwrap()
    };
    let new = serde_json::to_value(maps.get("new").await.unwrap()).unwrap();
    assert!(version(&new) < version(&old), "{new} {old}");
    // The work is as asked for; what still goes stays on record.
    pair.until_says("web", Of::Work, &ALL_IS_WELL).await;
    let both = ["new", "old"].map(|name| format!("/v1/configmaps/{}/{name}", pair.cluster));
    assert_eq!(pair.until_recorded("web", 2).await, both);
    let release = json!({"metadata": {"finalizers": null}});
    pair.edit(&maps, "old", &release).await;
    assert_eq!(pair.until_recorded("web", 1).await, both[..1]);
}

async fn a_rule_keeps_exactly_what_it_names(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let role = pair.named("role");
    let cluster_role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": role, "namespace": "stray"}, "rules": [],
    });
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kept", "namespace": pair.cluster},
    });
    let cluster = &pair.cluster;
    let spec = |maps: &[&str]| {
        let mut manifests: Vec<Value> = maps.iter().map(|name| pair.map(name, "1")).collect();
        manifests.extend([cluster_role.clone(), secret.clone()]);
        json!({
            "workload": {"manifests": manifests},
            "deleteOption": {"propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": {"orphaningRules": [
                {"resource": "configmaps", "namespace": cluster, "name": "kept"},
                {"resource": "configmaps", "namespace": cluster, "name": "dropped"},
                {"resource": "configmaps", "namespace": cluster, "name": "go*"},
                {"resource": "configmaps", "name": "going"},
                {"group": "apps", "resource": "configmaps", "namespace": cluster, "name": "going"},
                {"group": "rbac.authorization.k8s.io", "resource": "clusterroles", "name": role},
            ]}},
        })
    };
    pair.put("web", spec(&["kept", "dropped", "going"])).await;
    pair.until_says("web", Of::Work, &ALL_IS_WELL).await;
    let maps = pair.objects("v1", "ConfigMap", true);
    let roles = pair.objects("rbac.authorization.k8s.io/v1", "ClusterRole", false);
    let secrets = pair.objects("v1", "Secret", true);
    for (objects, name, owners) in [
        (&maps, "kept", 0),
        (&maps, "going", 1),
        (&roles, role.as_str(), 0),
        (&secrets, "kept", 1),
    ] {
        let object = objects.get(name).await.unwrap();
        assert_eq!(object.owner_references().len(), owners, "{name}");
    }
    // It stays when its manifest is dropped, and when the work goes.
    pair.put("web", spec(&["kept", "going"])).await;
    pair.until_says("web", Of::Work, &ALL_IS_WELL).await;
    pair.until_recorded("web", 4).await;
    pair.delete("web").await;
    assert_eq!(pair.value_of("dropped").await.as_deref(), Some("1"));
    assert_eq!(pair.value_of("kept").await.as_deref(), Some("1"));
    assert_eq!(pair.value_of("going").await, None);
    assert!(secrets.get_opt("kept").await.unwrap().is_none());
    roles.delete(&role, &DeleteParams::default()).await.unwrap();
}

/// To the other work, by the recipe: add it there, orphan it here, drop it here. Both ask for different content, which
/// the last one to write decides.
async fn an_object_is_handed_over(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let first = [pair.map("moving", "first"), pair.map("beside", "1")];
    pair.put_manifests("first", &first).await;
    pair.until_says("first", Of::Work, &ALL_IS_WELL).await;
    let uid = pair.maps().get("moving").await.unwrap().uid();
    pair.put_manifests("second", &[pair.map("moving", "second")])
        .await;
    pair.until_says("second", Of::Work, &ALL_IS_WELL).await;
    let orphaning = json!({
        "workload": {"manifests": first},
        "deleteOption": {"propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": {"orphaningRules": [
            {"resource": "configmaps", "namespace": pair.cluster, "name": "moving"},
        ]}},
    });
    pair.put("first", orphaning).await;
    pair.until_says("first", Of::Work, &ALL_IS_WELL).await;
    pair.put_manifests("first", &[pair.map("beside", "1")])
        .await;
    pair.until_says("first", Of::Work, &ALL_IS_WELL).await;
    pair.delete("first").await;

    let owner = pair.record_of("second").await;
    let maps = pair.objects("v1", "ConfigMap", true);
    let found = pair
        .until_object("it to be the second's", &maps, "moving", |found| {
            found["metadata"]["ownerReferences"]
                .as_array()
                .is_some_and(|owners| owners.len() == 1)
        })
        .await;
    let owners = &found["metadata"]["ownerReferences"];
    assert_eq!(owners[0]["uid"].as_str(), owner.uid().as_deref());
    assert_eq!(found["metadata"]["uid"].as_str(), uid.as_deref());
}
