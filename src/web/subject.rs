//! Whom the endpoints tell about: an agent that may not have started yet.

use std::sync::{
    Arc, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use tokio::time::Instant;

use super::health::Facts;
use crate::{agent::state::Agent, telemetry::metrics::Metrics};

#[expect(
    clippy::disallowed_types,
    reason = "an agent may begin anew while its endpoints are asked; held to read or replace a pointer"
)]
type Lock<T> = std::sync::Mutex<T>;

/// The process as its endpoints see it. Clones are one.
#[derive(Clone)]
pub struct Subject(Arc<Shared>);

struct Shared {
    metrics: Metrics,
    agent: Lock<Option<Arc<Agent>>>,
    /// Whether this replica writes, or waits for another to end.
    is_leading: AtomicBool,
}

impl Subject {
    /// A process whose agent has not started. It leads until somebody says otherwise.
    pub fn new(metrics: Metrics) -> Self {
        Self(Arc::new(Shared {
            metrics,
            agent: Lock::default(),
            is_leading: AtomicBool::new(true),
        }))
    }

    /// An agent has started, the first or one in the place of another.
    pub fn started(&self, agent: Arc<Agent>) {
        let mut place = self.0.agent.lock().unwrap_or_else(PoisonError::into_inner);
        *place = Some(agent);
    }

    /// This replica leads, or does not any more.
    pub fn set_leading(&self, is_leading: bool) {
        self.0.is_leading.store(is_leading, Ordering::Relaxed);
    }

    pub(super) fn is_leading(&self) -> bool {
        self.0.is_leading.load(Ordering::Relaxed)
    }

    pub(super) fn agent(&self) -> Option<Arc<Agent>> {
        let place = self.0.agent.lock().unwrap_or_else(PoisonError::into_inner);
        place.clone()
    }

    /// What health is decided by, at this moment.
    pub(super) fn facts(&self) -> Facts {
        let agent = self.agent();
        Facts {
            is_leading: self.is_leading(),
            listings: agent.as_ref().map(|agent| agent.listings().clone()),
            stuck: agent
                .map(|agent| agent.turns().stuck(Instant::now()))
                .unwrap_or_default(),
            since_followed: [
                ("hub", self.0.metrics.hub.since_followed()),
                ("spoke", self.0.metrics.spoke.since_followed()),
            ],
        }
    }
}
