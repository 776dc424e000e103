//! Starts servers so that none outlives the test run, however it ends.
//!
//! A child asks the kernel to be killed when its parent dies. The kernel takes the parent to be the *thread* that
//! started it, and the harness' threads end with their cases; so one thread, which lives as long as the process,
//! starts every server.

use std::{
    io,
    os::unix::process::CommandExt,
    process::{Child, Command},
    sync::mpsc,
    thread,
};

use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};

/// The thread that starts servers.
#[derive(Clone)]
pub(crate) struct Keeper {
    requests: mpsc::Sender<(Command, mpsc::Sender<io::Result<Child>>)>,
}

/// A server that runs. Dropping it kills it.
pub(crate) struct Server {
    child: Child,
}

impl Keeper {
    /// Starts the thread.
    pub(crate) fn start() -> Self {
        let (requests, inbox) = mpsc::channel::<(Command, mpsc::Sender<io::Result<Child>>)>();
        thread::Builder::new()
            .name("keeper".into())
            .spawn(move || {
                for (command, answer) in inbox {
                    answer
                        .send(spawn_bound(command))
                        .expect("whoever asks waits for the answer");
                }
            })
            .expect("a thread can be started");
        Self { requests }
    }

    /// Starts a server.
    pub(crate) fn spawn(&self, command: Command) -> io::Result<Server> {
        let (answer, answered) = mpsc::channel();
        self.requests
            .send((command, answer))
            .expect("the keeper lives as long as we do");
        let child = answered.recv().expect("the keeper answers every request")?;
        Ok(Server { child })
    }
}

impl Server {
    /// How the server ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<String> {
        match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(status.to_string()),
            Err(error) => Some(format!("it cannot be waited for: {error}")),
        }
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    /// SIGKILL, because an API server that has lost its etcd takes minutes to obey SIGTERM. etcd runs without fsync,
    /// but what it wrote survives its process in the page cache.
    fn drop(&mut self) {
        let stopped = self.child.kill().and_then(|()| self.child.wait());
        if let Err(error) = stopped {
            eprintln!("could not stop process {}: {error}", self.child.id());
        }
    }
}

/// Starts a child that is killed when this thread's process ends.
fn spawn_bound(mut command: Command) -> io::Result<Child> {
    let parent = getpid();
    #[expect(
        unsafe_code,
        reason = "the parent-death signal can only be asked for between fork and exec"
    )]
    // SAFETY: the closure makes two system calls and allocates nothing.
    unsafe {
        command.pre_exec(move || die_with(parent));
    }
    command.spawn()
}

fn die_with(parent: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have died before the signal was asked for.
    if getppid() == Some(parent) {
        Ok(())
    } else {
        Err(io::ErrorKind::BrokenPipe.into())
    }
}
