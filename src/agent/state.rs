//! The agent's state, and why a pass may end early.

use std::{
    sync::{MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Api, Resource, ResourceExt, api::PatchParams};
use tokio::sync::Notify;

use super::{cache::Cache, foreign::Foreign, index::Index, report::Hub};
use crate::{
    api::{
        names::{HubHash, WorkName},
        wellknown::AGENT_FIELD_MANAGER,
        work::{applied::AppliedManifestWork, spec::ManifestWork},
    },
    expression::{
        feedback::FeedbackOptions,
        sandbox::{self, Evaluator},
    },
    runtime::queue::{Queue, Wake},
    spoke::{self, cluster::Cluster},
};

#[expect(
    clippy::disallowed_types,
    reason = "passes and watches share it; held for map operations, never across an await"
)]
type Lock<T> = std::sync::Mutex<T>;

/// Who this agent is.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The hub it serves.
    pub hub: HubHash,
    /// The owner of its AppliedManifestWorks.
    pub agent_id: String,
    /// How long a record outlives its work.
    pub eviction_grace: Duration,
    /// What it was told about feedback values.
    pub feedback: FeedbackOptions,
}

/// What there may be something to do about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    /// A work of this hub, by name.
    Work(String),
    /// A record on the spoke that may have lost its work, by its own name.
    Record(String),
}

/// Everything a pass needs.
pub struct Agent {
    pub(super) identity: Identity,
    pub(super) hub: Hub,
    pub(super) spoke: Cluster,
    pub(super) applied: Api<AppliedManifestWork>,
    pub(super) queue: Queue<(), Key>,
    works: Lock<Cache<ManifestWork>>,
    applied_works: Lock<Cache<AppliedManifestWork>>,
    index: Lock<Index>,
    foreign: Lock<Foreign>,
    pub(super) kinds_changed: Notify,
    pub(super) evaluator: Evaluator,
}

/// Why a pass could not be finished. Its work is tried again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A write to the hub failed.
    #[error("could not write to the hub: {action}")]
    Hub {
        /// What was attempted.
        action: &'static str,
        #[source]
        /// Why it failed.
        source: Box<kube::Error>,
    },
    /// A request to the spoke failed.
    #[error("could not {action} on the spoke")]
    Spoke {
        /// What was attempted.
        action: String,
        #[source]
        /// Why it failed.
        source: spoke::error::Error,
    },
    /// Some manifests could not be applied; their conditions say why.
    #[error("{failed} of {total} manifests could not be applied")]
    Manifests {
        /// How many.
        failed: usize,
        /// Of how many.
        total: usize,
    },
    /// Objects are still being deleted.
    #[error("{0} objects are still being deleted")]
    StillThere(usize),
    /// The work of a record has vanished; the record goes after this long.
    #[error("its work has vanished; it will be removed in {0:?}")]
    Evicting(Duration),
    /// The work's name is too long to have a record on the spoke.
    #[error(transparent)]
    Name(#[from] crate::api::names::InvalidName),
}

/// What follows from a pass that was not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// It failed: try again, later each time.
    Retry,
    /// It waits for something that a watch will show; look again after this long in case the watch is the problem.
    LookAgain(Duration),
}

impl Error {
    /// What follows from it.
    pub fn disposition(&self) -> Disposition {
        match self {
            Self::Evicting(rest) => Disposition::LookAgain(*rest),
            Self::StillThere(_) => Disposition::LookAgain(Duration::from_secs(2)),
            _ => Disposition::Retry,
        }
    }
}

impl Agent {
    /// An agent that knows nothing yet.
    pub fn new(identity: Identity, hub: Hub, spoke: Cluster, queue: Queue<(), Key>) -> Self {
        Self {
            applied: Api::all(spoke.client().clone()),
            identity,
            hub,
            spoke,
            queue,
            works: Lock::default(),
            applied_works: Lock::default(),
            index: Lock::default(),
            foreign: Lock::default(),
            kinds_changed: Notify::new(),
            evaluator: Evaluator::new(sandbox::Settings::default()),
        }
    }

    /// Who it is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The spoke.
    pub fn spoke(&self) -> &Cluster {
        &self.spoke
    }

    /// The works that have something to do.
    pub fn queue(&self) -> &Queue<(), Key> {
        &self.queue
    }

    /// Rung when a kind is held for the first or released for the last time.
    pub fn kinds_changed(&self) -> &Notify {
        &self.kinds_changed
    }

    /// What has been seen on the spoke.
    pub fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What other hubs' agents hold on the spoke.
    pub fn foreign(&self) -> MutexGuard<'_, Foreign> {
        self.foreign.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The works on the hub.
    pub fn works(&self) -> MutexGuard<'_, Cache<ManifestWork>> {
        self.works.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of a work's record, if it can have one.
    pub fn record_of(&self, work: &str) -> Option<String> {
        work.parse::<WorkName>()
            .ok()
            .map(|work| self.identity.hub.applied_work_name(&work))
    }

    /// Everything there is, to be looked at once.
    pub fn everything(&self) -> Vec<(Key, Wake)> {
        let works = self.works().names().into_iter().map(Key::Work);
        let records = self.applied_works().names().into_iter().map(Key::Record);
        works.chain(records).map(|key| (key, Wake::Now)).collect()
    }

    /// The records on the spoke, by their own name.
    pub fn applied_works(&self) -> MutexGuard<'_, Cache<AppliedManifestWork>> {
        self.applied_works
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// How an object names an AppliedManifestWork as its owner.
pub(super) fn reference(applied_work: &AppliedManifestWork) -> OwnerReference {
    OwnerReference {
        api_version: AppliedManifestWork::api_version(&()).into_owned(),
        kind: AppliedManifestWork::kind(&()).into_owned(),
        name: applied_work.name_any(),
        uid: applied_work.metadata.uid.clone().unwrap_or_default(),
        ..OwnerReference::default()
    }
}

/// Every write of the agent is in its name.
pub(super) fn params() -> PatchParams {
    PatchParams {
        field_manager: Some(AGENT_FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

pub(super) fn hub_error(action: &'static str) -> impl FnOnce(kube::Error) -> Error {
    move |source| Error::Hub {
        action,
        source: Box::new(source),
    }
}

pub(super) fn spoke_error(action: String) -> impl FnOnce(kube::Error) -> Error {
    move |source| Error::Spoke {
        action,
        source: source.into(),
    }
}
