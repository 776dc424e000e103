//! The server: `/healthz`, `/readyz` and `/metrics`.

use std::{fmt::Write as _, io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, extract::State, response::IntoResponse, routing::get, serve::Listener};
use http::{StatusCode, header::CONTENT_TYPE};
use prometheus_client::{encoding::text::encode, registry::Registry};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::{
    gauges::Gauges,
    health::{ailments, lacks},
    subject::Subject,
};

/// The text format that the registry writes.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How long nobody is let in after that failed.
const PAUSE: Duration = Duration::from_secs(1);

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
#[error("could not listen on {address}")]
pub struct CouldNotListen {
    address: SocketAddr,
    source: io::Error,
}

/// The endpoints of a process. They can be served again after they were told to stop; clones are one.
#[derive(Clone)]
pub struct Endpoints {
    listener: Accepting,
    router: Router,
}

impl Endpoints {
    /// Takes an address, before anything else is begun. Port 0 is any that is free; the log says which.
    pub async fn bind(
        address: SocketAddr,
        mut registry: Registry,
        subject: Subject,
    ) -> Result<Self, CouldNotListen> {
        let fail = |source| CouldNotListen { address, source };
        let listener = TcpListener::bind(address).await.map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        tracing::info!(%address, "listening");
        registry
            .sub_registry_with_prefix("gitspoke")
            .register_collector(Box::new(Gauges(subject.clone())));
        let router = Router::new()
            .route("/healthz", get(healthz))
            .route("/readyz", get(readyz))
            .with_state(subject)
            .route("/metrics", get(metrics))
            .with_state(Arc::new(registry));
        let listener = Accepting(Arc::new(listener));
        Ok(Self { listener, router })
    }

    /// Answers until told to stop. Answers are made in memory, so nobody has to be waited for then.
    pub async fn serve(self, stop: CancellationToken) -> io::Result<()> {
        tokio::select! {
            () = stop.cancelled() => Ok(()),
            ended = axum::serve(self.listener, self.router) => ended,
        }
    }
}

/// A listener that outlives the server: connections wait in it while nobody serves.
#[derive(Clone)]
struct Accepting(Arc<TcpListener>);

impl Listener for Accepting {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            match self.0.accept().await {
                Ok(accepted) => return accepted,
                // Too many open files, most likely: others may be closed meanwhile.
                Err(error) => {
                    tracing::warn!(%error, "could not accept a connection");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

async fn healthz(State(subject): State<Subject>) -> impl IntoResponse {
    answer(
        &ailments(&subject.facts()),
        StatusCode::INTERNAL_SERVER_ERROR,
    )
}

async fn readyz(State(subject): State<Subject>) -> impl IntoResponse {
    answer(&lacks(&subject.facts()), StatusCode::SERVICE_UNAVAILABLE)
}

/// `ok`, or a line for each thing that is not.
fn answer(problems: &[String], status: StatusCode) -> (StatusCode, String) {
    if problems.is_empty() {
        return (StatusCode::OK, "ok\n".to_owned());
    }
    let mut text = String::new();
    for problem in problems {
        writeln!(text, "{problem}").expect("writing to memory cannot fail");
    }
    (status, text)
}

async fn metrics(State(registry): State<Arc<Registry>>) -> impl IntoResponse {
    let mut text = String::new();
    encode(&mut text, &registry).expect("writing to memory cannot fail");
    ([(CONTENT_TYPE, OPENMETRICS)], text)
}
