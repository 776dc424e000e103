//! What an apply refuses although the same object could be posted: a field that the schema does not declare, and two
//! entries of one list under one key.
//!
//! The API server names the places in its refusal, in a notation of its own: `.spec.containers[name="web"].imagee`.
//! Under `Update` those places are taken out and the rest is applied.

use serde_json::{Map, Value};

const PREFIX: &str = "failed to create typed patch object";
const UNDECLARED: &str = ": field not declared in schema";
const DUPLICATE: &str = ": duplicate entries for key ";

/// One thing that an apply was refused for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// A field that the schema does not declare.
    Undeclared {
        /// Its path.
        path: String,
    },
    /// Entries of a list under one key.
    Duplicate {
        /// The list's path.
        path: String,
        /// The key, e.g. `[name="web"]`.
        key: String,
    },
}

/// Whether a refusal is about the form of what was sent: sent again, it would be refused again.
pub fn is_refusal(message: &str) -> bool {
    message.starts_with(PREFIX)
}

/// Reads the places out of a refusal; nothing, when it is about anything else as well.
pub fn faults(message: &str) -> Vec<Fault> {
    let Some((_, rest)) = message
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.split_once("): "))
    else {
        return Vec::new();
    };
    let lines = rest.strip_prefix("errors:").unwrap_or(rest).lines();
    let lines = lines.map(str::trim).filter(|line| !line.is_empty());
    let faults: Option<Vec<Fault>> = lines.map(fault).collect();
    faults.unwrap_or_default()
}

fn fault(line: &str) -> Option<Fault> {
    if let Some(path) = line.strip_suffix(UNDECLARED) {
        let path = path.to_owned();
        return Some(Fault::Undeclared { path });
    }
    let (path, key) = line.split_once(DUPLICATE)?;
    Some(Fault::Duplicate {
        path: path.to_owned(),
        key: key.to_owned(),
    })
}

/// Takes one fault out of an object. Returns whether it was found there.
pub fn mend(object: &mut Value, fault: &Fault) -> bool {
    match fault {
        Fault::Undeclared { path } => remove(object, path),
        Fault::Duplicate { path, key } => find(object, path)
            .and_then(Value::as_array_mut)
            .is_some_and(|items| keep_last(items, key)),
    }
}

impl Fault {
    /// What was done about it, for a person to read.
    pub fn note(&self) -> String {
        match self {
            Self::Undeclared { path } => {
                format!("left out {path}, which the API server does not declare")
            }
            Self::Duplicate { path, key } => format!("kept the last of {path}{key}"),
        }
    }
}

fn remove(value: &mut Value, path: &str) -> bool {
    match value {
        Value::Object(fields) => {
            let Some((name, rest)) = field(fields, path) else {
                return false;
            };
            if rest.is_empty() {
                return fields.shift_remove(&name).is_some();
            }
            fields
                .get_mut(&name)
                .is_some_and(|value| remove(value, rest))
        }
        Value::Array(items) => selected(items, path).is_some_and(|(item, rest)| remove(item, rest)),
        _ => false,
    }
}

fn find<'v>(value: &'v mut Value, path: &str) -> Option<&'v mut Value> {
    if path.is_empty() {
        return Some(value);
    }
    match value {
        Value::Object(fields) => {
            let (name, rest) = field(fields, path)?;
            find(fields.get_mut(&name)?, rest)
        }
        Value::Array(items) => {
            let (item, rest) = selected(items, path)?;
            find(item, rest)
        }
        _ => None,
    }
}

/// The field that a path begins with. Names may contain dots, and only the object knows which are part of one: the
/// longest that fits.
fn field<'p>(fields: &Map<String, Value>, path: &'p str) -> Option<(String, &'p str)> {
    let path = path.strip_prefix('.')?;
    let fitting = fields.keys().filter_map(|name| {
        let rest = path.strip_prefix(name.as_str())?;
        (rest.is_empty() || rest.starts_with(['.', '['])).then_some((name, rest))
    });
    let (name, rest) = fitting.max_by_key(|(name, _)| name.len())?;
    Some((name.clone(), rest))
}

/// The item that a path begins with: `[name="web"]` or `[0]`.
fn selected<'v, 'p>(items: &'v mut [Value], path: &'p str) -> Option<(&'v mut Value, &'p str)> {
    let (selector, rest) = selector(path)?;
    if let Ok(position) = selector.parse::<usize>() {
        return Some((items.get_mut(position)?, rest));
    }
    let wanted = pairs(selector)?;
    let item = items.iter_mut().rfind(|item| has(item, &wanted))?;
    Some((item, rest))
}

/// Splits `[…]` off a path. Brackets inside of quotes do not count.
fn selector(path: &str) -> Option<(&str, &str)> {
    let inner = path.strip_prefix('[')?;
    let mut is_quoted = false;
    let mut is_escaped = false;
    for (at, character) in inner.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ']' if !is_quoted => return Some((&inner[..at], &inner[at + 1..])),
            _ => {}
        }
    }
    None
}

/// Reads `name="web",port=80`.
fn pairs(selector: &str) -> Option<Vec<(String, Value)>> {
    let mut rest = selector;
    let mut pairs = Vec::new();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=')?;
        let mut values = serde_json::Deserializer::from_str(after).into_iter::<Value>();
        let value = values.next()?.ok()?;
        pairs.push((name.trim().to_owned(), value));
        rest = after[values.byte_offset()..].trim_start_matches([',', ' ']);
    }
    Some(pairs)
}

fn has(item: &Value, wanted: &[(String, Value)]) -> bool {
    // A key that the item leaves out stands for a default that only the schema knows, so it decides nothing.
    let is_equal = |(name, value): &(String, Value)| item.get(name).is_none_or(|at| at == value);
    item.is_object() && wanted.iter().all(is_equal)
}

fn keep_last(items: &mut Vec<Value>, key: &str) -> bool {
    let Some(wanted) = selector(key).and_then(|(inner, _)| pairs(inner)) else {
        return false;
    };
    let last = items.iter().rposition(|item| has(item, &wanted));
    let before = items.len();
    let mut position = 0;
    items.retain(|item| {
        let is_kept = Some(position) == last || !has(item, &wanted);
        position += 1;
        is_kept
    });
    items.len() < before
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HEAD: &str =
        "failed to create typed patch object (default/a; apps/v1, Kind=Deployment): ";

    #[test]
    fn what_was_refused_is_taken_out_and_nothing_else() {
        let object = json!({"spec": {
            "imagee": 1,
            "dotted.name": {"x": 1, "y": 2},
            "containers": [
                {"name": "web", "typo": true, "ports": [
                    {"port": 80, "protocol": "TCP", "a": 1},
                    {"port": 80, "protocol": "UDP"},
                    {"port": 80, "a": 2},
                ]},
                {"name": "odd \"]\" one", "typo": true},
            ],
        }});
        let table = [
            (
                ".spec.imagee: field not declared in schema",
                json!(["spec", "imagee"]),
            ),
            (
                ".spec.dotted.name.x: field not declared in schema",
                json!(["spec", "dotted.name", "x"]),
            ),
            (
                ".spec.containers[name=\"web\"].typo: field not declared in schema",
                json!(["spec", "containers", 0, "typo"]),
            ),
            (
                ".spec.containers[1].typo: field not declared in schema",
                json!(["spec", "containers", 1, "typo"]),
            ),
            (
                ".spec.containers[name=\"odd \\\"]\\\" one\"].typo: field not declared in schema",
                json!(["spec", "containers", 1, "typo"]),
            ),
        ];
        for (refusal, gone) in table {
            let found = faults(&format!("{HEAD}{refusal}"));
            assert_eq!(found.len(), 1, "{refusal}");
            let mut mended = object.clone();
            assert!(mend(&mut mended, &found[0]), "{refusal}");
            let mut expected = object.clone();
            let (last, way) = gone.as_array().unwrap().split_last().unwrap();
            let parent = way.iter().fold(&mut expected, |at, step| match step {
                Value::String(name) => &mut at[name.as_str()],
                step => &mut at[usize::try_from(step.as_u64().unwrap()).unwrap()],
            });
            parent
                .as_object_mut()
                .unwrap()
                .shift_remove(last.as_str().unwrap());
            assert_eq!(mended, expected, "{refusal}");
            assert!(!mend(&mut mended, &found[0]), "it is gone: {refusal}");
        }
    }

    #[test]
    fn the_last_of_two_entries_under_one_key_is_kept() {
        let refusal = format!(
            "{HEAD}errors:\n  .ports: duplicate entries for key [port=80,protocol=\"TCP\"]\n  .a: field not declared in schema"
        );
        let mut object = json!({"a": 1, "ports": [
            {"port": 80, "protocol": "TCP", "v": 1}, {"port": 80, "protocol": "UDP", "v": 2}, {"port": 80, "v": 3},
        ]});
        for fault in faults(&refusal) {
            assert!(mend(&mut object, &fault), "{fault:?}");
        }
        let expected = json!({"ports": [
            {"port": 80, "protocol": "UDP", "v": 2}, {"port": 80, "v": 3},
        ]});
        assert_eq!(object, expected);
    }

    #[test]
    fn a_refusal_for_any_other_reason_is_not_mended() {
        for refusal in [
            "Deployment.apps \"a\" is invalid: spec.selector: Required value",
            &format!("{HEAD}.spec.replicas: expected numeric (int or float), got string"),
            &format!(
                "{HEAD}errors:\n  .a: field not declared in schema\n  .b: expected map, got list"
            ),
        ] {
            assert_eq!(faults(refusal), [], "{refusal}");
        }
        let at_nothing = Fault::Undeclared {
            path: ".nowhere.x".into(),
        };
        assert!(!mend(&mut json!({"spec": {}}), &at_nothing));
    }
}
