//! Brings the manifests of one work onto the spoke.

use std::time::Duration;

use futures::{StreamExt, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::ResourceExt;

use super::{
    body::{Circumstances, Unsendable, body},
    desired::{Desired, Strategy, resource_meta, wanted_kind},
    index::{Claim, Sight},
    need::{Need, need},
    records::{Mark, Record, Records},
    removal::is_applied_work,
    state::{Agent, Key, reference},
};
use crate::{
    api::{
        manifest::ObjectId,
        names::WorkName,
        wellknown::AGENT_FIELD_MANAGER,
        work::{applied::AppliedManifestWork, spec::ManifestWork, status::ResourceMeta},
    },
    runtime::queue::Wake,
    spoke::{self, cluster::ObjectKey, kinds::Kind, ownership::fold, seen::Seen},
    status::{self, Applied, Availability, Feedback, Finding, Rules, Stored, order::Rank},
};

/// Writes of one work that are under way together. With the workers' number it bounds what one agent asks of a spoke.
const TOGETHER: usize = 8;

/// How often a write is repeated because another work has come to share its object meanwhile.
const SHARERS: usize = 8;

/// How long a pass waits for a kind whose definition it has just applied.
const DEFINITION: Duration = Duration::from_secs(5);

/// What became of one manifest.
pub(super) struct Outcome {
    pub(super) finding: Finding,
    /// Its object and what is to be recorded of it; absent when the manifest names none.
    pub(super) record: Option<(ObjectKey, Record)>,
    pub(super) is_failed: bool,
}

/// Why a manifest was not written.
#[derive(Debug, thiserror::Error)]
enum Unwritten {
    #[error(transparent)]
    Unsendable(#[from] Unsendable),
    #[error(transparent)]
    Spoke(#[from] spoke::error::Error),
}

impl Agent {
    /// Applies every manifest, rank by rank. `None` stands for one that has to wait for a watch.
    pub(super) async fn apply_all(
        &self,
        work: &ManifestWork,
        ids: &[Option<ObjectId>],
        applied_work: &AppliedManifestWork,
        planned: &Records,
    ) -> Vec<Option<Outcome>> {
        let order =
            status::order::apply_order(ids.iter().map(|id| id.as_ref().map(|id| id.kind.as_str())));
        let mut outcomes: Vec<Option<Outcome>> = ids.iter().map(|_| None).collect();
        let rank = |ordinal: usize| Rank::of(ids[ordinal].as_ref().map(|id| id.kind.as_str()));
        for together in order.chunk_by(|a, b| rank(*a) == rank(*b)) {
            let defines = ids
                .iter()
                .flatten()
                .any(|id| id.kind == "CustomResourceDefinition");
            let mut running = stream::iter(together.iter().copied())
                .map(|ordinal| async move {
                    (
                        ordinal,
                        self.apply_one(
                            work,
                            ordinal,
                            ids[ordinal].as_ref(),
                            applied_work,
                            planned,
                            defines,
                        )
                        .await,
                    )
                })
                .buffer_unordered(TOGETHER);
            while let Some((ordinal, outcome)) = running.next().await {
                outcomes[ordinal] = outcome;
            }
        }
        outcomes
    }

    /// Brings one manifest as far as it can be brought now.
    async fn apply_one(
        &self,
        work: &ManifestWork,
        ordinal: usize,
        id: Option<&ObjectId>,
        applied_work: &AppliedManifestWork,
        planned: &Records,
        work_defines_kinds: bool,
    ) -> Option<Outcome> {
        let manifest = &work.spec.manifests()[ordinal];
        let Some(id) = id else {
            let error = manifest
                .id()
                .err()
                .map_or_else(String::new, |error| error.to_string());
            return Some(unplaced(resource_meta(ordinal, None, None), error));
        };
        let kind = match self.kind_of(id, work_defines_kinds).await {
            Ok(kind) => kind,
            Err(error) => {
                let meta = resource_meta(ordinal, Some(id), None);
                return Some(unplaced(meta, error.to_string()));
            }
        };
        let desired = Desired::new(&work.spec, manifest, id, kind);
        let meta = resource_meta(ordinal, Some(id), Some(&desired.key));
        let name = work.name_any();
        let Some(record) = planned.get(&desired.key).cloned() else {
            // Its kind has appeared during this pass, so the intent does not name it yet; the next pass's will.
            self.queue.add((), Key::Work(name), Wake::Now).await;
            return None;
        };
        self.hold(&name, &desired, &record);

        let asked = desired.asked();
        // What has completed is frozen: not updated, not repaired.
        let is_frozen = status::is_complete(work.status.as_ref())
            || Stored::new(work.status.as_ref()).is_complete(&meta);
        let written = if is_frozen {
            Ok(())
        } else if let Some(refusal) = refusal(work, &desired) {
            Err(refusal)
        } else {
            match self.settle(&name, &desired, &asked, applied_work).await {
                None => return None,
                Some(settled) => settled.map_err(|error| Applied::Failed { error }),
            }
        };
        let record = Record {
            version: id.version.clone(),
            ..record
        };
        let mut outcome = match written {
            Ok(()) => self.outcome(&name, meta, &desired.key, record, &asked),
            Err(error) => {
                let available = self.availability(&desired.kind, &desired.key).await;
                Outcome {
                    finding: finding(meta, error, available),
                    record: Some((desired.key.clone(), record)),
                    is_failed: true,
                }
            }
        };
        self.observe(&desired, &mut outcome.finding).await;
        Some(outcome)
    }

    /// Sends a manifest if that is needed. `None` when a watch has to show its object first.
    async fn settle(
        &self,
        work: &str,
        desired: &Desired<'_>,
        asked: &str,
        applied_work: &AppliedManifestWork,
    ) -> Option<Result<(), String>> {
        let mut view = self.index().view(work, &desired.key);
        let mut wanted = need(&desired.strategy, &view, asked);
        if wanted == Need::Look {
            if let Err(error) = self.look(&desired.kind, &desired.key).await {
                return Some(Err(error.to_string()));
            }
            view = self.index().view(work, &desired.key);
            wanted = need(&desired.strategy, &view, asked);
        }
        match wanted {
            Need::Wait => None,
            Need::Nothing | Need::Look => Some(Ok(())),
            Need::Write => Some(
                self.write(work, desired, asked, &view.sight, applied_work)
                    .await,
            ),
        }
    }

    /// The kind of a manifest. One that this very work defines is waited for a little, so that a definition and its
    /// objects can come together without a failure in between.
    async fn kind_of(
        &self,
        id: &ObjectId,
        work_defines_kinds: bool,
    ) -> Result<Kind, spoke::error::Error> {
        let end = tokio::time::Instant::now() + DEFINITION;
        let mut tick = tokio::time::interval(Duration::from_millis(250));
        loop {
            tick.tick().await;
            match self.spoke.kinds().find(&wanted_kind(id)).await {
                Err(spoke::error::Error::UnknownKind { .. })
                    if work_defines_kinds && tokio::time::Instant::now() < end => {}
                answer => return answer,
            }
        }
    }

    fn hold(&self, work: &str, desired: &Desired<'_>, record: &Record) {
        let mut index = self.index();
        let claim = Claim {
            field_manager: desired.field_manager(),
            mark: record.mark.as_ref(),
            is_owner: desired.is_owned,
            is_observer: desired.is_observed(),
        };
        if index.hold(work, &desired.key, &desired.kind, &claim) {
            self.kinds_changed.notify_one();
        }
    }

    async fn look(&self, kind: &Kind, key: &ObjectKey) -> Result<(), spoke::error::Error> {
        let found = self.spoke.look(kind, key).await?;
        self.index().looked(key, found.as_ref());
        Ok(())
    }

    /// Writes one manifest.
    async fn write(
        &self,
        work: &str,
        desired: &Desired<'_>,
        asked: &str,
        sight: &Sight,
        applied_work: &AppliedManifestWork,
    ) -> Result<(), String> {
        self.index().writing(&desired.key);
        let answer = self.send_and_fold(work, desired, sight, applied_work).await;
        self.index()
            .written(work, &desired.key, asked, answer.as_ref().ok());
        if let Err(Unwritten::Spoke(error)) = &answer
            && error.is_not_found()
        {
            self.spoke.kinds().forget(&desired.kind).await;
        }
        answer.map(drop).map_err(|error| error.to_string())
    }

    /// Sends one manifest. What its author wrote by other means before is folded into what we own, and sent again: only
    /// then does a field that is dropped later go away. Pods refuse a second apply.
    async fn send_and_fold(
        &self,
        work: &str,
        desired: &Desired<'_>,
        sight: &Sight,
        applied_work: &AppliedManifestWork,
    ) -> Result<ObjectMeta, Unwritten> {
        let mut answer = self.send(work, desired, sight, applied_work).await?;
        let manager = desired.field_manager();
        let is_applied = matches!(
            desired.strategy,
            Strategy::Update | Strategy::ServerSideApply { .. }
        );
        if !is_applied || desired.is_pod() {
            return Ok(answer);
        }
        if let Some(folded) = fold(
            answer.managed_fields.as_deref().unwrap_or_default(),
            manager,
        ) {
            answer = self
                .spoke
                .set_managed_fields(&desired.kind, &desired.key, &answer, &folded)
                .await?;
            let sight = Sight::Present(Seen::of(&answer, manager));
            answer = self.send(work, desired, &sight, applied_work).await?;
        }
        // Works that meet on one object may overtake one another: whoever comes last names them all. Each round is a
        // work more that has met us, so there are few.
        for _ in 0..SHARERS {
            let seen = Seen::of(&answer, manager);
            let wanted = self.owners(work, desired, &Sight::Present(seen.clone()), applied_work);
            if wanted
                .iter()
                .all(|owner| seen.owners.iter().any(|there| there.uid == owner.uid))
            {
                break;
            }
            answer = self
                .send(work, desired, &Sight::Present(seen), applied_work)
                .await?;
        }
        Ok(answer)
    }

    async fn send(
        &self,
        work: &str,
        desired: &Desired<'_>,
        sight: &Sight,
        applied_work: &AppliedManifestWork,
    ) -> Result<ObjectMeta, Unwritten> {
        let owners = self.owners(work, desired, sight, applied_work);
        let circumstances = Circumstances {
            is_namespaced: desired.kind.is_namespaced,
            keeps_owners: matches!(desired.strategy, Strategy::ServerSideApply { .. }),
            owners: &owners,
            live_finalizers: match sight {
                Sight::Present(seen) => Some(&seen.finalizers),
                Sight::Unknown | Sight::Gone => None,
            },
        };
        let body = body(desired.manifest, &circumstances)?;
        let force = match &desired.strategy {
            Strategy::ServerSideApply { force, .. } => *force,
            _ => true,
        };
        Ok(match desired.strategy {
            Strategy::CreateOnly => self.create(desired, body, &owners).await?,
            _ => {
                self.spoke
                    .apply(
                        &desired.kind,
                        &desired.key,
                        &body,
                        desired.field_manager(),
                        force,
                    )
                    .await?
            }
        })
    }

    /// Creates an object; of one that is there already, only the owners are ours.
    async fn create(
        &self,
        desired: &Desired<'_>,
        body: serde_json::Value,
        owners: &[OwnerReference],
    ) -> Result<ObjectMeta, spoke::error::Error> {
        let (kind, key) = (&desired.kind, &desired.key);
        match self
            .spoke
            .create(kind, key, body, AGENT_FIELD_MANAGER)
            .await
        {
            Err(error) if error.is_conflict() => {}
            answer => return answer,
        }
        let Some(live) = self.spoke.look(kind, key).await? else {
            return Err(spoke::error::Error::Vanished);
        };
        let mut wanted: Vec<OwnerReference> = live
            .owner_references
            .iter()
            .flatten()
            .filter(|owner| !is_applied_work(owner))
            .cloned()
            .collect();
        wanted.extend(owners.iter().cloned());
        if live.owner_references.as_deref().unwrap_or_default() == wanted {
            return Ok(live);
        }
        self.spoke
            .set_owners(kind, key, &live, &wanted, AGENT_FIELD_MANAGER)
            .await
    }

    /// Every AppliedManifestWork that is to own an object. One field manager drops what it leaves out, so the references
    /// of all who share the object are in every apply.
    fn owners(
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

    async fn availability(&self, kind: &Kind, key: &ObjectKey) -> Availability {
        match self.spoke.look(kind, key).await {
            Ok(None) => Availability::NotAvailable,
            Ok(Some(_)) => Availability::Available,
            Err(error) => Availability::Unknown {
                error: error.to_string(),
            },
        }
    }

    fn outcome(
        &self,
        work: &str,
        meta: ResourceMeta,
        key: &ObjectKey,
        mut record: Record,
        asked: &str,
    ) -> Outcome {
        let view = self.index().view(work, key);
        let available = match &view.sight {
            Sight::Present(seen) => {
                record.uid = Some(seen.uid.clone());
                if let Some(stamp) = &seen.stamp {
                    record.mark = Some(Mark {
                        asked: asked.to_owned(),
                        stamp: stamp.clone(),
                    });
                }
                Availability::Available
            }
            Sight::Gone => Availability::NotAvailable,
            Sight::Unknown => Availability::Unknown {
                error: "it has not been seen yet".to_owned(),
            },
        };
        Outcome {
            finding: finding(meta, Applied::Complete, available),
            record: Some((key.clone(), record)),
            is_failed: false,
        }
    }
}

/// What this agent cannot do yet is refused: to ignore it would write what the work says must not be written.
fn refusal(work: &ManifestWork, desired: &Desired<'_>) -> Option<Applied> {
    if work
        .spec
        .executor
        .as_ref()
        .is_some_and(|executor| executor.subject.is_some())
    {
        let error =
            "gitspoke does not check executors yet: remove spec.executor, or use another agent"
                .to_owned();
        return Some(Applied::Failed { error });
    }
    if desired.ignores_fields {
        let error =
            "gitspoke does not ignore fields yet: remove ignoreFields, or use another agent"
                .to_owned();
        return Some(Applied::IgnoreFields { error });
    }
    None
}

fn unplaced(meta: ResourceMeta, error: String) -> Outcome {
    Outcome {
        finding: finding(
            meta,
            Applied::Failed { error },
            Availability::IncompleteMeta,
        ),
        record: None,
        is_failed: true,
    }
}

fn finding(meta: ResourceMeta, applied: Applied, available: Availability) -> Finding {
    Finding {
        meta,
        applied: Some(applied),
        available: Some(available),
        feedback: Feedback::NoRules,
        rules: Rules::Evaluated(Vec::new()),
    }
}
