//! What is kept of a live object: enough to tell drift from noise, and no content.
//!
//! When anyone changes or removes a field that we own, the API server takes that field out of our entry in
//! `managedFields`. A digest of our entry, kept from the answer to our last apply, therefore shows drift without a look
//! at the object itself.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    ManagedFieldsEntry, ObjectMeta, OwnerReference,
};

use super::ownership::is_ours;
use crate::api::digest::Digest;

/// A live object's metadata, reduced.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The object's uid.
    pub uid: String,
    /// Its resource version as a number: within one cluster a larger one is newer.
    pub resource_version: u64,
    /// Every owner.
    pub owners: Vec<OwnerReference>,
    /// Its finalizers.
    pub finalizers: Vec<String>,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Our entry, if there is one.
    pub stamp: Option<Stamp>,
}

/// Our entry in `managedFields`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// The first twelve hex digits of the digest of the fields we own.
    pub fields: String,
    /// When the entry last changed, to the second.
    pub time: i64,
}

impl Seen {
    /// Reduces metadata to what `field_manager` needs to know.
    pub fn of(meta: &ObjectMeta, field_manager: &str) -> Self {
        Self {
            uid: meta.uid.clone().unwrap_or_default(),
            resource_version: meta
                .resource_version
                .as_deref()
                .and_then(|version| version.parse().ok())
                .unwrap_or(0),
            owners: meta.owner_references.clone().unwrap_or_default(),
            finalizers: meta.finalizers.clone().unwrap_or_default(),
            is_deleting: meta.deletion_timestamp.is_some(),
            stamp: meta
                .managed_fields
                .iter()
                .flatten()
                .find(|entry| is_ours(entry, field_manager))
                .map(Stamp::of),
        }
    }
}

impl Stamp {
    fn of(entry: &ManagedFieldsEntry) -> Self {
        let fields = entry
            .fields_v1
            .as_ref()
            .map_or(Digest::of_bytes(b""), |fields| Digest::of_json(&fields.0));
        Self {
            fields: fields.short(),
            time: entry.time.as_ref().map_or(0, |time| time.0.as_second()),
        }
    }
}
