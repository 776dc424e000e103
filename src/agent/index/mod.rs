//! What has been seen on the spoke: one entry per object that a work holds, no bodies beyond the next pass.
//!
//! Watches tell the index what happens to objects, passes tell it what they have written. From the two it knows whether
//! an object is still as we left it. It is a plain synchronous value behind one lock, held for map operations only.

mod blocked;
mod few;
mod held;
mod kinds;

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use self::{
    blocked::Blocked,
    held::{Held, Holding},
    kinds::Watched,
};
pub use self::{
    blocked::Blocker,
    kinds::{Wanted, Watching},
};
use super::records::{Heard, Mark};
use crate::{
    spoke::{
        cluster::ObjectKey,
        kinds::Kind,
        seen::{Author, FieldManager, Seen},
    },
    status::{Feedback, Rules},
};

/// Every object that a work of this agent holds.
#[derive(Default)]
pub struct Index {
    /// Boxed, because a table of so large entries would be half empty room.
    objects: HashMap<ObjectKey, Box<Held>>,
    kinds: HashMap<Arc<Kind>, Watched>,
    blocked: Blocked,
}

/// Works that have something to do.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Awake {
    /// Their names.
    pub works: Vec<String>,
    /// Whether something of theirs is at stake, and not only a value that their rules report.
    pub is_urgent: bool,
}

/// What is known of an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Sight {
    /// Nobody has looked, or a watch has broken since.
    Unknown,
    /// It was there, like this.
    Present(Seen),
    /// It is gone.
    Gone,
}

/// How a work holds an object.
pub struct Claim<'a> {
    /// Whose entries in `managedFields` are ours.
    pub author: Author,
    /// What is on record from before this process.
    pub mark: Option<&'a Mark>,
    /// Whether the object goes away with the work.
    pub is_owner: bool,
    /// Whether the work has rules about what becomes of the object.
    pub is_observer: bool,
}

/// What a pass needs to know of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// What is known of it.
    pub sight: Sight,
    /// What this work last asked for, if it has and was heard.
    pub heard: Option<Heard>,
    /// Somebody has changed what is ours.
    pub is_drifted: bool,
    /// Whether a watch would show what happens to it.
    pub watching: Watching,
}

/// What the rules of a work said about an object, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// The version of the object.
    pub resource_version: u64,
    /// The digest of the rules.
    pub asked: String,
    /// The values.
    pub feedback: Feedback,
    /// The conditions.
    pub rules: Rules,
}

/// What is to be done to know what rules say.
pub enum Observation {
    /// Nothing has changed since they were asked.
    Known(Feedback, Rules),
    /// Ask them about this.
    Ask(u64, Arc<Value>),
    /// Read the object first.
    Read,
    /// There is nothing to ask about.
    Gone,
}

impl Index {
    /// Notes that a work holds an object. Returns whether other watches are wanted now.
    pub fn hold(&mut self, work: &str, key: &ObjectKey, kind: &Kind, claim: &Claim<'_>) -> bool {
        let known = self.kinds.get_key_value(kind);
        let kind = known.map_or_else(|| Arc::new(kind.clone()), |(kind, _)| Arc::clone(kind));
        let held = self
            .objects
            .entry(key.clone())
            .or_insert_with(|| Box::new(Held::new(Arc::clone(&kind))));
        let before = held.counted();
        held.kind = Arc::clone(&kind);
        let holding = held.works.or_insert_with(work.to_owned(), || Holding {
            author: claim.author.clone(),
            heard: claim.mark.map(|mark| mark.heard.clone()),
            is_refused: false,
            is_owner: false,
            is_observer: false,
            observed: None,
        });
        holding.author = claim.author.clone();
        holding.is_owner = claim.is_owner;
        holding.is_observer = claim.is_observer;
        let left = claim
            .mark
            .filter(|mark| mark.heard.manager == claim.author.manager);
        held.left(&claim.author, left.map(|mark| &mark.stamp));
        held.forget_authors();
        let after = held.counted();
        self.count(before, after)
    }

    /// Notes that a work no longer holds an object. Returns whether other watches are wanted now.
    pub fn release(&mut self, work: &str, key: &ObjectKey) -> bool {
        let Some(held) = self.objects.get_mut(key) else {
            return false;
        };
        let before = held.counted();
        held.works.remove(work);
        held.forget_authors();
        let after = held.counted();
        if after.is_none() {
            self.objects.remove(key);
        }
        self.count(before, after)
    }

    /// Replaces what a work waits for. Returns whether other watches are wanted now.
    pub fn block(&mut self, work: &str, blockers: BTreeSet<Blocker>) -> bool {
        self.blocked.put(work, blockers)
    }

    /// The works that something which happened to an object may unblock.
    pub fn unblocked(&self, key: &ObjectKey) -> Vec<String> {
        self.blocked.by(key)
    }

    /// The other works that own an object.
    pub fn sharers(&self, work: &str, key: &ObjectKey) -> Vec<String> {
        let held = self.objects.get(key);
        let others = held
            .into_iter()
            .flat_map(|held| held.works.iter())
            .filter(|(name, holding)| *name != work && holding.is_owner);
        others.map(|(name, _)| name.clone()).collect()
    }

    /// The field manager that a work has written an object by before, if it is another one now and nobody else's.
    pub fn former(&self, work: &str, key: &ObjectKey) -> Option<FieldManager> {
        let held = self.objects.get(key)?;
        let holding = held.works.get(work)?;
        let former = &holding.heard.as_ref()?.manager;
        let is_in_use = held
            .works
            .values()
            .any(|holding| holding.author.manager == *former);
        (!is_in_use).then(|| former.clone())
    }

    /// What a work needs to know of an object.
    pub fn view(&self, work: &str, key: &ObjectKey) -> View {
        let Some(held) = self.objects.get(key) else {
            return View {
                sight: Sight::Unknown,
                heard: None,
                is_drifted: false,
                watching: Watching::Begun,
            };
        };
        let holding = held.works.get(work);
        let watched = self.kinds.get(&held.kind);
        View {
            sight: held.sight.clone(),
            heard: holding.and_then(|holding| holding.heard.clone()),
            is_drifted: holding.is_some_and(|holding| held.is_drifted(&holding.author)),
            watching: watched.map_or(Watching::Begun, |watched| watched.watching),
        }
    }

    /// A write is about to be sent.
    pub fn writing(&mut self, key: &ObjectKey) {
        if let Some(held) = self.objects.get_mut(key) {
            held.writing();
        }
    }

    /// A write has been answered: with metadata, or not at all. Returns the works that have something to do because of
    /// what happened meanwhile.
    pub fn written(
        &mut self,
        work: &str,
        key: &ObjectKey,
        answer: Option<(Heard, &ObjectMeta)>,
    ) -> Vec<String> {
        let Some(held) = self.objects.get_mut(key) else {
            return Vec::new();
        };
        let Some(holding) = held.works.get_mut(work) else {
            return Vec::new();
        };
        let author = holding.author.clone();
        let (heard, meta) = answer.unzip();
        holding.is_refused = heard.is_none();
        if heard.is_some() {
            holding.heard = heard;
        }
        held.written(&author, meta);
        if meta.is_some()
            && let Some(watched) = self.kinds.get_mut(&held.kind)
            && watched.watching == Watching::Gone
        {
            watched.watching = Watching::Begun;
        }
        if held.is_being_written() {
            return Vec::new();
        }
        match held.sight {
            Sight::Gone => held.works.keys().cloned().collect(),
            _ => held.drifted(),
        }
    }

    /// Somebody looked at an object directly.
    pub fn looked(&mut self, key: &ObjectKey, found: Option<&ObjectMeta>) {
        if let Some(held) = self.objects.get_mut(key) {
            match found {
                None => held.sight = Sight::Gone,
                Some(meta) => {
                    held.see(Seen::of(meta));
                }
            }
        }
    }

    /// A watch shows an object, whole where rules need it. Returns the works that have something to do.
    pub fn appeared(
        &mut self,
        kind: &Kind,
        key: &ObjectKey,
        meta: &ObjectMeta,
        body: Option<Value>,
    ) -> Awake {
        if let Some(watched) = self.kinds.get_mut(kind)
            && watched.watching != Watching::UpToDate
        {
            watched.listed.insert(key.clone());
        }
        let Some(held) = self.objects.get_mut(key) else {
            return Awake::default();
        };
        let was_there = matches!(held.sight, Sight::Present(_));
        let is_news = held.appeared(Seen::of(meta), body);
        if held.is_being_written() {
            return Awake::default();
        }
        if !was_there {
            return Awake {
                works: held.works.keys().cloned().collect(),
                is_urgent: true,
            };
        }
        let drifted = held.drifted();
        if !drifted.is_empty() {
            return Awake {
                works: drifted,
                is_urgent: true,
            };
        }
        let curious = held
            .works
            .iter()
            .filter(|(_, holding)| is_news && (holding.is_observer || holding.is_refused));
        Awake {
            works: curious.map(|(work, _)| work.clone()).collect(),
            is_urgent: false,
        }
    }

    /// A watch shows that an object has been deleted. Returns the works that have something to do.
    pub fn vanished(&mut self, key: &ObjectKey, meta: &ObjectMeta) -> Vec<String> {
        let Some(held) = self.objects.get_mut(key) else {
            return Vec::new();
        };
        if held.vanished(meta.uid.as_deref().unwrap_or_default()) {
            held.works.keys().cloned().collect()
        } else {
            Vec::new()
        }
    }

    /// What is to be done to know what a work's rules say about an object. `asked` is the digest of the rules.
    pub fn observation(&self, work: &str, key: &ObjectKey, asked: &str) -> Observation {
        let Some(held) = self.objects.get(key) else {
            return Observation::Read;
        };
        let observed = held
            .works
            .get(work)
            .and_then(|holding| holding.observed.as_deref())
            .filter(|observed| observed.asked == asked);
        if held.sight == Sight::Gone {
            return Observation::Gone;
        }
        let is_current = |observed: &&Observed| {
            matches!(&held.sight, Sight::Present(seen)
                if observed.resource_version >= seen.resource_version)
        };
        match (observed.filter(is_current), held.body()) {
            (Some(observed), None) => {
                Observation::Known(observed.feedback.clone(), observed.rules.clone())
            }
            (Some(observed), Some((version, _))) if observed.resource_version >= version => {
                Observation::Known(observed.feedback.clone(), observed.rules.clone())
            }
            (_, Some((version, body))) => Observation::Ask(version, body),
            (None, None) => Observation::Read,
        }
    }

    /// Remembers what a work's rules said about an object.
    pub fn observed(&mut self, work: &str, key: &ObjectKey, observed: Observed) {
        if let Some(held) = self.objects.get_mut(key) {
            if let Some(holding) = held.works.get_mut(work) {
                holding.observed = Some(Box::new(observed));
            }
            held.drop_answered_body();
        }
    }
}

#[cfg(test)]
mod tests;
