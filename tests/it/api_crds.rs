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
    api_objects::{Answer, Row, bad_status, good, refused},
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
    for row in good() {
        let created = match create(
            &client,
            &row.object,
            PostParams {
                dry_run: true,
                ..PostParams::default()
            },
        )
        .await
        {
            Ok(created) => serde_json::to_value(created).unwrap(),
            Err(error) => panic!("{}: refused: {error}", row.what),
        };
        let Answer::Accepted { defaults } = &row.answer else {
            panic!("{}: not a good object", row.what)
        };
        for (pointer, expected) in defaults {
            assert_eq!(
                created.pointer(pointer),
                Some(expected),
                "{}: {pointer}",
                row.what
            );
        }
    }
}

async fn bad_objects_are_refused_naming_the_field(lab: Arc<Lab>) {
    let client = ready(&lab).await;
    let mut complaints = Vec::new();
    for row in refused() {
        let answer = create(
            &client,
            &row.object,
            PostParams {
                dry_run: true,
                ..PostParams::default()
            },
        )
        .await;
        complaints.extend(complaint(&row, answer.map(drop)));
    }
    assert_none(&complaints);
}

async fn bad_status_is_refused_naming_the_field(lab: Arc<Lab>) {
    let client = ready(&lab).await;
    let mut complaints = Vec::new();
    for row in bad_status() {
        let mut object = row.object.clone();
        let name = lab.unique_name("status");
        object["metadata"]["name"] = json!(name);
        let status = object.as_object_mut().unwrap().remove("status").unwrap();
        create(&client, &object, PostParams::default())
            .await
            .unwrap();
        let patch = Patch::Merge(json!({ "status": status }));
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
    let Answer::Refused {
        code,
        reason,
        field,
        says,
    } = &row.answer
    else {
        return Some(format!("{}: not a bad object", row.what));
    };
    let status = match answer {
        Err(kube::Error::Api(status)) => status,
        Err(error) => return Some(format!("{}: no answer: {error}", row.what)),
        Ok(()) => return Some(format!("{}: accepted", row.what)),
    };
    if (status.code, status.reason.as_str()) != (*code, *reason) {
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
        .any(|cause| cause.field == *field && cause.message.contains(says));
    (!named).then(|| {
        format!(
            "{}: no cause at {field} saying {says:?} in {causes:?}",
            row.what
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
    params: PostParams,
) -> Result<DynamicObject, kube::Error> {
    let body: DynamicObject = serde_json::from_value(object.clone()).unwrap();
    api(client, object).create(&params, &body).await
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
