//! The passes under way, and whether they get anywhere.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use super::state::Key;

/// A pass that has not come a step further for this long never will. A step is one object, which takes fifteen requests
/// at most, and each is given up after 65 seconds.
const STUCK: Duration = Duration::from_mins(20);

/// The passes under way.
#[derive(Debug, Default)]
pub struct Turns {
    /// When each last came a step further.
    steps: HashMap<Key, Instant>,
}

impl Turns {
    /// A pass begins.
    pub fn begin(&mut self, key: &Key, now: Instant) {
        self.steps.insert(key.clone(), now);
    }

    /// A pass has come a step further. One that is not under way has not.
    pub fn step(&mut self, key: &Key, now: Instant) {
        if let Some(last) = self.steps.get_mut(key) {
            *last = now;
        }
    }

    /// A pass has ended.
    pub fn end(&mut self, key: &Key) {
        self.steps.remove(key);
    }

    /// The passes that do not get anywhere, and how long they have not.
    pub fn stuck(&self, now: Instant) -> Vec<(Key, Duration)> {
        let steps = self.steps.iter();
        let mut stuck: Vec<_> = steps
            .map(|(key, last)| (key.clone(), now.saturating_duration_since(*last)))
            .filter(|(_, since)| *since >= STUCK)
            .collect();
        stuck.sort_by_key(|(_, since)| std::cmp::Reverse(*since));
        stuck
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_is_stuck_when_it_takes_no_step() {
        let begin = Instant::now();
        let at = |minutes| begin + Duration::from_mins(minutes);
        let [slow, stuck, done] = ["slow", "stuck", "done"].map(|name| Key::Work(name.to_owned()));
        let mut turns = Turns::default();
        for key in [&slow, &stuck, &done] {
            turns.begin(key, at(0));
        }
        turns.end(&done);
        turns.step(&done, at(1));
        turns.step(&slow, at(15));
        assert_eq!(turns.stuck(at(19)), []);
        assert_eq!(
            turns.stuck(at(21)),
            [(stuck.clone(), Duration::from_mins(21))]
        );
        turns.step(&stuck, at(22));
        assert_eq!(turns.stuck(at(34)), []);
        assert_eq!(turns.stuck(at(36)), [(slow, Duration::from_mins(21))]);
    }
}
