//! What holds for every history of a work.

use std::collections::HashSet;

use proptest::{collection::vec, option, prelude::*, sample::select};

use super::*;
use crate::status::differs;

/// One pass: the generation it served and what it found.
type Pass = (i64, Vec<Finding>);

fn applied() -> impl Strategy<Value = Applied> {
    let error = || "boom".to_string();
    select(vec![
        Applied::Complete,
        Applied::Failed { error: error() },
        Applied::IgnoreFields { error: error() },
    ])
}

fn availability() -> impl Strategy<Value = Availability> {
    select(vec![
        Availability::Available,
        Availability::NotAvailable,
        Availability::Unknown {
            error: "boom".into(),
        },
        Availability::IncompleteMeta,
    ])
}

fn feedback() -> impl Strategy<Value = Feedback> {
    let values = || vec((select(vec!["x", "y"]), 0..2_i64), 0..4);
    let named = |values: Vec<(&str, i64)>| {
        values
            .into_iter()
            .map(|(name, integer)| value(name, integer))
            .collect()
    };
    prop_oneof![
        Just(Feedback::Untouched),
        Just(Feedback::NoRules),
        values().prop_map(move |values| Feedback::Synced(named(values))),
        values().prop_map(move |values| Feedback::Failed {
            values: named(values),
            errors: "boom".into()
        }),
    ]
}

fn rules() -> impl Strategy<Value = Rules> {
    let outcome = (
        select(vec![
            "Complete",
            "Progressing",
            "Available",
            "Applied",
            "no type",
        ]),
        select(vec![Truth::True, Truth::False, Truth::Unknown]),
        select(vec![
            "ConditionRuleEvaluated",
            "ConditionRuleExpressionError",
        ]),
        select(vec!["", "said"]),
    );
    let outcome = outcome.prop_map(|(condition, status, reason, message)| RuleOutcome {
        condition: condition.into(),
        status,
        reason: reason.into(),
        message: message.into(),
    });
    prop_oneof![
        Just(Rules::Untouched),
        vec(outcome, 0..4).prop_map(Rules::Evaluated)
    ]
}

fn findings() -> impl Strategy<Value = Vec<Finding>> {
    let name = select(vec!["a", "b", "c", ""]);
    let finding = (
        name,
        option::of(applied()),
        option::of(availability()),
        feedback(),
        rules(),
    );
    vec(finding, 0..5).prop_map(|findings| {
        let placed = (0..).zip(findings);
        let built = placed.map(
            |(ordinal, (name, applied, available, feedback, rules))| Finding {
                meta: match name {
                    "" => ResourceMeta {
                        ordinal,
                        ..ResourceMeta::default()
                    },
                    name => meta(ordinal, name),
                },
                applied,
                available,
                feedback,
                rules,
            },
        );
        built.collect()
    })
}

fn history() -> impl Strategy<Value = Vec<Pass>> {
    vec((1..4_i64, findings()), 1..5)
}

/// Runs the passes one after the other, a second apart.
fn run(history: &[Pass]) -> Option<ManifestWorkStatus> {
    let seconds = (1..).zip(history);
    seconds.fold(None, |old, (second, (generation, findings))| {
        Some(work_status(
            old.as_ref(),
            *generation,
            findings,
            &at(second),
        ))
    })
}

fn every_condition(status: &ManifestWorkStatus) -> impl Iterator<Item = &Vec<Condition>> {
    let work = status.conditions.iter().map(|conditions| &conditions.0);
    work.chain(manifests(status).iter().map(|entry| &entry.conditions.0))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1024, ..ProptestConfig::default() })]

    #[test]
    fn the_same_findings_again_change_nothing(history in history()) {
        let status = run(&history).unwrap();
        let (generation, findings) = history.last().unwrap();
        let again = work_status(Some(&status), *generation, findings, &at(99));
        prop_assert!(!differs(Some(&status), &again));
        prop_assert_eq!(again, status);
    }

    #[test]
    fn entries_stand_in_the_order_of_the_findings(history in history()) {
        let status = run(&history).unwrap();
        let (_, findings) = history.last().unwrap();
        let places: Vec<_> = manifests(&status).iter().map(|entry| &entry.resource_meta).collect();
        prop_assert_eq!(places.len(), findings.len());
        for (place, finding) in places.iter().zip(findings) {
            prop_assert_eq!(place.ordinal, finding.meta.ordinal);
            prop_assert_eq!(place.name.as_deref(), Some(finding.meta.name.as_deref().unwrap_or_default()));
        }
    }

    #[test]
    fn carrying_never_invents_values(history in history()) {
        let status = run(&history).unwrap();
        for entry in manifests(&status) {
            let same = |finding: &&Finding| finding.meta.name.as_deref().unwrap_or_default()
                == entry.resource_meta.name.as_deref().unwrap_or_default();
            let mut readings = history.iter().flat_map(|(_, findings)| findings).filter(same)
                .map(|finding| match &finding.feedback {
                    Feedback::Untouched | Feedback::NoRules => [].as_slice(),
                    Feedback::Synced(values) | Feedback::Failed { values, .. } => values,
                });
            let reported = entry.status_feedback.clone().and_then(|feedback| feedback.values).unwrap_or_default();
            prop_assert!(
                reported.is_empty() || readings.any(|read| reported.iter().all(|value| read.contains(value))),
                "{:?} was never read", reported
            );
        }
    }

    #[test]
    fn no_list_has_two_entries_of_one_key(history in history()) {
        let status = run(&history).unwrap();
        for conditions in every_condition(&status) {
            let types: HashSet<_> = conditions.iter().map(|condition| &condition.type_).collect();
            prop_assert_eq!(types.len(), conditions.len());
        }
        for values in manifests(&status).iter().filter_map(|entry| entry.status_feedback.as_ref()?.values.as_ref()) {
            let names: HashSet<_> = values.iter().map(|value| &value.name).collect();
            prop_assert_eq!(names.len(), values.len());
        }
    }

    #[test]
    fn a_time_is_that_of_a_pass_and_the_work_only_speaks_of_known_generations(history in history()) {
        let status = run(&history).unwrap();
        for condition in every_condition(&status).flatten() {
            let second = condition.last_transition_time.0.as_second();
            prop_assert!((1..=i64::try_from(history.len()).unwrap()).contains(&second));
            let generation = condition.observed_generation;
            prop_assert!(generation.is_none_or(|generation| history.iter().any(|(known, _)| *known == generation)));
        }
    }
}
