//! The answer about a whole work.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::aggregate::aggregate;
use super::condition::{
    APPLIED, AVAILABLE, COMPLETE, DELETING, Verdict, drop_stale_rules, find, is_true, set,
};
use super::finding::{Finding, Truth};
use super::manifest;
use super::stored::Stored;
use crate::api::{
    conditions::Conditions,
    work::status::{ManifestCondition, ManifestWorkStatus, ResourceStatus},
};

/// Returns the status of a work after a pass; `findings` are in the order of the spec, one per manifest.
///
/// What the pass did not look at is carried over from `old`. Nothing is said about objects before the work carries
/// `Applied`: until then, what is on the spoke need not be this work's doing.
pub fn work_status(
    old: Option<&ManifestWorkStatus>,
    generation: i64,
    findings: &[Finding],
    now: &Time,
) -> ManifestWorkStatus {
    let stored = Stored::new(old);
    let mut entries: Vec<ManifestCondition> = findings
        .iter()
        .map(|finding| manifest::begin(stored.find(&finding.meta), finding, generation, now))
        .collect();
    let mut conditions = work_conditions(old).to_vec();
    if let Some(verdict) = applied(&entries, generation) {
        set(&mut conditions, verdict, now);
    }
    if find(&conditions, APPLIED).is_some() {
        for (entry, finding) in entries.iter_mut().zip(findings) {
            manifest::observe(entry, finding, generation, now);
        }
        let is_observed = findings.iter().any(|finding| finding.available.is_some());
        if is_observed || findings.is_empty() {
            set(&mut conditions, available(&entries).about(generation), now);
        }
        for verdict in aggregate(&entries, generation) {
            set(&mut conditions, verdict, now);
        }
        drop_stale_rules(&mut conditions, generation);
    }
    ManifestWorkStatus {
        conditions: Some(Conditions(conditions)),
        resource_status: Some(ResourceStatus {
            manifests: Some(entries),
        }),
    }
}

/// Returns the status of a work whose objects are about to be deleted.
pub fn deleting(
    old: Option<&ManifestWorkStatus>,
    generation: i64,
    now: &Time,
) -> ManifestWorkStatus {
    let mut conditions = work_conditions(old).to_vec();
    let verdict = Verdict::new(
        DELETING,
        Truth::True,
        "WorkDeleting",
        "ManifestWork is being deleted",
    );
    set(&mut conditions, verdict.about(generation), now);
    ManifestWorkStatus {
        conditions: Some(Conditions(conditions)),
        resource_status: old.and_then(|status| status.resource_status.clone()),
    }
}

/// Returns the status of a work of which nothing is applied, because of what it is as a whole.
pub fn refused(
    old: Option<&ManifestWorkStatus>,
    generation: i64,
    why: &str,
    now: &Time,
) -> ManifestWorkStatus {
    let mut conditions = work_conditions(old).to_vec();
    let message = format!("Failed to apply manifest work: {why}");
    let verdict = Verdict::new(APPLIED, Truth::False, "AppliedManifestWorkFailed", message);
    set(&mut conditions, verdict.about(generation), now);
    ManifestWorkStatus {
        conditions: Some(Conditions(conditions)),
        resource_status: old.and_then(|status| status.resource_status.clone()),
    }
}

/// Answers whether a work is frozen: every manifest that can complete has, and nothing of it is applied any more.
/// [`Stored::is_complete`] answers the same for one manifest.
pub fn is_complete(status: Option<&ManifestWorkStatus>) -> bool {
    is_true(work_conditions(status), COMPLETE)
}

pub(super) fn work_conditions(status: Option<&ManifestWorkStatus>) -> &[Condition] {
    status
        .and_then(|status| status.conditions.as_ref())
        .map(|conditions| conditions.0.as_slice())
        .unwrap_or_default()
}

/// Returns the verdict on the writes of this generation; `None` while some manifests still wait for theirs and none
/// has failed, and for a work without manifests.
fn applied(entries: &[ManifestCondition], generation: i64) -> Option<Verdict> {
    let is_now = |entry: &ManifestCondition, truth: Truth| {
        find(&entry.conditions.0, APPLIED).is_some_and(|condition| {
            condition.observed_generation == Some(generation) && condition.status == truth.as_str()
        })
    };
    let verdict = if entries.iter().any(|entry| is_now(entry, Truth::False)) {
        Verdict::new(
            APPLIED,
            Truth::False,
            "AppliedManifestWorkFailed",
            "Failed to apply manifest work",
        )
    } else if !entries.is_empty() && entries.iter().all(|entry| is_now(entry, Truth::True)) {
        Verdict::new(
            APPLIED,
            Truth::True,
            "AppliedManifestWorkComplete",
            "Apply manifest work complete",
        )
    } else {
        return None;
    };
    Some(verdict.about(generation))
}

/// Returns the verdict on the existence of all objects. One that nobody has looked at yet is as unknown as one that
/// could not be read.
fn available(entries: &[ManifestCondition]) -> Verdict {
    let total = entries.len();
    let count = |truth: Truth| {
        let statuses = entries.iter().map(|entry| {
            find(&entry.conditions.0, AVAILABLE).map_or(Truth::Unknown, |condition| {
                Truth::from_wire(&condition.status)
            })
        });
        statuses.filter(|&status| status == truth).count()
    };
    let (missing, unknown) = (count(Truth::False), count(Truth::Unknown));
    if total == 0 {
        // The space at the end is Open Cluster Management's.
        let message = "cannot get any available resource ";
        Verdict::new(AVAILABLE, Truth::Unknown, "ResourcesStatusUnknown", message)
    } else if missing > 0 {
        let message = format!("{missing} of {total} resources are not available");
        Verdict::new(AVAILABLE, Truth::False, "ResourcesNotAvailable", message)
    } else if unknown > 0 {
        let message = format!("{unknown} of {total} resources have unknown status");
        Verdict::new(AVAILABLE, Truth::Unknown, "ResourcesStatusUnknown", message)
    } else {
        let message = "All resources are available";
        Verdict::new(AVAILABLE, Truth::True, "ResourcesAvailable", message)
    }
}
