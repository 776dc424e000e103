//! Fields that a work asks to be left alone on the spoke.

use std::sync::Arc;

use kube::{Api, api::DynamicObject};
use serde_json::{Value, json};

use crate::{
    agent_pair::{Pair, condition},
    harness::cases,
    servers::Lab,
};

cases!(
    plain: ;
    kubernetes:
        what_is_there_is_left_alone,
        what_the_hub_changes_is_sent_and_what_the_spoke_changes_is_kept,
        fields_are_named_in_three_ways,
        what_cannot_be_worked_out_is_reported_and_nothing_is_written,
);

const DEPLOYMENT: (&str, &str) = ("apps/v1", "Deployment");

async fn what_is_there_is_left_alone(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let ignore = json!([{"condition": "OnSpokePresent", "jsonPaths": [".spec.replicas"]}]);
    let deployments = pair.objects(DEPLOYMENT.0, DEPLOYMENT.1, true);
    pair.put("web", spec(&pair, 2, "web:1", &ignore)).await;
    pair.until("web", "Applied", "True").await;
    until(&pair, &deployments, "it to be created whole", 2, "web:1").await;

    // The first apply after creation leaves out what creation made ours: it must not go away with that.
    pair.put("web", spec(&pair, 2, "web:2", &ignore)).await;
    pair.until("web", "Applied", "True").await;
    until(
        &pair,
        &deployments,
        "the other field to be sent",
        2,
        "web:2",
    )
    .await;

    pair.edit(&deployments, "web", &json!({"spec": {"replicas": 5}}))
        .await;
    pair.put("web", spec(&pair, 3, "web:3", &ignore)).await;
    pair.until("web", "Applied", "True").await;
    until(
        &pair,
        &deployments,
        "the spoke's value to be kept",
        5,
        "web:3",
    )
    .await;

    pair.edit(&deployments, "web", &image("wrong")).await;
    until(
        &pair,
        &deployments,
        "everything else to be repaired",
        5,
        "web:3",
    )
    .await;
}

async fn what_the_hub_changes_is_sent_and_what_the_spoke_changes_is_kept(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let ignore = json!([{"condition": "OnSpokeChange", "jsonPaths": [".spec.replicas"]}]);
    let deployments = pair.objects(DEPLOYMENT.0, DEPLOYMENT.1, true);
    pair.put("web", spec(&pair, 2, "web:1", &ignore)).await;
    pair.until("web", "Applied", "True").await;

    pair.edit(&deployments, "web", &json!({"spec": {"replicas": 5}}))
        .await;
    pair.edit(&deployments, "web", &image("wrong")).await;
    until(
        &pair,
        &deployments,
        "a repair to keep the spoke's value",
        5,
        "web:1",
    )
    .await;

    pair.put("web", spec(&pair, 3, "web:1", &ignore)).await;
    pair.until("web", "Applied", "True").await;
    until(
        &pair,
        &deployments,
        "the hub's new value to be sent",
        3,
        "web:1",
    )
    .await;
}

async fn fields_are_named_in_three_ways(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let ways = [
        ("path", json!({"jsonPaths": [".data.ours"]})),
        ("pointer", json!({"jsonPointers": ["/data/ours"]})),
        (
            "jq",
            json!({"jqPathExpressions": [".data | select(.ours != null) | .ours"]}),
        ),
    ];
    let maps = pair.objects("v1", "ConfigMap", true);
    let spec = |name: &str, way: &Value, ours: &str, other: &str| {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": pair.cluster},
            "data": {"ours": ours, "other": other},
        });
        with_ignored(&pair, &map, "configmaps", "", &json!([way]))
    };
    for (name, way) in &ways {
        pair.put(name, spec(name, way, "1", "1")).await;
        pair.until(name, "Applied", "True").await;
        pair.put(name, spec(name, way, "2", "2")).await;
        pair.until(name, "Applied", "True").await;
        let is_kept = |map: &Value| map["data"] == json!({"ours": "1", "other": "2"});
        pair.until_object(
            &format!("the field named by {name} to be kept"),
            &maps,
            name,
            is_kept,
        )
        .await;
    }
}

async fn what_cannot_be_worked_out_is_reported_and_nothing_is_written(lab: Arc<Lab>) {
    let pair = Pair::start(&lab).await;
    let ways = [
        (
            "syntax",
            json!({"jqPathExpressions": [".data | ("]}),
            "JQ expression error in '.data | ('",
        ),
        (
            "endless",
            json!({"jqPathExpressions": ["last(range(infinite))"]}),
            "JQ expression error in ",
        ),
    ];
    for (name, way, text) in &ways {
        let spec = with_ignored(&pair, &pair.map(name, "1"), "configmaps", "", &json!([way]));
        pair.put(name, spec).await;
        let work = pair.until(name, "Applied", "False").await;
        let (_, reason, message) = condition(&work, 0, "Applied");
        assert_eq!(reason, "AppliedManifestSSAIgnoreFieldError");
        assert!(
            message.starts_with(&format!("Failed to process ignoreFields: {text}")),
            "{message}"
        );
        assert_eq!(pair.value_of(name).await, None);
    }
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": image}]}}}})
}

fn spec(pair: &Pair, replicas: u32, image: &str, ignored: &Value) -> Value {
    let deployment = json!({
        "apiVersion": DEPLOYMENT.0, "kind": DEPLOYMENT.1,
        "metadata": {"name": "web", "namespace": pair.cluster},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": image}]},
            },
        },
    });
    with_ignored(pair, &deployment, "deployments", "apps", ignored)
}

fn with_ignored(
    pair: &Pair,
    manifest: &Value,
    resource: &str,
    group: &str,
    ignored: &Value,
) -> Value {
    json!({
        "workload": {"manifests": [manifest]},
        "manifestConfigs": [{
            "resourceIdentifier": {
                "group": group, "resource": resource, "name": "*", "namespace": pair.cluster,
            },
            "updateStrategy": {"type": "ServerSideApply", "serverSideApply": {"force": true, "ignoreFields": ignored}},
        }],
    })
}

async fn until(
    pair: &Pair,
    deployments: &Api<DynamicObject>,
    what: &str,
    replicas: u32,
    image: &str,
) {
    pair.until_object(what, deployments, "web", |found| {
        found["spec"]["replicas"] == replicas
            && found["spec"]["template"]["spec"]["containers"][0]["image"] == image
    })
    .await;
}
