//! Why a manifest was not written, and what follows from that.

use std::time::Duration;

use super::{body::Unsendable, executor::LOOKED_AT_AGAIN, index::Blocker, mend};
use crate::{
    spoke,
    status::{Applied, Availability},
};

/// A conflict ends when its other party lets go, which a watch shows; this is for what it does not show.
const CONFLICT: Duration = Duration::from_mins(5);

/// Why a manifest was not written.
#[derive(Debug, thiserror::Error)]
pub enum Unwritten {
    /// It cannot be sent as it is.
    #[error(transparent)]
    Unsendable(#[from] Unsendable),
    /// The manifest names no object, or of a kind that is not served.
    #[error("{0}")]
    Unplaced(String),
    /// The fields to leave alone could not be worked out.
    #[error("{0}")]
    Ignored(String),
    /// The work's executor may not write the object.
    #[error("{0}")]
    NotAllowed(String),
    /// What the work's executor may do cannot be told.
    #[error("{0}")]
    NoExecutor(String),
    /// The object has to make room for one that cannot be had by changing it.
    #[error("the object is being deleted, to be created anew: {0}")]
    MakingRoom(String),
    /// The spoke refused, or did not answer.
    #[error(transparent)]
    Spoke(#[from] spoke::error::Error),
}

/// When a manifest that failed is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Soon, and later each time.
    Retry,
    /// After this long, unless something happens.
    Later(Duration),
    /// When it is changed: as it is, it can only fail again.
    Never,
}

impl Next {
    /// What is to be done when both are.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Retry, _) | (_, Self::Retry) => Self::Retry,
            (Self::Later(one), Self::Later(other)) => Self::Later(one.min(other)),
            (Self::Later(one), Self::Never) | (Self::Never, Self::Later(one)) => Self::Later(one),
            (Self::Never, Self::Never) => Self::Never,
        }
    }
}

impl Unwritten {
    /// When to try again.
    pub fn next(&self) -> Next {
        match self {
            Self::Unsendable(_) | Self::Ignored(_) => Next::Never,
            Self::Spoke(error) if mend::is_refusal(error.message()) => Next::Never,
            Self::Spoke(error) if error.is_conflict() => Next::Later(CONFLICT),
            Self::NotAllowed(_) => Next::Later(LOOKED_AT_AGAIN),
            Self::Spoke(_) | Self::MakingRoom(_) | Self::Unplaced(_) | Self::NoExecutor(_) => {
                Next::Retry
            }
        }
    }

    /// What has to happen on the spoke first. `group` and `namespace` are the manifest's.
    pub fn blocker(&self, group: &str, namespace: &str) -> Option<Blocker> {
        let Self::Spoke(error) = self else {
            return None;
        };
        if matches!(error, spoke::error::Error::UnknownKind { .. }) {
            return Some(Blocker::Definition(group.to_owned()));
        }
        if let Some(namespace) = error.missing_namespace() {
            return Some(Blocker::Namespace(namespace.to_owned()));
        }
        let is_terminating = error.message().contains("because it is being terminated");
        match error.is_forbidden() {
            true if is_terminating => Some(Blocker::Namespace(namespace.to_owned())),
            true => Some(Blocker::Rights),
            false => None,
        }
    }

    /// What the condition says.
    pub fn applied(&self) -> Applied {
        let error = with_causes(self);
        match self {
            Self::Ignored(_) => Applied::IgnoreFields { error },
            _ => Applied::Failed { error },
        }
    }
}

/// An error with everything that led to it: a condition is the edge where it is printed.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// What a look at an object that could not be written shows.
pub fn availability(looked: Result<bool, spoke::error::Error>) -> Availability {
    match looked {
        Ok(true) => Availability::Available,
        Ok(false) => Availability::NotAvailable,
        Err(error) => Availability::Unknown {
            error: with_causes(&error),
        },
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use serde_json::json;

    use super::*;

    fn refused(code: u16, message: &str, details: &serde_json::Value) -> Unwritten {
        let status: Status =
            serde_json::from_value(json!({"code": code, "message": message, "details": details}))
                .unwrap();
        spoke::error::Error::Refused(Box::new(status)).into()
    }

    #[test]
    fn each_failure_has_its_consequence() {
        let unknown = || spoke::error::Error::UnknownKind {
            kind: "Widget".into(),
        };
        let later = Next::Later(CONFLICT);
        let terminating =
            "unable to create new content in namespace n because it is being terminated";
        let table = [
            (Unwritten::Ignored("x".into()), Next::Never, None),
            (Unwritten::Unplaced("x".into()), Next::Retry, None),
            (Unwritten::NoExecutor("x".into()), Next::Retry, None),
            (
                Unwritten::NotAllowed("x".into()),
                Next::Later(LOOKED_AT_AGAIN),
                None,
            ),
            (
                unknown().into(),
                Next::Retry,
                Some(Blocker::Definition("g".into())),
            ),
            (refused(409, "conflict", &json!({})), later, None),
            (
                refused(
                    500,
                    "failed to create typed patch object (a): .x: field not declared in schema",
                    &json!({}),
                ),
                Next::Never,
                None,
            ),
            (refused(500, "etcd is away", &json!({})), Next::Retry, None),
            (
                refused(
                    404,
                    "namespaces \"m\" not found",
                    &json!({"kind": "namespaces", "name": "m"}),
                ),
                Next::Retry,
                Some(Blocker::Namespace("m".into())),
            ),
            (
                refused(403, terminating, &json!({})),
                Next::Retry,
                Some(Blocker::Namespace("n".into())),
            ),
            (
                refused(403, "no", &json!({})),
                Next::Retry,
                Some(Blocker::Rights),
            ),
            (refused(422, "no", &json!({})), Next::Retry, None),
        ];
        for (unwritten, next, blocker) in table {
            assert_eq!(unwritten.next(), next, "{unwritten}");
            assert_eq!(unwritten.blocker("g", "n"), blocker, "{unwritten}");
        }
    }

    #[test]
    fn the_most_urgent_consequence_stands() {
        let [minute, hour] = [Duration::from_mins(1), Duration::from_hours(1)].map(Next::Later);
        assert_eq!(Next::Never.and(hour), hour);
        assert_eq!(hour.and(minute), minute);
        assert_eq!(minute.and(Next::Retry), Next::Retry);
        assert_eq!(Next::Never.and(Next::Never), Next::Never);
    }
}
