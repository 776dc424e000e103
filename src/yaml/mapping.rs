//! Mappings as kubectl builds them: keys become strings, `<<` merges, and no key is set twice.

use super::hint;
use super::node::{Entry, Node, Position, Value};
use super::problem::Problem;
use std::collections::HashMap;

/// A mapping while it is being read.
#[derive(Default)]
pub(super) struct Mapping {
    pub(super) entries: Vec<Entry>,
    slots: HashMap<String, Slot>,
    /// Read, and still without its value.
    pub(super) key: Option<Key>,
}

struct Slot {
    index: usize,
    /// Where the key was written in this mapping itself, as opposed to merged into it.
    written: Option<Position>,
}

pub(super) enum Key {
    Name(String, Position),
    /// `<<`
    Merge(Position),
}

impl Mapping {
    pub(super) fn set(
        &mut self,
        key: String,
        key_position: Position,
        value: Node,
    ) -> Result<(), Problem> {
        let index = self.entries.len();
        if let Some(slot) = self.slots.get_mut(&key) {
            if let Some(first) = slot.written {
                return Err(Problem::duplicate_key(&key, key_position, first));
            }
            slot.written = Some(key_position);
            self.entries[slot.index] = Entry {
                key,
                key_position,
                value,
            };
            return Ok(());
        }
        self.slots.insert(
            key.clone(),
            Slot {
                index,
                written: Some(key_position),
            },
        );
        self.entries.push(Entry {
            key,
            key_position,
            value,
        });
        Ok(())
    }

    /// Merges as kubectl's library does: at this point in the mapping, so a merge wins over what stands above it and
    /// loses to what follows. In a list of mappings the first one wins.
    pub(super) fn merge(&mut self, node: Node, position: Position) -> Result<(), Problem> {
        let sources = match node.value {
            Value::Map(_) => vec![node],
            Value::List(items) => items,
            _ => return Err(nothing_to_merge(position)),
        };
        for source in sources.into_iter().rev() {
            let Value::Map(entries) = source.value else {
                return Err(nothing_to_merge(source.position));
            };
            for entry in entries {
                if let Some(slot) = self.slots.get(&entry.key) {
                    self.entries[slot.index].value = entry.value;
                } else {
                    self.slots.insert(
                        entry.key.clone(),
                        Slot {
                            index: self.entries.len(),
                            written: None,
                        },
                    );
                    self.entries.push(entry);
                }
            }
        }
        Ok(())
    }
}

/// Returns the string kubectl makes of a key.
pub(super) fn key_text(text: &str, node: &Node) -> Result<String, Problem> {
    match &node.value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(value) => Ok(value.to_string()),
        Value::Integer(value) => Ok(value.to_string()),
        Value::Float(_) => Err(fraction_as_key(node.position)),
        Value::Null => Err(Problem::new(
            node.position,
            "a mapping key is missing",
            "write a name before the `:`",
        )),
        Value::List(_) | Value::Map(_) => Err(collection_as_key(text, node.position)),
    }
}

pub(super) fn fraction_as_key(position: Position) -> Problem {
    Problem::new(
        position,
        "a number as a key, written in a way that would not survive",
        "quote the key; kubectl would rewrite it, as `1.10` to `1.1`",
    )
}

pub(super) fn collection_as_key(text: &str, position: Position) -> Problem {
    // The inner brace of `{{ .Values.name }}` is a mapping in the place of a key.
    let template = text[..position.offset as usize].ends_with('{');
    let hint = if template {
        hint::TEMPLATE
    } else {
        "keys must be plain names; quote the key if it begins with a bracket"
    };
    Problem::new(position, "a list or a mapping as a key", hint)
}

fn nothing_to_merge(position: Position) -> Problem {
    Problem::new(
        position,
        "`<<` needs a mapping or a list of mappings",
        "merge an anchored mapping, as `<<: *defaults`, or quote the key if it is a name",
    )
}
