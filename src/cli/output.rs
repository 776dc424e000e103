//! Data on stdout.

use std::io::{self, ErrorKind, Write};

use super::failure::Failure;

/// Writes data to stdout. A reader that has seen enough, such as `head`, is not an error.
pub(super) fn write(data: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(data).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::new(CouldNotWrite(error))),
        Ok(()) => Ok(()),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("could not write to stdout")]
struct CouldNotWrite(#[source] io::Error);
