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

    /// Not even the place where the object would be is there.
    pub(super) fn is_about_a_kind(&self) -> bool {
        let Self::Refused(status) = self else {
            return false;
        };
        let details = status.details.as_ref();
        status.code == 404 && details.is_none_or(|details| details.kind.is_empty())
    }

    /// Somebody else has changed or claimed it meanwhile.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused(status) if status.code == 409)
    }

    /// The object is not allowed to be what it was asked to become.
    pub fn is_invalid(&self) -> bool {
        matches!(self, Self::Refused(status) if status.code == 422)
    }

    /// Nothing is wrong with what was sent but that it changes what cannot be changed.
    pub fn is_immutable(&self) -> bool {
        let Self::Refused(status) = self else {
            return false;
        };
        let causes = status.details.as_ref().map(|details| &*details.causes);
        let causes = causes.unwrap_or_default();
        let is_about_change = |message: &str| {
            message.contains("immutable")
                || message.contains("updates to")
                || message.contains("may not change")
        };
        status.code == 422
            && !causes.is_empty()
            && causes.iter().all(|cause| is_about_change(&cause.message))
    }

    /// The agent may not do it.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Refused(status) if status.code == 403)
    }

    /// The server's own words.
    pub fn message(&self) -> &str {
        match self {
            Self::Refused(status) => &status.message,
            _ => "",
        }
    }

    /// The namespace that is not there, if that is what the refusal is about.
    pub fn missing_namespace(&self) -> Option<&str> {
        let Self::Refused(status) = self else {
            return None;
        };
        let details = status.details.as_ref()?;
        (status.code == 404 && details.kind == "namespaces").then_some(&details.name)
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
