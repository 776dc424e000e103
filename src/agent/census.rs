//! How many of what there is at this moment, for those who watch the agent.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::state::Agent;
use crate::{
    api::work::spec::ManifestWork, runtime::queue::Stats, spoke::kinds::Kind,
    telemetry::label::label,
};

label! {
    /// Where a work stands. Every work is in one state.
    State {
        /// Nothing has been said yet about the work as it is now.
        Pending = "pending",
        /// Some manifests could not be applied.
        Failed = "failed",
        /// Everything is applied, and some objects are not there, or nobody knows.
        Unavailable = "unavailable",
        /// Everything is applied and there.
        Available = "available",
        /// It has completed, and is left alone.
        Complete = "complete",
        /// It is being deleted.
        Deleting = "deleting",
    }
}

/// How many of what there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Census {
    /// Works by state; every state is there.
    pub works: Vec<(State, usize)>,
    /// Kinds that are watched, with the number of objects held, and whether the watch is up to date.
    pub kinds: Vec<(Kind, usize, bool)>,
    /// The queue.
    pub queue: Stats,
}

impl State {
    /// Reads it off a work.
    pub fn of(work: &ManifestWork) -> Self {
        let conditions = work
            .status
            .as_ref()
            .and_then(|status| status.conditions.as_ref())
            .map(|conditions| conditions.0.as_slice())
            .unwrap_or_default();
        let find = |wanted: &str| conditions.iter().find(|found| found.type_ == wanted);
        let is_true = |wanted| find(wanted).is_some_and(|found| found.status == "True");
        let is_current = |found: &Condition| found.observed_generation == work.metadata.generation;
        if work.metadata.deletion_timestamp.is_some() {
            return Self::Deleting;
        }
        if is_true("Complete") {
            return Self::Complete;
        }
        match find("Applied").filter(|found| is_current(found)) {
            None => Self::Pending,
            Some(applied) if applied.status != "True" => Self::Failed,
            Some(_) if is_true("Available") => Self::Available,
            Some(_) => Self::Unavailable,
        }
    }
}

impl Agent {
    /// Counts what there is now.
    pub fn census(&self) -> Census {
        let states: Vec<State> = self.works().iter().map(State::of).collect();
        let count = |state| states.iter().filter(|found| **found == state).count();
        Census {
            works: State::ALL
                .iter()
                .map(|&state| (state, count(state)))
                .collect(),
            kinds: self.index().watched(),
            queue: self.queue.stats(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn every_work_is_in_one_state() {
        let condition = |kind: &str, status: &str, generation: i64| {
            json!({
                "type": kind, "status": status, "reason": "R", "message": "",
                "lastTransitionTime": "2026-11-01T08:00:00Z", "observedGeneration": generation,
            })
        };
        let deleted =
            json!({"name": "web", "generation": 2, "deletionTimestamp": "2026-11-01T08:00:00Z"});
        let live = || json!({"name": "web", "generation": 2});
        let (applied, available) = (
            condition("Applied", "True", 2),
            condition("Available", "True", 2),
        );
        let table: [(Value, Vec<Value>, State); 8] = [
            (live(), vec![], State::Pending),
            (
                live(),
                vec![condition("Applied", "True", 1), available.clone()],
                State::Pending,
            ),
            (
                live(),
                vec![condition("Applied", "False", 2), available.clone()],
                State::Failed,
            ),
            (live(), vec![applied.clone()], State::Unavailable),
            (
                live(),
                vec![applied.clone(), condition("Available", "Unknown", 2)],
                State::Unavailable,
            ),
            (
                live(),
                vec![applied.clone(), available.clone()],
                State::Available,
            ),
            (
                live(),
                vec![
                    condition("Applied", "True", 1),
                    condition("Complete", "True", 1),
                ],
                State::Complete,
            ),
            (deleted, vec![applied, available], State::Deleting),
        ];
        for (number, (metadata, conditions, expected)) in table.into_iter().enumerate() {
            let work = json!({
                "apiVersion": "work.open-cluster-management.io/v1",
                "kind": "ManifestWork",
                "metadata": metadata,
                "spec": {"workload": {"manifests": []}},
                "status": {"conditions": conditions},
            });
            let work: ManifestWork = serde_json::from_value(work).unwrap();
            assert_eq!(State::of(&work), expected, "row {number}");
        }
    }
}
