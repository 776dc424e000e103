//! What the parser's complaints mean to somebody who wrote a manifest.

use super::node::Position;
use super::problem::Problem;
use super::read::Limits;
use serde_saphyr::granit_parser::{ErrorKind, ScanError};

pub(super) const TEMPLATE: &str = "this looks like a template; render it and commit the result";

/// Puts a syntax error into the words of the person who has to fix it.
pub(super) fn for_syntax(error: &ScanError, text: &str, limits: &Limits) -> Problem {
    let mark = error.marker();
    let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let position = Position {
        line: small(mark.line()),
        column: small(mark.col() + 1),
        offset: small(mark.byte_offset().unwrap_or_default()),
        len: 0,
    };
    if *error.kind() == ErrorKind::RecursionLimitExceeded {
        return Problem::too_deep(position, limits.depth);
    }
    let (message, hint) = explain(error.kind());
    let hint = foreign(text, position.line).map_or(hint, str::to_owned);
    Problem::new(position, message, hint)
}

/// Recognizes files that are not YAML yet: for these the parser's own complaint only misleads.
fn foreign(text: &str, line: u32) -> Option<&'static str> {
    if text.lines().any(|line| line.starts_with("<<<<<<< ")) {
        return Some("the file has an unresolved merge conflict; look for <<<<<<< and >>>>>>>");
    }
    let start = (line as usize).saturating_sub(2);
    let near = text.lines().skip(start).take(2);
    if near.into_iter().any(|line| line.contains("{{")) {
        return Some(TEMPLATE);
    }
    None
}

fn explain(kind: &ErrorKind) -> (String, String) {
    let (message, hint) = match kind {
        ErrorKind::UnknownAnchor => (
            "this alias has no anchor above it",
            "define it earlier in the same document with `&`; anchors do not reach across `---`",
        ),
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabInPlainScalar
        | ErrorKind::TabAtBlockScalarStart => {
            ("a tab where YAML wants spaces", "indent with spaces only")
        }
        ErrorKind::InvalidQuotedScalarIndent => (
            "a quoted text goes on at the indentation of its key",
            "close the quote, or indent the lines that follow further than the key; kubectl is more lenient here",
        ),
        ErrorKind::UnclosedQuotedScalar | ErrorKind::DocumentIndicatorInQuotedScalar => (
            "a quote is opened and never closed",
            "close it; inside '...' a quote is written twice, inside \"...\" as \\\"",
        ),
        ErrorKind::InvalidTrailingSingleQuotedScalar
        | ErrorKind::InvalidTrailingDoubleQuotedScalar => (
            "text follows a closing quote",
            "quote the whole value; inside '...' a quote is written twice, inside \"...\" as \\\"",
        ),
        ErrorKind::UnknownQuotedScalarEscape => (
            "a backslash before a character that needs none",
            "write \\\\ for a backslash, or use single quotes, where a backslash is itself",
        ),
        ErrorKind::InvalidIndentation
        | ErrorKind::ExpectedBlockMappingKey
        | ErrorKind::ExpectedBlockSequenceEntry
        | ErrorKind::UnexpectedEofBlockMapping
        | ErrorKind::UnexpectedEofBlockSequence
        | ErrorKind::MappingKeyNotAllowed
        | ErrorKind::BlockSequenceEntryNotAllowed => (
            "this line does not fit the indentation above it",
            "keys of one mapping, and dashes of one list, start in the same column",
        ),
        ErrorKind::ExpectedDocumentStart => (
            "the document has ended, but this line goes on",
            "check the indentation, or write `---` above it; kubectl would silently ignore everything from here",
        ),
        ErrorKind::DirectiveDisallowed => (
            "a `%` directive",
            "remove the line; kubectl cannot read it either",
        ),
        ErrorKind::InvalidBlockScalarIndent => (
            "a line of a block text is indented less than its first line",
            "indent all lines of the text at least as far as the first",
        ),
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => (
            "a line that is neither `key: value` nor part of a text",
            "add the missing `:` and a space behind it, or check the indentation",
        ),
        ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidColonPlacement => (
            "a second `:` on the line, or a key in the wrong place",
            "quote the value if it contains `: `; otherwise look for a missing `:`, quote or bracket in the lines above",
        ),
        ErrorKind::UnexpectedCharacter { character } => {
            return (
                format!(
                    "`{}` cannot begin a value",
                    super::problem::harmless(*character)
                ),
                "quote the value".to_owned(),
            );
        }
        ErrorKind::UnclosedFlowCollection { .. }
        | ErrorKind::MismatchedFlowCollectionEnd { .. }
        | ErrorKind::MisplacedFlowCollectionEnd
        | ErrorKind::ExpectedFlowMappingSeparator
        | ErrorKind::ExpectedFlowSequenceSeparator
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofFlowSequence => (
            "brackets or braces that do not match, or a comma is missing",
            "close every `[` and `{`, and quote a text that begins with one",
        ),
        other => {
            return (
                format!("not valid YAML: {other}"),
                "check the indentation, and quote values with special characters".to_owned(),
            );
        }
    };
    (message.to_owned(), hint.to_owned())
}
