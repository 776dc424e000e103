//! `gitspoke completions`: completion scripts, from the definitions of the commands.

use clap::Args;
use clap_complete::Shell;

use super::{definition, failure::Failure, output};

/// What was typed.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  gitspoke completions bash > /etc/bash_completion.d/gitspoke")]
pub struct Completions {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(completions: &Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        completions.shell,
        &mut definition(),
        "gitspoke",
        &mut script,
    );
    output::write(&script)
}
