//! Brings the manifests of one work onto the spoke.

use std::time::Duration;

use futures::{StreamExt, stream};
use tokio::time::Instant;

use super::{
    desired::{Desired, resource_meta, wanted_kind},
    ignored,
    index::{Blocker, Claim, Sight},
    need::{Need, need},
    records::{Mark, Record, Records},
    state::{Agent, Key},
    unwritten::{Next, Unwritten, availability},
};
use crate::{
    api::{
        digest::Digest,
        manifest::ObjectId,
        work::{applied::AppliedManifestWork, spec::ManifestWork, status::ResourceMeta},
    },
    runtime::queue::Wake,
    spoke::{self, cluster::ObjectKey, kinds::Kind},
    status::{self, Applied, Availability, Feedback, Finding, Rules, Stored, order::Rank},
};

/// Writes of one work that are under way together. With the workers' number it bounds what one agent asks of a spoke.
const TOGETHER: usize = 8;

/// How long a pass waits for a kind whose definition it has just applied.
const DEFINITION: Duration = Duration::from_secs(5);

/// What is the same for all manifests of one pass.
pub(super) struct Round<'a> {
    pub(super) work: &'a ManifestWork,
    pub(super) name: String,
    pub(super) stored: Stored<'a>,
    pub(super) ids: &'a [Option<ObjectId>],
    pub(super) applied_work: &'a AppliedManifestWork,
    pub(super) planned: &'a Records,
}

/// What became of one manifest.
pub(super) struct Outcome {
    pub(super) finding: Finding,
    /// Its object and what is to be recorded of it; absent when the manifest names none.
    pub(super) record: Option<(ObjectKey, Record)>,
    pub(super) failure: Option<Failure>,
}

/// What follows from a manifest's failure.
pub(super) struct Failure {
    pub(super) next: Next,
    pub(super) blocker: Option<Blocker>,
}

/// How a manifest that did not fail stands.
enum Settled {
    /// Its object is as asked for, as far as anybody knows.
    AsAsked,
    /// The same, but nobody may look.
    Unseen(spoke::error::Error),
    /// A watch has to show its object first.
    Waiting,
}

impl Agent {
    /// Applies every manifest, rank by rank. `None` stands for one that has to wait for a watch.
    pub(super) async fn apply_all(&self, round: &Round<'_>) -> Vec<Option<Outcome>> {
        let kinds = || {
            round
                .ids
                .iter()
                .map(|id| id.as_ref().map(|id| id.kind.as_str()))
        };
        let order = status::order::apply_order(kinds());
        let ranks: Vec<Rank> = kinds().map(Rank::of).collect();
        let mut outcomes: Vec<Option<Outcome>> = round.ids.iter().map(|_| None).collect();
        for together in order.chunk_by(|a, b| ranks[*a] == ranks[*b]) {
            let mut running = stream::iter(together.iter().copied())
                .map(|ordinal| async move { (ordinal, self.apply_one(round, ordinal).await) })
                .buffer_unordered(TOGETHER);
            while let Some((ordinal, outcome)) = running.next().await {
                outcomes[ordinal] = outcome;
                self.step(&round.name);
            }
        }
        outcomes
    }

    /// Brings one manifest as far as it can be brought now.
    async fn apply_one(&self, round: &Round<'_>, ordinal: usize) -> Option<Outcome> {
        let manifest = &round.work.spec.manifests()[ordinal];
        let Some(id) = &round.ids[ordinal] else {
            let error = manifest
                .id()
                .err()
                .map_or_else(String::new, |error| error.to_string());
            let meta = resource_meta(ordinal, None, None);
            return Some(unplaced(meta, &Unwritten::Unplaced(error), ""));
        };
        let kind = match self.kind_of(round, id).await {
            Ok(kind) => kind,
            Err(error) => {
                let meta = resource_meta(ordinal, Some(id), None);
                return Some(unplaced(meta, &error.into(), &id.group));
            }
        };
        let desired = Desired::new(&round.work.spec, manifest, id, kind);
        let meta = resource_meta(ordinal, Some(id), Some(&desired.key));
        let Some(record) = round.planned.get(&desired.key).cloned() else {
            // Its kind has appeared during this pass, so the intent does not name it yet; the next pass's will.
            let key = Key::Work(round.name.clone());
            self.queue.add((), key, Wake::Now).await;
            return None;
        };
        self.hold(&round.name, &desired, &record);
        let record = Record {
            version: id.version.clone(),
            ..record
        };

        // What has completed is frozen: not updated, not repaired.
        let is_frozen =
            status::is_complete(round.work.status.as_ref()) || round.stored.is_complete(&meta);
        let settled = if is_frozen {
            Ok(Settled::AsAsked)
        } else {
            self.settle(round, &desired).await
        };
        let mut outcome = match settled {
            Ok(Settled::Waiting) => return None,
            Ok(Settled::AsAsked) => self.outcome(round, meta, &desired, record, None),
            Ok(Settled::Unseen(error)) => self.outcome(round, meta, &desired, record, Some(&error)),
            Err(error) => {
                let looked = self.spoke.look(&desired.kind, &desired.key).await;
                let available = availability(looked.map(|found| found.is_some()));
                Outcome {
                    finding: finding(meta, error.applied(), available),
                    record: Some((desired.key.clone(), record)),
                    failure: Some(Failure {
                        next: error.next(),
                        blocker: error.blocker(&desired.key.group, &desired.key.namespace),
                    }),
                }
            }
        };
        self.observe(&round.name, &desired, &mut outcome.finding)
            .await;
        Some(outcome)
    }

    /// Sends a manifest if that is needed.
    async fn settle(&self, round: &Round<'_>, desired: &Desired<'_>) -> Result<Settled, Unwritten> {
        self.permit(round.work, desired).await?;
        let asked = &self.asked(desired).await?;
        let mut view = self.index().view(&round.name, &desired.key);
        let mut wanted = need(&desired.strategy, &view, asked);
        if wanted == Need::Look {
            if let Err(error) = self.look(&desired.kind, &desired.key).await {
                return match error {
                    error @ spoke::error::Error::UnknownKind { .. } => Err(error.into()),
                    error => Ok(Settled::Unseen(error)),
                };
            }
            view = self.index().view(&round.name, &desired.key);
            wanted = need(&desired.strategy, &view, asked);
        }
        match wanted {
            Need::Wait => Ok(Settled::Waiting),
            Need::Nothing | Need::Look => Ok(Settled::AsAsked),
            Need::Write => {
                self.write(round, desired, asked, &view.sight).await?;
                // It had been asked for and heard before, so somebody else must have changed it.
                if view.heard.is_some_and(|heard| heard.asked == *asked) {
                    self.metrics.repaired.inc();
                }
                Ok(Settled::AsAsked)
            }
        }
    }

    /// The digest of what a manifest asks for. Fields that are always left alone are not asked for.
    async fn asked(&self, desired: &Desired<'_>) -> Result<String, Unwritten> {
        if desired.ignored.is_empty() {
            return Ok(desired.asked(&desired.manifest.digest()));
        }
        let object = serde_json::from_str(desired.manifest.as_json())
            .expect("a manifest that has an identity is JSON");
        let fields = desired
            .ignored
            .iter()
            .filter(|field| ignored::is_always(field));
        let stripped = self.evaluator.strip(object, fields).await;
        let stripped = stripped.map_err(Unwritten::Ignored)?;
        let settings = Digest::of_bytes(format!("{:?}", desired.ignored).as_bytes());
        let content = format!("{} {settings}", Digest::of_json(&stripped));
        Ok(desired.asked(&Digest::of_bytes(content.as_bytes())))
    }

    /// The kind of a manifest. One that this very work defines is waited for a little, so that a definition and its
    /// objects can come together without a failure in between.
    async fn kind_of(&self, round: &Round<'_>, id: &ObjectId) -> Result<Kind, spoke::error::Error> {
        let is_definition = |id: &ObjectId| id.kind == "CustomResourceDefinition";
        let work_defines_kinds = round.ids.iter().flatten().any(is_definition);
        let end = Instant::now() + DEFINITION;
        let mut tick = tokio::time::interval(Duration::from_millis(250));
        loop {
            tick.tick().await;
            match self.spoke.kinds().find(&wanted_kind(id)).await {
                Err(spoke::error::Error::UnknownKind { .. })
                    if work_defines_kinds && Instant::now() < end => {}
                answer => return answer,
            }
        }
    }

    fn hold(&self, work: &str, desired: &Desired<'_>, record: &Record) {
        let mut index = self.index();
        let claim = Claim {
            author: desired.author(),
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

    fn outcome(
        &self,
        round: &Round<'_>,
        meta: ResourceMeta,
        desired: &Desired<'_>,
        mut record: Record,
        unseen: Option<&spoke::error::Error>,
    ) -> Outcome {
        let view = self.index().view(&round.name, &desired.key);
        let note = view.heard.as_ref().map(|heard| heard.note.clone());
        let available = match (&view.sight, unseen) {
            (Sight::Present(seen), _) => {
                record.uid = Some(seen.uid.clone());
                if let (Some(stamp), Some(heard)) = (seen.stamp(&desired.author()), view.heard) {
                    record.mark = Some(Mark { heard, stamp });
                }
                Availability::Available
            }
            (Sight::Gone, _) => Availability::NotAvailable,
            (Sight::Unknown, error) => Availability::Unknown {
                error: error.map_or_else(
                    || "it has not been seen yet".to_owned(),
                    ToString::to_string,
                ),
            },
        };
        let applied = match note.filter(|note| !note.is_empty()) {
            Some(note) => Applied::CompleteBut { note },
            None => Applied::Complete,
        };
        Outcome {
            finding: finding(meta, applied, available),
            record: Some((desired.key.clone(), record)),
            failure: None,
        }
    }
}

fn unplaced(meta: ResourceMeta, error: &Unwritten, group: &str) -> Outcome {
    Outcome {
        finding: finding(meta, error.applied(), Availability::IncompleteMeta),
        record: None,
        failure: Some(Failure {
            next: error.next(),
            blocker: error.blocker(group, ""),
        }),
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
