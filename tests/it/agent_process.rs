//! An agent's process: its log, and what it answers over HTTP.

use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, OnceLock},
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{agent_pair::PATIENCE, servers::wait};

/// A process that serves endpoints.
pub(crate) struct Running {
    pub(crate) child: Child,
    /// Where, once its log has said so.
    address: Arc<OnceLock<SocketAddr>>,
}

impl Running {
    pub(crate) async fn address(&self) -> SocketAddr {
        wait::until("the agent to listen", PATIENCE, || async {
            self.address
                .get()
                .copied()
                .ok_or_else(|| "no such line in its log".to_owned())
        })
        .await
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end, and returns how it did.
    pub(crate) async fn terminate(&mut self) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        self.ended().await
    }

    /// Waits for it to end by itself.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        wait::until("the agent to end", PATIENCE, || {
            let ended = self.child.try_wait().unwrap();
            async move { ended.ok_or_else(|| "it runs".to_owned()) }
        })
        .await
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs an agent whose log goes elsewhere.
pub(crate) fn run_quietly(arguments: &[String], log: Stdio) -> Running {
    let child = Command::new(env!("CARGO_BIN_EXE_gitspoke"))
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap();
    let address = Arc::default();
    Running { child, address }
}

/// Runs an agent, and reads in its log where it listens. The rest of the log is the test's.
pub(crate) fn run_agent(arguments: &[String]) -> Running {
    let mut child = Command::new(env!("CARGO_BIN_EXE_gitspoke"))
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = BufReader::new(child.stderr.take().unwrap());
    let address = Arc::new(OnceLock::new());
    let found = Arc::clone(&address);
    std::thread::spawn(move || {
        for line in log.lines().map_while(Result::ok) {
            match line.split_once("listening address=") {
                Some((_, address)) => drop(found.set(address.trim().parse().unwrap())),
                None => eprintln!("{line}"),
            }
        }
    });
    Running { child, address }
}

/// What an endpoint answers.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) body: String,
}

/// Asks by a few bytes of HTTP: whoever probes an agent has no more either.
pub(crate) async fn ask(address: SocketAddr, path: &str) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let content_type = head
        .lines()
        .find_map(|line| line.strip_prefix("content-type: "));
    Answer {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        content_type: content_type.unwrap_or_default().to_owned(),
        body: body.to_owned(),
    }
}
