//! Reads the tables in `fixtures/objects/`: good and bad objects, and what a real API server must answer to each.

use std::{collections::BTreeMap, path::Path};

use gitspoke::yaml;
use serde::Deserialize;
use serde_json::{Value, json};

/// One object and the answer to it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    pub(crate) what: String,
    kind: Option<String>,
    spec: Option<Value>,
    object: Option<Value>,
    /// The status to write, for a row about status.
    pub(crate) status: Option<Value>,
    /// What an accepted object must have been given.
    #[serde(default)]
    pub(crate) defaults: BTreeMap<String, Value>,
    /// Where a refused object is wrong.
    #[serde(default)]
    pub(crate) field: String,
    /// A part of what must be said there.
    #[serde(default)]
    pub(crate) says: String,
}

impl Row {
    /// The object to send: the row's own, or a minimal one of its kind with the row's spec put in.
    pub(crate) fn object(&self) -> Value {
        if let Some(object) = &self.object {
            return object.clone();
        }
        let kind = self
            .kind
            .as_deref()
            .unwrap_or_else(|| panic!("{}: neither object nor kind", self.what));
        let mut object = minimal(kind);
        if let (Some(Value::Object(fields)), Value::Object(spec)) =
            (self.spec.clone(), &mut object["spec"])
        {
            spec.extend(fields);
        }
        object
    }
}

/// The rows of one table.
pub(crate) fn table(name: &str) -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/objects")
        .join(name);
    let bytes = std::fs::read(path).unwrap();
    let documents =
        yaml::read(name, &bytes).unwrap_or_else(|error| panic!("{}", error.render(false)));
    let row = |document: &yaml::Node| {
        serde_json::from_value(document.to_json())
            .unwrap_or_else(|error| panic!("{name}:{}: {error}", document.position.line))
    };
    documents.iter().map(row).collect()
}

fn minimal(kind: &str) -> Value {
    let (api_version, namespace, spec) = match kind {
        "ManifestWork" => {
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}});
            (
                "work.open-cluster-management.io/v1",
                Some("default"),
                json!({"workload": {"manifests": [map]}}),
            )
        }
        "AppliedManifestWork" => ("work.open-cluster-management.io/v1", None, json!({})),
        "GitSource" => {
            let url = "https://git.example/acme/fleet.git";
            (
                "gitspoke.dev/v1alpha1",
                Some("default"),
                json!({ "url": url }),
            )
        }
        other => panic!("no minimal {other}"),
    };
    let mut object =
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "row"}, "spec": spec});
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}
