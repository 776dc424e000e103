//! What a refusal means.

use kube::core::Status;

/// Why the cluster did not do what it was asked to.
///
/// The text is the server's own where there is one: it ends up verbatim in conditions that other programs read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The cluster serves no such kind.
    #[error("the server doesn't have a resource type {kind:?}")]
    UnknownKind {
        /// The kind as the manifest names it.
        kind: String,
    },
    /// The server refused the request.
    #[error("{}", .0.message)]
    Refused(Box<Status>),
    /// It was there a moment ago.
    #[error("the object vanished while it was being written")]
    Vanished,
    /// There was no answer.
    #[error("the API server of the spoke did not answer")]
    Unreachable(#[source] Box<kube::Error>),
}

impl Error {
    /// The object, or its namespace, is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused(status) if status.code == 404)
    }

    /// Somebody else has changed or claimed it meanwhile.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused(status) if status.code == 409)
    }
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused(status),
            other => Self::Unreachable(Box::new(other)),
        }
    }
}
