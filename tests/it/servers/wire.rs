//! What stands between an agent and its two API servers: a proxy on loopback that knows every request, and can kill the
//! agent at one, refuse them all, or cut what is open.
//!
//! The agent speaks plain HTTP to it, the proxy speaks TLS to the server. Answers are passed on as they come, so watches
//! work. Writes are read whole and finished even when the agent is gone: they are on their way.

#![expect(
    clippy::disallowed_methods,
    reason = "connections last as long as the case's runtime"
)]

use std::{
    path::{Path, PathBuf},
    sync::{Arc, MutexGuard, PoisonError},
};

use http::{Method, Request, Response, StatusCode, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kube::{Client, client::Body};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Notify,
};
use tokio_util::sync::CancellationToken;

use super::kubeconfig::write_file;

#[expect(
    clippy::disallowed_types,
    reason = "every connection writes to one log; held for that only"
)]
type Lock<T> = std::sync::Mutex<T>;

type Broken = Box<dyn std::error::Error + Send + Sync>;

/// One of the two servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Hub,
    Spoke,
}

/// When in a write's life the agent is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The server has not seen it.
    Before,
    /// The server has answered; the agent has not heard.
    After,
}

/// How a server is out of order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outage {
    /// Connections are closed without an answer.
    Silent,
    /// Every request is answered with this code, and a wish to be left alone for so many seconds.
    Answers(u16, u32),
    /// Requests with this in their path are answered with 429 and a wish for a second of quiet.
    TurnsAway(&'static str),
    /// So many writes at a time are passed on; more are answered with 429 and a wish for a second of quiet.
    Busy(usize),
}

/// A request that the server has answered, or a write that the agent was killed before.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) side: Side,
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) path: String,
    /// The answer's code; absent if the server has not seen it.
    pub(crate) code: Option<u16>,
    /// The version in the answer to a write.
    pub(crate) version: Option<String>,
}

impl Sent {
    pub(crate) fn is_write(&self) -> bool {
        is_write(&self.method)
    }

    /// Whether the server took it.
    pub(crate) fn is_taken(&self) -> bool {
        self.code.is_some_and(|code| code < 300)
    }

    /// What an object's metadata says about which writes it has taken in. Definitions have a status that the server
    /// itself keeps writing to, so only their generation tells.
    pub(crate) fn version_of(path: &str, meta: &Value) -> Option<String> {
        if path.contains("/customresourcedefinitions/") {
            return meta["generation"].as_i64().map(|number| number.to_string());
        }
        meta["resourceVersion"].as_str().map(str::to_owned)
    }

    /// The object's path, without the query.
    pub(crate) fn object(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }
}

/// The wire between one agent and its servers.
pub(crate) struct Wire {
    state: Lock<State>,
    struck: Notify,
}

#[derive(Default)]
struct State {
    log: Vec<Sent>,
    writes: usize,
    /// Writes that the spoke has not answered yet.
    under_way: usize,
    strike: Strike,
    agent: Option<u32>,
    hub_outage: Option<Outage>,
    spoke_outage: Option<Outage>,
    /// A resource of the spoke that can be neither patched nor watched.
    plain: Option<&'static str>,
    /// Ends every connection that is open now.
    open: CancellationToken,
}

/// A blow that is to come.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Strike {
    #[default]
    None,
    /// At the write of this number, counted from the beginning.
    Armed(usize, Moment),
    /// The write is on its way.
    Falling,
    Fallen,
}

impl Wire {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Lock::default(),
            struck: Notify::new(),
        })
    }

    /// Opens the wire to one server. Returns a kubeconfig for the agent, in this directory. It lasts as long as the
    /// runtime it was opened in.
    pub(crate) async fn open(
        self: &Arc<Self>,
        side: Side,
        server: Client,
        directory: &Path,
    ) -> PathBuf {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let wire = Arc::clone(self);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let wire = Arc::clone(&wire);
                tokio::spawn(wire.serve(side, stream, server.clone()));
            }
        });
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": {"server": format!("http://{address}")}}],
            "users": [{"name": "agent", "user": {}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "agent"}}],
            "current-context": "test",
        });
        let path = directory.join(format!("{side:?}.kubeconfig").to_lowercase());
        write_file(&path, &config.to_string());
        path
    }

    /// Whom to kill.
    pub(crate) fn target(&self, agent: u32) {
        self.state().agent = Some(agent);
    }

    /// Kills the agent at the write after so many more, the first being 1.
    pub(crate) fn arm(&self, number: usize, moment: Moment) {
        let mut state = self.state();
        state.strike = Strike::Armed(state.writes + number, moment);
    }

    /// Waits until the agent has been killed.
    pub(crate) async fn struck(&self) {
        loop {
            let struck = self.struck.notified();
            if self.state().strike == Strike::Fallen {
                return;
            }
            struck.await;
        }
    }

    /// Calls the blow off. Returns whether it was too late.
    pub(crate) async fn disarm(&self) -> bool {
        let before = {
            let mut state = self.state();
            let before = state.strike;
            if matches!(before, Strike::Armed(..)) {
                state.strike = Strike::None;
            }
            before
        };
        if before == Strike::Falling {
            self.struck().await;
        }
        let is_dead = matches!(before, Strike::Falling | Strike::Fallen);
        self.state().strike = Strike::None;
        is_dead
    }

    /// Puts a server out of order, or back.
    pub(crate) fn set_outage(&self, side: Side, outage: Option<Outage>) {
        let mut state = self.state();
        match side {
            Side::Hub => state.hub_outage = outage,
            Side::Spoke => state.spoke_outage = outage,
        }
        drop(state);
        self.cut();
    }

    /// Makes the spoke serve a resource as a simple API would: it can be neither patched nor watched.
    pub(crate) fn simplify(&self, resource: &'static str) {
        self.state().plain = Some(resource);
        self.cut();
    }

    /// Breaks every connection that is open, watches above all.
    pub(crate) fn cut(&self) {
        std::mem::take(&mut self.state().open).cancel();
    }

    /// How many requests there have been.
    pub(crate) fn position(&self) -> usize {
        self.state().log.len()
    }

    /// The requests after a position.
    pub(crate) fn since(&self, position: usize) -> Vec<Sent> {
        self.state().log[position..].to_vec()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(self: Arc<Self>, side: Side, stream: TcpStream, server: Client) {
        let open = self.state().open.clone();
        let service = service_fn(|request| Arc::clone(&self).answer(side, request, server.clone()));
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        // An error here is a peer that has gone, which is the point of all this.
        tokio::select! {
            () = open.cancelled() => {}
            _ = connection => {}
        }
    }

    async fn answer(
        self: Arc<Self>,
        side: Side,
        request: Request<Incoming>,
        server: Client,
    ) -> Result<Response<Body>, Broken> {
        let sent = Sent {
            side,
            method: request.method().clone(),
            path: request.uri().to_string(),
            code: None,
            version: None,
        };
        match self.outage(side) {
            Some(Outage::Silent) => return Err("out of order".into()),
            Some(Outage::Answers(code, seconds)) => {
                self.state().log.push(Sent {
                    code: Some(code),
                    ..sent
                });
                return Ok(refusal(code, seconds));
            }
            Some(outage) if self.turns_away(&outage, &sent) => {
                let code = Some(429);
                self.state().log.push(Sent { code, ..sent });
                return Ok(refusal(429, 1));
            }
            None | Some(Outage::TurnsAway(_) | Outage::Busy(_)) => {}
        }
        let plain = self.state().plain.filter(|_| side == Side::Spoke);
        if plain.is_some_and(|resource| is_beyond(resource, &sent)) {
            let code = Some(405);
            self.state().log.push(Sent { code, ..sent });
            return Ok(refusal(405, 0));
        }
        let request = outgoing(request).await?;
        if let Some(resource) = plain.filter(|_| is_discovery(&sent)) {
            return simplified(server.send(request).await?, resource).await;
        }
        if !sent.is_write() {
            let answer = server.send(request).await?;
            let code = Some(answer.status().as_u16());
            self.state().log.push(Sent { code, ..sent });
            return Ok(passed_on(answer));
        }
        let moment = self.count();
        if moment == Some(Moment::Before) {
            self.state().log.push(sent);
            self.strike();
            return Err("the agent is dead".into());
        }
        // A task of its own: the agent's death does not call back what is on its way.
        let write = tokio::spawn(Arc::clone(&self).write(sent, request, server));
        let answer = write.await??;
        if moment == Some(Moment::After) {
            self.strike();
            return Err("the agent is dead".into());
        }
        Ok(answer)
    }

    async fn write(
        self: Arc<Self>,
        sent: Sent,
        request: Request<Body>,
        server: Client,
    ) -> Result<Response<Body>, Broken> {
        let is_counted = sent.side == Side::Spoke;
        self.state().under_way += usize::from(is_counted);
        let answer = async {
            let (head, body) = passed_on(server.send(request).await?).into_parts();
            Ok::<_, Broken>((head, body.collect_bytes().await?))
        };
        let answer = answer.await;
        self.state().under_way -= usize::from(is_counted);
        let (head, body) = answer?;
        let object: Value = serde_json::from_slice(&body).unwrap_or_default();
        self.state().log.push(Sent {
            code: Some(head.status.as_u16()),
            version: Sent::version_of(&sent.path, &object["metadata"]),
            ..sent
        });
        Ok(Response::from_parts(head, Body::from(body)))
    }

    /// Counts a write. Returns when in its life the agent is to be killed, if it is.
    fn count(&self) -> Option<Moment> {
        let mut state = self.state();
        state.writes += 1;
        match state.strike {
            Strike::Armed(number, moment) if number == state.writes => {
                state.strike = Strike::Falling;
                Some(moment)
            }
            _ => None,
        }
    }

    fn strike(&self) {
        let mut state = self.state();
        let pid = state
            .agent
            .and_then(|pid| Pid::from_raw(pid.cast_signed()))
            .expect("there is an agent whenever a write is counted");
        kill_process(pid, Signal::KILL).unwrap();
        state.strike = Strike::Fallen;
        drop(state);
        // What the dead agent has sent and nobody has read yet is not read any more.
        self.cut();
        self.struck.notify_waiters();
    }

    fn turns_away(&self, outage: &Outage, sent: &Sent) -> bool {
        match outage {
            Outage::TurnsAway(part) => sent.path.contains(part),
            Outage::Busy(most) => sent.is_write() && self.state().under_way >= *most,
            Outage::Silent | Outage::Answers(..) => false,
        }
    }

    fn outage(&self, side: Side) -> Option<Outage> {
        let state = self.state();
        match side {
            Side::Hub => state.hub_outage.clone(),
            Side::Spoke => state.spoke_outage.clone(),
        }
    }
}

/// Whether a request asks what a simple API does not offer.
fn is_beyond(resource: &str, sent: &Sent) -> bool {
    let is_about = sent.object().split('/').any(|part| part == resource);
    is_about && (sent.method == Method::PATCH || sent.path.contains("watch=true"))
}

/// Whether a request asks for the resources of a group and version.
fn is_discovery(sent: &Sent) -> bool {
    let parts: Vec<&str> = sent.object().trim_matches('/').split('/').collect();
    matches!(parts.as_slice(), ["api", _] | ["apis", _, _])
}

/// A list of resources, in which one offers less.
async fn simplified(answer: Response<Body>, resource: &str) -> Result<Response<Body>, Broken> {
    let (head, body) = passed_on(answer).into_parts();
    let mut list: Value = serde_json::from_slice(&body.collect_bytes().await?)?;
    let resources = list["resources"].as_array_mut().into_iter().flatten();
    for found in resources.filter(|found| found["name"] == resource) {
        if let Some(verbs) = found["verbs"].as_array_mut() {
            verbs.retain(|verb| verb != "patch" && verb != "watch");
        }
    }
    Ok(Response::from_parts(
        head,
        Body::from(list.to_string().into_bytes()),
    ))
}

fn is_write(method: &Method) -> bool {
    [Method::POST, Method::PUT, Method::PATCH, Method::DELETE].contains(method)
}

/// The request as the server gets it.
async fn outgoing(request: Request<Incoming>) -> Result<Request<Body>, Broken> {
    use http_body_util::BodyExt as _;
    let (mut head, body) = request.into_parts();
    head.headers.remove(header::HOST);
    head.headers.remove(header::CONTENT_LENGTH);
    head.headers.remove(header::TRANSFER_ENCODING);
    let body = body.collect().await?.to_bytes();
    Ok(Request::from_parts(head, Body::from(body)))
}

/// The answer as the agent gets it: how it is cut into pieces is each connection's own affair.
fn passed_on(mut answer: Response<Body>) -> Response<Body> {
    let headers = answer.headers_mut();
    headers.remove(header::CONNECTION);
    headers.remove(header::CONTENT_LENGTH);
    headers.remove(header::TRANSFER_ENCODING);
    answer
}

fn refusal(code: u16, seconds: u32) -> Response<Body> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "message": "the wire says no", "details": {"retryAfterSeconds": seconds},
    });
    let mut answer = Response::new(Body::from(status.to_string().into_bytes()));
    *answer.status_mut() = StatusCode::from_u16(code).unwrap();
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
    headers.insert(header::RETRY_AFTER, seconds.into());
    answer
}
