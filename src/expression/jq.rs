//! jq, carried out by jaq.

use jaq_core::{
    Compiler, Ctx, Vars, data,
    load::{self, Arena, File, Loader},
    unwrap_valr,
};
use jaq_json::Val;
use serde_json::Value;

/// Deletes what a path expression names.
pub(super) fn delete(object: Value, expression: &str) -> Result<Value, String> {
    let code = format!("del({expression})");
    let definitions = jaq_core::defs()
        .chain(jaq_std::defs())
        .chain(jaq_json::defs());
    let natives = jaq_core::funs()
        .chain(jaq_std::funs())
        .chain(jaq_json::funs());
    let arena = Arena::default();
    let file = File {
        code: code.as_str(),
        path: (),
    };
    let modules = Loader::new(definitions)
        .load(&arena, file)
        .map_err(|errors| format!("could not be read: {}", first(&errors)))?;
    // `.a), (.b` is an expression only between our parentheses, and would keep nothing but `.b`.
    if load::parse(expression, |parser| parser.term()).is_none() {
        return Err("could not be read: it closes a parenthesis it has not opened".to_owned());
    }
    let filter = Compiler::default()
        .with_funs(natives)
        .compile(modules)
        .map_err(|errors| format!("could not be compiled: {}", first(&errors)))?;

    let input: Val = serde_json::from_value(object).map_err(|error| error.to_string())?;
    let context = Ctx::<data::JustLut<Val>>::new(&filter.lut, Vars::new([]));
    let mut outputs = filter.id.run((context, input)).map(unwrap_valr);
    let output = match outputs.next() {
        None => return Err("yields nothing, one object is needed".to_owned()),
        Some(Err(error)) => return Err(run_error(&error.to_string())),
        Some(Ok(output)) => output,
    };
    if outputs.next().is_some() {
        return Err("yields several values, one object is needed".to_owned());
    }
    match serde_json::from_str(&output.to_string()) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(_) => Err("yields no object".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// What jaq says up to the values it quotes: they may be secret, and long.
fn run_error(text: &str) -> String {
    let end = text.find(['{', '[', '"']).unwrap_or(text.len());
    let text = text[..end].trim_end_matches(" with input ");
    text.trim_end().to_owned()
}

/// The first of jaq's errors, which are values without a text.
fn first<F, E: std::fmt::Debug>(errors: &[(F, E)]) -> String {
    errors
        .first()
        .map(|(_, error)| format!("{error:?}"))
        .unwrap_or_default()
}
