//! The agent against its budgets: `cargo bench --bench agent [-- small|large]`.
//!
//! Two real control planes, the release binary between them, and a load generator that writes works as fast as the hub
//! takes them. What the agent does is compared, in the same run, with the raw ceiling: the same requests sent by a client
//! without any logic. docs/performance.md has the table and how to read it.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    dead_code,
    reason = "a benchmark prints numbers, fails by panicking, and uses a part of the tests' servers"
)]

mod content;
mod latency;
mod observe;
mod raw;
mod requests;
mod run;
#[path = "../../it/servers/mod.rs"]
mod servers;
mod subject;
mod table;

use std::process::ExitCode;

use content::Size;
use servers::Lab;
use table::Table;

const SMALL: Size = Size {
    works: 200,
    maps: 3,
};
const LARGE: Size = Size {
    works: 1_000,
    maps: 5,
};

#[tokio::main]
async fn main() -> ExitCode {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let is_asked = |name: &str| {
        let names = ["small", "large"];
        let named = asked.iter().any(|word| names.contains(&word.as_str()));
        !named || asked.iter().any(|word| word == name)
    };
    let lab = Lab::new();
    let mut table = Table::default();
    for (name, size) in [("small", SMALL), ("large", LARGE)] {
        if is_asked(name) {
            // Each size has servers of its own: what one leaves behind in etcd must not slow the next.
            run::run(&lab, size, &mut table).await;
        }
    }
    lab.finish(false);
    table.print();
    if table.keeps_promises() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
