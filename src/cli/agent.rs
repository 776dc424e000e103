//! `gitspoke agent`: the spoke side.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{ArgAction, Args};

use super::{
    connect::Access,
    duration::duration,
    election::Election,
    failure::Failure,
    gates::{Gates, Switches},
    ignored::Ignored,
    lifetime,
};
use crate::{
    agent::{serve::Settings, state::Identity},
    api::names::{ClusterName, HubHash},
    election,
    expression::feedback::FeedbackOptions,
    runtime::tasks,
    telemetry::metrics::AgentMetrics,
};

/// What was typed.
#[derive(Debug, Args)]
#[command(
    // As Go's flags: of two values the last counts.
    args_override_self = true,
    after_help = "Example:\n  \
    gitspoke agent --disable-leader-election --spoke-cluster-name edge-1 --hub-kubeconfig hub.kubeconfig --spoke-kubeconfig edge-1.kubeconfig")]
pub struct Agent {
    /// The cluster to serve: its namespace on the hub.
    #[arg(long, alias = "cluster-name", value_name = "NAME")]
    spoke_cluster_name: ClusterName,

    /// Kubeconfig of the hub; without it, `kubeconfig` in the directory of --hub-kubeconfig-dir.
    ///
    /// Its server names this agent's records on the spoke: keep it as it is.
    #[arg(long, alias = "workload-source-config", value_name = "FILE")]
    hub_kubeconfig: Option<PathBuf>,

    /// Directory with the kubeconfig of the hub, as a mounted Secret has it.
    #[arg(
        long,
        default_value = "/spoke/hub-kubeconfig",
        value_name = "DIRECTORY"
    )]
    hub_kubeconfig_dir: PathBuf,

    /// Kubeconfig of the spoke; without it, the cluster this process runs in.
    #[arg(long, alias = "kubeconfig", value_name = "FILE")]
    spoke_kubeconfig: Option<PathBuf>,

    /// Owner of the records on the spoke; without it, the hash of the hub's address.
    #[arg(long = "agent-id", value_name = "ID")]
    id: Option<String>,

    /// How long what a work has applied outlives it, when it vanishes without being deleted; 876000h or more: for ever.
    #[arg(
        long = "appliedmanifestwork-eviction-grace-period",
        default_value = "60m",
        value_name = "DURATION",
        value_parser = duration,
    )]
    eviction_grace: Duration,

    /// Works that are worked on at the same time.
    #[arg(long, alias = "workload-agent-workers", default_value_t = 10, value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..))]
    workers: u16,

    /// Longest JSON value that feedback reports, in bytes; the hub stores none above 1024.
    #[arg(long, default_value_t = 1024, value_name = "BYTES")]
    max_json_raw_length: usize,

    /// Switches, such as `RawFeedbackJsonString=true` (feedback may report JSON values) and
    /// `ExecutorValidatingCaches=true` (which is the default here).
    #[arg(long, action = ArgAction::Append, value_name = "GATES")]
    feature_gates: Vec<Switches>,

    /// Where works come from: the hub's API.
    #[arg(long, default_value = "kube", value_name = "DRIVER", hide_short_help = true,
        value_parser = driver)]
    workload_source_driver: Driver,

    /// Where /healthz, /readyz and /metrics are served; port 0 for any that is free, and the log says which.
    #[arg(long, default_value = "127.0.0.1:8443", value_name = "ADDRESS", value_parser = address)]
    listen: SocketAddr,

    /// End when the contents of this file change; may be given several times. Not needed for credentials: those are
    /// read again.
    #[arg(long, action = ArgAction::Append, value_name = "FILE", value_delimiter = ',')]
    terminate_on_files: Vec<PathBuf>,

    #[command(flatten)]
    election: Election,

    #[command(flatten)]
    ignored: Ignored,
}

pub(super) fn run(agent: Agent) -> Result<(), Failure> {
    for (flag, why) in agent.ignored.given() {
        tracing::warn!("{flag} has no effect: {why}");
    }
    if !Gates::with(&agent.feature_gates).executor_validating_caches {
        tracing::warn!("ExecutorValidatingCaches=false has no effect: the cache is always on");
    }
    tasks::block_on(lifetime::live(agent)).map_err(Failure::new)?
}

impl Agent {
    /// How the hub is reached.
    pub(super) fn hub(&self) -> Access {
        let named = self.hub_kubeconfig.clone();
        Access::Kubeconfig(named.unwrap_or_else(|| self.hub_kubeconfig_dir.join("kubeconfig")))
    }

    /// How the spoke is reached.
    pub(super) fn spoke(&self) -> Access {
        let named = self.spoke_kubeconfig.clone();
        named.map_or(Access::InCluster, Access::Kubeconfig)
    }

    /// The files whose change ends the process.
    pub(super) fn terminate_on_files(&self) -> &[PathBuf] {
        &self.terminate_on_files
    }

    /// Who stands for election, if there is one.
    pub(super) fn election(&self) -> Result<Option<election::Settings>, Failure> {
        self.election.settings()
    }

    /// Where health and metrics are served.
    pub(super) fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// What was typed, as the agent understands it.
    pub(super) fn settings(&self, hub: HubHash, metrics: AgentMetrics) -> Settings {
        let gates = Gates::with(&self.feature_gates);
        Settings {
            cluster: self.spoke_cluster_name.clone(),
            identity: Identity {
                eviction_grace: self.eviction_grace,
                agent_id: self.id.clone().unwrap_or_else(|| hub.to_string()),
                hub,
                feedback: FeedbackOptions {
                    raw_json: gates.raw_feedback_json_string,
                    max_raw_length: self.max_json_raw_length,
                },
            },
            workers: usize::from(self.workers),
            metrics,
        }
    }
}

/// Where works come from. There is one way: the hub's API.
#[derive(Debug, Clone, Copy)]
struct Driver;

fn driver(text: &str) -> Result<Driver, String> {
    if text == "kube" {
        return Ok(Driver);
    }
    Err("works come from the hub's API; the only driver is kube".to_owned())
}

/// An address, also in Go's spelling `:8443` for every interface.
fn address(text: &str) -> Result<SocketAddr, String> {
    let every = text.strip_prefix(':').map(|port| format!("0.0.0.0:{port}"));
    every
        .as_deref()
        .unwrap_or(text)
        .parse()
        .map_err(|_| "write an IP address and a port, such as 127.0.0.1:8443 or :8443".to_owned())
}
