//! The conditions that rules made on manifests, as conditions of the work.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::condition::{APPLIED, AVAILABLE, COMPLETE, DELETING, Verdict, is_rule_made};
use super::finding::Truth;
use crate::api::work::status::ManifestCondition;

/// The one type whose good state is false, so that one manifest still under way counts for the work.
const PROGRESSING: &str = "Progressing";

/// Returns one verdict per type, in the order in which the types first appear. Only manifests that have a condition
/// of the type count. What the work says about itself is never replaced by a rule.
pub(super) fn aggregate(entries: &[ManifestCondition], generation: i64) -> Vec<Verdict> {
    let mut by_type: Vec<(&str, Vec<&Condition>)> = Vec::new();
    let conditions = entries.iter().flat_map(|entry| &entry.conditions.0);
    for condition in conditions.filter(|condition| is_rule_made(condition)) {
        let type_ = condition.type_.as_str();
        if [APPLIED, AVAILABLE, DELETING].contains(&type_) {
            continue;
        }
        match by_type.iter_mut().find(|(known, _)| *known == type_) {
            Some((_, same_type)) => same_type.push(condition),
            None => by_type.push((type_, vec![condition])),
        }
    }
    by_type
        .into_iter()
        .map(|(type_, same_type)| combined(type_, &same_type, generation))
        .collect()
}

fn combined(type_: &str, conditions: &[&Condition], generation: i64) -> Verdict {
    let has = |truth| {
        conditions
            .iter()
            .any(|condition| truth_now(condition, generation) == truth)
    };
    let decisive = if type_ == PROGRESSING {
        [Truth::True, Truth::Unknown, Truth::False]
    } else {
        [Truth::False, Truth::Unknown, Truth::True]
    };
    let status = decisive
        .into_iter()
        .find(|&truth| has(truth))
        .unwrap_or(Truth::Unknown);
    let message = match conditions {
        [only] if !only.message.is_empty() => only.message.clone(),
        _ => format!("Aggregated from {} manifest conditions", conditions.len()),
    };
    Verdict::new(type_, status, "ConditionRulesAggregated", message).about(generation)
}

/// Returns what a manifest's condition says about this generation of the work.
///
/// One that stands from another generation, because the object could not be read since, says nothing: otherwise a
/// rollout would be called finished before its objects were looked at. Completion is for good, so it is the exception.
fn truth_now(condition: &Condition, generation: i64) -> Truth {
    let truth = Truth::from_wire(&condition.status);
    let is_current = condition.observed_generation == Some(generation);
    if is_current || (condition.type_ == COMPLETE && truth == Truth::True) {
        truth
    } else {
        Truth::Unknown
    }
}
