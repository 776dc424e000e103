//! Values that a work asks to have reported from a live object.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::jsonpath::{Error, Path};
use crate::api::work::{
    config::{FeedbackRule, FeedbackType},
    status::{FeedbackValue, FieldValue, ValueType},
};

/// The definition of ManifestWork refuses a longer text, and with it the whole status it is part of.
const LONGEST_RAW: usize = 1024;

/// What the agent was told about values that are neither text, integer nor boolean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedbackOptions {
    /// Report them as JSON text; otherwise they are errors.
    pub raw_json: bool,
    /// Longest JSON text that is reported, in bytes; more than 1024 counts as 1024.
    pub max_raw_length: usize,
}

/// The values that could be read, and why others could not.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FeedbackAnswer {
    /// In the order of the rules; names are unique.
    pub values: Vec<FeedbackValue>,
    /// One text for each value that could not be read.
    pub errors: Vec<String>,
}

/// A value to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Wanted {
    pub(super) name: String,
    pub(super) path: String,
}

/// Reads the values that rules ask for.
///
/// # Examples
/// ```
/// # use gitspoke::{api::work::config::*, expression::feedback::*};
/// let pod = serde_json::json!({"apiVersion": "v1", "kind": "Pod", "status": {"phase": "Running"}});
/// let rule = FeedbackRule { type_: FeedbackType::WellKnownStatus, json_paths: None };
/// let options = FeedbackOptions { raw_json: false, max_raw_length: 1024 };
/// let answer = feedback(&pod, &[rule], options);
/// assert_eq!(answer.values[0].name, "PodPhase");
/// ```
pub fn feedback(
    object: &Value,
    rules: &[FeedbackRule],
    options: FeedbackOptions,
) -> FeedbackAnswer {
    let mut answer = FeedbackAnswer::default();
    for wanted in wanted(object, rules) {
        answer.add(wanted.and_then(|wanted| value(object, &wanted, options)));
    }
    answer
}

impl FeedbackAnswer {
    /// Adds a value or an error. A second value of one name would make the hub refuse the whole status, so it is an
    /// error here.
    pub(super) fn add(&mut self, outcome: Result<Option<FeedbackValue>, String>) {
        match outcome {
            Ok(None) => {}
            Ok(Some(value)) if self.values.iter().any(|other| other.name == value.name) => self
                .errors
                .push(format!("the name {} is used for two values", value.name)),
            Ok(Some(value)) => self.values.push(value),
            Err(error) => self.errors.push(error),
        }
    }
}

/// Lists the values that rules ask for, with an error in place of each that cannot be asked for.
pub(super) fn wanted(object: &Value, rules: &[FeedbackRule]) -> Vec<Result<Wanted, String>> {
    rules
        .iter()
        .flat_map(|rule| match &rule.type_ {
            FeedbackType::WellKnownStatus => well_known(object),
            FeedbackType::JSONPaths => listed(object, rule),
            FeedbackType::Other(_) => Vec::new(),
        })
        .collect()
}

fn well_known(object: &Value) -> Vec<Result<Wanted, String>> {
    let (group, version, kind) = identity(object);
    let paths: &[(&str, &str)] = match (group, version, kind) {
        ("apps", "v1", "Deployment") => &[
            ("ReadyReplicas", ".status.readyReplicas"),
            ("Replicas", ".status.replicas"),
            ("AvailableReplicas", ".status.availableReplicas"),
        ],
        ("apps", "v1", "DaemonSet") => &[
            ("NumberReady", ".status.numberReady"),
            ("DesiredNumberScheduled", ".status.desiredNumberScheduled"),
            ("NumberAvailable", ".status.numberAvailable"),
        ],
        ("batch", "v1", "Job") => &[
            (
                "JobComplete",
                r#".status.conditions[?(@.type=="Complete")].status"#,
            ),
            ("JobSucceeded", ".status.succeeded"),
        ],
        ("", "v1", "Pod") => &[
            (
                "PodReady",
                r#".status.conditions[?(@.type=="Ready")].status"#,
            ),
            ("PodPhase", ".status.phase"),
        ],
        _ => {
            // The text of schema.GroupVersionKind in Go.
            return vec![Err(format!(
                "cannot find the wellknown statuses for resource with gvk {group}/{version}, Kind={kind}"
            ))];
        }
    };
    paths
        .iter()
        .map(|(name, path)| {
            Ok(Wanted {
                name: (*name).to_owned(),
                path: (*path).to_owned(),
            })
        })
        .collect()
}

fn listed(object: &Value, rule: &FeedbackRule) -> Vec<Result<Wanted, String>> {
    let (_, version, _) = identity(object);
    let paths = rule.json_paths.iter().flatten();
    paths
        .map(|path| match path.version.as_deref() {
            Some(wanted) if !wanted.is_empty() && wanted != version => Err(format!(
                "version set in the path {} is not matched for the related resource",
                path.name
            )),
            _ => Ok(Wanted {
                name: path.name.clone(),
                path: path.path.clone(),
            }),
        })
        .collect()
}

/// Group, version and kind of an object.
pub(super) fn identity(object: &Value) -> (&str, &str, &str) {
    let text = |key| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let api_version = text("apiVersion");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    (group, version, text("kind"))
}

/// Whether reading a value takes no longer than the object is large.
pub(super) fn is_bounded(wanted: &Wanted) -> bool {
    Path::read(&wanted.path).map_or(true, |path| path.is_bounded())
}

/// Reads one value; nothing, or null, is no value and no error.
pub(super) fn value(
    object: &Value,
    wanted: &Wanted,
    options: FeedbackOptions,
) -> Result<Option<FeedbackValue>, String> {
    let Wanted { name, path } = wanted;
    let path = Path::read(path).map_err(|error| match error {
        Error::Read(_) => format!("failed to parse json path {path} of {name} with error: {error}"),
        Error::Find(error) => not_found(name, &error),
    })?;
    let hits = path.find(object);
    let Some(first) = hits.first() else {
        return Ok(None);
    };
    let field_value = if hits.len() > 1 && options.raw_json {
        let all = hits.into_iter().cloned().collect();
        raw(name, Value::Array(all), options)?
    } else {
        match typed(name, first, options)? {
            Some(value) => value,
            None => return Ok(None),
        }
    };
    Ok(Some(FeedbackValue {
        name: name.clone(),
        field_value,
    }))
}

/// The text for a value that could not be looked for to the end.
pub(super) fn not_found(name: &str, error: &str) -> String {
    format!("failed to find value for {name} with error: {error}")
}

fn typed(
    name: &str,
    value: &Value,
    options: FeedbackOptions,
) -> Result<Option<FieldValue>, String> {
    let go_type = match value {
        Value::Null => return Ok(None),
        Value::Bool(boolean) => {
            return Ok(Some(FieldValue {
                boolean: Some(*boolean),
                ..empty(ValueType::Boolean)
            }));
        }
        Value::String(text) => {
            return Ok(Some(FieldValue {
                string: Some(text.clone()),
                ..empty(ValueType::String)
            }));
        }
        Value::Number(number) => match number.as_i64() {
            Some(integer) => {
                return Ok(Some(FieldValue {
                    integer: Some(integer),
                    ..empty(ValueType::Integer)
                }));
            }
            None => "float64",
        },
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    if options.raw_json {
        raw(name, value.clone(), options).map(Some)
    } else {
        Err(format!(
            "the type {go_type} of the value for {name} is not found"
        ))
    }
}

/// Writes a value as JSON, its keys sorted as Go sorts them.
fn raw(name: &str, mut value: Value, options: FeedbackOptions) -> Result<FieldValue, String> {
    value.sort_all_objects();
    let text = value.to_string();
    let longest = options.max_raw_length.min(LONGEST_RAW);
    if text.len() > longest {
        return Err(format!(
            "the length of returned json raw string for name {name} is larger than the maximum length {longest}"
        ));
    }
    Ok(FieldValue {
        json_raw: Some(text),
        ..empty(ValueType::JsonRaw)
    })
}

fn empty(type_: ValueType) -> FieldValue {
    FieldValue {
        type_,
        integer: None,
        string: None,
        boolean: None,
        json_raw: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::work::config::JsonPath;

    const PLAIN: FeedbackOptions = FeedbackOptions {
        raw_json: false,
        max_raw_length: 1024,
    };
    const RAW: FeedbackOptions = FeedbackOptions {
        raw_json: true,
        max_raw_length: 40,
    };

    fn deployment() -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"ratio": 1.5, "paused": false, "nothing": null, "map": {"b": 1, "a": 2}},
            "status": {"readyReplicas": 1, "replicas": 2, "conditions": [
                {"type": "Available", "status": "True"}, {"type": "Progressing", "status": "False"},
            ]},
        })
    }

    fn paths(paths: &[(&str, &str)]) -> FeedbackRule {
        let paths = paths.iter().map(|(name, path)| JsonPath {
            name: (*name).to_owned(),
            version: None,
            path: (*path).to_owned(),
        });
        FeedbackRule {
            type_: FeedbackType::JSONPaths,
            json_paths: Some(paths.collect()),
        }
    }

    /// The value of one path, or the only error.
    fn one(path: &str, options: FeedbackOptions) -> Value {
        let answer = feedback(&deployment(), &[paths(&[("x", path)])], options);
        match (answer.values.as_slice(), answer.errors.as_slice()) {
            ([], []) => Value::Null,
            ([value], []) => json!(value.field_value),
            ([], [error]) => json!(error),
            _ => panic!("{answer:?}"),
        }
    }

    #[test]
    fn values_are_typed_as_open_cluster_management_types_them() {
        let no_type = |of: &str| json!(format!("the type {of} of the value for x is not found"));
        let long = "the length of returned json raw string for name x is larger than the maximum length 40";
        for (path, plain, raw) in [
            (
                ".status.replicas",
                json!({"type": "Integer", "integer": 2}),
                None,
            ),
            (
                ".metadata.name",
                json!({"type": "String", "string": "web"}),
                None,
            ),
            (
                ".spec.paused",
                json!({"type": "Boolean", "boolean": false}),
                None,
            ),
            (".spec.nothing", Value::Null, None),
            (".spec.missing.deeper", Value::Null, None),
            (
                ".spec.ratio",
                no_type("float64"),
                Some(json!({"type": "JsonRaw", "jsonRaw": "1.5"})),
            ),
            (
                ".spec.map",
                no_type("map[string]interface {}"),
                Some(json!({"type": "JsonRaw", "jsonRaw": r#"{"a":2,"b":1}"#})),
            ),
            (
                ".status.conditions",
                no_type("[]interface {}"),
                Some(json!(long)),
            ),
            (
                ".status.conditions[*].status",
                json!({"type": "String", "string": "True"}),
                Some(json!({"type": "JsonRaw", "jsonRaw": r#"["True","False"]"#})),
            ),
            (
                ".status[",
                json!("failed to parse json path .status[ of x with error: unterminated array"),
                None,
            ),
            (
                "status",
                json!("failed to find value for x with error: unrecognized identifier status"),
                None,
            ),
        ] {
            assert_eq!(one(path, PLAIN), plain, "{path}");
            assert_eq!(one(path, RAW), raw.unwrap_or(plain), "{path} as JSON");
        }
    }

    #[test]
    fn a_raw_length_beyond_what_the_hub_takes_is_not_used() {
        let options = FeedbackOptions {
            raw_json: true,
            max_raw_length: 1 << 20,
        };
        let object = json!({"list": vec![1; 600]});
        let answer = feedback(&object, &[paths(&[("x", ".list")])], options);
        assert!(answer.errors[0].ends_with("maximum length 1024"));
    }

    #[test]
    fn well_known_kinds_have_their_values() {
        let rule = FeedbackRule {
            type_: FeedbackType::WellKnownStatus,
            json_paths: None,
        };
        let names = |object: &Value| {
            let answer = feedback(object, std::slice::from_ref(&rule), PLAIN);
            let names = answer.values.into_iter().map(|value| value.name);
            (names.collect::<Vec<_>>(), answer.errors)
        };
        let conditions = |type_: &str| json!([{"type": type_, "status": "True"}]);
        for (object, want) in [
            (deployment(), vec!["ReadyReplicas", "Replicas"]),
            (
                json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "status": {
                    "numberReady": 1, "desiredNumberScheduled": 1, "numberAvailable": 1}}),
                vec!["NumberReady", "DesiredNumberScheduled", "NumberAvailable"],
            ),
            (
                json!({"apiVersion": "batch/v1", "kind": "Job",
                    "status": {"succeeded": 1, "conditions": conditions("Complete")}}),
                vec!["JobComplete", "JobSucceeded"],
            ),
            (
                json!({"apiVersion": "v1", "kind": "Pod",
                    "status": {"phase": "Running", "conditions": conditions("Ready")}}),
                vec!["PodReady", "PodPhase"],
            ),
        ] {
            let want: Vec<String> = want.into_iter().map(str::to_owned).collect();
            assert_eq!(names(&object), (want, Vec::new()));
        }
        let other = json!({"apiVersion": "apps/v1", "kind": "StatefulSet"});
        let error =
            "cannot find the wellknown statuses for resource with gvk apps/v1, Kind=StatefulSet";
        assert_eq!(names(&other), (Vec::new(), vec![error.to_owned()]));
    }

    #[test]
    fn a_bad_path_a_wrong_version_and_a_second_name_cost_one_value_each() {
        let mut rule = paths(&[
            ("a", ".metadata.name"),
            ("b", "["),
            ("a", ".kind"),
            ("c", ".kind"),
            ("d", ".kind"),
        ]);
        rule.json_paths.as_mut().unwrap()[3].version = Some("v2".to_owned());
        let answer = feedback(&deployment(), &[rule], PLAIN);
        let names: Vec<_> = answer.values.iter().map(|value| &value.name).collect();
        assert_eq!(names, ["a", "d"]);
        assert_eq!(
            answer.errors,
            [
                "failed to parse json path [ of b with error: unterminated array",
                "the name a is used for two values",
                "version set in the path c is not matched for the related resource",
            ]
        );
    }
}
