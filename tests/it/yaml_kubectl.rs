//! The YAML fixtures through the real kubectl: where the two of us differ, it is written down why.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use gitspoke::yaml;
use serde_json::{Value, json};

use crate::{
    harness::cases,
    servers::{Lab, control_plane::ControlPlane},
};

cases!(
    plain: ;
    kubernetes:
        every_fixture_reads_as_kubectl_reads_it,
        kubectl_reads_back_what_we_write,
);

/// What somebody makes of a file. Two refusals are equal, whatever they say.
#[derive(Debug, PartialEq)]
enum Answer {
    Documents(Vec<Value>),
    Refused,
}

async fn every_fixture_reads_as_kubectl_reads_it(lab: Arc<Lab>) {
    let hub = lab.hub().await;
    let mut differences = listed_differences();
    let mut complaints = Vec::new();
    for path in fixtures() {
        let name = path
            .file_name()
            .expect("a fixture is a file")
            .to_str()
            .expect("its name is ASCII");
        let bytes = std::fs::read(&path).expect("the fixture can be read");
        let (ours, theirs) = (our_answer(name, &bytes), kubectl_answer(hub, &bytes).await);
        match (ours == theirs, differences.remove(name)) {
            (true, None) | (false, Some(_)) => {}
            (true, Some(reason)) => {
                complaints.push(format!(
                    "{name} is listed as different ({reason}), but is not"
                ));
            }
            (false, None) => {
                complaints.push(format!("{name}: we say {ours:?}, kubectl says {theirs:?}"));
            }
        }
    }
    complaints.extend(
        differences
            .keys()
            .map(|name| format!("{name} is listed, but there is no such file")),
    );
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

async fn kubectl_reads_back_what_we_write(lab: Arc<Lab>) {
    let hub = lab.hub().await;
    let hostile = std::fs::read(folder().join("write/hostile.json")).expect("the list can be read");
    let hostile: Vec<String> = serde_json::from_slice(&hostile).expect("the list is JSON");
    let object = |name: &str| {
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name},
            "data": hostile.iter().map(|text| (text.clone(), json!(text))).collect::<serde_json::Map<_, _>>(),
            "list": hostile,
            "numbers": [0, -1, i64::MAX, i64::MIN, 0.1, 1.5e300, 1e-7],
            "empty": [{}, [], null],
        })
    };
    let objects = vec![object("first"), object("second")];
    let stream = yaml::write_all(&objects).expect("JSON can be written as YAML");
    assert_eq!(
        kubectl_answer(hub, stream.as_bytes()).await,
        Answer::Documents(objects)
    );
}

fn fixtures() -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder())
        .expect("fixtures/yaml exists")
        .map(|entry| entry.expect("fixtures/yaml can be listed").path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            path.is_file()
                && !name.ends_with(".want.json")
                && !name.ends_with(".refused.txt")
                && name != "differences.yaml"
        })
        .collect();
    paths.sort();
    paths
}

fn listed_differences() -> BTreeMap<String, String> {
    let bytes = std::fs::read(folder().join("differences.yaml")).expect("the list can be read");
    let documents = yaml::read("differences.yaml", &bytes).expect("the list is YAML");
    documents[0]
        .entries()
        .iter()
        .map(|entry| {
            let reason = entry.value.as_str().expect("a reason is a text");
            (entry.key.clone(), reason.to_owned())
        })
        .collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/yaml")
}

fn our_answer(name: &str, bytes: &[u8]) -> Answer {
    match yaml::read(name, bytes) {
        Ok(documents) => Answer::Documents(
            documents
                .iter()
                .map(yaml::Node::to_json)
                .map(normal)
                .collect(),
        ),
        Err(_) => Answer::Refused,
    }
}

async fn kubectl_answer(hub: &ControlPlane, bytes: &[u8]) -> Answer {
    let args = [
        "create",
        "--dry-run=client",
        "--validate=false",
        "-o",
        "json",
        "-f",
        "-",
    ];
    let output = hub.kubectl(&args, bytes).await;
    if output.status.success() {
        let documents = serde_json::Deserializer::from_slice(&output.stdout)
            .into_iter::<Value>()
            .map(|document| normal(document.expect("kubectl prints JSON")))
            .collect();
        return Answer::Documents(documents);
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    if complaint.contains("no objects passed to create") {
        return Answer::Documents(vec![]);
    }
    // Anything else, as a server that does not answer, is no verdict on the file.
    assert!(
        complaint.contains("error parsing") || complaint.contains("unable to decode"),
        "kubectl failed: {complaint}"
    );
    Answer::Refused
}

/// Takes away what is not a matter of reading: the namespace that kubectl fills in, and how a large float is spelled.
fn normal(mut value: Value) -> Value {
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut)
        && metadata.get("namespace") == Some(&json!("default"))
    {
        metadata.remove("namespace");
    }
    floats(&mut value);
    value
}

fn floats(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(floats),
        Value::Object(members) => members.values_mut().for_each(floats),
        Value::Number(number) if number.as_i64().is_none() => *value = json!(number.as_f64()),
        _ => {}
    }
}
