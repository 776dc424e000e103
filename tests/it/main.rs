//! Everything that runs against real servers or a real process, in one binary.
//!
//! A case is a function in a module named after its room; the module lists its cases, [`harness`] runs them. What a
//! case needs is in its signature: nothing, or a [`servers::Lab`] with real control planes.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::needless_raw_string_hashes,
    reason = "a test fails by panicking, tells its progress on stderr and reads its environment; a tool writes its transcripts"
)]

mod agent_apply_rules;
mod agent_coalescing;
mod agent_conditions;
mod agent_content;
mod agent_crashes;
mod agent_credentials;
mod agent_election;
mod agent_endpoints;
mod agent_events;
mod agent_executor;
mod agent_fields;
mod agent_ignored;
mod agent_install;
mod agent_kinds;
mod agent_outages;
mod agent_pair;
mod agent_process;
mod agent_records;
mod agent_removals;
mod agent_report;
mod agent_rule_rows;
mod agent_rules;
mod agent_sharing;
mod agent_strategies;
mod agent_trouble;
mod agent_wired;
mod agent_works;
mod api_crds;
mod api_objects;
mod cli_agent;
mod cli_help;
mod cli_install;
mod expression_bounds;
mod harness;
mod runtime_process;
mod servers;
mod servers_lifecycle;
mod yaml_kubectl;

use std::process::ExitCode;

/// Set on a child that a case starts from this very binary, to be looked at from outside: what it shall do.
const ROLE: &str = "GITSPOKE_IT_ROLE";

fn main() -> ExitCode {
    if let Ok(role) = std::env::var(ROLE) {
        return match role.as_str() {
            "serve" => servers_lifecycle::serve(),
            role => runtime_process::play(role),
        };
    }
    let cases = [
        agent_ignored::cases(),
        agent_kinds::cases(),
        agent_coalescing::cases(),
        agent_endpoints::cases(),
        agent_events::cases(),
        agent_executor::cases(),
        agent_credentials::cases(),
        agent_election::cases(),
        agent_install::cases(),
        agent_crashes::cases(),
        agent_outages::cases(),
        agent_conditions::cases(),
        agent_rule_rows::cases(),
        agent_records::cases(),
        agent_removals::cases(),
        agent_apply_rules::cases(),
        agent_fields::cases(),
        agent_rules::cases(),
        agent_sharing::cases(),
        agent_strategies::cases(),
        agent_trouble::cases(),
        agent_works::cases(),
        api_crds::cases(),
        cli_agent::cases(),
        cli_help::cases(),
        cli_install::cases(),
        expression_bounds::cases(),
        runtime_process::cases(),
        servers_lifecycle::cases(),
        yaml_kubectl::cases(),
    ];
    harness::run(cases.into_iter().flatten().collect())
}
