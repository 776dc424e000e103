//! ManifestWork and the part of it that the hub writes.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{config::ManifestConfig, status::ManifestWorkStatus};
use crate::api::{manifest::Manifest, open_enum::open_enum};

/// What a ManifestWork asks of its cluster.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "work.open-cluster-management.io",
    version = "v1",
    kind = "ManifestWork",
    plural = "manifestworks",
    namespaced,
    status = "ManifestWorkStatus",
    derive = "PartialEq",
    doc = "Objects to apply to one cluster. Its namespace names the cluster."
)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkSpec {
    /// The objects to apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<Workload>,
    /// What becomes of the objects when the work, or a manifest of it, goes away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_option: Option<DeleteOption>,
    /// How single manifests are applied and observed. For each setting the first matching entry that has it wins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest_configs: Option<Vec<ManifestConfig>>,
    /// On whose behalf the objects are applied. Absent: the agent's own rights decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor: Option<Executor>,
}

impl ManifestWorkSpec {
    /// The manifests in order; their position is the `ordinal` in status.
    pub fn manifests(&self) -> &[Manifest] {
        self.workload
            .as_ref()
            .and_then(|workload| workload.manifests.as_deref())
            .unwrap_or_default()
    }
}

/// The objects of a work.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workload {
    /// Complete objects, applied in an order of the agent's choosing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifests: Option<Box<[Manifest]>>,
}

/// What becomes of the objects when the work goes away.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeleteOption {
    /// Whether the objects go with the work, stay, or stay selectively.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Foreground"))]
    pub propagation_policy: Option<PropagationPolicy>,
    /// Which objects stay; read only with `SelectivelyOrphan`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selectively_orphans: Option<SelectivelyOrphan>,
    /// Seconds from the work's completion until the hub deletes it. Absent: it stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i64>,
}

open_enum! {
    /// Who keeps the spoke's objects when their work goes away.
    pub enum PropagationPolicy {
        /// The work waits until each object is gone.
        Foreground = "Foreground",
        /// All objects stay.
        Orphan = "Orphan",
        /// Objects named by a rule stay.
        SelectivelyOrphan = "SelectivelyOrphan",
    }
}

/// The objects that stay under `SelectivelyOrphan`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SelectivelyOrphan {
    /// Exact names; no wildcards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orphaning_rules: Option<Vec<OrphaningRule>>,
}

/// One object that stays.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OrphaningRule {
    /// API group, empty for core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Lower-case plural of the kind.
    pub resource: String,
    /// Namespace, empty for cluster-scoped kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

/// On whose behalf the objects are applied.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Executor {
    /// The identity whose rights are checked before each manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<ExecutorSubject>,
}

/// The identity whose rights are checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutorSubject {
    /// Kind of identity.
    #[serde(rename = "type")]
    pub type_: ExecutorSubjectType,
    /// The service account, for that type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ServiceAccountName>,
}

open_enum! {
    /// Kind of an executor's identity.
    pub enum ExecutorSubjectType {
        /// A service account of the spoke.
        ServiceAccount = "ServiceAccount",
    }
}

/// A service account on the spoke.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceAccountName {
    /// Its namespace.
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_SUBDOMAIN))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_SUBDOMAIN))]
    pub name: String,
}

const DNS_SUBDOMAIN: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$";
