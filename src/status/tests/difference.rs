//! When the hub must be told.

use k8s_openapi::jiff::SignedDuration;

use super::*;
use crate::status::differs;

type Change = fn(&mut ManifestWorkStatus);

fn work(status: &mut ManifestWorkStatus) -> &mut Vec<Condition> {
    &mut status.conditions.as_mut().unwrap().0
}

fn entries(status: &mut ManifestWorkStatus) -> &mut Vec<ManifestCondition> {
    status
        .resource_status
        .as_mut()
        .unwrap()
        .manifests
        .as_mut()
        .unwrap()
}

#[test]
fn every_part_of_a_status_counts() {
    let changes: [(&str, Change); 14] = [
        ("type", |status| work(status)[0].type_.push('x')),
        ("status", |status| work(status)[0].status = "False".into()),
        ("reason", |status| work(status)[0].reason.push('x')),
        ("message", |status| work(status)[0].message.push('x')),
        ("generation", |status| {
            work(status)[0].observed_generation = Some(2);
        }),
        ("time", |status| {
            work(status)[0].last_transition_time = at(2);
        }),
        ("order", |status| work(status).swap(0, 1)),
        ("fewer conditions", |status| drop(work(status).pop())),
        ("fewer entries", |status| drop(entries(status).pop())),
        ("ordinal", |status| {
            entries(status)[0].resource_meta.ordinal = 5;
        }),
        ("identity", |status| {
            entries(status)[0].resource_meta.name = None;
        }),
        ("values", |status| entries(status)[0].status_feedback = None),
        ("manifest condition", |status| {
            entries(status)[0].conditions.0[0].message.clear();
        }),
        ("manifest order", |status| {
            entries(status)[0].conditions.0.swap(0, 1);
        }),
    ];
    let feedback = Feedback::Synced(vec![value("Ready", 1)]);
    let status = first(&[Finding {
        feedback,
        ..healthy(0, "a")
    }]);
    assert!(!differs(Some(&status), &status.clone()));
    for (part, change) in changes {
        let mut changed = status.clone();
        change(&mut changed);
        assert!(differs(Some(&status), &changed), "{part}");
        assert!(differs(Some(&changed), &status), "{part}");
    }
}

#[test]
fn absent_and_empty_are_one_value() {
    let changes: [(&str, Change); 4] = [
        ("group", |status| {
            entries(status)[0].resource_meta.group = None;
        }),
        ("feedback", |status| {
            entries(status)[0].status_feedback = Some(StatusFeedback::default());
        }),
        ("generation", |status| {
            entries(status)[0].conditions.0[1].observed_generation = Some(0);
        }),
        ("part of a second", |status| {
            work(status)[0].last_transition_time.0 += SignedDuration::from_millis(999);
        }),
    ];
    let status = first(&[healthy(0, "a")]);
    for (part, change) in changes {
        let mut changed = status.clone();
        change(&mut changed);
        assert!(!differs(Some(&status), &changed), "{part}");
    }
    assert!(!differs(None, &first(&[])));
    assert!(!differs(None, &ManifestWorkStatus::default()));
    assert!(!differs(Some(&ManifestWorkStatus::default()), &first(&[])));
    assert!(differs(None, &status));
}

#[test]
fn a_status_read_back_from_the_hub_is_the_same() {
    let feedback = Feedback::Synced(vec![value("Ready", 1)]);
    let status = first(&[
        Finding {
            feedback,
            ..healthy(0, "a")
        },
        healthy(1, "b"),
    ]);
    let read = serde_json::from_str(&serde_json::to_string(&status).unwrap()).unwrap();
    assert!(!differs(Some(&read), &status));
}
