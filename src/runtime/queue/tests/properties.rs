//! Random histories of producers and workers under paused time, each determined by one seed.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use fastrand::Rng;
use proptest::prelude::{ProptestConfig, proptest};
use tokio::runtime::Builder;
use tokio::task::{LocalSet, spawn_local, yield_now};

use super::{Duration, Queue, Wake, ms, settings, sleep, timeout};

type Id = (u8, u8);

/// What the test saw, told apart from what the queue says.
#[derive(Default)]
struct Seen {
    clock: u64,
    last_added: HashMap<Id, u64>,
    last_started: HashMap<Id, u64>,
    running: HashSet<Id>,
    waiting: usize,
    adds: u64,
    turns: u64,
    /// Turns whose verdict asks for another.
    requeued: u64,
    /// Once set, every turn ends well, so that the history comes to an end.
    quiet: bool,
}

impl Seen {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn added(&mut self, id: Id) {
        let tick = self.tick();
        self.last_added.insert(id, tick);
        self.adds += 1;
    }

    fn all_served(&self) -> bool {
        self.last_added.iter().all(|(id, added)| {
            self.last_started
                .get(id)
                .is_some_and(|started| started > added)
        })
    }
}

#[derive(Clone)]
struct World {
    queue: Queue<u8, u8>,
    capacity: usize,
    seen: Rc<RefCell<Seen>>,
}

impl World {
    async fn produce(self, mut rng: Rng) {
        for _ in 0..60 {
            let id = (rng.u8(..3), rng.u8(..4));
            let wake = match rng.u8(..4) {
                0 => Wake::Fresh,
                1 => Wake::After(ms(rng.u64(..100))),
                _ => Wake::Now,
            };
            let added = match rng.u8(..3) {
                0 => self.queue.try_add(id.0, id.1, wake).is_ok(),
                1 => timeout(ms(rng.u64(..10)), self.queue.add(id.0, id.1, wake))
                    .await
                    .is_ok(),
                _ => {
                    self.queue.add(id.0, id.1, wake).await;
                    true
                }
            };
            if added {
                self.seen.borrow_mut().added(id);
            }
            if rng.bool() {
                sleep(ms(rng.u64(..20))).await;
            }
        }
    }

    async fn work(self, mut rng: Rng) {
        loop {
            self.seen.borrow_mut().waiting += 1;
            let next = if rng.bool() {
                timeout(ms(rng.u64(..20)), self.queue.next()).await
            } else {
                Ok(self.queue.next().await)
            };
            self.seen.borrow_mut().waiting -= 1;
            let turn = match next {
                Ok(Some(turn)) => turn,
                Ok(None) => return,
                Err(_cancelled) => continue,
            };
            let id = (*turn.group(), *turn.key());
            {
                let mut seen = self.seen.borrow_mut();
                assert!(seen.running.insert(id), "two workers on {id:?}");
                let tick = seen.tick();
                seen.last_started.insert(id, tick);
                seen.turns += 1;
            }
            if rng.bool() {
                sleep(ms(rng.u64(..30))).await;
            }
            let mut seen = self.seen.borrow_mut();
            seen.running.remove(&id);
            match rng.u8(..6) {
                _ if seen.quiet => turn.done(),
                0..3 => turn.done(),
                verdict => {
                    seen.requeued += 1;
                    match verdict {
                        3 => turn.retry(),
                        4 => turn.after(ms(rng.u64(..100))),
                        _ => drop(turn),
                    }
                }
            }
        }
    }

    /// Looks in from time to time. A lost ring or timer shows as a key that is ready while a worker waits.
    async fn inspect(self, mut rng: Rng) {
        loop {
            sleep(ms(rng.u64(1..8))).await;
            // Whatever can run at this instant runs first: time stands still while we yield.
            for _ in 0..40 {
                yield_now().await;
            }
            // Asking the queue rings for a worker when one is needed, so what it says now is what counts.
            let stats = self.queue.stats();
            let seen = self.seen.borrow();
            assert!(
                stats.ready == 0 || seen.waiting == 0,
                "{stats:?} while {} wait",
                seen.waiting
            );
            assert!(
                stats.ready + stats.delayed + stats.running <= self.capacity,
                "{stats:?}"
            );
            assert_eq!(stats.running, seen.running.len());
            assert_eq!(stats.served, seen.turns);
        }
    }
}

async fn history(seed: u64, workers: usize, producers: usize, capacity: usize) {
    let mut rng = Rng::with_seed(seed);
    let world = World {
        queue: Queue::new(&settings(capacity)),
        capacity,
        seen: Rc::default(),
    };
    let working: Vec<_> = (0..workers)
        .map(|_| spawn_local(world.clone().work(rng.fork())))
        .collect();
    let inspecting = spawn_local(world.clone().inspect(rng.fork()));
    let producing: Vec<_> = (0..producers)
        .map(|_| spawn_local(world.clone().produce(rng.fork())))
        .collect();
    for producer in producing {
        timeout(Duration::from_mins(1), producer)
            .await
            .expect("producers are not held up for ever")
            .expect("no producer panics");
    }
    inspecting.abort();
    if let Err(error) = inspecting.await {
        assert!(error.is_cancelled(), "the inspector found a fault");
    }

    // From here on the queue is not asked until the end, so nothing but its own rings and timers drives it.
    world.seen.borrow_mut().quiet = true;
    sleep(Duration::from_mins(1)).await;
    let stats = world.queue.stats();
    assert_eq!((stats.ready, stats.delayed, stats.running), (0, 0, 0));
    {
        let seen = world.seen.borrow();
        assert!(
            seen.all_served(),
            "a key was not served after it was last added"
        );
        assert_eq!(stats.added + stats.coalesced, seen.adds);
        assert!(
            stats.served <= seen.adds + seen.requeued,
            "a turn nobody asked for"
        );
    }
    world.queue.close();
    for worker in working {
        timeout(ms(1), worker)
            .await
            .expect("workers end when the queue closes")
            .expect("no worker panics");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 100,
        // A case worth keeping becomes a test with a name; the root of the repository is no place for it.
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn nothing_is_lost_doubled_or_late(
        seed: u64,
        workers in 1..5_usize,
        producers in 1..4_usize,
        capacity in 1..14_usize,
    ) {
        Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime starts")
            .block_on(LocalSet::new().run_until(history(seed, workers, producers, capacity)));
    }
}
