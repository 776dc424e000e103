//! One object as its author wrote it: raw JSON, with an identity and a digest.
//!
//! A parsed tree costs about fourteen times its text and drops nothing only if it keeps everything, so a manifest
//! stays text until the moment it is applied (docs/adr/0002-raw-manifests.md).

use std::{borrow::Cow, fmt, sync::OnceLock};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::digest::Digest;

/// A complete Kubernetes object as raw JSON.
#[derive(Clone)]
pub struct Manifest {
    raw: Box<RawValue>,
    /// Filled when first asked for: most watch events carry manifests nobody compares.
    digest: OnceLock<Digest>,
}

/// What an object is called on its cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    /// API group, empty for core.
    pub group: String,
    /// API version without the group.
    pub version: String,
    /// Kind, e.g. `ConfigMap`.
    pub kind: String,
    /// Namespace as written; empty when the manifest has none.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// Why a manifest does not name an object.
#[derive(Debug, thiserror::Error)]
pub enum InvalidManifest {
    /// Not an object, or a field of the identity has the wrong type.
    #[error(
        "manifest is not a Kubernetes object: write a mapping with apiVersion, kind and metadata.name"
    )]
    NotAnObject(#[source] serde_json::Error),
    /// A part of the identity is absent or empty.
    #[error("manifest has no {field}: set it to name the object")]
    Missing {
        /// Path of the absent field.
        field: &'static str,
    },
}

impl Manifest {
    /// The JSON text, byte for byte as received.
    pub fn as_json(&self) -> &str {
        self.raw.get()
    }

    /// The digest of the value, the same for every spelling of it.
    pub fn digest(&self) -> Digest {
        *self.digest.get_or_init(|| {
            let value = serde_json::from_str(self.raw.get()).expect("RawValue holds valid JSON");
            Digest::of_json(&value)
        })
    }

    /// Reads the object's identity without building a tree of the rest.
    pub fn id(&self) -> Result<ObjectId, InvalidManifest> {
        let head: Head<'_> =
            serde_json::from_str(self.raw.get()).map_err(InvalidManifest::NotAnObject)?;
        let required = |value: Option<Cow<'_, str>>, field| match value {
            Some(text) if !text.is_empty() => Ok(text.into_owned()),
            _ => Err(InvalidManifest::Missing { field }),
        };
        let api_version = required(head.api_version, "apiVersion")?;
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let metadata = head.metadata.unwrap_or_default();
        Ok(ObjectId {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: required(head.kind, "kind")?,
            namespace: metadata.namespace.unwrap_or_default().into_owned(),
            name: required(metadata.name, "metadata.name")?,
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(borrow)]
    api_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    metadata: Option<HeadMetadata<'a>>,
}

#[derive(Deserialize, Default)]
struct HeadMetadata<'a> {
    #[serde(borrow)]
    namespace: Option<Cow<'a, str>>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
}

impl From<Box<RawValue>> for Manifest {
    fn from(raw: Box<RawValue>) -> Self {
        Self {
            raw,
            digest: OnceLock::new(),
        }
    }
}

impl PartialEq for Manifest {
    /// Compares values, not spellings.
    fn eq(&self, other: &Self) -> bool {
        self.raw.get() == other.raw.get() || self.digest() == other.digest()
    }
}

impl fmt::Debug for Manifest {
    /// Prints the identity only: a manifest may be a Secret, and logs are read by more people than clusters are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id() {
            Ok(id) => write!(f, "Manifest({id})"),
            Err(_) => write!(f, "Manifest(invalid, {} bytes)", self.raw.get().len()),
        }
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if self.namespace.is_empty() {
            write!(f, " {}", self.name)
        } else {
            write!(f, " {}/{}", self.namespace, self.name)
        }
    }
}

impl Serialize for Manifest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Manifest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}

impl JsonSchema for Manifest {
    fn schema_name() -> Cow<'static, str> {
        "Manifest".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "A complete Kubernetes object, with apiVersion, kind and metadata.name.",
            "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(json: &str) -> Manifest {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn an_identity_is_read_from_any_spelling() {
        let cases = [
            (
                r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b"}}"#,
                "ConfigMap b/a",
            ),
            (
                r#"{"spec":{"kind":"no"},"metadata":{"labels":{},"name":"w\u0065b"},"kind":"Deployment","apiVersion":"apps/v1"}"#,
                "Deployment.apps web",
            ),
        ];
        for (json, expected) in cases {
            assert_eq!(manifest(json).id().unwrap().to_string(), expected);
        }
    }

    #[test]
    fn what_names_no_object_says_which_field_is_missing() {
        let cases = [
            ("[]", "manifest is not a Kubernetes object"),
            ("\"text\"", "manifest is not a Kubernetes object"),
            (
                r#"{"apiVersion":1,"kind":"A"}"#,
                "manifest is not a Kubernetes object",
            ),
            (
                r#"{"kind":"A","metadata":{"name":"a"}}"#,
                "manifest has no apiVersion",
            ),
            (
                r#"{"apiVersion":"v1","metadata":{"name":"a"}}"#,
                "manifest has no kind",
            ),
            (
                r#"{"apiVersion":"v1","kind":"A"}"#,
                "manifest has no metadata.name",
            ),
            (
                r#"{"apiVersion":"v1","kind":"A","metadata":{"name":""}}"#,
                "manifest has no metadata.name",
            ),
        ];
        for (json, expected) in cases {
            let error = manifest(json).id().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{json}: {error}");
        }
    }

    #[test]
    fn debug_output_never_shows_the_content() {
        let secret = manifest(
            r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"password":"aHVudGVyMg=="}}"#,
        );
        assert_eq!(format!("{secret:?}"), "Manifest(Secret a)");
        assert_eq!(
            format!("{:?}", manifest("[1]")),
            "Manifest(invalid, 3 bytes)"
        );
    }
}
