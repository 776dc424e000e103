use super::node::{Node, Position, Value};
use super::read::end_of;
use super::*;
use proptest::prelude::*;
use serde_json::json;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/yaml");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            path.is_file()
                && !name.ends_with(".want.json")
                && !name.ends_with(".refused.txt")
                && name != "differences.yaml"
        })
        .collect();
    paths.sort();
    paths
}

/// `SNAPSHOTS=overwrite` records the answers anew.
#[test]
fn every_fixture_reads_as_recorded() {
    for path in fixtures() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let (want, refused) = (
            path.with_extension("want.json"),
            path.with_extension("refused.txt"),
        );
        assert!(
            !(want.exists() && refused.exists()),
            "{name} has two answers"
        );
        let (actual, recorded) = match read(name, &std::fs::read(&path).unwrap()) {
            Ok(documents) => {
                let values: Vec<_> = documents.iter().map(Node::to_json).collect();
                (serde_json::to_string_pretty(&values).unwrap(), want)
            }
            Err(error) => (error.render(false), refused),
        };
        let recorded =
            snapbox::Data::read_from(&recorded, Some(snapbox::data::DataFormat::Text)).raw();
        snapbox::assert_data_eq!(format!("{actual}\n"), recorded);
    }
}

fn visit(node: &Node, seen: &mut impl FnMut(Position)) {
    seen(node.position);
    node.items().iter().for_each(|item| visit(item, seen));
    for entry in node.entries() {
        seen(entry.key_position);
        visit(&entry.value, seen);
    }
}

#[test]
fn every_value_carries_its_position() {
    for path in fixtures() {
        let text = std::fs::read(&path).unwrap();
        let Ok(documents) = read("fixture", &text) else {
            continue;
        };
        let text = String::from_utf8(text).unwrap();
        for document in &documents {
            visit(document, &mut |position| {
                let place = end_of(&text[..position.offset as usize]);
                // The parser does not count a byte order mark as a column.
                let bom = u32::from(position.line == 1 && text.starts_with('\u{feff}'));
                assert_eq!(
                    (place.line, place.column - bom),
                    (position.line, position.column),
                    "{} {position:?}",
                    path.display()
                );
            });
        }
    }
}

#[test]
fn an_alias_stands_where_it_is_written_and_its_content_where_it_was_anchored() {
    let documents = read("a.yaml", b"a: &x\n  b: 1\nc: *x\n").unwrap();
    let alias = documents[0].get("c").unwrap();
    assert_eq!((alias.position.line, alias.position.column), (3, 4));
    assert_eq!(alias.get("b").unwrap().position.line, 2);
}

fn refusal(bytes: &[u8]) -> Error {
    let error = read("big.yaml", bytes).unwrap_err();
    assert!(error.render(true).len() < 4096, "{}", error.render(false));
    error
}

#[test]
fn a_file_of_two_mebibytes_is_refused() {
    let error = refusal("# comment\n".repeat(210_000).as_bytes());
    assert_eq!(
        error.to_string(),
        "big.yaml:1:1: the file has 2100000 bytes, more than the limit of 1048576"
    );
    assert_eq!(error.hint, "split it into several files, one object each");
}

#[test]
fn an_alias_bomb_is_refused_where_it_goes_off() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..=10 {
        let alias = format!("*a{}", level - 1);
        writeln!(
            bomb,
            "a{level}: &a{level} [{}]",
            [alias.as_str(); 10].join(", ")
        )
        .unwrap();
    }
    let error = refusal(bomb.as_bytes());
    assert_eq!(error.message, "more than 250000 values in one file");
    assert_eq!(error.line, 6);
}

#[test]
fn a_long_string_cannot_be_repeated_without_end() {
    let bomb = format!(
        "a: &a {}\nb: [{}]\n",
        "x".repeat(100_000),
        "*a,".repeat(1_000)
    );
    assert_eq!(
        refusal(bomb.as_bytes()).message,
        "aliases repeat more text than a file may hold"
    );
}

#[test]
fn anchors_around_anchors_are_paid_for() {
    let mut bomb = String::new();
    (0..50).for_each(|level| write!(bomb, "&a{level} [").unwrap());
    bomb.push_str(&"x,".repeat(50_000));
    bomb.push_str(&"]".repeat(50));
    assert_eq!(
        refusal(bomb.as_bytes()).message,
        "more than 250000 values in one file"
    );
}

#[test]
fn twenty_thousand_nested_lists_are_refused() {
    let flow = refusal("[".repeat(20_000).as_bytes());
    assert_eq!(
        flow.to_string(),
        "big.yaml:1:65: nested deeper than 64 levels"
    );
    let block = refusal("- ".repeat(20_000).as_bytes());
    assert_eq!(
        block.to_string(),
        "big.yaml:1:129: nested deeper than 64 levels"
    );
    let json =
        refusal(format!("{{\"a\":{}{}}}", "[".repeat(20_000), "]".repeat(20_000)).as_bytes());
    assert_eq!(
        json.to_string(),
        "big.yaml:1:69: nested deeper than 64 levels"
    );
}

#[test]
fn aliases_cannot_nest_deeper_than_brackets() {
    let nested = format!("a: &a {}{}\n", "[".repeat(60), "]".repeat(60));
    assert!(read("a.yaml", nested.as_bytes()).is_ok());
    let deeper = format!("{nested}b: [[[[*a]]]]\n");
    assert_eq!(
        refusal(deeper.as_bytes()).message,
        "nested deeper than 64 levels"
    );
}

#[test]
fn limits_can_be_set() {
    let limits = Limits {
        nodes: 3,
        ..Limits::default()
    };
    assert!(read_within(&limits, "a.yaml", b"a: 1\n").is_ok());
    assert!(read_within(&limits, "a.yaml", b"a: [1]\n").is_err());
    assert!(read_within(&limits, "a.json", b"{\"a\": [1, 2, 3]}").is_err());
}

#[test]
fn a_later_room_reports_as_this_one_does() {
    let source = b"kind: Pod\nname: x\nkind2: y\n";
    let position = read("pod.yaml", source).unwrap()[0]
        .entry("name")
        .unwrap()
        .key_position;
    let other = Position {
        line: 3,
        column: 1,
        offset: 18,
        len: 5,
    };
    let error = Error::at("pod.yaml", source, position, "no such field", "remove it")
        .also(source, other, "see here");
    assert_eq!(error.to_string(), "pod.yaml:2:1: no such field");
    snapbox::assert_data_eq!(
        error.render(false),
        snapbox::str![[r"
error: no such field
 --> pod.yaml:2:1
  |
2 | name: x
  | ^^^^
  |
 ::: pod.yaml:3:1
  |
3 | kind2: y
  | ----- see here
  |
  = help: remove it
"]]
    );
}

/// Strings that a YAML 1.1 reader takes for something else when they are not quoted, or whose text is easily lost.
pub(super) fn hostile() -> Vec<String> {
    serde_json::from_str(include_str!("../../fixtures/yaml/write/hostile.json")).unwrap()
}

#[test]
fn the_json_of_a_node_keeps_the_order_of_the_file() {
    let documents = read("a.yaml", b"z: 1\na: [1.0, 'x']\n").unwrap();
    assert_eq!(documents[0].to_raw_json().get(), r#"{"z":1,"a":[1,"x"]}"#);
    assert!(matches!(
        documents[0].get("z").unwrap().value,
        Value::Integer(1)
    ));
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(hostile()),
        "[ab01:#'\"\\\\ \n\t,\\[\\]{}&*!|>%@`?~.=_ey\u{85}\u{2028}\r-]{0,12}",
        any::<String>(),
    ]
}

pub(super) fn any_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        4 => any_text().prop_map(serde_json::Value::from),
        1 => Just(serde_json::Value::Null),
        1 => any::<bool>().prop_map(serde_json::Value::from),
        1 => any::<i64>().prop_map(serde_json::Value::from),
        1 => (proptest::num::f64::NORMAL).prop_map(|float| Node {
            value: Value::from_float(float),
            position: Position::default(),
        }.to_json()),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(serde_json::Value::from),
            proptest::collection::vec((any_text(), inner), 0..5)
                .prop_map(|members| members.into_iter().collect()),
        ]
    })
}

/// Real syntax, shaken: far more likely to reach deep states than random bytes.
fn any_file() -> impl Strategy<Value = Vec<u8>> {
    let piece = proptest::sample::select(vec![
        "a", "1", " ", "  ", "\n", "\n  ", "\t", "\r", ":", ": ", "- ", "#", "'", "\"", "|", ">",
        "[", "]", "{", "}", ",", "&x ", "*x", "!", "!!int ", "<<: ", "? ", "%", "---\n", "...\n",
        "\\", "é", "~", "\u{feff}", "\u{2028}",
    ]);
    prop_oneof![
        proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat().into_bytes()),
        proptest::collection::vec(any::<u8>(), 0..200),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn json_reads_as_serde_json_reads_it(value in any_value()) {
        let value = json!({ "value": value });
        let documents = read("a.json", serde_json::to_string_pretty(&value).unwrap().as_bytes()).unwrap();
        prop_assert_eq!(documents[0].to_json(), value);
    }

    #[test]
    fn no_file_is_too_hostile_to_be_answered(bytes in any_file()) {
        if let Err(error) = read("hostile.yaml", &bytes) {
            prop_assert!(error.line >= 1 && error.column >= 1);
            prop_assert!(!error.message.contains('\n') && !error.hint.is_empty());
            prop_assert!(error.render(false).len() < 4096 && error.render(true).len() < 4096);
        }
    }
}
