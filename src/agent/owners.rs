//! Who owns an object: the one place that knows who shares what.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::{
    desired::Desired,
    index::Sight,
    removal::is_applied_work,
    state::{Agent, reference},
};
use crate::api::{names::WorkName, work::applied::AppliedManifestWork};

impl Agent {
    /// Every AppliedManifestWork that is to own an object. One field manager drops what it leaves out, so the references
    /// of all who share the object are in every apply.
    pub(super) fn owners(
        &self,
        work: &str,
        desired: &Desired<'_>,
        sight: &Sight,
        applied_work: &AppliedManifestWork,
    ) -> Vec<OwnerReference> {
        let mut owners = Vec::new();
        if desired.is_owned {
            owners.push(reference(applied_work));
        }
        for sharer in self.index().sharers(work, &desired.key) {
            let Ok(name) = sharer.parse::<WorkName>() else {
                continue;
            };
            let record = self
                .applied_works()
                .get(&self.identity.hub.applied_work_name(&name));
            owners.extend(record.as_deref().map(reference));
        }
        let of_this_hub =
            |owner: &OwnerReference| owner.name.starts_with(&self.identity.hub.to_string());
        let mut foreign = self.foreign().holders(&desired.key);
        if let Sight::Present(seen) = sight {
            foreign.extend(
                seen.owners
                    .iter()
                    .filter(|owner| is_applied_work(owner))
                    .cloned(),
            );
        }
        for owner in foreign {
            if !of_this_hub(&owner) && !owners.iter().any(|known| known.uid == owner.uid) {
                owners.push(owner);
            }
        }
        owners
    }
}
