//! The decisions of the queue, as a plain state machine.
//!
//! It has no clock, no lock and no tokio: time is a `Duration` since the queue began, handed in with every call.

use std::collections::hash_map::Entry as Slot;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use fastrand::Rng;

use super::rotation::Rotation;
use super::slots::Slots;
use super::{Label, Stats, Wake};
use crate::runtime::backoff::Backoff;

/// What names a key: keys of different groups are different keys.
pub(super) type Id<G, K> = (G, K);

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Done,
    After(Duration),
    Retry,
}

pub(super) struct Schedule<G, K> {
    index: HashMap<Id<G, K>, usize>,
    entries: Slots<Entry<G, K>>,
    lines: Lines<G>,
    running: usize,
    backoff: Backoff,
    rng: Rng,
    added: u64,
    coalesced: u64,
    served: u64,
    retried: u64,
}

/// A turn that has begun.
pub(super) struct Taken<G, K> {
    /// Names the turn when it ends.
    pub(super) slot: usize,
    pub(super) id: Id<G, K>,
    /// How many turns on this key have failed in a row before this one.
    pub(super) failures: u32,
}

struct Entry<G, K> {
    id: Id<G, K>,
    place: Place,
    /// Failures in a row. Invariant: a delayed entry with failures is backing off; plain delays have none. Kept by
    /// `finish`, which clears the count with every verdict but a retry.
    failures: u32,
}

/// Where a key is. Invariant: it is in the one line its place names, and in no other.
enum Place {
    Ready,
    Delayed(Due),
    /// Somebody works on it; what was asked for meanwhile is answered after the turn.
    Running(Option<Again>),
}

/// A time, and a ticket that keeps apart and in order what is due at the same time.
type Due = (Duration, u64);

#[derive(Clone, Copy)]
enum Again {
    At(Duration),
    Now,
    Fresh,
}

impl Again {
    /// Returns the request that answers both.
    fn merge(self, other: Self) -> Self {
        match (self, other) {
            (Self::Fresh, _) | (_, Self::Fresh) => Self::Fresh,
            (Self::Now, _) | (_, Self::Now) => Self::Now,
            (Self::At(one), Self::At(two)) => Self::At(one.min(two)),
        }
    }
}

impl<G: Label, K: Label> Schedule<G, K> {
    pub(super) fn new(backoff: Backoff, seed: u64) -> Self {
        Self {
            index: HashMap::new(),
            entries: Slots::new(),
            lines: Lines {
                ready: Rotation::new(),
                delayed: BTreeMap::new(),
                tickets: 0,
            },
            running: 0,
            backoff,
            rng: Rng::with_seed(seed),
            added: 0,
            coalesced: 0,
            served: 0,
            retried: 0,
        }
    }

    /// Takes a wake-up in, or gives the key back when it is a new one and `room` says there is none.
    pub(super) fn add(
        &mut self,
        id: Id<G, K>,
        wake: Wake,
        now: Duration,
        room: impl FnOnce() -> bool,
    ) -> Result<(), Id<G, K>> {
        let again = match wake {
            Wake::Now => Again::Now,
            Wake::Fresh => Again::Fresh,
            Wake::After(delay) => Again::At(now.saturating_add(delay)),
        };
        match self.index.entry(id) {
            Slot::Vacant(vacant) => {
                if !room() {
                    return Err(vacant.into_key());
                }
                let at = match again {
                    Again::At(at) => at,
                    Again::Now | Again::Fresh => now,
                };
                let slot = self.entries.insert(Entry {
                    id: vacant.key().clone(),
                    place: Place::Running(None),
                    failures: 0,
                });
                self.entries[slot].put(slot, at, now, &mut self.lines);
                vacant.insert(slot);
                self.added += 1;
            }
            Slot::Occupied(occupied) => {
                let slot = *occupied.get();
                self.entries[slot].wake(slot, again, now, &mut self.lines);
                self.coalesced += 1;
            }
        }
        Ok(())
    }

    /// Starts the next turn, if any key is ready.
    pub(super) fn take(&mut self, now: Duration) -> Option<Taken<G, K>> {
        self.promote(now);
        let slot = self.lines.ready.pop()?;
        let entry = &mut self.entries[slot];
        entry.place = Place::Running(None);
        self.running += 1;
        self.served += 1;
        Some(Taken {
            slot,
            id: entry.id.clone(),
            failures: entry.failures,
        })
    }

    /// Ends a turn. Returns whether the key left, which makes room for another.
    pub(super) fn finish(&mut self, slot: usize, verdict: Verdict, now: Duration) -> bool {
        let entry = &mut self.entries[slot];
        let Place::Running(again) = entry.place else {
            unreachable!("a turn ends once");
        };
        self.running -= 1;
        if verdict == Verdict::Retry {
            self.retried += 1;
        }
        let at = match (again, verdict) {
            // The failure was about an input that is no longer there.
            (Some(Again::Fresh), _) => Some(now),
            (_, Verdict::Retry) => {
                entry.failures = entry.failures.saturating_add(1);
                let delay = self.backoff.delay(entry.failures, &mut self.rng);
                entry.put(slot, now.saturating_add(delay), now, &mut self.lines);
                return false;
            }
            (Some(Again::Now), _) => Some(now),
            (Some(Again::At(at)), Verdict::Done) => Some(at),
            (Some(Again::At(at)), Verdict::After(delay)) => Some(at.min(now.saturating_add(delay))),
            (None, Verdict::After(delay)) => Some(now.saturating_add(delay)),
            (None, Verdict::Done) => None,
        };
        let Some(at) = at else {
            let entry = self.entries.remove(slot);
            self.index.remove(&entry.id);
            return true;
        };
        entry.failures = 0;
        entry.put(slot, at, now, &mut self.lines);
        false
    }

    pub(super) fn has_ready(&self) -> bool {
        self.lines.ready.len() > 0
    }

    /// Returns when the earliest delayed key is due; it may be in the past.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.lines.delayed.keys().next().map(|(at, _)| *at)
    }

    /// Returns the counts at this moment. What has come due while every worker was busy counts as ready.
    pub(super) fn stats(&mut self, now: Duration) -> Stats {
        self.promote(now);
        Stats {
            ready: self.lines.ready.len(),
            delayed: self.lines.delayed.len(),
            running: self.running,
            added: self.added,
            coalesced: self.coalesced,
            full: 0,
            served: self.served,
            retried: self.retried,
        }
    }

    #[cfg(test)]
    pub(super) fn due_of(&self, id: &Id<G, K>) -> Option<Duration> {
        match self.entries[*self.index.get(id)?].place {
            Place::Delayed((at, _)) => Some(at),
            Place::Ready | Place::Running(_) => None,
        }
    }

    /// Makes ready what has come due, earliest first.
    fn promote(&mut self, now: Duration) {
        while let Some(first) = self.lines.delayed.first_entry()
            && first.key().0 <= now
        {
            let slot = first.remove();
            let entry = &mut self.entries[slot];
            entry.put(slot, now, now, &mut self.lines);
        }
    }
}

impl<G: Label, K> Entry<G, K> {
    fn wake(&mut self, slot: usize, again: Again, now: Duration, lines: &mut Lines<G>) {
        if let Place::Running(asked) = &mut self.place {
            *asked = Some(asked.map_or(again, |asked| asked.merge(again)));
            return;
        }
        let backs_off = self.failures > 0;
        if matches!(again, Again::Fresh) {
            self.failures = 0;
        }
        let Place::Delayed(due) = self.place else {
            return;
        };
        let at = match again {
            // The retry will see whatever happened; an eager one would defeat the backoff.
            Again::Now | Again::At(_) if backs_off => return,
            Again::Now | Again::Fresh => now,
            Again::At(at) => at,
        };
        if at < due.0 {
            lines.delayed.remove(&due);
            self.put(slot, at, now, lines);
        }
    }

    /// Puts the key in the line where it waits for its time or its worker. It must be in none.
    fn put(&mut self, slot: usize, at: Duration, now: Duration, lines: &mut Lines<G>) {
        if at <= now {
            lines.ready.push(self.id.0.clone(), slot);
            self.place = Place::Ready;
        } else {
            lines.tickets += 1;
            let due = (at, lines.tickets);
            lines.delayed.insert(due, slot);
            self.place = Place::Delayed(due);
        }
    }
}

/// Where keys wait, by slot. Delays are removed when they are overtaken, not skipped later: a key that is woken and
/// delayed over and over would otherwise leave a growing trail.
struct Lines<G> {
    ready: Rotation<G, usize>,
    delayed: BTreeMap<Due, usize>,
    tickets: u64,
}
