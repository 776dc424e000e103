//! One object that works hold: what has been seen of it, and whether it is still as we left it.

use std::{sync::Arc, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use tokio::time::Instant;

use super::{Observed, Sight, few::Few};
use crate::agent::records::Heard;
use crate::spoke::{
    kinds::Kind,
    seen::{Author, Seen, Stamp},
};

/// How long after our own write one in our name within the same second may still come into sight: that second, and the
/// time that a watch is behind. Later, what moves the generation and leaves no trace is somebody who scales the object,
/// which the API server does not note while nobody owns the number of replicas.
const SAME_SECOND: Duration = Duration::from_secs(5);

pub(super) struct Held {
    pub(super) kind: Arc<Kind>,
    /// The works that hold it.
    pub(super) works: Few<String, Holding>,
    pub(super) sight: Sight,
    /// Our entries as the last answers, or the records, showed them.
    authors: Few<Author, Known>,
    /// What a watch shows during a write may be that very write, and waits for its answer.
    in_flight: InFlight,
    /// The object itself, as a watch has shown it, until the rules about it have been asked.
    body: Option<(u64, Arc<Value>)>,
}

pub(super) struct Holding {
    /// Whose entries are ours, as far as this work is concerned.
    pub(super) author: Author,
    /// What the work last asked for, if it has and was heard.
    pub(super) heard: Option<Heard>,
    /// Whether its last write was refused: whatever happens to the object may change that.
    pub(super) is_refused: bool,
    /// Whether the object goes away with the work.
    pub(super) is_owner: bool,
    /// Whether the work has rules about what becomes of the object.
    pub(super) is_observer: bool,
    /// What those rules said last.
    pub(super) observed: Option<Box<Observed>>,
}

#[derive(Default)]
struct Known {
    stamp: Option<Stamp>,
    /// When the answer came that showed this stamp first; not known of what is on record.
    since: Option<Instant>,
    is_drifted: bool,
}

/// Writes under way, of works that share the object, and the last that a watch has shown since.
#[derive(Default)]
struct InFlight {
    writes: usize,
    missed: Option<Box<Missed>>,
}

enum Missed {
    Appeared(Seen),
    Vanished(String),
}

impl Held {
    pub(super) fn new(kind: Arc<Kind>) -> Self {
        Self {
            kind,
            works: Few::default(),
            sight: Sight::Unknown,
            authors: Few::default(),
            in_flight: InFlight::default(),
            body: None,
        }
    }

    /// How it counts among the objects of its kind: whether rules are about it. Not at all while nobody holds it.
    pub(super) fn counted(&self) -> Option<(Arc<Kind>, bool)> {
        (!self.works.is_empty()).then(|| (Arc::clone(&self.kind), self.is_observed()))
    }

    /// Notes how an author's entry was left, unless that is known.
    pub(super) fn left(&mut self, author: &Author, stamp: Option<&Stamp>) {
        let known = self.authors.or_insert_with(author.clone(), Known::default);
        if known.stamp.is_none() {
            known.stamp = stamp.copied();
        }
    }

    /// Forgets authors that no work writes as any more.
    pub(super) fn forget_authors(&mut self) {
        let works = &self.works;
        self.authors
            .retain(|author| works.values().any(|holding| holding.author == *author));
    }

    pub(super) fn is_drifted(&self, author: &Author) -> bool {
        self.authors
            .get(author)
            .is_some_and(|known| known.is_drifted)
    }

    pub(super) fn is_observed(&self) -> bool {
        self.works.values().any(|holding| holding.is_observer)
    }

    pub(super) fn is_being_written(&self) -> bool {
        self.in_flight.writes > 0
    }

    /// Works that would have to write.
    pub(super) fn drifted(&self) -> Vec<String> {
        let works = self.works.iter();
        let drifted = works.filter(|(_, holding)| self.is_drifted(&holding.author));
        drifted.map(|(work, _)| work.clone()).collect()
    }

    pub(super) fn writing(&mut self) {
        self.in_flight.writes += 1;
    }

    /// Takes in the answer to a write, and then what has happened meanwhile. An answer that another work's answer has
    /// overtaken says nothing; one that shows what had been seen before has changed nothing.
    pub(super) fn written(&mut self, author: &Author, answer: Option<&ObjectMeta>) {
        self.in_flight.writes = self.in_flight.writes.saturating_sub(1);
        if let Some(seen) = answer.map(Seen::of)
            && !self.is_overtaken(&seen)
        {
            let stamp = seen.stamp(author);
            self.see(seen);
            let known = self.authors.or_insert_with(author.clone(), Known::default);
            if known.stamp != stamp {
                known.since = Some(Instant::now());
            }
            known.stamp = stamp;
            known.is_drifted = false;
        }
        if self.in_flight.writes > 0 {
            return;
        }
        match self.in_flight.missed.take().map(|missed| *missed) {
            Some(Missed::Appeared(seen)) => {
                self.see(seen);
            }
            Some(Missed::Vanished(uid)) => self.lose(&uid),
            None => {}
        }
    }

    /// A watch shows the object. Returns whether that was news; during a write it is not, yet.
    pub(super) fn appeared(&mut self, seen: Seen, body: Option<Value>) -> bool {
        if let Some(body) = body
            && self.is_news_to_observers(seen.resource_version)
        {
            self.body = Some((seen.resource_version, Arc::new(body)));
        }
        if self.is_being_written() {
            self.in_flight.missed = Some(Box::new(Missed::Appeared(seen)));
            return false;
        }
        self.see(seen)
    }

    /// A watch shows that an object of this name is gone. Returns whether it was this one.
    pub(super) fn vanished(&mut self, uid: &str) -> bool {
        if self.is_being_written() {
            self.in_flight.missed = Some(Box::new(Missed::Vanished(uid.to_owned())));
            return false;
        }
        self.lose(uid);
        self.sight == Sight::Gone
    }

    /// The object as a watch has shown it, no older than what else is known of it.
    pub(super) fn body(&self) -> Option<(u64, Arc<Value>)> {
        let (version, body) = self.body.as_ref()?;
        let is_old =
            matches!(&self.sight, Sight::Present(seen) if seen.resource_version > *version);
        (!is_old).then(|| (*version, Arc::clone(body)))
    }

    /// Lets go of the object's body once every rule about it has been asked.
    pub(super) fn drop_answered_body(&mut self) {
        let version = self.body.as_ref().map(|(version, _)| *version);
        if version.is_some_and(|version| !self.is_news_to_observers(version)) {
            self.body = None;
        }
    }

    fn is_news_to_observers(&self, version: u64) -> bool {
        let observers = self.works.values().filter(|holding| holding.is_observer);
        let mut asked = observers.map(|holding| holding.observed.as_ref());
        asked.any(|observed| observed.is_none_or(|observed| observed.resource_version < version))
    }

    /// Takes in how the object looks. Returns whether that was news.
    pub(super) fn see(&mut self, seen: Seen) -> bool {
        if self.is_old(&seen) {
            return false;
        }
        for (author, known) in self.authors.iter_mut() {
            known.is_drifted |= known.differs(author, &seen, &self.sight);
        }
        self.sight = Sight::Present(seen);
        true
    }

    fn lose(&mut self, uid: &str) {
        let is_another = matches!(&self.sight, Sight::Present(seen) if seen.uid != uid);
        if !is_another {
            self.sight = Sight::Gone;
            self.body = None;
        }
    }

    fn is_overtaken(&self, seen: &Seen) -> bool {
        matches!(&self.sight, Sight::Present(known)
            if known.uid == seen.uid && seen.resource_version < known.resource_version)
    }

    fn is_old(&self, seen: &Seen) -> bool {
        matches!(&self.sight, Sight::Present(known)
            if known.uid == seen.uid && seen.resource_version <= known.resource_version)
    }
}

impl Known {
    /// Another entry than ours has grown, or ours has not changed: noise. Ours is smaller, gone, or of a later second:
    /// somebody has written what is ours, in their name or in ours. Within the second of our own write the entry cannot
    /// tell, but when nobody else has written since, somebody must have written in our name.
    fn differs(&self, author: &Author, seen: &Seen, before: &Sight) -> bool {
        match (&self.stamp, seen.stamp(author)) {
            (Some(ours), Some(theirs)) => {
                ours.fields != theirs.fields
                    || theirs.time > ours.time
                    || self
                        .since
                        .is_some_and(|since| since.elapsed() < SAME_SECOND)
                        && matches!(before, Sight::Present(before)
                            if before.uid == seen.uid && seen.is_by_nobody_but(author, before))
            }
            (Some(_), None) => true,
            (None, _) => false,
        }
    }
}
