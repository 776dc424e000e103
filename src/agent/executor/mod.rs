//! The executor of a work: a service account of the spoke whose rights decide what the work may write.
//!
//! Before each manifest the spoke is asked whether the account might write it itself (`question`, `ask`). The write
//! is still the agent's: the account is checked, not used, and nothing is asked before a deletion. Answers are
//! remembered (`answers`) until a role or binding changes (`changes`, `follow`), so that a pass which finds nothing
//! new asks nothing.
//!
//! Start reading at `Agent::permit`.

mod account;
mod answers;
mod ask;
mod changes;
pub mod follow;
mod overview;
mod question;

use std::{
    sync::{MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::Value;
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use self::{
    account::Account,
    answers::{Answer, Answers},
    overview::Sight,
    question::{Denial, Question, Target},
};
use super::{
    body::{Circumstances, body},
    desired::Desired,
    state::Agent,
    unwritten::Unwritten,
};
use crate::api::{digest::Digest, work::spec::ManifestWork};

/// How long a denied work waits, unless a change of rights wakes it earlier.
pub(super) const LOOKED_AT_AGAIN: Duration = answers::UNWATCHED;

/// How long a question may wait for the watches. They give up waiting for themselves earlier.
const WATCHES: Duration = Duration::from_secs(5);

#[expect(
    clippy::disallowed_types,
    reason = "passes and the watches share it; held for map operations, never across an await"
)]
type Lock<T> = std::sync::Mutex<T>;

/// What is known about the executors of all works.
pub struct Executors {
    answers: Lock<Answers>,
    /// Rung by a question when nobody watches for changes of rights.
    wanted: Notify,
    sight: watch::Sender<Sight>,
}

impl Default for Executors {
    fn default() -> Self {
        Self {
            answers: Lock::default(),
            wanted: Notify::new(),
            sight: watch::Sender::new(Sight::Starting),
        }
    }
}

impl Executors {
    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sight(&self) -> Sight {
        *self.sight.borrow()
    }

    /// Sets what the watches are good for. Returns whether that is news.
    fn see(&self, sight: Sight) -> bool {
        self.sight
            .send_if_modified(|known| std::mem::replace(known, sight) != sight)
    }

    /// Whether changes of rights are seen. Waits a little for watches that have only just begun.
    async fn is_watched(&self) -> bool {
        if self.sight() == Sight::Starting {
            self.wanted.notify_one();
            let mut sight = self.sight.subscribe();
            let begun = sight.wait_for(|sight| *sight != Sight::Starting);
            if tokio::time::timeout(WATCHES, begun).await.is_err() {
                return false;
            }
        }
        self.sight() == Sight::Complete
    }
}

impl Agent {
    /// Refuses a manifest that the work's executor might not write itself.
    pub(super) async fn permit(
        &self,
        work: &ManifestWork,
        desired: &Desired<'_>,
    ) -> Result<(), Unwritten> {
        let Some(executor) = &work.spec.executor else {
            return Ok(());
        };
        let account = Account::of(executor);
        let account = account.map_err(|error| Unwritten::NoExecutor(error.to_string()))?;
        let target = Target::of(desired);
        let write = Question::Write {
            account: account.clone(),
            with_delete: target.is_deleted_with(work.spec.delete_option.as_ref()),
            target: target.clone(),
        };
        self.permit_one(&write, Denial::Write, desired, &Value::Null)
            .await?;
        if !target.grants_rights() {
            return Ok(());
        }
        // What is tried is what will be written, but for the owners: they give nobody any rights.
        let circumstances = Circumstances {
            is_namespaced: desired.kind.is_namespaced,
            keeps_owners: false,
            owners: &[],
            live_finalizers: None,
        };
        let body = body(desired.manifest, &circumstances)?;
        let grant = Question::Grant {
            account,
            target,
            body: Digest::of_json(&body),
        };
        self.permit_one(&grant, Denial::Escalation, desired, &body)
            .await
    }

    /// Answers one question from memory, or asks.
    async fn permit_one(
        &self,
        question: &Question,
        denial: Denial,
        desired: &Desired<'_>,
        body: &Value,
    ) -> Result<(), Unwritten> {
        let is_watched = self.executors.is_watched().await;
        let place = self
            .executors
            .answers()
            .place(question, Instant::now(), is_watched);
        let answer = place
            .get_or_try_init(|| ask::ask(self.spoke.client(), question, &desired.kind, body))
            .await;
        match answer {
            Ok(Answer::Allowed) => Ok(()),
            Ok(Answer::Denied) => Err(Unwritten::NotAllowed(Target::of(desired).denied(denial))),
            Err(error) => Err(Unwritten::NoExecutor(format!(
                "could not check the rights of the executor: {error}"
            ))),
        }
    }
}
