//! Fields that the agent leaves alone, taken out of a manifest before it is applied.

use json_patch::{
    Patch, PatchOperation, RemoveOperation,
    jsonptr::{PointerBuf, resolve},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    jq,
    jsonpath::{Path, Place},
};
use crate::api::work::config::IgnoreField;

/// One way of naming fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Selector {
    JsonPath(String),
    Pointer(String),
    Jq(String),
}

/// Removes the fields that all entries name, whatever their condition: the caller chooses the entries.
///
/// A field that is not there is no error. A JSONPath that cannot be read removes nothing and is logged: Open Cluster
/// Management accepts such works, so they must not fail here.
pub fn strip<'a>(
    object: Value,
    fields: impl IntoIterator<Item = &'a IgnoreField>,
) -> Result<Value, String> {
    selectors(fields).iter().try_fold(object, remove)
}

/// Lists what entries name, without the JSONPaths that cannot be read.
pub(super) fn selectors<'a>(fields: impl IntoIterator<Item = &'a IgnoreField>) -> Vec<Selector> {
    let mut selectors = Vec::new();
    for entry in fields {
        let paths = entry.json_paths.iter().flatten();
        selectors.extend(
            paths
                .filter(|path| is_readable(path))
                .cloned()
                .map(Selector::JsonPath),
        );
        let pointers = entry.json_pointers.iter().flatten();
        selectors.extend(pointers.cloned().map(Selector::Pointer));
        let expressions = entry.jq_path_expressions.iter().flatten();
        selectors.extend(expressions.cloned().map(Selector::Jq));
    }
    selectors
}

fn is_readable(path: &str) -> bool {
    Path::read(path)
        .inspect_err(
            |error| tracing::warn!(path, %error, "ignoreFields names nothing by this path"),
        )
        .is_ok()
}

/// Whether removing takes no longer than the object is large.
pub(super) fn is_bounded(selector: &Selector) -> bool {
    match selector {
        Selector::JsonPath(path) => Path::read(path).map_or(true, |path| path.is_bounded()),
        Selector::Pointer(_) => true,
        Selector::Jq(_) => false,
    }
}

/// Removes the fields that one selector names.
pub(super) fn remove(object: Value, selector: &Selector) -> Result<Value, String> {
    match selector {
        Selector::JsonPath(path) => Ok(remove_path(object, path)),
        Selector::Pointer(pointer) => {
            remove_pointer(object, pointer).map_err(|error| failed(selector, &error))
        }
        Selector::Jq(expression) => {
            jq::delete(object, expression).map_err(|error| failed(selector, &error))
        }
    }
}

/// The text of the error that a selector caused.
pub(super) fn failed(selector: &Selector, error: &str) -> String {
    match selector {
        Selector::JsonPath(path) => format!("JSONPath error in '{path}': {error}"),
        Selector::Pointer(pointer) => format!("JSON Pointer error in '{pointer}': {error}"),
        Selector::Jq(expression) => format!("JQ expression error in '{expression}': {error}"),
    }
}

fn remove_path(mut object: Value, path: &str) -> Value {
    let Ok(path) = Path::read(path) else {
        return object;
    };
    let mut places = path.places(&object);
    // Last first: what is removed then never moves an item that is still to be removed, and children go before parents.
    places.sort_unstable_by(|one, other| other.cmp(one));
    places.dedup();
    for place in places {
        remove_place(&mut object, &place);
    }
    object
}

fn remove_place(object: &mut Value, place: &[Place]) {
    let Some((last, parents)) = place.split_last() else {
        return;
    };
    let parent = parents
        .iter()
        .try_fold(object, |value, step| match (value, step) {
            (Value::Object(map), Place::Key(key)) => map.get_mut(key),
            (Value::Array(items), Place::Item(index)) => items.get_mut(*index),
            _ => None,
        });
    match (parent, last) {
        (Some(Value::Object(map)), Place::Key(key)) => {
            map.shift_remove(key);
        }
        (Some(Value::Array(items)), Place::Item(index)) if *index < items.len() => {
            items.remove(*index);
        }
        _ => {}
    }
}

fn remove_pointer(mut object: Value, pointer: &str) -> Result<Value, String> {
    let path = PointerBuf::parse(pointer).map_err(|error| error.to_string())?;
    if path.is_root() {
        return Err("the whole object cannot be left alone".to_owned());
    }
    match path.resolve(&object) {
        Ok(_) => {
            let remove = PatchOperation::Remove(RemoveOperation { path });
            json_patch::patch(&mut object, &Patch(vec![remove]))
                .map_err(|error| error.to_string())?;
            Ok(object)
        }
        Err(error @ resolve::Error::FailedToParseIndex { .. }) => Err(error.to_string()),
        Err(_) => Ok(object),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object() -> Value {
        json!({
            "metadata": {"name": "web", "annotations": {"a.b/c": "1", "d": "2"}},
            "spec": {"replicas": 3, "env": [{"name": "A"}, {"name": "B"}, {"name": "C"}]},
        })
    }

    fn entry(paths: &[&str], pointers: &[&str], expressions: &[&str]) -> IgnoreField {
        let list = |texts: &[&str]| Some(texts.iter().map(ToString::to_string).collect());
        IgnoreField {
            condition: None,
            json_paths: list(paths),
            json_pointers: list(pointers),
            jq_path_expressions: list(expressions),
        }
    }

    /// What is left of the interesting parts.
    fn left(entry: &IgnoreField) -> Result<Value, String> {
        let object = strip(object(), [entry])?;
        let env = object["spec"]["env"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let names: String = env
            .iter()
            .filter_map(|item| item["name"].as_str())
            .collect();
        let notes = object["metadata"]["annotations"].as_object().cloned();
        let notes: Vec<_> = notes.unwrap_or_default().keys().cloned().collect();
        Ok(json!([object["spec"]["replicas"], names, notes.join(" ")]))
    }

    #[test]
    fn json_paths_remove_all_they_select() {
        for (path, want) in [
            (".spec.replicas", json!([null, "ABC", "a.b/c d"])),
            (".spec.missing.deeper", json!([3, "ABC", "a.b/c d"])),
            (r".metadata.annotations['a\.b/c']", json!([3, "ABC", "d"])),
            (".metadata.annotations.*", json!([3, "ABC", ""])),
            (".spec.env[1]", json!([3, "AC", "a.b/c d"])),
            (".spec.env[-1]", json!([3, "AB", "a.b/c d"])),
            (".spec.env[0,2]", json!([3, "B", "a.b/c d"])),
            (".spec.env[*]", json!([3, "", "a.b/c d"])),
            (r#".spec.env[?(@.name=="B")]"#, json!([3, "AC", "a.b/c d"])),
            (
                r#".spec.env[?(@.name!="B")].name"#,
                json!([3, "B", "a.b/c d"]),
            ),
            ("..name", json!([3, "", "a.b/c d"])),
            ("{range", json!([3, "ABC", "a.b/c d"])),
        ] {
            assert_eq!(left(&entry(&[path], &[], &[])), Ok(want), "{path}");
        }
    }

    #[test]
    fn json_pointers_remove_one_field() {
        for (pointer, want) in [
            ("/spec/replicas", Ok(json!([null, "ABC", "a.b/c d"]))),
            ("/metadata/annotations/a.b~1c", Ok(json!([3, "ABC", "d"]))),
            ("/spec/env/1", Ok(json!([3, "AC", "a.b/c d"]))),
            ("/spec/env/7", Ok(json!([3, "ABC", "a.b/c d"]))),
            ("/spec/none/deeper", Ok(json!([3, "ABC", "a.b/c d"]))),
            ("/spec/replicas/deeper", Ok(json!([3, "ABC", "a.b/c d"]))),
            ("spec", Err("JSON Pointer error in 'spec': ")),
            ("", Err("JSON Pointer error in '': ")),
            ("/spec/env/x", Err("JSON Pointer error in '/spec/env/x': ")),
        ] {
            check(pointer, &left(&entry(&[], &[pointer], &[])), want);
        }
    }

    #[test]
    fn jq_expressions_are_deleted() {
        for (expression, want) in [
            (".spec.replicas", Ok(json!([null, "ABC", "a.b/c d"]))),
            (
                ".metadata.annotations[\"a.b/c\"]",
                Ok(json!([3, "ABC", "d"])),
            ),
            (
                ".spec.env[] | select(.name == \"B\")",
                Ok(json!([3, "AC", "a.b/c d"])),
            ),
            (".spec.none", Ok(json!([3, "ABC", "a.b/c d"]))),
            (
                ".spec.replicas, .spec.env[0]",
                Ok(json!([null, "BC", "a.b/c d"])),
            ),
            (
                ".spec |",
                Err("JQ expression error in '.spec |': could not be read"),
            ),
            (
                "nonsense",
                Err("JQ expression error in 'nonsense': could not be compiled"),
            ),
            (
                ".spec.x.y[0])|(.spec.replicas",
                Err("JQ expression error in "),
            ),
            (".), (.spec", Err("JQ expression error in ")),
            (
                "1",
                Err("JQ expression error in '1': invalid path expression"),
            ),
        ] {
            check(expression, &left(&entry(&[], &[], &[expression])), want);
        }
    }

    fn check(what: &str, got: &Result<Value, String>, want: Result<Value, &str>) {
        match want {
            Ok(want) => assert_eq!(got, &Ok(want), "{what}"),
            Err(start) => assert!(
                got.as_ref().is_err_and(|error| error.starts_with(start)),
                "{what}: {got:?}"
            ),
        }
    }

    #[test]
    fn numbers_and_the_order_of_keys_survive_jq() {
        let object = json!({"z": 9_007_199_254_740_993_i64, "b": 1.5, "a": {"y": -1, "x": "é\n"}});
        let fields = entry(&[], &[], &[".gone"]);
        let kept = strip(object.clone(), [&fields]).unwrap();
        assert_eq!(kept.to_string(), object.to_string());
    }
}
