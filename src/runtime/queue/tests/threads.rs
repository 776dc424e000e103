//! The same promises on real threads, where paused time cannot look.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fastrand::Rng;
use tokio::task::yield_now;

use super::*;

const KEYS: usize = 64;
const ADDS: usize = 20_000;

#[derive(Default)]
struct Cell {
    running: AtomicBool,
    added: AtomicU64,
    seen: AtomicU64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_or_doubled_on_real_threads() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    let cells: Arc<Vec<Cell>> = Arc::new((0..KEYS).map(|_| Cell::default()).collect());
    let queue: Queue<usize, usize> = Queue::new(&settings(KEYS / 2));
    let mut producers = JoinSet::new();
    let mut workers = JoinSet::new();
    for _ in 0..4 {
        producers.spawn(produce(queue.clone(), Arc::clone(&cells), rng.fork()));
        workers.spawn(work(queue.clone(), Arc::clone(&cells), rng.fork()));
    }
    let all_served = async {
        while let Some(joined) = producers.join_next().await {
            joined.expect("no producer panics");
        }
        let served =
            |cell: &Cell| cell.seen.load(Ordering::SeqCst) == cell.added.load(Ordering::SeqCst);
        while !cells.iter().all(served) {
            sleep(ms(1)).await;
        }
    };
    timeout(Duration::from_mins(1), all_served)
        .await
        .expect("every key is served after it was last added");
    queue.close();
    let ended = timeout(Duration::from_mins(1), workers.join_all()).await;
    assert!(ended.is_ok(), "workers end when the queue closes");
}

async fn produce(queue: Queue<usize, usize>, cells: Arc<Vec<Cell>>, mut rng: Rng) {
    for _ in 0..ADDS {
        let key = rng.usize(..KEYS);
        cells[key].added.fetch_add(1, Ordering::SeqCst);
        let wake = if rng.u8(..16) == 0 {
            Wake::After(ms(1))
        } else {
            Wake::Now
        };
        queue.add(key % 8, key, wake).await;
    }
}

async fn work(queue: Queue<usize, usize>, cells: Arc<Vec<Cell>>, mut rng: Rng) {
    loop {
        let next = if rng.bool() {
            // Cancels at an arbitrary moment of the wait.
            timeout(Duration::from_micros(rng.u64(..50)), queue.next()).await
        } else {
            Ok(queue.next().await)
        };
        let turn = match next {
            Ok(Some(turn)) => turn,
            Ok(None) => return,
            Err(_cancelled) => continue,
        };
        let cell = &cells[*turn.key()];
        assert!(
            !cell.running.swap(true, Ordering::SeqCst),
            "two workers on one key"
        );
        let added = cell.added.load(Ordering::SeqCst);
        yield_now().await;
        cell.seen.store(added, Ordering::SeqCst);
        cell.running.store(false, Ordering::SeqCst);
        match rng.u8(..16) {
            0 => turn.after(ms(1)),
            _ => turn.done(),
        }
    }
}
