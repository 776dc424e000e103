//! The servers of one test run.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::OnceCell;

use super::{control_plane::ControlPlane, keeper::Keeper};

/// Failed runs whose logs are kept; older ones are removed.
const KEPT_RUNS: usize = 5;

/// Control planes on demand, and the directory their files are in.
pub(crate) struct Lab {
    directory: PathBuf,
    keeper: Keeper,
    hub: OnceCell<ControlPlane>,
    spoke: OnceCell<ControlPlane>,
    names: AtomicUsize,
}

impl Lab {
    /// Starts nothing yet.
    pub(crate) fn new() -> Arc<Self> {
        let runs = Path::new(env!("CARGO_TARGET_TMPDIR")).join("it");
        remove_old_runs(&runs);
        Arc::new(Self {
            directory: runs.join(format!("run-{}", std::process::id())),
            keeper: Keeper::start(),
            hub: OnceCell::new(),
            spoke: OnceCell::new(),
            names: AtomicUsize::new(0),
        })
    }

    /// The hub's control plane, shared by all cases.
    pub(crate) async fn hub(&self) -> &ControlPlane {
        self.hub.get_or_init(|| self.start("hub")).await
    }

    /// A spoke's control plane, shared by all cases.
    pub(crate) async fn spoke(&self) -> &ControlPlane {
        self.spoke.get_or_init(|| self.start("spoke")).await
    }

    /// A control plane of the case's own, to be stopped and broken at will.
    pub(crate) async fn start(&self, name: &str) -> ControlPlane {
        let number = self.names.fetch_add(1, Ordering::Relaxed);
        let directory = self.directory.join(format!("{name}-{number}"));
        ControlPlane::start(&directory, self.keeper.clone()).await
    }

    /// A name no other case of this run uses, e.g. for a namespace.
    pub(crate) fn unique_name(&self, prefix: &str) -> String {
        format!("{prefix}-{}", self.names.fetch_add(1, Ordering::Relaxed))
    }

    /// Stops every server. The logs of a failed run are kept and their place is printed.
    pub(crate) fn finish(self: Arc<Self>, failed: bool) {
        let directory = self.directory.clone();
        // Cases that have ended hold the lab no longer, so this is where its servers stop; one that was abandoned
        // at its deadline may hold it still, and then they die with this process.
        drop(self);
        if !directory.exists() {
            return;
        }
        if failed {
            eprintln!("the servers' logs are in {}", directory.display());
        } else if let Err(error) = fs::remove_dir_all(&directory) {
            eprintln!("could not remove {}: {error}", directory.display());
        }
    }
}

/// A run that was killed leaves its directory behind, as a failed one does; neither may fill the disk.
fn remove_old_runs(runs: &Path) {
    let Ok(entries) = fs::read_dir(runs) else {
        return;
    };
    let mut finished: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| !is_running(path))
        .collect();
    finished.sort_by_key(|path| fs::metadata(path).and_then(|found| found.modified()).ok());
    let superfluous = finished.len().saturating_sub(KEPT_RUNS);
    for path in &finished[..superfluous] {
        if let Err(error) = fs::remove_dir_all(path) {
            eprintln!("could not remove {}: {error}", path.display());
        }
    }
}

fn is_running(run: &Path) -> bool {
    let name = run.file_name().unwrap_or_default().to_string_lossy();
    let pid = name.strip_prefix("run-").unwrap_or_default();
    !pid.is_empty() && Path::new("/proc").join(pid).exists()
}
