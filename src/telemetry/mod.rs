//! What the process says about itself: logs on stderr, and metrics.
//!
//! Metrics are defined in [`metrics`], in one place, and each room receives its own by value; [`requests`] counts what
//! is asked of clusters, [`machine`] reads what the kernel counts. This room must not know the rooms it measures.

pub mod label;
pub mod machine;
pub mod metrics;
pub mod pace;
pub mod requests;

use std::io;

use anstream::{AutoStream, ColorChoice};
use clap::ValueEnum;
use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

/// How a line of the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line, for log collectors.
    Json,
}

/// Why logging could not be started.
#[derive(Debug, thiserror::Error)]
#[error("could not start logging: it has been started before in this process")]
pub struct AlreadyStarted(#[from] tracing_subscriber::util::TryInitError);

/// Starts logging to stderr, for the targets and levels given.
pub fn start(format: LogFormat, targets: &Targets) -> Result<(), AlreadyStarted> {
    let registry = tracing_subscriber::registry().with(quieted(targets));
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    match format {
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).try_init()?,
        LogFormat::Text => {
            let color = AutoStream::choice(&io::stderr()) != ColorChoice::Never;
            registry.with(lines.with_ansi(color)).try_init()?;
        }
    }
    Ok(())
}

/// Where the Kubernetes client speaks of requests.
const CLIENT: &str = "kube_client::client";

/// Leaves out the Kubernetes client's own lines about requests, unless they are asked for by name or everything is.
///
/// It writes an error for each 5xx and each broken connection, without what was asked of whom. Those who ask know, and
/// say so if it matters.
fn quieted(targets: &Targets) -> Targets {
    let level = targets.default_level().unwrap_or(LevelFilter::OFF);
    let is_named = |(target, _): (&str, _)| target.starts_with("kube");
    if level >= LevelFilter::DEBUG || targets.iter().any(is_named) {
        return targets.clone();
    }
    targets
        .clone()
        .with_target(CLIENT, LevelFilter::OFF)
        // An authority that cannot be read again is told of nowhere else.
        .with_target(format!("{CLIENT}::tls"), level)
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn the_client_speaks_when_asked_to() {
        // What was asked for; whether errors of the client about requests are shown, and warnings about files.
        let table = [
            ("info", false, true),
            ("warn,gitspoke=debug", false, true),
            ("error", false, false),
            ("gitspoke=info", false, false),
            ("debug", true, true),
            ("trace", true, true),
            ("info,kube_client=error", true, false),
            ("info,kube=warn", true, true),
            ("off", false, false),
        ];
        for (asked, requests, files) in table {
            let targets = quieted(&asked.parse().unwrap());
            let found = (
                targets.would_enable("kube_client::client::builder", &Level::ERROR),
                targets.would_enable("kube_client::client::tls", &Level::WARN),
            );
            assert_eq!(found, (requests, files), "{asked}");
            let parsed: Targets = asked.parse().unwrap();
            for level in [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG] {
                let is_enabled =
                    |targets: &Targets| targets.would_enable("gitspoke::agent", &level);
                assert_eq!(is_enabled(&targets), is_enabled(&parsed), "{asked} {level}");
            }
        }
    }
}
