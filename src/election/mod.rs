//! One leader among replicas: whoever's name is in a Lease.
//!
//! It speaks client-go's dialect of leader election, so that a replica of ours and one of Open Cluster Management's
//! agent stand for the same lease. What to do next is decided in `decide.rs`, which knows no clock and no network;
//! `candidate.rs` carries it out. docs/adr/0004 says why no crate does this for us.
//!
//! This room knows nothing of works, hubs or what a leader does. It is to be told when to stop after those who act on
//! its word have stopped: then it releases the lease, and a successor leads at once.

mod candidate;
mod decide;

use kube::Client;
use tokio::sync::watch;

pub use decide::Rhythm;

use crate::runtime::tasks::Tasks;

/// Which lease, and in whose name.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The namespace of the lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// This replica, among all that ever were.
    pub identity: String,
    /// The field manager of its writes.
    pub field_manager: String,
    /// How often, and for how long.
    pub rhythm: Rhythm,
}

/// Why a replica cannot stand for election.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no place for the lease.
    #[error("there is no namespace {namespace} for the lease {name}")]
    NoNamespace {
        /// Where it would be.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// The lease is out of reach.
    #[error("may not use the lease {name} in namespace {namespace}")]
    Forbidden {
        /// Where it is.
        namespace: String,
        /// Its name.
        name: String,
        /// What the server says.
        source: Box<kube::Error>,
    },
}

/// Whether this replica leads.
#[derive(Debug, Clone)]
pub struct Leadership(watch::Receiver<Standing>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Waiting,
    Leading,
    /// Final: whoever wants to lead again starts over, as after a restart.
    Lost,
}

/// Starts to stand for election. Start it before those who act on its word, so that it is stopped after them.
pub fn start(tasks: &mut Tasks, client: Client, settings: Settings) -> Leadership {
    let (standing, leadership) = watch::channel(Standing::Waiting);
    let candidate = candidate::Candidate::new(client, settings, standing);
    tasks.spawn("election", |stop| candidate.run(stop));
    Leadership(leadership)
}

impl Leadership {
    /// For the only replica there is: it leads, and never loses.
    pub fn undisputed() -> Self {
        Self(watch::channel(Standing::Leading).1)
    }

    /// Waits until this replica leads. A replica that has lost never leads again.
    pub async fn won(&mut self) {
        self.reaches(Standing::Leading).await;
    }

    /// Waits until this replica no longer leads.
    pub async fn lost(&mut self) {
        self.reaches(Standing::Lost).await;
    }

    async fn reaches(&mut self, wanted: Standing) {
        let is_over = self
            .0
            .wait_for(|standing| *standing == wanted)
            .await
            .is_err();
        if is_over {
            // The candidate has ended, so nothing will change any more.
            std::future::pending::<()>().await;
        }
    }
}
