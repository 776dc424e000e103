//! One condition in a list: what it says and when it turned.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::finding::Truth;
use super::limits::clip;

/// The types the agent itself sets.
pub(super) const APPLIED: &str = "Applied";
pub(super) const AVAILABLE: &str = "Available";
pub(super) const DELETING: &str = "Deleting";
pub(super) const FEEDBACK_SYNCED: &str = "StatusFeedbackSynced";
/// The type that freezes a manifest or a work; only condition rules set it.
pub(super) const COMPLETE: &str = "Complete";

/// How the reasons of rule-made conditions begin, on manifests and on works.
const RULE_REASON: &str = "ConditionRule";

/// What a condition shall say; when it turned is worked out by [`set`].
#[derive(Debug, Clone)]
pub(super) struct Verdict {
    pub(super) type_: String,
    pub(super) status: Truth,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) observed_generation: Option<i64>,
}

impl Verdict {
    /// Builds a verdict without generation: what it says holds whatever the spec asks for.
    pub(super) fn new(
        type_: &str,
        status: Truth,
        reason: &str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            type_: type_.into(),
            status,
            reason: reason.into(),
            message: message.into(),
            observed_generation: None,
        }
    }

    /// Says which generation of the work the verdict is about.
    pub(super) fn about(self, generation: i64) -> Self {
        Self {
            observed_generation: Some(generation),
            ..self
        }
    }

    fn at(self, time: Time) -> Condition {
        Condition {
            last_transition_time: time,
            message: clip(self.message),
            observed_generation: self.observed_generation,
            reason: self.reason,
            status: self.status.as_str().into(),
            type_: self.type_,
        }
    }
}

/// Sets a condition where it stands, or at the end. Its time moves only when its status does.
pub(super) fn set(conditions: &mut Vec<Condition>, verdict: Verdict, now: &Time) {
    match conditions
        .iter_mut()
        .find(|stored| stored.type_ == verdict.type_)
    {
        Some(stored) if stored.status == verdict.status.as_str() => {
            *stored = verdict.at(stored.last_transition_time.clone());
        }
        Some(stored) => *stored = verdict.at(now.clone()),
        None => conditions.push(verdict.at(now.clone())),
    }
}

/// Puts a condition at the end, as turned now.
pub(super) fn renew(conditions: &mut Vec<Condition>, verdict: Verdict, now: &Time) {
    conditions.retain(|stored| stored.type_ != verdict.type_);
    conditions.push(verdict.at(now.clone()));
}

pub(super) fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|stored| stored.type_ == type_)
}

pub(super) fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|stored| stored.status == Truth::True.as_str())
}

/// Answers whether a condition rule made this condition, on a manifest or by aggregation on a work.
pub(super) fn is_rule_made(condition: &Condition) -> bool {
    condition.reason.starts_with(RULE_REASON)
}

/// Removes what rules said about another generation: those rules were changed or deleted since.
pub(super) fn drop_stale_rules(conditions: &mut Vec<Condition>, generation: i64) {
    conditions
        .retain(|stored| !is_rule_made(stored) || stored.observed_generation == Some(generation));
}
