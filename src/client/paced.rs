//! A layer that keeps to what an API server copes with.
//!
//! It stands above the layer that counts requests ([`Requests`]): each attempt is counted and has a deadline there, and
//! the waiting here is not in flight.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tower::{BoxError, Layer, Service, ServiceExt, buffer::Buffer};

use super::{
    gate::{Gate, spread},
    wish::Wish,
};
use crate::telemetry::{
    label::{Verb, Write},
    requests::{Late, Requests},
};

/// How long a request may wait before it is sent, all its attempts together. The last has as long again as any.
const PATIENCE: Duration = Duration::from_mins(1);

/// How often a server is asked for the same. client-go asks as often, and what a work's status says of a busy server
/// must not depend on who serves the work.
const ATTEMPTS: u32 = 11;

/// Requests that may be on their way to the client inside. There are at most [`Pace::MOST`](crate::runtime::pace::Pace)
/// in flight, one watch for each kind, and the lease.
const ON_THEIR_WAY: usize = 1024;

/// How long the rest of an answer is waited for that nobody will read. Read to its end, its connection can be used again.
const REST: Duration = Duration::from_secs(1);

/// The same, in bytes.
const REST_BYTES: usize = 64 << 10;

/// Makes requests to one server wait while it has too much to do, and asks again what it has turned away.
#[derive(Debug, Clone)]
pub struct Paced {
    requests: Requests,
    gate: Arc<Gate>,
}

impl Paced {
    /// Around a client whose requests are counted so.
    pub fn new(requests: &Requests) -> Self {
        Self {
            requests: requests.clone(),
            gate: Arc::new(Gate::new(requests.pace())),
        }
    }
}

impl<S> Layer<S> for Paced
where
    S: Service<Request<Body>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + Send + Sync,
{
    type Service = PacedClient<S::Future>;

    /// Must be called on a tokio runtime.
    fn layer(&self, service: S) -> Self::Service {
        PacedClient {
            // A request that waits, or is made again, needs a client of its own to make it.
            service: Buffer::new(service, ON_THEIR_WAY),
            paced: self.clone(),
        }
    }
}

/// A client that keeps to what its server copes with.
#[derive(Debug)]
pub struct PacedClient<F> {
    service: Buffer<Request<Body>, F>,
    paced: Paced,
}

impl<F: Send + 'static> Clone for PacedClient<F> {
    fn clone(&self) -> Self {
        Self {
            service: self.service.clone(),
            paced: self.paced.clone(),
        }
    }
}

impl<F, B, E> Service<Request<Body>> for PacedClient<F>
where
    F: Future<Output = Result<Response<B>, E>> + Send + 'static,
    E: Into<BoxError> + 'static,
    B: BodyExt + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, BoxError>> + Send>>;

    /// Always: whoever waits does so outside of this client, which others use meanwhile.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (service, paced) = (self.service.clone(), self.paced.clone());
        let asked = paced.requests.asked(&request);
        if asked.write == Some(Write::Lease) {
            // A leader that waits behind its own writes would lose its office to them.
            return Box::pin(service.oneshot(request));
        }
        let is_watch = asked.verb == Verb::Watch;
        Box::pin(send(service, paced.gate, request, is_watch))
    }
}

async fn send<F, B, E>(
    mut service: Buffer<Request<Body>, F>,
    gate: Arc<Gate>,
    request: Request<Body>,
    is_watch: bool,
) -> Result<Response<B>, BoxError>
where
    F: Future<Output = Result<Response<B>, E>> + Send + 'static,
    E: Into<BoxError>,
    B: BodyExt,
    B::Error: Into<BoxError>,
{
    let by = Instant::now() + PATIENCE;
    let (head, mut body) = request.into_parts();
    let mut attempt = 1;
    loop {
        let same = body.try_clone();
        let slot = timeout_at(by, async {
            if is_watch {
                // Watches are few, and nobody but who watches knows when one has waited too long for its head.
                gate.wait_out().await;
                return None;
            }
            Some(gate.enter().await)
        });
        let slot = slot.await.map_err(|_| Crowded)?;
        let request = Request::from_parts(head.clone(), body);
        let answer = service.ready().await?.call(request).await;
        let wish = wish_of(&answer);
        if let Some(slot) = slot {
            slot.learn(wish);
        }
        gate.heed(wish.unwrap_or_default());
        let wait = wish.and_then(|wish| wish.again);
        let wait = wait.map(|wait| wait + spread(wait));
        let wait = wait.filter(|wait| attempt < ATTEMPTS && Instant::now() + *wait < by);
        let (Some(same), Some(wait)) = (same, wait) else {
            return answer;
        };
        gate.again();
        let later = Instant::now() + wait;
        read_out(answer?.into_body()).await;
        sleep_until(later).await;
        body = same;
        attempt += 1;
    }
}

/// What an answer asks for; `None` if nothing follows from it.
fn wish_of<B>(answer: &Result<Response<B>, BoxError>) -> Option<Wish> {
    match answer {
        Ok(answer) => {
            let wish = Wish::of(answer.status(), answer.headers());
            // A fault that is not overload says nothing about how much could be asked.
            (wish.is_overloaded || !answer.status().is_server_error()).then_some(wish)
        }
        Err(error) if error.is::<Late>() => Some(Wish::of_silence()),
        // A server that is away is not an overloaded one.
        Err(_) => None,
    }
}

/// Reads what nobody wants to know. Whether that succeeds matters to nobody either: the connection is closed then.
async fn read_out<B>(body: B)
where
    B: BodyExt,
    B::Error: Into<BoxError>,
{
    drop(timeout(REST, Limited::new(body, REST_BYTES).collect()).await);
}

/// A request was not sent.
#[derive(Debug, thiserror::Error)]
#[error("the API server was too busy to be asked for {PATIENCE:?}")]
struct Crowded;
