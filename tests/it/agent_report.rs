//! What a work's status says, in lines that can be compared whole.

use gitspoke::api::work::{spec::ManifestWork, status::ManifestCondition};
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};

use crate::{
    agent_pair::{PATIENCE, Pair},
    servers::wait,
};

/// Whose conditions.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Of {
    Work,
    /// The manifest at this position.
    Manifest(usize),
}

impl Pair {
    /// Waits until all conditions together are these lines, in this order, and returns the work that says so.
    pub(crate) async fn until_says(&self, work: &str, of: Of, expected: &[&str]) -> ManifestWork {
        let (works, name) = (self.works(), self.named(work));
        let what = format!("{of:?} in {work} to say {expected:#?}");
        wait::until(&what, PATIENCE, || async {
            let found = works.get(&name).await.map_err(|error| error.to_string())?;
            let said = lines(&found, of);
            if said == expected {
                Ok(found)
            } else {
                Err(format!("{said:#?}"))
            }
        })
        .await
    }
}

/// Each condition as `type=status reason @generation: message`, where the generation is `now` for the work's own, `old`
/// for another, and left out with its sign when it is not set.
pub(crate) fn lines(work: &ManifestWork, of: Of) -> Vec<String> {
    let generation = work.metadata.generation;
    conditions(work, of)
        .iter()
        .map(|found| {
            let about = match found.observed_generation.filter(|about| *about != 0) {
                None => "",
                about if about == generation => " @now",
                Some(_) => " @old",
            };
            let (type_, status, reason) = (&found.type_, &found.status, &found.reason);
            format!("{type_}={status} {reason}{about}: {}", found.message)
        })
        .collect()
}

/// When a condition last turned.
pub(crate) fn turned(work: &ManifestWork, of: Of, type_: &str) -> Time {
    let conditions = conditions(work, of);
    let found = conditions.iter().find(|found| found.type_ == type_);
    found.unwrap().last_transition_time.clone()
}

pub(crate) fn conditions(work: &ManifestWork, of: Of) -> Vec<Condition> {
    let conditions = match of {
        Of::Work => work
            .status
            .as_ref()
            .and_then(|status| status.conditions.clone()),
        Of::Manifest(ordinal) => manifests(work)
            .get(ordinal)
            .map(|manifest| manifest.conditions.clone()),
    };
    conditions.unwrap_or_default().0
}

pub(crate) fn manifests(work: &ManifestWork) -> Vec<ManifestCondition> {
    let status = work.status.as_ref();
    let resources = status.and_then(|status| status.resource_status.clone());
    resources
        .and_then(|resources| resources.manifests)
        .unwrap_or_default()
}

/// Waits for the next second: conditions tell their time in whole ones.
pub(crate) async fn next_second() -> Time {
    let start = Timestamp::now().as_second();
    wait::until("the next second", PATIENCE, || async {
        let now = Timestamp::now();
        if now.as_second() > start {
            Ok(Time(now))
        } else {
            Err("not yet".to_owned())
        }
    })
    .await
}

/// A healthy manifest without rules carries exactly these.
pub(crate) const HEALTHY: [&str; 3] = [
    "Applied=True AppliedManifestComplete @now: Apply manifest complete",
    "Available=True ResourceAvailable: Resource is available",
    "StatusFeedbackSynced=True NoStatusFeedbackSynced: ",
];

/// A healthy work without rules carries exactly these.
pub(crate) const ALL_IS_WELL: [&str; 2] = [
    "Applied=True AppliedManifestWorkComplete @now: Apply manifest work complete",
    "Available=True ResourcesAvailable @now: All resources are available",
];
