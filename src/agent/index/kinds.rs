//! The kinds whose objects are held: what is to be watched, and what a watch knows.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use super::{Index, Sight};
use crate::spoke::{cluster::ObjectKey, kinds::Kind};

/// Whether a watch on a kind would show what happens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Watching {
    /// Not yet: it is new, or has broken.
    #[default]
    Begun,
    /// It is up to date.
    UpToDate,
    /// It is not possible; objects of this kind are looked at now and then.
    Impossible,
    /// The same, because the kind is gone. It can be watched when it is back.
    Gone,
}

/// A kind that is to be watched.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Wanted {
    /// The kind.
    pub kind: Kind,
    /// Whether rules need its objects whole; metadata is enough otherwise.
    pub is_whole: bool,
}

#[derive(Default)]
pub(super) struct Watched {
    /// How many objects are held.
    pub(super) objects: usize,
    /// How many of them rules are about.
    pub(super) observed: usize,
    pub(super) watching: Watching,
    /// While a list is under way: what it has shown so far.
    pub(super) listed: HashSet<ObjectKey>,
}

impl Index {
    /// Keeps count of what is held of each kind. Returns whether other watches are wanted now.
    pub(super) fn count(
        &mut self,
        before: Option<(Arc<Kind>, bool)>,
        after: Option<(Arc<Kind>, bool)>,
    ) -> bool {
        if before == after {
            return false;
        }
        let kinds: Vec<Arc<Kind>> = [&before, &after]
            .into_iter()
            .flatten()
            .map(|(kind, _)| kind.clone())
            .collect();
        let wanted = |index: &Self| -> Vec<Option<bool>> {
            let of = |kind: &Arc<Kind>| index.kinds.get(kind).map(|watched| watched.observed > 0);
            kinds.iter().map(of).collect()
        };
        let was_wanted = wanted(self);
        if let Some((kind, is_observed)) = before
            && let Some(watched) = self.kinds.get_mut(&kind)
        {
            watched.objects -= 1;
            watched.observed -= usize::from(is_observed);
        }
        if let Some((kind, is_observed)) = after {
            let watched = self.kinds.entry(kind).or_default();
            watched.objects += 1;
            watched.observed += usize::from(is_observed);
        }
        self.kinds.retain(|_, watched| watched.objects > 0);
        wanted(self) != was_wanted
    }

    /// The kinds to be watched.
    pub fn wanted(&self) -> HashSet<Wanted> {
        let held = self.kinds.iter().map(|(kind, watched)| Wanted {
            kind: Kind::clone(kind),
            is_whole: watched.observed > 0,
        });
        let unblocking = self.blocked.kinds().into_iter();
        let unblocking = unblocking
            .filter(|kind| !self.kinds.contains_key(kind))
            .map(|kind| Wanted {
                kind,
                is_whole: false,
            });
        held.chain(unblocking).collect()
    }

    /// The kinds that are watched, how many objects of each are held, and whether its watch is up to date.
    pub fn watched(&self) -> Vec<(Kind, usize, bool)> {
        let kinds = self.kinds.iter();
        kinds
            .map(|(kind, watched)| {
                (
                    Kind::clone(kind),
                    watched.objects,
                    watched.watching == Watching::UpToDate,
                )
            })
            .collect()
    }

    /// A watch begins with a list, because it is new or has broken: until it is done, it knows nothing.
    pub fn listing(&mut self, kind: &Kind) {
        if let Some(watched) = self.kinds.get_mut(kind) {
            watched.watching = Watching::Begun;
            watched.listed.clear();
        }
    }

    /// The list is done. What it did not show may be gone or newer than the list; nobody knows until somebody looks.
    /// Returns the works that have something to do.
    pub fn listed(&mut self, kind: &Kind) -> BTreeSet<String> {
        let Some(watched) = self.kinds.get_mut(kind) else {
            return BTreeSet::new();
        };
        watched.watching = Watching::UpToDate;
        let shown = std::mem::take(&mut watched.listed);
        self.doubt(kind, |key| !shown.contains(key))
    }

    /// A kind cannot be watched: what is known of its objects is in doubt, now and again until it can. Returns the works
    /// that have something to do.
    pub fn unwatchable(&mut self, kind: &Kind, is_gone: bool) -> BTreeSet<String> {
        let Some(watched) = self.kinds.get_mut(kind) else {
            return BTreeSet::new();
        };
        watched.watching = if is_gone {
            Watching::Gone
        } else {
            Watching::Impossible
        };
        self.doubt(kind, |_| true)
    }

    /// Takes out of these kinds those that are back: an object of them has been written, or nobody holds any.
    pub fn back(&self, gone: &mut HashSet<Kind>) -> Vec<Kind> {
        let is_gone = |kind: &Kind| {
            let watched = self.kinds.get(kind);
            watched.is_some_and(|watched| watched.watching == Watching::Gone)
        };
        gone.extract_if(|kind| !is_gone(kind)).collect()
    }

    fn doubt(&mut self, kind: &Kind, is_doubtful: impl Fn(&ObjectKey) -> bool) -> BTreeSet<String> {
        let mut works = BTreeSet::new();
        let objects = self.objects.iter_mut();
        for (key, held) in objects.filter(|(_, held)| *held.kind == *kind) {
            if is_doubtful(key) && held.sight != Sight::Gone && !held.is_being_written() {
                held.sight = Sight::Unknown;
            }
            works.extend(held.works.keys().cloned());
        }
        works
    }
}
