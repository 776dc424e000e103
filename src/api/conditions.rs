//! A list of conditions.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// What is known about an object, one entry per type.
///
/// The entries are Kubernetes' own; their generated schema has no limits, so ours states them, and a wrong condition
/// is refused by the server instead of confusing a client.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Conditions(pub Vec<Condition>);

impl JsonSchema for Conditions {
    fn schema_name() -> Cow<'static, str> {
        "Conditions".into()
    }

    /// Inline, so that a field's own description is not replaced by the type's.
    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": {
                "type": "object",
                "required": ["lastTransitionTime", "message", "reason", "status", "type"],
                "properties": {
                    "lastTransitionTime": {
                        "description": "When the status last changed.",
                        "type": "string",
                        "format": "date-time",
                    },
                    "message": {
                        "description": "The finding for a person to read; may be empty.",
                        "type": "string",
                        "maxLength": 32768,
                    },
                    "observedGeneration": {
                        "description": "The generation of the object that this finding is about.",
                        "type": "integer",
                        "format": "int64",
                        "minimum": 0,
                    },
                    "reason": {
                        "description": "The finding for a program to read.",
                        "type": "string",
                        "minLength": 1,
                        "maxLength": 1024,
                        "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                    },
                    "status": {
                        "description": "Whether the condition holds.",
                        "type": "string",
                        "enum": ["True", "False", "Unknown"],
                    },
                    "type": {
                        "description": "The condition's name.",
                        "type": "string",
                        "maxLength": 316,
                        "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                    },
                },
            },
        })
    }
}
