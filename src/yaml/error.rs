//! What a user reads when a file is refused.

use super::excerpt::Excerpt;
use super::node::Position;
use super::problem::{Problem, brief, harmless};
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

/// A file that could not be read, the place, and what to do about it.
///
/// Prints as one line, `path:line:column: message`; [`Error::render`] shows the source as well.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}:{line}:{column}: {message}")]
pub struct Error {
    pub path: String,
    pub line: u32,
    pub column: u32,
    /// Lower case, no full stop.
    pub message: String,
    /// What to do next.
    pub hint: String,
    excerpts: Vec<Excerpt>,
}

impl Error {
    /// Makes an error about a place in a file that reads well but means something wrong, so that later rooms report as
    /// this one does.
    pub fn at(
        path: &str,
        source: &[u8],
        position: Position,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::new(path, source, Problem::new(position, message, hint))
    }

    /// Adds a second place of the same file that explains the first.
    #[must_use]
    pub fn also(mut self, source: &[u8], position: Position, label: &str) -> Self {
        let source = String::from_utf8_lossy(source);
        self.excerpts
            .extend(Excerpt::cut(&source, position, Some(brief(label))));
        self
    }

    pub(super) fn new(path: &str, source: &[u8], problem: Problem) -> Self {
        let excerpts = Excerpt::cut(&String::from_utf8_lossy(source), problem.position, None);
        let error = Self {
            path: path.chars().map(harmless).collect(),
            line: problem.position.line,
            column: problem.position.column,
            message: problem.message,
            hint: problem.hint,
            excerpts: excerpts.into_iter().collect(),
        };
        match problem.related {
            Some((position, label)) => error.also(source, position, label),
            None => error,
        }
    }

    /// Returns the error as rustc would show it: message, place, the line with a mark under it, and the hint.
    pub fn render(&self, color: bool) -> String {
        let renderer = if color {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let mut group = Group::with_title(Level::ERROR.primary_title(self.message.as_str()));
        if self.excerpts.is_empty() {
            group = group.element(
                Origin::path(self.path.as_str())
                    .line(self.line as usize)
                    .char_column(self.column as usize),
            );
        }
        for (index, excerpt) in self.excerpts.iter().enumerate() {
            let kind = if index == 0 {
                AnnotationKind::Primary
            } else {
                AnnotationKind::Context
            };
            group = group.element(
                Snippet::source(excerpt.text.as_str())
                    .path(self.path.as_str())
                    .line_start(excerpt.line as usize)
                    .annotation(
                        kind.span(excerpt.mark.clone())
                            .label(excerpt.label.as_deref()),
                    ),
            );
        }
        renderer.render(&[group.element(Level::HELP.message(self.hint.as_str()))])
    }
}
