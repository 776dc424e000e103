//! The waiting around the schedule: rings, timers, room, cancellation.

mod properties;
mod threads;

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::*;

type TestQueue = Queue<&'static str, u32>;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn settings(capacity: usize) -> Settings {
    Settings {
        capacity: NonZeroUsize::new(capacity).expect("is not zero"),
        backoff: Backoff {
            base: ms(100),
            max: ms(2_000),
        },
        seed: 7,
    }
}

fn queue(capacity: usize) -> TestQueue {
    Queue::new(&settings(capacity))
}

fn add(queue: &TestQueue, key: u32, wake: Wake) {
    queue.try_add("a", key, wake).expect("there is room");
}

async fn next(queue: &TestQueue) -> Turn<&'static str, u32> {
    timeout(Duration::from_mins(1), queue.next())
        .await
        .expect("a key is ready within a minute")
        .expect("the queue is open")
}

/// Polls once, with a waker nobody listens to.
fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Starts workers that report when they got which key and then keep it for a day.
async fn slow_workers(queue: &TestQueue, count: usize) -> Workers {
    let start = Instant::now();
    let (sender, reports) = tokio::sync::mpsc::channel(16);
    let mut tasks = JoinSet::new();
    for _ in 0..count {
        let (queue, sender) = (queue.clone(), sender.clone());
        tasks.spawn(async move {
            let turn = queue.next().await.expect("the queue is open");
            let report = (*turn.key(), start.elapsed());
            sender.send(report).await.expect("the test listens");
            sleep(Duration::from_hours(24)).await;
            turn.done();
        });
    }
    // Time passes only when all of them wait.
    sleep(ms(1)).await;
    Workers {
        _tasks: tasks,
        reports,
    }
}

struct Workers {
    _tasks: JoinSet<()>,
    reports: tokio::sync::mpsc::Receiver<(u32, Duration)>,
}

impl Workers {
    /// Returns the next key and when it was taken, in milliseconds.
    async fn report(&mut self) -> (u32, u128) {
        let (key, at) = timeout(Duration::from_hours(1), self.reports.recv())
            .await
            .expect("a worker took a key within the hour")
            .expect("workers report");
        (key, at.as_millis())
    }
}

#[tokio::test(start_paused = true)]
async fn every_waiting_worker_gets_one_of_the_keys_added_together() {
    let queue = queue(8);
    let mut workers = slow_workers(&queue, 4).await;
    for key in 0..4 {
        add(&queue, key, Wake::Now);
    }
    for key in 0..4 {
        assert_eq!(workers.report().await, (key, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_delay_earlier_than_those_waited_for_is_kept() {
    let queue = queue(8);
    add(&queue, 30, Wake::After(ms(30)));
    let mut workers = slow_workers(&queue, 3).await;
    add(&queue, 20, Wake::After(ms(19)));
    sleep(ms(2)).await;
    add(&queue, 10, Wake::After(ms(7)));
    assert_eq!(workers.report().await, (10, 10));
    assert_eq!(workers.report().await, (20, 20));
    assert_eq!(workers.report().await, (30, 30));
}

#[tokio::test(start_paused = true)]
async fn the_time_is_kept_when_the_worker_that_kept_it_gets_busy() {
    let queue = queue(8);
    let mut workers = slow_workers(&queue, 3).await;
    add(&queue, 1, Wake::After(ms(49)));
    sleep(ms(1)).await;
    // Whoever takes these, the last one has to keep the time for key 1.
    add(&queue, 2, Wake::Now);
    add(&queue, 3, Wake::Now);
    assert_eq!(workers.report().await, (2, 2));
    assert_eq!(workers.report().await, (3, 2));
    assert_eq!(workers.report().await, (1, 50));
}

#[tokio::test(start_paused = true)]
async fn the_time_is_kept_when_the_worker_that_kept_it_is_cancelled() {
    for cancelled in 0..3 {
        let queue = queue(8);
        let start = Instant::now();
        let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(queue.next())).collect();
        for next in &mut waiting {
            assert!(poll(next.as_mut()).is_pending());
        }
        add(&queue, 1, Wake::After(ms(50)));
        for next in &mut waiting {
            assert!(poll(next.as_mut()).is_pending());
        }
        drop(waiting.remove(cancelled));
        // The two left are polled by their own wakers from here on.
        let second = waiting.pop().expect("there were three");
        let first = waiting.pop().expect("there were three");
        let turn = timeout(Duration::from_hours(1), async {
            tokio::select! {
                turn = first => turn,
                turn = second => turn,
            }
        });
        turn.await.expect("in time").expect("open").done();
        assert_eq!(start.elapsed(), ms(50), "cancelled {cancelled}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_ring_for_a_cancelled_worker_reaches_another() {
    let queue = queue(8);
    let mut cancelled = Box::pin(queue.next());
    assert!(poll(cancelled.as_mut()).is_pending());
    let mut workers = slow_workers(&queue, 1).await;
    add(&queue, 1, Wake::Now);
    drop(cancelled);
    assert_eq!(workers.report().await, (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_turn_without_a_verdict_is_retried() {
    let queue = queue(8);
    add(&queue, 1, Wake::Now);
    drop(next(&queue).await);
    let turn = next(&queue).await;
    assert_eq!((*turn.key(), turn.failures()), (1, 1));

    let mut panicking = JoinSet::new();
    panicking.spawn(async move {
        let _turn = turn;
        panic!("as intended");
    });
    let joined = panicking.join_next().await.expect("was spawned");
    assert!(joined.expect_err("panics").is_panic());
    assert_eq!(next(&queue).await.failures(), 2);
}

#[tokio::test(start_paused = true)]
async fn retries_come_later_and_later_up_to_the_limit() {
    let queue = queue(8);
    add(&queue, 1, Wake::Now);
    next(&queue).await.retry();
    for full in [100, 200, 400, 800, 1_600, 2_000, 2_000, 2_000] {
        let failed = Instant::now();
        let turn = next(&queue).await;
        let waited = failed.elapsed();
        // Timers tick in whole milliseconds and are never early.
        assert!(
            ms(full / 2) <= waited && waited <= ms(full + 1),
            "{waited:?} of {full} ms"
        );
        turn.retry();
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_refuses_new_keys_and_takes_known_ones() {
    let queue = queue(2);
    add(&queue, 1, Wake::Now);
    add(&queue, 2, Wake::After(ms(10)));
    assert_eq!(queue.try_add("a", 3, Wake::Now), Err(Full));
    assert_eq!(
        queue.try_add("b", 1, Wake::Now),
        Err(Full),
        "another group's key is another key"
    );
    let turn = next(&queue).await;
    assert_eq!(
        queue.try_add("a", 3, Wake::Now),
        Err(Full),
        "a running key takes up room"
    );
    for known in [1, 2] {
        assert!(poll(pin!(queue.add("a", known, Wake::After(ms(5))))).is_ready());
    }
    turn.done();
    assert_eq!(
        queue.try_add("a", 3, Wake::Now),
        Err(Full),
        "key 1 was asked for again"
    );
    next(&queue).await.done();
    assert_eq!(queue.try_add("a", 3, Wake::Now), Ok(()));
    let stats = queue.stats();
    assert_eq!((stats.full, stats.added, stats.coalesced), (4, 3, 2));
}

#[tokio::test(start_paused = true)]
async fn room_is_given_out_in_the_order_it_was_asked_for() {
    let queue = queue(1);
    add(&queue, 1, Wake::Now);
    let mut second = Box::pin(queue.add("a", 2, Wake::Now));
    let mut given_up = Box::pin(queue.add("a", 9, Wake::Now));
    let mut third = Box::pin(queue.add("a", 3, Wake::Now));
    for adding in [&mut second, &mut given_up, &mut third] {
        assert!(poll(adding.as_mut()).is_pending());
    }
    next(&queue).await.done();
    assert_eq!(
        queue.try_add("a", 4, Wake::Now),
        Err(Full),
        "nobody overtakes"
    );
    assert!(poll(third.as_mut()).is_pending());
    assert!(poll(second.as_mut()).is_ready());
    drop(given_up);
    let turn = next(&queue).await;
    assert_eq!(*turn.key(), 2);
    turn.done();
    assert!(poll(third.as_mut()).is_ready());
    assert_eq!(*next(&queue).await.key(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_came_in_by_another_way_gives_its_room_back() {
    let queue = queue(2);
    add(&queue, 1, Wake::Now);
    add(&queue, 2, Wake::Now);
    let mut one = Box::pin(queue.add("a", 3, Wake::Now));
    let mut two = Box::pin(queue.add("a", 3, Wake::Now));
    assert!(poll(one.as_mut()).is_pending() && poll(two.as_mut()).is_pending());
    next(&queue).await.done();
    next(&queue).await.done();
    assert!(poll(one.as_mut()).is_ready() && poll(two.as_mut()).is_ready());
    assert_eq!(queue.stats().ready, 1, "both added one key");
    assert_eq!(queue.try_add("a", 4, Wake::Now), Ok(()));
    assert_eq!(queue.try_add("a", 5, Wake::Now), Err(Full));
}

#[tokio::test(start_paused = true)]
async fn closing_ends_every_wait() {
    let queue = queue(1);
    add(&queue, 1, Wake::Now);
    let turn = next(&queue).await;
    let mut tasks = JoinSet::new();
    for key in 0..4 {
        let worker = queue.clone();
        tasks.spawn(async move { assert!(worker.next().await.is_none()) });
        let producer = queue.clone();
        tasks.spawn(async move { producer.add("b", key, Wake::Now).await });
    }
    sleep(ms(1)).await;
    queue.close();
    let joined = timeout(ms(1), tasks.join_all()).await;
    assert!(joined.is_ok(), "all have ended");
    turn.retry();
    assert!(queue.next().await.is_none());
    assert_eq!(queue.try_add("b", 1, Wake::Now), Ok(()));
    assert_eq!(queue.stats().added, 1, "a closed queue takes nothing in");
}

#[tokio::test(start_paused = true)]
async fn a_busy_group_does_not_keep_a_quiet_one_waiting() {
    let queue = queue(2_000);
    for key in 0..1_000 {
        queue
            .try_add("busy", key, Wake::Now)
            .expect("there is room");
    }
    for round in 0..100 {
        queue
            .try_add("quiet", round, Wake::Now)
            .expect("there is room");
        let groups = [next(&queue).await, next(&queue).await].map(|turn| {
            let group = *turn.group();
            turn.after(Duration::ZERO);
            group
        });
        assert!(groups.contains(&"quiet"), "round {round}");
    }
}

#[tokio::test]
async fn a_worker_that_never_waits_lets_others_run() {
    let queue = queue(8);
    add(&queue, 1, Wake::Now);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        for _ in 0..100_000 {
            next(&queue).await.after(Duration::ZERO);
        }
        "worker"
    });
    tasks.spawn(async { "other" });
    let first = tasks.join_next().await.expect("was spawned");
    assert_eq!(first.expect("does not panic"), "other");
}
