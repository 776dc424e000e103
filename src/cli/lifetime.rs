//! An agent's life: connect, serve, and begin anew when it may no longer write.
//!
//! Beginning anew is the same as a restart of the process, without the restart: everything the agent knows is listed
//! again, and a list of what is in order causes no write. So nothing has to be known about what happened in between.

use super::{agent::Agent, failure::Failure};
use crate::{
    agent::serve,
    api::names::HubHash,
    election::{self, Leadership},
    runtime::{
        signal,
        tasks::{self, Tasks},
    },
};

/// Why a life ended.
enum End {
    /// By a signal.
    Asked,
    /// Another replica leads.
    Deposed,
}

/// Serves until asked to end.
pub(super) async fn live(agent: Agent) -> Result<(), Failure> {
    let mut asked = signal::terminated().map_err(Failure::new)?;
    let election = agent.election()?;
    let (hub, spoke) = agent.connect().await?;
    loop {
        tracing::info!(hub = hub.server, spoke = spoke.server, "serving");
        let mut tasks = Tasks::default();
        let mut leadership = match &election {
            Some(settings) => election::start(&mut tasks, spoke.client.clone(), settings.clone()),
            None => Leadership::undisputed(),
        };
        let settings = agent.settings(HubHash::of_server(&hub.server));
        serve::start(
            &mut tasks,
            settings,
            hub.client.clone(),
            spoke.client.clone(),
            leadership.clone(),
        );
        let mut end = None;
        let ended = tasks.run(async || {
            if end.is_none() {
                end = Some(tokio::select! {
                    () = asked() => End::Asked,
                    () = leadership.lost() => End::Deposed,
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
        }
    }
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
