//! AppliedManifestWork: the agent's record, on the spoke, of what a work has put there.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which work of which hub this record belongs to.
#[derive(
    CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "work.open-cluster-management.io",
    version = "v1",
    kind = "AppliedManifestWork",
    plural = "appliedmanifestworks",
    status = "AppliedManifestWorkStatus",
    derive = "PartialEq",
    doc = "What one ManifestWork has put on this cluster. Owns those objects: deleting it deletes them."
)]
#[serde(rename_all = "camelCase")]
pub struct AppliedManifestWorkSpec {
    /// SHA-256 of the hub's address, in hex.
    pub hub_hash: String,
    /// The agent that looks after this record.
    #[serde(rename = "agentID", skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Name of the ManifestWork on the hub.
    pub manifest_work_name: String,
}

/// What the work has put on this cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedManifestWorkStatus {
    /// Every object the work holds, sorted by group, version, resource, namespace and name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied_resources: Option<Vec<AppliedResource>>,
    /// When the work was first missing on the hub; set while the grace period runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eviction_start_time: Option<Time>,
}

/// One object the work holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppliedResource {
    /// API group, empty for core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// API version.
    pub version: String,
    /// Lower-case plural of the kind.
    pub resource: String,
    /// Namespace, empty for cluster-scoped kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// The object's uid: a later object of the same name is not this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}
