//! What the agent answers about a ManifestWork.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{conditions::Conditions, open_enum::open_enum};

/// What the agent answers about a work. Generations are in the conditions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkStatus {
    /// Findings about the whole work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Conditions>,
    /// Findings about each manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_status: Option<ResourceStatus>,
}

/// Findings about each manifest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceStatus {
    /// One entry per manifest, in the order of the spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifests: Option<Vec<ManifestCondition>>,
}

/// Findings about one manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestCondition {
    /// Which manifest.
    pub resource_meta: ResourceMeta,
    /// Values reported by the feedback rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_feedback: Option<StatusFeedback>,
    /// Findings; may be empty.
    pub conditions: Conditions,
}

/// Which manifest a finding is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceMeta {
    /// Position in `spec.workload.manifests`.
    pub ordinal: i32,
    /// API group, empty for core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// API version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Lower-case plural of the kind; empty when the spoke does not know it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Namespace, empty for cluster-scoped kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Values reported from a live object.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatusFeedback {
    /// The values by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub values: Option<Vec<FeedbackValue>>,
}

/// One reported value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeedbackValue {
    /// Name given by the rule.
    pub name: String,
    /// The value and its type.
    pub field_value: FieldValue,
}

/// A value with its type; only the field of that type is set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldValue {
    /// Which of the other fields holds the value.
    #[serde(rename = "type")]
    pub type_: ValueType,
    /// Set for `Integer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integer: Option<i64>,
    /// Set for `String`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub string: Option<String>,
    /// Set for `Boolean`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boolean: Option<bool>,
    /// Set for `JsonRaw`: the value as JSON text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub json_raw: Option<String>,
}

open_enum! {
    /// Type of a reported value.
    pub enum ValueType {
        /// A 64-bit integer.
        Integer = "Integer",
        /// A text.
        String = "String",
        /// A truth value.
        Boolean = "Boolean",
        /// Anything else, as JSON text.
        JsonRaw = "JsonRaw",
    }
}
