//! From parser events to a tree, with kubectl's keys and merges and with limits on what aliases may blow up.

use super::budget::{Budget, Size};
use super::hint;
use super::mapping::{Key, Mapping, collection_as_key, fraction_as_key, key_text};
use super::node::{Node, Position, Value};
use super::problem::{Problem, brief};
use super::read::{Limits, end_of};
use super::resolve::{Unresolvable, is_integer, resolve, survives_as_key};
use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, Span, Tag, options};
use std::collections::HashMap;

/// Returns the documents of a YAML stream, those that hold nothing left out.
pub(super) fn documents(text: &str, limits: &Limits) -> Result<Vec<Node>, Problem> {
    let options = options! {
        emit_comments: false,
        // kubectl cuts the stream at `---`, which parts every directive from its document.
        disallow_directives: true,
        // Keeps the parser's own stacks small. It counts brackets and indentation apart; the builder counts them together,
        // and what aliases add.
        flow_nesting_limit: limits.depth,
        block_nesting_limit: limits.depth,
    };
    let mut builder = Builder::new(text, limits);
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| hint::for_syntax(&error, text, limits))?;
        builder.event(&event, span)?;
    }
    Ok(builder.documents)
}

struct Builder<'a> {
    text: &'a str,
    limits: &'a Limits,
    documents: Vec<Node>,
    /// The collections that are still open, outermost first.
    open: Vec<Open>,
    /// Finished nodes of this document that an alias may name.
    anchors: HashMap<usize, (Node, Size)>,
    budget: Budget<'a>,
    seen_document: bool,
}

struct Open {
    position: Position,
    anchor: usize,
    collection: Collection,
}

enum Collection {
    List(Vec<Node>),
    Map(Mapping),
}

impl<'a> Builder<'a> {
    fn new(text: &'a str, limits: &'a Limits) -> Self {
        Self {
            text,
            limits,
            documents: Vec::new(),
            open: Vec::new(),
            anchors: HashMap::new(),
            budget: Budget::new(limits),
            seen_document: false,
        }
    }

    fn event(&mut self, event: &Event<'_>, span: Span) -> Result<(), Problem> {
        let position = position(span);
        if let Some(tag) = span.tag_span().and_then(|tag| tag.byte_range()) {
            self.check_glued(tag.end, "a tag")?;
        }
        match event {
            Event::DocumentStart(explicit, _) => self.start_document(*explicit, position),
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(text, *style, *anchor, tag.as_deref(), position)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.start(*anchor, position, Collection::List(Vec::new()))
            }
            Event::MappingStart(_, anchor, _) => {
                self.start(*anchor, position, Collection::Map(Mapping::default()))
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => self.alias(*anchor, position),
            _ => Ok(()),
        }
    }

    fn start_document(&mut self, explicit: bool, position: Position) -> Result<(), Problem> {
        if self.seen_document && !explicit {
            return Err(Problem::new(
                position,
                "a document begins here without `---`",
                "write `---` between documents; kubectl would silently drop this one",
            ));
        }
        self.seen_document = true;
        self.anchors.clear();
        Ok(())
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        position: Position,
    ) -> Result<(), Problem> {
        let plain = style == ScalarStyle::Plain;
        if let Some(mapping) = self.mapping_without_key()
            && text == "<<"
            && (plain && tag.is_none() || tag.is_some_and(|tag| tag.suffix() == "merge"))
        {
            mapping.key = Some(Key::Merge(position));
            return Ok(());
        }
        let mut value =
            resolve(text, !plain, tag).map_err(|why| unresolvable(&why, text, position))?;
        if self.mapping_without_key().is_some()
            && matches!(value, Value::Integer(_) | Value::Float(_))
            && !is_integer(text)
        {
            if !survives_as_key(text) {
                return Err(fraction_as_key(position));
            }
            value = Value::String(text.to_owned());
        }
        self.budget.spend(Size::leaf(text.len()), position)?;
        self.finish(Node { value, position }, anchor)
    }

    fn start(
        &mut self,
        anchor: usize,
        position: Position,
        collection: Collection,
    ) -> Result<(), Problem> {
        if self.mapping_without_key().is_some() {
            return Err(collection_as_key(self.text, position));
        }
        if self.open.len() == self.limits.depth {
            return Err(Problem::too_deep(position, self.limits.depth));
        }
        self.budget.spend(Size::leaf(0), position)?;
        self.open.push(Open {
            position,
            anchor,
            collection,
        });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Problem> {
        let open = self
            .open
            .pop()
            .expect("the parser closes only what it opened");
        let value = match open.collection {
            Collection::List(items) => Value::List(items),
            Collection::Map(mapping) => Value::Map(mapping.entries),
        };
        self.finish(
            Node {
                value,
                position: open.position,
            },
            open.anchor,
        )
    }

    fn alias(&mut self, anchor: usize, position: Position) -> Result<(), Problem> {
        let Some(&(_, size)) = self.anchors.get(&anchor) else {
            return Err(Problem::new(
                position,
                "an anchor contains an alias to itself",
                "write the value out; Kubernetes objects cannot contain themselves",
            ));
        };
        if self.open.len() + size.height > self.limits.depth {
            return Err(Problem::too_deep(position, self.limits.depth));
        }
        self.budget.spend(size, position)?;
        let value = self.anchors[&anchor].0.value.clone();
        self.finish(Node { value, position }, 0)
    }

    /// Puts a complete node where it belongs: into the open collection, as key or as value, or at the top.
    fn finish(&mut self, node: Node, anchor: usize) -> Result<(), Problem> {
        if anchor != 0 {
            let size = Size::of(&node);
            // The copy is paid for, or nested anchors around one large value would multiply it for free.
            self.budget.spend(size, node.position)?;
            self.anchors.insert(anchor, (node.clone(), size));
        }
        match self.open.last_mut().map(|open| &mut open.collection) {
            None if node.is_null() => {}
            None => self.documents.push(node),
            Some(Collection::List(items)) => items.push(node),
            Some(Collection::Map(mapping)) => match mapping.key.take() {
                None => mapping.key = Some(Key::Name(key_text(self.text, &node)?, node.position)),
                Some(Key::Name(key, position)) => {
                    mapping.set(key, position, node)?;
                    return self.check_colon(position);
                }
                Some(Key::Merge(position)) => mapping.merge(node, position)?,
            },
        }
        Ok(())
    }

    /// In `{a:}` and `[a:, b]` kubectl takes the colon for a part of the text, where YAML 1.2 sees a key without a value.
    fn check_colon(&self, key: Position) -> Result<(), Problem> {
        let written = &self.text[key.offset as usize..];
        if !written.starts_with(['"', '\'']) {
            let behind = written[key.len as usize..].trim_start_matches(' ');
            if let Some(behind) = behind.strip_prefix(':') {
                self.check_glued(self.text.len() - behind.len(), "`:`")?;
            }
        }
        Ok(())
    }

    /// Refuses a comma or a bracket right behind something that, to kubectl, would swallow it.
    fn check_glued(&self, end: usize, what: &str) -> Result<(), Problem> {
        if !matches!(self.text.as_bytes().get(end), Some(b',' | b']' | b'}')) {
            return Ok(());
        }
        Err(Problem::new(
            end_of(&self.text[..end]),
            format!("{what} needs a space behind it here"),
            "write a space, or the value that is missing; kubectl reads this differently",
        ))
    }

    fn mapping_without_key(&mut self) -> Option<&mut Mapping> {
        match self.open.last_mut().map(|open| &mut open.collection) {
            Some(Collection::Map(mapping)) if mapping.key.is_none() => Some(mapping),
            _ => None,
        }
    }
}

fn unresolvable(why: &Unresolvable, text: &str, position: Position) -> Problem {
    let text = brief(text);
    match why {
        Unresolvable::NotFinite => Problem::new(
            position,
            format!("`{text}` is not a number that Kubernetes can store"),
            format!("quote it, as \"{text}\", if it is a string"),
        ),
        Unresolvable::TagMismatch(tag) => Problem::new(
            position,
            format!("`{text}` does not fit its tag {}", brief(tag)),
            "remove the tag or correct the value",
        ),
        Unresolvable::NotBase64 => Problem::new(
            position,
            "the text after !!binary is not base64",
            "Kubernetes wants base64 as a plain string: remove the tag",
        ),
        Unresolvable::BinaryNotText => Problem::new(
            position,
            "the bytes after !!binary are not text",
            "Kubernetes wants base64 as a plain string: remove the tag; kubectl would replace the bad bytes",
        ),
    }
}

fn position(span: Span) -> Position {
    let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let bytes = span.byte_range().unwrap_or_default();
    Position {
        line: small(span.start.line()),
        column: small(span.start.col() + 1),
        offset: small(bytes.start),
        len: small(bytes.len()),
    }
}
