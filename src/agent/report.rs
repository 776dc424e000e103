//! The only place that writes works on the hub: their finalizer and their status.

use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::api::{
    wellknown::{AGENT_FIELD_MANAGER, WORK_FINALIZER},
    work::{spec::ManifestWork, status::ManifestWorkStatus},
};

/// The works of one cluster on the hub.
#[derive(Clone)]
pub struct Hub {
    works: Api<ManifestWork>,
}

impl Hub {
    /// The works of the namespace that `works` is limited to.
    pub fn new(works: Api<ManifestWork>) -> Self {
        Self { works }
    }

    /// Puts our finalizer on a work: from here on it cannot vanish before its objects do.
    pub async fn add_finalizer(&self, work: &ManifestWork) -> Result<ManifestWork, kube::Error> {
        let mut finalizers = work.finalizers().to_vec();
        finalizers.push(WORK_FINALIZER.to_owned());
        self.set_finalizers(work, &finalizers).await
    }

    /// Takes our finalizer off a work: its objects are gone.
    pub async fn remove_finalizer(&self, work: &ManifestWork) -> Result<ManifestWork, kube::Error> {
        let mut finalizers = work.finalizers().to_vec();
        finalizers.retain(|name| name != WORK_FINALIZER);
        self.set_finalizers(work, &finalizers).await
    }

    /// Replaces a work's status. Merge patches cannot remove what they do not name, and every list in a status is named
    /// whole, so what is sent is what is there afterwards.
    pub async fn write_status(
        &self,
        work: &ManifestWork,
        status: &ManifestWorkStatus,
    ) -> Result<ManifestWork, kube::Error> {
        let patch = json!({"metadata": guard(work), "status": status});
        self.works
            .patch_status(&work.name_any(), &params(), &Patch::Merge(patch))
            .await
    }

    async fn set_finalizers(
        &self,
        work: &ManifestWork,
        finalizers: &[String],
    ) -> Result<ManifestWork, kube::Error> {
        let mut metadata = guard(work);
        metadata["finalizers"] = json!(finalizers);
        let patch = json!({ "metadata": metadata });
        self.works
            .patch(&work.name_any(), &params(), &Patch::Merge(patch))
            .await
    }
}

/// A write that is based on something else than what is there now is refused by the hub, and comes again.
fn guard(work: &ManifestWork) -> serde_json::Value {
    json!({"uid": work.metadata.uid, "resourceVersion": work.metadata.resource_version})
}

fn params() -> PatchParams {
    PatchParams {
        field_manager: Some(AGENT_FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    }
}
