//! The agent's state, and why a pass may end early.

use std::{
    sync::{MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Api, Resource, ResourceExt, api::PatchParams};
use tokio::{sync::Notify, time::Instant};

use super::{
    announce::publish::Announcer, cache::Cache, executor::Executors, foreign::Foreign,
    index::Index, listings::Listings, report::Hub, turns::Turns, unwritten::Next,
};
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
    telemetry::{label::Outcome, metrics::AgentMetrics},
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
    pub(super) executors: Executors,
    pub(super) metrics: AgentMetrics,
    pub(super) announcer: Announcer,
    turns: Lock<Turns>,
    listings: Lock<Listings>,
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
        /// When the work is tried again.
        next: Next,
    },
    /// Objects are still being deleted.
    #[error("{0} objects are still being deleted")]
    StillThere(usize),
    /// The work of a record has vanished; the record goes after this long.
    #[error("its work has vanished; it will be removed in {0:?}")]
    Evicting(Duration),
    /// The pass panicked; the log has what it said.
    #[error("the pass panicked: this is a fault of gitspoke, please report it with the log")]
    Panicked,
    /// The work as a whole cannot be served; its status says why.
    #[error("the work cannot be served as it is; its status says why")]
    Unservable,
}

/// What follows from a pass that was not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// It failed: try again, later each time.
    Retry,
    /// It waits for something that a watch will show; look again after this long in case the watch is the problem.
    LookAgain(Duration),
    /// It can only end the same way until it is changed.
    Rest,
}

impl Error {
    /// What follows from it.
    pub fn disposition(&self) -> Disposition {
        match self {
            Self::Evicting(rest) => Disposition::LookAgain(*rest),
            Self::StillThere(_) => Disposition::LookAgain(Duration::from_secs(2)),
            Self::Unservable => Disposition::Rest,
            Self::Manifests { next, .. } => match next {
                Next::Retry => Disposition::Retry,
                Next::Later(delay) => Disposition::LookAgain(*delay),
                Next::Never => Disposition::Rest,
            },
            _ => Disposition::Retry,
        }
    }
}

/// How a pass ended, to those who count.
pub(super) fn outcome(ended: &Result<(), Error>) -> Outcome {
    match ended {
        Ok(()) => Outcome::Done,
        Err(Error::StillThere(_) | Error::Evicting(_)) => Outcome::Waiting,
        Err(Error::Manifests { .. }) => Outcome::ManifestsFailed,
        Err(Error::Hub { .. }) => Outcome::HubFailed,
        Err(Error::Spoke { .. }) => Outcome::SpokeFailed,
        Err(Error::Unservable) => Outcome::Unservable,
        Err(Error::Panicked) => Outcome::Panicked,
    }
}

impl Agent {
    /// An agent that knows nothing yet.
    pub fn new(
        identity: Identity,
        hub: Hub,
        spoke: Cluster,
        queue: Queue<(), Key>,
        metrics: AgentMetrics,
        announcer: Announcer,
    ) -> Self {
        let evaluation = sandbox::Settings {
            metrics: metrics.expressions.clone(),
            ..sandbox::Settings::default()
        };
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
            evaluator: Evaluator::new(evaluation),
            executors: Executors::default(),
            metrics,
            announcer,
            turns: Lock::default(),
            listings: Lock::default(),
        }
    }

    /// The passes under way.
    pub fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the pass over a work, or over its record, has come a step further.
    pub(super) fn step(&self, work: &str) {
        let now = Instant::now();
        let mut turns = self.turns();
        turns.step(&Key::Work(work.to_owned()), now);
        if let Some(record) = self.record_of(work) {
            turns.step(&Key::Record(record), now);
        }
    }

    /// What has been listed since the start.
    pub fn listings(&self) -> MutexGuard<'_, Listings> {
        self.listings.lock().unwrap_or_else(PoisonError::into_inner)
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
