//! What a work wants to know about its objects: feedback values and conditions.

use std::sync::Arc;

use gitspoke::api::work::{spec::ManifestWork, status::ManifestCondition};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams},
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
        feedback_follows_the_live_object,
        json_values_are_reported_when_the_gate_is_open,
        conditions_follow_the_live_object,
        an_expression_that_never_ends_costs_only_its_own_rule,
        what_has_completed_is_frozen,
);

async fn feedback_follows_the_live_object(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": pair.cluster},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "example.com/web:1"}]},
            },
        },
    });
    pair.put(
        "web",
        json!({
            "workload": {"manifests": [deployment]},
            "manifestConfigs": [{
                "resourceIdentifier": {"group": "apps", "resource": "deployments", "name": "*", "namespace": "*"},
                "feedbackRules": [
                    {"type": "WellKnownStatus"},
                    {"type": "JSONPaths", "jsonPaths": [
                        {"name": "image", "path": ".spec.template.spec.containers[0].image"},
                        {"name": "missing", "path": ".status.nothing"},
                        {"name": "whole", "path": ".spec.selector"},
                    ]},
                ],
            }],
        }),
    )
    .await;
    // The deployment controller makes two Pods, which nobody ever starts.
    let found = until(&pair, "web", |manifest| {
        value(manifest, "Replicas").is_some_and(|value| value["integer"] == 2)
    })
    .await;
    assert_eq!(
        value(&found, "image").unwrap()["string"],
        "example.com/web:1"
    );
    assert_eq!(value(&found, "missing"), None);
    let synced = condition(&found, "StatusFeedbackSynced");
    assert_eq!(
        (synced["status"].as_str(), synced["reason"].as_str()),
        (Some("False"), Some("StatusFeedbackSyncFailed"))
    );

    start_pods(&pair).await;
    until(&pair, "web", |manifest| {
        value(manifest, "ReadyReplicas").is_some_and(|value| value["integer"] == 2)
    })
    .await;
}

async fn json_values_are_reported_when_the_gate_is_open(lab: Arc<Lab>) {
    let flags = [
        "--feature-gates=RawFeedbackJsonString=true",
        "--feature-gates=ExecutorValidatingCaches=true",
        "--max-json-raw-length=40",
    ];
    let pair = Pair::start_with(&lab, &flags).await;
    let mut map = pair.map("house", "1");
    map["data"] = json!({"door": "open", "roof": "tiles"});
    let mut other = pair.map("long", "1");
    other["data"] = json!({"story": "once upon a time there was a house"});
    let rule = |name: &str, paths: Value| {
        json!({
            "resourceIdentifier": {"resource": "configmaps", "name": name, "namespace": pair.cluster},
            "feedbackRules": [{"type": "JSONPaths", "jsonPaths": paths}],
        })
    };
    pair.put(
        "web",
        json!({
            "workload": {"manifests": [map, other]},
            "manifestConfigs": [
                rule("house", json!([
                    {"name": "whole", "path": ".data"},
                    {"name": "each", "path": ".data.*"},
                ])),
                rule("long", json!([
                    {"name": "whole", "path": ".data"},
                    {"name": "name", "path": ".metadata.name"},
                ])),
            ],
        }),
    )
    .await;
    let house = until(&pair, "web", |manifest| {
        value(manifest, "each").is_some_and(|value| value["type"] == "JsonRaw")
    })
    .await;
    let raw = |name| -> Value {
        let text = value(&house, name).unwrap()["jsonRaw"].clone();
        serde_json::from_str(text.as_str().unwrap()).unwrap()
    };
    assert_eq!(raw("whole"), json!({"door": "open", "roof": "tiles"}));
    assert_eq!(raw("each"), json!(["open", "tiles"]));

    // What is too long costs its own value, and not the status.
    let work = pair.until("web", "Available", "True").await;
    let status = serde_json::to_value(work.status).unwrap();
    let long = &status["resourceStatus"]["manifests"][1];
    assert_eq!(value(long, "whole"), None);
    assert_eq!(value(long, "name").unwrap()["string"], "long");
    let synced = condition(long, "StatusFeedbackSynced");
    assert_eq!(synced["status"], "False");
    let message = synced["message"].as_str().unwrap();
    assert!(
        message.contains("whole") && message.contains("40"),
        "{message}"
    );
}

async fn conditions_follow_the_live_object(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let rule = json!({
        "condition": "Open",
        "type": "CEL",
        "celExpressions": ["object.data.door == 'open'"],
        "messageExpression": "result ? 'come in' : 'the door is ' + object.data.door",
    });
    // The door is not ours: somebody else opens it.
    pair.put("web", pair.with_rules("house", &json!([rule])))
        .await;
    pair.until("web", "Applied", "True").await;
    let set = async |state: &str| {
        let patch = Patch::Merge(json!({"data": {"door": state}}));
        pair.maps()
            .patch("house", &PatchParams::default(), &patch)
            .await
            .unwrap();
    };
    set("shut").await;
    let found = until(&pair, "web", |manifest| {
        condition(manifest, "Open")["message"] == "the door is shut"
    })
    .await;
    assert_eq!(
        condition(&found, "Open")["reason"],
        "ConditionRuleEvaluated"
    );
    set("open").await;
    let work = pair.until("web", "Open", "True").await;
    let aggregated = serde_json::to_value(&work.status).unwrap();
    let open = aggregated["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|found| found["type"] == "Open")
        .unwrap();
    assert_eq!(
        (open["reason"].as_str(), open["message"].as_str()),
        (Some("ConditionRulesAggregated"), Some("come in"))
    );
}

async fn an_expression_that_never_ends_costs_only_its_own_rule(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let many = "[0,1,2,3,4,5,6,7,8,9]";
    let endless = format!(
        "{many}.all(a, {many}.all(b, {many}.all(c, {many}.all(d, {many}.all(e, {many}.all(f, {many}.all(g, {many}.all(h, a + b + c + d + e + f + g + h >= 0))))))))"
    );
    let rules = json!([
        {"condition": "Endless", "type": "CEL", "celExpressions": [endless]},
        {"condition": "Fine", "type": "CEL", "celExpressions": ["object.data.key == '1'"]},
    ]);
    pair.put("web", pair.with_rules("one", &rules)).await;
    let found = until(&pair, "web", |manifest| {
        condition(manifest, "Fine")["status"] == "True"
    })
    .await;
    let endless = condition(&found, "Endless");
    assert_eq!(
        (endless["status"].as_str(), endless["reason"].as_str()),
        (Some("False"), Some("ConditionRuleExpressionError"))
    );
    assert_eq!(endless["message"], "CEL evaluation budget exceeded");
    let timed_out = [r#"cause="time""#];
    let stopped = pair.metric("gitspoke_expressions_stopped_total", &timed_out);
    assert!(stopped.await > 0, "nobody counted it");
    // The agent goes on.
    pair.put_manifests("other", &[pair.map("other", "1")]).await;
    pair.until("other", "Available", "True").await;
}

async fn what_has_completed_is_frozen(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let complete = json!([{"condition": "Complete", "type": "CEL", "celExpressions": ["object.data.key == '1'"]}]);
    pair.put("web", pair.with_rules("job", &complete)).await;
    pair.until("web", "Complete", "True").await;

    let mut edited = pair.with_rules("job", &complete);
    edited["workload"]["manifests"][0]["data"]["more"] = json!("2");
    pair.put("web", edited.clone()).await;
    pair.until("web", "Complete", "True").await;
    let map: ConfigMap = pair.maps().get("job").await.unwrap();
    assert_eq!(
        map.data.unwrap().get("more"),
        None,
        "a completed work was applied again"
    );

    // Without the rule it is a work like any other.
    edited.as_object_mut().unwrap().remove("manifestConfigs");
    pair.put("web", edited).await;
    wait::until("the edit to be applied", PATIENCE, || async {
        let map: ConfigMap = pair.maps().get("job").await.unwrap();
        map.data
            .unwrap()
            .get("more")
            .map(drop)
            .ok_or_else(|| "not applied".to_owned())
    })
    .await;
}

/// Does what a kubelet would do.
async fn start_pods(pair: &Pair) {
    let pods: Api<Pod> = Api::namespaced(pair.spoke.clone(), &pair.cluster);
    let ready = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": "2026-11-01T08:00:00Z"});
    let status = json!({"status": {"phase": "Running", "conditions": [ready("Ready"), ready("ContainersReady")]}});
    for pod in pods
        .list(&ListParams::default().labels("app=web"))
        .await
        .unwrap()
    {
        let patch = Patch::Strategic(status.clone());
        pods.patch_status(&pod.name_any(), &PatchParams::default(), &patch)
            .await
            .unwrap();
    }
}

/// Waits until the only manifest of a work is reported like this, and returns the report.
async fn until(pair: &Pair, work: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let (works, name) = (pair.works(), pair.named(work));
    wait::until("the report", PATIENCE, || async {
        let work = works.get(&name).await.map_err(|error| error.to_string())?;
        let manifest = first(&work);
        if holds(&manifest) {
            Ok(manifest)
        } else {
            Err(manifest.to_string())
        }
    })
    .await
}

fn first(work: &ManifestWork) -> Value {
    let manifests = work
        .status
        .clone()
        .and_then(|status| status.resource_status)
        .and_then(|status| status.manifests);
    let manifest: Option<ManifestCondition> =
        manifests.and_then(|manifests| manifests.into_iter().next());
    serde_json::to_value(manifest).unwrap()
}

fn value(manifest: &Value, name: &str) -> Option<Value> {
    let values = manifest["statusFeedback"]["values"].as_array()?;
    values
        .iter()
        .find(|value| value["name"] == name)
        .map(|value| value["fieldValue"].clone())
}

fn condition(manifest: &Value, kind: &str) -> Value {
    let conditions = manifest["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    conditions
        .into_iter()
        .find(|condition| condition["type"] == kind)
        .unwrap_or_default()
}
