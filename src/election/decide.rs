//! Whose lease it is, and what a candidate does next. Pure: time is passed in.
//!
//! The rules are client-go's, whose leases these are too. Above all: clocks of different machines are never compared. A
//! claim lasts from the moment this process first saw it, by this process' own clock.

use std::time::Duration;

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::Timestamp,
};

/// How often, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rhythm {
    /// How long others wait before they take the lease of a leader that has gone silent.
    pub lease: Duration,
    /// How long a leader that cannot renew its lease goes on leading.
    pub renew_deadline: Duration,
    /// Time between two renewals, and between two attempts at anything that failed.
    pub retry: Duration,
}

/// What is known of the lease, on the clock of this process.
#[derive(Debug, Default)]
pub(super) struct Known {
    lease: Option<Lease>,
    /// When the claim in it was first seen.
    since: Duration,
    /// When our last renewal began, while the lease is ours.
    renewed: Option<Duration>,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Write the lease in our name.
    Write,
    /// Nothing for this long, unless the lease changes.
    Wait(Duration),
}

impl Known {
    /// Takes in what the server shows; what is older than what is known is old news.
    pub(super) fn see(&mut self, lease: Option<Lease>, me: &str, now: Duration) {
        let is_old = lease
            .as_ref()
            .is_some_and(|lease| version(lease) < self.lease.as_ref().map_or(0, version));
        if is_old {
            return;
        }
        if claim(lease.as_ref()) != claim(self.lease.as_ref()) {
            self.since = now;
        }
        if holder(lease.as_ref()) != me {
            self.renewed = None;
        }
        self.lease = lease;
    }

    /// Takes in the answer to our own write, which began at `began`: others count from later on, never from earlier.
    pub(super) fn written(&mut self, lease: Lease, began: Duration) {
        self.lease = Some(lease);
        self.since = began;
        self.renewed = Some(began);
    }

    /// Whether this process may act as the leader.
    pub(super) fn is_leading(&self, rhythm: &Rhythm, now: Duration) -> bool {
        self.left(rhythm, now).is_some()
    }

    /// How long this process may go on leading without another renewal.
    pub(super) fn left(&self, rhythm: &Rhythm, now: Duration) -> Option<Duration> {
        let end = self.renewed? + rhythm.renew_deadline;
        end.checked_sub(now).filter(|left| !left.is_zero())
    }

    /// Decides what to do next.
    pub(super) fn step(&self, rhythm: &Rhythm, me: &str, now: Duration) -> Step {
        let holder = holder(self.lease.as_ref());
        let due = match self.renewed {
            Some(renewed) => renewed + rhythm.retry,
            // Nobody holds it, or we did and were restarted before we could release it.
            None if holder.is_empty() || holder == me => now,
            None => self.since + lasts(self.lease.as_ref()),
        };
        match due.checked_sub(now) {
            Some(rest) if !rest.is_zero() => Step::Wait(rest),
            _ => Step::Write,
        }
    }

    /// Who else holds the lease.
    pub(super) fn rival(&self, me: &str) -> Option<&str> {
        Some(holder(self.lease.as_ref())).filter(|holder| !holder.is_empty() && *holder != me)
    }

    /// Whether there is a lease to replace.
    pub(super) fn exists(&self) -> bool {
        self.lease.is_some()
    }

    /// The lease as it is to be written in our name.
    pub(super) fn taken(&self, rhythm: &Rhythm, me: &str, time: Timestamp) -> Lease {
        let mut lease = self.lease.clone().unwrap_or_default();
        let was_ours = holder(Some(&lease)) == me;
        let spec = lease.spec.get_or_insert_default();
        if !was_ours {
            spec.acquire_time = Some(MicroTime(time));
            let transitions = spec.lease_transitions.unwrap_or(0);
            spec.lease_transitions = Some(transitions + i32::from(self.lease.is_some()));
        }
        spec.holder_identity = Some(me.to_owned());
        spec.renew_time = Some(MicroTime(time));
        spec.lease_duration_seconds = Some(whole_seconds(rhythm.lease));
        lease
    }

    /// The lease as a leader leaves it, if it is ours: held by nobody, which every other candidate takes at once.
    pub(super) fn released(&self, me: &str, time: Timestamp) -> Option<Lease> {
        let mut lease = self
            .lease
            .clone()
            .filter(|lease| holder(Some(lease)) == me)?;
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        spec.renew_time = Some(MicroTime(time));
        spec.acquire_time = Some(MicroTime(time));
        Some(lease)
    }
}

/// What makes one claim differ from another.
fn claim(lease: Option<&Lease>) -> Option<&LeaseSpec> {
    lease?.spec.as_ref()
}

fn holder(lease: Option<&Lease>) -> &str {
    claim(lease)
        .and_then(|spec| spec.holder_identity.as_deref())
        .unwrap_or_default()
}

fn lasts(lease: Option<&Lease>) -> Duration {
    let seconds = claim(lease).and_then(|spec| spec.lease_duration_seconds);
    Duration::from_secs(seconds.unwrap_or(0).try_into().unwrap_or(0))
}

fn version(lease: &Lease) -> u64 {
    let version = lease.metadata.resource_version.as_deref();
    version
        .and_then(|version| version.parse().ok())
        .unwrap_or(0)
}

/// The API knows whole seconds, and at least one. Rounded up: others may wait longer, never shorter.
fn whole_seconds(duration: Duration) -> i32 {
    let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    i32::try_from(seconds.max(1)).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: &str = "me";
    const RHYTHM: Rhythm = Rhythm {
        lease: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry: Duration::from_secs(3),
    };

    fn lease(version: u32, holder: &str, seconds: i32, renewed: i64) -> Lease {
        serde_json::from_value(serde_json::json!({
            "metadata": {"name": "work-agent-lock", "resourceVersion": version.to_string()},
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": seconds,
                "renewTime": Timestamp::from_second(renewed).unwrap().to_string(),
                "leaseTransitions": 4,
            },
        }))
        .unwrap()
    }

    fn at(second: u64) -> Duration {
        Duration::from_secs(second)
    }

    #[test]
    fn a_lease_is_taken_when_nobody_holds_it_or_its_time_is_over() {
        let wait = |seconds| Step::Wait(at(seconds));
        // What was seen when, and what follows at second 100.
        let table = [
            (None, 99, Step::Write),
            (Some(lease(1, "", 1, 0)), 99, Step::Write),
            (Some(lease(1, ME, 15, 0)), 99, Step::Write),
            (Some(lease(1, "ocm", 137, 0)), 99, wait(136)),
            (Some(lease(1, "ocm", 137, 0)), 0, wait(37)),
            (Some(lease(1, "other", 15, 0)), 86, wait(1)),
            (Some(lease(1, "other", 15, 0)), 85, Step::Write),
            (Some(Lease::default()), 99, Step::Write),
        ];
        for (number, (lease, seen, expected)) in table.into_iter().enumerate() {
            let mut known = Known::default();
            known.see(lease, ME, at(seen));
            assert_eq!(known.step(&RHYTHM, ME, at(100)), expected, "row {number}");
            assert!(!known.is_leading(&RHYTHM, at(100)), "row {number}");
        }
    }

    /// A holder whose clock is wrong by hours still holds.
    #[test]
    fn a_claim_counts_from_when_it_was_seen_whatever_its_times_say() {
        let mut known = Known::default();
        known.see(Some(lease(1, "other", 15, -9_000)), ME, at(10));
        known.see(Some(lease(2, "other", 15, -8_990)), ME, at(20));
        assert_eq!(
            known.step(&RHYTHM, ME, at(30)),
            Step::Wait(Duration::from_secs(5))
        );
        // The same claim again, from a watch that began anew, is no sign of life.
        known.see(Some(lease(2, "other", 15, -8_990)), ME, at(34));
        assert_eq!(known.step(&RHYTHM, ME, at(35)), Step::Write);
    }

    #[test]
    fn a_leader_renews_and_stops_when_it_cannot_or_is_deposed() {
        let mut known = Known::default();
        known.written(lease(5, ME, 15, 0), at(10));
        assert_eq!(known.step(&RHYTHM, ME, at(11)), Step::Wait(at(2)));
        assert_eq!(known.step(&RHYTHM, ME, at(13)), Step::Write);
        assert_eq!(known.left(&RHYTHM, at(19)), Some(at(1)));
        assert!(!known.is_leading(&RHYTHM, at(20)));
        // A watch that lags behind our own writes changes nothing.
        known.see(Some(lease(4, "other", 15, 0)), ME, at(12));
        assert!(known.is_leading(&RHYTHM, at(12)));
        known.see(Some(lease(6, "other", 15, 0)), ME, at(12));
        assert!(!known.is_leading(&RHYTHM, at(12)));
        known.see(None, ME, at(12));
        assert!(!known.is_leading(&RHYTHM, at(12)));
    }

    #[test]
    fn a_lease_is_written_as_client_go_writes_it() {
        let now = Timestamp::from_second(1_000).unwrap();
        let spec = |lease: Lease| serde_json::to_value(lease.spec).unwrap();
        let mut known = Known::default();
        let first = spec(known.taken(&RHYTHM, ME, now));
        assert_eq!(
            (&first["holderIdentity"], &first["leaseTransitions"]),
            (&ME.into(), &0.into())
        );
        known.see(Some(lease(1, "ocm", 137, 0)), ME, at(0));
        assert!(known.released(ME, now).is_none());
        let taken = known.taken(&RHYTHM, ME, now);
        assert_eq!(taken.metadata.resource_version.as_deref(), Some("1"));
        assert_eq!(spec(taken.clone())["leaseTransitions"], 5);
        assert_eq!(spec(taken.clone())["leaseDurationSeconds"], 15);
        known.written(taken, at(0));
        let renewed = spec(known.taken(&RHYTHM, ME, now));
        assert_eq!(renewed["leaseTransitions"], 5);
        let released = spec(known.released(ME, now).unwrap());
        assert_eq!(
            (&released["holderIdentity"], &released["leaseTransitions"]),
            (&"".into(), &5.into())
        );
    }

    #[test]
    fn half_seconds_are_rounded_up() {
        for (millis, seconds) in [(1, 1), (1_000, 1), (1_001, 2), (0, 1)] {
            assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds);
        }
    }
}
