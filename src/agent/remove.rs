//! Takes away what a work no longer asks for, and works that are gone.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, Preconditions},
};
use serde_json::json;

use super::{
    index::Claim,
    records::{self, Records},
    removal::{Removal, removal},
    state::{Agent, Error, hub_error, params, spoke_error},
};
use crate::{
    api::{
        wellknown::{AGENT_FIELD_MANAGER, APPLIED_WORK_FINALIZER, WORK_FINALIZER},
        work::{applied::AppliedManifestWork, spec::ManifestWork},
    },
    spoke::{cluster::ObjectKey, kinds::Kind, seen::Author},
    status::{self, order::Rank},
};

impl Agent {
    /// Lets a deleted work go, once everything it put on the spoke is gone.
    pub(super) async fn remove(
        &self,
        work: &ManifestWork,
        applied_work: Option<Arc<AppliedManifestWork>>,
    ) -> Result<(), Error> {
        if !work.finalizers().iter().any(|name| name == WORK_FINALIZER) {
            return Ok(());
        }
        let name = work.name_any();
        if self.index().block(&name, BTreeSet::new()) {
            self.kinds_changed.notify_one();
        }
        let Some(applied_work) = applied_work else {
            let answer = self.hub.remove_finalizer(work).await;
            return match answer {
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                answer => answer.map(drop).map_err(hub_error("remove the finalizer")),
            };
        };
        if applied_work.metadata.deletion_timestamp.is_none() {
            let generation = work.metadata.generation.unwrap_or(0);
            let new = status::deleting(work.status.as_ref(), generation, &Time(Timestamp::now()));
            if status::differs(work.status.as_ref(), &new) {
                let answer = self
                    .hub
                    .write_status(work, &new)
                    .await
                    .map_err(hub_error("write the status"))?;
                self.works().put(answer);
            }
            return self.delete_record(&applied_work).await;
        }
        self.clean(&name, &applied_work).await
    }

    /// Deletes a record. Its finalizer keeps it until everything it holds is gone.
    pub(super) async fn delete_record(&self, record: &AppliedManifestWork) -> Result<(), Error> {
        let name = record.name_any();
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: record.metadata.uid.clone(),
                ..Preconditions::default()
            }),
            ..DeleteParams::default()
        };
        match self.applied.delete(&name, &params).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            answer => answer
                .map(drop)
                .map_err(spoke_error(format!("delete AppliedManifestWork {name}"))),
        }
    }

    /// Empties a record that is being deleted, then lets it go.
    pub(super) async fn clean(
        &self,
        work: &str,
        applied_work: &AppliedManifestWork,
    ) -> Result<(), Error> {
        if !applied_work
            .finalizers()
            .iter()
            .any(|name| name == APPLIED_WORK_FINALIZER)
        {
            return Ok(());
        }
        let before = records::read(applied_work);
        let pending = self
            .remove_objects(work, applied_work, before.clone())
            .await?;
        if !pending.is_empty() {
            let count = pending.len();
            self.record(applied_work, &before, &pending).await?;
            return Err(Error::StillThere(count));
        }
        let mut finalizers = applied_work.finalizers().to_vec();
        finalizers.retain(|name| name != APPLIED_WORK_FINALIZER);
        let name = applied_work.name_any();
        let patch =
            json!({"metadata": {"uid": applied_work.metadata.uid, "finalizers": finalizers}});
        match self
            .applied
            .patch(&name, &params(), &Patch::Merge(patch))
            .await
        {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            answer => answer
                .map(drop)
                .map_err(spoke_error(format!("release AppliedManifestWork {name}"))),
        }
    }

    /// Deletes objects, the last ranks first, each rank after the one above is gone. Returns those that are not gone yet.
    pub(super) async fn remove_objects(
        &self,
        work: &str,
        applied_work: &AppliedManifestWork,
        mut records: Records,
    ) -> Result<Records, Error> {
        let uid = applied_work.metadata.uid.clone().unwrap_or_default();
        let mut known = Vec::new();
        for (key, record) in &records {
            let kind = self
                .spoke
                .kinds()
                .find_resource(&key.group, &record.version, &key.resource)
                .await;
            match kind.map_err(|source| Error::Spoke {
                action: format!("find {}", key.resource),
                source,
            })? {
                Some(kind) => known.push((Rank::of(Some(&kind.resource.kind)), key.clone(), kind)),
                // The kind is gone, and every object of it with it.
                None => self.release(work, key),
            }
        }
        records.retain(|key, _| known.iter().any(|(_, known, _)| known == key));
        known.sort_by(|(a, ..), (b, ..)| b.cmp(a));
        for rank in known.chunk_by(|(a, ..), (b, ..)| a == b) {
            let mut pending = 0;
            for (_, key, kind) in rank {
                self.step(work);
                let recorded = records.get(key).and_then(|record| record.uid.clone());
                if self
                    .remove_object(kind, key, &uid, recorded.as_deref())
                    .await?
                {
                    records.remove(key);
                    self.release(work, key);
                } else {
                    pending += 1;
                    let claim = Claim {
                        author: Author::applying(AGENT_FIELD_MANAGER),
                        mark: None,
                        is_owner: false,
                        is_observer: false,
                    };
                    if self.index().hold(work, key, kind, &claim) {
                        self.kinds_changed.notify_one();
                    }
                }
            }
            if pending > 0 {
                break;
            }
        }
        Ok(records)
    }

    fn release(&self, work: &str, key: &ObjectKey) {
        if self.index().release(work, key) {
            self.kinds_changed.notify_one();
        }
    }

    /// Removes one object. Returns whether nothing of it is left to wait for.
    async fn remove_object(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        applied_work: &str,
        recorded: Option<&str>,
    ) -> Result<bool, Error> {
        let fail = |source| Error::Spoke {
            action: format!("remove {} {}", key.resource, key.name),
            source,
        };
        let live = self.spoke.look(kind, key).await.map_err(fail)?;
        match (removal(live.as_ref(), applied_work, recorded), live) {
            (Removal::Release(owners), Some(live)) => {
                let answer = self
                    .spoke
                    .set_owners(kind, key, &live, &owners, AGENT_FIELD_MANAGER)
                    .await;
                answer.map(|_| true).map_err(fail)
            }
            (Removal::Delete, Some(live)) => {
                match self
                    .spoke
                    .delete(kind, key, live.uid.as_deref().unwrap_or_default())
                    .await
                {
                    Ok(()) => Ok(false),
                    Err(error) if error.is_not_found() || error.is_conflict() => Ok(true),
                    Err(error) => Err(fail(error)),
                }
            }
            (Removal::Pending, _) => Ok(false),
            _ => Ok(true),
        }
    }
}
