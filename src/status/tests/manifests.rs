//! The conditions of one manifest.

use super::*;

const APPLIED: &str = "Applied=True AppliedManifestComplete g1 t1 Apply manifest complete";
const AVAILABLE: &str = "Available=True ResourceAvailable g- t1 Resource is available";
const SYNCED: &str = "StatusFeedbackSynced=True NoStatusFeedbackSynced g- t1 ";

#[test]
fn a_healthy_manifest_without_rules_carries_exactly_three_conditions() {
    assert_eq!(
        lines(&first(&[healthy(0, "a")]), 0),
        [APPLIED, AVAILABLE, SYNCED]
    );
}

#[test]
fn a_write_ends_in_one_of_three_ways() {
    let error = || "no space left".to_string();
    let cases = [
        (Applied::Complete, APPLIED),
        (
            Applied::Failed { error: error() },
            "Applied=False AppliedManifestFailed g1 t1 Failed to apply manifest: no space left",
        ),
        (
            Applied::IgnoreFields { error: error() },
            "Applied=False AppliedManifestSSAIgnoreFieldError g1 t1 Failed to process ignoreFields: no space left",
        ),
    ];
    for (applied, expected) in cases {
        let finding = Finding {
            applied: Some(applied),
            ..healthy(0, "a")
        };
        assert_eq!(lines(&first(&[finding]), 0), [expected, AVAILABLE, SYNCED]);
    }
}

#[test]
fn an_object_is_there_or_not_or_nobody_knows() {
    let error = "connection refused".to_string();
    let cases = [
        (Availability::Available, AVAILABLE),
        (
            Availability::NotAvailable,
            "Available=False ResourceNotAvailable g- t1 Resource is not available",
        ),
        (
            Availability::Unknown { error },
            "Available=Unknown FetchingResourceFailed g- t1 Failed to fetch resource: connection refused",
        ),
        (
            Availability::IncompleteMeta,
            "Available=Unknown IncompleteResourceMeta g- t1 Resource meta is incomplete",
        ),
    ];
    for (available, expected) in cases {
        let finding = Finding {
            available: Some(available),
            ..healthy(0, "a")
        };
        assert_eq!(lines(&first(&[finding]), 0), [APPLIED, expected, SYNCED]);
    }
}

#[test]
fn feedback_is_absent_or_synced_or_failed() {
    let values = || vec![value("Ready", 1), value("Total", 2)];
    let errors = "the type float64 of the value for x is not found".to_string();
    let cases = [
        (Feedback::NoRules, SYNCED, vec![]),
        (
            Feedback::Synced(values()),
            "StatusFeedbackSynced=True StatusFeedbackSynced g- t1 ",
            values(),
        ),
        (
            Feedback::Synced(vec![]),
            "StatusFeedbackSynced=True StatusFeedbackSynced g- t1 ",
            vec![],
        ),
        (
            Feedback::Failed {
                values: values(),
                errors,
            },
            "StatusFeedbackSynced=False StatusFeedbackSyncFailed g- t1 \
             Sync status feedback failed with error the type float64 of the value for x is not found",
            values(),
        ),
    ];
    for (feedback, expected, values) in cases {
        let status = first(&[Finding {
            feedback,
            ..healthy(0, "a")
        }]);
        assert_eq!(lines(&status, 0), [APPLIED, AVAILABLE, expected]);
        let reported = entry(&status, 0).status_feedback.clone();
        assert_eq!(
            reported
                .and_then(|feedback| feedback.values)
                .unwrap_or_default(),
            values
        );
    }
}

/// The values are a map by name to the API server, which would refuse the whole status.
#[test]
fn of_two_values_with_one_name_the_first_is_reported() {
    let twice = vec![value("Ready", 1), value("Total", 2), value("Ready", 3)];
    let complaint = "the name Ready is used by more than one value, only the first is reported";
    let cases = [
        (Feedback::Synced(twice.clone()), complaint.to_string()),
        (
            Feedback::Failed {
                values: twice,
                errors: "boom".into(),
            },
            format!("boom, {complaint}"),
        ),
    ];
    for (feedback, errors) in cases {
        let status = first(&[Finding {
            feedback,
            ..healthy(0, "a")
        }]);
        let expected = format!(
            "StatusFeedbackSynced=False StatusFeedbackSyncFailed g- t1 Sync status feedback failed with error {errors}"
        );
        assert_eq!(lines(&status, 0)[2], expected);
        let values = entry(&status, 0)
            .status_feedback
            .clone()
            .unwrap()
            .values
            .unwrap();
        assert_eq!(values, [value("Ready", 1), value("Total", 2)]);
    }
}

#[test]
fn json_too_long_for_the_hub_is_left_out_alone() {
    let json = |name: &str, text: String| FeedbackValue {
        name: name.into(),
        field_value: FieldValue {
            type_: ValueType::JsonRaw,
            integer: None,
            json_raw: Some(text),
            ..value(name, 0).field_value
        },
    };
    let (long, fits) = (
        json("Raw", "ä".repeat(1025)),
        json("Fits", "ä".repeat(1024)),
    );
    let feedback = Feedback::Synced(vec![long, fits.clone()]);
    let status = first(&[Finding {
        feedback,
        ..healthy(0, "a")
    }]);
    assert_eq!(
        entry(&status, 0)
            .status_feedback
            .clone()
            .unwrap()
            .values
            .unwrap(),
        [fits]
    );
    assert_eq!(
        lines(&status, 0)[2],
        "StatusFeedbackSynced=False StatusFeedbackSyncFailed g- t1 Sync status feedback failed with error \
         the length of returned json raw string for name Raw is larger than the maximum length 1024"
    );
}

#[test]
fn rules_add_conditions_about_the_generation() {
    let outcomes = [
        ("Complete", Truth::True, "Job is finished"),
        ("Odd", Truth::Unknown, ""),
    ];
    assert_eq!(
        lines(&first(&[with_rules(healthy(0, "a"), &outcomes)]), 0)[3..],
        [
            "Complete=True ConditionRuleEvaluated g1 t1 Job is finished",
            "Odd=Unknown ConditionRuleEvaluated g1 t1 ",
        ]
    );
}

#[test]
fn a_rule_cannot_cost_the_work_its_status_or_speak_for_the_agent() {
    let outcomes = [
        ("two words", Truth::True, ""),
        ("Applied", Truth::False, ""),
        ("StatusFeedbackSynced", Truth::False, ""),
        ("Twice", Truth::True, "first"),
        ("Twice", Truth::False, "second"),
    ];
    assert_eq!(
        lines(&first(&[with_rules(healthy(0, "a"), &outcomes)]), 0),
        [
            APPLIED,
            AVAILABLE,
            SYNCED,
            "Twice=True ConditionRuleEvaluated g1 t1 first"
        ]
    );
}

#[test]
fn a_rule_for_available_replaces_the_existence_without_turning_it_twice() {
    let finding = with_rules(healthy(0, "a"), &[("Available", Truth::False, "too few")]);
    let status = first(std::slice::from_ref(&finding));
    let expected = "Available=False ConditionRuleEvaluated g1 t1 too few";
    assert_eq!(lines(&status, 0), [APPLIED, SYNCED, expected]);
    assert_eq!(
        work_lines(&status)[1..],
        ["Available=False ResourcesNotAvailable g1 t1 1 of 1 resources are not available"]
    );
    let again = work_status(Some(&status), 1, &[finding], &at(9));
    assert_eq!(lines(&again, 0), lines(&status, 0));
    // Without the rule, existence speaks again.
    let after = work_status(Some(&status), 2, &[healthy(0, "a")], &at(9));
    assert_eq!(
        lines(&after, 0)[1],
        "Available=True ResourceAvailable g- t9 Resource is available"
    );
}

#[test]
fn the_identity_is_written_out_even_where_it_is_unknown() {
    let bare = ResourceMeta {
        ordinal: 4,
        ..ResourceMeta::default()
    };
    let status = first(&[Finding {
        meta: bare,
        ..healthy(0, "a")
    }]);
    assert_eq!(
        serde_json::to_string(&entry(&status, 0).resource_meta).unwrap(),
        r#"{"ordinal":4,"group":"","version":"","kind":"","resource":"","name":"","namespace":""}"#
    );
}

#[test]
fn a_message_never_exceeds_what_the_hub_takes() {
    let error = "ß".repeat(40_000);
    let finding = Finding {
        applied: Some(Applied::Failed {
            error: error.clone(),
        }),
        available: Some(Availability::Unknown {
            error: error.clone(),
        }),
        feedback: Feedback::Failed {
            values: vec![],
            errors: error.clone(),
        },
        ..with_rules(healthy(0, "a"), &[("Complete", Truth::False, &error)])
    };
    let status = first(&[finding]);
    let conditions = &entry(&status, 0).conditions.0;
    assert_eq!(conditions.len(), 4);
    for condition in conditions
        .iter()
        .chain(&status.conditions.as_ref().unwrap().0)
    {
        assert!(condition.message.len() <= 32_768, "{}", condition.type_);
    }
    assert!(
        conditions[0]
            .message
            .starts_with("Failed to apply manifest: ßß")
    );
    assert!(
        conditions
            .iter()
            .all(|condition| condition.message.ends_with("ß…"))
    );
}
