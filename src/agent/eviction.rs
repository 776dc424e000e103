//! What becomes of a record whose work is no longer on the hub.
//!
//! A hub may be restored from a backup, or a cluster moved to another hub: content is not torn down because its work is
//! out of sight, but only when it has been for a while.

use std::time::Duration;

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::{ResourceExt, api::Patch};
use serde_json::json;

use super::state::{Agent, Error, Key, params, spoke_error};
use crate::{api::work::applied::AppliedManifestWork, runtime::queue::Wake};

/// A grace period this long means never.
const NEVER: Duration = Duration::from_hours(100 * 365 * 24);

/// What to do with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eviction {
    /// Nothing.
    Keep,
    /// Its work is back: forget when it vanished.
    Clear,
    /// Its work has vanished: note when.
    Start,
    /// It has vanished not long enough ago.
    Wait(Duration),
    /// It has been gone for the whole grace period.
    Delete,
}

/// Decides about one record.
pub fn eviction(
    has_work: bool,
    started: Option<Timestamp>,
    now: Timestamp,
    grace: Duration,
) -> Eviction {
    match started {
        None if has_work || grace >= NEVER => Eviction::Keep,
        Some(_) if has_work || grace >= NEVER => Eviction::Clear,
        None => Eviction::Start,
        Some(started) => {
            let passed = Duration::try_from(now.duration_since(started)).unwrap_or_default();
            match grace.checked_sub(passed) {
                Some(rest) if !rest.is_zero() => Eviction::Wait(rest),
                _ => Eviction::Delete,
            }
        }
    }
}

impl Agent {
    /// Looks after a record of this agent that may have lost its work.
    pub(super) async fn look_after(&self, name: &str) -> Result<(), Error> {
        let Some(record) = self.applied_works().get(name) else {
            return Ok(());
        };
        if record.spec.agent_id.as_deref() != Some(&self.identity.agent_id) {
            return Ok(());
        }
        let work = &record.spec.manifest_work_name;
        let is_of_this_hub = record.spec.hub_hash == self.identity.hub.to_string();
        if record.metadata.deletion_timestamp.is_some() {
            if is_of_this_hub {
                // Two turns, one on the work and one on its record, would delete everything twice.
                let work = Key::Work(work.clone());
                self.queue.add((), work, Wake::Now).await;
                return Ok(());
            }
            return self.clean(work, &record).await.map(drop);
        }
        let has_work = is_of_this_hub && self.works().get(work).is_some();
        let started = record
            .status
            .as_ref()
            .and_then(|status| status.eviction_start_time.as_ref());
        match eviction(
            has_work,
            started.map(|time| time.0),
            Timestamp::now(),
            self.identity.eviction_grace,
        ) {
            Eviction::Keep => Ok(()),
            Eviction::Clear => self.set_eviction_start(&record, None).await,
            Eviction::Start => {
                self.set_eviction_start(&record, Some(Time(Timestamp::now())))
                    .await?;
                Err(Error::Evicting(self.identity.eviction_grace))
            }
            Eviction::Wait(rest) => Err(Error::Evicting(rest)),
            Eviction::Delete => self.delete_record(&record).await.map(drop),
        }
    }

    async fn set_eviction_start(
        &self,
        record: &AppliedManifestWork,
        time: Option<Time>,
    ) -> Result<(), Error> {
        let name = record.name_any();
        let patch = json!({"status": {"evictionStartTime": time}});
        let answer = self
            .applied
            .patch_status(&name, &params(), &Patch::Merge(patch))
            .await;
        self.applied_works()
            .put(answer.map_err(spoke_error(format!("write AppliedManifestWork {name}")))?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_outlives_its_work_by_the_grace_period() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let hour = Duration::from_hours(1);
        let table = [
            (true, None, hour, Eviction::Keep),
            (true, Some(at(0)), hour, Eviction::Clear),
            (false, None, hour, Eviction::Start),
            (
                false,
                Some(at(0)),
                hour,
                Eviction::Wait(Duration::from_mins(50)),
            ),
            (false, Some(at(-3000)), hour, Eviction::Delete),
            (false, None, NEVER, Eviction::Keep),
            (false, Some(at(-3000)), NEVER, Eviction::Clear),
            (false, None, Duration::ZERO, Eviction::Start),
            (false, Some(at(600)), Duration::ZERO, Eviction::Delete),
            // A clock that was set back must not evict at once.
            (false, Some(at(900)), hour, Eviction::Wait(hour)),
        ];
        for (number, (has_work, started, grace, expected)) in table.into_iter().enumerate() {
            assert_eq!(
                eviction(has_work, started, at(600), grace),
                expected,
                "row {number}"
            );
        }
    }
}
