//! What the work's status said before, found again after an edit of its spec.

use std::collections::HashMap;

use super::condition::{COMPLETE, is_true};
use crate::api::work::status::{ManifestCondition, ManifestWorkStatus, ResourceMeta};

/// Group, version, kind, resource, namespace and name: all of a manifest's identity but its position.
type Identity<'a> = [&'a str; 6];

/// The entries of a stored status, by manifest.
#[derive(Debug, Default)]
pub struct Stored<'a> {
    entries: HashMap<Identity<'a>, Vec<&'a ManifestCondition>>,
}

impl<'a> Stored<'a> {
    /// Indexes a status; a work without one has no entries.
    pub fn new(status: Option<&'a ManifestWorkStatus>) -> Self {
        let mut entries: HashMap<_, Vec<_>> = HashMap::new();
        for entry in status.map(manifests).unwrap_or_default() {
            entries
                .entry(identity(&entry.resource_meta))
                .or_default()
                .push(entry);
        }
        Self { entries }
    }

    /// Finds the entry a manifest had before: at the same position, else the only one of the same identity.
    pub fn find(&self, meta: &ResourceMeta) -> Option<&'a ManifestCondition> {
        let identity = identity(meta);
        let candidates = self.entries.get(&identity)?;
        let same_place = candidates
            .iter()
            .rfind(|entry| entry.resource_meta.ordinal == meta.ordinal);
        // Manifests that cannot be read all look alike; away from its place, none of them can be recognized.
        let moved = match candidates.as_slice() {
            [only] if identity != [""; 6] => Some(only),
            _ => None,
        };
        same_place.or(moved).copied()
    }

    /// Answers whether a manifest is frozen: it was complete once, and is neither updated nor repaired any more.
    pub fn is_complete(&self, meta: &ResourceMeta) -> bool {
        self.find(meta)
            .is_some_and(|entry| is_true(&entry.conditions.0, COMPLETE))
    }
}

pub(super) fn manifests(status: &ManifestWorkStatus) -> &[ManifestCondition] {
    status
        .resource_status
        .as_ref()
        .and_then(|resources| resources.manifests.as_deref())
        .unwrap_or_default()
}

/// An absent part and an empty one are the same: Go writes one for the other.
pub(super) fn identity(meta: &ResourceMeta) -> Identity<'_> {
    [
        &meta.group,
        &meta.version,
        &meta.kind,
        &meta.resource,
        &meta.namespace,
        &meta.name,
    ]
    .map(|part| part.as_deref().unwrap_or_default())
}
