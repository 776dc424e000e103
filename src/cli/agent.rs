//! `gitspoke agent`: the spoke side.

use std::{net::SocketAddr, path::PathBuf};

use clap::Args;

use super::{
    connect::{self, Connection},
    failure::Failure,
};
use crate::{
    agent::{
        serve::{self, Settings},
        state::Identity,
    },
    api::names::{ClusterName, HubHash},
    runtime::{
        signal,
        tasks::{self, Tasks},
    },
    telemetry::metrics::Metrics,
    web::{server::Endpoints, subject::Subject},
};

/// What was typed.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    gitspoke agent --spoke-cluster-name edge-1 --hub-kubeconfig hub.kubeconfig --spoke-kubeconfig edge-1.kubeconfig")]
pub struct Agent {
    /// The cluster to serve: its namespace on the hub.
    #[arg(long, alias = "cluster-name", value_name = "NAME")]
    spoke_cluster_name: ClusterName,

    /// Kubeconfig of the hub. Its server names this agent's records on the spoke: keep it as it is.
    #[arg(long, alias = "workload-source-config", value_name = "FILE")]
    hub_kubeconfig: PathBuf,

    /// Kubeconfig of the spoke; without it, the cluster this process runs in.
    #[arg(long, value_name = "FILE")]
    spoke_kubeconfig: Option<PathBuf>,

    /// Owner of the records on the spoke; without it, the hash of the hub's address.
    #[arg(long = "agent-id", value_name = "ID")]
    id: Option<String>,

    /// How long what a work has applied outlives it, when it vanishes without being deleted; 876000h or more: for ever.
    #[arg(
        long = "appliedmanifestwork-eviction-grace-period",
        default_value = "60m",
        value_name = "DURATION"
    )]
    eviction_grace: kube::core::Duration,

    /// Works that are worked on at the same time.
    #[arg(long, alias = "workload-agent-workers", default_value_t = 10, value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..))]
    workers: u16,

    /// Where /healthz, /readyz and /metrics are served; port 0 for any that is free, and the log says which.
    #[arg(long, default_value = "127.0.0.1:8443", value_name = "ADDRESS")]
    listen: SocketAddr,
}

pub(super) fn run(agent: Agent) -> Result<(), Failure> {
    tasks::block_on(serve(agent)).map_err(Failure::new)?
}

async fn serve(agent: Agent) -> Result<(), Failure> {
    let asked = signal::terminated().map_err(Failure::new)?;
    let (registry, metrics) = Metrics::new();
    let subject = Subject::new(metrics.clone());
    let endpoints = Endpoints::bind(agent.listen, registry, subject.clone())
        .await
        .map_err(|error| {
            Failure::new(error).hint("give another address by --listen; port 0 is any that is free")
        })?;
    let hub = connect::with_kubeconfig(&agent.hub_kubeconfig, &metrics.hub).await?;
    let spoke: Connection = match &agent.spoke_kubeconfig {
        Some(path) => connect::with_kubeconfig(path, &metrics.spoke).await?,
        None => connect::in_cluster(&metrics.spoke)?,
    };
    let hash = HubHash::of_server(&hub.server);
    tracing::info!(cluster = %agent.spoke_cluster_name, hub = hub.server, spoke = spoke.server, "serving");
    let settings = Settings {
        cluster: agent.spoke_cluster_name,
        identity: Identity {
            eviction_grace: agent.eviction_grace.into(),
            agent_id: agent.id.unwrap_or_else(|| hash.to_string()),
            hub: hash,
        },
        workers: usize::from(agent.workers),
        metrics: metrics.agent,
    };
    let mut tasks = Tasks::default();
    tasks.spawn("web", |stop| endpoints.serve(stop));
    subject.started(serve::start(&mut tasks, settings, hub.client, spoke.client));
    tasks.run(asked).await.map_err(Failure::new)
}
