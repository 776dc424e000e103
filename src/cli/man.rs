//! `gitspoke man`: man pages, from the definitions of the commands.

use std::{io, path::PathBuf};

use clap::Args;

use super::{definition, failure::Failure};

/// What was typed.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  gitspoke man /usr/local/share/man/man1")]
pub struct Man {
    /// The directory to write to; it must exist.
    directory: PathBuf,
}

pub(super) fn run(man: &Man) -> Result<(), Failure> {
    clap_mangen::generate_to(definition(), &man.directory).map_err(|source| {
        let error = CouldNotWrite {
            directory: man.directory.display().to_string(),
            source,
        };
        Failure::new(error).hint("give a directory that exists and may be written to")
    })
}

#[derive(Debug, thiserror::Error)]
#[error("could not write man pages to {directory}")]
struct CouldNotWrite {
    directory: String,
    source: io::Error,
}
