//! What is sent to the spoke: the author's object with a closed list of rewrites.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Map, Value};

use crate::api::manifest::Manifest;

/// Why a manifest cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum Unsendable {
    /// It is not an object.
    #[error("the manifest is not a JSON object")]
    NotAnObject,
    /// A Secret says two things about one key.
    #[error("key {key:?} has different values in data and stringData: keep one of them")]
    ContradictorySecret {
        /// The key.
        key: String,
    },
}

/// What the rewrites need to know.
pub struct Circumstances<'a> {
    /// The kind's objects live in namespaces.
    pub is_namespaced: bool,
    /// Whether the manifest's own owners are kept beside ours.
    pub keeps_owners: bool,
    /// Every AppliedManifestWork that is to own the object.
    pub owners: &'a [OwnerReference],
    /// Finalizers of the live object; `None` when it is being created. A finalizer that was applied once and is gone
    /// must not come back, and one that is left out would be removed.
    pub live_finalizers: Option<&'a [String]>,
}

/// Returns the object as it is sent.
pub fn body(manifest: &Manifest, circumstances: &Circumstances<'_>) -> Result<Value, Unsendable> {
    let Ok(Value::Object(mut object)) = serde_json::from_str(manifest.as_json()) else {
        return Err(Unsendable::NotAnObject);
    };
    object.remove("status");
    drop_null_timestamps(&mut object);
    fold_string_data(&mut object)?;
    if object.get("kind") == Some(&"ClusterRole".into()) && object.contains_key("aggregationRule") {
        object.remove("rules");
    }
    let metadata = object
        .entry("metadata")
        .or_insert_with(|| Map::new().into());
    let Value::Object(metadata) = metadata else {
        return Err(Unsendable::NotAnObject);
    };
    rewrite_metadata(metadata, circumstances);
    Ok(object.into())
}

/// Whether a manifest has finalizers of its own.
pub fn has_finalizers(manifest: &Manifest) -> bool {
    #[derive(serde::Deserialize)]
    struct Object {
        metadata: Metadata,
    }
    #[derive(serde::Deserialize)]
    struct Metadata {
        #[serde(default)]
        finalizers: Vec<serde::de::IgnoredAny>,
    }
    // Most have none, and need not be parsed to know.
    manifest.as_json().contains("\"finalizers\"")
        && serde_json::from_str(manifest.as_json())
            .is_ok_and(|object: Object| !object.metadata.finalizers.is_empty())
}

fn rewrite_metadata(metadata: &mut Map<String, Value>, circumstances: &Circumstances<'_>) {
    for dropped in [
        "uid",
        "managedFields",
        "resourceVersion",
        "creationTimestamp",
    ] {
        metadata.remove(dropped);
    }
    if !circumstances.is_namespaced {
        metadata.remove("namespace");
    }
    for field in ["labels", "annotations"] {
        if let Some(Value::Object(entries)) = metadata.get_mut(field) {
            entries.retain(|key, _| !key.ends_with('-'));
        }
    }
    rewrite_owners(metadata, circumstances);
    if let (Some(live), Some(Value::Array(finalizers))) = (
        circumstances.live_finalizers,
        metadata.get_mut("finalizers"),
    ) {
        finalizers.retain(|finalizer| live.iter().any(|name| finalizer == name));
    }
}

fn rewrite_owners(metadata: &mut Map<String, Value>, circumstances: &Circumstances<'_>) {
    let mut owners: Vec<Value> = match metadata.remove("ownerReferences") {
        Some(Value::Array(owners)) if circumstances.keeps_owners => owners,
        _ => Vec::new(),
    };
    owners.retain(|owner| !owner["uid"].as_str().unwrap_or_default().ends_with('-'));
    owners.extend(circumstances.owners.iter().map(|owner| {
        serde_json::json!({
            "apiVersion": owner.api_version,
            "kind": owner.kind,
            "name": owner.name,
            "uid": owner.uid,
        })
    }));
    if !owners.is_empty() {
        metadata.insert("ownerReferences".to_owned(), owners.into());
    }
}

/// Go's encoder writes `creationTimestamp: null` into every nested metadata; applied, it is a field that we own and
/// that changes the object's generation for nothing.
fn drop_null_timestamps(object: &mut Map<String, Value>) {
    for (key, value) in object.iter_mut() {
        match value {
            Value::Object(inner) => {
                if key == "metadata" && inner.get("creationTimestamp") == Some(&Value::Null) {
                    inner.remove("creationTimestamp");
                }
                drop_null_timestamps(inner);
            }
            Value::Array(items) => {
                items
                    .iter_mut()
                    .filter_map(Value::as_object_mut)
                    .for_each(drop_null_timestamps);
            }
            _ => {}
        }
    }
}

/// Applied as it is, `stringData` would be what we own: an edit of `data` by someone else would go unnoticed, and a key
/// that is dropped would stay.
fn fold_string_data(object: &mut Map<String, Value>) -> Result<(), Unsendable> {
    let is_secret = object.get("kind") == Some(&"Secret".into())
        && object.get("apiVersion") == Some(&"v1".into());
    if !is_secret {
        return Ok(());
    }
    let Some(Value::Object(texts)) = object.remove("stringData") else {
        return Ok(());
    };
    let Value::Object(data) = object.entry("data").or_insert_with(|| Map::new().into()) else {
        return Ok(());
    };
    for (key, text) in texts {
        let encoded: Value = base64_of(text.as_str().unwrap_or_default()).into();
        match data.get(&key) {
            Some(there) if *there != encoded => {
                return Err(Unsendable::ContradictorySecret { key });
            }
            _ => data.insert(key, encoded),
        };
    }
    Ok(())
}

fn base64_of(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rewritten(manifest: &Value, live_finalizers: Option<&[String]>) -> Result<Value, String> {
        let raw = serde_json::value::RawValue::from_string(manifest.to_string()).unwrap();
        let owner = OwnerReference {
            api_version: "work.open-cluster-management.io/v1".into(),
            kind: "AppliedManifestWork".into(),
            name: "hub-web".into(),
            uid: "u1".into(),
            ..OwnerReference::default()
        };
        let circumstances = Circumstances {
            is_namespaced: true,
            keeps_owners: false,
            owners: &[owner],
            live_finalizers,
        };
        body(&raw.into(), &circumstances).map_err(|error| error.to_string())
    }

    fn ours() -> Value {
        json!([{
            "apiVersion": "work.open-cluster-management.io/v1",
            "kind": "AppliedManifestWork",
            "name": "hub-web",
            "uid": "u1",
        }])
    }

    #[test]
    fn what_the_server_owns_is_not_sent() {
        let sent = rewritten(
            &json!({
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "a", "uid": "x", "resourceVersion": "1", "managedFields": []},
                "spec": {"template": {"metadata": {"creationTimestamp": null, "labels": {"a": "b"}}}},
                "status": {"replicas": 1},
            }),
            None,
        );
        let expected = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "a", "ownerReferences": ours()},
            "spec": {"template": {"metadata": {"labels": {"a": "b"}}}},
        });
        assert_eq!(sent, Ok(expected));
    }

    #[test]
    fn nothing_else_is_touched() {
        let manifest = json!({
            "apiVersion": "example.com/v1",
            "kind": "Odd",
            "metadata": {"name": "a"},
            "spec": {"status": {"kept": true}, "creationTimestamp": null, "list": [null, {"metadata": {"a": null}}]},
        });
        let mut expected = manifest.clone();
        expected["metadata"]["ownerReferences"] = ours();
        assert_eq!(rewritten(&manifest, None), Ok(expected));
    }

    #[test]
    fn a_secret_is_sent_as_data() {
        let secret = |data: Value, text: Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": data, "stringData": text});
        let sent = rewritten(
            &secret(json!({"a": "YQ=="}), json!({"a": "a", "b": "b"})),
            None,
        )
        .unwrap();
        assert_eq!(sent["data"], json!({"a": "YQ==", "b": "Yg=="}));
        assert_eq!(sent.get("stringData"), None);
        let error =
            rewritten(&secret(json!({"a": "YQ=="}), json!({"a": "other"})), None).unwrap_err();
        assert!(error.contains("\"a\" has different values"), "{error}");
    }

    #[test]
    fn removals_and_foreign_owners_are_taken_out() {
        let sent = rewritten(
            &json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {
                    "name": "a",
                    "labels": {"kept": "1", "gone-": ""},
                    "annotations": {"gone-": ""},
                    "ownerReferences": [{"uid": "theirs"}],
                },
            }),
            None,
        )
        .unwrap();
        assert_eq!(sent["metadata"]["labels"], json!({"kept": "1"}));
        assert_eq!(sent["metadata"]["annotations"], json!({}));
        assert_eq!(sent["metadata"]["ownerReferences"], ours());
    }

    #[test]
    fn finalizers_are_sent_at_creation_and_while_they_live() {
        let manifest = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "finalizers": ["x/one", "x/two"]},
        });
        let sent = rewritten(&manifest, None).unwrap();
        assert_eq!(sent["metadata"]["finalizers"], json!(["x/one", "x/two"]));
        let sent = rewritten(&manifest, Some(&["x/two".to_owned()])).unwrap();
        assert_eq!(sent["metadata"]["finalizers"], json!(["x/two"]));
    }

    #[test]
    fn an_aggregated_role_keeps_the_rules_it_was_given() {
        let sent = rewritten(
            &json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "metadata": {"name": "a"},
                "aggregationRule": {},
                "rules": [],
            }),
            None,
        )
        .unwrap();
        assert_eq!(sent.get("rules"), None);
    }
}
