//! The command line: one file per command, and the only code that prints.
//!
//! stdout is data, stderr is talk. What was typed is read by clap into the types below; each command turns its own
//! into a checked value before it acts. Exit codes are in [`failure`].
//!
//! A new command is a file here, a variant of [`Command`] and an arm of [`run`]; completions, man pages and
//! docs/cli.md follow by themselves.

pub mod failure;

mod agent;
mod completions;
mod connect;
mod contents;
mod duration;
mod election;
mod evaluate;
mod gates;
mod ignored;
mod install;
mod lifetime;
mod man;
mod output;

use clap::{CommandFactory, Parser, Subcommand};
use tracing_subscriber::filter::Targets;

use crate::telemetry::LogFormat;
use failure::Failure;

const STORY: &str = "\
gitspoke runs fleets of Kubernetes clusters from a Git repository.

You push clusters/<name>/works/*.yaml. A hub turns each file into a ManifestWork in the namespace of that cluster; an \
agent on each cluster applies it, keeps it applied and reports back; the answer appears on your commit.

It speaks Open Cluster Management's API, so its agent works under an OCM hub and its hub works with OCM's agents.";

const FIRST_STEPS: &str = "\
Examples:
  Teach a hub the objects gitspoke works with:
    gitspoke install crds | kubectl apply --server-side -f -

Exit codes: 0 done, 1 differs or not healthy, 2 wrong usage, 3 failed.";

/// What was typed.
#[derive(Debug, Parser)]
#[command(
    name = "gitspoke",
    version,
    about = "Runs fleets of Kubernetes clusters from a Git repository",
    long_about = STORY,
    after_help = FIRST_STEPS,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,

    /// How log lines are written to stderr.
    #[arg(
        long,
        global = true,
        help_heading = "Logging",
        value_enum,
        default_value = "text",
        env = "GITSPOKE_LOG_FORMAT",
        value_name = "FORMAT"
    )]
    pub log_format: LogFormat,

    /// What is logged: a level, or targets with levels such as `warn,gitspoke=debug`.
    ///
    /// What the Kubernetes client says of each request is left out, unless it is named, as in `info,kube_client=warn`,
    /// or the level is `debug` or `trace`.
    #[arg(
        long,
        global = true,
        help_heading = "Logging",
        default_value = "info",
        env = "GITSPOKE_LOG",
        value_name = "LEVELS"
    )]
    pub log: Targets,
}

/// Every command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Apply the works of one cluster, keep them applied and report back.
    Agent(Box<agent::Agent>),
    /// Print what `kubectl apply -f -` needs.
    Install(install::Install),
    /// Print a completion script for a shell.
    Completions(completions::Completions),
    /// Write man pages to a directory.
    Man(man::Man),
    /// Answer questions of an agent that started this process.
    #[command(hide = true)]
    EvaluateExpressions,
}

/// Runs a command.
pub fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Agent(agent) => agent::run(*agent),
        Command::Install(install) => install::run(install),
        Command::Completions(completions) => completions::run(&completions),
        Command::Man(man) => man::run(&man),
        Command::EvaluateExpressions => evaluate::run(),
    }
}

/// The definitions that help, completions, man pages and docs/cli.md are made from.
pub fn definition() -> clap::Command {
    Cli::command()
}
