//! CEL with Kubernetes' libraries, and answers in cel-go's words.

use kube_cel::{
    KubeCelExt,
    cel::{Context, ExecutionError, Value as Cel, objects::Key, parser::Parser},
};
use serde_json::Value;

use super::optional;

/// Texts of errors may hold whole values; no more than this is kept.
const LONGEST_ERROR: usize = 1024;

/// Why an expression has no value.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum Error {
    /// It is not CEL, or names something that does not exist.
    #[error("{0}")]
    Compile(String),
    /// It is CEL, and failed on this object.
    #[error("{0}")]
    Run(String),
}

/// The variables and functions that expressions may use.
pub(super) struct Scope(Context<'static>);

impl Scope {
    /// Returns a scope with `object`.
    pub(super) fn new(object: &Value) -> Self {
        let mut context = Context::default().with_all();
        context.add_variable_from_value("object", value(object));
        context.add_function("hasConditions", has_conditions);
        // For cel-go's type checker, which we do not have.
        context.add_function("dyn", |value: Cel| Ok(value));
        Self(context)
    }

    /// Adds `result`, which expressions for messages may use.
    pub(super) fn with_result(mut self, result: bool) -> Self {
        self.0.add_variable_from_value("result", result);
        self
    }

    pub(super) fn evaluate(&self, expression: &str) -> Result<Cel, Error> {
        let mut parsed = Parser::new()
            .enable_optional_syntax(true)
            .parse(expression)
            .map_err(|errors| Error::Compile(cut(errors.to_string().replace("\n| ", "\n | "))))?;
        optional::rewrite(&mut parsed);
        self.0.resolve(&parsed).map_err(|error| match error {
            // cel-go finds these when it compiles.
            ExecutionError::UndeclaredReference(name) => {
                Error::Compile(undeclared(expression, &name))
            }
            error => Error::Run(cut(run_error(error))),
        })
    }
}

/// The name of a value's type in Go, as texts for conditions have it.
pub(super) fn go_type(value: &Cel) -> &'static str {
    match value {
        Cel::List(_) => "[]interface {}",
        Cel::Map(_) => "map[string]interface {}",
        Cel::Int(_) => "int64",
        Cel::UInt(_) => "uint64",
        Cel::Float(_) => "float64",
        Cel::String(_) => "string",
        Cel::Bytes(_) => "[]uint8",
        Cel::Bool(_) => "bool",
        Cel::Null => "structpb.NullValue",
        Cel::Duration(_) => "time.Duration",
        Cel::Timestamp(_) => "time.Time",
        Cel::Function(..) | Cel::Opaque(_) => "interface {}",
    }
}

/// Integers become `int`, as in Go, whatever their sign.
fn value(json: &Value) -> Cel {
    match json {
        Value::Null => Cel::Null,
        Value::Bool(boolean) => Cel::Bool(*boolean),
        Value::Number(number) => number
            .as_i64()
            .map_or_else(|| Cel::Float(number.as_f64().unwrap_or(f64::NAN)), Cel::Int),
        Value::String(text) => Cel::from(text.as_str()),
        Value::Array(items) => Cel::from(items.iter().map(value).collect::<Vec<_>>()),
        Value::Object(map) => {
            let entries = map
                .iter()
                .map(|(key, json)| (Key::from(key.as_str()), value(json)));
            Cel::from(entries.collect::<std::collections::HashMap<_, _>>())
        }
    }
}

/// Whether a value is a map with a list of conditions that is not empty.
fn has_conditions(value: Cel) -> bool {
    let Cel::Map(map) = value else { return false };
    matches!(map.get(&Key::from("conditions")), Some(Cel::List(list)) if !list.is_empty())
}

fn run_error(error: ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        // Their own texts hold the values, which may be secret.
        ExecutionError::NoSuchOverload
        | ExecutionError::UnsupportedTargetType { .. }
        | ExecutionError::NotSupportedAsMethod { .. }
        | ExecutionError::UnsupportedKeyType(_)
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedMapIndex(_)
        | ExecutionError::UnsupportedListIndex(_)
        | ExecutionError::UnsupportedIndex(..) => "no such overload".to_owned(),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::IndexOutOfBounds(Cel::Int(index)) => {
            format!("index out of bounds: {index}")
        }
        ExecutionError::IndexOutOfBounds(_) => "index out of bounds".to_owned(),
        error => error.to_string(),
    }
}

/// The text with which cel-go refuses a name, at the place where it first stands.
fn undeclared(expression: &str, name: &str) -> String {
    let at = expression.find(name).unwrap_or_default();
    let before = &expression[..at];
    let line = before.matches('\n').count() + 1;
    let column = before
        .chars()
        .rev()
        .take_while(|next| *next != '\n')
        .count();
    let shown = expression.lines().nth(line - 1).unwrap_or_default();
    format!(
        "ERROR: <input>:{line}:{}: undeclared reference to '{name}' (in container '')\n | {shown}\n | {}^",
        column + 1,
        ".".repeat(column)
    )
}

fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(LONGEST_ERROR));
    text
}
