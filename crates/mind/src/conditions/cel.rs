//! Conditions in the Common Expression Language, for what the other syntax has not.

use std::{collections::HashMap, thread};

use cel::{Context, Program, Value as Cel};
use serde_json::Value;

use super::{DEEPEST, truth::Truth};

/// Data that an expression is evaluated on, in bytes of JSON.
const DATA_BYTES: usize = 256 * 1024;
/// Data that an expression with macros over lists is evaluated on, in bytes of JSON.
const LISTED_BYTES: usize = 32 * 1024;
/// Stack for reading and evaluating, in bytes: twice what the deepest condition that is let through takes.
const STACK_BYTES: usize = 32 * 1024 * 1024;
/// Macros that go through lists; one within another takes the square of their length.
const LOOPS: [&str; 5] = ["all", "exists", "exists_one", "map", "filter"];
/// Operators in front of a value in a row, conditions within conditions, and sums.
const MOST_IN_A_ROW: usize = 16;
/// Operators, selections and parentheses in all: the interpreter goes into each that follows another.
const MOST_SIGNS: usize = 150;

/// Evaluates a condition; what it cannot be read as, or fails with, is unknown.
pub fn judge(condition: &str, data: &Value) -> Truth {
    let Some(most_bytes) = max_data_bytes(condition) else { return Truth::Unknown };
    if data.to_string().len() > most_bytes {
        return Truth::Unknown;
    }
    with_large_stack(|| evaluate(condition, data)).flatten().unwrap_or(Truth::Unknown)
}

/// Does the work where it may go deep: the parser takes a quarter of a megabyte for each parenthesis. None if it panics:
/// the interpreter is not ours, and whatever it does, the agent goes on.
pub fn with_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    thread::scope(|scope| thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work).ok()?.join().ok())
}

fn evaluate(condition: &str, data: &Value) -> Option<Truth> {
    let program = Program::compile(condition).ok()?;
    let mut context = Context::default();
    for (name, value) in data.as_object().into_iter().flatten() {
        context.add_variable_from_value(name.as_str(), to_cel(value, DEEPEST));
    }
    context.add_variable_from_value("event", to_cel(data, DEEPEST));
    match program.execute(&context).ok()? {
        Cel::Bool(true) => Some(Truth::Yes),
        Cel::Bool(false) => Some(Truth::No),
        _ => None,
    }
}

/// Whole numbers become int, never uint, so that they can be reckoned with literals. What is too deep is left out.
pub fn to_cel(value: &Value, deep: usize) -> Cel {
    match value {
        Value::Array(items) if deep > 0 => items.iter().map(|item| to_cel(item, deep - 1)).collect::<Vec<Cel>>().into(),
        Value::Object(fields) if deep > 0 => {
            let field = |(name, value): (&String, &Value)| (name.clone(), to_cel(value, deep - 1));
            fields.iter().map(field).collect::<HashMap<String, Cel>>().into()
        }
        Value::String(text) => text.as_str().into(),
        Value::Bool(truth) => Cel::Bool(*truth),
        Value::Number(number) => {
            let float = || number.as_f64().map_or(Cel::Null, Cel::Float);
            number.as_i64().map_or_else(float, Cel::Int)
        }
        Value::Null | Value::Array(_) | Value::Object(_) => Cel::Null,
    }
}

/// Returns the most data the condition may be evaluated on; `None` if it is too deep or too slow on any data.
fn max_data_bytes(condition: &str) -> Option<usize> {
    let code = strip_quoted_texts(condition);
    let mut depth = 0_usize;
    let mut row = 0_usize;
    for sign in code.chars() {
        match sign {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        row = match sign {
            '!' | '-' => row + 1,
            sign if sign.is_whitespace() => row,
            _ => 0,
        };
        if depth > DEEPEST || row > MOST_IN_A_ROW {
            return None;
        }
    }
    let count = |signs: &str| code.chars().filter(|sign| signs.contains(*sign)).count();
    if count(".+-*/%<>=?:!&|([{") > MOST_SIGNS || count("?") > MOST_IN_A_ROW || count("+") > MOST_IN_A_ROW {
        return None;
    }
    let pieces = code.split(|sign: char| !(sign.is_alphanumeric() || sign == '_'));
    match pieces.filter(|piece| LOOPS.contains(piece)).count() {
        0 => Some(DATA_BYTES),
        // A list of texts that grow would be larger than all that was given.
        1 if count("+") == 0 => Some(LISTED_BYTES),
        _ => None,
    }
}

/// Without what stands in quotes.
fn strip_quoted_texts(condition: &str) -> String {
    let mut code = String::new();
    let mut quote = None;
    let mut escaped = false;
    for sign in condition.chars() {
        match quote {
            None if matches!(sign, '\'' | '"') => quote = Some(sign),
            None => code.push(sign),
            Some(_) if escaped => escaped = false,
            Some(_) if sign == '\\' => escaped = true,
            Some(open) if sign == open => quote = None,
            Some(_) => {}
        }
    }
    code
}
