//! The real programs: found in `KUBEBUILDER_ASSETS`, or built once by Go into the user's cache directory.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use gitspoke::api::digest::Digest;

const ETCD: &str = "etcd";
const API_SERVER: &str = "kube-apiserver";
const CONTROLLERS: &str = "kube-controller-manager";
const KUBECTL: &str = "kubectl";

/// Program and the package it is built from.
const PROGRAMS: [(&str, &str); 4] = [
    (ETCD, "go.etcd.io/etcd/server/v3"),
    (API_SERVER, "k8s.io/kubernetes/cmd/kube-apiserver"),
    (CONTROLLERS, "k8s.io/kubernetes/cmd/kube-controller-manager"),
    (KUBECTL, "k8s.io/kubernetes/cmd/kubectl"),
];

/// Where the programs are.
#[derive(Debug, Clone)]
pub(crate) struct Binaries {
    directory: PathBuf,
}

/// Why there are no programs.
#[derive(Debug, Clone)]
pub(crate) enum Missing {
    /// Nothing to find and nothing to build with: a case may be skipped.
    Absent(String),
    /// They were meant to be there: a case fails.
    Broken(String),
}

impl Binaries {
    pub(crate) fn etcd(&self) -> PathBuf {
        self.directory.join(ETCD)
    }

    pub(crate) fn api_server(&self) -> PathBuf {
        self.directory.join(API_SERVER)
    }

    pub(crate) fn controllers(&self) -> PathBuf {
        self.directory.join(CONTROLLERS)
    }

    pub(crate) fn kubectl(&self) -> PathBuf {
        self.directory.join(KUBECTL)
    }
}

/// Finds the programs, building them when they have never been built.
pub(crate) fn find() -> Result<&'static Binaries, Missing> {
    static FOUND: OnceLock<Result<Binaries, Missing>> = OnceLock::new();
    FOUND.get_or_init(look).as_ref().map_err(Clone::clone)
}

fn look() -> Result<Binaries, Missing> {
    if let Some(given) = std::env::var_os("KUBEBUILDER_ASSETS") {
        let directory = PathBuf::from(given);
        return match missing_in(&directory) {
            None => Ok(Binaries { directory }),
            Some(program) => Err(Missing::Broken(format!(
                "KUBEBUILDER_ASSETS is {}, which has no {program}: add it, or unset the variable to have it built",
                directory.display()
            ))),
        };
    }
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kube");
    let read = |name: &str| {
        fs::read_to_string(module.join(name))
            .map_err(|error| Missing::Broken(format!("could not read tests/kube/{name}: {error}")))
    };
    let (go_mod, go_sum) = (read("go.mod")?, read("go.sum")?);
    let version = kubernetes_version(&go_mod)
        .ok_or_else(|| Missing::Broken("tests/kube/go.mod requires no k8s.io/kubernetes".into()))?;
    // Keyed by content: another version, or another set of replacements, is another directory.
    let key = Digest::of_bytes((go_mod.clone() + &go_sum).as_bytes()).to_string();
    let directory = cache_directory()?.join(format!("kubernetes-{version}-{}", &key[..12]));
    if missing_in(&directory).is_none() {
        return Ok(Binaries { directory });
    }
    if !go_is_installed() {
        return Err(Missing::Absent(
            "there is no Go to build Kubernetes with: install Go 1.26, or set KUBEBUILDER_ASSETS"
                .into(),
        ));
    }
    build(&module, &directory, version).map_err(Missing::Broken)?;
    Ok(Binaries { directory })
}

/// Builds what is missing. Two test runs may want it at once: the second waits and finds it done.
fn build(module: &Path, directory: &Path, version: &str) -> Result<(), String> {
    let failed =
        |what: &str, error: io::Error| format!("could not {what} {}: {error}", directory.display());
    fs::create_dir_all(directory).map_err(|error| failed("create", error))?;
    let lock =
        File::create(directory.join(".lock")).map_err(|error| failed("create a lock in", error))?;
    lock.lock().map_err(|error| failed("lock", error))?;
    for (number, (program, package)) in PROGRAMS.iter().enumerate() {
        let target = directory.join(program);
        if target.exists() {
            continue;
        }
        eprintln!(
            "building {program} of Kubernetes {version}, {} of {}, once (minutes)",
            number + 1,
            PROGRAMS.len()
        );
        // A build that is killed must not leave half a program under its final name.
        let partial = directory.join(format!(".{program}.partial"));
        let output = Command::new("go")
            .args(["build", "-C"])
            .arg(module)
            .args([
                "-mod=readonly",
                "-trimpath",
                "-ldflags",
                &linker_flags(version),
                "-o",
            ])
            .arg(&partial)
            .arg(package)
            .env("CGO_ENABLED", "0")
            .output()
            .map_err(|error| format!("could not run go: {error}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("go could not build {package}: {}", said.trim()));
        }
        fs::rename(&partial, &target).map_err(|error| failed("move a program into", error))?;
    }
    Ok(())
}

/// Without its version an API server says v0.0.0, and clients misjudge what it can do.
fn linker_flags(version: &str) -> String {
    let number = version.trim_start_matches('v');
    let mut parts = number.split('.');
    let (major, minor) = (parts.next().unwrap_or("1"), parts.next().unwrap_or("0"));
    let package = "k8s.io/component-base/version";
    format!(
        "-s -w -X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    )
}

fn missing_in(directory: &Path) -> Option<&'static str> {
    PROGRAMS
        .iter()
        .map(|(program, _)| *program)
        .find(|program| !directory.join(program).exists())
}

fn kubernetes_version(go_mod: &str) -> Option<&str> {
    go_mod.lines().find_map(|line| {
        line.trim()
            .trim_start_matches("require ")
            .strip_prefix("k8s.io/kubernetes ")?
            .split_whitespace()
            .next()
    })
}

fn cache_directory() -> Result<PathBuf, Missing> {
    let base = match std::env::var_os("XDG_CACHE_HOME") {
        Some(given) => PathBuf::from(given),
        None => std::env::var_os("HOME")
            .map(|home| PathBuf::from(home).join(".cache"))
            .ok_or_else(|| {
                Missing::Broken(
                    "neither XDG_CACHE_HOME nor HOME says where to keep built servers".into(),
                )
            })?,
    };
    Ok(base.join("gitspoke"))
}

fn go_is_installed() -> bool {
    Command::new("go")
        .arg("version")
        .output()
        .is_ok_and(|output| output.status.success())
}
