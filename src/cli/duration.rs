//! Durations on the command line.

use std::time::Duration;

/// Reads a duration in Go's spelling, such as `1m30s`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let duration: kube::core::Duration = text
        .parse()
        .map_err(|error: kube::core::duration::ParseError| error.to_string())?;
    if duration.is_negative() {
        return Err("a duration cannot be negative".to_owned());
    }
    Ok(duration.into())
}
