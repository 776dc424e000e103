//! What a manifest keeps across edits of its work.

use super::*;

#[test]
fn an_edit_renews_applied_at_the_end_and_leaves_the_rest() {
    let before = first(&[healthy(0, "a")]);
    let after = work_status(Some(&before), 2, &[healthy(0, "a")], &at(9));
    let expected = [
        "Available=True ResourceAvailable g- t1 Resource is available",
        "StatusFeedbackSynced=True NoStatusFeedbackSynced g- t1 ",
        "Applied=True AppliedManifestComplete g2 t9 Apply manifest complete",
    ];
    assert_eq!(lines(&after, 0), expected);
}

#[test]
fn within_a_generation_applied_turns_in_its_place() {
    let before = first(&[healthy(0, "a")]);
    let failed = Finding {
        applied: Some(Applied::Failed { error: "x".into() }),
        ..healthy(0, "a")
    };
    let after = work_status(Some(&before), 1, &[failed], &at(9));
    assert_eq!(
        lines(&after, 0)[0],
        "Applied=False AppliedManifestFailed g1 t9 Failed to apply manifest: x"
    );
    let again = work_status(Some(&before), 1, &[healthy(0, "a")], &at(9));
    assert_eq!(lines(&again, 0), lines(&before, 0));
}

#[test]
fn rule_conditions_turn_only_with_their_status() {
    let ruled = |truth| with_rules(healthy(0, "a"), &[("Odd", truth, "")]);
    let before = first(&[ruled(Truth::True)]);
    let after = work_status(Some(&before), 2, &[ruled(Truth::True)], &at(9));
    assert!(lines(&after, 0).contains(&"Odd=True ConditionRuleEvaluated g2 t1 ".into()));
    let after = work_status(Some(&after), 2, &[ruled(Truth::False)], &at(12));
    assert!(lines(&after, 0).contains(&"Odd=False ConditionRuleEvaluated g2 t12 ".into()));
}

/// The case Open Cluster Management's own test has: a Deployment moves, the ServiceAccount beside it is replaced.
#[test]
fn a_moved_manifest_is_recognized_and_a_replaced_one_starts_afresh() {
    let before = first(&[healthy(0, "account"), healthy(1, "web")]);
    let after = work_status(
        Some(&before),
        2,
        &[healthy(0, "web"), healthy(1, "other")],
        &at(9),
    );
    let first_time = |ordinal: usize| {
        entry(&after, ordinal).conditions.0[0]
            .last_transition_time
            .0
            .as_second()
    };
    assert_eq!((first_time(0), first_time(1)), (1, 9));
    assert_eq!(entry(&after, 0).resource_meta.ordinal, 0);
    assert_eq!(manifests(&after).len(), 2);
}

#[test]
fn a_manifest_finds_its_old_entry_by_place_or_by_being_the_only_one() {
    let mut newer = meta(0, "a");
    newer.version = Some("v2".into());
    let unreadable = |ordinal| ResourceMeta {
        ordinal,
        ..ResourceMeta::default()
    };
    let spelled = ResourceMeta {
        group: Some(String::new()),
        ..meta(0, "a")
    };
    let cases = [
        ("same place", vec![meta(0, "a")], meta(0, "a"), Some(0)),
        ("absent is empty", vec![meta(0, "a")], spelled, Some(0)),
        (
            "moved",
            vec![meta(0, "b"), meta(1, "a")],
            meta(0, "a"),
            Some(1),
        ),
        (
            "place before identity",
            vec![meta(0, "a"), meta(1, "a")],
            meta(1, "a"),
            Some(1),
        ),
        (
            "two of one identity",
            vec![meta(0, "a"), meta(1, "a")],
            meta(2, "a"),
            None,
        ),
        ("another name", vec![meta(0, "b")], meta(0, "a"), None),
        ("another version", vec![newer], meta(0, "a"), None),
        ("unreadable", vec![unreadable(3)], unreadable(3), Some(0)),
        (
            "unreadable elsewhere",
            vec![unreadable(3)],
            unreadable(4),
            None,
        ),
    ];
    for (case, old, new, expected) in cases {
        let findings = old.into_iter().enumerate().map(|(index, meta)| Finding {
            meta,
            feedback: Feedback::Synced(vec![value("index", i64::try_from(index).unwrap())]),
            ..healthy(0, "")
        });
        let before = first(&findings.collect::<Vec<_>>());
        let after = work_status(
            Some(&before),
            1,
            &[Finding {
                meta: new,
                ..unseen(0, "")
            }],
            &at(9),
        );
        let carried = entry(&after, 0)
            .status_feedback
            .clone()
            .and_then(|feedback| feedback.values);
        assert_eq!(
            carried,
            expected.map(|index| vec![value("index", index)]),
            "{case}"
        );
        assert_eq!(lines(&after, 0).is_empty(), expected.is_none(), "{case}");
    }
}

#[test]
fn what_was_not_looked_at_is_kept() {
    let rules = [("Complete", Truth::False, "wait")];
    let feedback = Feedback::Synced(vec![value("Ready", 1)]);
    let before = first(&[with_rules(
        Finding {
            feedback,
            ..healthy(0, "a")
        },
        &rules,
    )]);
    let after = work_status(Some(&before), 1, &[unseen(0, "a")], &at(9));
    assert_eq!(after, before);
}

#[test]
fn a_lost_object_keeps_its_values_and_rule_conditions() {
    let rules = [("Complete", Truth::True, "done")];
    let feedback = Feedback::Synced(vec![value("Ready", 1)]);
    let before = first(&[with_rules(
        Finding {
            feedback,
            ..healthy(0, "a")
        },
        &rules,
    )]);
    let gone = Finding {
        available: Some(Availability::NotAvailable),
        ..unseen(0, "a")
    };
    let after = work_status(Some(&before), 1, &[gone], &at(9));
    assert_eq!(
        entry(&after, 0).status_feedback,
        entry(&before, 0).status_feedback
    );
    let mut expected = lines(&before, 0);
    expected[1] = "Available=False ResourceNotAvailable g- t9 Resource is not available".into();
    assert_eq!(lines(&after, 0), expected);
}

#[test]
fn a_changed_value_renews_the_feedback_condition_even_if_it_stays_true() {
    let reading = |values: &[FeedbackValue]| Finding {
        feedback: Feedback::Synced(values.to_vec()),
        ..healthy(0, "a")
    };
    let before = first(&[reading(&[value("Ready", 1)])]);
    let cases: [(&[FeedbackValue], i64); 4] = [
        (&[value("Ready", 1)], 1),
        (&[value("Ready", 2)], 9),
        (&[value("Ready", 1), value("Total", 2)], 9),
        (&[], 9),
    ];
    for (values, second) in cases {
        let after = work_status(Some(&before), 1, &[reading(values)], &at(9));
        let expected = format!("StatusFeedbackSynced=True StatusFeedbackSynced g- t{second} ");
        assert_eq!(lines(&after, 0).last(), Some(&expected), "{values:?}");
        let reported = entry(&after, 0)
            .status_feedback
            .clone()
            .and_then(|feedback| feedback.values);
        assert_eq!(reported.unwrap_or_default(), values);
    }
}

#[test]
fn conditions_of_others_are_left_alone() {
    let mut before = first(&[healthy(0, "a")]);
    let foreign = Condition {
        type_: "Audited".into(),
        reason: "Auditor".into(),
        ..entry(&before, 0).conditions.0[0].clone()
    };
    before.conditions.as_mut().unwrap().0.push(foreign.clone());
    let entries = before
        .resource_status
        .as_mut()
        .unwrap()
        .manifests
        .as_mut()
        .unwrap();
    entries[0].conditions.0.push(foreign.clone());
    let after = work_status(Some(&before), 2, &[healthy(0, "a")], &at(9));
    assert!(entry(&after, 0).conditions.0.contains(&foreign));
    assert!(after.conditions.unwrap().0.contains(&foreign));
}
