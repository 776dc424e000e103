//! Which objects other hubs' agents hold on this spoke.
//!
//! All agents write under one field manager, and one field manager drops what it leaves out: whoever applies an object
//! must name the references of everyone who holds it, also of those it knows only from their records.

use std::collections::{BTreeMap, HashMap};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;

use super::{records, state::reference};
use crate::{api::work::applied::AppliedManifestWork, spoke::cluster::ObjectKey};

/// The records of other hubs, by object.
#[derive(Default)]
pub struct Foreign {
    holders: HashMap<ObjectKey, BTreeMap<String, OwnerReference>>,
}

impl Foreign {
    /// Takes a record in, in place of what it said before.
    pub fn put(&mut self, record: &AppliedManifestWork) {
        self.remove(&record.name_any());
        for key in records::read(record).into_keys() {
            self.holders
                .entry(key)
                .or_default()
                .insert(record.name_any(), reference(record));
        }
    }

    /// Forgets a record.
    pub fn remove(&mut self, name: &str) {
        self.holders.retain(|_, holders| {
            holders.remove(name);
            !holders.is_empty()
        });
    }

    /// Who holds an object.
    pub fn holders(&self, key: &ObjectKey) -> Vec<OwnerReference> {
        self.holders
            .get(key)
            .map(|holders| holders.values().cloned().collect())
            .unwrap_or_default()
    }
}
