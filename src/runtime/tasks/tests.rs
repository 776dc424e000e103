use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep;

use super::*;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Asks after each of these delays, then never again; a run that does not end by then never will.
fn asked_after<const N: usize>(delays: [Duration; N]) -> impl AsyncFnMut() {
    let mut delays = delays.into_iter();
    async move || {
        let Some(delay) = delays.next() else {
            sleep(Duration::from_hours(24)).await;
            panic!("the run does not end");
        };
        sleep(delay).await;
    }
}

/// What tasks say, with the time they said it.
struct Diary {
    start: Instant,
    sender: UnboundedSender<(u128, String)>,
    entries: UnboundedReceiver<(u128, String)>,
}

impl Diary {
    fn new() -> Self {
        let (sender, entries) = unbounded_channel();
        Self {
            start: Instant::now(),
            sender,
            entries,
        }
    }

    fn pen(&self) -> impl Fn(&str) + Send + 'static {
        let (start, sender) = (self.start, self.sender.clone());
        move |text| {
            sender
                .send((start.elapsed().as_millis(), text.to_owned()))
                .expect("the test listens");
        }
    }

    fn read(mut self) -> Vec<(u128, String)> {
        std::iter::from_fn(|| self.entries.try_recv().ok()).collect()
    }
}

/// Starts a task that takes `delay` to stop.
fn spawn_slow(tasks: &mut Tasks, name: &'static str, delay: Duration, diary: &Diary) {
    let write = diary.pen();
    tasks.spawn(name, async move |stop| {
        stop.cancelled().await;
        sleep(delay).await;
        write(name);
        Ok::<_, Infallible>(())
    });
}

fn spawn_stubborn(tasks: &mut Tasks, name: &'static str) {
    tasks.spawn(name, |_| pending::<Result<(), Infallible>>());
}

async fn shaky() -> Result<(), Infallible> {
    sleep(secs(3)).await;
    panic!("the count is {}", -1)
}

/// Hangs, and keeps hold of something by which its end can be seen.
async fn hold<T>(_held: T) -> Result<(), Infallible> {
    pending().await
}

#[tokio::test(start_paused = true)]
async fn tasks_stop_one_after_another_the_last_started_first() {
    let diary = Diary::new();
    let mut tasks = Tasks::default();
    for name in ["first", "second", "third"] {
        spawn_slow(&mut tasks, name, Duration::from_millis(100), &diary);
    }
    tasks.run(asked_after([secs(1)])).await.expect("all stop");
    let stopped = [(1_100, "third"), (1_200, "second"), (1_300, "first")];
    assert_eq!(
        diary.read(),
        stopped.map(|(at, name)| (at, name.to_owned()))
    );
}

#[tokio::test(start_paused = true)]
async fn a_panic_stops_the_others_and_is_named() {
    let diary = Diary::new();
    let mut tasks = Tasks::default();
    spawn_slow(&mut tasks, "steady", Duration::ZERO, &diary);
    tasks.spawn("shaky", |_| shaky());
    let error = tasks.run(asked_after([])).await.expect_err("a task panics");
    assert_eq!(
        error.to_string(),
        "task shaky panicked: the count is -1; this is a bug, please report it"
    );
    assert_eq!(diary.read(), [(3_000, "steady".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_stops_the_others_and_is_named() {
    let diary = Diary::new();
    let mut tasks = Tasks::default();
    spawn_slow(&mut tasks, "steady", Duration::ZERO, &diary);
    tasks.spawn("shaky", async |_| Err("the port is taken"));
    let error = tasks.run(asked_after([])).await.expect_err("a task fails");
    assert_eq!(error.to_string(), "task shaky failed");
    let source = std::error::Error::source(&error).expect("has a source");
    assert_eq!(source.to_string(), "the port is taken");
    assert_eq!(diary.read(), [(0, "steady".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn a_task_may_end_before_the_others() {
    let diary = Diary::new();
    let mut tasks = Tasks::default();
    spawn_slow(&mut tasks, "long", Duration::ZERO, &diary);
    tasks.spawn("short", async |_| Ok::<_, Infallible>(()));
    tasks.run(asked_after([secs(1)])).await.expect("all stop");
    assert_eq!(diary.read(), [(1_000, "long".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn the_run_ends_when_all_tasks_have() {
    let mut tasks = Tasks::default();
    tasks.spawn("short", async |_| Ok::<_, Infallible>(()));
    tasks.run(asked_after([])).await.expect("all end");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_hangs_is_aborted_named_and_leaves_time_for_the_others() {
    let diary = Diary::new();
    let mut tasks = Tasks::new(secs(4));
    spawn_slow(&mut tasks, "slow", Duration::from_millis(900), &diary);
    let held = Arc::new(());
    let holds = Arc::clone(&held);
    tasks.spawn("stubborn", |_| hold(holds));
    let error = tasks
        .run(asked_after([secs(0)]))
        .await
        .expect_err("one hangs");
    assert_eq!(
        error.to_string(),
        "aborted because they did not stop in time: stubborn"
    );
    assert_eq!(diary.read(), [(2_900, "slow".to_owned())]);
    assert_eq!(Arc::strong_count(&held), 1, "the aborted task is gone");
}

#[tokio::test(start_paused = true)]
async fn however_many_hang_the_grace_is_kept() {
    let start = Instant::now();
    let mut tasks = Tasks::new(secs(5));
    for name in ["a", "b", "c", "d", "e", "f"] {
        spawn_stubborn(&mut tasks, name);
    }
    let error = tasks
        .run(asked_after([secs(0)]))
        .await
        .expect_err("all hang");
    assert!(start.elapsed() < secs(5));
    assert_eq!(
        error.to_string(),
        "aborted because they did not stop in time: f, e, d, c, b, a"
    );
}

#[tokio::test(start_paused = true)]
async fn asking_twice_cuts_the_grace_short() {
    let start = Instant::now();
    let mut tasks = Tasks::new(secs(60));
    spawn_stubborn(&mut tasks, "one");
    spawn_stubborn(&mut tasks, "two");
    let error = tasks
        .run(asked_after([secs(1), secs(2)]))
        .await
        .expect_err("both hang");
    assert_eq!(start.elapsed(), secs(3));
    assert_eq!(
        error.to_string(),
        "aborted because they did not stop in time: two, one"
    );
}

#[tokio::test(start_paused = true)]
async fn the_first_failure_is_the_one_returned() {
    let mut tasks = Tasks::default();
    spawn_stubborn(&mut tasks, "stubborn");
    tasks.spawn("late", async |stop| {
        stop.cancelled().await;
        Err("could not say goodbye")
    });
    tasks.spawn("early", async |_| Err("could not say hello"));
    let error = tasks.run(asked_after([])).await.expect_err("a task fails");
    assert_eq!(error.to_string(), "task early failed");

    let mut tasks = Tasks::default();
    tasks.spawn("late", async |stop| {
        stop.cancelled().await;
        Err("could not say goodbye")
    });
    spawn_stubborn(&mut tasks, "stubborn");
    let error = tasks
        .run(asked_after([secs(0)]))
        .await
        .expect_err("a task fails");
    assert_eq!(error.to_string(), "task late failed");
}

#[tokio::test(start_paused = true)]
async fn dropping_the_tasks_aborts_them() {
    let held = Arc::new(());
    let holds = Arc::clone(&held);
    let mut tasks = Tasks::default();
    tasks.spawn("dropped", |_| hold(holds));
    drop(tasks);
    sleep(secs(1)).await;
    assert_eq!(Arc::strong_count(&held), 1);
}
