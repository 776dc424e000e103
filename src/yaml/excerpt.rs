//! The few lines of a file that an error shows: short, harmless, and owned, so that an error outlives its source.

use super::node::Position;
use super::problem::harmless;
use std::ops::Range;

/// A line of the file and what to mark in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Excerpt {
    pub(super) line: u32,
    pub(super) text: String,
    /// Bytes of `text`.
    pub(super) mark: Range<usize>,
    pub(super) label: Option<String>,
}

/// Characters kept behind the marked one. What stands before it is all kept, because the renderer counts the column
/// from it; the renderer also cuts what it shows to the width of a terminal.
const BEHIND: usize = 100;

impl Excerpt {
    /// Cuts the line of `position` out of `source`; nothing when the file has no such line.
    pub(super) fn cut(source: &str, position: Position, label: Option<String>) -> Option<Self> {
        let line = lines(source).nth((position.line as usize).checked_sub(1)?)?;
        let column = position.column as usize - 1;
        let width = source
            .get(position.offset as usize..)
            .and_then(|rest| rest.get(..position.len as usize))
            .map_or(0, |marked| {
                marked.lines().next().unwrap_or_default().chars().count()
            });
        let mut text = String::new();
        let mut mark = None;
        for (index, character) in line.chars().enumerate().take(column + BEHIND) {
            let begin = text.len();
            text.push(harmless(character));
            if index == column {
                mark = Some(begin..text.len());
            } else if let Some(mark) = mark.as_mut()
                && index < column + width
            {
                mark.end = text.len();
            }
        }
        let mark = mark.unwrap_or(text.len()..text.len());
        Some(Self {
            line: position.line,
            text,
            mark,
            label,
        })
    }
}

/// Splits at the breaks the parser counts: line feed, carriage return, and both together.
fn lines(source: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(source);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = text.find(['\n', '\r']) else {
            rest = None;
            return Some(text);
        };
        let width = if text[end..].starts_with("\r\n") {
            2
        } else {
            1
        };
        rest = Some(&text[end + width..]);
        Some(&text[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32, column: u32) -> Position {
        Position {
            line,
            column,
            offset: 0,
            len: 0,
        }
    }

    #[test]
    fn all_three_line_breaks_count() {
        let cut =
            |line| Excerpt::cut("a\nb\r\nc\rd", at(line, 1), None).map(|excerpt| excerpt.text);
        assert_eq!(
            ["a", "b", "c", "d"].map(|text| Some(text.to_owned())),
            [1, 2, 3, 4].map(cut)
        );
        assert_eq!(cut(5), None);
    }

    #[test]
    fn a_long_line_is_cut_behind_the_place() {
        let source = "é".repeat(10_000);
        let excerpt = Excerpt::cut(&source, at(1, 5_000), None).unwrap();
        assert_eq!(excerpt.text.chars().count(), 4_999 + BEHIND);
        assert_eq!(excerpt.mark, 9_998..10_000);
    }

    #[test]
    fn what_could_move_the_cursor_is_replaced() {
        let excerpt = Excerpt::cut("a\u{1b}[2J\tb\u{202e}c", at(1, 1), None).unwrap();
        assert_eq!(excerpt.text, "a\u{fffd}[2J b\u{fffd}c");
    }
}
