//! Whether changes of rights on the spoke are seen.

use std::time::Duration;

use tokio::time::Instant;

use super::question::GRANTING;

/// How long a watch counts as broken after it last said so. One that stays broken says so every 30 to 60 s; one that
/// recovers without anything having changed says nothing.
const QUIET: Duration = Duration::from_mins(2);

/// What the watches are good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// There are none, or they have only just begun.
    Starting,
    /// Every change is seen.
    Complete,
    /// Some changes may not be seen.
    Partial,
}

/// What is known of the watches of the kinds that decide about rights.
#[derive(Debug, Default)]
pub(super) struct Overview {
    kinds: [Kind; GRANTING.len()],
}

#[derive(Debug, Default)]
struct Kind {
    is_listed: bool,
    broke: Option<Instant>,
}

impl Overview {
    /// A kind was listed. Returns whether it had been before: what changed in between was not seen.
    pub(super) fn listed(&mut self, kind: usize) -> bool {
        let kind = &mut self.kinds[kind];
        kind.broke = None;
        std::mem::replace(&mut kind.is_listed, true)
    }

    /// A watch showed something.
    pub(super) fn shown(&mut self, kind: usize) {
        self.kinds[kind].broke = None;
    }

    /// A watch broke. Returns whether that is news.
    pub(super) fn broke(&mut self, kind: usize, now: Instant) -> bool {
        let before = self.kinds[kind].broke.replace(now);
        before.is_none_or(|before| is_over(before, now))
    }

    /// What the watches are good for now.
    pub(super) fn sight(&self, now: Instant) -> Sight {
        let is_broken = |kind: &Kind| kind.broke.is_some_and(|broke| !is_over(broke, now));
        if self.kinds.iter().any(is_broken) {
            Sight::Partial
        } else if self.kinds.iter().all(|kind| kind.is_listed) {
            Sight::Complete
        } else {
            Sight::Starting
        }
    }
}

fn is_over(broke: Instant, now: Instant) -> bool {
    now.duration_since(broke) >= QUIET
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sight_is_complete_once_every_kind_is_listed_and_while_no_watch_is_broken() {
        let start = Instant::now();
        let mut overview = Overview::default();
        for kind in 0..GRANTING.len() {
            assert_eq!(overview.sight(start), Sight::Starting);
            assert!(!overview.listed(kind));
        }
        assert_eq!(overview.sight(start), Sight::Complete);

        assert!(overview.broke(1, start));
        assert!(!overview.broke(1, start), "told once");
        assert_eq!(overview.sight(start), Sight::Partial);
        assert_eq!(overview.sight(start + QUIET), Sight::Complete);

        assert!(overview.broke(1, start + QUIET));
        overview.shown(1);
        assert_eq!(overview.sight(start + QUIET), Sight::Complete);
        assert!(overview.listed(1), "listed again");
    }

    #[test]
    fn a_kind_that_may_not_be_watched_leaves_sight_partial_at_once() {
        let start = Instant::now();
        let mut overview = Overview::default();
        overview.broke(0, start);
        assert_eq!(overview.sight(start), Sight::Partial);
        assert_eq!(
            overview.sight(start + QUIET),
            Sight::Starting,
            "never listed"
        );
    }
}
