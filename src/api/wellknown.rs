//! Names that other programs look for: finalizers, labels, annotations, field managers.

/// API group of ManifestWork and AppliedManifestWork.
pub const WORK_GROUP: &str = "work.open-cluster-management.io";
/// API group of what is gitspoke's own.
pub const GITSPOKE_GROUP: &str = "gitspoke.dev";

/// Keeps a ManifestWork on the hub until the agent has cleaned its spoke.
pub const WORK_FINALIZER: &str = "cluster.open-cluster-management.io/manifest-work-cleanup";
/// Keeps an AppliedManifestWork on the spoke until its objects are gone.
pub const APPLIED_WORK_FINALIZER: &str =
    "cluster.open-cluster-management.io/applied-manifest-work-cleanup";

/// Field manager of every write of the agent, on spoke and hub; Open Cluster Management's clients look for it.
pub const AGENT_FIELD_MANAGER: &str = "work-agent";
/// Field manager of every write of `gitspoke hub`.
pub const HUB_FIELD_MANAGER: &str = "gitspoke-hub";

/// Kubernetes' own label for "who looks after this object".
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
/// Value of [`MANAGED_BY_LABEL`] on everything gitspoke installs. A CRD without it is somebody else's and is left
/// as it is.
pub const MANAGED_BY_GITSPOKE: &str = "gitspoke";
