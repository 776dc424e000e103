//! Works that ask for too much, and spokes that are not as they should be: a clear answer, and the others go on.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    agent_pair::{PATIENCE, Pair, condition},
    harness::cases,
    servers::{Lab, wait},
};

cases!(
    plain: ;
    kubernetes:
        a_manifest_without_a_name_fails_alone,
        a_manifest_that_the_spoke_finds_too_large_fails_alone,
        two_thousand_manifests_are_applied_and_five_thousand_refused,
        a_name_without_room_for_its_record_is_refused,
        a_feedback_name_used_twice_costs_one_value,
        a_namespace_that_is_being_deleted_is_waited_for,
        a_definition_that_is_removed_takes_its_objects_and_brings_them_back,
        what_admission_refuses_fails_alone,
        a_work_goes_on_when_its_kind_appears,
        a_new_version_of_a_kind_is_the_same_object,
);

async fn a_manifest_without_a_name_fails_alone(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let nameless =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": pair.cluster}});
    pair.put_manifests("web", &[nameless, pair.map("good", "1")])
        .await;
    let work = pair.until("web", "Applied", "False").await;
    assert_eq!(
        condition(&work, 0, "Applied"),
        (
            "False".into(),
            "AppliedManifestFailed".into(),
            "Failed to apply manifest: manifest has no metadata.name: set it to name the object"
                .into()
        )
    );
    assert_eq!(
        condition(&work, 0, "Available"),
        (
            "Unknown".into(),
            "IncompleteResourceMeta".into(),
            "Resource meta is incomplete".into()
        )
    );
    assert_eq!(condition(&work, 1, "Applied").0, "True");
    assert_eq!(pair.value_of("good").await.as_deref(), Some("1"));
}

async fn a_manifest_that_the_spoke_finds_too_large_fails_alone(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let map = |name: &str, size: usize| pair.map(name, &"x".repeat(size));
    let mebibyte = 1024 * 1024;
    pair.put_manifests("just", &[map("just", mebibyte)]).await;
    pair.until("just", "Available", "True").await;
    pair.put_manifests("web", &[map("large", mebibyte + 1), pair.map("good", "1")])
        .await;
    let work = pair.until("web", "Applied", "False").await;
    let (_, _, message) = condition(&work, 0, "Applied");
    assert!(message.contains("Too long"), "{message}");
    assert_eq!(condition(&work, 1, "Applied").0, "True");
}

async fn two_thousand_manifests_are_applied_and_five_thousand_refused(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let many = |count: usize| -> Vec<Value> {
        (0..count)
            .map(|number| pair.map(&format!("m-{number}"), "1"))
            .collect()
    };
    pair.put_manifests("large", &many(2_000)).await;
    pair.until("large", "Available", "True").await;
    wait::until("all to be recorded", PATIENCE, || async {
        let resources = pair
            .record_of("large")
            .await
            .status
            .and_then(|status| status.applied_resources);
        let count = resources.map_or(0, |resources| resources.len());
        if count == 2_000 {
            Ok(())
        } else {
            Err(count.to_string())
        }
    })
    .await;

    pair.put_manifests("larger", &many(5_000)).await;
    let work = pair.until("larger", "Applied", "False").await;
    let conditions = work.status.unwrap().conditions.unwrap().0;
    let applied = conditions
        .iter()
        .find(|condition| condition.type_ == "Applied")
        .unwrap();
    assert_eq!(applied.reason, "AppliedManifestWorkFailed");
    assert!(
        applied
            .message
            .starts_with("Failed to apply manifest work: the work is too large: ")
            && applied.message.ends_with("split it into several works"),
        "{}",
        applied.message
    );
    assert_eq!(pair.value_of("m-2000").await, None, "nothing was written");
}

async fn a_name_without_room_for_its_record_is_refused(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let long = "x".repeat(188 - pair.cluster.len());
    pair.put_manifests(&long, &[pair.map("one", "1")]).await;
    let work = pair.until(&long, "Applied", "False").await;
    assert_eq!(work.name_any().len(), 189);
    let conditions = work.status.unwrap().conditions.unwrap().0;
    assert!(
        conditions[0]
            .message
            .starts_with("Failed to apply manifest work: ")
            && conditions[0].message.contains("188"),
        "{}",
        conditions[0].message
    );
    assert_eq!(pair.value_of("one").await, None);
    pair.delete(&long).await;
}

async fn a_feedback_name_used_twice_costs_one_value(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let rule = |paths: Value| json!({"type": "JSONPaths", "jsonPaths": paths});
    pair.put("web", json!({
        "workload": {"manifests": [pair.map("one", "1")]},
        "manifestConfigs": [{
            "resourceIdentifier": {"resource": "configmaps", "name": "one", "namespace": pair.cluster},
            "feedbackRules": [
                rule(json!([{"name": "twice", "path": ".data.key"}])),
                rule(json!([{"name": "twice", "path": ".metadata.name"}, {"name": "once", "path": ".metadata.name"}])),
            ],
        }],
    }))
    .await;
    let work = pair.until("web", "Available", "True").await;
    let (status, reason, message) = condition(&work, 0, "StatusFeedbackSynced");
    assert_eq!((&*status, &*reason), ("False", "StatusFeedbackSyncFailed"));
    assert!(message.contains("twice"), "{message}");
    let status = serde_json::to_value(&work.status).unwrap();
    let values = &status["resourceStatus"]["manifests"][0]["statusFeedback"]["values"];
    let names: Vec<_> = values
        .as_array()
        .unwrap()
        .iter()
        .map(|value| &value["name"])
        .collect();
    assert_eq!(names, ["twice", "once"]);
}

async fn a_namespace_that_is_being_deleted_is_waited_for(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let namespaces: Api<Namespace> = Api::all(pair.spoke.clone());
    let name = pair.named("dying");
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    let mut held = pair.map("held", "1");
    held["metadata"]["namespace"] = name.clone().into();
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let maps = {
        let resource = kube::core::ApiResource::erase::<k8s_openapi::api::core::v1::ConfigMap>(&());
        Api::<kube::api::DynamicObject>::namespaced_with(pair.spoke.clone(), &name, &resource)
    };
    maps.create(
        &PostParams::default(),
        &serde_json::from_value(held).unwrap(),
    )
    .await
    .unwrap();
    namespaces
        .delete(&name, &DeleteParams::default())
        .await
        .unwrap();

    let mut late = pair.map("late", "1");
    late["metadata"]["namespace"] = name.clone().into();
    pair.put_manifests("web", &[late, pair.map("good", "1")])
        .await;
    let work = pair.until("web", "Applied", "False").await;
    let (_, _, message) = condition(&work, 0, "Applied");
    assert!(
        message.contains("because it is being terminated"),
        "{message}"
    );
    assert_eq!(condition(&work, 1, "Applied").0, "True");

    pair.edit(&maps, "held", &json!({"metadata": {"finalizers": null}}))
        .await;
    wait::until("the namespace to go", PATIENCE, || async {
        match namespaces.get_opt(&name).await.unwrap() {
            None => Ok(()),
            Some(_) => Err("it is there".to_owned()),
        }
    })
    .await;
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    pair.until("web", "Applied", "True").await;
}

fn definition(pair: &Pair, versions: &[(&str, bool)]) -> (String, Value) {
    let group = format!("{}.example.com", pair.cluster);
    let last = versions.len() - 1;
    let version = |(number, (name, is_served)): (usize, &(&str, bool))| {
        json!({
            "name": name, "served": is_served, "storage": number == last,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        })
    };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {
            "group": group, "names": {"kind": "Widget", "plural": "widgets"}, "scope": "Namespaced",
            "versions": versions.iter().enumerate().map(version).collect::<Vec<_>>(),
        },
    });
    (group, definition)
}

fn widget(pair: &Pair, group: &str, version: &str) -> Value {
    json!({
        "apiVersion": format!("{group}/{version}"), "kind": "Widget",
        "metadata": {"name": "a", "namespace": pair.cluster}, "spec": {"size": 1},
    })
}

async fn a_definition_that_is_removed_takes_its_objects_and_brings_them_back(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let (group, definition) = definition(&pair, &[("v1", true)]);
    let definitions = pair.objects("apiextensions.k8s.io/v1", "CustomResourceDefinition", false);
    let name = format!("widgets.{group}");
    let create = || async {
        let object = serde_json::from_value(definition.clone()).unwrap();
        definitions
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
    };
    create().await;
    pair.put_manifests("web", &[widget(&pair, &group, "v1"), pair.map("good", "1")])
        .await;
    pair.until("web", "Available", "True").await;

    definitions
        .delete(&name, &DeleteParams::default())
        .await
        .unwrap();
    let work = pair.until("web", "Applied", "False").await;
    let (_, _, message) = condition(&work, 0, "Applied");
    assert!(
        message.contains("the server doesn't have a resource type \"Widget\"")
            || message.contains("custom resource definition is terminating"),
        "{message}"
    );
    assert_eq!(condition(&work, 1, "Available").0, "True");
    pair.edit(
        &pair.objects("v1", "ConfigMap", true),
        "good",
        &json!({"data": {"key": "wrong"}}),
    )
    .await;
    let maps = pair.objects("v1", "ConfigMap", true);
    pair.until_object("the others to be repaired", &maps, "good", |map| {
        map["data"]["key"] == "1"
    })
    .await;

    wait::until("the definition to go", PATIENCE, || async {
        match definitions.get_opt(&name).await.unwrap() {
            None => Ok(()),
            Some(_) => Err("it is there".to_owned()),
        }
    })
    .await;
    create().await;
    pair.until("web", "Available", "True").await;
    let widgets = pair.objects(&format!("{group}/v1"), "Widget", true);
    pair.edit(&widgets, "a", &json!({"spec": {"size": 2}}))
        .await;
    pair.until_object("its drift to be repaired again", &widgets, "a", |found| {
        found["spec"]["size"] == 1
    })
    .await;
    pair.delete("web").await;
    definitions
        .delete(&name, &DeleteParams::default())
        .await
        .unwrap();
}

async fn what_admission_refuses_fails_alone(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let name = pair.named("policy");
    let policies = pair.objects(
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicy",
        false,
    );
    let bindings = pair.objects(
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicyBinding",
        false,
    );
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"],
            }]},
            "matchConditions": [{"name": "here", "expression": format!("object.metadata.namespace == '{}'", pair.cluster)}],
            "validations": [{"expression": "object.metadata.name != 'refused'", "message": "not this one"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    });
    let parameters = PostParams::default();
    policies
        .create(&parameters, &serde_json::from_value(policy).unwrap())
        .await
        .unwrap();
    bindings
        .create(&parameters, &serde_json::from_value(binding).unwrap())
        .await
        .unwrap();
    // A policy takes effect a moment after it is stored.
    wait::until("the policy to be in force", PATIENCE, || async {
        let mut refused = pair.map("refused", "1");
        refused["metadata"]["annotations"] = json!({"trial": "yes"});
        let parameters = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let object = serde_json::from_value(refused).unwrap();
        match pair.maps().create(&parameters, &object).await {
            Ok(_) => Err("not yet".to_owned()),
            Err(_) => Ok(()),
        }
    })
    .await;
    pair.put_manifests("web", &[pair.map("refused", "1"), pair.map("good", "1")])
        .await;
    let work = pair.until("web", "Applied", "False").await;
    let (_, reason, message) = condition(&work, 0, "Applied");
    assert_eq!(reason, "AppliedManifestFailed");
    assert!(message.contains("not this one"), "{message}");
    assert_eq!(
        condition(&work, 0, "Available"),
        (
            "False".into(),
            "ResourceNotAvailable".into(),
            "Resource is not available".into()
        )
    );
    assert_eq!(condition(&work, 1, "Applied").0, "True");
    bindings
        .delete(&name, &DeleteParams::default())
        .await
        .unwrap();
    policies
        .delete(&name, &DeleteParams::default())
        .await
        .unwrap();
    pair.until("web", "Applied", "True").await;
}

/// A work that has failed for a while is retried after minutes; the definition that it waits for must not take as long.
async fn a_work_goes_on_when_its_kind_appears(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let (group, definition) = definition(&pair, &[("v1", true)]);
    pair.put_manifests("web", &[widget(&pair, &group, "v1")])
        .await;
    let work = pair.until("web", "Applied", "False").await;
    assert_eq!(
        condition(&work, 0, "Applied").2,
        "Failed to apply manifest: the server doesn't have a resource type \"Widget\""
    );
    pair.put_manifests("definition", &[definition]).await;
    pair.until("web", "Available", "True").await;
    pair.delete("web").await;
    pair.delete("definition").await;
}

async fn a_new_version_of_a_kind_is_the_same_object(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let (group, old) = definition(&pair, &[("v1", true)]);
    pair.put_manifests("definition", &[old]).await;
    pair.put_manifests("web", &[widget(&pair, &group, "v1")])
        .await;
    pair.until("web", "Available", "True").await;
    let uid = pair
        .objects(&format!("{group}/v1"), "Widget", true)
        .get("a")
        .await
        .unwrap()
        .uid();

    let (_, new) = definition(&pair, &[("v1", true), ("v2", true)]);
    pair.put_manifests("definition", &[new]).await;
    pair.until("definition", "Applied", "True").await;
    pair.put_manifests("web", &[widget(&pair, &group, "v2")])
        .await;
    pair.until("web", "Available", "True").await;
    let widgets = pair.objects(&format!("{group}/v2"), "Widget", true);
    assert_eq!(
        widgets.get("a").await.unwrap().uid(),
        uid,
        "it was updated in place"
    );

    // Recorded under a version that is no longer served, it is still found when nobody asks for it any more.
    let (_, newest) = definition(&pair, &[("v1", false), ("v2", false), ("v3", true)]);
    pair.put_manifests(
        "web",
        &[widget(&pair, &group, "v2"), pair.map("beside", "1")],
    )
    .await;
    pair.until("web", "Available", "True").await;
    pair.put_manifests("definition", &[newest]).await;
    pair.until("definition", "Applied", "True").await;
    pair.put_manifests("web", &[pair.map("beside", "1")]).await;
    pair.until("web", "Applied", "True").await;
    let widgets = pair.objects(&format!("{group}/v3"), "Widget", true);
    pair.until_object("it to be pruned", &widgets, "a", Value::is_null)
        .await;
    pair.delete("web").await;
    pair.delete("definition").await;
}
