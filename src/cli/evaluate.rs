//! `gitspoke evaluate-expressions`: the child process of an agent, not for people.

use std::io;

use super::failure::Failure;
use crate::expression::child;

pub(super) fn run() -> Result<(), Failure> {
    child::run().map_err(|source| Failure::new(CouldNotServe(source)))
}

#[derive(Debug, thiserror::Error)]
#[error("could not serve the parent process")]
struct CouldNotServe(#[source] io::Error);
