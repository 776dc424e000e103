//! Feature gates, in Go's spelling: `--feature-gates=One=true,Other=false`.

use std::str::FromStr;

/// What may be switched.
const KNOWN: [&str; 2] = ["RawFeedbackJsonString", "ExecutorValidatingCaches"];

/// One value of the flag as it was typed: gates and whether each is on. Later ones win.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Switches(Vec<(Gate, bool)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    RawFeedbackJsonString,
    ExecutorValidatingCaches,
}

/// Which gates are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gates {
    /// Feedback may report JSON values as text.
    pub(super) raw_feedback_json_string: bool,
    /// Answers about an executor's rights are kept for a while.
    pub(super) executor_validating_caches: bool,
}

impl Default for Gates {
    /// Without a cache every pass would ask the spoke again for each manifest; nobody has asked for that.
    fn default() -> Self {
        Self {
            raw_feedback_json_string: false,
            executor_validating_caches: true,
        }
    }
}

impl Gates {
    /// Applies what was typed, in order.
    pub(super) fn with(typed: &[Switches]) -> Self {
        let mut gates = Self::default();
        for (gate, is_open) in typed.iter().flat_map(|switches| &switches.0) {
            let field = match gate {
                Gate::RawFeedbackJsonString => &mut gates.raw_feedback_json_string,
                Gate::ExecutorValidatingCaches => &mut gates.executor_validating_caches,
            };
            *field = *is_open;
        }
        gates
    }
}

/// Why gates could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum WrongGate {
    #[error("there is no gate {0}; the gates are {known}", known = KNOWN.join(" and "))]
    Unknown(String),
    #[error("{0} is neither true nor false; write {gate}=true or {gate}=false", gate = .1)]
    NoBoolean(String, String),
    #[error("{0} says neither true nor false; write {0}=true or {0}=false")]
    NoValue(String),
}

impl FromStr for Switches {
    type Err = WrongGate;

    fn from_str(text: &str) -> Result<Self, WrongGate> {
        let parts = text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty());
        parts.map(switch).collect::<Result<_, _>>().map(Self)
    }
}

fn switch(part: &str) -> Result<(Gate, bool), WrongGate> {
    let Some((name, value)) = part.split_once('=') else {
        return Err(WrongGate::NoValue(part.to_owned()));
    };
    let gate = match name.trim() {
        "RawFeedbackJsonString" => Gate::RawFeedbackJsonString,
        "ExecutorValidatingCaches" => Gate::ExecutorValidatingCaches,
        unknown => return Err(WrongGate::Unknown(unknown.to_owned())),
    };
    // Go's spellings of a boolean.
    match value.trim() {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok((gate, true)),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok((gate, false)),
        other => Err(WrongGate::NoBoolean(other.to_owned(), name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_read_as_go_reads_them() {
        let read = |texts: &[&str]| {
            let typed: Vec<Switches> = texts.iter().map(|text| text.parse().unwrap()).collect();
            let gates = Gates::with(&typed);
            (
                gates.raw_feedback_json_string,
                gates.executor_validating_caches,
            )
        };
        let table: [(&[&str], _); 6] = [
            (&[], (false, true)),
            (&[""], (false, true)),
            (&["RawFeedbackJsonString=true"], (true, true)),
            (
                &["RawFeedbackJsonString=T, ExecutorValidatingCaches=false,"],
                (true, false),
            ),
            (
                &["RawFeedbackJsonString=true,RawFeedbackJsonString=false"],
                (false, true),
            ),
            (
                &["RawFeedbackJsonString=1", "ExecutorValidatingCaches=0"],
                (true, false),
            ),
        ];
        for (texts, expected) in table {
            assert_eq!(read(texts), expected, "{texts:?}");
        }
    }

    #[test]
    fn a_wrong_gate_is_told_what_is_right() {
        let table = [
            (
                "ManifestWorkReplicaSet=true",
                "there is no gate ManifestWorkReplicaSet; the gates are RawFeedbackJsonString and ExecutorValidatingCaches",
            ),
            (
                "RawFeedbackJsonString=yes",
                "yes is neither true nor false; write RawFeedbackJsonString=true or RawFeedbackJsonString=false",
            ),
            (
                "RawFeedbackJsonString",
                "RawFeedbackJsonString says neither true nor false; write RawFeedbackJsonString=true or RawFeedbackJsonString=false",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(text.parse::<Switches>().unwrap_err().to_string(), expected);
        }
    }
}
