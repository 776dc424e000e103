//! Base64 as Go decodes it for `!!binary`.

/// Decodes padded standard base64; line breaks may stand anywhere.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let symbols: Vec<u8> = text
        .bytes()
        .filter(|byte| !matches!(byte, b'\r' | b'\n'))
        .collect();
    if !symbols.len().is_multiple_of(4) {
        return None;
    }
    let padding = symbols
        .iter()
        .rev()
        .take_while(|symbol| **symbol == b'=')
        .count();
    if padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(symbols.len() / 4 * 3);
    for group in symbols[..symbols.len() - padding].chunks(4) {
        let mut bits = 0_u32;
        for symbol in group {
            bits = bits << 6 | sextet(*symbol)?;
        }
        bits <<= 6 * (4 - group.len());
        bytes.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    Some(bytes)
}

fn sextet(symbol: u8) -> Option<u32> {
    let value = match symbol {
        b'A'..=b'Z' => symbol - b'A',
        b'a'..=b'z' => symbol - b'a' + 26,
        b'0'..=b'9' => symbol - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
}
