//! The digest of a JSON value: equal for equal values, whatever their spelling.

use std::{borrow::Cow, fmt};

use serde_json::{Number, Value};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Hashes bytes as they are.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Hashes a JSON value in canonical form: keys sorted, no white space, integral numbers as integers.
    ///
    /// The API server sorts keys, escapes `<` and writes `1.0` as `1`; a file in Git does none of that. Both must
    /// have one digest, or every pass would see a change.
    pub fn of_json(value: &Value) -> Self {
        let mut text = Vec::with_capacity(1024);
        write_canonical(value, &mut text);
        Self::of_bytes(&text)
    }
}

impl Digest {
    /// The first twelve hex digits: enough to tell versions of one thing apart, short enough for an annotation.
    pub fn short(&self) -> String {
        base16ct::lower::encode_string(&self.0[..6])
    }
}

impl Digest {
    /// The first six bytes as a number, for where many are kept.
    pub fn number(&self) -> u64 {
        let bytes = self.0[..6].iter();
        bytes.fold(0, |number, byte| (number << 8) | u64::from(*byte))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&base16ct::lower::encode_string(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

fn write_canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => out.extend_from_slice(canonical_number(number).as_bytes()),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_canonical(item, out);
            }
            out.push(b']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            out.push(b'{');
            for (index, (key, item)) in fields.into_iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_string(key, out);
                out.push(b':');
                write_canonical(item, out);
            }
            out.push(b'}');
        }
    }
}

fn write_string(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("writing a string to memory cannot fail");
}

fn canonical_number(number: &Number) -> Cow<'static, str> {
    // Every integral float below 2^63 is exact in i64; at 2^63 the cast would saturate.
    const FIRST_TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < FIRST_TOO_LARGE => {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "checked above: integral and within i64"
            )]
            let integer = float as i64;
            integer.to_string().into()
        }
        _ => number.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(json: &str) -> Digest {
        Digest::of_json(&serde_json::from_str(json).unwrap())
    }

    #[test]
    fn spelling_does_not_matter() {
        let same = [
            (r#"{"a":1,"b":2}"#, r#"{ "b": 2, "a": 1 }"#),
            (r#"{"a":{"c":[],"b":{}}}"#, r#"{"a":{"b":{},"c":[]}}"#),
            ("1", "1.0"),
            ("1000", "1e3"),
            ("-0.0", "0"),
            (r#""<a>""#, r#""\u003ca\u003e""#),
        ];
        for (left, right) in same {
            assert_eq!(digest(left), digest(right), "{left} and {right}");
        }
    }

    #[test]
    fn values_matter() {
        let different = [
            ("1", r#""1""#),
            ("1", "1.5"),
            ("null", "false"),
            ("[1,2]", "[2,1]"),
            ("[]", "{}"),
            (r#"{"a":null}"#, "{}"),
            ("9223372036854775807", "9223372036854775808"),
            (r#"["a","b"]"#, r#"["a,b"]"#),
        ];
        for (left, right) in different {
            assert_ne!(digest(left), digest(right), "{left} and {right}");
        }
    }
}
