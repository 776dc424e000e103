//! The CRDs on a real API server: they are established, and a wrong object is refused naming the field.

use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use crate::{
    api_objects::{Row, table},
    harness::cases,
    servers::{Lab, install},
};

cases!(
    plain: ;
    kubernetes:
        every_crd_is_established,
        good_objects_are_accepted_and_defaulted,
        bad_objects_are_refused_naming_the_field,
        bad_status_is_refused_naming_the_field,
        kubectl_refuses_an_unknown_field,
);

async fn every_crd_is_established(lab: Arc<Lab>) {
    let client = lab.hub().await.client().await;
    install::crds(&client).await;
    let crds: Api<CustomResourceDefinition> = Api::all(client);
    for crd in gitspoke::api::crds::all() {
        let name = crd.metadata.name.unwrap();
        let found = crds.get(&name).await.unwrap();
        let problems: Vec<_> = found
            .status
            .and_then(|status| status.conditions)
            .unwrap_or_default()
            .into_iter()
            .filter(|condition| {
                condition.type_ == "NonStructuralSchema" && condition.status == "True"
            })
            .collect();
        assert!(problems.is_empty(), "{name}: {problems:?}");
        assert_eq!(
            found.metadata.labels.unwrap()["app.kubernetes.io/managed-by"],
            "gitspoke"
        );
    }
}

async fn good_objects_are_accepted_and_defaulted(lab: Arc<Lab>) {
    let client = ready(&lab).await;
    let mut complaints = Vec::new();
    for row in table("accepted.yaml") {
        let created = match create(&client, &row.object(), &dry_run()).await {
            Ok(created) => serde_json::to_value(created).unwrap(),
            Err(error) => {
                complaints.push(format!("{}: refused: {error}", row.what));
                continue;
            }
        };
        for (pointer, expected) in &row.defaults {
            let found = created.pointer(pointer);
            if found != Some(expected) {
                complaints.push(format!(
                    "{}: {pointer} is {found:?}, not {expected}",
                    row.what
                ));
            }
        }
    }
    assert_none(&complaints);
}

async fn bad_objects_are_refused_naming_the_field(lab: Arc<Lab>) {
    let client = ready(&lab).await;
    let mut complaints = Vec::new();
    for row in table("refused.yaml") {
        let answer = create(&client, &row.object(), &dry_run()).await;
        complaints.extend(complaint(&row, answer.map(drop)));
    }
    assert_none(&complaints);
}

async fn bad_status_is_refused_naming_the_field(lab: Arc<Lab>) {
    let client = ready(&lab).await;
    let mut complaints = Vec::new();
    for row in table("refused-status.yaml") {
        let mut object = row.object();
        let name = lab.unique_name("status");
        object["metadata"]["name"] = json!(name);
        create(&client, &object, &PostParams::default())
            .await
            .unwrap();
        let patch = Patch::Merge(json!({ "status": row.status }));
        let answer = api(&client, &object)
            .patch_status(&name, &PatchParams::default(), &patch)
            .await;
        complaints.extend(complaint(&row, answer.map(drop)));
    }
    assert_none(&complaints);
}

async fn kubectl_refuses_an_unknown_field(lab: Arc<Lab>) {
    ready(&lab).await;
    let object = json!({
        "apiVersion": "gitspoke.dev/v1alpha1",
        "kind": "GitSource",
        "metadata": {"name": "typo", "namespace": "default"},
        "spec": {"url": "https://git.example/fleet.git", "intervall": "1m"},
    });
    let apply = ["apply", "--dry-run=server", "-f", "-"];
    let output = lab
        .hub()
        .await
        .kubectl(&apply, object.to_string().as_bytes())
        .await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "accepted");
    assert!(said.contains(r#"unknown field "spec.intervall""#), "{said}");
}

/// What is wrong with the answer to a bad object, if anything.
fn complaint(row: &Row, answer: Result<(), kube::Error>) -> Option<String> {
    let status = match answer {
        Err(kube::Error::Api(status)) => status,
        Err(error) => return Some(format!("{}: no answer: {error}", row.what)),
        Ok(()) => return Some(format!("{}: accepted", row.what)),
    };
    if (status.code, status.reason.as_str()) != (422, "Invalid") {
        return Some(format!(
            "{}: {} {}: {}",
            row.what, status.code, status.reason, status.message
        ));
    }
    let causes = status
        .details
        .map(|details| details.causes)
        .unwrap_or_default();
    let named = causes
        .iter()
        .any(|cause| cause.field == row.field && cause.message.contains(&row.says));
    (!named).then(|| {
        format!(
            "{}: no cause at {} saying {:?} in {causes:?}",
            row.what, row.field, row.says
        )
    })
}

/// Fails with every complaint at once: a table is read as a whole.
fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

async fn ready(lab: &Lab) -> Client {
    let client = lab.hub().await.client().await;
    install::crds(&client).await;
    client
}

async fn create(
    client: &Client,
    object: &Value,
    params: &PostParams,
) -> Result<DynamicObject, kube::Error> {
    let body: DynamicObject = serde_json::from_value(object.clone()).unwrap();
    api(client, object).create(params, &body).await
}

fn dry_run() -> PostParams {
    PostParams {
        dry_run: true,
        ..PostParams::default()
    }
}

fn api(client: &Client, object: &Value) -> Api<DynamicObject> {
    let (group, version) = object["apiVersion"]
        .as_str()
        .unwrap()
        .split_once('/')
        .unwrap();
    let kind = object["kind"].as_str().unwrap();
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}
