//! Files that begin with a brace: JSON by JSON's rules, with positions.
//!
//! `serde_json` checks and decodes; the places come from where its raw slices lie in the source. Every level looks at its
//! slice again, so the cost is size times depth, which the limits bound.

use super::node::{Entry, Node, Position, Value};
use super::problem::Problem;
use super::read::{Limits, end_of};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fmt;

pub(super) enum Failure {
    /// Not JSON; it may still be YAML.
    Syntax(Problem),
    /// JSON that we do not want, whatever YAML says.
    Refused(Problem),
}

/// Returns the documents of a stream of JSON values, one after another without separators.
pub(super) fn documents(text: &str, limits: &Limits) -> Result<Vec<Node>, Failure> {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader {
        text,
        limits,
        nodes: 0,
        last: Position {
            line: 1,
            column: 1,
            offset: 0,
            len: 0,
        },
    };
    let mut documents = Vec::new();
    for raw in serde_json::Deserializer::from_str(body).into_iter::<&RawValue>() {
        let raw = raw.map_err(|error| Failure::Syntax(reader.problem(&error, body)))?;
        let node = reader.node(raw, 0)?;
        if !node.is_null() {
            documents.push(node);
        }
    }
    Ok(documents)
}

struct Reader<'a> {
    text: &'a str,
    limits: &'a Limits,
    nodes: usize,
    /// The last place asked for. Values are visited in file order, so each search goes on from here.
    last: Position,
}

impl<'a> Reader<'a> {
    fn node(&mut self, raw: &'a RawValue, depth: usize) -> Result<Node, Failure> {
        let position = self.position(raw);
        self.nodes += 1;
        if self.nodes > self.limits.nodes {
            return Err(Failure::Refused(Problem::too_many_values(
                position,
                self.limits.nodes,
            )));
        }
        let first = raw.get().as_bytes()[0];
        if matches!(first, b'{' | b'[') && depth == self.limits.depth {
            return Err(Failure::Refused(Problem::too_deep(
                position,
                self.limits.depth,
            )));
        }
        let value = match first {
            b'{' => self.members(raw, depth + 1)?,
            b'[' => {
                let items: Vec<&'a RawValue> = self.parse(raw)?;
                Value::List(
                    items
                        .into_iter()
                        .map(|item| self.node(item, depth + 1))
                        .collect::<Result<_, _>>()?,
                )
            }
            b'"' => Value::String(self.parse(raw)?),
            b't' | b'f' => Value::Bool(self.parse(raw)?),
            b'n' => Value::Null,
            _ => {
                // Only to have it checked: without a feature that others could switch off, serde_json's floats may be
                // wrong in the last bit.
                let _: serde_json::Number = self.parse(raw)?;
                raw.get()
                    .parse()
                    .map_or_else(|_| Value::from_float(float(raw)), Value::Integer)
            }
        };
        Ok(Node { value, position })
    }

    fn members(&mut self, raw: &'a RawValue, depth: usize) -> Result<Value, Failure> {
        let Members(members) = self.parse(raw)?;
        let mut entries = Vec::with_capacity(members.len());
        let mut seen = HashMap::with_capacity(members.len());
        for (raw_key, raw_value) in members {
            let key: String = self.parse(raw_key)?;
            let key_position = self.position(raw_key);
            if let Some(first) = seen.insert(key.clone(), key_position) {
                return Err(Failure::Refused(Problem::duplicate_key(
                    &key,
                    key_position,
                    first,
                )));
            }
            let value = self.node(raw_value, depth)?;
            entries.push(Entry {
                key,
                key_position,
                value,
            });
        }
        Ok(Value::Map(entries))
    }

    /// Decodes a part of a document that has already passed as JSON: what fails here, as a number out of range, is
    /// wrong in YAML too.
    fn parse<T: Deserialize<'a>>(&self, raw: &'a RawValue) -> Result<T, Failure> {
        serde_json::from_str(raw.get())
            .map_err(|error| Failure::Refused(self.problem(&error, raw.get())))
    }

    fn position(&mut self, raw: &RawValue) -> Position {
        let offset = self.offset_of(raw.get());
        let start = self.last.offset as usize;
        let step = end_of(&self.text[start..offset]);
        let column = if step.line == 1 {
            self.last.column - 1
        } else {
            0
        };
        self.last = Position {
            line: self.last.line + step.line - 1,
            column: column + step.column,
            offset: u32::try_from(offset).unwrap_or(u32::MAX),
            len: u32::try_from(raw.get().len()).unwrap_or(u32::MAX),
        };
        self.last
    }

    fn offset_of(&self, part: &str) -> usize {
        part.as_ptr() as usize - self.text.as_ptr() as usize
    }

    fn problem(&self, error: &serde_json::Error, part: &str) -> Problem {
        // serde_json counts lines by line feeds and columns by bytes, and points behind what it did not like.
        let before: usize = part
            .split_inclusive('\n')
            .take(error.line().saturating_sub(1))
            .map(str::len)
            .sum();
        let mut offset =
            self.offset_of(part) + (before + error.column().saturating_sub(1)).min(part.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let text = error.to_string();
        let message = text.split(" at line ").next().unwrap_or_default();
        Problem::new(
            end_of(&self.text[..offset]),
            format!("not valid JSON: {message}"),
            "a file that begins with `{` is read as JSON; check commas, quotes and brackets before this place",
        )
    }
}

fn float(raw: &RawValue) -> f64 {
    raw.get().parse().expect("a JSON number is a Rust float")
}

/// The members of a JSON object as raw slices, keys too, so that both have a place.
struct Members<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Collect)
    }
}
