//! What the cluster serves: from a kind to the resource it is stored as.

use std::{collections::HashMap, time::Duration};

use kube::{
    Client,
    core::{ApiResource, GroupVersion, GroupVersionKind},
    discovery::{self, Scope},
};
use tokio::{sync::RwLock, time::Instant};

use super::error::Error;

/// How long an answer that lacks a kind is believed. Works that wait for a CRD are retried, each with a backoff of its
/// own; together they must not ask more often than this.
const MISS: Duration = Duration::from_secs(1);

/// A kind as the cluster serves it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Kind {
    /// Where it is stored.
    pub resource: ApiResource,
    /// Whether its objects live in namespaces.
    pub is_namespaced: bool,
}

/// The kinds that have been asked for, a group and version at a time.
pub struct Kinds {
    client: Client,
    known: RwLock<HashMap<GroupVersion, Known>>,
}

struct Known {
    kinds: HashMap<String, Kind>,
    asked: Instant,
}

impl Kinds {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            known: RwLock::new(HashMap::new()),
        }
    }

    /// Finds a kind, asking the cluster only for a group and version that is new or may have changed.
    pub async fn find(&self, wanted: &GroupVersionKind) -> Result<Kind, Error> {
        let version = GroupVersion::gv(&wanted.group, &wanted.version);
        if let Some(known) = self.known.read().await.get(&version) {
            if let Some(kind) = known.kinds.get(&wanted.kind) {
                return Ok(kind.clone());
            }
            if known.asked.elapsed() < MISS {
                return Err(unknown(wanted));
            }
        }
        let kinds = self.ask(&version).await?;
        let found = kinds
            .get(&wanted.kind)
            .cloned()
            .ok_or_else(|| unknown(wanted));
        self.known.write().await.insert(
            version,
            Known {
                kinds,
                asked: Instant::now(),
            },
        );
        found
    }

    /// Finds the kind behind a resource; `None` when the cluster does not serve it any more.
    pub async fn find_resource(
        &self,
        group: &str,
        version: &str,
        plural: &str,
    ) -> Result<Option<Kind>, Error> {
        let version = GroupVersion::gv(group, version);
        let find = |kinds: &HashMap<String, Kind>| {
            kinds
                .values()
                .find(|kind| kind.resource.plural == plural)
                .cloned()
        };
        if let Some(kind) = self
            .known
            .read()
            .await
            .get(&version)
            .and_then(|known| find(&known.kinds))
        {
            return Ok(Some(kind));
        }
        let kinds = self.ask(&version).await?;
        let found = find(&kinds);
        self.known.write().await.insert(
            version,
            Known {
                kinds,
                asked: Instant::now(),
            },
        );
        Ok(found)
    }

    /// Forgets a group and version: an object of it was answered as if the kind were gone.
    pub async fn forget(&self, kind: &Kind) {
        let version = GroupVersion::gv(&kind.resource.group, &kind.resource.version);
        self.known.write().await.remove(&version);
    }

    async fn ask(&self, version: &GroupVersion) -> Result<HashMap<String, Kind>, Error> {
        let group = match discovery::pinned_group(&self.client, version).await {
            Ok(group) => group,
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(HashMap::new()),
            Err(kube::Error::Discovery(_)) => return Ok(HashMap::new()),
            Err(error) => return Err(error.into()),
        };
        let resources = group.versioned_resources(&version.version).into_iter();
        Ok(resources
            .map(|(resource, capabilities)| {
                let is_namespaced = capabilities.scope == Scope::Namespaced;
                (
                    resource.kind.clone(),
                    Kind {
                        resource,
                        is_namespaced,
                    },
                )
            })
            .collect())
    }
}

fn unknown(wanted: &GroupVersionKind) -> Error {
    Error::UnknownKind {
        kind: wanted.kind.clone(),
    }
}
