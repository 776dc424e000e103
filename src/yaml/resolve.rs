//! What a scalar means: the YAML 1.1 rules of the Go library in kubectl, rule for rule.
//!
//! The table is pinned by `fixtures/yaml/` and compared with the real kubectl. Two things look wrong and are not: a
//! float too large for 64 bits is a string (so the short commit `12e4567` survives), and `08` is eight, because it
//! fails as an octal number and then succeeds as a float.

use super::node::Value;
use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{GeneralPurpose, GeneralPurposeConfig},
};
use serde_saphyr::granit_parser::Tag;

/// Go does not mind bits of the last symbol that are in no byte.
const AS_GO: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

const CORE: &str = "tag:yaml.org,2002:";

/// Why a scalar has no value. The caller adds the place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unresolvable {
    /// `.inf` and `.nan`: JSON has no such numbers.
    NotFinite,
    /// As in `!!int abc`.
    TagMismatch(String),
    NotBase64,
    /// kubectl would replace the bad bytes and send something else than the file says.
    BinaryNotText,
}

/// Returns the value of a scalar. `quoted` covers quotes and block scalars.
pub(super) fn resolve(text: &str, quoted: bool, tag: Option<&Tag>) -> Result<Value, Unresolvable> {
    let Some(tag) = tag else {
        return if quoted {
            Ok(string(text))
        } else {
            plain(text)
        };
    };
    let core = tag.suffix_in_namespace(CORE);
    match core.as_deref() {
        Some("binary") => binary(text),
        Some(wanted @ ("null" | "bool" | "int" | "float")) => match (wanted, plain(text)?) {
            ("null", value @ Value::Null)
            | ("bool", value @ Value::Bool(_))
            | ("float", value @ Value::Float(_)) => Ok(value),
            ("int", value @ (Value::Integer(_) | Value::Float(_))) if is_integer(text) => Ok(value),
            #[expect(clippy::cast_precision_loss, reason = "the tag asks for a float")]
            ("float", Value::Integer(integer)) => Ok(Value::from_float(integer as f64)),
            _ => Err(Unresolvable::TagMismatch(tag.original())),
        },
        // `!!str`, `!!timestamp`, and every tag of the user's own leave the text alone.
        _ => Ok(string(text)),
    }
}

/// Whether a number was written as an integer, not as a float that happens to be whole.
pub(super) fn is_integer(text: &str) -> bool {
    integer(&text.replace('_', "")).is_some()
}

/// Whether kubectl keeps a key that is a float as it was written. It prints such keys with 32 bits of precision and
/// Go's shortest format, which drops zeros and turns to exponents at a million: `1.7` survives, `1.10` does not.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the loss is what is being looked for"
)]
pub(super) fn survives_as_key(text: &str) -> bool {
    text.parse::<f64>()
        .is_ok_and(|float| (1e-4..1e6).contains(&float.abs()) && (float as f32).to_string() == text)
}

fn string(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn plain(text: &str) -> Result<Value, Unresolvable> {
    // The first character decides which rules apply at all; most scalars are done here.
    Ok(match text.as_bytes().first() {
        None => Value::Null,
        Some(b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~') => {
            match text {
                "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On"
                | "ON" => Value::Bool(true),
                "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off"
                | "OFF" => Value::Bool(false),
                "~" | "null" | "Null" | "NULL" => Value::Null,
                _ => string(text),
            }
        }
        Some(b'.' | b'+' | b'-' | b'0'..=b'9') => number(text)?,
        Some(_) => string(text),
    })
}

fn number(text: &str) -> Result<Value, Unresolvable> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Err(Unresolvable::NotFinite);
    }
    // A leading dot is read as it stands; otherwise underscores are separators anywhere.
    let digits = if text.starts_with('.') {
        text.to_owned()
    } else {
        text.replace('_', "")
    };
    if let Some(value) = integer(&digits) {
        return Ok(value);
    }
    Ok(match digits.parse::<f64>() {
        Ok(float) if is_float(&digits) && float.is_finite() => Value::from_float(float),
        _ => string(text),
    })
}

/// Returns an integer of up to 64 bits: `0x`, `0o`, `0b` and a bare leading zero name the base.
fn integer(text: &str) -> Option<Value> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (base, digits) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &unsigned[2..]),
        [b'0', b'o' | b'O', ..] => (8, &unsigned[2..]),
        [b'0', b'b' | b'B', ..] => (2, &unsigned[2..]),
        [b'0', _, ..] => (8, &unsigned[1..]),
        _ => (10, unsigned),
    };
    // from_str_radix would accept a second sign.
    if !digits.starts_with(|first: char| first.is_ascii_hexdigit()) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, base).ok()?;
    if negative {
        return 0_i64.checked_sub_unsigned(magnitude).map(Value::Integer);
    }
    match i64::try_from(magnitude) {
        Ok(integer) => Some(Value::Integer(integer)),
        // Go parses a signed text as a signed number only.
        Err(_) if text.starts_with('+') => None,
        // Between 63 and 64 bits kubectl ends up with a float, as its objects know only signed integers.
        #[expect(
            clippy::cast_precision_loss,
            reason = "the loss is kubectl's, and so is the value sent"
        )]
        Err(_) => Some(Value::Float(magnitude as f64)),
    }
}

/// Whether text is digits with a point or an exponent, as Go's YAML library draws the line.
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let exponent_fits = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });
    all_digits(whole)
        && all_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent_fits
}

fn binary(text: &str) -> Result<Value, Unresolvable> {
    let mut text = text.to_owned();
    text.retain(|character| !matches!(character, '\r' | '\n'));
    let bytes = AS_GO.decode(text).map_err(|_| Unresolvable::NotBase64)?;
    String::from_utf8(bytes)
        .map(Value::String)
        .map_err(|_| Unresolvable::BinaryNotText)
}
