//! One pass over one work: observe, decide, write, record, report.

use std::sync::Arc;

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::ResourceExt;

use super::{
    apply::Outcome,
    desired::{key_of, wanted_kind},
    records::{self, Records},
    removal::untracked,
    state::{Agent, Error, Key, hub_error},
};
use crate::{
    api::{
        manifest::ObjectId,
        names::WorkName,
        wellknown::WORK_FINALIZER,
        work::{applied::AppliedManifestWork, spec::ManifestWork, status::ManifestWorkStatus},
    },
    runtime::queue::Wake,
    status::{self, Finding},
};

impl Agent {
    /// Brings whatever a key stands for as far as it can be brought now.
    pub async fn pass(&self, key: &Key) -> Result<(), Error> {
        match key {
            Key::Work(name) => self.pass_over_work(name).await,
            Key::Record(name) => self.look_after(name).await,
        }
    }

    async fn pass_over_work(&self, name: &str) -> Result<(), Error> {
        let record_name = self
            .identity
            .hub
            .applied_work_name(&name.parse::<WorkName>()?);
        let work = self.works().get(name);
        let applied_work = self.applied_works().get(&record_name);
        match (work, applied_work) {
            (Some(work), applied_work) if work.metadata.deletion_timestamp.is_some() => {
                self.remove(&work, applied_work).await
            }
            (_, Some(applied_work)) if applied_work.metadata.deletion_timestamp.is_some() => {
                self.clean(name, &applied_work).await.map(drop)
            }
            (Some(work), applied_work) => self.keep(&work, applied_work, &record_name).await,
            (None, _) => Ok(()),
        }
    }

    /// Applies what a live work asks for.
    async fn keep(
        &self,
        work: &Arc<ManifestWork>,
        applied_work: Option<Arc<AppliedManifestWork>>,
        record_name: &str,
    ) -> Result<(), Error> {
        let work = self.with_finalizer(work).await?;
        let ids: Vec<Option<ObjectId>> = work
            .spec
            .manifests()
            .iter()
            .map(|manifest| manifest.id().ok())
            .collect();
        let before = applied_work
            .as_deref()
            .map(records::read)
            .unwrap_or_default();
        let planned = self.planned(&ids, &before).await;
        let applied_work = self
            .with_intent(&work, applied_work, record_name, &planned)
            .await?;

        let mut outcomes = self.apply_all(&work, &ids, &applied_work, &planned).await;
        if outcomes.iter().any(Option::is_none) {
            // Something is on record and not yet in sight; the watch that shows it will wake this work.
            return Ok(());
        }
        let outcomes: Vec<Outcome> = outcomes.drain(..).flatten().collect();
        let was_complete = status::is_complete(work.status.as_ref());
        let reported = self.report(&work, &outcomes).await?;
        if was_complete {
            // A completed work is left alone, until its rules say otherwise.
            if !status::is_complete(Some(&reported)) {
                self.queue
                    .add((), Key::Work(work.name_any()), Wake::Now)
                    .await;
            }
            return Ok(());
        }
        let left = self
            .prune(
                &work.name_any(),
                &ids,
                &outcomes,
                &applied_work,
                &before,
                &planned,
            )
            .await?;

        let failed = outcomes.iter().filter(|outcome| outcome.is_failed).count();
        match (failed, left) {
            (0, 0) => Ok(()),
            (0, left) => Err(Error::StillThere(left)),
            (failed, _) => Err(Error::Manifests {
                failed,
                total: outcomes.len(),
            }),
        }
    }

    /// Removes what is certainly no longer asked for, and records what is there now. Returns how many objects are still
    /// being deleted; those stay on record.
    async fn prune(
        &self,
        work: &str,
        ids: &[Option<ObjectId>],
        outcomes: &[Outcome],
        applied_work: &AppliedManifestWork,
        before: &Records,
        planned: &Records,
    ) -> Result<usize, Error> {
        let mut after: Records = outcomes
            .iter()
            .filter_map(|outcome| outcome.record.clone())
            .collect();
        let unplaced: Vec<Option<ObjectId>> = ids
            .iter()
            .zip(outcomes)
            .filter(|(_, outcome)| outcome.record.is_none())
            .map(|(id, _)| id.clone())
            .collect();
        let gone = untracked(planned, &after, &unplaced);
        let kept = planned.iter().filter(|(key, _)| !gone.contains_key(key));
        for (key, record) in kept {
            after.entry(key.clone()).or_insert_with(|| record.clone());
        }
        let removed = self.remove_objects(work, applied_work, gone.clone()).await;
        let left = removed.as_ref().unwrap_or(&gone);
        after.extend(
            left.iter()
                .map(|(key, record)| (key.clone(), record.clone())),
        );
        self.record(applied_work, before, &after).await?;
        removed.map(|left| left.len())
    }

    /// Nothing is ever applied before the finalizer is there.
    async fn with_finalizer(&self, work: &Arc<ManifestWork>) -> Result<Arc<ManifestWork>, Error> {
        if work.finalizers().iter().any(|name| name == WORK_FINALIZER) {
            return Ok(Arc::clone(work));
        }
        let answer = self
            .hub
            .add_finalizer(work)
            .await
            .map_err(hub_error("add the finalizer"))?;
        self.works().put(answer.clone());
        Ok(Arc::new(answer))
    }

    /// The objects that this pass may touch: those on record, and those asked for whose kind is known.
    async fn planned(&self, ids: &[Option<ObjectId>], before: &Records) -> Records {
        let mut planned = before.clone();
        for id in ids.iter().flatten() {
            if let Ok(kind) = self.spoke.kinds().find(&wanted_kind(id)).await {
                let record = planned.entry(key_of(id, &kind)).or_default();
                record.version.clone_from(&id.version);
            }
        }
        planned
    }

    async fn report(
        &self,
        work: &ManifestWork,
        outcomes: &[Outcome],
    ) -> Result<ManifestWorkStatus, Error> {
        let findings: Vec<Finding> = outcomes
            .iter()
            .map(|outcome| outcome.finding.clone())
            .collect();
        let generation = work.metadata.generation.unwrap_or(0);
        let new = status::work_status(
            work.status.as_ref(),
            generation,
            &findings,
            &Time(Timestamp::now()),
        );
        if !status::differs(work.status.as_ref(), &new) {
            return Ok(new);
        }
        let answer = self
            .hub
            .write_status(work, &new)
            .await
            .map_err(hub_error("write the status"))?;
        self.works().put(answer);
        Ok(new)
    }
}
