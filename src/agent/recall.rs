//! What is on record is held again before anything else happens.

use kube::ResourceExt;

use super::{
    desired::{Desired, wanted_kind},
    index::Claim,
    records,
    state::Agent,
};
use crate::api::work::spec::ManifestWork;

impl Agent {
    /// Holds every object that is both on record and asked for.
    ///
    /// The list with which a watch begins says something only about what is held. Objects whose works have their first
    /// turn after it would have to be read one by one.
    pub(super) async fn recall(&self) {
        let names = self.works().names();
        for name in names {
            let work = self.works().get(&name);
            if let Some(work) = work.filter(|work| work.metadata.deletion_timestamp.is_none()) {
                self.recall_work(&work).await;
            }
        }
        self.kinds_changed.notify_one();
    }

    async fn recall_work(&self, work: &ManifestWork) {
        let name = work.name_any();
        let record = self
            .record_of(&name)
            .and_then(|record| self.applied_works().get(&record));
        let Some(record) = record else {
            return;
        };
        let records = records::read(&record);
        for manifest in work.spec.manifests() {
            let Ok(id) = manifest.id() else {
                continue;
            };
            // What cannot be found now is left to the work's turn, which says why.
            let Ok(kind) = self.spoke.kinds().find(&wanted_kind(&id)).await else {
                continue;
            };
            let desired = Desired::new(&work.spec, manifest, &id, kind);
            let Some(record) = records.get(&desired.key) else {
                continue;
            };
            let claim = Claim {
                author: desired.author(),
                mark: record.mark.as_ref(),
                is_owner: desired.is_owned,
                is_observer: desired.is_observed(),
            };
            self.index()
                .hold(&name, &desired.key, &desired.kind, &claim);
        }
    }
}
