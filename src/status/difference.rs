//! Whether a status says something new.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::feedback::stored_values;
use super::stored::{identity, manifests};
use super::work::work_conditions;
use crate::api::work::status::{ManifestCondition, ManifestWorkStatus};

/// Answers whether the hub must be told.
///
/// Absent, empty and zero are one value here, because Go clients turn them into each other, and times are equal to the
/// second, which is all that is sent. The order of conditions counts: clients read the first.
pub fn differs(old: Option<&ManifestWorkStatus>, new: &ManifestWorkStatus) -> bool {
    let (before, after) = (old.map(manifests).unwrap_or_default(), manifests(new));
    !(same_conditions(work_conditions(old), work_conditions(Some(new)))
        && before.len() == after.len()
        && before.iter().zip(after).all(|(a, b)| same_entry(a, b)))
}

fn same_entry(a: &ManifestCondition, b: &ManifestCondition) -> bool {
    a.resource_meta.ordinal == b.resource_meta.ordinal
        && identity(&a.resource_meta) == identity(&b.resource_meta)
        && stored_values(a) == stored_values(b)
        && same_conditions(&a.conditions.0, &b.conditions.0)
}

fn same_conditions(a: &[Condition], b: &[Condition]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_condition(a, b))
}

fn same_condition(a: &Condition, b: &Condition) -> bool {
    a.type_ == b.type_
        && a.status == b.status
        && a.reason == b.reason
        && a.message == b.message
        && a.observed_generation.unwrap_or_default() == b.observed_generation.unwrap_or_default()
        && a.last_transition_time.0.as_second() == b.last_transition_time.0.as_second()
}
