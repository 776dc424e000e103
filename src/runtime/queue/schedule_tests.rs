//! The schedule against hand-written cases, and against a slow model of what it should do.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::schedule::{self, Verdict};
use super::{Stats, Wake};
use crate::runtime::backoff::Backoff;

const BACKOFF: Backoff = Backoff {
    base: Duration::from_millis(100),
    max: Duration::from_secs(2),
};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A schedule whose turns are told apart by key, as the model's are.
struct Schedule {
    inner: schedule::Schedule<u8, u8>,
    slots: BTreeMap<(u8, u8), usize>,
}

impl Schedule {
    fn take(&mut self, now: Duration) -> Option<((u8, u8), u32)> {
        let taken = self.inner.take(now)?;
        let other = self.slots.insert(taken.id, taken.slot);
        assert_eq!(other, None, "two turns on {:?}", taken.id);
        Some((taken.id, taken.failures))
    }

    fn finish(&mut self, id: (u8, u8), verdict: Verdict, now: Duration) -> bool {
        let slot = self.slots.remove(&id).expect("a turn is under way");
        self.inner.finish(slot, verdict, now)
    }
}

impl std::ops::Deref for Schedule {
    type Target = schedule::Schedule<u8, u8>;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

impl std::ops::DerefMut for Schedule {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.inner
    }
}

fn schedule() -> Schedule {
    Schedule {
        inner: schedule::Schedule::new(BACKOFF, 0),
        slots: BTreeMap::new(),
    }
}

fn add(schedule: &mut Schedule, id: (u8, u8), wake: Wake, now: u64) {
    schedule
        .add(id, wake, ms(now), || true)
        .expect("there is room");
}

fn take(schedule: &mut Schedule, now: u64) -> Option<(u8, u8)> {
    schedule.take(ms(now)).map(|(id, _)| id)
}

#[test]
fn wake_ups_coalesce_into_one_turn() {
    let mut schedule = schedule();
    for _ in 0..5 {
        add(&mut schedule, (0, 1), Wake::Now, 0);
    }
    assert_eq!(take(&mut schedule, 0), Some((0, 1)));
    assert_eq!(take(&mut schedule, 0), None);
    assert!(schedule.finish((0, 1), Verdict::Done, ms(1)));
    assert_eq!(take(&mut schedule, 1), None);
    let stats = schedule.stats(ms(1));
    assert_eq!((stats.added, stats.coalesced, stats.served), (1, 4, 1));
}

#[test]
fn the_earlier_of_two_delays_wins() {
    for (first, second) in [(30, 10), (10, 30)] {
        let mut schedule = schedule();
        add(&mut schedule, (0, 1), Wake::After(ms(first)), 0);
        add(&mut schedule, (0, 1), Wake::After(ms(second)), 0);
        assert_eq!(schedule.next_due(), Some(ms(10)));
        assert_eq!(take(&mut schedule, 9), None);
        assert_eq!(take(&mut schedule, 10), Some((0, 1)));
        assert!(schedule.finish((0, 1), Verdict::Done, ms(10)));
        assert_eq!(schedule.next_due(), None, "the later delay is gone too");
    }
}

#[test]
fn what_is_asked_during_a_turn_is_answered_after_it() {
    use Verdict::{After, Done, Retry};
    let retry = None; // due somewhere in [50, 100]
    // What is asked at 0, the verdict at 0, when the key is ready again.
    let cases = [
        (vec![], After(ms(5)), Some(5)),
        (vec![], Retry, retry),
        (vec![Wake::Now], Done, Some(0)),
        (vec![Wake::Now], After(ms(5)), Some(0)),
        (vec![Wake::Now], Retry, retry),
        (vec![Wake::Fresh], Done, Some(0)),
        (vec![Wake::Fresh], Retry, Some(0)),
        (vec![Wake::Fresh, Wake::Now], Retry, Some(0)),
        (vec![Wake::Now, Wake::Fresh], Retry, Some(0)),
        (vec![Wake::After(ms(7))], Done, Some(7)),
        (vec![Wake::After(ms(7))], After(ms(5)), Some(5)),
        (vec![Wake::After(ms(3))], After(ms(5)), Some(3)),
        (vec![Wake::After(ms(7)), Wake::After(ms(3))], Done, Some(3)),
        (vec![Wake::After(ms(7)), Wake::Now], Done, Some(0)),
        (vec![Wake::After(ms(1))], Retry, retry),
    ];
    for (asked, verdict, ready) in cases {
        let mut schedule = schedule();
        add(&mut schedule, (0, 1), Wake::Now, 0);
        assert_eq!(take(&mut schedule, 0), Some((0, 1)));
        for wake in &asked {
            add(&mut schedule, (0, 1), *wake, 0);
            assert_eq!(take(&mut schedule, 0), None, "no second turn on one key");
        }
        assert!(!schedule.finish((0, 1), verdict, ms(0)));
        let case = format!("{asked:?} then {verdict:?}");
        match (ready, schedule.next_due()) {
            (Some(0), due) => assert!(due.is_none() && schedule.has_ready(), "{case}"),
            (Some(ready), due) => assert_eq!(due, Some(ms(ready)), "{case}"),
            (None, due) => assert!(
                due.is_some_and(|due| ms(50) <= due && due <= ms(100)),
                "{case}"
            ),
        }
    }
}

#[test]
fn a_key_that_backs_off_is_woken_early_only_by_a_fresh_input() {
    let mut schedule = schedule();
    add(&mut schedule, (0, 1), Wake::Now, 0);
    assert_eq!(take(&mut schedule, 0), Some((0, 1)));
    schedule.finish((0, 1), Verdict::Retry, ms(0));
    let due = schedule.next_due();
    add(&mut schedule, (0, 1), Wake::Now, 1);
    add(&mut schedule, (0, 1), Wake::After(ms(1)), 1);
    assert_eq!(schedule.next_due(), due);
    add(&mut schedule, (0, 1), Wake::Fresh, 2);
    assert_eq!(
        schedule.take(ms(2)),
        Some(((0, 1), 0)),
        "failures are forgotten"
    );
}

#[test]
fn failures_are_counted_until_a_turn_ends_well() {
    let mut schedule = schedule();
    add(&mut schedule, (0, 1), Wake::Now, 0);
    let mut now = ms(0);
    for failures in 0..8 {
        assert_eq!(schedule.take(now), Some(((0, 1), failures)));
        schedule.finish((0, 1), Verdict::Retry, now);
        let due = schedule.next_due().expect("the retry is delayed");
        let full = (BACKOFF.base * 2_u32.pow(failures)).min(BACKOFF.max);
        assert!(
            now + full / 2 <= due && due <= now + full,
            "failure {failures}"
        );
        now = due;
    }
    assert_eq!(schedule.take(now), Some(((0, 1), 8)));
    schedule.finish((0, 1), Verdict::After(ms(1)), now);
    assert_eq!(schedule.take(now + ms(1)), Some(((0, 1), 0)));
}

#[test]
fn overtaken_delays_leave_no_trail() {
    let mut schedule = schedule();
    for now in 0..1_000 {
        add(
            &mut schedule,
            (0, 1),
            Wake::After(Duration::from_hours(1)),
            now,
        );
        add(&mut schedule, (0, 1), Wake::Now, now);
        assert_eq!(take(&mut schedule, now), Some((0, 1)));
        schedule.finish((0, 1), Verdict::After(Duration::from_hours(1)), ms(now));
    }
    assert_eq!(schedule.stats(ms(1_000)).delayed, 1);
}

#[test]
fn the_longest_delay_does_not_overflow() {
    let mut schedule = schedule();
    add(&mut schedule, (0, 1), Wake::After(Duration::MAX), 1);
    assert_eq!(schedule.next_due(), Some(Duration::MAX));
}

#[test]
fn a_new_key_needs_room_and_a_known_one_does_not() {
    let mut schedule = schedule();
    assert_eq!(
        schedule.add((0, 1), Wake::Now, ms(0), || false),
        Err((0, 1))
    );
    add(&mut schedule, (0, 1), Wake::Now, 0);
    assert_eq!(schedule.add((0, 1), Wake::Now, ms(0), || false), Ok(()));
}

/// One step of a generated history. `pick` chooses among the turns under way.
#[derive(Clone, Debug)]
enum Step {
    Add((u8, u8), Wake),
    Take,
    Finish { pick: usize, verdict: Verdict },
    Pass(Duration),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let delay = (0..300_u64).prop_map(ms);
    let wake = prop_oneof![
        4 => Just(Wake::Now),
        2 => Just(Wake::Fresh),
        2 => delay.clone().prop_map(Wake::After),
    ];
    let verdict = prop_oneof![
        Just(Verdict::Done),
        Just(Verdict::Retry),
        delay.clone().prop_map(Verdict::After),
    ];
    let step = prop_oneof![
        4 => ((0..4_u8, 0..4_u8), wake).prop_map(|(id, wake)| Step::Add(id, wake)),
        3 => Just(Step::Take),
        3 => (any::<usize>(), verdict).prop_map(|(pick, verdict)| Step::Finish { pick, verdict }),
        1 => delay.prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 0..200)
}

/// The same rules, by exhaustive search over plain records.
#[derive(Default)]
struct Model {
    keys: BTreeMap<(u8, u8), Record>,
    /// When each group last got a turn or, if it had no ready key since, when it got one; in `clock` ticks.
    waits_since: BTreeMap<u8, u64>,
    clock: u64,
}

#[derive(Default)]
struct Record {
    running: bool,
    failures: u32,
    /// When it wants its next turn, and the tick of that wish.
    wants: Option<(Duration, u64)>,
    /// The tick at which it became ready.
    ready: Option<u64>,
    fresh: bool,
    now: bool,
}

impl Model {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn want(&mut self, id: (u8, u8), at: Duration, now: Duration) {
        let tick = self.tick();
        self.keys.entry(id).or_default().wants = Some((at, tick));
        if at <= now {
            self.make_ready(id);
        }
    }

    fn make_ready(&mut self, id: (u8, u8)) {
        let tick = self.tick();
        if !self.has_ready(id.0) {
            self.waits_since.insert(id.0, tick);
        }
        let record = self.keys.get_mut(&id).expect("known");
        record.ready = Some(tick);
        record.wants = None;
    }

    fn has_ready(&self, group: u8) -> bool {
        self.keys
            .iter()
            .any(|(id, record)| id.0 == group && record.ready.is_some())
    }

    fn add(&mut self, id: (u8, u8), wake: Wake, now: Duration) {
        let at = match wake {
            Wake::After(delay) => now + delay,
            Wake::Now | Wake::Fresh => now,
        };
        let Some(record) = self.keys.get_mut(&id) else {
            return self.want(id, at, now);
        };
        if record.running {
            match wake {
                Wake::Fresh => record.fresh = true,
                Wake::Now => record.now = true,
                Wake::After(_) => {
                    record.wants = Some((record.wants.map_or(at, |(wanted, _)| wanted.min(at)), 0));
                }
            }
            return;
        }
        let backs_off = record.failures > 0 && record.ready.is_none();
        if wake == Wake::Fresh {
            record.failures = 0;
        }
        let Some((wanted, _)) = record.wants else {
            return;
        };
        if at < wanted && (wake == Wake::Fresh || !backs_off) {
            self.want(id, at, now);
        }
    }

    fn take(&mut self, now: Duration) -> Option<((u8, u8), u32)> {
        while let Some((_, id)) = self
            .keys
            .iter()
            .filter(|(_, record)| !record.running && record.ready.is_none())
            .filter_map(|(id, record)| record.wants.map(|wants| (wants, *id)))
            .filter(|((at, _), _)| *at <= now)
            .min()
        {
            self.make_ready(id);
        }
        let (_, _, id) = self
            .keys
            .iter()
            .filter_map(|(id, record)| {
                record
                    .ready
                    .map(|ready| (self.waits_since[&id.0], ready, *id))
            })
            .min()?;
        let tick = self.tick();
        self.waits_since.insert(id.0, tick);
        let record = self.keys.get_mut(&id).expect("known");
        record.ready = None;
        record.running = true;
        Some((id, record.failures))
    }

    /// `retry_due` is when the schedule put the retry; the model checks it against the limits.
    fn finish(
        &mut self,
        id: (u8, u8),
        verdict: Verdict,
        now: Duration,
        retry_due: Option<Duration>,
    ) {
        let record = self.keys.get_mut(&id).expect("known");
        record.running = false;
        let asked = record.wants.take().map(|(at, _)| at);
        let (woken, fresh) = (
            std::mem::take(&mut record.now),
            std::mem::take(&mut record.fresh),
        );
        if verdict == Verdict::Retry && !fresh {
            record.failures += 1;
            let full = (BACKOFF.base * 2_u32.pow(record.failures.min(10) - 1)).min(BACKOFF.max);
            let due = retry_due.expect("a retry is delayed");
            assert!(now + full / 2 <= due && due <= now + full);
            return self.want(id, due, now);
        }
        record.failures = 0;
        let own = match verdict {
            Verdict::After(delay) => Some(now + delay),
            Verdict::Done | Verdict::Retry => None,
        };
        let at = if woken || fresh {
            Some(now)
        } else {
            asked.into_iter().chain(own).min()
        };
        match at {
            Some(at) => self.want(id, at, now),
            None => {
                self.keys.remove(&id);
            }
        }
    }

    fn next_due(&self) -> Option<Duration> {
        self.keys
            .values()
            .filter(|record| !record.running)
            .filter_map(|record| record.wants.map(|(at, _)| at))
            .min()
    }

    fn counts(&self) -> (usize, usize, usize) {
        let count =
            |test: fn(&Record) -> bool| self.keys.values().filter(|record| test(record)).count();
        (
            count(|record| record.ready.is_some()),
            count(|record| !record.running && record.wants.is_some()),
            count(|record| record.running),
        )
    }
}

/// Checks, apart from any model, that no group with a ready key waits longer than there are groups.
#[derive(Default)]
struct Fairness {
    passed_over: BTreeMap<u8, usize>,
}

impl Fairness {
    fn turn(&mut self, served: u8, model: &Model) {
        self.passed_over
            .retain(|group, _| *group != served && model.has_ready(*group));
        for group in (0..4).filter(|group| *group != served && model.has_ready(*group)) {
            let passed_over = self.passed_over.entry(group).or_default();
            *passed_over += 1;
            assert!(*passed_over < 4, "group {group} is starved");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        // A case worth keeping becomes a test with a name; the root of the repository is no place for it.
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_schedule_does_what_the_model_says(steps in steps()) {
        let mut schedule = schedule();
        let mut model = Model::default();
        let mut fairness = Fairness::default();
        let mut turns = Vec::new();
        let mut now = ms(0);
        for step in steps {
            match step {
                Step::Add(id, wake) => {
                    prop_assert_eq!(schedule.add(id, wake, now, || true), Ok(()));
                    model.add(id, wake, now);
                }
                Step::Take => {
                    let taken = schedule.take(now);
                    prop_assert_eq!(taken, model.take(now));
                    if let Some((id, _)) = taken {
                        fairness.turn(id.0, &model);
                        turns.push(id);
                    }
                }
                Step::Finish { pick, verdict } => {
                    if turns.is_empty() {
                        continue;
                    }
                    let id = turns.swap_remove(pick % turns.len());
                    let left = schedule.finish(id, verdict, now);
                    model.finish(id, verdict, now, schedule.due_of(&id));
                    prop_assert_eq!(left, !model.keys.contains_key(&id));
                }
                Step::Pass(time) => now += time,
            }
            prop_assert_eq!(schedule.next_due(), model.next_due());
        }
        // Let everything come to its end: whatever was asked for gets its turn.
        while let Some(id) = turns.pop() {
            schedule.finish(id, Verdict::Done, now);
            model.finish(id, Verdict::Done, now, None);
        }
        let mut clones = model.keys.len();
        while let Some((id, failures)) = schedule.take(Duration::MAX) {
            prop_assert_eq!(model.take(Duration::MAX), Some((id, failures)));
            prop_assert!(schedule.finish(id, Verdict::Done, now));
            model.finish(id, Verdict::Done, now, None);
            clones -= 1;
        }
        prop_assert_eq!(clones, 0);
        prop_assert_eq!(model.counts(), (0, 0, 0));
        let stats = schedule.stats(now);
        prop_assert_eq!(stats, Stats { ready: 0, delayed: 0, running: 0, ..stats });
    }

    #[test]
    fn the_counts_are_those_of_the_model(steps in steps()) {
        let mut schedule = schedule();
        let mut model = Model::default();
        let mut turns = Vec::new();
        for step in steps {
            match step {
                Step::Add(id, wake) => {
                    prop_assert_eq!(schedule.add(id, wake, ms(0), || true), Ok(()));
                    model.add(id, wake, ms(0));
                }
                Step::Take => {
                    model.take(ms(0));
                    turns.extend(schedule.take(ms(0)).map(|(id, _)| id));
                }
                Step::Finish { pick, verdict } if !turns.is_empty() => {
                    let id = turns.swap_remove(pick % turns.len());
                    schedule.finish(id, verdict, ms(0));
                    model.finish(id, verdict, ms(0), schedule.due_of(&id));
                }
                Step::Finish { .. } | Step::Pass(_) => {}
            }
            let stats = schedule.stats(ms(0));
            prop_assert_eq!((stats.ready, stats.delayed, stats.running), model.counts());
        }
    }
}
