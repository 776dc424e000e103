//! Everything that runs against real servers or a real process, in one binary.
//!
//! A case is a function in a module named after its room; the module lists its cases, [`harness`] runs them. What a
//! case needs is in its signature: nothing, or a [`servers::Lab`] with real control planes.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, tells its progress on stderr and reads its environment"
)]

mod api_crds;
mod api_objects;
mod harness;
mod servers;
mod servers_lifecycle;

use std::process::ExitCode;

/// Set on a child that a case starts from this very binary, to be looked at from outside: what it shall do.
const ROLE: &str = "GITSPOKE_IT_ROLE";

fn main() -> ExitCode {
    if let Ok(role) = std::env::var(ROLE) {
        return match role.as_str() {
            "serve" => servers_lifecycle::serve(),
            other => panic!("no role {other}"),
        };
    }
    let cases = [api_crds::cases(), servers_lifecycle::cases()];
    harness::run(cases.into_iter().flatten().collect())
}
