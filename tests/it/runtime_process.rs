//! Named tasks in a program of their own, ended by real signals.
//!
//! The test binary plays both parts: run with a role it is the program, otherwise it starts itself with one.

use std::convert::Infallible;
use std::future::pending;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use gitspoke::runtime::signal::terminated;
use gitspoke::runtime::tasks::{Tasks, block_on};
use rustix::process::{Pid, Signal, kill_process};
use tokio_util::sync::CancellationToken;

use crate::{ROLE, harness::cases};

cases!(
    plain:
        sigterm_stops_tasks_in_order,
        ctrl_c_stops_tasks_in_order,
        a_panicking_task_ends_the_program_with_its_name,
        a_failing_task_ends_the_program_with_its_name,
        a_task_that_ignores_sigterm_is_aborted_and_named,
        a_task_that_keeps_its_thread_does_not_keep_the_program,
        a_second_signal_cuts_the_grace_short;
    kubernetes:
);

/// How long a test waits for a line or for the end: far more than any of them takes, so that a busy machine passes.
const DEADLINE: Duration = Duration::from_secs(20);

/// A program that ends within the deadline under this grace did not wait for it to pass.
const ENDLESS: Duration = Duration::from_hours(1);

/// Is the program of this role.
pub(crate) fn play(role: &str) -> ExitCode {
    let ended = block_on(async {
        let asked = terminated()?;
        let tasks = start(role);
        say("ready");
        tasks.run(asked).await?;
        anyhow::Ok(())
    });
    match ended.map_err(anyhow::Error::from).flatten() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            writeln!(std::io::stderr(), "error: {error:#}").expect("the test reads stderr");
            ExitCode::from(3)
        }
    }
}

fn start(role: &str) -> Tasks {
    let mut tasks = match role {
        "tasks-stubborn" | "tasks-blocked" => Tasks::new(Duration::from_secs(1)),
        _ => Tasks::new(ENDLESS),
    };
    if role == "tasks-patient" {
        tasks.spawn("stubborn", |_| pending::<Result<(), Infallible>>());
    }
    tasks.spawn("first", |stop| until_stopped("first", stop));
    match role {
        "tasks-idle" | "tasks-patient" => {}
        "tasks-panic" => tasks.spawn("shaky", |_| shaky()),
        "tasks-fail" => tasks.spawn("shaky", async |_| Err("the port is taken")),
        "tasks-stubborn" => tasks.spawn("stubborn", |_| pending::<Result<(), Infallible>>()),
        "tasks-blocked" => tasks.spawn("blocked", |_| blocked()),
        _ => tasks.spawn(role, async |_| Err("no such role")),
    }
    tasks.spawn("last", |stop| until_stopped("last", stop));
    tasks
}

async fn until_stopped(name: &str, stop: CancellationToken) -> Result<(), Infallible> {
    stop.cancelled().await;
    say(&format!("{name} stopped"));
    Ok(())
}

#[expect(clippy::panic, reason = "what the test is about")]
async fn shaky() -> Result<(), Infallible> {
    tokio::task::yield_now().await;
    panic!("the count is {}", -1)
}

/// Keeps its thread, which no abort can take away.
async fn blocked() -> Result<(), Infallible> {
    tokio::task::yield_now().await;
    loop {
        thread::park();
    }
}

fn say(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("the test reads stdout");
}

fn sigterm_stops_tasks_in_order() {
    stops_in_order(Signal::TERM);
}

fn ctrl_c_stops_tasks_in_order() {
    stops_in_order(Signal::INT);
}

fn stops_in_order(signal: Signal) {
    let mut program = Program::start("tasks-idle");
    program.expect_line("ready");
    program.send(signal);
    program.expect_line("last stopped");
    program.expect_line("first stopped");
    let (status, stderr) = program.end();
    assert_eq!((status.code(), stderr.as_str()), (Some(0), ""));
}

fn a_panicking_task_ends_the_program_with_its_name() {
    let (status, stderr) = ends_by_itself("tasks-panic");
    assert_eq!(status.code(), Some(3), "{stderr}");
    assert!(
        stderr.contains("error: task shaky panicked: the count is -1"),
        "{stderr}"
    );
}

fn a_failing_task_ends_the_program_with_its_name() {
    let (status, stderr) = ends_by_itself("tasks-fail");
    assert_eq!(status.code(), Some(3), "{stderr}");
    assert_eq!(stderr, "error: task shaky failed: the port is taken\n");
}

fn ends_by_itself(role: &str) -> (ExitStatus, String) {
    let mut program = Program::start(role);
    program.expect_line("ready");
    program.expect_line("last stopped");
    program.expect_line("first stopped");
    program.end()
}

fn a_task_that_ignores_sigterm_is_aborted_and_named() {
    is_aborted_and_named("tasks-stubborn", "stubborn");
}

fn a_task_that_keeps_its_thread_does_not_keep_the_program() {
    is_aborted_and_named("tasks-blocked", "blocked");
}

fn is_aborted_and_named(role: &str, task: &str) {
    let mut program = Program::start(role);
    program.expect_line("ready");
    program.send(Signal::TERM);
    program.expect_line("last stopped");
    program.expect_line("first stopped");
    let (status, stderr) = program.end();
    assert_eq!(status.code(), Some(3), "{stderr}");
    assert_eq!(
        stderr,
        format!("error: aborted because they did not stop in time: {task}\n")
    );
}

fn a_second_signal_cuts_the_grace_short() {
    let mut program = Program::start("tasks-patient");
    program.expect_line("ready");
    program.send(Signal::TERM);
    program.expect_line("last stopped");
    program.expect_line("first stopped");
    program.send(Signal::INT);
    let (status, stderr) = program.end();
    assert_eq!(status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("stubborn"), "{stderr}");
}

/// A running program; killed when a test gives up on it.
struct Program {
    child: Child,
    lines: Receiver<String>,
    stderr: Option<JoinHandle<String>>,
}

impl Program {
    fn start(role: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("has a path"))
            .env(ROLE, role)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdout = child.stdout.take().expect("is piped");
        let mut stderr = child.stderr.take().expect("is piped");
        let (sender, lines) = channel();
        thread::spawn(move || {
            let lines = BufReader::new(stdout).lines();
            lines
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        let stderr = thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).expect("writes UTF-8");
            text
        });
        Self {
            child,
            lines,
            stderr: Some(stderr),
        }
    }

    fn expect_line(&mut self, line: &str) {
        assert_eq!(self.lines.recv_timeout(DEADLINE).as_deref(), Ok(line));
    }

    fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the program runs");
    }

    /// Waits for the program to end, and returns its status and what it wrote to stderr.
    fn end(mut self) -> (ExitStatus, String) {
        // Its end closes stdout, which is what can be waited for with a deadline.
        assert_eq!(
            self.lines.recv_timeout(DEADLINE),
            Err(RecvTimeoutError::Disconnected)
        );
        let status = self.child.wait().expect("is our child");
        let stderr = self.stderr.take().expect("ends once");
        (status, stderr.join().expect("reading does not panic"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Does nothing to a program that was waited for.
        self.child.kill().expect("is our child");
        self.child.wait().expect("is our child");
    }
}
