//! The positioned tree.

/// One value and the place it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub value: Value,
    /// Where the value starts. A value that came through an alias carries the place of the alias; what is inside it
    /// keeps the place where it was written.
    pub position: Position,
}

/// What kubectl would send for a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    /// Invariant: finite, and no integer that fits in 64 bits. Kept by `from_float`.
    Float(f64),
    String(String),
    List(Vec<Node>),
    /// In file order. Invariant: no key occurs twice. Kept by the readers.
    Map(Vec<Entry>),
}

/// One `key: value` of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub key: String,
    pub key_position: Position,
    pub value: Node,
}

/// A place in a file. Lines and columns count from one, columns in characters; offset and length count bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    pub line: u32,
    pub column: u32,
    pub offset: u32,
    /// Zero when the end is not known or the value is not written out, as in `key:` with nothing behind it.
    pub len: u32,
}

impl Node {
    /// Returns the value of `key` when this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// Returns the entry of `key`, which also tells where the key itself stands.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// Returns the entries of a mapping, in file order; nothing for any other value.
    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// Returns the elements of a list; nothing for any other value.
    pub fn items(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// Follows a JSON pointer (RFC 6901), as in `/spec/containers/0/image`.
    pub fn pointer(&self, pointer: &str) -> Option<&Self> {
        if pointer.is_empty() {
            return Some(self);
        }
        pointer
            .strip_prefix('/')?
            .split('/')
            .try_fold(self, |node, step| {
                let step = step.replace("~1", "/").replace("~0", "~");
                match &node.value {
                    Value::List(items) => items.get(step.parse::<usize>().ok()?),
                    _ => node.get(&step),
                }
            })
    }

    /// Returns the bare value, keys in file order.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Integer(value) => (*value).into(),
            Value::Float(value) => (*value).into(),
            Value::String(value) => value.as_str().into(),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Map(entries) => entries
                .iter()
                .map(|entry| (entry.key.clone(), entry.value.to_json()))
                .collect(),
        }
    }

    /// Returns the bare value as compact JSON text, ready to be sent or hashed.
    pub fn to_raw_json(&self) -> Box<serde_json::value::RawValue> {
        serde_json::value::to_raw_value(&self.to_json()).expect("a JSON value always has a text")
    }
}

impl Value {
    /// Returns the value kubectl makes of a finite float: it prints the float without an exponent and reads the text
    /// back, so `1.0` and `1e3` become integers when they fit in 64 bits.
    pub(super) fn from_float(float: f64) -> Self {
        // Display pads with zeros up to any magnitude, so 1e308 is 309 characters that do not parse as an integer.
        match float.to_string().parse() {
            Ok(integer) => Self::Integer(integer),
            Err(_) if float == 0.0 => Self::Integer(0),
            Err(_) => Self::Float(float),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integral_floats_become_the_integer_that_go_prints() {
        assert_eq!(Value::from_float(1e3), Value::Integer(1000));
        assert_eq!(Value::from_float(-0.0), Value::Integer(0));
        assert_eq!(Value::from_float(0.5), Value::Float(0.5));
        assert_eq!(Value::from_float(1e20), Value::Float(1e20));
        // Two to the 63rd minus 1024: the shortest digits, padded.
        assert_eq!(
            Value::from_float(9_223_372_036_854_774_784.0),
            Value::Integer(9_223_372_036_854_775_000)
        );
    }

    #[test]
    fn a_pointer_walks_mappings_and_lists() {
        let nodes = super::super::read("a.yaml", b"a:\n  - b/c: 1\n    m~n: 2\n").unwrap();
        let found = nodes[0].pointer("/a/0/b~1c").unwrap();
        assert_eq!(found.value, Value::Integer(1));
        assert_eq!((found.position.line, found.position.column), (2, 10));
        assert_eq!(
            nodes[0].pointer("/a/0/m~0n").unwrap().value,
            Value::Integer(2)
        );
        assert_eq!(nodes[0].pointer("/a/1"), None);
        assert_eq!(nodes[0].pointer("/a/x"), None);
        assert_eq!(nodes[0].pointer("a"), None);
        assert_eq!(nodes[0].pointer("").unwrap(), &nodes[0]);
    }
}
