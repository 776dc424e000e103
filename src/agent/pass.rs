//! One pass over one work: observe, decide, write, record, report.

use std::sync::Arc;

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::ResourceExt;

use super::{
    announce,
    apply::{Outcome, Round},
    desired::{key_of, wanted_kind},
    records::{self, Records},
    removal::untracked,
    size,
    state::{Agent, Error, Key, hub_error},
    unwritten::Next,
};
use crate::{
    api::{
        manifest::ObjectId,
        names::{InvalidName, WorkName},
        wellknown::WORK_FINALIZER,
        work::{applied::AppliedManifestWork, spec::ManifestWork, status::ManifestWorkStatus},
    },
    runtime::queue::Wake,
    status::{self, Finding, Stored},
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
        let work = self.works().get(name);
        let record_name = match name.parse::<WorkName>() {
            Ok(name) => self.identity.hub.applied_work_name(&name),
            Err(error) => return self.refuse_name(work, &error).await,
        };
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
        let manifests = work.spec.manifests().iter();
        let ids: Vec<Option<ObjectId>> = manifests.map(|manifest| manifest.id().ok()).collect();
        let before = applied_work
            .as_deref()
            .map(records::read)
            .unwrap_or_default();
        let planned = self.planned(&work.name_any(), &ids, &before).await;
        if let Some(refusal) = size::refusal(&work, &ids, &planned) {
            return self.refuse(&work, &refusal).await;
        }
        let applied_work = self
            .with_intent(&work, applied_work, record_name, &planned)
            .await?;

        let round = Round {
            work: &work,
            name: work.name_any(),
            stored: Stored::new(work.status.as_ref()),
            ids: &ids,
            applied_work: &applied_work,
            planned: &planned,
        };
        let mut outcomes = self.apply_all(&round).await;
        if outcomes.iter().any(Option::is_none) {
            // Something is on record and not yet in sight; the watch that shows it will wake this work.
            return Ok(());
        }
        let outcomes: Vec<Outcome> = outcomes.drain(..).flatten().collect();
        self.wait_for(&round.name, &outcomes);
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
        let left = self.prune(&round, &outcomes, &before).await?;

        let failures = outcomes.iter().flat_map(|outcome| &outcome.failure);
        let next = failures
            .clone()
            .map(|failure| failure.next)
            .reduce(Next::and);
        match (next, left) {
            (None, 0) => Ok(()),
            (None | Some(Next::Never), left) if left > 0 => Err(Error::StillThere(left)),
            (next, _) => Err(Error::Manifests {
                failed: failures.count(),
                total: outcomes.len(),
                next: next.unwrap_or(Next::Never),
            }),
        }
    }

    /// Notes what has to happen on the spoke before what failed can go on.
    fn wait_for(&self, work: &str, outcomes: &[Outcome]) {
        let failures = outcomes
            .iter()
            .filter_map(|outcome| outcome.failure.as_ref());
        let blockers = failures.filter_map(|failure| failure.blocker.clone());
        if self.index().block(work, blockers.collect()) {
            self.kinds_changed.notify_one();
        }
    }

    /// Says that nothing of a work is applied, and why. What is on the spoke from before stays as it is.
    async fn refuse(&self, work: &ManifestWork, refusal: &str) -> Result<(), Error> {
        let generation = work.metadata.generation.unwrap_or(0);
        let now = Time(Timestamp::now());
        let new = status::refused(work.status.as_ref(), generation, refusal, &now);
        self.write_status(work, &new).await?;
        Err(Error::Unservable)
    }

    /// A work whose name leaves no room for its record's is never applied, so there is nothing to clean up either.
    async fn refuse_name(
        &self,
        work: Option<Arc<ManifestWork>>,
        error: &InvalidName,
    ) -> Result<(), Error> {
        match work {
            Some(work) if work.metadata.deletion_timestamp.is_some() => {
                self.remove(&work, None).await
            }
            Some(work) => self.refuse(&work, &error.to_string()).await,
            None => Ok(()),
        }
    }

    /// Removes what is certainly no longer asked for, and records what is there now. Returns how many objects are still
    /// being deleted; those stay on record.
    async fn prune(
        &self,
        round: &Round<'_>,
        outcomes: &[Outcome],
        before: &Records,
    ) -> Result<usize, Error> {
        let Round {
            ids,
            applied_work,
            planned,
            ..
        } = round;
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
        let removed = self
            .remove_objects(&round.name, applied_work, gone.clone())
            .await;
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
    async fn planned(&self, work: &str, ids: &[Option<ObjectId>], before: &Records) -> Records {
        let mut planned = before.clone();
        for id in ids.iter().flatten() {
            self.step(work);
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
        self.write_status(work, &new).await?;
        Ok(new)
    }

    /// Tells the hub, if there is anything to tell.
    async fn write_status(
        &self,
        work: &ManifestWork,
        new: &ManifestWorkStatus,
    ) -> Result<(), Error> {
        if status::differs(work.status.as_ref(), new) {
            let answer = self.hub.write_status(work, new).await;
            let answer = answer.map_err(hub_error("write the status"))?;
            self.works().put(answer);
            self.announcer
                .tell(work, announce::decide(work.status.as_ref(), new));
        }
        Ok(())
    }
}
