//! How a single manifest of a work is applied and observed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::open_enum::open_enum;

/// Settings for the manifests that match an identifier.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestConfig {
    /// Which manifests; `*` stands for any text in namespace and name.
    pub resource_identifier: ResourceIdentifier,
    /// Values to report from the live object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback_rules: Option<Vec<FeedbackRule>>,
    /// How the object is written. Absent: `Update`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_strategy: Option<UpdateStrategy>,
    /// Conditions to derive from the live object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["condition"]))]
    pub condition_rules: Option<Vec<ConditionRule>>,
    /// Whether feedback is polled or watched; gitspoke's agent watches in both cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Poll"))]
    pub feedback_scrape_type: Option<FeedbackScrapeType>,
}

/// Names one object of a work, or several by wildcards.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceIdentifier {
    /// API group, empty for core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Lower-case plural of the kind.
    pub resource: String,
    /// Name, or a pattern with `*`.
    pub name: String,
    /// Namespace, or a pattern with `*`; empty for cluster-scoped kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Values to report from the live object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeedbackRule {
    /// Where the values come from.
    #[serde(rename = "type")]
    pub type_: FeedbackType,
    /// Paths for `JSONPaths`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub json_paths: Option<Vec<JsonPath>>,
}

open_enum! {
    /// Where feedback values come from.
    pub enum FeedbackType {
        /// A built-in list for well-known kinds.
        WellKnownStatus = "WellKnownStatus",
        /// Paths given by the rule.
        JSONPaths = "JSONPaths",
    }
}

/// One value to report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JsonPath {
    /// Name of the value in status.
    pub name: String,
    /// API version the live object must have for this path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Kubernetes JSONPath without braces, e.g. `.status.phase`.
    pub path: String,
}

/// How the object is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateStrategy {
    /// The way of writing.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(required, extend("default" = "Update"))]
    pub type_: Option<UpdateStrategyType>,
    /// Settings for `ServerSideApply`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_side_apply: Option<ServerSideApplyConfig>,
}

open_enum! {
    /// The way an object is written.
    pub enum UpdateStrategyType {
        /// What the manifest names wins.
        Update = "Update",
        /// Written once, never repaired.
        CreateOnly = "CreateOnly",
        /// Written by server-side apply with the settings given.
        ServerSideApply = "ServerSideApply",
        /// Never written, only observed.
        ReadOnly = "ReadOnly",
    }
}

/// Settings for `ServerSideApply`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerSideApplyConfig {
    /// Take fields that another manager owns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
    /// The field manager to write as.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^work-agent"), extend("default" = "work-agent"))]
    pub field_manager: Option<String>,
    /// Fields to leave alone, by condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["condition"]))]
    pub ignore_fields: Option<Vec<IgnoreField>>,
}

/// Fields to leave alone under one condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IgnoreField {
    /// When the fields are left alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required, extend("default" = "OnSpokePresent"))]
    pub condition: Option<IgnoreFieldsCondition>,
    /// Fields as Kubernetes JSONPaths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_paths: Option<Vec<String>>,
    /// Fields as JSON pointers (RFC 6901).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_pointers: Option<Vec<String>>,
    /// Fields as jq path expressions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jq_path_expressions: Option<Vec<String>>,
}

open_enum! {
    /// When fields are left alone.
    pub enum IgnoreFieldsCondition {
        /// Whenever the object exists on the spoke.
        OnSpokePresent = "OnSpokePresent",
        /// While only the spoke's value has changed.
        OnSpokeChange = "OnSpokeChange",
    }
}

/// A condition to derive from the live object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "self.type != 'CEL' || self.condition != \"\"",
    "message": "a CEL rule needs the name of its condition",
    "fieldPath": ".condition",
}]))]
pub struct ConditionRule {
    /// Type of the condition.
    pub condition: String,
    /// How it is derived.
    #[serde(rename = "type")]
    pub type_: ConditionRuleType,
    /// CEL expressions that must all be true; `object` is the live object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cel_expressions: Option<Vec<String>>,
    /// Fixed message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// CEL expression for the message; `result` is the condition's outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_expression: Option<String>,
}

open_enum! {
    /// How a condition is derived.
    pub enum ConditionRuleType {
        /// A built-in rule for well-known kinds.
        WellKnownConditions = "WellKnownConditions",
        /// Expressions given by the rule.
        CEL = "CEL",
    }
}

open_enum! {
    /// How feedback is collected.
    pub enum FeedbackScrapeType {
        /// At intervals.
        Poll = "Poll",
        /// When the object changes.
        Watch = "Watch",
    }
}
