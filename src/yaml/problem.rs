//! What went wrong and where, before it knows which file it is in.

use super::node::Position;

/// Becomes an [`super::Error`] once the path and the source are at hand.
#[derive(Debug, Clone)]
pub(super) struct Problem {
    pub(super) position: Position,
    pub(super) message: String,
    pub(super) hint: String,
    /// A second place that explains the first, as the earlier of two equal keys.
    pub(super) related: Option<(Position, &'static str)>,
}

impl Problem {
    pub(super) fn new(
        position: Position,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            position,
            message: message.into(),
            hint: hint.into(),
            related: None,
        }
    }

    pub(super) fn duplicate_key(key: &str, position: Position, first: Position) -> Self {
        Self {
            related: Some((first, "first set here")),
            ..Self::new(
                position,
                format!("key `{}` is already set on line {}", brief(key), first.line),
                "keep one of the two; kubectl would silently take the last",
            )
        }
    }

    pub(super) fn too_deep(position: Position, limit: usize) -> Self {
        Self::new(
            position,
            format!("nested deeper than {limit} levels"),
            "no Kubernetes object is nested this deep; check for brackets or dashes that are repeated by mistake",
        )
    }

    pub(super) fn too_many_values(position: Position, limit: usize) -> Self {
        Self::new(
            position,
            format!("more than {limit} values in one file"),
            "split the file, or write out what the aliases repeat",
        )
    }
}

/// Returns text from a file, short and harmless enough to stand inside a message.
pub(super) fn brief(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut short: String = text.chars().take(LONGEST).map(harmless).collect();
    if text.chars().nth(LONGEST).is_some() {
        short.push('…');
    }
    short
}

/// Replaces what could move a cursor, hide text or reverse its direction on the reader's terminal.
pub(super) fn harmless(character: char) -> char {
    match character {
        '\t' => ' ',
        '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{feff}' => '\u{fffd}',
        other if other.is_control() => '\u{fffd}',
        other => other,
    }
}
