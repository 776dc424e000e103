//! A keyed, fair, bounded work queue.
//!
//! It answers one question for a pool of workers: which key is next? A key stands for "look at this again", not for an
//! event, so wake-ups of one key melt into one turn, and a turn serves every wake-up that came before it. What a turn
//! cannot know, that it should be looked at again later, its worker says in the verdict.

mod rotation;
mod schedule;
#[cfg(test)]
mod schedule_tests;
mod shared;
mod slots;
#[cfg(test)]
mod tests;

use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::coop::consume_budget;

use self::schedule::{Taken, Verdict};
use self::shared::Shared;
use super::backoff::Backoff;

/// What can name a group or a key.
pub trait Label: Clone + Eq + Hash {}

impl<T: Clone + Eq + Hash> Label for T {}

/// Why a key is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Something happened: the key is ready at once, unless it is backing off, in which case its retry will see it.
    Now,
    /// The input changed: past failures say nothing about it, so they are forgotten and the key is ready at once.
    Fresh,
    /// Look at it after this long. The earlier of two delays wins, and a key that is backing off keeps backing off.
    After(Duration),
}

/// How a queue behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many distinct keys it holds, whether ready, delayed or being worked on. Delayed keys stay inside for as long
    /// as they wait, so this must exceed the number of keys that are re-queued with `after`.
    pub capacity: NonZeroUsize,
    /// The delays between retries.
    pub backoff: Backoff,
    /// Determines the jitter.
    pub seed: u64,
}

impl Default for Settings {
    /// The largest fleet we budget for has 1,000 clusters × 10 works: ten times that, at up to 300 bytes a key, is
    /// 30 MiB. The seed differs from one start to the next: agents that fail together must not retry together.
    fn default() -> Self {
        Self {
            capacity: const { NonZeroUsize::new(100_000).expect("is not zero") },
            backoff: Backoff::default(),
            seed: fastrand::u64(..),
        }
    }
}

/// The queue has no room for another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the work queue is full; add the key again once a turn has ended")]
pub struct Full;

/// What a queue holds at one moment, and what it has done since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Keys waiting for a worker.
    pub ready: usize,
    /// Keys waiting for their time.
    pub delayed: usize,
    /// Keys being worked on.
    pub running: usize,
    /// Wake-ups that brought a new key in.
    pub added: u64,
    /// Wake-ups that melted into a key already inside.
    pub coalesced: u64,
    /// Wake-ups that found the queue full, and were refused or had to wait.
    pub full: u64,
    /// Turns started.
    pub served: u64,
    /// Turns that ended in a retry.
    pub retried: u64,
}

/// A work queue of keys in groups. Clones share one queue.
///
/// Workers call [`next`](Self::next) in a loop. No two turns on one key overlap, groups with ready keys take turns, and
/// within a group keys keep their order.
pub struct Queue<G: Label, K: Label> {
    shared: Arc<Shared<G, K>>,
}

impl<G: Label, K: Label> Clone for Queue<G, K> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<G: Label, K: Label> Queue<G, K> {
    /// Returns an empty, open queue.
    pub fn new(settings: &Settings) -> Self {
        Self {
            shared: Arc::new(Shared::new(settings)),
        }
    }

    /// Adds a key, or refuses when it is a new one and the queue is full. A closed queue takes it and forgets it.
    pub fn try_add(&self, group: G, key: K, wake: Wake) -> Result<(), Full> {
        self.shared.offer((group, key), wake).map_err(|_| Full)
    }

    /// Adds a key, and waits for room when it is a new one and the queue is full. A closed queue takes it and forgets
    /// it.
    ///
    /// Room is given out in the order it was asked for. Dropping the future before it resolves adds nothing.
    pub async fn add(&self, group: G, key: K, wake: Wake) {
        consume_budget().await;
        if let Err(id) = self.shared.offer((group, key), wake) {
            self.shared.wait_for_room(id, wake).await;
        }
    }

    /// Waits for a key and starts a turn on it. Returns `None` once the queue is closed.
    ///
    /// Dropping the future before it resolves loses nothing.
    pub async fn next(&self) -> Option<Turn<G, K>> {
        // Without this, workers that never wait would keep every other task off their thread.
        consume_budget().await;
        let taken = self.shared.take().await?;
        Some(Turn {
            queue: self.clone(),
            taken,
            verdict: Verdict::Retry,
        })
    }

    /// Ends the queue: every `next` returns `None` from now on, and every `add` returns at once. Turns under way end as
    /// usual.
    pub fn close(&self) {
        self.shared.close();
    }

    /// Returns the counts at this moment.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }
}

/// One worker's turn on one key. While it lasts, nobody else gets the key; wake-ups that arrive meanwhile are answered
/// after it.
///
/// Dropping it without a verdict, in a panic or a cancellation, counts as a retry.
#[must_use = "dropping a turn counts as a failure"]
pub struct Turn<G: Label, K: Label> {
    queue: Queue<G, K>,
    taken: Taken<G, K>,
    verdict: Verdict,
}

impl<G: Label, K: Label> Turn<G, K> {
    /// Returns the group of the key.
    pub fn group(&self) -> &G {
        &self.taken.id.0
    }

    /// Returns the key.
    pub fn key(&self) -> &K {
        &self.taken.id.1
    }

    /// Returns how many turns on this key have failed in a row before this one.
    pub fn failures(&self) -> u32 {
        self.taken.failures
    }

    /// Ends the turn well: the key leaves, and its failures are forgotten.
    pub fn done(mut self) {
        self.verdict = Verdict::Done;
    }

    /// Ends the turn in failure: the key comes back after a backoff.
    pub fn retry(mut self) {
        self.verdict = Verdict::Retry;
    }

    /// Ends the turn well, and has the key come back after `delay`.
    pub fn after(mut self, delay: Duration) {
        self.verdict = Verdict::After(delay);
    }
}

impl<G: Label, K: Label> Drop for Turn<G, K> {
    fn drop(&mut self) {
        self.queue.shared.finish(self.taken.slot, self.verdict);
    }
}
