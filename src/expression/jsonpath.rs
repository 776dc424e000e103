//! Kubernetes' JSONPath, carried out by an RFC 9535 engine: a path is read as client-go reads it and written anew.
//!
//! What the engine answers differently from client-go is in docs/spec/expressions.md: above all, an index past the end
//! and a step into a value of the wrong type select nothing here, where client-go reports an error.

use std::fmt::Write as _;

use serde_json::Value;
use serde_json_path::{JsonPath, PathElement};

use super::dialect::{self, Filter, Literal, Step};

/// A path that was understood.
#[derive(Debug)]
pub(super) struct Path(Plan);

#[derive(Debug)]
enum Plan {
    /// Keys only, as nearly all paths are: a look-up that needs no engine.
    Keys(Vec<String>),
    Query {
        query: JsonPath,
        bounded: bool,
    },
}

/// Why a path has no answer: client-go finds some mistakes when it reads a path, and some when it follows it.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum Error {
    #[error("{0}")]
    Read(String),
    #[error("{0}")]
    Find(String),
}

/// Where a value is in an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Key(String),
    Item(usize),
}

impl Path {
    /// Reads a path as users write it, without braces.
    pub(super) fn read(path: &str) -> Result<Self, Error> {
        let steps = dialect::read(path).map_err(Error::Read)?;
        let keys = steps.iter().map(|step| match step {
            Step::Field(name) => Some(name.clone()),
            _ => None,
        });
        if let Some(keys) = keys.collect() {
            return Ok(Self(Plan::Keys(keys)));
        }
        let mut query = "$".to_owned();
        write_steps(&steps, &mut query)?;
        let bounded = steps.iter().all(is_bounded);
        JsonPath::parse(&query)
            .map(|query| Self(Plan::Query { query, bounded }))
            .map_err(|error| Error::Read(format!("{error} in {query}")))
    }

    /// Whether following it takes no longer than the object is large: every step then goes one level down, so that no
    /// value is visited twice.
    pub(super) fn is_bounded(&self) -> bool {
        match self.0 {
            Plan::Keys(_) => true,
            Plan::Query { bounded, .. } => bounded,
        }
    }

    /// Returns the values it selects.
    pub(super) fn find<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        match &self.0 {
            Plan::Keys(keys) => keys
                .iter()
                .try_fold(object, |value, key| value.as_object()?.get(key))
                .into_iter()
                .collect(),
            Plan::Query { query, .. } => query.query(object).all(),
        }
    }

    /// Returns the places of the values it selects.
    pub(super) fn places(&self, object: &Value) -> Vec<Vec<Place>> {
        match &self.0 {
            Plan::Keys(_) if self.find(object).is_empty() => Vec::new(),
            Plan::Keys(keys) => vec![keys.iter().cloned().map(Place::Key).collect()],
            Plan::Query { query, .. } => query
                .query_located(object)
                .locations()
                .map(|location| location.iter().map(place).collect())
                .collect(),
        }
    }
}

/// `..` visits a value once for each of its ancestors, and `[0,0]` twice; repeated, both explode.
fn is_bounded(step: &Step) -> bool {
    match step {
        Step::Recursive | Step::Union(_) => false,
        Step::Filter(Filter::Exists(steps)) => steps.iter().all(is_bounded),
        Step::Filter(Filter::Compare { left, right, .. }) => {
            left.iter().chain(right).all(is_bounded)
        }
        _ => true,
    }
}

fn place(element: &PathElement<'_>) -> Place {
    match element {
        PathElement::Name(name) => Place::Key((*name).to_owned()),
        PathElement::Index(index) => Place::Item(*index),
    }
}

fn write_steps(steps: &[Step], query: &mut String) -> Result<(), Error> {
    let mut rest = steps.iter();
    while let Some(mut step) = rest.next() {
        if *step == Step::Recursive {
            query.push_str("..");
            step = rest.next().ok_or_else(|| {
                Error::Read("'..' must be followed by what to look for".to_owned())
            })?;
        }
        query.push('[');
        write_selector(step, query)?;
        query.push(']');
    }
    Ok(())
}

fn write_selector(step: &Step, query: &mut String) -> Result<(), Error> {
    match step {
        Step::Field(name) => query.push_str(&quote(name)),
        Step::Wildcard => query.push('*'),
        Step::Item(index) => append(query, index),
        Step::Slice { start, end, step } => {
            if step.is_some_and(|step| step <= 0) {
                return Err(Error::Find("step must be > 0".to_owned()));
            }
            let text = |bound: &Option<i64>| bound.map(|bound| bound.to_string());
            append(
                query,
                format_args!(
                    "{}:{}:{}",
                    text(start).unwrap_or_default(),
                    text(end).unwrap_or_default(),
                    step.unwrap_or(1)
                ),
            );
        }
        Step::Union(members) => {
            for (position, member) in members.iter().enumerate() {
                let [step] = member.as_slice() else {
                    return Err(Error::Read(
                        "a key of a union is one key, write its dots as '\\.'".to_owned(),
                    ));
                };
                if position > 0 {
                    query.push(',');
                }
                write_selector(step, query)?;
            }
        }
        Step::Filter(filter) => write_filter(filter, query)?,
        Step::Word(word) if word == "range" || word == "end" => {
            return Err(Error::Read(
                "range is not supported, write one path".to_owned(),
            ));
        }
        Step::Word(word) => return Err(Error::Find(format!("unrecognized identifier {word}"))),
        Step::Literal(_) => {
            return Err(Error::Read(
                "a path begins with a dot, constants stand in filters only".to_owned(),
            ));
        }
        Step::Recursive => {
            return Err(Error::Read("invalid multiple recursive descent".to_owned()));
        }
    }
    Ok(())
}

/// Writes a condition. An item without the value that is compared never matches in client-go, not even for `!=`; the
/// RFC compares "nothing" as a value, so existence is asked for first.
fn write_filter(filter: &Filter, query: &mut String) -> Result<(), Error> {
    query.push('?');
    match filter {
        Filter::Exists(steps) => query.push_str(&operand(steps)?),
        Filter::Compare {
            left,
            operator,
            right,
        } => {
            if !["==", "!=", "<", "<=", ">", ">="].contains(&operator.as_str()) {
                let message = format!("unrecognized filter operator {operator}");
                return Err(Error::Find(message));
            }
            let (left, right) = (operand(left)?, operand(right)?);
            for side in [&left, &right] {
                if side.starts_with('@') {
                    append(query, format_args!("{side} && "));
                }
            }
            append(query, format_args!("{left} {operator} {right}"));
        }
    }
    Ok(())
}

fn operand(steps: &[Step]) -> Result<String, Error> {
    if let [Step::Literal(literal)] = steps {
        return Ok(match literal {
            Literal::Text(text) => quote(text),
            Literal::Integer(number) => number.to_string(),
            Literal::Float(number) => format!("{number:?}"),
            Literal::Bool(value) => value.to_string(),
        });
    }
    let mut query = "@".to_owned();
    write_steps(steps, &mut query)?;
    Ok(query)
}

/// Writes a text in double quotes; the RFC's escapes are JSON's.
fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

fn append(query: &mut String, what: impl std::fmt::Display) {
    write!(query, "{what}").expect("writing to memory cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml;

    fn answer(object: &Value, path: &str) -> Result<Vec<Value>, Error> {
        let path = Path::read(path)?;
        Ok(path.find(object).into_iter().cloned().collect())
    }

    #[test]
    fn paths_answer_as_client_go_does_but_for_the_listed_differences() {
        let file = include_bytes!("../../fixtures/jsonpath/cases.yaml");
        let file = yaml::read("cases.yaml", file).unwrap().remove(0).to_json();
        let object = &file["object"];
        let mut wrong = Vec::new();
        for case in file["cases"].as_array().unwrap() {
            let path = case["path"].as_str().unwrap();
            let ours = answer(object, path);
            let text = |key: &str| case[key].as_str().unwrap_or_default().to_owned();
            let good = match &case["ours"] {
                Value::String(_) => ours.is_err(),
                Value::Array(want) => ours.as_ref() == Ok(want),
                _ if case.get("want").is_some() => ours.as_ref().ok() == case["want"].as_array(),
                _ if case.get("read").is_some() => ours == Err(Error::Read(text("read"))),
                _ => ours == Err(Error::Find(text("find"))),
            };
            if !good {
                wrong.push(format!("{path}: {ours:?}, but {case}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn paths_that_may_visit_a_value_twice_are_not_bounded() {
        for (path, bounded) in [
            (".a.b", true),
            (r".metadata.labels['a\.b']", true),
            (".a[0]", true),
            (r#".a[*].b[?(@.c=="d")]"#, true),
            ("..a", false),
            (".a[0,0]", false),
            (".a[?(@..b)]", false),
        ] {
            assert_eq!(Path::read(path).unwrap().is_bounded(), bounded, "{path}");
        }
    }
}
