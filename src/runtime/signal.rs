//! When the operating system asks us to end.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Listens for SIGTERM and Ctrl-C from now on, and returns a function that waits for the next of either.
///
/// Listening starts here and not with the first wait, so that a signal during start-up is not lost. Must be called on a
/// tokio runtime.
pub fn terminated() -> io::Result<impl AsyncFnMut()> {
    let mut term = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move || {
        tokio::select! {
            _ = term.recv() => tracing::info!("received SIGTERM"),
            _ = interrupt.recv() => tracing::info!("received SIGINT"),
        }
    })
}
