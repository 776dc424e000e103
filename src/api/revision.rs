//! A commit as a source names it: the ref it was found at and its id.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A commit and the full ref it was resolved from, written `refs/heads/main@sha1:363a6a8f…`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Revision {
    reference: Box<str>,
    commit: Box<str>,
}

/// Why a text is not a revision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not a revision: write it as refs/heads/main@sha1:<40 hex digits>")]
pub struct InvalidRevision {
    given: String,
}

impl Revision {
    /// The full ref, e.g. `refs/heads/main`.
    pub fn reference(&self) -> &str {
        &self.reference
    }

    /// The commit id in lower-case hex: 40 digits for SHA-1, 64 for SHA-256 repositories.
    pub fn commit(&self) -> &str {
        &self.commit
    }
}

impl FromStr for Revision {
    type Err = InvalidRevision;

    fn from_str(given: &str) -> Result<Self, InvalidRevision> {
        let parts = given.rsplit_once('@').and_then(|(reference, id)| {
            let (algorithm, commit) = id.split_once(':')?;
            let digits = match algorithm {
                "sha1" => 40,
                "sha256" => 64,
                _ => return None,
            };
            let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
            (!reference.is_empty() && commit.len() == digits && commit.bytes().all(is_hex))
                .then_some((reference, commit))
        });
        match parts {
            Some((reference, commit)) => Ok(Self {
                reference: reference.into(),
                commit: commit.into(),
            }),
            None => Err(InvalidRevision {
                given: given.chars().take(120).collect(),
            }),
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let algorithm = if self.commit.len() == 40 {
            "sha1"
        } else {
            "sha256"
        };
        write!(f, "{}@{algorithm}:{}", self.reference, self.commit)
    }
}

impl TryFrom<String> for Revision {
    type Error = InvalidRevision;

    fn try_from(given: String) -> Result<Self, InvalidRevision> {
        given.parse()
    }
}

impl From<Revision> for String {
    fn from(revision: Revision) -> Self {
        revision.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "363a6a8fe6a7f13e05d34c163b0ef02a777da20a";

    #[test]
    fn a_revision_is_read_as_it_is_written() {
        for text in [
            format!("refs/heads/main@sha1:{COMMIT}"),
            format!("refs/heads/odd@name@sha1:{COMMIT}"),
            format!("refs/tags/v1@sha256:{}", "0a".repeat(32)),
        ] {
            assert_eq!(text.parse::<Revision>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            COMMIT,
            "main",
            &format!("@sha1:{COMMIT}"),
            &format!("main@{COMMIT}"),
            &format!("main@sha1:{}", &COMMIT[1..]),
            &format!("main@sha1:{}", COMMIT.to_uppercase()),
            &format!("main@sha256:{COMMIT}"),
        ] {
            assert!(text.parse::<Revision>().is_err(), "{text}");
        }
    }
}
