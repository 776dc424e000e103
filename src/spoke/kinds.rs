//! What the cluster serves: from a kind to the resource it is stored as.

use std::{collections::HashMap, time::Duration};

use kube::{
    Client,
    core::{ApiResource, GroupVersion, GroupVersionKind},
    discovery::{self, ApiCapabilities, Scope, verbs},
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
    /// Whether it can be watched.
    pub is_watchable: bool,
    /// Whether its objects can be patched, and so applied.
    pub is_patchable: bool,
}

impl Kind {
    /// A kind that every cluster serves.
    pub fn of<K: kube::Resource<DynamicType = ()>>(is_namespaced: bool) -> Self {
        Self {
            resource: ApiResource::erase::<K>(&()),
            is_namespaced,
            is_watchable: true,
            is_patchable: true,
        }
    }
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

    /// Finds the kind behind a resource, under the version it was known by or else under the one that its group prefers
    /// now; `None` when the cluster does not serve it any more.
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
        match found {
            Some(kind) => Ok(Some(kind)),
            None => self.find_in_group(group, plural).await,
        }
    }

    async fn find_in_group(&self, group: &str, plural: &str) -> Result<Option<Kind>, Error> {
        let group = match discovery::group(&self.client, group).await {
            Ok(group) => group,
            Err(error) => return absent(error).map(|()| None),
        };
        let resources = group.recommended_resources().into_iter();
        let mut kinds = resources.map(|(resource, capabilities)| kind(resource, &capabilities));
        Ok(kinds.find(|kind| kind.resource.plural == plural))
    }

    /// Forgets a group and version: an object of it was answered as if the kind were gone.
    pub async fn forget(&self, kind: &Kind) {
        let version = GroupVersion::gv(&kind.resource.group, &kind.resource.version);
        self.known.write().await.remove(&version);
    }

    async fn ask(&self, version: &GroupVersion) -> Result<HashMap<String, Kind>, Error> {
        let group = match discovery::pinned_group(&self.client, version).await {
            Ok(group) => group,
            Err(error) => return absent(error).map(|()| HashMap::new()),
        };
        let resources = group.versioned_resources(&version.version).into_iter();
        let kinds = resources.map(|(resource, capabilities)| kind(resource, &capabilities));
        Ok(kinds
            .map(|kind| (kind.resource.kind.clone(), kind))
            .collect())
    }
}

fn kind(resource: ApiResource, capabilities: &ApiCapabilities) -> Kind {
    Kind {
        is_namespaced: capabilities.scope == Scope::Namespaced,
        is_watchable: capabilities.supports_operation(verbs::WATCH),
        is_patchable: capabilities.supports_operation(verbs::PATCH),
        resource,
    }
}

/// What discovery says about a group or version that the cluster does not serve. Anything else it says is a failure: a
/// group whose server is down is not gone.
fn absent(error: kube::Error) -> Result<(), Error> {
    match error {
        kube::Error::Api(status) if status.code == 404 => Ok(()),
        kube::Error::Discovery(_) => Ok(()),
        error => Err(error.into()),
    }
}

fn unknown(wanted: &GroupVersionKind) -> Error {
    Error::UnknownKind {
        kind: wanted.kind.clone(),
    }
}
