//! How long a work waits before values that its rules report are read again.
//!
//! A value may change many times a second, and every change that is reported is a write to the hub. The first change
//! after a quiet time is read after a second, together with all that follow it; while changes keep coming, the time
//! between two reads doubles, up to ten seconds.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

/// The time between two reads when changes have just begun.
const SHORTEST: Duration = Duration::from_secs(1);

/// The time between two reads while changes do not end.
const LONGEST: Duration = Duration::from_secs(10);

/// Below this many works nobody is forgotten: the map costs less than the sweep.
const FEW: usize = 64;

/// The works whose reported values have changed lately.
#[derive(Debug, Default)]
pub struct Coalesce {
    works: HashMap<String, Pace>,
    /// How many there were after the last sweep.
    swept: usize,
}

#[derive(Debug, Clone, Copy)]
struct Pace {
    /// When the work is, or was, looked at next.
    due: Instant,
    /// How long before that it was looked at last, at least.
    gap: Duration,
}

impl Coalesce {
    /// Takes note of a change, and returns how long the work may wait until it is looked at.
    pub fn delay(&mut self, work: &str, now: Instant) -> Duration {
        let known = self.works.get(work).copied();
        let pace = match known {
            Some(pace) if now < pace.due => pace,
            Some(pace) if !pace.is_over(now) => {
                let gap = (pace.gap * 2).min(LONGEST);
                Pace {
                    due: pace.due + gap,
                    gap,
                }
            }
            _ => Pace {
                due: now + SHORTEST,
                gap: SHORTEST,
            },
        };
        if known.is_none() {
            self.make_room(now);
        }
        self.works.insert(work.to_owned(), pace);
        pace.due - now
    }

    /// Forgets works that have been quiet: to them, having changed once is as good as never. So nobody has to say that
    /// a work is gone, and there are never more than twice those that change.
    fn make_room(&mut self, now: Instant) {
        if self.works.len() >= FEW.max(2 * self.swept) {
            self.works.retain(|_, pace| !pace.is_over(now));
            self.swept = self.works.len();
        }
    }
}

impl Pace {
    /// Whether nothing has changed for as long as the work was made to wait.
    fn is_over(&self, now: Instant) -> bool {
        now >= self.due + self.gap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(changes: &[u64]) -> Vec<u64> {
        let begin = Instant::now();
        let mut coalesce = Coalesce::default();
        changes
            .iter()
            .map(|at| {
                let delay = coalesce.delay("web", begin + Duration::from_millis(*at));
                u64::try_from(delay.as_millis()).unwrap()
            })
            .collect()
    }

    #[test]
    fn the_longer_changes_last_the_rarer_they_are_read() {
        let table: [(&str, &[u64], &[u64]); 5] = [
            (
                "all that follow the first within a second are read with it",
                &[0, 10, 400, 999],
                &[1000, 990, 600, 1],
            ),
            (
                "a change after the read waits twice as long as the last",
                &[0, 1000, 1200, 3000, 7500],
                &[1000, 2000, 1800, 4000, 7500],
            ),
            (
                "but never longer than ten seconds",
                &[0, 1000, 3000, 7000, 15_000, 25_000, 35_000],
                &[1000, 2000, 4000, 8000, 10_000, 10_000, 10_000],
            ),
            (
                "after a quiet time a change is the first again",
                &[0, 1000, 3000, 11_000, 11_500],
                &[1000, 2000, 4000, 1000, 500],
            ),
            (
                "one change now and then is always read at once",
                &[0, 5000, 10_000],
                &[1000, 1000, 1000],
            ),
        ];
        for (what, changes, expected) in table {
            assert_eq!(delays(changes), expected, "{what}");
        }
    }

    #[test]
    fn works_wait_for_themselves_only() {
        let now = Instant::now();
        let mut coalesce = Coalesce::default();
        coalesce.delay("busy", now);
        coalesce.delay("busy", now + Duration::from_secs(1));
        assert_eq!(
            coalesce.delay("calm", now + Duration::from_secs(1)),
            SHORTEST
        );
    }

    #[test]
    fn quiet_works_are_forgotten() {
        let begin = Instant::now();
        let mut coalesce = Coalesce::default();
        for number in 0..10_000 {
            coalesce.delay(
                &format!("work-{number}"),
                begin + Duration::from_secs(number),
            );
            assert!(coalesce.works.len() <= FEW, "{}", coalesce.works.len());
        }
    }
}
