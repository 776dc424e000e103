//! How the agent writes: what is sent, what it leaves alone and what it repairs.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    agent_pair::{Pair, condition},
    agent_report::{ALL_IS_WELL, Of},
    harness::cases,
    servers::Lab,
};

cases!(
    plain: ;
    kubernetes:
        what_the_server_owns_is_not_sent,
        what_others_do_with_their_own_causes_no_write,
        a_foreign_write_in_our_name_is_repaired,
        every_kind_is_repaired_alike,
        what_cannot_be_changed_is_kept_or_made_anew,
        works_that_disagree_do_not_chase_each_other,
);

pub(crate) fn deployment(pair: &Pair, name: &str, spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": pair.cluster},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}, "creationTimestamp": null},
                "spec": {"containers": [{"name": "a", "image": "a:1"}]},
            },
        },
    });
    let fields = object["spec"].as_object_mut().unwrap();
    fields.extend(spec.as_object().unwrap().clone());
    object
}

impl Pair {
    pub(crate) async fn object(&self, objects: &Api<DynamicObject>, name: &str) -> Value {
        serde_json::to_value(objects.get(name).await.unwrap()).unwrap()
    }

    /// How many manifests the agent has applied.
    async fn applies(&self) -> u64 {
        self.metric("gitspoke_writes_total", &[r#"write="apply""#])
            .await
    }
}

/// The fields that an entry of `managedFields` holds; `null` when there is none.
pub(crate) fn held(object: &Value, manager: &str, operation: &str) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let entry = entries
        .iter()
        .find(|entry| entry["manager"] == manager && entry["operation"] == operation);
    entry.map_or(Value::Null, |entry| entry["fieldsV1"].clone())
}

async fn what_the_server_owns_is_not_sent(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let group = format!("{}.example.com", pair.cluster);
    // A kind whose status is a field like any other.
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {
            "group": group, "names": {"kind": "Widget", "plural": "widgets"}, "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    let widget = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Widget",
        "metadata": {
            "name": "a", "namespace": pair.cluster, "uid": "11111111-2222-3333-4444-555555555555",
            "resourceVersion": "1", "creationTimestamp": "2020-01-01T00:00:00Z",
            "managedFields": [{"manager": "theirs", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}],
        },
        "spec": {"size": 1}, "status": {"state": "ours"},
    });
    let nested = json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "nested", "namespace": pair.cluster, "creationTimestamp": null},
        "spec": {"workload": {"manifests": [{
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "inner", "creationTimestamp": null},
        }]}},
        "status": {"conditions": []},
    });
    let aggregated = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": pair.named("sum"), "creationTimestamp": null},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"part-of": pair.named("sum")}}]},
        "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}],
    });
    let part = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": pair.named("part"), "labels": {"part-of": pair.named("sum")}},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    });
    let web = deployment(&pair, "web", &json!({"replicas": 0}));
    pair.put_manifests("web", &[definition, widget, nested, aggregated, part, web])
        .await;
    pair.until_says("web", Of::Work, &ALL_IS_WELL).await;

    let widgets = pair.objects(&format!("{group}/v1"), "Widget", true);
    let widget = pair.object(&widgets, "a").await;
    assert_eq!(widget["spec"]["size"], 1);
    assert_eq!(widget.get("status"), None);
    let metadata = &widget["metadata"];
    assert_ne!(metadata["uid"], "11111111-2222-3333-4444-555555555555");
    assert_ne!(metadata["creationTimestamp"], "2020-01-01T00:00:00Z");
    let owns = |fields: &Value| -> Vec<String> {
        let fields = fields.as_object().unwrap();
        fields.keys().cloned().collect()
    };
    let ours = held(&widget, "work-agent", "Apply");
    assert_eq!(owns(&ours["f:metadata"]), ["f:ownerReferences"]);
    // What its controller reports stays, also when the spec is repaired.
    let state = json!({"spec": {"size": 2}, "status": {"state": "theirs"}});
    pair.edit(&widgets, "a", &state).await;
    let widget = pair
        .until_object("the spec to be repaired", &widgets, "a", |found| {
            found["spec"]["size"] == 1
        })
        .await;
    assert_eq!(widget["status"]["state"], "theirs");

    let works = pair.objects("work.open-cluster-management.io/v1", "ManifestWork", true);
    let nested = pair.object(&works, "nested").await;
    let inner = &nested["spec"]["workload"]["manifests"][0]["metadata"];
    assert_eq!(
        (inner, &nested["metadata"]["generation"]),
        (&json!({"name": "inner"}), &json!(1))
    );
    let web = pair
        .object(&pair.objects("apps/v1", "Deployment", true), "web")
        .await;
    let template = &held(&web, "work-agent", "Apply")["f:spec"]["f:template"]["f:metadata"];
    assert_eq!(owns(template), ["f:labels"]);

    // The rules of an aggregated role are the controller's.
    let roles = pair.objects("rbac.authorization.k8s.io/v1", "ClusterRole", false);
    let sum = pair
        .until_object(
            "the rules to be summed up",
            &roles,
            &pair.named("sum"),
            |found| {
                found["rules"]
                    == json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])
            },
        )
        .await;
    assert_eq!(held(&sum, "work-agent", "Apply").get("f:rules"), None);
    pair.delete("web").await;
}

/// Each of these is seen by the agent, and the last one shows that it has seen them all.
async fn what_others_do_with_their_own_causes_no_write(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let manifests = [
        deployment(&pair, "web", &json!({})),
        deployment(
            &pair,
            "marker",
            &json!({"replicas": 0, "minReadySeconds": 1}),
        ),
    ];
    pair.put_manifests("web", &manifests).await;
    let work = pair.until_says("web", Of::Work, &ALL_IS_WELL).await;
    let deployments = pair.objects("apps/v1", "Deployment", true);
    let ours = held(
        &pair.object(&deployments, "web").await,
        "work-agent",
        "Apply",
    );
    let before = pair.applies().await;

    let scale = |count: u8| Patch::Merge(json!({"spec": {"replicas": count}}));
    let params = PatchParams {
        field_manager: Some("autoscaler".to_owned()),
        ..PatchParams::default()
    };
    let typed: Api<Deployment> = Api::namespaced(pair.spoke.clone(), &pair.cluster);
    // The first leaves a trace of who it was; on a field that nobody owns, scaling leaves none.
    typed.patch("web", &params, &scale(3)).await.unwrap();
    typed.patch_scale("web", &params, &scale(2)).await.unwrap();
    let theirs = json!({
        "metadata": {"annotations": {"theirs": "1"}, "labels": {"theirs": "1"}, "finalizers": ["example.com/theirs"]},
        "spec": {"paused": true, "template": {"metadata": {"annotations": {"theirs": "1"}}}},
    });
    pair.edit(&deployments, "web", &theirs).await;
    let status = Patch::Merge(json!({"status": {"conditions": [
        {"type": "Theirs", "status": "True", "reason": "Theirs", "message": ""},
    ]}}));
    typed.patch_status("web", &params, &status).await.unwrap();

    let wrong = json!({"spec": {"minReadySeconds": 5}});
    pair.edit(&deployments, "marker", &wrong).await;
    pair.until_object(
        "the marker to be repaired",
        &deployments,
        "marker",
        |found| found["spec"]["minReadySeconds"] == 1,
    )
    .await;
    assert_eq!(pair.applies().await - before, 1, "the marker's alone");
    let web = pair.object(&deployments, "web").await;
    assert_eq!(web["spec"]["replicas"], 2);
    assert_eq!(web["metadata"]["labels"]["theirs"], "1");
    assert_eq!(held(&web, "work-agent", "Apply"), ours);
    let now = pair.works().get(&pair.named("web")).await.unwrap();
    assert_eq!(
        now.resource_version(),
        work.resource_version(),
        "nor has the hub been told anything"
    );
    let release = json!({"metadata": {"finalizers": null}});
    pair.edit(&deployments, "web", &release).await;
}

/// The fields are the same, only their values are not: our entry looks as we left it.
async fn a_foreign_write_in_our_name_is_repaired(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let web = deployment(&pair, "web", &json!({"replicas": 0}));
    pair.put_manifests("web", &[pair.map("one", "1"), web.clone()])
        .await;
    pair.until_says("web", Of::Work, &ALL_IS_WELL).await;
    let (maps, deployments) = (
        pair.objects("v1", "ConfigMap", true),
        pair.objects("apps/v1", "Deployment", true),
    );
    let params = PatchParams::apply("work-agent").force();
    let impersonate = async |objects: &Api<DynamicObject>, mut manifest: Value| {
        let name = manifest["metadata"]["name"].as_str().unwrap().to_owned();
        let live = pair.object(objects, &name).await;
        manifest["metadata"]["ownerReferences"] = live["metadata"]["ownerReferences"].clone();
        let ours = held(&live, "work-agent", "Apply");
        let patch = Patch::Apply(manifest);
        let answer = objects.patch(&name, &params, &patch).await.unwrap();
        let answer = serde_json::to_value(answer).unwrap();
        assert_eq!(held(&answer, "work-agent", "Apply"), ours);
    };
    impersonate(&maps, pair.map("one", "wrong")).await;
    let mut scaled = web;
    scaled["spec"]["replicas"] = json!(1);
    let template = scaled["spec"]["template"]["metadata"].as_object_mut();
    template.unwrap().remove("creationTimestamp");
    impersonate(&deployments, scaled).await;
    pair.until_object("the map to be repaired", &maps, "one", |found| {
        found["data"]["key"] == "1"
    })
    .await;
    pair.until_object(
        "the Deployment to be repaired",
        &deployments,
        "web",
        |found| found["spec"]["replicas"] == 0,
    )
    .await;
}

async fn every_kind_is_repaired_alike(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let namespace = pair.named("house");
    let manifests = [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": {"a": "1"}}}),
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "one", "namespace": pair.cluster},
            "automountServiceAccountToken": false, "imagePullSecrets": [{"name": "pull"}],
        }),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "one", "namespace": pair.cluster},
            "spec": {"clusterIP": "None", "ports": [{"name": "web", "port": 80, "targetPort": 8080}]},
        }),
    ];
    pair.put_manifests("web", &manifests).await;
    pair.until_says("web", Of::Work, &ALL_IS_WELL).await;
    let table = [
        (
            pair.objects("v1", "Namespace", false),
            namespace.as_str(),
            json!({"metadata": {"labels": {"a": null}}}),
            "/metadata/labels/a",
            json!("1"),
        ),
        (
            pair.objects("v1", "ServiceAccount", true),
            "one",
            json!({"automountServiceAccountToken": true}),
            "/automountServiceAccountToken",
            json!(false),
        ),
        (
            pair.objects("v1", "Service", true),
            "one",
            json!({"spec": {"ports": [{"name": "web", "port": 80, "targetPort": 9090}]}}),
            "/spec/ports/0/targetPort",
            json!(8080),
        ),
    ];
    for (objects, name, wrong, ..) in &table {
        pair.edit(objects, name, wrong).await;
    }
    for (objects, name, _, path, right) in &table {
        pair.until_object(path, objects, name, |found| {
            found.pointer(path) == Some(right)
        })
        .await;
    }
}

async fn what_cannot_be_changed_is_kept_or_made_anew(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let driver_name = pair.named("driver.example.com");
    let binding = |role: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "one", "namespace": pair.cluster},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
        })
    };
    let driver = |attaches: bool| {
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": driver_name},
            "spec": {"attachRequired": attaches},
        })
    };
    pair.put_manifests("web", &[binding("a"), driver(true)])
        .await;
    pair.until_says("web", Of::Work, &ALL_IS_WELL).await;
    let bindings = pair.objects("rbac.authorization.k8s.io/v1", "RoleBinding", true);
    let drivers = pair.objects("storage.k8s.io/v1", "CSIDriver", false);
    let uids = async || {
        let (binding, driver) = (bindings.get("one").await, drivers.get(&driver_name).await);
        (binding.unwrap().uid(), driver.unwrap().uid())
    };
    let before = uids().await;
    pair.put_manifests("web", &[binding("b"), driver(false)])
        .await;
    let work = pair.until("web", "Applied", "False").await;
    let (_, reason, message) = condition(&work, 0, "Applied");
    assert_eq!(reason, "AppliedManifestFailed");
    assert!(
        message.starts_with("Failed to apply manifest: ")
            && message.contains("cannot change roleRef"),
        "{message}"
    );
    assert_eq!(condition(&work, 1, "Applied").0, "True");
    let after = uids().await;
    assert_eq!(after.0, before.0, "nobody asked for another binding");
    assert_ne!(after.1, before.1);
    pair.delete("web").await;
}

/// One of them wrote last, and that is it.
async fn works_that_disagree_do_not_chase_each_other(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    for work in ["first", "second"] {
        pair.put_manifests(work, &[pair.map("shared", work)]).await;
        pair.until_says(work, Of::Work, &ALL_IS_WELL).await;
    }
    let before = pair.applies().await;
    // Something else happens to the object, and something to another: its repair shows that both have been seen.
    let maps = pair.objects("v1", "ConfigMap", true);
    pair.put_manifests("third", &[pair.map("marker", "1")])
        .await;
    pair.until_says("third", Of::Work, &ALL_IS_WELL).await;
    let theirs = json!({"metadata": {"annotations": {"theirs": "1"}}});
    pair.edit(&maps, "shared", &theirs).await;
    pair.edit(&maps, "marker", &json!({"data": {"key": "wrong"}}))
        .await;
    pair.until_object("the marker to be repaired", &maps, "marker", |found| {
        found["data"]["key"] == "1"
    })
    .await;
    assert_eq!(pair.applies().await - before, 2, "the marker's two alone");
    assert_eq!(pair.value_of("shared").await.as_deref(), Some("second"));
}
