//! Values under small numbers.
//!
//! A line or a turn remembers the number of its entry and finds it without hashing the key again, which is most of what
//! the queue would otherwise spend its time on.

use std::ops::{Index, IndexMut};

pub(super) struct Slots<T> {
    values: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Slots<T> {
    pub(super) fn new() -> Self {
        Self {
            values: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(super) fn insert(&mut self, value: T) -> usize {
        if let Some(slot) = self.free.pop() {
            self.values[slot] = Some(value);
            return slot;
        }
        self.values.push(Some(value));
        self.values.len() - 1
    }

    pub(super) fn remove(&mut self, slot: usize) -> T {
        let value = self.values[slot].take().expect("the slot is taken");
        self.free.push(slot);
        value
    }
}

impl<T> Index<usize> for Slots<T> {
    type Output = T;

    fn index(&self, slot: usize) -> &T {
        self.values[slot].as_ref().expect("the slot is taken")
    }
}

impl<T> IndexMut<usize> for Slots<T> {
    fn index_mut(&mut self, slot: usize) -> &mut T {
        self.values[slot].as_mut().expect("the slot is taken")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_used_again_once_it_is_free() {
        let mut slots = Slots::new();
        let (a, b) = (slots.insert("a"), slots.insert("b"));
        assert_eq!(slots.remove(a), "a");
        let c = slots.insert("c");
        assert_eq!((slots[b], slots[c]), ("b", "c"));
        assert_eq!(slots.values.len(), 2);
    }
}
