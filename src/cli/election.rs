//! Flags about who leads among replicas of an agent.

use std::{fs, time::Duration};

use clap::Args;

use super::{duration::duration, failure::Failure};
use crate::{
    api::wellknown::AGENT_FIELD_MANAGER,
    election::{self, Rhythm},
};

/// The lease that Open Cluster Management's work agent stands for too.
const LEASE: &str = "work-agent-lock";

/// Where a Pod finds the namespace it runs in.
const OWN_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Where Open Cluster Management runs its agents.
const USUAL_NAMESPACE: &str = "open-cluster-management-agent";

/// What was typed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Leader election")]
pub(super) struct Election {
    /// Namespace on the spoke that holds the lease `work-agent-lock`; without it, the one this process runs in, or else
    /// open-cluster-management-agent.
    #[arg(long, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// Write without being elected. Then there must be only one agent of this cluster.
    #[arg(long = "disable-leader-election", num_args = 0..=1, require_equals = true, default_value_t = false,
        default_missing_value = "true", value_name = "BOOL")]
    is_disabled: bool,

    /// How long others wait before they take the lease of a leader that has gone silent.
    ///
    /// A leader that ends releases it, so this is the price of a crash alone. OCM's agent has 137s, because it reads and
    /// writes the lease in turn and rarely; here others see a release by a watch, and a renewal is one write.
    #[arg(long = "leader-election-lease-duration", default_value = "15s", value_name = "DURATION", value_parser = duration)]
    lease_duration: Duration,

    /// How long a leader that cannot renew the lease goes on; shorter than the lease, so that two never write at once.
    #[arg(long = "leader-election-renew-deadline", default_value = "10s", value_name = "DURATION", value_parser = duration)]
    renew_deadline: Duration,

    /// Time between two renewals; three of them fit into the deadline.
    #[arg(long = "leader-election-retry-period", default_value = "3s", value_name = "DURATION", value_parser = duration)]
    retry_period: Duration,
}

impl Election {
    /// What was typed, checked; `None` when there is nothing to elect.
    pub(super) fn settings(&self) -> Result<Option<election::Settings>, Failure> {
        if self.is_disabled {
            return Ok(None);
        }
        let rhythm = self.rhythm()?;
        let identity = identity();
        Ok(Some(election::Settings {
            namespace: self.namespace.clone().unwrap_or_else(own_namespace),
            name: LEASE.to_owned(),
            field_manager: format!("{AGENT_FIELD_MANAGER}-{identity}"),
            identity,
            rhythm,
        }))
    }

    /// As client-go demands, for the same reasons.
    fn rhythm(&self) -> Result<Rhythm, Failure> {
        let rhythm = Rhythm {
            lease: self.lease_duration,
            renew_deadline: self.renew_deadline,
            retry: self.retry_period,
        };
        if rhythm.retry.is_zero() {
            return Err(Failure::usage("--leader-election-retry-period is zero")
                .hint("give a time such as 3s"));
        }
        if rhythm.lease <= rhythm.renew_deadline || rhythm.renew_deadline <= rhythm.retry {
            let text = format!(
                "a lease of {:?} with a deadline of {:?} for renewals every {:?} cannot be kept",
                rhythm.lease, rhythm.renew_deadline, rhythm.retry
            );
            return Err(Failure::usage(text).hint(
                "the lease must be longer than the renew deadline, and that longer than the retry period",
            ));
        }
        Ok(rhythm)
    }
}

/// This replica, among all that ever were: two processes on one machine, and one that was restarted, differ.
fn identity() -> String {
    let host = rustix::system::uname();
    let suffix: String = std::iter::repeat_with(fastrand::alphanumeric)
        .take(8)
        .collect();
    format!("{}-{suffix}", host.nodename().to_string_lossy()).to_lowercase()
}

fn own_namespace() -> String {
    let own = fs::read_to_string(OWN_NAMESPACE).unwrap_or_default();
    match own.trim() {
        "" => USUAL_NAMESPACE.to_owned(),
        own => own.to_owned(),
    }
}
