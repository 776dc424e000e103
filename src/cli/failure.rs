//! How a command ends when it does not succeed.

use std::{error::Error, fmt::Write as _, process::ExitCode};

use anstyle::{AnsiColor, Style};

use crate::telemetry::AlreadyStarted;

/// A command that could not be carried out: what failed, and what to do next.
///
/// Exit codes: 0 done, 1 differs or not healthy, 2 wrong usage (mostly clap's own answer), 3 failed.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    error: Box<dyn Error + Send + Sync>,
    hint: Option<String>,
}

impl Failure {
    pub(super) fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            code: 3,
            error: error.into(),
            hint: None,
        }
    }

    /// What was typed cannot be meant: flags that contradict each other, for example.
    pub(super) fn usage(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            code: 2,
            ..Self::new(error)
        }
    }

    /// Says what to do next.
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What failed, for a log.
    pub(super) fn error(&self) -> &(dyn Error + 'static) {
        &*self.error
    }

    /// The process' exit code.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }

    /// Prints the failure with its causes and its hint to stderr.
    pub fn report(&self) {
        let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
        let cyan = Style::new().bold().fg_color(Some(AnsiColor::Cyan.into()));
        let mut text = format!("{red}error:{red:#} {}\n", self.error);
        let mut cause = self.error.source();
        while let Some(error) = cause {
            writeln!(text, "  because {error}").expect("writing to memory cannot fail");
            cause = error.source();
        }
        if let Some(hint) = &self.hint {
            writeln!(text, "{cyan}hint:{cyan:#} {hint}").expect("writing to memory cannot fail");
        }
        anstream::eprint!("{text}");
    }
}

impl From<AlreadyStarted> for Failure {
    fn from(error: AlreadyStarted) -> Self {
        Self::new(error)
    }
}
