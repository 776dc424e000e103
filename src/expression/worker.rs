//! A child process as its parent sees it.

use std::{
    io,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::Signal;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

use super::protocol::{self, Answer};

/// A child on a busy machine may take a while to start; its expressions are not to blame.
const START: Duration = Duration::from_secs(10);

/// A child that has grown beyond this is not kept: what was freed inside it stays its own.
const KEEP_BELOW: u64 = 64 << 20;

/// A child process; killed when dropped.
#[derive(Debug)]
pub(super) struct Worker {
    child: Child,
    questions: ChildStdin,
    answers: ChildStdout,
}

/// Why a question has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// It took too long.
    Time,
    /// It took too much memory, or nested too deeply.
    Memory,
    /// The child ended for another reason.
    Fault,
}

impl Worker {
    /// Starts a child, and waits until it has limited itself.
    pub(super) async fn start(executable: &Path) -> io::Result<Self> {
        let mut child = Command::new(executable)
            .arg("evaluate-expressions")
            // jq can read the environment, where an agent may have secrets.
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let piped = child.stdin.take().zip(child.stdout.take());
        let (questions, answers) = piped.expect("both were asked for");
        let mut worker = Self {
            child,
            questions,
            answers,
        };
        match timeout(START, worker.answer()).await?? {
            Answer::Ready => Ok(worker),
            _ => Err(io::Error::other("the child is another program")),
        }
    }

    pub(super) async fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.questions.write_all(frame).await?;
        self.questions.flush().await
    }

    /// Waits for the next answer.
    pub(super) async fn answer(&mut self) -> io::Result<Answer> {
        let mut prefix = [0; protocol::PREFIX];
        self.answers.read_exact(&mut prefix).await?;
        let mut frame = vec![0; protocol::length(prefix)?];
        self.answers.read_exact(&mut frame).await?;
        Ok(serde_json::from_slice(&frame)?)
    }

    /// Whether it may serve another request.
    pub(super) fn is_worth_keeping(&self) -> bool {
        const PAGE: u64 = 4096;
        let Some(id) = self.child.id() else {
            return false;
        };
        let pages = std::fs::read_to_string(format!("/proc/{id}/statm"))
            .ok()
            .and_then(|statm| statm.split(' ').nth(1)?.parse::<u64>().ok());
        pages.is_some_and(|pages| pages * PAGE < KEEP_BELOW)
    }

    /// Ends a child that did not answer in time.
    pub(super) async fn kill(mut self) -> Stop {
        if let Err(error) = self.child.kill().await {
            tracing::warn!(%error, "could not kill an evaluating child");
        }
        Stop::Time
    }

    /// Says why a child closed its pipe.
    pub(super) async fn post_mortem(mut self) -> Stop {
        let ended = timeout(Duration::from_secs(1), self.child.wait()).await;
        ended.map_or(Stop::Fault, |status| status.map_or(Stop::Fault, cause))
    }
}

/// Rust aborts when it can have no more heap or stack; the kernel kills when the machine or the container has none.
fn cause(status: ExitStatus) -> Stop {
    let signal = status.signal().and_then(Signal::from_named_raw);
    match signal {
        Some(Signal::XCPU) => Stop::Time,
        Some(Signal::ABORT | Signal::KILL | Signal::SEGV) => Stop::Memory,
        _ => Stop::Fault,
    }
}
