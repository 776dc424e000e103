//! What has been seen on the spoke: one entry per object that a work holds, no bodies.
//!
//! Watches tell the index what happens to objects, passes tell it what they have written. From the two it knows whether
//! an object is still as we left it. It is a plain synchronous value behind one lock, held for map operations only.

use std::collections::{BTreeSet, HashMap, HashSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::records::Mark;
use crate::spoke::{
    cluster::ObjectKey,
    kinds::Kind,
    seen::{Seen, Stamp},
};

/// Every object that a work of this agent holds.
#[derive(Default)]
pub struct Index {
    objects: HashMap<ObjectKey, Held>,
    kinds: HashMap<Kind, Watched>,
}

struct Held {
    kind: Kind,
    /// Whose entry in `managedFields` is ours.
    field_manager: String,
    /// The works that hold it.
    works: HashMap<String, Holding>,
    sight: Sight,
    /// Our entry as the last answer, or the record, showed it.
    stamp: Option<Stamp>,
    is_drifted: bool,
    /// What a watch shows during a write may be that very write, and waits for its answer.
    in_flight: InFlight,
}

#[derive(Default)]
struct Holding {
    /// What the work last asked for, if it has and was heard.
    asked: Option<String>,
    /// Whether the object goes away with the work.
    is_owner: bool,
    /// Whether the work has rules about what becomes of the object.
    is_observer: bool,
}

/// Works that have something to do.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Awake {
    /// Their names.
    pub works: Vec<String>,
    /// Whether something of theirs is at stake, and not only a value that their rules report.
    pub is_urgent: bool,
}

/// Writes under way, of works that share the object, and the last that a watch has shown since.
#[derive(Default)]
struct InFlight {
    writes: usize,
    missed: Option<Seen>,
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
    /// Whose entry in `managedFields` is ours.
    pub field_manager: &'a str,
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
    pub asked: Option<String>,
    /// Somebody has changed what is ours.
    pub is_drifted: bool,
    /// A watch on its kind is up to date.
    pub is_watched: bool,
}

#[derive(Default)]
struct Watched {
    /// How many objects are held.
    objects: usize,
    is_synced: bool,
    /// While a list is under way: what it has shown so far.
    listed: HashSet<ObjectKey>,
}

impl Index {
    /// Notes that a work holds an object. Returns whether it is the first of its kind.
    pub fn hold(&mut self, work: &str, key: &ObjectKey, kind: &Kind, claim: &Claim<'_>) -> bool {
        let is_first = !self.kinds.contains_key(kind);
        let before = self.objects.get(key).map(|held| held.kind.clone());
        if before.as_ref() != Some(kind) {
            self.kinds.entry(kind.clone()).or_default().objects += 1;
            if let Some(before) = before {
                self.let_go(&before);
            }
        }
        let held = self.objects.entry(key.clone()).or_insert_with(|| Held {
            kind: kind.clone(),
            field_manager: claim.field_manager.to_owned(),
            works: HashMap::new(),
            sight: Sight::Unknown,
            stamp: None,
            is_drifted: false,
            in_flight: InFlight::default(),
        });
        held.kind = kind.clone();
        claim.field_manager.clone_into(&mut held.field_manager);
        if !held.works.contains_key(work) {
            let asked = claim.mark.map(|mark| mark.asked.clone());
            held.works.insert(
                work.to_owned(),
                Holding {
                    asked,
                    ..Holding::default()
                },
            );
            if held.stamp.is_none() {
                held.stamp = claim.mark.map(|mark| mark.stamp.clone());
            }
        }
        let holding = held.works.entry(work.to_owned()).or_default();
        holding.is_owner = claim.is_owner;
        holding.is_observer = claim.is_observer;
        is_first
    }

    /// Notes that a work no longer holds an object. Returns whether it was the last of its kind.
    pub fn release(&mut self, work: &str, key: &ObjectKey) -> bool {
        let Some(held) = self.objects.get_mut(key) else {
            return false;
        };
        held.works.remove(work);
        if !held.works.is_empty() {
            return false;
        }
        let kind = held.kind.clone();
        self.objects.remove(key);
        self.let_go(&kind)
    }

    fn let_go(&mut self, kind: &Kind) -> bool {
        let Some(watched) = self.kinds.get_mut(kind) else {
            return false;
        };
        watched.objects -= 1;
        let is_last = watched.objects == 0;
        if is_last {
            self.kinds.remove(kind);
        }
        is_last
    }

    /// The other works that own an object.
    pub fn sharers(&self, work: &str, key: &ObjectKey) -> Vec<String> {
        let works = self.objects.get(key).map(|held| held.works.iter());
        let others = works
            .into_iter()
            .flatten()
            .filter(|(name, holding)| *name != work && holding.is_owner);
        others.map(|(name, _)| name.clone()).collect()
    }

    /// The kinds to be watched.
    pub fn kinds(&self) -> HashSet<Kind> {
        self.kinds.keys().cloned().collect()
    }

    /// What a work needs to know of an object.
    pub fn view(&self, work: &str, key: &ObjectKey) -> View {
        match self.objects.get(key) {
            None => View {
                sight: Sight::Unknown,
                asked: None,
                is_drifted: false,
                is_watched: false,
            },
            Some(held) => View {
                sight: held.sight.clone(),
                asked: held
                    .works
                    .get(work)
                    .and_then(|holding| holding.asked.clone()),
                is_drifted: held.is_drifted,
                is_watched: self
                    .kinds
                    .get(&held.kind)
                    .is_some_and(|watched| watched.is_synced),
            },
        }
    }

    /// A write is about to be sent.
    pub fn writing(&mut self, key: &ObjectKey) {
        if let Some(held) = self.objects.get_mut(key) {
            held.in_flight.writes += 1;
        }
    }

    /// A write has been answered: with metadata, or not at all. Returns our stamp in the answer.
    pub fn written(
        &mut self,
        work: &str,
        key: &ObjectKey,
        asked: &str,
        answer: Option<&ObjectMeta>,
    ) -> Option<Stamp> {
        let held = self.objects.get_mut(key)?;
        held.in_flight.writes = held.in_flight.writes.saturating_sub(1);
        if let Some(meta) = answer {
            let seen = Seen::of(meta, &held.field_manager);
            held.stamp.clone_from(&seen.stamp);
            held.works.entry(work.to_owned()).or_default().asked = Some(asked.to_owned());
            held.sight = Sight::Present(seen);
            held.is_drifted = false;
        }
        if held.in_flight.writes == 0
            && let Some(missed) = held.in_flight.missed.take()
        {
            held.see(missed);
        }
        held.stamp.clone()
    }

    /// Somebody looked at an object directly.
    pub fn looked(&mut self, key: &ObjectKey, found: Option<&ObjectMeta>) {
        if let Some(held) = self.objects.get_mut(key) {
            match found {
                None => held.sight = Sight::Gone,
                Some(meta) => {
                    held.see(Seen::of(meta, &held.field_manager));
                }
            }
        }
    }

    /// A watch shows an object. Returns the works that have something to do.
    pub fn appeared(&mut self, kind: &Kind, key: &ObjectKey, meta: &ObjectMeta) -> Awake {
        if let Some(watched) = self.kinds.get_mut(kind)
            && !watched.is_synced
        {
            watched.listed.insert(key.clone());
        }
        let Some(held) = self.objects.get_mut(key) else {
            return Awake::default();
        };
        let seen = Seen::of(meta, &held.field_manager);
        if held.in_flight.writes > 0 {
            held.in_flight.missed = Some(seen);
            return Awake::default();
        }
        let was_there = matches!(held.sight, Sight::Present(_));
        let is_news = held.see(seen);
        if !was_there || held.is_drifted {
            return Awake {
                works: held.works.keys().cloned().collect(),
                is_urgent: true,
            };
        }
        let observers = held
            .works
            .iter()
            .filter(|(_, holding)| is_news && holding.is_observer);
        Awake {
            works: observers.map(|(work, _)| work.clone()).collect(),
            is_urgent: false,
        }
    }

    /// A watch shows that an object has been deleted. Returns the works that have something to do.
    pub fn vanished(&mut self, key: &ObjectKey, meta: &ObjectMeta) -> Vec<String> {
        let Some(held) = self.objects.get_mut(key) else {
            return Vec::new();
        };
        let is_older =
            matches!(&held.sight, Sight::Present(seen) if meta.uid.as_deref() != Some(&seen.uid));
        if is_older {
            return Vec::new();
        }
        held.sight = Sight::Gone;
        held.works.keys().cloned().collect()
    }

    /// A watch begins with a list, because it is new or has broken: until it is done, it knows nothing.
    pub fn listing(&mut self, kind: &Kind) {
        if let Some(watched) = self.kinds.get_mut(kind) {
            watched.is_synced = false;
            watched.listed.clear();
        }
    }

    /// The list is done. What it did not show may be gone or newer than the list; nobody knows until somebody looks.
    /// Returns the works that have something to do.
    pub fn listed(&mut self, kind: &Kind) -> BTreeSet<String> {
        let Some(watched) = self.kinds.get_mut(kind) else {
            return BTreeSet::new();
        };
        watched.is_synced = true;
        let shown = std::mem::take(&mut watched.listed);
        let mut works = BTreeSet::new();
        for (key, held) in self
            .objects
            .iter_mut()
            .filter(|(_, held)| held.kind == *kind)
        {
            if !shown.contains(key) && held.sight != Sight::Gone && held.in_flight.writes == 0 {
                held.sight = Sight::Unknown;
            }
            works.extend(held.works.keys().cloned());
        }
        works
    }
}

impl Held {
    /// Takes in how an object looks. Returns whether that was news.
    fn see(&mut self, seen: Seen) -> bool {
        if let Sight::Present(known) = &self.sight
            && known.uid == seen.uid
            && seen.resource_version <= known.resource_version
        {
            return false;
        }
        self.is_drifted = self.stamp.is_some() && self.differs(&seen);
        self.sight = Sight::Present(seen);
        true
    }

    /// Another entry than ours has grown, or ours has not changed: noise. Ours is smaller, gone, or of a later second:
    /// somebody has written what is ours, in their name or in ours.
    fn differs(&self, seen: &Seen) -> bool {
        match (&self.stamp, &seen.stamp) {
            (Some(ours), Some(theirs)) => ours.fields != theirs.fields || theirs.time > ours.time,
            (Some(_), None) => true,
            (None, _) => false,
        }
    }
}

#[cfg(test)]
mod tests;
