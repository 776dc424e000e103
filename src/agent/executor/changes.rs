//! Changes of rights, gathered into rounds.

use std::{collections::BTreeSet, time::Duration};

use tokio::time::Instant;

/// How long the first change waits for company: a role is usually followed by its binding.
const GATHERED: Duration = Duration::from_millis(100);

/// The least time between two rounds. A chart with many roles must not have everything asked for again with each.
const APART: Duration = Duration::from_secs(1);

/// When a round is repeated. Our watch may show a change before the API server's own authorizer has seen it, and an
/// answer from in between would be the old one.
const REPEATED: Duration = Duration::from_secs(2);

/// Where rights have changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Changes {
    is_everywhere: bool,
    namespaces: BTreeSet<String>,
}

impl Changes {
    /// A role or binding of a namespace, which counts in that namespace only.
    pub(super) fn of_namespace(namespace: &str) -> Self {
        Self {
            is_everywhere: false,
            namespaces: BTreeSet::from([namespace.to_owned()]),
        }
    }

    /// A role or binding of the cluster, or a change that nobody has seen.
    pub(super) fn everywhere() -> Self {
        Self {
            is_everywhere: true,
            namespaces: BTreeSet::new(),
        }
    }

    /// Whether rights in a namespace, or in none, may have changed.
    pub(super) fn concern(&self, namespace: &str) -> bool {
        self.is_everywhere || self.namespaces.contains(namespace)
    }

    fn is_empty(&self) -> bool {
        !self.is_everywhere && self.namespaces.is_empty()
    }

    fn merge(&mut self, other: Self) {
        self.is_everywhere |= other.is_everywhere;
        self.namespaces.extend(other.namespaces);
    }
}

/// When which changes are acted on.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    gathered: Option<(Instant, Changes)>,
    repeated: Option<(Instant, Changes)>,
    last: Option<Instant>,
}

impl Rounds {
    /// Takes a change in.
    pub(super) fn add(&mut self, changes: Changes, now: Instant) {
        let earliest = self.last.map_or(now, |last| last + APART);
        let due = (now + GATHERED).max(earliest);
        let (_, gathered) = self
            .gathered
            .get_or_insert_with(|| (due, Changes::default()));
        gathered.merge(changes);
    }

    /// When there is something to act on.
    pub(super) fn due(&self) -> Option<Instant> {
        let times = [&self.gathered, &self.repeated].into_iter().flatten();
        times.map(|(due, _)| *due).min()
    }

    /// Takes out what is to be acted on now.
    pub(super) fn take(&mut self, now: Instant) -> Changes {
        let repeated = self.repeated.take_if(|(due, _)| *due <= now);
        let mut changes = repeated.map(|(_, changes)| changes).unwrap_or_default();
        if let Some((_, gathered)) = self.gathered.take_if(|(due, _)| *due <= now) {
            // An earlier repetition takes these along: put off by each new round, it would never come.
            let (_, repeated) = self
                .repeated
                .get_or_insert_with(|| (now + REPEATED, Changes::default()));
            repeated.merge(gathered.clone());
            changes.merge(gathered);
        }
        if !changes.is_empty() {
            self.last = Some(now);
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_gathered_and_acted_on_twice() {
        let start = Instant::now();
        let mut rounds = Rounds::default();
        assert_eq!(rounds.due(), None);

        rounds.add(Changes::of_namespace("shop"), start);
        rounds.add(Changes::of_namespace("bank"), start + GATHERED / 2);
        let first = start + GATHERED;
        assert_eq!(rounds.due(), Some(first));
        assert!(rounds.take(start).is_empty(), "before its time");
        let changes = rounds.take(first);
        assert!(changes.concern("shop") && changes.concern("bank") && !changes.concern(""));

        assert_eq!(rounds.due(), Some(first + REPEATED));
        assert_eq!(rounds.take(first + REPEATED), changes);
        assert_eq!(rounds.due(), None, "a repetition is not repeated");
    }

    #[test]
    fn a_stream_of_changes_has_rounds_apart_and_loses_no_repetition() {
        let start = Instant::now();
        let mut rounds = Rounds::default();
        let mut taken = Vec::new();
        // A change every tenth of a second, for five seconds; the first is the only one in its namespace.
        for tick in 0..100 {
            let now = start + tick * GATHERED;
            if rounds.due().is_some_and(|due| due <= now) {
                taken.push((now, rounds.take(now)));
            }
            if tick < 50 {
                let namespace = if tick == 0 { "first" } else { "shop" };
                rounds.add(Changes::of_namespace(namespace), now);
            }
        }
        assert!(taken.len() <= 9, "{taken:?}");
        let first = taken
            .iter()
            .filter(|(_, changes)| changes.concern("first"))
            .count();
        assert_eq!(first, 2, "{taken:?}");
        let (last, changes) = taken.last().unwrap();
        assert!(*last >= start + 49 * GATHERED && changes.concern("shop"));
        assert_eq!(rounds.due(), None);
    }

    #[test]
    fn a_change_of_the_cluster_concerns_everything() {
        let changes = Changes::everywhere();
        assert!(changes.concern("") && changes.concern("shop"));
    }
}
