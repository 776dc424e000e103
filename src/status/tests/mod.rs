//! Whole statuses, written as lines: `Type=Status Reason g<generation> t<second> <message>`.

mod carrying;
mod difference;
mod manifests;
mod properties;
mod works;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

use super::stored::manifests;
use super::{Applied, Availability, Feedback, Finding, RuleOutcome, Rules, Truth, work_status};
use crate::api::work::status::{
    FeedbackValue, FieldValue, ManifestCondition, ManifestWorkStatus, ResourceMeta, StatusFeedback,
    ValueType,
};

fn at(second: i64) -> Time {
    Time(Timestamp::from_second(second).unwrap())
}

fn line(condition: &Condition) -> String {
    let generation = condition
        .observed_generation
        .map_or("-".into(), |generation| generation.to_string());
    format!(
        "{}={} {} g{generation} t{} {}",
        condition.type_,
        condition.status,
        condition.reason,
        condition.last_transition_time.0.as_second(),
        condition.message,
    )
}

fn work_lines(status: &ManifestWorkStatus) -> Vec<String> {
    let conditions = &status.conditions.as_ref().unwrap().0;
    conditions.iter().map(line).collect()
}

fn entry(status: &ManifestWorkStatus, ordinal: usize) -> &ManifestCondition {
    &manifests(status)[ordinal]
}

fn lines(status: &ManifestWorkStatus, ordinal: usize) -> Vec<String> {
    let conditions = &entry(status, ordinal).conditions.0;
    conditions.iter().map(line).collect()
}

fn meta(ordinal: i32, name: &str) -> ResourceMeta {
    ResourceMeta {
        ordinal,
        group: None,
        version: Some("v1".into()),
        kind: Some("ConfigMap".into()),
        resource: Some("configmaps".into()),
        name: Some(name.into()),
        namespace: Some("shop".into()),
    }
}

/// A manifest that is applied, there, and has no rules.
fn healthy(ordinal: i32, name: &str) -> Finding {
    Finding {
        meta: meta(ordinal, name),
        applied: Some(Applied::Complete),
        available: Some(Availability::Available),
        feedback: Feedback::NoRules,
        rules: Rules::Evaluated(Vec::new()),
    }
}

/// A manifest that this pass did not look at.
fn unseen(ordinal: i32, name: &str) -> Finding {
    Finding {
        meta: meta(ordinal, name),
        applied: None,
        available: None,
        feedback: Feedback::Untouched,
        rules: Rules::Untouched,
    }
}

fn with_rules(finding: Finding, outcomes: &[(&str, Truth, &str)]) -> Finding {
    let outcomes = outcomes
        .iter()
        .map(|&(condition, status, message)| RuleOutcome {
            condition: condition.into(),
            status,
            reason: "ConditionRuleEvaluated".into(),
            message: message.into(),
        });
    Finding {
        rules: Rules::Evaluated(outcomes.collect()),
        ..finding
    }
}

fn value(name: &str, integer: i64) -> FeedbackValue {
    FeedbackValue {
        name: name.into(),
        field_value: FieldValue {
            type_: ValueType::Integer,
            integer: Some(integer),
            string: None,
            boolean: None,
            json_raw: None,
        },
    }
}

/// A first pass at generation 1 and second 1.
fn first(findings: &[Finding]) -> ManifestWorkStatus {
    work_status(None, 1, findings, &at(1))
}
