use serde_json::{Value, json};

use super::*;

fn condition(kind: &str, status: &str, message: &str) -> Value {
    let reason = match (kind, status) {
        ("Applied", "True") => "AppliedManifestComplete",
        ("Applied", _) => "AppliedManifestFailed",
        ("Available", "True") => "ResourcesAvailable",
        _ => "ResourcesNotAvailable",
    };
    json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-11-01T08:00:00Z",
    })
}

fn manifest(name: &str, applied: (&str, &str), available: &str) -> Value {
    json!({
        "resourceMeta": {"ordinal": 0, "group": "", "kind": "ConfigMap", "namespace": "shop", "name": name},
        "conditions": [
            condition("Applied", applied.0, applied.1),
            condition("Available", available, ""),
        ],
    })
}

fn status(applied: &str, available: &str, manifests: &[Value]) -> ManifestWorkStatus {
    let message = match available {
        "True" => "All resources are available",
        _ => "1 of 2 resources are not available",
    };
    let available = condition("Available", available, message);
    serde_json::from_value(json!({
        "conditions": [condition("Applied", applied, ""), available],
        "resourceStatus": {"manifests": manifests},
    }))
    .unwrap()
}

const DONE: (&str, &str) = ("True", "");
const DENIED: (&str, &str) = ("False", "denied");

fn told(before: Option<&ManifestWorkStatus>, after: &ManifestWorkStatus) -> Vec<String> {
    let line = |told: Announcement| {
        let kind = if told.is_warning { "Warning" } else { "Normal" };
        format!("{kind} {}: {}", told.reason, told.note)
    };
    decide(before, after).into_iter().map(line).collect()
}

#[test]
fn failures_are_told_and_their_ends_and_nothing_else() {
    let fine = status(
        "True",
        "True",
        &[manifest("a", DONE, "True"), manifest("b", DONE, "True")],
    );
    let failing = status(
        "False",
        "False",
        &[manifest("a", DONE, "True"), manifest("b", DENIED, "False")],
    );
    let differently = status(
        "False",
        "False",
        &[
            manifest("a", DONE, "True"),
            manifest("b", ("False", "no such kind"), "False"),
        ],
    );
    let dropped = status("True", "True", &[manifest("a", DONE, "True")]);
    let gone = status(
        "True",
        "False",
        &[manifest("a", DONE, "False"), manifest("b", DONE, "True")],
    );
    let nothing: &[&str] = &[];
    let table: [(
        &str,
        Option<&ManifestWorkStatus>,
        &ManifestWorkStatus,
        &[&str],
    ); 11] = [
        ("success at once", None, &fine, nothing),
        ("success again", Some(&fine), &fine, nothing),
        (
            "a failure at once",
            None,
            &failing,
            &["Warning AppliedManifestFailed: ConfigMap shop/b: denied"],
        ),
        (
            "a failure after success",
            Some(&fine),
            &failing,
            &["Warning AppliedManifestFailed: ConfigMap shop/b: denied"],
        ),
        ("a failure that stays", Some(&failing), &failing, nothing),
        (
            "another failure",
            Some(&failing),
            &differently,
            &["Warning AppliedManifestFailed: ConfigMap shop/b: no such kind"],
        ),
        (
            "the end of a failure",
            Some(&failing),
            &fine,
            &["Normal AppliedManifestComplete: ConfigMap shop/b: applied after all"],
        ),
        (
            "an end by dropping",
            Some(&failing),
            &dropped,
            &[
                "Normal AppliedManifestComplete: what could not be applied is not asked for any more",
            ],
        ),
        (
            "an object that is gone",
            Some(&fine),
            &gone,
            &[
                "Warning ResourcesNotAvailable: 1 of 2 resources are not available: ConfigMap shop/a",
            ],
        ),
        ("one that stays away", Some(&gone), &gone, nothing),
        (
            "one that is back",
            Some(&gone),
            &fine,
            &["Normal ResourcesAvailable: All resources are available"],
        ),
    ];
    for (what, before, after, expected) in table {
        assert_eq!(told(before, after), expected, "{what}");
    }
}

#[test]
fn a_kind_that_comes_to_be_served_is_the_same_object() {
    let mut unknown = manifest("a", ("False", "no such kind"), "Unknown");
    unknown["resourceMeta"]["version"] = json!("v1beta1");
    let mut known = manifest("a", DONE, "True");
    known["resourceMeta"]["resource"] = json!("configmaps");
    known["resourceMeta"]["ordinal"] = json!(3);
    assert_eq!(
        told(
            Some(&status("False", "Unknown", &[unknown])),
            &status("True", "True", &[known])
        ),
        ["Normal AppliedManifestComplete: ConfigMap shop/a: applied after all"]
    );
}

#[test]
fn many_failures_are_told_in_few_words() {
    let all: Vec<Value> = (0..500)
        .map(|number| manifest(&format!("map-{number}"), DENIED, "False"))
        .collect();
    let told = told(None, &status("False", "False", &all));
    assert_eq!(told.len(), MOST);
    assert_eq!(
        told[MOST - 1],
        "Warning AppliedManifestFailed: 491 more manifests could not be applied, too; \
         the status of the work names them"
    );
}

#[test]
fn a_long_message_is_cut_where_a_letter_ends() {
    for length in 1000..1050 {
        let message = "ä".repeat(length);
        let after = status(
            "False",
            "False",
            &[manifest("a", ("False", &message), "False")],
        );
        let told = decide(None, &after);
        assert!(told[0].note.len() <= LONGEST, "{}", told[0].note.len());
        assert!(told[0].note.ends_with('…'));
    }
}
