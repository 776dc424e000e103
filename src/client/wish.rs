//! What a server asks for by the way it answers.

use std::time::Duration;

use http::{HeaderMap, StatusCode, header::RETRY_AFTER};

/// When a server says that it is asked too often, and not when to come again.
const USUAL: Duration = Duration::from_secs(1);

/// What a server may ask for. It is asked again after that and can say so again.
const LONGEST: Duration = Duration::from_secs(10);

/// Against a server that asks for no time at all.
const SHORTEST: Duration = Duration::from_millis(100);

/// What a server asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Wish {
    /// It has too much to do.
    pub(super) is_overloaded: bool,
    /// It has not done what it was asked for, and wants to be asked again after this time.
    pub(super) again: Option<Duration>,
    /// It wants that from everybody.
    pub(super) is_for_all: bool,
}

impl Wish {
    /// Reads an answer's head. A 429 may be about one object, when a webhook says it; only a server that names a time
    /// speaks for itself.
    pub(super) fn of(status: StatusCode, headers: &HeaderMap) -> Self {
        let named = headers
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.trim().parse().ok())
            .map(|seconds| Duration::from_secs(seconds).clamp(SHORTEST, LONGEST));
        let (is_overloaded, again) = match status {
            StatusCode::TOO_MANY_REQUESTS => (true, Some(named.unwrap_or(USUAL))),
            StatusCode::SERVICE_UNAVAILABLE => (true, named),
            StatusCode::GATEWAY_TIMEOUT => (true, None),
            _ => (false, None),
        };
        Self {
            is_overloaded,
            again,
            is_for_all: again.is_some() && named.is_some(),
        }
    }

    /// When there was no answer in time.
    pub(super) fn of_silence() -> Self {
        Self {
            is_overloaded: true,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_understood() {
        // Status and Retry-After; then whether it is overloaded, how long it wants to be left alone, and by all.
        let table = [
            (200, None, (false, None, false)),
            (200, Some("1"), (false, None, false)),
            (404, None, (false, None, false)),
            (429, Some("2"), (true, Some(2000), true)),
            (429, Some(" 3 "), (true, Some(3000), true)),
            (429, Some("0"), (true, Some(100), true)),
            (429, Some("3600"), (true, Some(10_000), true)),
            (429, None, (true, Some(1000), false)),
            (429, Some("soon"), (true, Some(1000), false)),
            (500, None, (false, None, false)),
            (500, Some("1"), (false, None, false)),
            (503, None, (true, None, false)),
            (503, Some("1"), (true, Some(1000), true)),
            (504, Some("1"), (true, None, false)),
        ];
        for (status, header, (is_overloaded, again, is_for_all)) in table {
            let mut headers = HeaderMap::new();
            if let Some(header) = header {
                headers.insert(RETRY_AFTER, header.parse().unwrap());
            }
            let wish = Wish {
                is_overloaded,
                again: again.map(Duration::from_millis),
                is_for_all,
            };
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(Wish::of(status, &headers), wish, "{status} {header:?}");
        }
    }
}
