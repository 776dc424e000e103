//! Clients, and the files they are made from.

use std::path::{Path, PathBuf};

use kube::{
    Client, Config,
    client::ClientBuilder,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};

use super::failure::Failure;
use crate::{client::paced::Paced, telemetry::requests::Requests};

/// Where a Pod finds whom to trust. Its token is beside it, and read again by the client itself.
const OWN_AUTHORITY: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";

/// How a cluster is reached.
#[derive(Debug, Clone)]
pub(super) enum Access {
    /// By the current context of a kubeconfig.
    Kubeconfig(PathBuf),
    /// As a Pod of it.
    InCluster,
}

/// A cluster to talk to.
#[derive(Clone)]
pub(super) struct Connection {
    /// Its client.
    pub(super) client: Client,
    /// Its address, exactly as the kubeconfig writes it.
    pub(super) server: String,
}

impl Access {
    /// Connects. Must be called on a tokio runtime.
    pub(super) async fn connect(&self, requests: &Requests) -> Result<Connection, Failure> {
        match self {
            Self::Kubeconfig(path) => with_kubeconfig(path, requests).await,
            Self::InCluster => in_cluster(requests),
        }
    }

    /// The files that a new connection is made from. Token files are not among them: clients read those again by
    /// themselves, every minute.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let Self::Kubeconfig(path) = self else {
            return vec![PathBuf::from(OWN_AUTHORITY)];
        };
        // What cannot be read now is said by whoever connects.
        let kubeconfig = Kubeconfig::read_from(path).unwrap_or_default();
        let clusters = kubeconfig.clusters.into_iter();
        let authorities = clusters.filter_map(|named| named.cluster?.certificate_authority);
        let users = kubeconfig.auth_infos.into_iter();
        let identities = users
            .filter_map(|named| named.auth_info)
            .flat_map(|user| [user.client_certificate, user.client_key])
            .flatten();
        let named = authorities.chain(identities).map(PathBuf::from);
        [path.clone()].into_iter().chain(named).collect()
    }
}

async fn with_kubeconfig(path: &Path, requests: &Requests) -> Result<Connection, Failure> {
    let hint = "give a kubeconfig whose current context names a cluster and a user";
    let unreadable = |source| {
        let path = path.to_owned();
        Failure::new(Unreadable { path, source }).hint(hint)
    };
    let kubeconfig = Kubeconfig::read_from(path).map_err(unreadable)?;
    let server = server(&kubeconfig).unwrap_or_default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(unreadable)?;
    Ok(Connection {
        client: client(config, requests)?,
        server,
    })
}

fn in_cluster(requests: &Requests) -> Result<Connection, Failure> {
    let config = Config::incluster().map_err(|error| {
        Failure::new(error).hint("outside of a cluster, give a kubeconfig by --spoke-kubeconfig")
    })?;
    let server = config.cluster_url.to_string();
    Ok(Connection {
        client: client(config, requests)?,
        server,
    })
}

fn client(mut config: Config, requests: &Requests) -> Result<Client, Failure> {
    // Retries are the queue's: a call that waits on its own would hide minutes inside a turn. What a server itself asks
    // for is another matter, and the layer's.
    config.default_retry = false;
    let builder = ClientBuilder::try_from(config).map_err(Failure::new)?;
    Ok(builder
        .with_layer(requests)
        .with_layer(&Paced::new(requests))
        .build())
}

fn server(kubeconfig: &Kubeconfig) -> Option<String> {
    let wanted = kubeconfig.current_context.as_ref()?;
    let context = kubeconfig
        .contexts
        .iter()
        .find(|context| context.name == *wanted)?
        .context
        .as_ref()?;
    let cluster = kubeconfig
        .clusters
        .iter()
        .find(|cluster| cluster.name == context.cluster)?;
    cluster.cluster.as_ref()?.server.clone()
}

#[derive(Debug, thiserror::Error)]
#[error("could not read kubeconfig {}", path.display())]
struct Unreadable {
    path: PathBuf,
    source: KubeconfigError,
}
