//! Writes one manifest to the spoke, in the manner its strategy and its kind ask for.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::{Value, json};

use super::{
    apply::Round,
    body::{Circumstances, body, has_finalizers},
    desired::{Desired, Strategy},
    ignored,
    index::{Sight, Watching},
    mend::{faults, mend},
    records::Heard,
    removal::is_applied_work,
    special::is_recreated,
    state::{Agent, Key},
    unwritten::Unwritten,
};
use crate::{
    api::wellknown::AGENT_FIELD_MANAGER,
    runtime::queue::Wake,
    spoke::{self, ownership::fold, seen::Seen},
};

/// How often a write is repeated because another work has come to share its object meanwhile.
const SHARERS: usize = 8;

/// How often a manifest is mended: a refusal does not always name everything that the next one would.
const MENDINGS: usize = 8;

/// A write that was answered, with what there is to say about it beyond its success.
pub(super) struct Sent {
    pub(super) meta: ObjectMeta,
    pub(super) note: String,
}

impl From<ObjectMeta> for Sent {
    fn from(meta: ObjectMeta) -> Self {
        Self {
            meta,
            note: String::new(),
        }
    }
}

impl Agent {
    /// Writes one manifest, and takes in the answer.
    pub(super) async fn write(
        &self,
        round: &Round<'_>,
        desired: &Desired<'_>,
        asked: &str,
        sight: &Sight,
    ) -> Result<(), Unwritten> {
        let was_gone = self.index().view(&round.name, &desired.key).watching == Watching::Gone;
        self.index().writing(&desired.key);
        let answer = self.send_and_fold(round, desired, asked, sight).await;
        let heard = answer.as_ref().ok().map(|sent| {
            let heard = Heard {
                asked: asked.to_owned(),
                manager: desired.field_manager().into(),
                note: sent.note.clone(),
            };
            (heard, &sent.meta)
        });
        let awake = self.index().written(&round.name, &desired.key, heard);
        for work in awake {
            self.queue.add((), Key::Work(work), Wake::Now).await;
        }
        if answer.is_ok() && was_gone {
            self.kinds_changed.notify_one();
        }
        answer.map(drop)
    }

    /// Sends one manifest. What its author wrote by other means before is folded into what we own, and sent again: only
    /// then does a field that is dropped later go away.
    async fn send_and_fold(
        &self,
        round: &Round<'_>,
        desired: &Desired<'_>,
        asked: &str,
        sight: &Sight,
    ) -> Result<Sent, Unwritten> {
        let mut sent = self.send(round, desired, asked, sight).await?;
        if desired.strategy == Strategy::CreateOnly || desired.author().is_patching {
            return Ok(sent);
        }
        let former = self.index().former(&round.name, &desired.key);
        let entries = sent.meta.managed_fields.as_deref().unwrap_or_default();
        if let Some(folded) = fold(entries, desired.field_manager(), former.as_deref()) {
            let answer = self
                .spoke
                .set_managed_fields(&desired.kind, &desired.key, &sent.meta, &folded)
                .await?;
            let sight = Sight::Present(Seen::of(&answer));
            sent = self.send(round, desired, asked, &sight).await?;
        }
        // Works that meet on one object may overtake one another: whoever comes last names them all. Each round is a
        // work more that has met us, so there are few.
        for _ in 0..SHARERS {
            let sight = Sight::Present(Seen::of(&sent.meta));
            let wanted = self.owners(&round.name, desired, &sight, round.applied_work);
            let there = sent.meta.owner_references.as_deref().unwrap_or_default();
            let is_there = |owner: &OwnerReference| there.iter().any(|one| one.uid == owner.uid);
            if wanted.iter().all(is_there) {
                break;
            }
            sent = self.send(round, desired, asked, &sight).await?;
        }
        Ok(sent)
    }

    async fn send(
        &self,
        round: &Round<'_>,
        desired: &Desired<'_>,
        asked: &str,
        sight: &Sight,
    ) -> Result<Sent, Unwritten> {
        let owners = self.owners(&round.name, desired, sight, round.applied_work);
        let live_finalizers = self.live_finalizers(desired, sight).await?;
        let circumstances = Circumstances {
            is_namespaced: desired.kind.is_namespaced,
            keeps_owners: matches!(desired.strategy, Strategy::ServerSideApply { .. }),
            owners: &owners,
            live_finalizers: live_finalizers.as_deref(),
        };
        let body = body(desired.manifest, &circumstances)?;
        match &desired.strategy {
            Strategy::CreateOnly => Ok(self.create(desired, body, &owners).await?.into()),
            Strategy::ServerSideApply { force, .. } => {
                let body = self.leaving_alone(round, desired, asked, body).await?;
                let (kind, key) = (&desired.kind, &desired.key);
                let answer = self
                    .spoke
                    .apply(kind, key, &body, desired.field_manager(), *force);
                Ok(answer.await?.into())
            }
            Strategy::Update if desired.is_pod() => {
                self.update_pod(desired, body, &owners, sight).await
            }
            Strategy::Update if !desired.kind.is_patchable => {
                Ok(self.replace(desired, body, &owners).await?.into())
            }
            Strategy::Update | Strategy::ReadOnly => self.update(desired, body).await,
        }
    }

    /// The finalizers of a live object, if the manifest has any of its own. They are read: one that its owner has just
    /// taken away must not come back because a watch is a moment behind.
    async fn live_finalizers(
        &self,
        desired: &Desired<'_>,
        sight: &Sight,
    ) -> Result<Option<Vec<String>>, Unwritten> {
        if *sight == Sight::Gone || !has_finalizers(desired.manifest) {
            return Ok(None);
        }
        let live = self.spoke.look(&desired.kind, &desired.key).await?;
        Ok(live.map(|live| live.finalizers.unwrap_or_default()))
    }

    /// Creates an object; of one that is there already, only the owners are ours.
    async fn create(
        &self,
        desired: &Desired<'_>,
        body: Value,
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
        let wanted = beside_others(&live, owners);
        if live.owner_references.as_deref().unwrap_or_default() == wanted {
            return Ok(live);
        }
        self.spoke
            .set_owners(kind, key, &live, &wanted, AGENT_FIELD_MANAGER)
            .await
    }

    /// Creates an object of a kind that cannot be applied, or replaces the one that is there.
    async fn replace(
        &self,
        desired: &Desired<'_>,
        mut body: Value,
        owners: &[OwnerReference],
    ) -> Result<ObjectMeta, spoke::error::Error> {
        let (kind, key) = (&desired.kind, &desired.key);
        let answer = self
            .spoke
            .create(kind, key, body.clone(), AGENT_FIELD_MANAGER);
        match answer.await {
            Err(error) if error.is_conflict() => {}
            answer => return answer,
        }
        let Some(live) = self.spoke.look(kind, key).await? else {
            return Err(spoke::error::Error::Vanished);
        };
        body["metadata"]["uid"] = json!(live.uid);
        body["metadata"]["resourceVersion"] = json!(live.resource_version);
        body["metadata"]["finalizers"] = json!(live.finalizers.as_deref().unwrap_or_default());
        body["metadata"]["ownerReferences"] = json!(beside_others(&live, owners));
        self.spoke
            .replace(kind, key, body, AGENT_FIELD_MANAGER)
            .await
    }

    /// Applies what the manifest names, whoever owns it. What an apply cannot take, although the object could be posted
    /// with it, is left out.
    pub(super) async fn update(
        &self,
        desired: &Desired<'_>,
        mut body: Value,
    ) -> Result<Sent, Unwritten> {
        let (kind, key) = (&desired.kind, &desired.key);
        self.keep_default_class(desired, &mut body).await?;
        let mut notes = Vec::new();
        loop {
            let answer = self
                .spoke
                .apply(kind, key, &body, AGENT_FIELD_MANAGER, true);
            let error = match answer.await {
                Ok(meta) => {
                    let note = notes.join("; ");
                    return Ok(Sent { meta, note });
                }
                Err(error) => error,
            };
            let faults = faults(error.message());
            let is_mended = notes.len() < MENDINGS
                && !faults.is_empty()
                && faults.iter().all(|fault| mend(&mut body, fault));
            if is_mended {
                notes.extend(faults.iter().map(super::mend::Fault::note));
            } else if error.is_immutable() && is_recreated(desired) {
                self.make_room(desired, &body, &error).await?;
            } else {
                return Err(error.into());
            }
        }
    }

    /// Takes out of a body what is to be left alone on the spoke. What the hub has not changed is left alone under either
    /// condition; a repair must not undo what the spoke may change.
    async fn leaving_alone(
        &self,
        round: &Round<'_>,
        desired: &Desired<'_>,
        asked: &str,
        mut body: Value,
    ) -> Result<Value, Unwritten> {
        if desired.ignored.is_empty() {
            return Ok(body);
        }
        body["metadata"]["annotations"][ignored::CONFIG_HASH] = asked.into();
        let (kind, key) = (&desired.kind, &desired.key);
        let Some(live) = self.spoke.read(kind, key).await? else {
            return Ok(body);
        };
        let heard = self.index().view(&round.name, key).heard;
        let is_repair = heard.is_some_and(|heard| heard.asked == asked);
        let fields = desired
            .ignored
            .iter()
            .filter(|field| is_repair || ignored::is_always(field));
        let stripped = self.evaluator.strip(body.clone(), fields).await;
        let stripped = stripped.map_err(Unwritten::Ignored)?;
        let meta = serde_json::from_value(live["metadata"].clone());
        let meta: ObjectMeta = meta
            .map_err(kube::Error::SerdeError)
            .map_err(spoke::error::Error::from)?;
        let owned = ignored::applied_fields(&meta, desired.field_manager());
        Ok(ignored::restore(&body, stripped, &live, &owned))
    }
}

/// The owners of a live object with ours in place of what AppliedManifestWorks it had.
fn beside_others(live: &ObjectMeta, owners: &[OwnerReference]) -> Vec<OwnerReference> {
    let there = live.owner_references.iter().flatten();
    let others = there.filter(|owner| !is_applied_work(owner)).cloned();
    others.chain(owners.iter().cloned()).collect()
}
