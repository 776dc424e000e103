//! Field ownership from before our first apply.
//!
//! An object that was made by another agent or by kubectl has entries in `managedFields` that go on owning what they
//! wrote, so a field or a reference that we later drop would stay. Entries that stand for the same author as ours are
//! folded into ours; an entry of unknown origin only gives up what is ours by now. Entries of other controllers are
//! never touched.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use serde_json::Value;

/// Writers that stand for the author of the manifest: a predecessor of ours, and the hand that made the object.
const SAME_AUTHOR: [&str; 4] = [
    "work-agent",
    "kubectl-create",
    "kubectl-client-side-apply",
    "kubectl-edit",
];

/// What the API server calls the unknown owner of everything that was there before the first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Returns the entries as they should be, or `None` when they are fine or we have none. `former` is the field manager
/// that the same work has applied the object with before, if it was another.
pub fn fold(
    entries: &[ManagedFieldsEntry],
    field_manager: &str,
    former: Option<&str>,
) -> Option<Vec<ManagedFieldsEntry>> {
    let ours = entries
        .iter()
        .position(|entry| is_ours(entry, field_manager))?;
    let mut owned = fields(&entries[ours]).clone();
    let is_folded = |entry: &ManagedFieldsEntry| {
        is_by_the_author(entry, field_manager)
            || former.is_some_and(|former| former != field_manager && is_ours(entry, former))
    };
    let is_trimmed = |entry: &ManagedFieldsEntry| {
        is_written(entry)
            && entry.manager.as_deref() == Some(BEFORE_FIRST_APPLY)
            && overlaps(fields(entry), &owned)
    };
    if !entries
        .iter()
        .any(|entry| is_folded(entry) || is_trimmed(entry))
    {
        return None;
    }
    for entry in entries.iter().filter(|entry| is_folded(entry)) {
        unite(&mut owned, fields(entry));
    }
    let mut folded = Vec::new();
    for (position, entry) in entries.iter().enumerate() {
        let mut entry = entry.clone();
        if position == ours {
            entry.fields_v1 = Some(FieldsV1(owned.clone()));
        } else if is_folded(&entry) {
            continue;
        } else if entry.manager.as_deref() == Some(BEFORE_FIRST_APPLY) && is_written(&entry) {
            let mut rest = fields(&entry).clone();
            subtract(&mut rest, &owned);
            if rest.as_object().is_none_or(serde_json::Map::is_empty) {
                continue;
            }
            entry.fields_v1 = Some(FieldsV1(rest));
        }
        folded.push(entry);
    }
    Some(folded)
}

/// Whether an entry is our own apply.
fn is_ours(entry: &ManagedFieldsEntry, field_manager: &str) -> bool {
    entry.manager.as_deref() == Some(field_manager) && is_apply(entry) && has_no_subresource(entry)
}

pub(super) fn is_apply(entry: &ManagedFieldsEntry) -> bool {
    entry.operation.as_deref() == Some("Apply")
}

fn is_by_the_author(entry: &ManagedFieldsEntry, field_manager: &str) -> bool {
    is_written(entry)
        && entry
            .manager
            .as_deref()
            .is_some_and(|manager| manager == field_manager || SAME_AUTHOR.contains(&manager))
}

fn is_written(entry: &ManagedFieldsEntry) -> bool {
    entry.operation.as_deref() == Some("Update") && has_no_subresource(entry)
}

pub(super) fn has_no_subresource(entry: &ManagedFieldsEntry) -> bool {
    entry.subresource.as_deref().unwrap_or_default().is_empty()
}

fn fields(entry: &ManagedFieldsEntry) -> &Value {
    entry
        .fields_v1
        .as_ref()
        .map_or(&Value::Null, |fields| &fields.0)
}

fn unite(into: &mut Value, other: &Value) {
    match (into, other) {
        (Value::Object(into), Value::Object(other)) => {
            for (key, value) in other {
                unite(
                    into.entry(key.clone())
                        .or_insert_with(|| Value::Object(serde_json::Map::new())),
                    value,
                );
            }
        }
        (into @ Value::Null, other) => *into = other.clone(),
        _ => {}
    }
}

/// Takes the leaves of `other` out. A node that owns itself (`.`) and has nothing else left goes with its leaves.
fn subtract(from: &mut Value, other: &Value) {
    let (Value::Object(from), Value::Object(other)) = (from, other) else {
        return;
    };
    for (key, theirs) in other {
        let Some(ours) = from.get_mut(key) else {
            continue;
        };
        subtract(ours, theirs);
        if ours
            .as_object()
            .is_none_or(|left| left.keys().all(|key| key == "."))
        {
            from.remove(key);
        }
    }
}

fn overlaps(left: &Value, right: &Value) -> bool {
    let (Value::Object(left), Value::Object(right)) = (left, right) else {
        return false;
    };
    left.iter().any(|(key, value)| match right.get(key) {
        None => false,
        Some(_) if value.as_object().is_none_or(serde_json::Map::is_empty) => key != ".",
        Some(other) => overlaps(value, other),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(
        manager: &str,
        operation: &str,
        subresource: Option<&str>,
        fields: Value,
    ) -> ManagedFieldsEntry {
        ManagedFieldsEntry {
            manager: Some(manager.into()),
            operation: Some(operation.into()),
            subresource: subresource.map(str::to_owned),
            fields_v1: Some(FieldsV1(fields)),
            ..ManagedFieldsEntry::default()
        }
    }

    fn summary(entries: &[ManagedFieldsEntry]) -> Vec<(String, Value)> {
        entries
            .iter()
            .map(|entry| (entry.manager.clone().unwrap(), fields(entry).clone()))
            .collect()
    }

    #[test]
    fn an_author_s_earlier_writes_become_ours() {
        let ours = json!({"f:data": {"f:a": {}}});
        let entries = [
            entry("work-agent", "Apply", None, ours),
            entry(
                "work-agent",
                "Update",
                None,
                json!({"f:metadata": {"f:ownerReferences": {".": {}}}}),
            ),
            entry(
                "kubectl-create",
                "Update",
                None,
                json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}}),
            ),
            entry(
                "kubectl-edit",
                "Update",
                Some("status"),
                json!({"f:status": {}}),
            ),
            entry("hpa", "Update", None, json!({"f:spec": {"f:replicas": {}}})),
        ];
        let folded = fold(&entries, "work-agent", None).unwrap();
        assert_eq!(
            summary(&folded),
            [
                (
                    "work-agent".into(),
                    json!({
                        "f:data": {"f:a": {}, ".": {}, "f:b": {}},
                        "f:metadata": {"f:ownerReferences": {".": {}}},
                    })
                ),
                ("kubectl-edit".into(), json!({"f:status": {}})),
                ("hpa".into(), json!({"f:spec": {"f:replicas": {}}})),
            ]
        );
        assert_eq!(fold(&folded, "work-agent", None), None, "once is enough");
    }

    #[test]
    fn an_unknown_owner_gives_up_only_what_is_ours() {
        let entries = [
            entry("work-agent", "Apply", None, json!({"f:data": {"f:a": {}}})),
            entry(
                "before-first-apply",
                "Update",
                None,
                json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}}),
            ),
        ];
        let folded = fold(&entries, "work-agent", None).unwrap();
        assert_eq!(
            summary(&folded),
            [
                ("work-agent".into(), json!({"f:data": {"f:a": {}}})),
                (
                    "before-first-apply".into(),
                    json!({"f:data": {".": {}, "f:b": {}}})
                ),
            ]
        );
        assert_eq!(fold(&folded, "work-agent", None), None, "once is enough");
    }

    #[test]
    fn a_former_field_manager_of_the_same_work_is_folded() {
        let entries = [
            entry("work-agent-b", "Apply", None, json!({"f:a": {}})),
            entry("work-agent-a", "Apply", None, json!({"f:b": {}})),
            entry("work-agent-c", "Apply", None, json!({"f:c": {}})),
        ];
        let folded = fold(&entries, "work-agent-b", Some("work-agent-a")).unwrap();
        assert_eq!(
            summary(&folded),
            [
                ("work-agent-b".into(), json!({"f:a": {}, "f:b": {}})),
                ("work-agent-c".into(), json!({"f:c": {}})),
            ]
        );
        assert_eq!(fold(&folded, "work-agent-b", Some("work-agent-b")), None);
    }

    #[test]
    fn nothing_is_folded_without_an_entry_of_ours() {
        let entries = [entry(
            "kubectl-create",
            "Update",
            None,
            json!({"f:data": {}}),
        )];
        assert_eq!(fold(&entries, "work-agent", None), None);
        let entries = [
            entry("work-agent", "Apply", None, json!({})),
            entry("hpa", "Update", None, json!({"f:a": {}})),
        ];
        assert_eq!(fold(&entries, "work-agent", None), None);
    }
}
