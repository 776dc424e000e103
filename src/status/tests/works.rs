//! The conditions of a whole work.

use Truth::{False, True, Unknown};

use super::*;
use crate::status::{Stored, deleting, is_complete};

const APPLIED: &str = "Applied=True AppliedManifestWorkComplete g1 t1 Apply manifest work complete";
const FAILED: &str = "Applied=False AppliedManifestWorkFailed g1 t1 Failed to apply manifest work";

fn failed(finding: Finding) -> Finding {
    let error = "boom".into();
    Finding {
        applied: Some(Applied::Failed { error }),
        ..finding
    }
}

fn seen(available: Availability) -> Finding {
    Finding {
        available: Some(available),
        ..healthy(0, "a")
    }
}

/// Gives each finding the position it has.
fn numbered(findings: Vec<Finding>) -> Vec<Finding> {
    let placed = (0..).zip(findings).map(|(ordinal, mut finding)| {
        finding.meta.ordinal = ordinal;
        finding
    });
    placed.collect()
}

#[test]
fn a_work_is_applied_when_every_manifest_is() {
    let cases = [
        (vec![healthy(0, "a"), healthy(1, "b")], vec![APPLIED]),
        (vec![healthy(0, "a"), failed(healthy(1, "b"))], vec![FAILED]),
        (vec![failed(healthy(0, "a")), unseen(1, "b")], vec![FAILED]),
        (vec![healthy(0, "a"), unseen(1, "b")], vec![]),
        (vec![unseen(0, "a")], vec![]),
        (vec![], vec![]),
    ];
    for (findings, expected) in cases {
        let findings = findings.into_iter().map(|finding| Finding {
            available: None,
            ..finding
        });
        let findings: Vec<Finding> = findings.collect();
        assert_eq!(work_lines(&first(&findings)), expected, "{findings:?}");
    }
}

#[test]
fn without_manifests_applied_is_not_touched() {
    let before = first(&[healthy(0, "a")]);
    let after = work_status(Some(&before), 2, &[], &at(9));
    let expected = [
        APPLIED,
        "Available=Unknown ResourcesStatusUnknown g2 t9 cannot get any available resource ",
    ];
    assert_eq!(work_lines(&after), expected);
    assert!(manifests(&after).is_empty());
}

#[test]
fn a_write_of_another_generation_says_nothing_about_this_one() {
    let before = first(&[failed(healthy(0, "a")), healthy(1, "b")]);
    let after = work_status(Some(&before), 2, &[unseen(0, "a"), healthy(1, "b")], &at(9));
    assert_eq!(work_lines(&after)[0], FAILED);
    let after = work_status(Some(&after), 2, &[healthy(0, "a"), unseen(1, "b")], &at(10));
    assert_eq!(
        work_lines(&after)[0],
        "Applied=True AppliedManifestWorkComplete g2 t10 Apply manifest work complete"
    );
}

#[test]
fn a_work_is_available_when_every_object_is() {
    let there = || seen(Availability::Available);
    let gone = || seen(Availability::NotAvailable);
    let unknown = || seen(Availability::Unknown { error: "x".into() });
    let unlooked = || Finding {
        available: None,
        ..there()
    };
    let cases = [
        (
            vec![there(), there()],
            "Available=True ResourcesAvailable g1 t1 All resources are available",
        ),
        (
            vec![there(), gone(), unknown(), gone()],
            "Available=False ResourcesNotAvailable g1 t1 2 of 4 resources are not available",
        ),
        (
            vec![unknown(), there(), seen(Availability::IncompleteMeta)],
            "Available=Unknown ResourcesStatusUnknown g1 t1 2 of 3 resources have unknown status",
        ),
        (
            vec![there(), unlooked()],
            "Available=Unknown ResourcesStatusUnknown g1 t1 1 of 2 resources have unknown status",
        ),
    ];
    for (findings, expected) in cases {
        let status = first(&numbered(findings));
        assert_eq!(work_lines(&status), [APPLIED, expected]);
    }
}

#[test]
fn nothing_is_said_about_objects_before_the_work_carries_applied() {
    let looked = Finding {
        applied: None,
        ..with_rules(healthy(0, "a"), &[("Complete", True, "")])
    };
    let status = first(std::slice::from_ref(&looked));
    assert!(work_lines(&status).is_empty());
    assert!(lines(&status, 0).is_empty());
    assert!(work_lines(&first(&[])).is_empty());

    let applied = work_status(
        Some(&status),
        1,
        &[Finding {
            available: None,
            ..healthy(0, "a")
        }],
        &at(1),
    );
    assert_eq!(work_lines(&applied), [APPLIED]);
    let observed = work_status(Some(&applied), 1, &[looked], &at(2));
    assert_eq!(work_lines(&observed).len(), 3);
}

#[test]
fn a_time_moves_only_when_the_status_turns() {
    let before = first(&[healthy(0, "a")]);
    let after = work_status(Some(&before), 2, &[healthy(0, "a")], &at(9));
    let expected = [
        "Applied=True AppliedManifestWorkComplete g2 t1 Apply manifest work complete",
        "Available=True ResourcesAvailable g2 t1 All resources are available",
    ];
    assert_eq!(work_lines(&after), expected);
    let gone = Finding {
        available: Some(Availability::NotAvailable),
        ..failed(healthy(0, "a"))
    };
    let after = work_status(Some(&after), 3, &[gone], &at(12));
    let expected = [
        "Applied=False AppliedManifestWorkFailed g3 t12 Failed to apply manifest work",
        "Available=False ResourcesNotAvailable g3 t12 1 of 1 resources are not available",
    ];
    assert_eq!(work_lines(&after), expected);
}

#[test]
fn rule_conditions_are_aggregated_by_type() {
    let cases: [(&str, &[Truth], &str); 11] = [
        ("Complete", &[True, True], "True"),
        ("Complete", &[True, Unknown], "Unknown"),
        ("Complete", &[Unknown, False, True], "False"),
        ("Degraded", &[True, False], "False"),
        ("Degraded", &[Unknown, True], "Unknown"),
        ("Progressing", &[False, True], "True"),
        ("Progressing", &[Unknown, True, False], "True"),
        ("Progressing", &[False, Unknown], "Unknown"),
        ("Progressing", &[False, False], "False"),
        ("example.com/Progressing", &[False, True], "False"),
        ("Unique", &[Unknown, Unknown], "Unknown"),
    ];
    for (type_, truths, expected) in cases {
        let ruled = truths
            .iter()
            .map(|&truth| with_rules(healthy(0, "a"), &[(type_, truth, "m")]));
        let findings = numbered(ruled.chain([healthy(0, "without")]).collect());
        let count = truths.len();
        let expected = format!(
            "{type_}={expected} ConditionRulesAggregated g1 t1 Aggregated from {count} manifest conditions"
        );
        assert_eq!(work_lines(&first(&findings))[2..], [expected], "{truths:?}");
    }
}

#[test]
fn a_lone_message_is_passed_on() {
    let cases = [
        ("Job is finished", "Job is finished"),
        ("", "Aggregated from 1 manifest conditions"),
    ];
    for (message, expected) in cases {
        let finding = with_rules(healthy(0, "a"), &[("Complete", True, message)]);
        assert_eq!(
            work_lines(&first(&[finding, healthy(1, "b")]))[2..],
            [format!(
                "Complete=True ConditionRulesAggregated g1 t1 {expected}"
            )]
        );
    }
}

#[test]
fn rules_do_not_speak_for_the_work_itself() {
    let outcomes = [("Available", True, "x"), ("Deleting", True, "x")];
    let finding = with_rules(healthy(0, "a"), &outcomes);
    let types = work_lines(&first(&[finding]));
    assert_eq!(
        types,
        [
            APPLIED,
            "Available=True ResourcesAvailable g1 t1 All resources are available"
        ]
    );
}

#[test]
fn the_condition_of_a_deleted_rule_goes_from_manifest_and_work() {
    let before = first(&[with_rules(
        healthy(0, "a"),
        &[("Complete", True, "done"), ("Odd", True, "")],
    )]);
    assert_eq!((lines(&before, 0).len(), work_lines(&before).len()), (5, 4));
    let kept = with_rules(healthy(0, "a"), &[("Odd", True, "")]);
    let after = work_status(Some(&before), 2, &[kept], &at(9));
    assert_eq!(
        lines(&after, 0)[2..],
        [
            "Odd=True ConditionRuleEvaluated g2 t1 ",
            "Applied=True AppliedManifestComplete g2 t9 Apply manifest complete",
        ]
    );
    assert_eq!(
        work_lines(&after)[2..],
        ["Odd=True ConditionRulesAggregated g2 t1 Aggregated from 1 manifest conditions"]
    );
}

#[test]
fn a_rule_not_evaluated_since_an_edit_is_unknown_except_completion() {
    let before = first(&[with_rules(
        healthy(0, "a"),
        &[("Complete", True, "done"), ("Progressing", False, "calm")],
    )]);
    let unread = Finding {
        available: Some(Availability::NotAvailable),
        feedback: Feedback::Untouched,
        rules: Rules::Untouched,
        ..healthy(0, "a")
    };
    let after = work_status(Some(&before), 2, &[unread], &at(9));
    assert_eq!(
        work_lines(&after)[2..],
        [
            "Complete=True ConditionRulesAggregated g2 t1 done",
            "Progressing=Unknown ConditionRulesAggregated g2 t9 calm",
        ]
    );
    assert!(
        lines(&after, 0).contains(&"Progressing=False ConditionRuleEvaluated g1 t1 calm".into())
    );
}

#[test]
fn deleting_adds_one_condition_and_keeps_the_rest() {
    let before = first(&[healthy(0, "a")]);
    let after = deleting(Some(&before), 2, &at(9));
    let expected = "Deleting=True WorkDeleting g2 t9 ManifestWork is being deleted";
    assert_eq!(work_lines(&after)[..2], work_lines(&before));
    assert_eq!(work_lines(&after)[2..], [expected]);
    assert_eq!(manifests(&after), manifests(&before));
    assert_eq!(deleting(Some(&after), 2, &at(12)), after);
    assert_eq!(work_lines(&deleting(None, 2, &at(9))), [expected]);
    // Observing goes on while objects are being deleted.
    assert_eq!(
        work_lines(&work_status(Some(&after), 2, &[healthy(0, "a")], &at(12))).len(),
        3
    );
}

#[test]
fn complete_freezes_a_manifest_and_the_work_when_all_are() {
    let done = |truth| with_rules(healthy(0, "a"), &[("Complete", truth, "")]);
    let cases = [
        (vec![done(True), healthy(1, "b")], true, true),
        (
            vec![
                done(True),
                Finding {
                    meta: meta(1, "b"),
                    ..done(False)
                },
            ],
            false,
            true,
        ),
        (vec![done(Unknown)], false, false),
        (vec![healthy(0, "a")], false, false),
    ];
    for (findings, is_work_complete, is_first_complete) in cases {
        let status = first(&findings);
        assert_eq!(is_complete(Some(&status)), is_work_complete);
        assert_eq!(
            Stored::new(Some(&status)).is_complete(&meta(0, "a")),
            is_first_complete
        );
        assert!(!Stored::new(Some(&status)).is_complete(&meta(1, "b")));
    }
    assert!(!is_complete(None));
    // Still frozen in another place and before the new generation was looked at.
    let status = first(&[done(True)]);
    assert!(Stored::new(Some(&status)).is_complete(&meta(7, "a")));
}
