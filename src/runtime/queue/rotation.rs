//! Ready keys: one line per group, and the groups take turns.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

use super::Label;

pub(super) struct Rotation<G, K> {
    /// Invariant: no line is empty, so that a group which has gone quiet costs nothing. Kept by `push` and `pop`.
    lines: HashMap<G, VecDeque<K>>,
    /// Invariant: names every group in `lines` exactly once. A group enters at the back, so it waits for at most one
    /// key of each group that was there before it.
    order: VecDeque<G>,
    len: usize,
}

impl<G: Label, K> Rotation<G, K> {
    pub(super) fn new() -> Self {
        Self {
            lines: HashMap::new(),
            order: VecDeque::new(),
            len: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, group: G, key: K) {
        self.len += 1;
        match self.lines.entry(group) {
            Entry::Occupied(mut line) => line.get_mut().push_back(key),
            Entry::Vacant(place) => {
                self.order.push_back(place.key().clone());
                place.insert(VecDeque::from([key]));
            }
        }
    }

    pub(super) fn pop(&mut self) -> Option<K> {
        let group = self.order.pop_front()?;
        let Entry::Occupied(mut line) = self.lines.entry(group) else {
            unreachable!("a group in the order has a line");
        };
        let key = line.get_mut().pop_front().expect("no line is empty");
        self.len -= 1;
        if line.get().is_empty() {
            line.remove();
        } else {
            self.order.push_back(line.key().clone());
        }
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_take_turns_and_keys_keep_their_order() {
        let mut rotation = Rotation::new();
        for (group, key) in [("a", 1), ("a", 2), ("a", 3), ("b", 4), ("c", 5), ("b", 6)] {
            rotation.push(group, key);
        }
        let served: Vec<_> = std::iter::from_fn(|| rotation.pop()).collect();
        assert_eq!(served, [1, 4, 5, 2, 6, 3]);
        assert_eq!(rotation.len(), 0);
        assert!(rotation.lines.is_empty(), "a quiet group leaves no trace");
    }

    #[test]
    fn a_returning_group_waits_behind_the_others() {
        let mut rotation = Rotation::new();
        rotation.push("a", 1);
        rotation.push("b", 2);
        assert_eq!(rotation.pop(), Some(1));
        rotation.push("a", 3);
        assert_eq!(rotation.pop(), Some(2));
        assert_eq!(rotation.pop(), Some(3));
        assert_eq!(rotation.pop(), None);
    }
}
