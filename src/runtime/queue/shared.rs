//! The schedule behind a lock, and the waiting around it.

use std::sync::PoisonError;
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use super::schedule::{Id, Schedule, Taken, Verdict};
use super::{Label, Settings, Stats, Wake};

#[expect(
    clippy::disallowed_types,
    reason = "many producers and workers share the queue; it is held for map operations only, never across an await"
)]
type Lock<T> = std::sync::Mutex<T>;

pub(super) struct Shared<G, K> {
    state: Lock<State<G, K>>,
    /// Rung for one waiting worker whenever there is unattended work.
    work: Notify,
    /// One permit for every key that could still come in.
    room: Semaphore,
    /// Where the schedule's time begins.
    start: Instant,
}

impl<G: Label, K: Label> Shared<G, K> {
    pub(super) fn new(settings: &Settings) -> Self {
        let capacity = settings.capacity.get().min(Semaphore::MAX_PERMITS);
        Self {
            state: Lock::new(State {
                schedule: Schedule::new(settings.backoff, settings.seed),
                watched: None,
                closed: false,
                full: 0,
            }),
            work: Notify::new(),
            room: Semaphore::new(capacity),
            start: Instant::now(),
        }
    }

    /// Takes a wake-up in, or gives the key back when it is a new one and there is no room.
    pub(super) fn offer(&self, id: Id<G, K>, wake: Wake) -> Result<(), Id<G, K>> {
        self.change(|state, now| {
            if state.closed {
                return Ok(());
            }
            // A permit that is freed while somebody waits for room goes to them, so nobody overtakes here.
            let room = || self.room.try_acquire().map(SemaphorePermit::forget).is_ok();
            let offered = state.schedule.add(id, wake, now, room);
            state.full += u64::from(offered.is_err());
            offered
        })
    }

    pub(super) async fn wait_for_room(&self, id: Id<G, K>, wake: Wake) {
        let Ok(permit) = self.room.acquire().await else {
            return;
        };
        // When the key came in by another way meanwhile, the permit is not forgotten but returned.
        let taken = self.change(|state, now| {
            state.schedule.add(id, wake, now, || {
                permit.forget();
                true
            })
        });
        debug_assert!(taken.is_ok(), "there was room");
    }

    /// Waits for a key to start a turn on. Returns `None` once the queue is closed.
    pub(super) async fn take(&self) -> Option<Taken<G, K>> {
        let mut watch = Watch {
            shared: self,
            due: None,
        };
        loop {
            match self.change(|state, now| state.step(now, &mut watch.due)) {
                Step::Closed => return None,
                Step::Take(taken) => return Some(taken),
                Step::Wait => {}
            }
            let rung = self.work.notified();
            match watch.due.and_then(|due| self.start.checked_add(due)) {
                // Rung or due, either is a reason to look again.
                Some(deadline) => timeout_at(deadline, rung).await.unwrap_or(()),
                None => rung.await,
            }
        }
    }

    pub(super) fn finish(&self, slot: usize, verdict: Verdict) {
        let left = self.change(|state, now| state.schedule.finish(slot, verdict, now));
        if left {
            self.room.add_permits(1);
        }
    }

    pub(super) fn close(&self) {
        self.change(|state, _| state.closed = true);
        self.room.close();
    }

    pub(super) fn stats(&self) -> Stats {
        self.change(|state, now| Stats {
            full: state.full,
            ..state.schedule.stats(now)
        })
    }

    /// Changes the state under the lock, then rings for a worker if there is work that none of them attends to.
    ///
    /// Invariant: unattended work implies a ring under way. It is kept here alone, because every access comes through
    /// here: a worker that takes one key of two passes the ring on, as does one that leaves while it keeps the time.
    /// `Notify` does its part: a ring without a waiter is kept, and one received by a cancelled waiter moves on.
    fn change<R>(&self, change: impl FnOnce(&mut State<G, K>, Duration) -> R) -> R {
        let now = self.start.elapsed();
        // A panic in here is a bug and ends the task that met it. Turns are ended while such a task unwinds; a second
        // panic from there would abort before anybody could say which task it was.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut state, now);
        let unattended = state.is_unattended();
        drop(state);
        if unattended {
            self.work.notify_one();
        }
        result
    }
}

struct State<G, K> {
    schedule: Schedule<G, K>,
    /// The time a waiting worker has set its timer to. One timer is enough, and waking one worker for it too.
    watched: Option<Duration>,
    closed: bool,
    full: u64,
}

enum Step<G, K> {
    Closed,
    Take(Taken<G, K>),
    Wait,
}

impl<G: Label, K: Label> State<G, K> {
    /// Decides what a worker that has nothing to do does next. `watch` is the time it keeps, if it does.
    fn step(&mut self, now: Duration, watch: &mut Option<Duration>) -> Step<G, K> {
        self.unwatch(watch.take());
        if self.closed {
            return Step::Closed;
        }
        if let Some(taken) = self.schedule.take(now) {
            return Step::Take(taken);
        }
        if let Some(due) = self.unwatched_due() {
            self.watched = Some(due);
            *watch = Some(due);
        }
        Step::Wait
    }

    fn unwatch(&mut self, due: Option<Duration>) {
        // Somebody else may keep an earlier time by now.
        if due.is_some() && self.watched == due {
            self.watched = None;
        }
    }

    /// Returns when the earliest delayed key is due, if no worker has set its timer to that or an earlier time.
    fn unwatched_due(&self) -> Option<Duration> {
        let due = self.schedule.next_due()?;
        self.watched
            .is_none_or(|watched| due < watched)
            .then_some(due)
    }

    /// Whether a waiting worker has a reason to look. A closed queue is one, for all of them in turn.
    fn is_unattended(&self) -> bool {
        self.closed || self.schedule.has_ready() || self.unwatched_due().is_some()
    }
}

/// A waiting worker's timer. When the worker is cancelled, another has to keep the time.
struct Watch<'a, G: Label, K: Label> {
    shared: &'a Shared<G, K>,
    due: Option<Duration>,
}

impl<G: Label, K: Label> Drop for Watch<'_, G, K> {
    fn drop(&mut self) {
        if self.due.is_some() {
            self.shared.change(|state, _| state.unwatch(self.due));
        }
    }
}
