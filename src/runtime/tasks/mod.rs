//! Named background tasks that end in order.

#[cfg(test)]
mod tests;

use std::any::Any;
use std::io;
use std::pin::pin;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// How long [`Tasks`] may take to end, unless told otherwise. Kubernetes kills after 30 s.
pub const GRACE: Duration = Duration::from_secs(5);

/// Why the tasks did not end well.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A task panicked.
    #[error("task {name} panicked: {message}; this is a bug, please report it")]
    Panicked {
        /// The name it was spawned with.
        name: String,
        /// What it panicked with.
        message: String,
    },
    /// A task returned an error.
    #[error("task {name} failed")]
    Failed {
        /// The name it was spawned with.
        name: String,
        /// What it returned.
        source: Failure,
    },
    /// Tasks were told to stop and did not.
    #[error("aborted because they did not stop in time: {}", names.join(", "))]
    Overran {
        /// The names they were spawned with, in the order they were told to stop.
        names: Vec<String>,
    },
}

/// What a task may return.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Runs the program's main future on all cores, and returns as soon as it resolves.
///
/// Dropping a runtime waits for its blocked threads, however long a stuck file system or Git remote keeps them; a
/// program that was told to end must not.
pub fn block_on<T>(main: impl Future<Output = T>) -> io::Result<T> {
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(main);
    runtime.shutdown_background();
    Ok(result)
}

/// Background tasks. Dropping it aborts them.
pub struct Tasks {
    set: JoinSet<Result<(), Failure>>,
    /// Those that have not ended, in the order they were started.
    running: Vec<Running>,
    grace: Duration,
}

struct Running {
    id: Id,
    name: String,
    stop: CancellationToken,
    abort: AbortHandle,
}

impl Default for Tasks {
    fn default() -> Self {
        Self::new(GRACE)
    }
}

impl Tasks {
    /// Returns an empty set of tasks, which will take at most `grace` to end together.
    pub fn new(grace: Duration) -> Self {
        Self {
            set: JoinSet::new(),
            running: Vec::new(),
            grace,
        }
    }

    /// Starts a task. It is asked to stop through the token it is given, and may end before that.
    ///
    /// Must be called on a tokio runtime. Start what others rely on first: it will be stopped last.
    pub fn spawn<F, E>(
        &mut self,
        name: impl Into<String>,
        task: impl FnOnce(CancellationToken) -> F,
    ) where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Failure>,
    {
        let name = name.into();
        let stop = CancellationToken::new();
        let span = tracing::info_span!("task", name);
        let task = task(stop.clone());
        let abort = self
            .set
            .spawn(async { task.await.map_err(Into::into) }.instrument(span));
        self.running.push(Running {
            id: abort.id(),
            name,
            stop,
            abort,
        });
    }

    /// Runs until asked to stop, until a task panics or fails, or until all have ended; then stops those left, one
    /// after another, the last started first.
    ///
    /// `asked` is awaited for the request to stop, and once more while stopping: its second answer cuts the grace
    /// short.
    ///
    /// A task may take half of the grace that is left to stop, then it is aborted. So however many tasks there are, all
    /// together take less than the whole, and one that hangs leaves time for the others: with 5 s, the first may take
    /// 2.5 s and, if it did, the second 1.25 s.
    ///
    /// The error is the first failure; what fails after it is logged.
    pub async fn run(mut self, mut asked: impl AsyncFnMut()) -> Result<(), Error> {
        let cause = {
            let mut asked = pin!(asked());
            loop {
                tokio::select! {
                    () = &mut asked => break Ok(()),
                    ended = self.ended() => match ended {
                        Some(Ok(())) => {}
                        Some(Err(error)) => break Err(error),
                        None => return Ok(()),
                    },
                }
            }
        };
        let stopped = self.stop(asked()).await;
        match (cause, stopped) {
            (Err(error), Err(later)) => {
                log(&later);
                Err(error)
            }
            (cause, stopped) => cause.and(stopped),
        }
    }

    async fn stop(&mut self, hurry: impl Future<Output = ()>) -> Result<(), Error> {
        let mut hurry = pin!(hurry);
        let mut hurried = false;
        let deadline = Instant::now() + self.grace;
        let mut failure = None;
        let mut overran = Vec::new();
        while let Some(last) = self.running.last() {
            last.stop.cancel();
            let id = last.id;
            let left = deadline.saturating_duration_since(Instant::now());
            let limit = Instant::now() + left / 2;
            while !hurried && self.is_running(id) {
                tokio::select! {
                    ended = timeout_at(limit, self.ended()) => match ended {
                        Ok(Some(Err(error))) => keep_first(&mut failure, error),
                        Ok(_) => {}
                        Err(_) => break,
                    },
                    () = &mut hurry => hurried = true,
                }
            }
            if self.is_running(id)
                && let Some(last) = self.running.pop()
            {
                last.abort.abort();
                overran.push(last.name);
            }
        }
        if !overran.is_empty() {
            keep_first(&mut failure, Error::Overran { names: overran });
        }
        failure.map_or(Ok(()), Err)
    }

    fn is_running(&self, id: Id) -> bool {
        self.running.iter().any(|task| task.id == id)
    }

    /// Waits for the next task to end. Returns `None` when none is left.
    async fn ended(&mut self) -> Option<Result<(), Error>> {
        loop {
            let joined = self.set.join_next_with_id().await?;
            let id = joined.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
            // One that was aborted is no longer known, and has been accounted for.
            if let Some(position) = self.running.iter().position(|task| task.id == id) {
                let name = self.running.remove(position).name;
                return Some(outcome(name, joined.map(|(_, result)| result)));
            }
        }
    }
}

fn outcome(name: String, joined: Result<Result<(), Failure>, JoinError>) -> Result<(), Error> {
    match joined {
        Ok(Ok(())) => Ok(()),
        Ok(Err(source)) => Err(Error::Failed { name, source }),
        Err(error) => Err(Error::Panicked {
            name,
            message: panic_message(error),
        }),
    }
}

fn panic_message(error: JoinError) -> String {
    let payload = match error.try_into_panic() {
        Ok(payload) => payload,
        Err(error) => return error.to_string(),
    };
    let payload: &(dyn Any + Send) = &*payload;
    payload
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "(no message)".to_owned())
}

fn keep_first(first: &mut Option<Error>, error: Error) {
    if first.is_some() {
        log(&error);
    } else {
        *first = Some(error);
    }
}

fn log(error: &impl std::error::Error) {
    let source = error.source().map(tracing::field::display);
    tracing::error!(source, "{error}");
}
