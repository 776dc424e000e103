//! Waiting on a condition, with a deadline.

use std::{future::Future, time::Duration};

use tokio::time::{Instant, MissedTickBehavior};

/// Asks until the answer is `Ok`, and panics with the last `Err` when the deadline passes.
pub(crate) async fn until<T, F>(what: &str, deadline: Duration, mut ask: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, String>>,
{
    let end = Instant::now() + deadline;
    let mut tick = tokio::time::interval(Duration::from_millis(50));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        match ask().await {
            Ok(answer) => return answer,
            Err(reason) if Instant::now() >= end => {
                panic!("{what}: not after {deadline:?}: {reason}")
            }
            Err(_) => {}
        }
    }
}
