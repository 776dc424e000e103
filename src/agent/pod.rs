//! Pods: once created, only their metadata is ours to change.
//!
//! Most of a Pod's spec cannot be changed, and an apply that leaves the spec out is refused. So labels, annotations and
//! owners go by patch, and a spec that has come to differ is reported.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::{Map, Value, json};

use crate::api::wellknown::AGENT_FIELD_MANAGER;

/// What is reported of a Pod whose spec is not the manifest's.
pub const SPEC_DIFFERS: &str = "the spec of the Pod differs from the manifest and cannot be changed: delete the Pod to have it created anew";

/// The patch that brings a live Pod's metadata to what is sent, if anything is to be changed. `owners` are all
/// AppliedManifestWorks that are to own it.
pub fn patch(sent: &Value, live: &ObjectMeta, owners: &[OwnerReference]) -> Option<Value> {
    let mut metadata = Map::new();
    let entries = [
        ("labels", live.labels.as_ref()),
        ("annotations", live.annotations.as_ref()),
    ];
    for (field, there) in entries {
        let changes = changes(&sent["metadata"][field], there, &owned(live, field));
        if !changes.is_empty() {
            metadata.insert(field.to_owned(), changes.into());
        }
    }
    let there = live.owner_references.as_deref().unwrap_or_default();
    let mut wanted: Vec<OwnerReference> = there
        .iter()
        .filter(|owner| !super::removal::is_applied_work(owner))
        .cloned()
        .collect();
    wanted.extend(owners.iter().cloned());
    if wanted != there {
        metadata.insert("ownerReferences".to_owned(), json!(wanted));
    }
    if metadata.is_empty() {
        return None;
    }
    metadata.insert("uid".to_owned(), json!(live.uid));
    metadata.insert("resourceVersion".to_owned(), json!(live.resource_version));
    Some(json!({ "metadata": metadata }))
}

/// What is to be set, and with `null` what we have set before and is no longer asked for.
fn changes(
    sent: &Value,
    there: Option<&BTreeMap<String, String>>,
    owned: &BTreeSet<String>,
) -> Map<String, Value> {
    let there = |key: &str| there.and_then(|entries| entries.get(key));
    let none = Map::new();
    let sent = sent.as_object().unwrap_or(&none);
    let set = sent
        .iter()
        .filter(|(key, value)| there(key).map(String::as_str) != value.as_str())
        .map(|(key, value)| (key.clone(), value.clone()));
    let unset = owned
        .iter()
        .filter(|key| !sent.contains_key(*key) && there(key).is_some())
        .map(|key| (key.clone(), Value::Null));
    set.chain(unset).collect()
}

/// The keys of a map in the metadata that we have written.
fn owned(live: &ObjectMeta, field: &str) -> BTreeSet<String> {
    let entries = live.managed_fields.iter().flatten();
    let ours = entries.filter(|entry| entry.manager.as_deref() == Some(AGENT_FIELD_MANAGER));
    ours.filter_map(|entry| {
        entry.fields_v1.as_ref()?.0["f:metadata"][format!("f:{field}")].as_object()
    })
    .flat_map(|keys| {
        keys.keys()
            .filter_map(|key| key.strip_prefix("f:").map(str::to_owned))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(labels: &Value, owned: &Value) -> ObjectMeta {
        serde_json::from_value(json!({
            "uid": "u", "resourceVersion": "7", "labels": labels,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "o"}],
            "managedFields": [
                {"manager": "work-agent", "operation": "Update", "fieldsV1": {"f:metadata": {"f:labels": owned}}},
                {"manager": "theirs", "operation": "Update", "fieldsV1": {"f:metadata": {"f:labels": {"f:theirs": {}}}}},
            ],
        }))
        .unwrap()
    }

    #[test]
    fn only_what_differs_is_patched() {
        let sent = json!({"metadata": {"labels": {"kept": "1", "changed": "2"}}});
        let pod = live(
            &json!({"kept": "1", "changed": "1", "dropped": "1", "theirs": "1"}),
            &json!({".": {}, "f:kept": {}, "f:changed": {}, "f:dropped": {}}),
        );
        let expected = json!({"metadata": {
            "labels": {"changed": "2", "dropped": null}, "uid": "u", "resourceVersion": "7",
        }});
        assert_eq!(patch(&sent, &pod, &[]), Some(expected));
        let pod = live(
            &json!({"kept": "1", "changed": "2", "theirs": "1"}),
            &json!({"f:kept": {}}),
        );
        assert_eq!(patch(&sent, &pod, &[]), None);
    }

    #[test]
    fn others_who_own_it_stay_beside_us() {
        let ours: OwnerReference = serde_json::from_value(json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork", "name": "a", "uid": "a",
        }))
        .unwrap();
        let patch = patch(&json!({}), &live(&json!({}), &json!({})), &[ours]).unwrap();
        let owners = patch["metadata"]["ownerReferences"].as_array().unwrap();
        let names: Vec<_> = owners
            .iter()
            .map(|owner| owner["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["o", "a"]);
    }
}
