//! Clients from kubeconfig files.

use std::path::{Path, PathBuf};

use kube::{
    Client, Config,
    client::ClientBuilder,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};

use super::failure::Failure;
use crate::telemetry::requests::Requests;

/// A cluster to talk to.
pub(super) struct Connection {
    /// Its client.
    pub(super) client: Client,
    /// Its address, exactly as the kubeconfig writes it.
    pub(super) server: String,
}

/// Connects to the cluster of a kubeconfig's current context. Must be called on a tokio runtime.
pub(super) async fn with_kubeconfig(
    path: &Path,
    requests: &Requests,
) -> Result<Connection, Failure> {
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

/// Connects to the cluster this process runs in.
pub(super) fn in_cluster(requests: &Requests) -> Result<Connection, Failure> {
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
    // Retries are the queue's: a call that waits on its own would hide minutes inside a turn.
    config.default_retry = false;
    let builder = ClientBuilder::try_from(config).map_err(Failure::new)?;
    Ok(builder.with_layer(requests).build())
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
