//! What the hub answers about a GitSource. Lists are bounded: the status of a source never grows with its fleet.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fields::Duration;
use crate::api::{conditions::Conditions, revision::Revision};

/// What the hub answers about a source.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitSourceStatus {
    /// The generation of the spec that the status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Ready, Reconciling, Stalled, Fetched, Rendered, Pruned, StatusReported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Conditions>,
    /// The revision applied last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// The revision tried last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_attempted_revision: Option<Revision>,
    /// Value of the annotation `gitspoke.dev/reconcile-requested-at` that was served last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// The interval in use: longer than the spec's while webhooks arrive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective_interval: Option<Duration>,
    /// Announcements of pushes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookStatus>,
    /// How many works there are and how they fare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub works: Option<WorkCounts>,
    /// The last five passes, newest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 5))]
    pub last_passes: Option<Vec<Pass>>,
    /// At most twenty mistakes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20))]
    pub problems: Option<Vec<Problem>>,
    /// At most twenty commit statuses that the forge has confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20))]
    pub reported: Option<Vec<Reported>>,
}

/// Announcements of pushes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookStatus {
    /// When the last one arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_delivery: Option<Time>,
    /// Whether they can be relied on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub healthy: Option<bool>,
}

/// How many works there are and how they fare.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkCounts {
    /// All works of this source.
    pub total: i64,
    /// Applied at their current generation.
    pub applied: i64,
    /// Available at their current generation.
    pub available: i64,
    /// Healthy at their current generation.
    pub healthy: i64,
    /// Failing.
    pub failed: i64,
    /// Not yet reported on.
    pub pending: i64,
    /// Suspended.
    pub suspended: i64,
    /// Deletions that wait for a confirmation.
    pub blocked_deletes: i64,
    /// Clusters with at least one work.
    pub clusters: i64,
}

/// One pass from a commit to the hub.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pass {
    /// The commit.
    pub commit: String,
    /// When it began.
    pub started: Time,
    /// How long it took.
    pub duration: Duration,
    /// Works created.
    pub created: i64,
    /// Works updated.
    pub updated: i64,
    /// Works left as they were.
    pub unchanged: i64,
    /// Works deleted.
    pub pruned: i64,
    /// How it ended.
    pub result: String,
}

/// A mistake, and where it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// File in the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<i64>,
    /// Column, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<i64>,
    /// Cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<String>,
    /// The mistake for a program to read.
    pub reason: String,
    /// The mistake for a person to read.
    #[schemars(length(max = 512))]
    pub message: String,
}

/// A commit status that the forge has confirmed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reported {
    /// The commit.
    pub commit: String,
    /// The status' context, e.g. `gitspoke/deploy`.
    pub context: String,
    /// The status' state.
    pub state: String,
}
