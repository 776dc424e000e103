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
use tracing_subscriber::{filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};

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
    let registry = tracing_subscriber::registry().with(targets.clone());
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
