//! Names that travel between rooms, checked once, where they enter.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::digest::Digest;

/// Longest ManifestWork name that still has an AppliedManifestWork: object names end at 253 characters and the
/// AppliedManifestWork's own name puts a 64-character hub hash and a dash in front.
pub const MAX_WORK_NAME: usize = 253 - 65;

/// Why a name was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not a valid {what}: {rule}")]
pub struct InvalidName {
    /// What the name was meant to be, e.g. `cluster name`.
    pub what: &'static str,
    /// The name as given, cut to a printable length.
    pub given: String,
    /// The rule it breaks, as advice.
    pub rule: String,
}

macro_rules! checked_name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Box<str>);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = InvalidName;

            fn from_str(given: &str) -> Result<Self, InvalidName> {
                let check: fn(&str) -> Result<(), String> = $check;
                match check(given) {
                    Ok(()) => Ok(Self(given.into())),
                    Err(rule) => Err(InvalidName { what: $what, given: shortened(given), rule }),
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;

            fn try_from(given: String) -> Result<Self, InvalidName> {
                given.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0.into()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

checked_name! {
    /// A cluster: the name of its namespace on the hub, hence a DNS label.
    ClusterName, "cluster name", |given| dns_label(given)
}

checked_name! {
    /// A ManifestWork, short enough to have an AppliedManifestWork.
    WorkName, "work name", |given| dns_subdomain(given, MAX_WORK_NAME)
}

checked_name! {
    /// The name under which a writer owns fields in `managedFields`.
    FieldManager, "field manager", |given| match given.len() {
        0 => Err("it must not be empty".into()),
        1..=128 => Ok(()),
        n => Err(format!("it has {n} bytes, the API server takes 128")),
    }
}

/// The hub as a spoke knows it: the digest of its address exactly as the hub kubeconfig writes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HubHash(String);

impl HubHash {
    /// Hashes the server of a hub kubeconfig. Nothing is normalised: Open Cluster Management's agent does not, and
    /// two agents must agree on the name of an AppliedManifestWork.
    pub fn of_server(server: &str) -> Self {
        Self(Digest::of_bytes(server.as_bytes()).to_string())
    }

    /// The AppliedManifestWork of a work on a spoke of this hub.
    pub fn applied_work_name(&self, work: &WorkName) -> String {
        format!("{}-{work}", self.0)
    }
}

impl fmt::Display for HubHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn dns_label(given: &str) -> Result<(), String> {
    if given.len() > 63 {
        return Err(format!(
            "it has {} characters, at most 63 are allowed",
            given.len()
        ));
    }
    if is_label(given) {
        Ok(())
    } else {
        Err("use lower-case letters, digits and '-', with a letter or digit at both ends".into())
    }
}

fn dns_subdomain(given: &str, longest: usize) -> Result<(), String> {
    if given.len() > longest {
        return Err(format!(
            "it has {} characters, at most {longest} are allowed",
            given.len()
        ));
    }
    if given.split('.').all(is_label) {
        Ok(())
    } else {
        Err("use lower-case letters, digits, '-' and '.', with a letter or digit at both ends of each part".into())
    }
}

fn is_label(part: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !part.is_empty() && part.bytes().all(inner) && !part.starts_with('-') && !part.ends_with('-')
}

/// A hostile name may be a megabyte; an error that quotes it must stay readable.
fn shortened(given: &str) -> String {
    const SHOWN: usize = 80;
    match given.char_indices().nth(SHOWN) {
        None => given.to_owned(),
        Some((end, _)) => format!("{}…", &given[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rules_of_the_object_they_name() {
        for good in ["a", "edge-1", "0x", &"a".repeat(63)] {
            assert!(good.parse::<ClusterName>().is_ok(), "{good}");
        }
        for bad in ["", "A", "-a", "a-", "a.b", "a_b", "ä", &"a".repeat(64)] {
            assert!(bad.parse::<ClusterName>().is_err(), "{bad}");
        }
        for good in ["a", "a.b", "web-1.prod", &"a".repeat(188)] {
            assert!(good.parse::<WorkName>().is_ok(), "{good}");
        }
        for bad in ["", ".", "a..b", "a.-b", "B", &"a".repeat(189)] {
            assert!(bad.parse::<WorkName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_refusal_says_what_the_name_was_for_and_how_to_write_it() {
        let error = "Prod_EU".parse::<ClusterName>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"Prod_EU\" is not a valid cluster name: use lower-case letters, digits and '-', \
             with a letter or digit at both ends"
        );
        let error = "x".repeat(300).parse::<WorkName>().unwrap_err();
        assert!(error.to_string().len() < 200, "{error}");
    }

    #[test]
    fn an_applied_work_is_named_after_the_hub_and_the_work() {
        let hub = HubHash::of_server("https://127.0.0.1:6443");
        let work: WorkName = "web".parse().unwrap();
        assert_eq!(
            hub.applied_work_name(&work),
            "6c5003f4dd1691967bd3047645092380ef15affc718a40bf6cc43496f96e552a-web"
        );
        let longest: WorkName = "a".repeat(MAX_WORK_NAME).parse().unwrap();
        assert_eq!(hub.applied_work_name(&longest).len(), 253);
    }
}
