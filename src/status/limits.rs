//! What the hub refuses. One text beyond these limits of the CRD costs a work its whole status.

/// Most characters of a JSON text among the feedback values.
pub(super) const JSON_CHARACTERS: usize = 1024;
/// The hub counts characters; bytes are never fewer.
const MESSAGE_BYTES: usize = 32_768;
const TYPE_BYTES: usize = 316;

/// Answers whether the hub takes this text as a condition's type: a name, perhaps after a DNS subdomain and a slash.
pub(super) fn is_type(text: &str) -> bool {
    let (domain, name) = match text.split_once('/') {
        Some((domain, name)) => (Some(domain), name),
        None => (None, text),
    };
    let is_lower = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= TYPE_BYTES
        && is_framed(name, |byte| byte.is_ascii_alphanumeric(), b"-_.")
        && domain.is_none_or(|domain| {
            domain
                .split('.')
                .all(|label| is_framed(label, is_lower, b"-"))
        })
}

/// Answers whether a text begins and ends with a letter and has only letters and inner characters between.
fn is_framed(text: &str, is_letter: impl Fn(u8) -> bool, inner: &[u8]) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|&byte| is_letter(byte))
        && bytes.last().is_some_and(|&byte| is_letter(byte))
        && bytes
            .iter()
            .all(|&byte| is_letter(byte) || inner.contains(&byte))
}

/// Cuts a text that a server may have made too long for the hub.
pub(super) fn clip(mut text: String) -> String {
    const MARK: &str = "…";
    if text.len() > MESSAGE_BYTES {
        text.truncate(text.floor_char_boundary(MESSAGE_BYTES - MARK.len()));
        text.push_str(MARK);
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{MESSAGE_BYTES, clip, is_type};

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let cut = |text: &str| clip(text.repeat(MESSAGE_BYTES));
        assert_eq!(clip("a".repeat(MESSAGE_BYTES)), "a".repeat(MESSAGE_BYTES));
        assert_eq!(cut("ab").len(), MESSAGE_BYTES);
        assert!(cut("ab").ends_with("ba…"));
        // 32,765 bytes hold 8,191 characters of four bytes.
        assert_eq!(cut("🦀"), "🦀".repeat(8_191) + "…");
    }

    #[test]
    fn the_hub_takes_only_some_texts_as_a_type() {
        let cases = [
            ("Complete", true),
            ("a", true),
            ("my-rule_2.x", true),
            ("example.com/Ready", true),
            ("ex-1.com/Ready", true),
            ("", false),
            ("two words", false),
            ("-a", false),
            ("a-", false),
            ("Größe", false),
            ("/Ready", false),
            ("example.com/", false),
            ("Example.com/Ready", false),
            ("example..com/Ready", false),
            ("-example.com/Ready", false),
            ("a/b/c", false),
        ];
        for (text, is_taken) in cases {
            assert_eq!(is_type(text), is_taken, "{text:?}");
        }
        assert!(is_type(&"a".repeat(316)));
        assert!(!is_type(&"a".repeat(317)));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_cut_message_is_the_beginning_and_fits(text in "[aß🦀]{1,4}") {
            let long = text.repeat(MESSAGE_BYTES);
            let cut = clip(long.clone());
            prop_assert!(cut.len() <= MESSAGE_BYTES);
            prop_assert!(cut.len() > MESSAGE_BYTES - 4);
            prop_assert!(long.starts_with(cut.trim_end_matches('…')));
        }
    }
}
