//! A load generator: sends requests with so many in flight, and says how long each took.

use std::time::Duration;

use http::Request;
use kube::Client;
use tokio::{task::JoinSet, time::Instant};

/// What a run of requests took.
pub(crate) struct Measured {
    elapsed: Duration,
    latencies: Vec<Duration>,
}

impl Measured {
    /// Requests per second.
    pub(crate) fn rate(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64()
    }

    /// The latency that this share of requests stayed below.
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        let last = self.latencies.len() - 1;
        self.latencies[(last as f64 * share) as usize]
    }
}

/// Sends every request and waits for every answer. An answer that is not a success ends the run: a ceiling made of
/// refusals is no ceiling.
pub(crate) async fn send(
    client: &Client,
    in_flight: usize,
    requests: Vec<Request<Vec<u8>>>,
) -> Measured {
    let mut queues: Vec<Vec<_>> = (0..in_flight).map(|_| Vec::new()).collect();
    for (number, request) in requests.into_iter().enumerate() {
        queues[number % in_flight].push(request);
    }
    let begin = Instant::now();
    let mut senders = JoinSet::new();
    for queue in queues {
        let client = client.clone();
        senders.spawn(async move {
            let mut latencies = Vec::with_capacity(queue.len());
            for request in queue {
                let sent = Instant::now();
                if let Err(error) = client.request_text(request).await {
                    panic!("a request of the load was refused: {error}");
                }
                latencies.push(sent.elapsed());
            }
            latencies
        });
    }
    let mut latencies: Vec<Duration> = senders.join_all().await.into_iter().flatten().collect();
    let elapsed = begin.elapsed();
    latencies.sort_unstable();
    Measured { elapsed, latencies }
}
