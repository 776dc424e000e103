//! The binary: parse, start telemetry, install the TLS provider, dispatch, and turn the outcome into an exit code.

use std::process::ExitCode;

use clap::Parser;
use gitspoke::{
    cli::{self, Cli, failure::Failure},
    telemetry,
};

fn main() -> ExitCode {
    let cli = Cli::parse();
    match start(&cli).and_then(|()| cli::run(cli.command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report();
            failure.exit_code()
        }
    }
}

fn start(cli: &Cli) -> Result<(), Failure> {
    telemetry::start(cli.log_format, &cli.log)?;
    // rustls refuses to guess when two providers are linked, and panics at the first connection instead.
    rustls::crypto::ring::default_provider()
        .install_default()
        .expect("nothing has installed a provider before the first line of main");
    Ok(())
}
