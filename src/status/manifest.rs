//! The answer about one manifest.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::condition::{
    APPLIED, AVAILABLE, FEEDBACK_SYNCED, Verdict, drop_stale_rules, find, renew, set,
};
use super::feedback;
use super::finding::{Applied, Availability, Finding, RuleOutcome, Rules, Truth};
use super::limits::is_type;
use crate::api::work::status::{ManifestCondition, ResourceMeta};

/// Starts the new entry from the stored one and says how the write went.
pub(super) fn begin(
    stored: Option<&ManifestCondition>,
    finding: &Finding,
    generation: i64,
    now: &Time,
) -> ManifestCondition {
    let mut entry = ManifestCondition {
        resource_meta: spelled_out(&finding.meta),
        status_feedback: stored.and_then(|entry| entry.status_feedback.clone()),
        conditions: stored
            .map(|entry| entry.conditions.clone())
            .unwrap_or_default(),
    };
    if let Some(applied) = &finding.applied {
        let conditions = &mut entry.conditions.0;
        let verdict = applied_verdict(applied).about(generation);
        // A write for another generation is another write, even if it ends the same way. The place matters too: Open
        // Cluster Management's clients read the first condition of a manifest that did not change.
        if find(conditions, APPLIED).is_some_and(|old| old.observed_generation == Some(generation))
        {
            set(conditions, verdict, now);
        } else {
            renew(conditions, verdict, now);
        }
    }
    entry
}

/// Adds what was seen of the object.
pub(super) fn observe(
    entry: &mut ManifestCondition,
    finding: &Finding,
    generation: i64,
    now: &Time,
) {
    let outcomes = match &finding.rules {
        Rules::Untouched => None,
        Rules::Evaluated(outcomes) => Some(usable(outcomes)),
    };
    // A rule may replace the existence verdict. Setting both in turn would move the time in every pass.
    let is_replaced = outcomes
        .iter()
        .flatten()
        .any(|outcome| outcome.condition == AVAILABLE);
    if let (Some(available), false) = (&finding.available, is_replaced) {
        set(&mut entry.conditions.0, available_verdict(available), now);
    }
    feedback::report(entry, &finding.feedback, now);
    if let Some(outcomes) = outcomes {
        for outcome in outcomes {
            set(
                &mut entry.conditions.0,
                rule_verdict(outcome).about(generation),
                now,
            );
        }
        drop_stale_rules(&mut entry.conditions.0, generation);
    }
}

/// Leaves out what would make the hub refuse the status (a type that is none, or one used twice) and what would hide
/// the agent's own word about its writes and reads.
fn usable(outcomes: &[RuleOutcome]) -> Vec<&RuleOutcome> {
    let mut usable: Vec<&RuleOutcome> = Vec::with_capacity(outcomes.len());
    for outcome in outcomes {
        let type_ = outcome.condition.as_str();
        let is_taken = [APPLIED, FEEDBACK_SYNCED].contains(&type_)
            || usable.iter().any(|other| other.condition == type_);
        if is_type(type_) && !is_taken {
            usable.push(outcome);
        }
    }
    usable
}

fn applied_verdict(applied: &Applied) -> Verdict {
    match applied {
        Applied::Complete => Verdict::new(
            APPLIED,
            Truth::True,
            "AppliedManifestComplete",
            "Apply manifest complete",
        ),
        Applied::CompleteBut { note } => Verdict::new(
            APPLIED,
            Truth::True,
            "AppliedManifestComplete",
            format!("Apply manifest complete: {note}"),
        ),
        Applied::Failed { error } => Verdict::new(
            APPLIED,
            Truth::False,
            "AppliedManifestFailed",
            format!("Failed to apply manifest: {error}"),
        ),
        Applied::IgnoreFields { error } => Verdict::new(
            APPLIED,
            Truth::False,
            "AppliedManifestSSAIgnoreFieldError",
            format!("Failed to process ignoreFields: {error}"),
        ),
    }
}

fn available_verdict(available: &Availability) -> Verdict {
    match available {
        Availability::Available => Verdict::new(
            AVAILABLE,
            Truth::True,
            "ResourceAvailable",
            "Resource is available",
        ),
        Availability::NotAvailable => Verdict::new(
            AVAILABLE,
            Truth::False,
            "ResourceNotAvailable",
            "Resource is not available",
        ),
        Availability::Unknown { error } => Verdict::new(
            AVAILABLE,
            Truth::Unknown,
            "FetchingResourceFailed",
            format!("Failed to fetch resource: {error}"),
        ),
        Availability::IncompleteMeta => Verdict::new(
            AVAILABLE,
            Truth::Unknown,
            "IncompleteResourceMeta",
            "Resource meta is incomplete",
        ),
    }
}

fn rule_verdict(outcome: &RuleOutcome) -> Verdict {
    Verdict::new(
        &outcome.condition,
        outcome.status,
        &outcome.reason,
        outcome.message.as_str(),
    )
}

/// Returns the identity with every part present: Open Cluster Management writes `""` for what it does not know.
fn spelled_out(meta: &ResourceMeta) -> ResourceMeta {
    let part = |part: &Option<String>| Some(part.clone().unwrap_or_default());
    ResourceMeta {
        ordinal: meta.ordinal,
        group: part(&meta.group),
        version: part(&meta.version),
        kind: part(&meta.kind),
        resource: part(&meta.resource),
        name: part(&meta.name),
        namespace: part(&meta.namespace),
    }
}
