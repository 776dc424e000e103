//! What is kept of a live object: enough to tell drift from noise, and no content.
//!
//! When anyone changes or removes a field that we own, the API server takes that field out of our entry in
//! `managedFields`. A digest of our entry, kept from the answer to our last apply, therefore shows drift without a look
//! at the object itself.

use std::{
    borrow::Cow,
    hash::{DefaultHasher, Hash, Hasher},
    ops::Deref,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    ManagedFieldsEntry, ObjectMeta, OwnerReference,
};

use super::ownership::{has_no_subresource, is_apply};
use crate::api::{digest::Digest, wellknown::AGENT_FIELD_MANAGER};

/// A live object's metadata, reduced.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The object's uid.
    pub uid: String,
    /// Its resource version as a number: within one cluster a larger one is newer.
    pub resource_version: u64,
    /// The generation, for kinds that have one.
    pub generation: Option<i64>,
    /// Every owner.
    pub owners: Vec<OwnerReference>,
    /// Its finalizers.
    pub finalizers: Vec<String>,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// The entries that may be ours.
    entries: Vec<Entry>,
    /// The entries of everyone else who may have changed the content, as one number.
    others: u64,
    /// When the last of them changed.
    others_time: i64,
}

/// Our entry in `managedFields`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The beginning of the digest of the fields we own.
    pub fields: u64,
    /// When the entry last changed, to the second.
    pub time: i64,
}

/// A name by which fields are owned. Nearly always it is the one that needs no memory of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldManager(Cow<'static, str>);

impl From<&str> for FieldManager {
    fn from(name: &str) -> Self {
        Self(if name == AGENT_FIELD_MANAGER {
            Cow::Borrowed(AGENT_FIELD_MANAGER)
        } else {
            Cow::Owned(name.to_owned())
        })
    }
}

impl Deref for FieldManager {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// Whose entries are ours.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Author {
    /// The field manager.
    pub manager: FieldManager,
    /// Whether what it wrote without applying counts, too: Pods are changed by patches, and some kinds only whole.
    pub is_patching: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    manager: FieldManager,
    is_apply: bool,
    stamp: Stamp,
}

impl Seen {
    /// Reduces metadata. Every field manager of ours begins with the same word, so the entries that may be ours are
    /// known without asking whose object it is.
    pub fn of(meta: &ObjectMeta) -> Self {
        let written = meta.managed_fields.iter().flatten();
        let entries = written.filter(|entry| is_candidate(entry)).map(Entry::of);
        let generation = meta.generation.filter(|generation| *generation > 0);
        // Where there is a generation, it tells a new spec from a new status, so whoever reports status is no suspect.
        let is_innocent = |entry: &ManagedFieldsEntry| generation.is_some() && is_status(entry);
        let others: Vec<&ManagedFieldsEntry> = meta
            .managed_fields
            .iter()
            .flatten()
            .filter(|entry| !is_candidate(entry) && !is_innocent(entry))
            .collect();
        Self {
            uid: meta.uid.clone().unwrap_or_default(),
            resource_version: meta
                .resource_version
                .as_deref()
                .and_then(|version| version.parse().ok())
                .unwrap_or(0),
            generation,
            owners: meta.owner_references.clone().unwrap_or_default(),
            finalizers: meta.finalizers.clone().unwrap_or_default(),
            is_deleting: meta.deletion_timestamp.is_some(),
            entries: entries.collect(),
            others: digest_of(&others),
            others_time: others.into_iter().map(seconds).max().unwrap_or(0),
        }
    }

    /// The stamp of an author, if it has written anything that is still its own.
    pub fn stamp(&self, author: &Author) -> Option<Stamp> {
        let mut entries = self
            .entries
            .iter()
            .filter(|entry| entry.manager == author.manager)
            .filter(|entry| entry.is_apply || author.is_patching);
        let mut stamp = entries.next()?.stamp;
        for entry in entries {
            let both = [stamp.fields, entry.stamp.fields].map(u64::to_be_bytes);
            stamp.fields = Digest::of_bytes(both.as_flattened()).number();
            stamp.time = stamp.time.max(entry.stamp.time);
        }
        Some(stamp)
    }

    /// Whether nobody but the author can have written between two looks at one object: the object has changed, its
    /// content with it as far as its kind can tell, and no other entry has, nor can have within one second.
    pub fn is_by_nobody_but(&self, author: &Author, before: &Self) -> bool {
        let others = |seen: &Self| -> Vec<Entry> {
            let entries = seen.entries.iter();
            let foreign = entries.filter(|entry| entry.manager != author.manager);
            foreign.cloned().collect()
        };
        let ours = self.stamp(author).map_or(0, |stamp| stamp.time);
        self.resource_version > before.resource_version
            && self.others == before.others
            && self.others_time < ours
            && others(self) == others(before)
            && self.owners == before.owners
            && self.finalizers == before.finalizers
            && self.is_deleting == before.is_deleting
            && self
                .generation
                .is_none_or(|now| before.generation.is_some_and(|then| then < now))
    }
}

impl Author {
    /// A field manager that applies.
    pub fn applying(manager: &str) -> Self {
        Self {
            manager: manager.into(),
            is_patching: false,
        }
    }
}

impl Entry {
    fn of(entry: &ManagedFieldsEntry) -> Self {
        let fields = entry
            .fields_v1
            .as_ref()
            .map_or(Digest::of_bytes(b""), |fields| Digest::of_json(&fields.0));
        Self {
            manager: entry.manager.as_deref().unwrap_or_default().into(),
            is_apply: is_apply(entry),
            stamp: Stamp {
                fields: fields.number(),
                time: seconds(entry),
            },
        }
    }
}

/// Whether an entry may be ours.
fn is_candidate(entry: &ManagedFieldsEntry) -> bool {
    let manager = entry.manager.as_deref().unwrap_or_default();
    manager.starts_with(AGENT_FIELD_MANAGER) && has_no_subresource(entry)
}

/// Whether an entry is about the status of a kind that keeps it apart from the rest.
fn is_status(entry: &ManagedFieldsEntry) -> bool {
    entry.subresource.as_deref() == Some("status")
}

/// A number that changes when any of the entries does. Only its equality matters, and only within this process.
fn digest_of(entries: &[&ManagedFieldsEntry]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for entry in entries {
        (&entry.manager, &entry.operation, &entry.subresource).hash(&mut hasher);
        seconds(entry).hash(&mut hasher);
        if let Some(fields) = &entry.fields_v1 {
            fields.0.to_string().hash(&mut hasher);
        }
    }
    hasher.finish()
}

fn seconds(entry: &ManagedFieldsEntry) -> i64 {
    entry.time.as_ref().map_or(0, |time| time.0.as_second())
}
