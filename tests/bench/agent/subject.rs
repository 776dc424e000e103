//! The agent under test: the release binary as a process of its own.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

/// What Linux counts processor time in for programs to read, whatever the kernel itself uses.
const TICKS_PER_SECOND: u64 = 100;

/// A running agent. Dropping it kills it.
pub(crate) struct Subject {
    child: Child,
}

impl Subject {
    pub(crate) fn start(cluster: &str, hub: &Path, spoke: &Path) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_gitspoke"))
            .arg("agent")
            .arg(format!("--spoke-cluster-name={cluster}"))
            .arg(format!("--hub-kubeconfig={}", hub.display()))
            .arg(format!("--spoke-kubeconfig={}", spoke.display()))
            // The lease is not what is measured.
            .arg("--disable-leader-election")
            .arg("--listen=127.0.0.1:0")
            .arg("--log=warn")
            // As `gitspoke install agent` prints it.
            .env("MALLOC_ARENA_MAX", "1")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Self { child }
    }

    /// Processor time so far, user and system.
    pub(crate) fn processor_time(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // The name in parentheses may have spaces; utime and stime are the 12th and 13th fields after it.
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND)
    }

    /// The most memory it ever had, in MiB.
    pub(crate) fn peak_memory(&self) -> f64 {
        self.memory("VmHWM:")
    }

    /// The memory it has, in MiB.
    pub(crate) fn resident_memory(&self) -> f64 {
        self.memory("VmRSS:")
    }

    fn memory(&self, field: &str) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        let kib: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kib / 1024.0
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
