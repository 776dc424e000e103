//! Fields that a work asks to be left alone on the spoke.
//!
//! They are taken out of what is sent. What is left out of an apply, however, goes away when nobody else owns it, and
//! creating the object has made it ours. So what is ours among the ignored fields is sent as it is on the spoke.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value};

use crate::api::work::config::{IgnoreField, IgnoreFieldsCondition};

/// Annotation with the digest of what was sent, as Open Cluster Management's agent writes it.
pub const CONFIG_HASH: &str = "open-cluster-management.io/config-spec-hash";

/// Whether fields are left alone even when the hub's value changes.
pub fn is_always(field: &IgnoreField) -> bool {
    !matches!(field.condition, Some(IgnoreFieldsCondition::OnSpokeChange))
}

/// What a field manager owns of an object by its applies.
pub fn applied_fields(live: &ObjectMeta, field_manager: &str) -> Value {
    let entries = live.managed_fields.iter().flatten();
    let mut ours = entries.filter(|entry| {
        entry.manager.as_deref() == Some(field_manager)
            && entry.operation.as_deref() == Some("Apply")
            && entry.subresource.as_deref().unwrap_or_default().is_empty()
    });
    let fields = ours.next().and_then(|entry| entry.fields_v1.as_ref());
    fields.map_or(Value::Null, |fields| fields.0.clone())
}

/// Returns what is sent: the stripped object, and of the fields that were stripped from the whole one those that are
/// `owned`, with their live values.
pub fn restore(whole: &Value, stripped: Value, live: &Value, owned: &Value) -> Value {
    if *whole == stripped {
        return stripped;
    }
    match (whole, stripped, live) {
        (Value::Object(whole), Value::Object(stripped), Value::Object(live)) => {
            restore_fields(whole, stripped, live, owned).into()
        }
        // A list that is owned as one thing is sent as one thing.
        (Value::Array(_), Value::Array(_), Value::Array(_)) if is_leaf(owned) => live.clone(),
        (Value::Array(whole), Value::Array(stripped), Value::Array(live)) => {
            restore_items(whole, stripped, live, owned).into()
        }
        (_, stripped, _) => stripped,
    }
}

fn restore_fields(
    whole: &Map<String, Value>,
    mut stripped: Map<String, Value>,
    live: &Map<String, Value>,
    owned: &Value,
) -> Map<String, Value> {
    for (name, value) in whole {
        let Some(live) = live.get(name) else { continue };
        let owned = &owned[format!("f:{name}")];
        let restored = match stripped.remove(name) {
            Some(left) => Some(restore(value, left, live, owned)),
            None => part(live, owned),
        };
        if let Some(restored) = restored {
            stripped.insert(name.clone(), restored);
        }
    }
    stripped
}

fn restore_items(
    whole: &[Value],
    stripped: Vec<Value>,
    live: &[Value],
    owned: &Value,
) -> Vec<Value> {
    let mut stripped: Vec<Option<Value>> = stripped.into_iter().map(Some).collect();
    let mut restored = Vec::with_capacity(whole.len());
    for item in whole {
        let key = owned
            .as_object()
            .into_iter()
            .flatten()
            .find_map(|(key, fields)| {
                let key = item_key(key)?;
                has(item, &key).then_some((key, fields))
            });
        let Some((key, fields)) = key else { continue };
        let live = live.iter().find(|live| has(live, &key));
        let left = stripped
            .iter_mut()
            .find(|left| left.as_ref().is_some_and(|left| has(left, &key)))
            .and_then(Option::take);
        restored.extend(match (left, live) {
            (Some(left), Some(live)) => Some(restore(item, left, live, fields)),
            (Some(left), None) => Some(left),
            (None, Some(live)) => part(live, fields),
            (None, None) => None,
        });
    }
    restored.extend(stripped.into_iter().flatten());
    restored
}

/// The part of a live value that is owned, if anything is.
fn part(live: &Value, owned: &Value) -> Option<Value> {
    let fields = owned.as_object()?;
    if is_leaf(owned) {
        return Some(live.clone());
    }
    match live {
        Value::Object(live) => {
            let parts = fields.iter().filter_map(|(name, owned)| {
                let name = name.strip_prefix("f:")?;
                Some((name.to_owned(), part(live.get(name)?, owned)?))
            });
            Some(parts.collect::<Map<_, _>>().into())
        }
        Value::Array(live) => {
            let items = live.iter().filter_map(|item| {
                let is_member = fields.contains_key(&format!("v:{item}"));
                if is_member {
                    return Some(item.clone());
                }
                let fields = fields
                    .iter()
                    .find_map(|(key, fields)| has(item, &item_key(key)?).then_some(fields))?;
                part(item, fields)
            });
            Some(items.collect::<Vec<_>>().into())
        }
        other => Some(other.clone()),
    }
}

fn is_leaf(owned: &Value) -> bool {
    owned.as_object().is_some_and(Map::is_empty)
}

/// Reads `k:{"name":"web"}`.
fn item_key(name: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(name.strip_prefix("k:")?).ok()
}

fn has(item: &Value, key: &Map<String, Value>) -> bool {
    // What an item leaves out is a default that only the schema knows, so it decides nothing.
    let is_equal = |(name, value): (&String, &Value)| item.get(name).is_none_or(|at| at == value);
    item.is_object() && key.iter().all(is_equal)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_ours_keeps_its_live_value_and_what_is_not_is_not_sent() {
        let whole =
            json!({"spec": {"replicas": 2, "paused": true, "list": ["a", "b"], "set": ["x"]}});
        let stripped = json!({"spec": {"paused": true, "set": ["x"]}});
        let live = json!({"spec": {"replicas": 5, "paused": false, "list": ["c"], "set": ["x"]}});
        let both = json!({"f:spec": {"f:replicas": {}, "f:paused": {}, "f:list": {}}});
        let restored = restore(&whole, stripped.clone(), &live, &both);
        let expected =
            json!({"spec": {"replicas": 5, "paused": true, "list": ["c"], "set": ["x"]}});
        assert_eq!(restored, expected);
        let neither = json!({"f:spec": {"f:paused": {}}});
        assert_eq!(restore(&whole, stripped.clone(), &live, &neither), stripped);
        assert_eq!(
            restore(&whole, stripped.clone(), &live, &Value::Null),
            stripped
        );
        let gone = json!({"spec": {}});
        assert_eq!(restore(&whole, stripped.clone(), &gone, &both), stripped);
    }

    #[test]
    fn items_of_a_list_are_known_by_their_key() {
        let whole = json!({"c": [
            {"name": "web", "image": "web:1", "env": [{"name": "A", "value": "1"}]},
            {"name": "side", "image": "side:1"},
        ]});
        let stripped = json!({"c": [{"name": "web", "env": [{"name": "A"}]}]});
        let live = json!({"c": [
            {"name": "injected", "image": "x"},
            {"name": "side", "image": "side:2", "extra": "theirs"},
            {"name": "web", "image": "web:2", "env": [{"name": "B", "value": "b"}, {"name": "A", "value": "2"}]},
        ]});
        let owned = json!({"f:c": {
            "k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:image": {}, "f:env": {
                "k:{\"name\":\"A\"}": {".": {}, "f:name": {}, "f:value": {}},
            }},
            "k:{\"name\":\"side\"}": {".": {}, "f:name": {}, "f:image": {}},
        }});
        let expected = json!({"c": [
            {"name": "web", "image": "web:2", "env": [{"name": "A", "value": "2"}]},
            {"name": "side", "image": "side:2"},
        ]});
        assert_eq!(restore(&whole, stripped, &live, &owned), expected);
    }

    #[test]
    fn a_list_that_is_owned_as_one_is_sent_as_one() {
        let whole = json!({"args": ["a", "b"]});
        let live = json!({"args": ["c", "d"]});
        let owned = json!({"f:args": {}});
        assert_eq!(restore(&whole, json!({"args": ["b"]}), &live, &owned), live);
    }
}
