//! Values as YAML that kubectl reads back unchanged.

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_saphyr::{DoubleQuoted, ser_options};

/// A value that YAML, or JSON before it, has no form for.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("could not turn a value into JSON")]
    Json(#[source] serde_json::Error),
    #[error("could not turn a value into YAML")]
    Yaml(#[source] serde_saphyr::SerializeError),
}

/// Returns a value as one YAML document.
pub fn write(value: &impl Serialize) -> Result<String, WriteError> {
    // By way of JSON, which is what Kubernetes stores: raw JSON inside the value is opened, keys become strings.
    let value = serde_json::to_value(value).map_err(WriteError::Json)?;
    let options = ser_options! {
        // Folding saves nothing in a manifest and moves every line of a paragraph when one word changes.
        folded_wrap_chars: usize::MAX,
    };
    serde_saphyr::to_string_with_options(&ForKubectl(&value), options).map_err(WriteError::Yaml)
}

/// Returns values as a stream of documents, each behind a `---`.
pub fn write_all<T: Serialize>(values: impl IntoIterator<Item = T>) -> Result<String, WriteError> {
    values
        .into_iter()
        .try_fold(String::new(), |mut stream, value| {
            stream.push_str("---\n");
            stream.push_str(&write(&value)?);
            Ok(stream)
        })
}

/// A value in a form that kubectl can read, where serde-saphyr's own choice goes too far for it.
struct ForKubectl<'a>(&'a Value);

impl Serialize for ForKubectl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Array(items) => serializer.collect_seq(items.iter().map(ForKubectl)),
            Value::Object(members) => {
                serializer.collect_map(members.iter().map(|(key, value)| (key, ForKubectl(value))))
            }
            // A block scalar that begins with a tab is good YAML, but to kubectl's parser the tab is bad indentation.
            Value::String(text) if text.trim_start_matches('\n').starts_with('\t') => {
                DoubleQuoted(text).serialize(serializer)
            }
            other => other.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::node::Node;
    use super::super::read;
    use super::super::tests::{any_value, hostile};
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn reads_back(value: &serde_json::Value) {
        let text = write(value).unwrap();
        let documents = read("written.yaml", text.as_bytes())
            .unwrap_or_else(|error| panic!("{}", error.render(false)));
        let expected = if value.is_null() {
            vec![]
        } else {
            vec![value.clone()]
        };
        assert_eq!(
            documents.iter().map(Node::to_json).collect::<Vec<_>>(),
            expected,
            "{text}"
        );
    }

    #[test]
    fn hostile_strings_survive_in_every_place() {
        for text in &hostile() {
            for value in [
                json!(text),
                json!({ "key": text }),
                json!({ text: "value" }),
                json!([text]),
                json!({"a": [{ text: { text: [text, text] } }]}),
            ] {
                reads_back(&value);
            }
        }
    }

    #[test]
    fn a_stream_is_written_and_read_in_order() {
        let values = [json!({"a": 1}), json!({"b": "---"}), json!([])];
        let stream = write_all(&values).unwrap();
        assert_eq!(stream, "---\na: 1\n---\nb: \"---\"\n---\n[]\n");
        let documents = read("stream.yaml", stream.as_bytes()).unwrap();
        assert_eq!(
            documents.iter().map(Node::to_json).collect::<Vec<_>>(),
            values
        );
    }

    #[test]
    fn raw_json_inside_a_value_is_opened() {
        let raw = serde_json::value::RawValue::from_string(
            r#"{"mode": "0644", "size": 1.50}"#.to_owned(),
        )
        .unwrap();
        assert_eq!(write(&[raw]).unwrap(), "- mode: \"0644\"\n  size: 1.5\n");
    }

    #[test]
    fn a_multi_line_text_is_written_as_a_block() {
        assert_eq!(
            write(&json!({"script": "set -e\necho hi\n"})).unwrap(),
            "script: |\n  set -e\n  echo hi\n"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_written_reads_back_as_it_was(value in any_value()) {
            reads_back(&value);
        }
    }
}
