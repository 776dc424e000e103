//! How many keys pass through the work queue in a second: added, taken, done.
//!
//! The ceiling is what the queue cannot beat: the same keys through a locked `VecDeque`, which neither deduplicates nor
//! serializes nor takes turns.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gitspoke::runtime::queue::{Queue, Settings, Wake};
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::Instant;

#[expect(clippy::disallowed_types, reason = "it is the ceiling")]
type Lock<T> = std::sync::Mutex<T>;

type Key = (Arc<str>, Arc<str>);

const CLUSTERS: usize = 1_000;
const WORKS: usize = 10;
/// Each measurement passes all keys through this often.
const ROUNDS: usize = 200;
const TOTAL: usize = CLUSTERS * WORKS * ROUNDS;
/// What we promise, in keys per second.
const PROMISE: f64 = 1e6;

fn main() {
    let keys: Arc<[Key]> = keys().into();
    let ceiling = rate(|| ceiling(&keys));
    let mut promise_kept = true;
    let mut report = |name: &str, rate: f64| {
        promise_kept &= rate >= PROMISE;
        say(&format!(
            "{name:<40} {:>6.2} M/s  {:>5.1} % of the ceiling",
            rate / 1e6,
            100.0 * rate / ceiling
        ));
    };
    report("ceiling: Mutex<VecDeque>, one thread", ceiling);
    report(
        "one key in flight, one worker",
        rate(|| one_in_flight(&keys)),
    );
    report(
        "10,000 keys waiting, one worker",
        rate(|| one_worker(&keys)),
    );
    for (producers, workers) in [(1, 1), (2, 2), (4, 8)] {
        report(
            &format!("{producers} producers, {workers} workers, two threads"),
            rate(|| many(&keys, producers, workers)),
        );
    }
    assert!(promise_kept, "below {:.1} M/s", PROMISE / 1e6);
}

fn keys() -> Vec<Key> {
    let mut keys = Vec::new();
    for work in 0..WORKS {
        for cluster in 0..CLUSTERS {
            let work = format!("payments-gateway-{work}");
            keys.push((format!("edge-eu-west-{cluster:04}").into(), work.into()));
        }
    }
    keys
}

/// Returns keys per second, the best of three.
#[expect(clippy::cast_precision_loss, reason = "two million are exact")]
fn rate(mut run: impl FnMut()) -> f64 {
    (0..3)
        .map(|_| {
            let start = Instant::now();
            run();
            TOTAL as f64 / start.elapsed().as_secs_f64()
        })
        .fold(0.0, f64::max)
}

fn ceiling(keys: &[Key]) {
    let lock = Lock::new(VecDeque::new());
    let mut popped = 0;
    for _ in 0..ROUNDS {
        for key in keys {
            lock.lock().expect("no panic").push_back(key.clone());
        }
        while lock.lock().expect("no panic").pop_front().is_some() {
            popped += 1;
        }
    }
    assert_eq!(popped, TOTAL);
}

fn one_in_flight(keys: &[Key]) {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("starts").block_on(async {
        let queue = Queue::new(&Settings::default());
        for (cluster, work) in keys.iter().cycle().take(TOTAL) {
            queue.add(cluster.clone(), work.clone(), Wake::Now).await;
            queue.next().await.expect("is open").done();
        }
    });
}

fn one_worker(keys: &[Key]) {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("starts").block_on(async {
        let queue = Queue::new(&Settings::default());
        for _ in 0..ROUNDS {
            for (cluster, work) in keys {
                queue.add(cluster.clone(), work.clone(), Wake::Now).await;
            }
            for _ in 0..keys.len() {
                queue.next().await.expect("is open").done();
            }
        }
    });
}

/// Producers add distinct keys, so that every one of them is a turn of its own and none melt together.
fn many(keys: &Arc<[Key]>, producers: usize, workers: usize) {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.expect("starts").block_on(async {
        let queue: Queue<Arc<str>, (Arc<str>, usize)> = Queue::new(&Settings::default());
        let served = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        for producer in 0..producers {
            let (queue, keys) = (queue.clone(), Arc::clone(keys));
            tasks.spawn(async move {
                let count = TOTAL / producers;
                let stretch = (producer * count)..((producer + 1) * count);
                for number in stretch {
                    let (cluster, work) = &keys[number % keys.len()];
                    queue
                        .add(cluster.clone(), (work.clone(), number), Wake::Now)
                        .await;
                }
            });
        }
        for _ in 0..workers {
            let (queue, served) = (queue.clone(), Arc::clone(&served));
            tasks.spawn(async move {
                while let Some(turn) = queue.next().await {
                    turn.done();
                    if served.fetch_add(1, Ordering::Relaxed) + 1 == TOTAL {
                        queue.close();
                    }
                }
            });
        }
        tasks.join_all().await;
    });
}

fn say(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("somebody reads");
}
