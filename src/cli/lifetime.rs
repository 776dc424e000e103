//! An agent's life: connect, serve, and begin anew when it was deposed or its credentials have changed.
//!
//! Beginning anew is the same as a restart of the process, without the restart: everything the agent knows is listed
//! again, and a list of what is in order causes no write. So nothing has to be known about what happened in between.

use std::convert::Infallible;

use super::{agent::Agent, connect::Connection, contents::Contents, failure::Failure};
use crate::{
    agent::serve,
    api::names::HubHash,
    election::{self, Leadership},
    runtime::{
        signal,
        tasks::{self, Tasks},
    },
    telemetry::metrics::Metrics,
    web::{server::Endpoints, subject::Subject},
};

/// Both clusters, and what the files were like that the clients were made from.
struct Connected {
    hub: Connection,
    spoke: Connection,
    credentials: Contents,
}

/// Why a life ended.
enum End {
    /// By a signal, or a file that was to end it.
    Asked,
    /// Another replica leads.
    Deposed,
    /// There are new credentials, or they are of no use to anybody.
    Renewed(Box<Result<Connected, Failure>>),
}

/// Serves until asked to end.
pub(super) async fn live(agent: Agent) -> Result<(), Failure> {
    let mut asked = signal::terminated().map_err(Failure::new)?;
    let election = agent.election()?;
    let fatal = Contents::of(agent.terminate_on_files().to_vec()).await;
    let (registry, metrics) = Metrics::new();
    let subject = Subject::new(metrics.clone());
    let endpoints = Endpoints::bind(agent.listen(), registry, subject.clone())
        .await
        .map_err(|error| {
            Failure::new(error).hint("give another address by --listen; port 0 is any that is free")
        })?;
    let mut connected = Connected::new(&agent, &metrics, credentials(&agent).await).await?;
    loop {
        let Connected { hub, spoke, .. } = &connected;
        tracing::info!(hub = hub.server, spoke = spoke.server, "serving");
        let mut tasks = Tasks::default();
        tasks.spawn("web", |stop| endpoints.clone().serve(stop));
        let mut leadership = match &election {
            Some(settings) => election::start(&mut tasks, spoke.client.clone(), settings.clone()),
            None => Leadership::undisputed(),
        };
        tasks.spawn("standing", |stop| {
            let told = tell(subject.clone(), leadership.clone(), election.is_some());
            async move {
                stop.run_until_cancelled(told).await;
                Ok::<_, Infallible>(())
            }
        });
        let settings = agent.settings(HubHash::of_server(&hub.server), metrics.agent.clone());
        let clients = (hub.client.clone(), spoke.client.clone());
        subject.started(serve::start(
            &mut tasks,
            settings,
            clients.0,
            clients.1,
            leadership.clone(),
        ));
        let mut end = None;
        let ended = tasks.run(async || {
            if end.is_none() {
                end = Some(tokio::select! {
                    () = asked() => End::Asked,
                    _ = fatal.changed() => {
                        tracing::info!("a file of --terminate-on-files has changed");
                        End::Asked
                    }
                    () = leadership.lost() => End::Deposed,
                    renewed = connected.renewed(&agent, &metrics) => End::Renewed(Box::new(renewed)),
                });
                return;
            }
            // While it ends, a signal after that by which it was asked to is in a hurry.
            if !matches!(end, Some(End::Asked)) {
                asked().await;
                end = Some(End::Asked);
            }
            asked().await;
        });
        ended.await.map_err(explained)?;
        match end {
            None | Some(End::Asked) => return Ok(()),
            Some(End::Deposed) => {}
            Some(End::Renewed(renewed)) => connected = (*renewed)?,
        }
    }
}

impl Connected {
    /// Connects. The files were looked at before they are read here: a change in between only costs another round.
    async fn new(agent: &Agent, metrics: &Metrics, credentials: Contents) -> Result<Self, Failure> {
        Ok(Self {
            hub: agent.hub().connect(&metrics.hub).await?,
            spoke: agent.spoke().connect(&metrics.spoke).await?,
            credentials,
        })
    }

    /// Waits for other credentials, and connects with them. What cannot be used is waited out.
    async fn renewed(&self, agent: &Agent, metrics: &Metrics) -> Result<Self, Failure> {
        let mut seen = self.credentials.clone();
        loop {
            seen.changed().await;
            // Another kubeconfig may name other files.
            seen = credentials(agent).await;
            match Self::new(agent, metrics, seen.clone()).await {
                Ok(new) if new.hub.server != self.hub.server => {
                    let (before, now) = (self.hub.server.clone(), new.hub.server);
                    return Err(Failure::new(AnotherHub { before, now }).hint(
                        "records on the spoke are named after the hub's address; if it is to change, start the agent anew: \
                         what it applied for the old address is then evicted after the grace period",
                    ));
                }
                Ok(new) => {
                    tracing::info!("credentials have changed; going on with the new ones");
                    return Ok(new);
                }
                Err(failure) => tracing::warn!(
                    error = failure.error(),
                    "credentials have changed and cannot be used; going on with the old ones"
                ),
            }
        }
    }
}

/// Tells the endpoints when this replica leads.
async fn tell(subject: Subject, mut leadership: Leadership, is_elected: bool) {
    subject.set_leading(!is_elected);
    leadership.won().await;
    subject.set_leading(true);
    leadership.lost().await;
    subject.set_leading(false);
}

/// The files that connections are made from.
async fn credentials(agent: &Agent) -> Contents {
    Contents::of([agent.hub().files(), agent.spoke().files()].concat()).await
}

#[derive(Debug, thiserror::Error)]
#[error("the hub's kubeconfig names another server: {now} instead of {before}")]
struct AnotherHub {
    before: String,
    now: String,
}

/// Adds what to do next.
fn explained(error: tasks::Error) -> Failure {
    let hint = match &error {
        tasks::Error::Failed { source, .. } => source.downcast_ref().map(election_hint),
        _ => None,
    };
    match hint {
        Some(hint) => Failure::new(error).hint(hint),
        None => Failure::new(error),
    }
}

fn election_hint(error: &election::Error) -> &'static str {
    match error {
        election::Error::NoNamespace { .. } => {
            "create the namespace, name another by --namespace, or run a single agent with --disable-leader-election"
        }
        election::Error::Forbidden { .. } => {
            "apply what `gitspoke install agent` prints, or run a single agent with --disable-leader-election"
        }
    }
}
