//! GitSource and the part of it that an administrator writes.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    fields::{Duration, LocalReference, Quantity},
    status::GitSourceStatus,
};
use crate::api::open_enum::open_enum;

/// Which repository the hub follows, and how.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "gitspoke.dev",
    version = "v1alpha1",
    kind = "GitSource",
    plural = "gitsources",
    shortname = "gsrc",
    category = "gitspoke",
    namespaced,
    status = "GitSourceStatus",
    derive = "PartialEq",
    doc = "A Git repository whose clusters/ directory the hub keeps applied to the fleet.",
    printcolumn = r#"{"name": "URL", "type": "string", "jsonPath": ".spec.url"}"#,
    printcolumn = r#"{"name": "Revision", "type": "string", "jsonPath": ".status.revision"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name": "Works", "type": "integer", "jsonPath": ".status.works.total"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!self.url.startsWith('http://') || (has(self.insecure) && self.insecure)",
        "message": "http sends the repository and its credentials unprotected: use https, or set insecure: true",
        "fieldPath": ".url",
    },
    {
        "rule": "!has(self.polling) || self.polling != 'disabled' || has(self.webhook)",
        "message": "without polling only a webhook brings new commits: set webhook.secretRef, or polling: auto",
        "fieldPath": ".polling",
    },
]))]
pub struct GitSourceSpec {
    /// The repository: https, ssh, scp-like (`git@host:path`), file, or a local path. http needs `insecure`.
    #[schemars(
        length(min = 1, max = 2048),
        extend("x-kubernetes-validations" = [
            {
                "rule": "!self.contains('://') || self.matches('^(https|http|ssh|file)://')",
                "message": "use an https://, ssh:// or file:// URL, git@host:path, or a local path",
            },
            {
                "rule": "!self.startsWith('-') && !self.matches('^[A-Za-z0-9]+::')",
                "message": "a URL must not begin with '-' or name a transport helper such as ext::",
            },
        ])
    )]
    pub url: String,
    /// What to follow. The highest present wins: commit, name, semver, tag, branch. Absent: the remote's HEAD.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<GitReference>,
    /// The directory that holds `clusters/` and `groups/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 1024),
        extend("default" = ".", "x-kubernetes-validations" = [{
            "rule": r"!self.startsWith('/') && !self.matches('(^|/)\\.\\.(/|$)')",
            "message": "give a path inside the repository: relative, and without '..'",
        }])
    )]
    pub path: Option<String>,
    /// Time between two looks at the remote.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "30s", "x-kubernetes-validations" = [{
        "rule": "duration(self) >= duration('5s')",
        "message": "must be at least 5s; a webhook makes pushes arrive at once",
    }]))]
    pub interval: Option<Duration>,
    /// Deadline of one fetch; the first fetch has five minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "60s"))]
    pub timeout: Option<Duration>,
    /// Secret with the credentials for the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalReference>,
    /// Secret with `address`, `username` and `password` of a proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_secret_ref: Option<LocalReference>,
    /// Whether the secret's `ca.crt` is trusted beside the system's roots or instead of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "add"))]
    pub ca_mode: Option<CaMode>,
    /// Permits http, unverified certificates and unverified host keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub insecure: Option<bool>,
    /// Whether the remote is asked at intervals; `disabled` needs a webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "auto"))]
    pub polling: Option<Polling>,
    /// Stops syncing without touching what is applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub suspend: Option<bool>,
    /// What to do when history was rewritten.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "warn"))]
    pub on_rewrite: Option<OnRewrite>,
    /// What becomes of the works when this object is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "orphan"))]
    pub on_delete: Option<OnDelete>,
    /// Deletion of works whose files are gone, and the limit above which a person must confirm it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {}))]
    pub prune: Option<Prune>,
    /// Lines in gitignore syntax, read after those of the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 65536))]
    pub ignore: Option<String>,
    /// Variables for every cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 256, "x-kubernetes-validations" = [{
        "rule": "self.all(name, name.matches('^[_a-zA-Z][_a-zA-Z0-9]*$'))",
        "message": "a variable's name has letters, digits and '_' and does not begin with a digit",
    }]))]
    pub vars: Option<BTreeMap<String, String>>,
    /// Service account imposed on every work of this source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor: Option<ImposedExecutor>,
    /// What this source may write. Absent: everything; an empty list allows nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Allow>,
    /// What this source may not write, whatever `allow` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<Deny>,
    /// Bounds on what is read from the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {}))]
    pub limits: Option<Limits>,
    /// How pushes are announced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Webhook>,
    /// Commit statuses. Absent: none are written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<Checks>,
    /// Plans on pull requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
}

/// What to follow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitReference {
    /// A branch, without `refs/heads/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub branch: Option<String>,
    /// A tag, without `refs/tags/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub tag: Option<String>,
    /// A range; the greatest matching tag is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub semver: Option<String>,
    /// A full ref, e.g. `refs/pull/7/head`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255), regex(pattern = "^refs/.+"))]
    pub name: Option<String>,
    /// A commit id in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^([0-9a-f]{40}|[0-9a-f]{64})$"))]
    pub commit: Option<String>,
}

open_enum! {
    /// How a certificate authority of the secret is used.
    pub enum CaMode {
        /// Beside the system's roots.
        Add = "add",
        /// Instead of them.
        Only = "only",
    }
}

open_enum! {
    /// Whether the remote is asked at intervals.
    pub enum Polling {
        /// Yes, less often while webhooks arrive.
        Auto = "auto",
        /// Never.
        Disabled = "disabled",
    }
}

open_enum! {
    /// What to do when history was rewritten.
    pub enum OnRewrite {
        /// Follow it.
        Allow = "allow",
        /// Follow it and say so.
        Warn = "warn",
        /// Wait for a person.
        Block = "block",
    }
}

open_enum! {
    /// What becomes of the works when their source is deleted.
    pub enum OnDelete {
        /// They stay.
        Orphan = "orphan",
        /// They are deleted, under the guards of `prune`.
        Prune = "prune",
    }
}

/// Deletion of works whose files are gone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Prune {
    /// Whether such works are deleted at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = true))]
    pub enabled: Option<bool>,
    /// Deletions in one pass that need no confirmation; the larger of the two limits counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("default" = 10))]
    pub max_deletions: Option<i32>,
    /// The same as a share of the source's works.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100), extend("default" = 10))]
    pub max_percent: Option<i32>,
}

/// Service account imposed on every work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImposedExecutor {
    /// Its namespace on the spoke.
    #[schemars(length(min = 1, max = 253))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// What a source may write. An absent list allows everything, an empty one nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Allow {
    /// Clusters by name, `*` for any text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<Vec<String>>,
    /// Kinds as `group/Kind`, `*` for any text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<String>>,
    /// Namespaces on the spoke, `*` for any text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<String>>,
}

/// What a source may not write.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deny {
    /// Kinds as `group/Kind`, `*` for any text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<String>>,
}

/// Bounds on what is read from the repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Largest file that is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "1Mi"))]
    pub max_file_bytes: Option<Quantity>,
    /// Largest pack that is fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "1Gi"))]
    pub max_pack_bytes: Option<Quantity>,
    /// Largest object in a pack.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "64Mi"))]
    pub max_object_bytes: Option<Quantity>,
    /// Most works this source may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 200_000))]
    pub max_works: Option<Quantity>,
    /// Largest mirror on disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "2Gi"))]
    pub max_mirror_bytes: Option<Quantity>,
}

/// How pushes are announced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// Secret whose `token` signs deliveries.
    pub secret_ref: LocalReference,
}

/// Commit statuses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Checks {
    /// The forge. Absent: known from the host of `url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
    /// Address of the forge's API. Absent: known from the host of `url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 2048),
        extend("x-kubernetes-validations" = [{
            "rule": r"self.startsWith('https://') || self.matches('^http://(localhost|127\\.[0-9.]+|\\[::1\\])(:[0-9]+)?(/|$)')",
            "message": "use https; http is accepted only for a loopback address",
        }])
    )]
    pub api_base: Option<String>,
    /// Secret with the forge's token. Absent: `spec.secretRef`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalReference>,
    /// Time until a commit that is not applied everywhere is reported as failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "15m"))]
    pub deadline: Option<Duration>,
    /// Whether a silent cluster holds a commit up.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "wait"))]
    pub offline_clusters: Option<OfflineClusters>,
    /// Whether success needs healthy objects, not only existing ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = true))]
    pub healthy: Option<bool>,
}

open_enum! {
    /// A forge.
    pub enum Provider {
        /// GitHub and GitHub Enterprise.
        Github = "github",
        /// GitLab.
        Gitlab = "gitlab",
        /// Gitea.
        Gitea = "gitea",
        /// Forgejo.
        Forgejo = "forgejo",
        /// Bitbucket Cloud.
        Bitbucket = "bitbucket",
        /// Bitbucket Data Center.
        BitbucketServer = "bitbucket-server",
        /// Azure DevOps.
        Azure = "azure",
    }
}

open_enum! {
    /// What a silent cluster means for a commit.
    pub enum OfflineClusters {
        /// The commit waits for it.
        Wait = "wait",
        /// The commit succeeds without it.
        Tolerate = "tolerate",
    }
}

/// Plans on pull requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Review {
    /// Whether plans are posted. Absent: when `checks` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}
