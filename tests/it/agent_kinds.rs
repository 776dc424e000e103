//! Kinds that an apply alone does not do justice to.

use std::sync::Arc;

use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    agent_pair::{Pair, condition},
    harness::cases,
    servers::Lab,
};

cases!(
    plain: ;
    kubernetes:
        what_an_apply_does_not_declare_is_left_out_and_named,
        what_an_apply_does_not_declare_fails_under_server_side_apply,
        of_entries_under_one_key_the_last_is_kept,
        a_pod_keeps_its_spec_and_its_metadata_follows,
        a_secret_of_another_type_is_created_anew,
        a_secret_that_cannot_be_created_anew_is_kept,
        a_storage_class_is_created_anew_and_its_default_is_the_spoke_s,
        what_is_injected_stays,
        string_data_is_kept_applied,
        a_field_manager_that_changes_leaves_nothing_behind,
        finalizers_that_are_gone_do_not_come_back,
);

fn deployment(pair: &Pair, pod: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": pair.cluster},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod},
        },
    })
}

async fn what_an_apply_does_not_declare_is_left_out_and_named(lab: Arc<Lab>) {
    let mut pair = Pair::start(&lab).await;
    let pod = json!({
        "containers": [{"name": "web", "image": "web:1", "imagePolicy": "typo"}],
        "unheardOf": {"a": 1},
    });
    pair.put_manifests("web", &[deployment(&pair, &pod), pair.map("beside", "1")])
        .await;
    let work = pair.until("web", "Applied", "True").await;
    let (_, _, message) = condition(&work, 0, "Applied");
    assert_eq!(
        message,
        "Apply manifest complete: \
         left out .spec.template.spec.containers[name=\"web\"].imagePolicy, which the API server does not declare; \
         left out .spec.template.spec.unheardOf, which the API server does not declare"
    );
    assert_eq!(condition(&work, 1, "Applied").2, "Apply manifest complete");

    // It is still said when nothing had to be sent: after an edit elsewhere, by another process.
    pair.restart();
    pair.put_manifests("web", &[deployment(&pair, &pod), pair.map("beside", "2")])
        .await;
    let work = pair.until("web", "Applied", "True").await;
    assert_eq!(condition(&work, 0, "Applied").2, message);
}

async fn what_an_apply_does_not_declare_fails_under_server_side_apply(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let pod = json!({"containers": [{"name": "web", "image": "web:1"}], "unheardOf": 1});
    pair.put("web", json!({
        "workload": {"manifests": [deployment(&pair, &pod)]},
        "manifestConfigs": [{
            "resourceIdentifier": {"group": "apps", "resource": "deployments", "name": "web", "namespace": pair.cluster},
            "updateStrategy": {"type": "ServerSideApply"},
        }],
    }))
    .await;
    let work = pair.until("web", "Applied", "False").await;
    let (_, reason, message) = condition(&work, 0, "Applied");
    assert_eq!(reason, "AppliedManifestFailed");
    assert!(
        message.contains(".spec.template.spec.unheardOf"),
        "{message}"
    );
}

async fn of_entries_under_one_key_the_last_is_kept(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let env = json!([{"name": "A", "value": "first"}, {"name": "B", "value": "b"}, {"name": "A", "value": "last"}]);
    let pod = json!({"containers": [{"name": "web", "image": "web:1", "env": env}]});
    pair.put_manifests("web", &[deployment(&pair, &pod)]).await;
    let work = pair.until("web", "Applied", "True").await;
    let (_, _, message) = condition(&work, 0, "Applied");
    assert_eq!(
        message,
        "Apply manifest complete: kept the last of .spec.template.spec.containers[name=\"web\"].env[name=\"A\"]"
    );
    let deployments = pair.objects("apps/v1", "Deployment", true);
    pair.until_object("the last to be there", &deployments, "web", |found| {
        let env = &found["spec"]["template"]["spec"]["containers"][0]["env"];
        *env == json!([{"name": "B", "value": "b"}, {"name": "A", "value": "last"}])
    })
    .await;
}

async fn a_pod_keeps_its_spec_and_its_metadata_follows(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let pods = pair.objects("v1", "Pod", true);
    let pod = |labels: Value, policy: &str| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "one", "namespace": pair.cluster, "labels": labels},
            "spec": {
                "restartPolicy": policy, "automountServiceAccountToken": false,
                "containers": [{"name": "web", "image": "web:1"}],
            },
        })
    };
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": pair.cluster}});
    pair.put_manifests(
        "web",
        &[
            account.clone(),
            pod(json!({"kept": "1", "dropped": "1"}), "Never"),
        ],
    )
    .await;
    pair.until("web", "Available", "True").await;
    let uid = pods.get("one").await.unwrap().uid();

    pair.put_manifests(
        "web",
        &[
            account.clone(),
            pod(json!({"kept": "2", "new": "1"}), "Never"),
        ],
    )
    .await;
    let work = pair.until("web", "Applied", "True").await;
    assert_eq!(condition(&work, 1, "Applied").2, "Apply manifest complete");
    let is_right = |found: &Value| found["metadata"]["labels"] == json!({"kept": "2", "new": "1"});
    pair.until_object("the labels to follow", &pods, "one", is_right)
        .await;

    pair.edit(
        &pods,
        "one",
        &json!({"metadata": {"labels": {"kept": "wrong"}}}),
    )
    .await;
    pair.until_object("the labels to be repaired", &pods, "one", is_right)
        .await;
    pair.edit(
        &pods,
        "one",
        &json!({"metadata": {"labels": {"kept": "again"}}}),
    )
    .await;
    pair.until_object("the labels to be repaired again", &pods, "one", is_right)
        .await;

    pair.put_manifests("web", &[account, pod(json!({"kept": "3"}), "Always")])
        .await;
    let work = pair.until("web", "Applied", "True").await;
    let (_, _, message) = condition(&work, 1, "Applied");
    assert!(
        message.starts_with("Apply manifest complete: the spec of the Pod differs"),
        "{message}"
    );
    let live = serde_json::to_value(pods.get("one").await.unwrap()).unwrap();
    assert_eq!(live["metadata"]["labels"], json!({"kept": "3"}));
    assert_eq!(live["spec"]["restartPolicy"], "Never");
    assert_eq!(live["metadata"]["uid"].as_str().map(str::to_owned), uid);
    pair.delete("web").await;
}

async fn a_secret_of_another_type_is_created_anew(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let secrets = pair.objects("v1", "Secret", true);
    pair.put_manifests("web", &[secret(&pair, "Opaque")]).await;
    pair.until("web", "Available", "True").await;
    let before = secrets.get("one").await.unwrap().uid();
    pair.put_manifests("web", &[secret(&pair, "example.com/other")])
        .await;
    pair.until("web", "Applied", "True").await;
    let after = serde_json::to_value(secrets.get("one").await.unwrap()).unwrap();
    assert_eq!(after["type"], "example.com/other");
    assert_ne!(after["metadata"]["uid"].as_str().map(str::to_owned), before);
}

/// Deleting comes last: what would be refused takes nothing away.
async fn a_secret_that_cannot_be_created_anew_is_kept(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let secrets = pair.objects("v1", "Secret", true);
    pair.put_manifests("web", &[secret(&pair, "Opaque")]).await;
    pair.until("web", "Available", "True").await;
    let before = secrets.get("one").await.unwrap().uid();
    pair.put_manifests("web", &[secret(&pair, "kubernetes.io/tls")])
        .await;
    let work = pair.until("web", "Applied", "False").await;
    let (_, _, message) = condition(&work, 0, "Applied");
    assert!(message.contains("tls.crt"), "{message}");
    assert_eq!(secrets.get("one").await.unwrap().uid(), before);
}

fn secret(pair: &Pair, kind: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": kind,
        "metadata": {"name": "one", "namespace": pair.cluster},
        "data": {"a": "YQ=="},
    })
}

async fn a_storage_class_is_created_anew_and_its_default_is_the_spoke_s(lab: Arc<Lab>) {
    const DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";
    let pair = Pair::start(&lab).await;
    let classes = pair.objects("storage.k8s.io/v1", "StorageClass", false);
    let name = pair.named("class");
    let class = |size: &str| {
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": name, "annotations": {DEFAULT: "false"}},
            "provisioner": "example.com/disks",
            "parameters": {"size": size},
        })
    };
    pair.put_manifests("web", &[class("1")]).await;
    pair.until("web", "Available", "True").await;
    pair.edit(
        &classes,
        &name,
        &json!({"metadata": {"annotations": {DEFAULT: "true", "b": "1"}}}),
    )
    .await;
    let mut labelled = class("1");
    labelled["metadata"]["labels"] = json!({"seen": "yes"});
    pair.put_manifests("web", &[labelled]).await;
    pair.until("web", "Applied", "True").await;
    let live = serde_json::to_value(classes.get(&name).await.unwrap()).unwrap();
    assert_eq!(live["metadata"]["labels"], json!({"seen": "yes"}));
    assert_eq!(
        live["metadata"]["annotations"][DEFAULT], "true",
        "the live one wins"
    );

    pair.put_manifests("web", &[class("2")]).await;
    pair.until("web", "Applied", "True").await;
    let anew = serde_json::to_value(classes.get(&name).await.unwrap()).unwrap();
    assert_eq!(anew["parameters"]["size"], "2");
    assert_ne!(anew["metadata"]["uid"], live["metadata"]["uid"]);
    pair.delete("web").await;
}

async fn what_is_injected_stays(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let name = pair.named("hooks");
    let hooks = |url: &str| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [{
                "name": "one.example.com", "clientConfig": {"url": url}, "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
                "rules": [{"apiGroups": ["nowhere.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothings"]}],
            }],
        })
    };
    let mut bundle = pair.map("bundle", "1");
    bundle["metadata"]["labels"] = json!({"config.openshift.io/inject-trusted-cabundle": "true"});
    pair.put_manifests("web", &[hooks("https://127.0.0.1:1/a"), bundle.clone()])
        .await;
    pair.until("web", "Available", "True").await;
    let configurations = pair.objects(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        false,
    );
    // Another manager fills in the authority's certificate, as cert-manager does.
    let injected = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{"name": "one.example.com", "clientConfig": {"caBundle": "Q0E="},
            "sideEffects": "None", "admissionReviewVersions": ["v1"]}],
    });
    configurations
        .patch(
            &name,
            &PatchParams::apply("injector").force(),
            &Patch::Apply(injected),
        )
        .await
        .unwrap();
    let maps = pair.objects("v1", "ConfigMap", true);
    pair.edit(&maps, "bundle", &json!({"data": {"ca-bundle.crt": "CA"}}))
        .await;

    bundle["data"]["key"] = "2".into();
    pair.put_manifests("web", &[hooks("https://127.0.0.1:1/b"), bundle])
        .await;
    pair.until("web", "Applied", "True").await;
    let live = serde_json::to_value(configurations.get(&name).await.unwrap()).unwrap();
    assert_eq!(
        live["webhooks"][0]["clientConfig"],
        json!({"url": "https://127.0.0.1:1/b", "caBundle": "Q0E="})
    );
    let live = serde_json::to_value(maps.get("bundle").await.unwrap()).unwrap();
    assert_eq!(live["data"], json!({"key": "2", "ca-bundle.crt": "CA"}));
    pair.delete("web").await;
}

async fn string_data_is_kept_applied(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let secrets = pair.objects("v1", "Secret", true);
    let secret = |data: Value| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one", "namespace": pair.cluster},
            "stringData": data,
        })
    };
    pair.put_manifests("web", &[secret(json!({"a": "a", "b": "b"}))])
        .await;
    pair.until("web", "Available", "True").await;
    pair.edit(&secrets, "one", &json!({"data": {"a": "d3Jvbmc="}}))
        .await;
    let both = json!({"a": "YQ==", "b": "Yg=="});
    pair.until_object("the key to be repaired", &secrets, "one", |found| {
        found["data"] == both
    })
    .await;
    pair.put_manifests("web", &[secret(json!({"a": "a"}))])
        .await;
    pair.until("web", "Applied", "True").await;
    pair.until_object("the dropped key to go", &secrets, "one", |found| {
        found["data"] == json!({"a": "YQ=="})
    })
    .await;
    let mut contradictory = secret(json!({"a": "a"}));
    contradictory["data"] = json!({"a": "Yg=="});
    pair.put_manifests("web", &[contradictory]).await;
    let work = pair.until("web", "Applied", "False").await;
    let (_, _, message) = condition(&work, 0, "Applied");
    assert!(
        message.contains("\"a\" has different values in data and stringData"),
        "{message}"
    );
}

async fn a_field_manager_that_changes_leaves_nothing_behind(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let maps = pair.objects("v1", "ConfigMap", true);
    let spec = |manager: &str, data: Value| {
        let mut spec = pair.with_strategy(
            "one",
            "1",
            &json!({"type": "ServerSideApply", "serverSideApply": {"fieldManager": manager}}),
        );
        spec["workload"]["manifests"][0]["data"] = data;
        spec
    };
    pair.put("web", spec("work-agent-a", json!({"a": "1", "b": "1"})))
        .await;
    pair.until("web", "Available", "True").await;
    pair.put("web", spec("work-agent-b", json!({"a": "1", "b": "1"})))
        .await;
    pair.until("web", "Applied", "True").await;
    pair.put("web", spec("work-agent-b", json!({"a": "1"})))
        .await;
    pair.until("web", "Applied", "True").await;
    let live = pair
        .until_object("the dropped key to go", &maps, "one", |found| {
            found["data"] == json!({"a": "1"})
        })
        .await;
    let managers: Vec<_> = live["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["manager"].as_str().unwrap())
        .collect();
    assert_eq!(managers, ["work-agent-b"]);
}

async fn finalizers_that_are_gone_do_not_come_back(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let maps = pair.objects("v1", "ConfigMap", true);
    let map = |value: &str| {
        let mut map = pair.map("one", value);
        map["metadata"]["finalizers"] = json!(["example.com/one", "example.com/two"]);
        map
    };
    pair.put_manifests("web", &[map("1")]).await;
    pair.until("web", "Available", "True").await;
    let left = json!(["example.com/two"]);
    pair.edit(&maps, "one", &json!({"metadata": {"finalizers": left}}))
        .await;
    pair.put_manifests("web", &[map("2")]).await;
    pair.until("web", "Applied", "True").await;
    let live = serde_json::to_value(maps.get("one").await.unwrap()).unwrap();
    assert_eq!(
        (&live["metadata"]["finalizers"], &live["data"]["key"]),
        (&left, &json!("2"))
    );
    // A manifest that no longer names them leaves those that live.
    pair.put_manifests("web", &[pair.map("one", "3")]).await;
    pair.until("web", "Applied", "True").await;
    pair.edit(&maps, "one", &json!({"metadata": {"finalizers": null}}))
        .await;
    pair.delete("web").await;
}
