//! How long to wait after the n-th failure in a row.

use std::time::Duration;

use fastrand::Rng;

/// Doubling delays with an upper limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The delay after the first failure, before jitter. Zero would retry in a hot loop.
    pub base: Duration,
    /// The delay no number of failures exceeds.
    pub max: Duration,
}

impl Default for Backoff {
    /// A lost write race is retried before a person notices; a broken manifest costs one attempt every few minutes.
    fn default() -> Self {
        Self {
            base: Duration::from_millis(100),
            max: Duration::from_mins(5),
        }
    }
}

impl Backoff {
    /// Returns the delay after `failures` failures in a row, drawn evenly from the upper half of the full delay.
    ///
    /// The jitter spreads keys that failed together, for example because their API server went away. It only ever
    /// shortens, so `max` holds, and never below half, so the delays still grow.
    pub fn delay(&self, failures: u32, rng: &mut Rng) -> Duration {
        let full = self.full(failures);
        // Exact for delays up to 584 years; beyond that the jitter is merely narrower.
        let span = u64::try_from((full / 2).as_nanos()).unwrap_or(u64::MAX);
        full.saturating_sub(Duration::from_nanos(rng.u64(0..=span)))
    }

    /// Returns the delay before jitter.
    fn full(&self, failures: u32) -> Duration {
        2_u32
            .checked_pow(failures.saturating_sub(1))
            .map_or(self.max, |factor| self.base.saturating_mul(factor))
            .min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Backoff, Duration, Rng};

    const BACKOFF: Backoff = Backoff {
        base: Duration::from_millis(100),
        max: Duration::from_mins(1),
    };

    #[test]
    fn the_full_delay_doubles_up_to_the_limit() {
        let cases = [
            (0, 100),
            (1, 100),
            (2, 200),
            (3, 400),
            (10, 51_200),
            (11, 60_000),
            (32, 60_000),
            (33, 60_000),
            (u32::MAX, 60_000),
        ];
        for (failures, millis) in cases {
            assert_eq!(
                BACKOFF.full(failures),
                Duration::from_millis(millis),
                "after {failures} failures"
            );
        }
    }

    #[test]
    fn the_same_seed_draws_the_same_delays() {
        let draw = |seed| {
            let mut rng = Rng::with_seed(seed);
            (1..20)
                .map(|failures| BACKOFF.delay(failures, &mut rng))
                .collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_delay_lies_in_the_upper_half(seed: u64, failures: u32, base in 1..u64::MAX, max in 1..u64::MAX) {
            let backoff = Backoff { base: Duration::from_nanos(base), max: Duration::from_nanos(max) };
            let delay = backoff.delay(failures, &mut Rng::with_seed(seed));
            let full = backoff.full(failures);
            prop_assert!(full / 2 <= delay && delay <= full);
            prop_assert!(delay <= backoff.max);
        }

        #[test]
        fn a_further_failure_never_shortens_the_full_delay(failures in 0..u32::MAX) {
            prop_assert!(BACKOFF.full(failures) <= BACKOFF.full(failures + 1));
        }
    }
}
