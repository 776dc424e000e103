//! Field types that a GitSource is made of, with the schemas that refuse a wrong one by name.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A length of time as Go writes it: `30s`, `1h30m`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Duration(String);

impl Duration {
    /// The length of time.
    pub fn get(&self) -> Result<std::time::Duration, InvalidDuration> {
        let invalid = || InvalidDuration {
            given: self.0.clone(),
        };
        let parsed: kube::core::Duration = self.0.parse().map_err(|_| invalid())?;
        if parsed.is_negative() {
            return Err(invalid());
        }
        Ok(parsed.into())
    }
}

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not a duration: write it like 30s, 5m or 1h30m")]
pub struct InvalidDuration {
    given: String,
}

impl From<&str> for Duration {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        let seconds = |text: &str| Duration::from(text).get().map(|d| d.as_secs());
        assert_eq!(seconds("30s"), Ok(30));
        assert_eq!(seconds("1h30m"), Ok(5400));
        assert_eq!(seconds("1.5m"), Ok(90));
        for wrong in ["", "30", "s", "-5s", "1 m", "forever"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
