//! How many requests a server may have under way at a time: many while it copes, half as many when it does not.
//!
//! A plain value. Whoever makes the requests tells it how they went, and keeps to its limit.

use std::time::Duration;

/// Halves take effect one at a time: what a server says before it can have felt the last one is about the time before.
const SETTLING: Duration = Duration::from_secs(1);

/// How long a limit that was too high is not tried again. Each try may cost a second in which the server wants quiet.
const REMEMBERED: Duration = Duration::from_secs(10);

/// A limit that follows a server's strength: it grows by one when as many requests as it allows have gone well, and
/// is halved by one that finds the server overloaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pace {
    limit: usize,
    /// Requests that went well since the limit last changed.
    went_well: usize,
    halved: Option<Halved>,
}

/// The last time that the limit was halved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Halved {
    at: Duration,
    /// The limit until then.
    from: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            limit: Self::START,
            went_well: 0,
            halved: None,
        }
    }
}

impl Pace {
    /// Where the limit starts: above what an agent has under way by default, which is 8 writes for each of 10 works,
    /// so that nothing waits that no server has asked to wait.
    pub const START: usize = 128;
    /// What the limit never exceeds. An API server that nobody has tuned takes 200 writes and 400 reads at a time,
    /// from everybody together.
    pub const MOST: usize = 256;

    /// How many requests may be under way. At least one.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// A request went well while so many were under way, itself among them. What goes well far below the limit says
    /// nothing about the limit.
    pub fn went_well(&mut self, under_way: usize, now: Duration) {
        let is_known_too_high = self.halved.is_some_and(|halved| {
            self.limit + 1 >= halved.from && now < halved.at.saturating_add(REMEMBERED)
        });
        if is_known_too_high || under_way.saturating_mul(2) < self.limit {
            return;
        }
        self.went_well += 1;
        if self.went_well >= self.limit {
            self.went_well = 0;
            self.limit = (self.limit + 1).min(Self::MOST);
        }
    }

    /// A request found the server overloaded. Times are those since any one moment.
    pub fn overloaded(&mut self, began: Duration, now: Duration) {
        let is_old = self
            .halved
            .is_some_and(|halved| began < halved.at || now < halved.at.saturating_add(SETTLING));
        if is_old {
            return;
        }
        self.halved = Some(Halved {
            at: now,
            from: self.limit,
        });
        self.went_well = 0;
        self.limit = (self.limit / 2).max(1);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Duration, Pace};

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn overload_halves_the_limit_once_at_a_time() {
        // When each request began and ended, and the limit after that.
        let table = [
            (0, 10, 64),
            // Began before the limit was halved.
            (5, 2000, 64),
            // Ended before anybody could have felt it.
            (20, 900, 64),
            (20, 1010, 32),
            (1010, 2010, 16),
            (2010, 60_000, 8),
            (59_000, 70_000, 8),
            (60_000, 70_000, 4),
            (80_000, 80_000, 2),
            (90_000, 90_000, 1),
            (100_000, 100_000, 1),
        ];
        let mut pace = Pace::default();
        for (began, now, limit) in table {
            pace.overloaded(ms(began), ms(now));
            assert_eq!(pace.limit(), limit, "after {began} to {now}");
        }
    }

    #[test]
    fn the_limit_grows_by_one_for_each_fill_that_goes_well() {
        let mut pace = Pace::default();
        (1..Pace::START).for_each(|_| pace.went_well(Pace::START, ms(0)));
        assert_eq!(pace.limit(), Pace::START);
        pace.went_well(Pace::START, ms(0));
        assert_eq!(pace.limit(), Pace::START + 1);
        (0..100_000).for_each(|_| pace.went_well(1, ms(0)));
        assert_eq!(pace.limit(), Pace::START + 1, "one at a time proves little");
    }

    #[test]
    fn a_limit_that_was_too_high_is_not_tried_again_soon() {
        let mut pace = Pace::default();
        pace.overloaded(ms(0), ms(0));
        for _ in 0..100_000 {
            pace.went_well(pace.limit(), ms(9_999));
        }
        assert_eq!(pace.limit(), Pace::START - 1);
        for _ in 0..Pace::START {
            pace.went_well(pace.limit(), ms(10_000));
        }
        assert_eq!(pace.limit(), Pace::START);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_limit_stays_in_its_bounds_and_recovers(
            steps in prop::collection::vec((any::<bool>(), 0..5000_u64, 0..5000_u64, 0..300_usize), 0..300),
        ) {
            let (mut pace, mut now) = (Pace::default(), 0);
            for (is_well, lasted, pause, under_way) in steps {
                now += pause;
                let before = pace.limit();
                if is_well {
                    pace.went_well(under_way, ms(now));
                    prop_assert!(pace.limit() == before || pace.limit() == before + 1);
                } else {
                    pace.overloaded(ms(now.saturating_sub(lasted)), ms(now));
                    prop_assert!(pace.limit() == before || pace.limit() == (before / 2).max(1));
                }
                prop_assert!((1..=Pace::MOST).contains(&pace.limit()));
            }
            // From one to the most is a sum of fills: 1 + 2 + … + 256.
            for _ in 0..Pace::MOST * (Pace::MOST + 1) / 2 {
                pace.went_well(pace.limit(), ms(now + 10_000));
            }
            prop_assert_eq!(pace.limit(), Pace::MOST);
        }
    }
}
