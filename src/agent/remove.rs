//! Takes away what a work no longer asks for, and works that are gone.

use std::{collections::BTreeSet, sync::Arc};

use futures::{StreamExt, stream};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, Preconditions},
};
use serde_json::json;

use super::{
    index::{Claim, Sight, Watching},
    records::{self, Records},
    removal::{Removal, removal},
    state::{Agent, Error, hub_error, params, spoke_error},
};
use crate::{
    api::{
        wellknown::{AGENT_FIELD_MANAGER, APPLIED_WORK_FINALIZER, WORK_FINALIZER},
        work::{applied::AppliedManifestWork, spec::ManifestWork},
    },
    spoke::{
        cluster::ObjectKey,
        kinds::Kind,
        seen::{Author, Seen},
    },
    status::{self, order::Rank},
};

/// Deletions of one rank that are under way together.
const TOGETHER: usize = 8;

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
        let Some(mut applied_work) = applied_work else {
            return self.let_go(work).await;
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
            match self.delete_record(&applied_work).await? {
                Some(deleting) => applied_work = Arc::new(deleting),
                None => return Ok(()),
            }
        }
        if self.clean(&name, &applied_work).await? {
            let work = self.works().get(&name);
            return match work {
                Some(work) => self.let_go(&work).await,
                None => Ok(()),
            };
        }
        Ok(())
    }

    /// Takes our finalizer off a work whose record is gone.
    async fn let_go(&self, work: &ManifestWork) -> Result<(), Error> {
        match self.hub.remove_finalizer(work).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            answer => {
                let answer = answer.map_err(hub_error("remove the finalizer"))?;
                self.works().refresh(answer);
                Ok(())
            }
        }
    }

    /// Deletes a record. Its finalizer keeps it until everything it holds is gone: returns it as it is then, or nothing
    /// when there is nothing to empty.
    pub(super) async fn delete_record(
        &self,
        record: &AppliedManifestWork,
    ) -> Result<Option<AppliedManifestWork>, Error> {
        let name = record.name_any();
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: record.metadata.uid.clone(),
                ..Preconditions::default()
            }),
            ..DeleteParams::default()
        };
        match self.applied.delete(&name, &params).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            answer => {
                let answer =
                    answer.map_err(spoke_error(format!("delete AppliedManifestWork {name}")))?;
                let deleting = answer.left();
                if let Some(deleting) = &deleting {
                    self.applied_works().refresh(deleting.clone());
                }
                Ok(deleting)
            }
        }
    }

    /// Empties a record that is being deleted, then lets it go. Returns whether it is gone.
    pub(super) async fn clean(
        &self,
        work: &str,
        applied_work: &AppliedManifestWork,
    ) -> Result<bool, Error> {
        if !applied_work
            .finalizers()
            .iter()
            .any(|name| name == APPLIED_WORK_FINALIZER)
        {
            return Ok(false);
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
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(true),
            answer => {
                let answer =
                    answer.map_err(spoke_error(format!("release AppliedManifestWork {name}")))?;
                let is_gone = answer.finalizers().is_empty();
                // Without its finalizer in sight, nobody empties it a second time.
                self.applied_works().refresh(answer);
                Ok(is_gone)
            }
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
            let (records_now, uid) = (&records, uid.as_str());
            let removed: Vec<Result<bool, Error>> = stream::iter(0..rank.len())
                .map(|position| async move {
                    let (_, key, kind) = &rank[position];
                    let recorded = records_now
                        .get(key)
                        .and_then(|record| record.uid.as_deref());
                    self.remove_object(work, kind, key, uid, recorded).await
                })
                .buffered(TOGETHER)
                .collect()
                .await;
            let mut pending = 0;
            let mut failure = None;
            for ((_, key, kind), is_gone) in rank.iter().zip(removed) {
                self.step(work);
                match is_gone {
                    Ok(true) => {
                        records.remove(key);
                        self.release(work, key);
                    }
                    Ok(false) => {
                        pending += 1;
                        self.hold_until_gone(work, key, kind);
                    }
                    Err(error) => failure = Some(error),
                }
            }
            if let Some(error) = failure {
                return Err(error);
            }
            if pending > 0 {
                break;
            }
        }
        Ok(records)
    }

    fn hold_until_gone(&self, work: &str, key: &ObjectKey, kind: &Kind) {
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

    fn release(&self, work: &str, key: &ObjectKey) {
        if self.index().release(work, key) {
            self.kinds_changed.notify_one();
        }
    }

    /// Removes one object. Returns whether nothing of it is left to wait for.
    async fn remove_object(
        &self,
        work: &str,
        kind: &Kind,
        key: &ObjectKey,
        applied_work: &str,
        recorded: Option<&str>,
    ) -> Result<bool, Error> {
        let fail = |source| Error::Spoke {
            action: format!("remove {} {}", key.resource, key.name),
            source,
        };
        // What a watch shows need not be read: the version makes sure that it is still so.
        let view = self.index().view(work, key);
        if let Sight::Present(seen) = &view.sight
            && view.watching == Watching::UpToDate
            && removal(Some(seen), applied_work, recorded) == Removal::Delete
        {
            let version = Some(seen.resource_version);
            match self.spoke.delete(kind, key, &seen.uid, version).await {
                Err(error) if error.is_not_found() => return Ok(true),
                Err(error) if error.is_conflict() => {}
                answer => return answer.map_err(fail),
            }
        }
        let Some(live) = self.spoke.look(kind, key).await.map_err(fail)? else {
            return Ok(true);
        };
        let seen = Seen::of(&live);
        match removal(Some(&seen), applied_work, recorded) {
            Removal::Forget => Ok(true),
            Removal::Pending => Ok(false),
            Removal::Release(owners) => {
                let answer = self
                    .spoke
                    .set_owners(kind, key, &live, &owners, AGENT_FIELD_MANAGER)
                    .await;
                answer.map(|_| true).map_err(fail)
            }
            Removal::Delete => match self.spoke.delete(kind, key, &seen.uid, None).await {
                Err(error) if error.is_not_found() || error.is_conflict() => Ok(true),
                answer => answer.map_err(fail),
            },
        }
    }
}
