//! Values read from an object, and whether reading them went well.

use std::collections::HashSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::condition::{FEEDBACK_SYNCED, Verdict, renew, set};
use super::finding::{Feedback, Truth};
use super::limits::JSON_CHARACTERS;
use crate::api::work::status::{FeedbackValue, ManifestCondition, StatusFeedback};

/// Writes values and verdict into the entry. A change of the values counts as a transition, even from good to good.
pub(super) fn report(entry: &mut ManifestCondition, feedback: &Feedback, now: &Time) {
    let (values, verdict) = match feedback {
        Feedback::Untouched => return,
        Feedback::NoRules => (Vec::new(), synced("NoStatusFeedbackSynced")),
        Feedback::Synced(values) => judged(values, None),
        Feedback::Failed { values, errors } => judged(values, Some(errors)),
    };
    if values == stored_values(entry) {
        set(&mut entry.conditions.0, verdict, now);
    } else {
        renew(&mut entry.conditions.0, verdict, now);
    }
    entry.status_feedback = (!values.is_empty()).then_some(StatusFeedback {
        values: Some(values),
    });
}

pub(super) fn stored_values(entry: &ManifestCondition) -> &[FeedbackValue] {
    entry
        .status_feedback
        .as_ref()
        .and_then(|feedback| feedback.values.as_deref())
        .unwrap_or_default()
}

/// Keeps the values the hub takes. Each of the others would cost the work its whole status, so it becomes an error.
fn judged(values: &[FeedbackValue], errors: Option<&str>) -> (Vec<FeedbackValue>, Verdict) {
    let mut errors: Vec<String> = errors.map(Into::into).into_iter().collect();
    let mut names = HashSet::new();
    let mut kept = Vec::with_capacity(values.len());
    for value in values {
        let name = value.name.as_str();
        let json = value.field_value.json_raw.as_deref().unwrap_or_default();
        if json.chars().count() > JSON_CHARACTERS {
            errors.push(format!(
                "the length of returned json raw string for name {name} is larger than the maximum length \
                 {JSON_CHARACTERS}"
            ));
        } else if names.insert(name) {
            kept.push(value.clone());
        } else {
            errors.push(format!(
                "the name {name} is used by more than one value, only the first is reported"
            ));
        }
    }
    let verdict = if errors.is_empty() {
        synced("StatusFeedbackSynced")
    } else {
        let errors = errors.join(", ");
        Verdict::new(
            FEEDBACK_SYNCED,
            Truth::False,
            "StatusFeedbackSyncFailed",
            format!("Sync status feedback failed with error {errors}"),
        )
    };
    (kept, verdict)
}

fn synced(reason: &str) -> Verdict {
    Verdict::new(FEEDBACK_SYNCED, Truth::True, reason, "")
}
