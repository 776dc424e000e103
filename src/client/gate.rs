//! Where requests to one server wait: for a slot, and for the end of the quiet that it has asked for.

use std::{
    sync::{MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Semaphore, SemaphorePermit, TryAcquireError},
    time::{Instant, sleep_until},
};

use super::wish::Wish;
use crate::{
    runtime::pace::Pace,
    telemetry::{label::Hold, pace::PaceMetrics},
};

#[expect(
    clippy::disallowed_types,
    reason = "every request counts itself; held for that only"
)]
type Lock<T> = std::sync::Mutex<T>;

/// How often at most the log says that a server asks for quiet.
const TELLING: Duration = Duration::from_mins(1);

/// The way to one server.
#[derive(Debug)]
pub(super) struct Gate {
    /// Invariant: free slots and those in use are together `limit + surplus`.
    slots: Semaphore,
    state: Lock<State>,
    origin: Instant,
    metrics: PaceMetrics,
}

#[derive(Debug)]
struct State {
    pace: Pace,
    under_way: usize,
    /// Slots that are in use and go when they come back, because the limit has fallen meanwhile.
    surplus: usize,
    quiet: Quiet,
    told: Option<Instant>,
}

/// What a server has asked for last.
#[derive(Debug, Clone, Copy)]
struct Quiet {
    until: Instant,
    asked: Duration,
}

impl Gate {
    pub(super) fn new(metrics: PaceMetrics) -> Self {
        let (pace, now) = (Pace::default(), Instant::now());
        metrics.set_limit(pace.limit());
        Self {
            slots: Semaphore::new(pace.limit()),
            state: Lock::new(State {
                pace,
                under_way: 0,
                surplus: 0,
                quiet: Quiet {
                    until: now,
                    asked: Duration::ZERO,
                },
                told: None,
            }),
            origin: now,
            metrics,
        }
    }

    /// Waits for a slot, and then until the server may be asked. Nobody else could use the slot meanwhile.
    pub(super) async fn enter(&self) -> Slot<'_> {
        let permit = match self.slots.try_acquire() {
            Ok(permit) => permit,
            Err(TryAcquireError::NoPermits | TryAcquireError::Closed) => {
                self.metrics.held(Hold::Full);
                let permit = self.slots.acquire().await;
                permit.expect("nobody closes the slots")
            }
        };
        self.state().under_way += 1;
        let mut slot = Slot {
            gate: self,
            permit: Some(permit),
            began: Duration::ZERO,
        };
        self.wait_out().await;
        slot.began = self.origin.elapsed();
        slot
    }

    /// Waits until the server may be asked.
    pub(super) async fn wait_out(&self) {
        let mut is_counted = false;
        loop {
            let quiet = self.state().quiet;
            if quiet.until <= Instant::now() {
                return;
            }
            if !is_counted {
                self.metrics.held(Hold::Quiet);
                is_counted = true;
            }
            sleep_until(quiet.until + spread(quiet.asked)).await;
        }
    }

    /// Does as a server asks that has just answered.
    pub(super) fn heed(&self, wish: Wish) {
        let (Some(asked), true) = (wish.again, wish.is_for_all) else {
            return;
        };
        let now = Instant::now();
        let mut state = self.state();
        let until = now + asked;
        if until > state.quiet.until {
            state.quiet = Quiet { until, asked };
        }
        let is_news = state.told.is_none_or(|told| told + TELLING <= now);
        if is_news {
            state.told = Some(now);
        }
        drop(state);
        if is_news {
            let side = self.metrics.side().as_str();
            tracing::warn!(
                side,
                ?asked,
                "the API server is overloaded and asks for quiet; requests to it wait"
            );
        }
    }

    /// Counts a request that is made again.
    pub(super) fn again(&self) {
        self.metrics.held(Hold::Again);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A time to wait longer than asked, so that those who wait together do not come together.
pub(super) fn spread(asked: Duration) -> Duration {
    (asked / 4).mul_f64(fastrand::f64())
}

/// The right to have a request under way.
#[derive(Debug)]
pub(super) struct Slot<'a> {
    gate: &'a Gate,
    permit: Option<SemaphorePermit<'a>>,
    began: Duration,
}

impl Slot<'_> {
    /// The request has ended. `None` if that says nothing about the server's strength.
    pub(super) fn learn(&self, wish: Option<Wish>) {
        let Some(wish) = wish else { return };
        let mut state = self.gate.state();
        let (before, now) = (state.pace.limit(), self.gate.origin.elapsed());
        if wish.is_overloaded {
            state.pace.overloaded(self.began, now);
        } else {
            let under_way = state.under_way;
            state.pace.went_well(under_way, now);
        }
        let limit = state.pace.limit();
        if limit == before {
            return;
        }
        if limit > before {
            let kept = state.surplus.min(limit - before);
            state.surplus -= kept;
            self.gate.slots.add_permits(limit - before - kept);
        } else {
            let free = self.gate.slots.forget_permits(before - limit);
            state.surplus += before - limit - free;
        }
        self.gate.metrics.set_limit(limit);
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.state();
        state.under_way -= 1;
        if state.surplus > 0 {
            state.surplus -= 1;
            if let Some(permit) = self.permit.take() {
                permit.forget();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, future::join_all};

    use super::*;
    use crate::telemetry::metrics::Metrics;

    fn gate() -> Gate {
        Gate::new(Metrics::new().1.spoke.pace())
    }

    fn fill(gate: &Gate) -> Vec<Slot<'_>> {
        let slots = std::iter::from_fn(|| gate.enter().now_or_never());
        slots.collect()
    }

    #[tokio::test(start_paused = true)]
    async fn slots_follow_the_limit() {
        let gate = gate();
        let mut slots = fill(&gate);
        assert_eq!(slots.len(), Pace::START);

        slots[0].learn(Some(Wish::of_silence()));
        slots.truncate(Pace::START / 2);
        assert_eq!(fill(&gate).len(), 0, "slots in use count");
        slots.truncate(Pace::START / 2 - 3);
        assert_eq!(fill(&gate).len(), 3);

        // So many as the limit allows, and again, and so on: one more for each fill.
        for more in 0..5 {
            slots.extend(fill(&gate));
            assert_eq!(slots.len(), Pace::START / 2 + more);
            for slot in &slots {
                slot.learn(Some(Wish::default()));
            }
            slots.clear();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_halved_while_it_grows_keeps_its_count() {
        let gate = gate();
        for round in 0..20 {
            tokio::time::advance(Duration::from_secs(2)).await;
            let slots = fill(&gate);
            assert_eq!(slots.len(), gate.state().pace.limit(), "round {round}");
            for (number, slot) in slots.iter().enumerate() {
                let is_bad = number == 7 || slots.len() == 1;
                let bad = Wish::of_silence();
                slot.learn(Some(if is_bad { bad } else { Wish::default() }));
            }
        }
        assert_eq!(gate.state().surplus, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn quiet_is_for_all_and_ends() {
        let gate = gate();
        let wish = Wish {
            is_overloaded: true,
            again: Some(Duration::from_secs(4)),
            is_for_all: true,
        };
        gate.heed(Wish {
            is_for_all: false,
            ..wish
        });
        drop(gate.enter().now_or_never().expect("that was for one alone"));
        gate.heed(wish);
        let start = Instant::now();
        let shorter = Wish {
            again: Some(Duration::from_secs(1)),
            ..wish
        };
        gate.heed(shorter);
        let times = join_all((0..50).map(|_| async {
            drop(gate.enter().await);
            start.elapsed()
        }))
        .await;
        let (first, last) = (times.iter().min(), times.iter().max());
        assert!(first >= Some(&Duration::from_secs(4)), "{times:?}");
        assert!(last <= Some(&Duration::from_millis(5001)), "{times:?}");
        assert!(first < last, "all at once: {times:?}");
    }
}
