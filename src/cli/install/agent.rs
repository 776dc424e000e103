//! `gitspoke install agent`: the agent as a cluster runs it, and the rights it has on both sides.

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::{Format, rights, workload};
use crate::{api::names::ClusterName, cli::failure::Failure};

/// What was typed.
#[derive(Debug, Args)]
pub(super) struct Agent {
    /// The cluster that the agent serves: its namespace on the hub.
    #[arg(long, alias = "cluster-name", value_name = "NAME")]
    spoke_cluster_name: ClusterName,

    /// Which cluster the objects are for.
    #[arg(long, value_enum, default_value = "spoke")]
    side: Side,

    /// The image to run; needed for the spoke.
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,

    /// How many agents run; one of them leads.
    #[arg(long, default_value_t = 1, value_name = "N")]
    replicas: u16,

    /// Namespace on the spoke that the agent runs in.
    #[arg(
        long,
        default_value = "open-cluster-management-agent",
        value_name = "NAMESPACE"
    )]
    namespace: String,

    /// Owner of the records on the spoke; without it, the hash of the hub's address.
    #[arg(long = "agent-id", value_name = "ID")]
    id: Option<String>,

    /// The user that the agent is on the hub; without it, the group that Open Cluster Management gives to the agents of
    /// a cluster, `system:open-cluster-management:NAME`.
    #[arg(long, value_name = "USER")]
    hub_user: Option<String>,

    /// How they are printed.
    #[arg(short, long, value_enum, default_value = "yaml", value_name = "FORMAT")]
    pub(super) output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Side {
    /// Namespace, rights and Deployment of the agent.
    Spoke,
    /// The cluster's namespace, and the agent's rights in it.
    Hub,
}

impl Agent {
    /// What `kubectl apply` needs.
    pub(super) fn objects(&self) -> Result<Vec<Value>, Failure> {
        let cluster = self.spoke_cluster_name.as_str();
        if self.side == Side::Hub {
            return Ok(rights::on_hub(cluster, self.hub_user.as_deref()));
        }
        let Some(image) = &self.image else {
            return Err(Failure::usage("no image to run")
                .hint("give one by --image, or ask for the hub by --side hub"));
        };
        let mut objects = rights::on_spoke(&self.namespace);
        objects.push(workload::deployment(&workload::Settings {
            cluster,
            image,
            replicas: self.replicas,
            namespace: &self.namespace,
            agent_id: self.id.as_deref(),
        }));
        Ok(objects)
    }
}
