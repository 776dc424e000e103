//! Field types that a GitSource is made of, with the schemas that refuse a wrong one by name.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A length of time as Go writes it: `30s`, `1h30m`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Duration(pub String);

impl JsonSchema for Duration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            // The length bounds what a CEL rule over it may cost; 32 characters hold any sensible duration.
            "maxLength": 32,
            "pattern": r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$",
        })
    }
}

/// A number of bytes or things, as Kubernetes writes quantities: `1Mi`, `500k`, `200000`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Quantity {
    /// Written as a number.
    Number(i64),
    /// Written with a suffix.
    Text(String),
}

impl JsonSchema for Quantity {
    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": "^[0-9]+(k|M|G|T|Ki|Mi|Gi|Ti)?$",
        })
    }
}

/// An object in the namespace of the GitSource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LocalReference {
    /// Name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}
