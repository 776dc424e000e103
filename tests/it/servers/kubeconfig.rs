//! Kubeconfig files, as a user would be given them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::certificates::Identity;

/// How someone proves who they are.
pub(crate) enum Credentials<'a> {
    /// A certificate of their own.
    Certificate(Identity),
    /// A bearer token.
    Token(String),
    /// An administrator's kubeconfig user, acting as somebody else.
    Impersonation {
        certificate: PathBuf,
        key: PathBuf,
        user: &'a str,
        groups: &'a [&'a str],
    },
}

/// Writes a kubeconfig and returns its path. Certificates go beside it: a file is easier to look at than base64.
pub(crate) fn write(
    directory: &Path,
    name: &str,
    server: &str,
    authority: &Path,
    who: &Credentials<'_>,
) -> PathBuf {
    let user: Value = match who {
        Credentials::Token(token) => json!({ "token": token }),
        Credentials::Impersonation {
            certificate,
            key,
            user,
            groups,
        } => {
            json!({ "client-certificate": certificate, "client-key": key, "as": user, "as-groups": groups })
        }
        Credentials::Certificate(identity) => {
            let certificate = directory.join(format!("{name}.crt"));
            let key = directory.join(format!("{name}.key"));
            write_file(&certificate, &identity.certificate);
            write_file(&key, &identity.key);
            json!({ "client-certificate": certificate, "client-key": key })
        }
    };
    let path = directory.join(format!("{name}.kubeconfig"));
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority": authority}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": name}}],
        "current-context": "test",
    });
    write_file(&path, &config.to_string());
    path
}

/// Writes a file of the test's own directory.
pub(crate) fn write_file(path: &Path, text: &str) {
    fs::write(path, text)
        .unwrap_or_else(|error| panic!("could not write {}: {error}", path.display()));
}
