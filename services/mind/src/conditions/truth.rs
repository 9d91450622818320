//! Evaluation of conditions in the syntax of seed 000.

use jiff::Timestamp;
use regex::RegexBuilder;
use serde_json::{Number, Value};

use super::syntax::{Expression, Operand, Operator, Path, path};

/// Yes, no, or nobody can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    Yes,
    No,
    Unknown,
}

/// Memory that a regular expression may take once it is compiled, in bytes.
const REGEX_BYTES: usize = 256 * 1024;
/// Text that a regular expression looks at, in bytes.
const SEARCHED_BYTES: usize = 1024 * 1024;
/// Deepest level of lists and objects that is searched.
const DEEPEST: usize = 8;

impl Truth {
    fn of(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }

    fn not(self) -> Self {
        match self {
            Self::Yes => Self::No,
            Self::No => Self::Yes,
            Self::Unknown => Self::Unknown,
        }
    }
}

/// Evaluates the expression on the data.
pub fn of(expression: &Expression, data: &Value) -> Truth {
    let parts = |parts: &[Expression], settles: Truth| {
        let mut whole = settles.not();
        for part in parts {
            match of(part, data) {
                truth if truth == settles => return settles,
                Truth::Unknown => whole = Truth::Unknown,
                _ => {}
            }
        }
        whole
    };
    match expression {
        Expression::All(all) => parts(all, Truth::No),
        Expression::Any(any) => parts(any, Truth::Yes),
        Expression::Not(inner) => of(inner, data).not(),
        Expression::Exists(field) => Truth::of(found(field, data).iter().any(|value| !value.is_null())),
        // A word that is no field may be a whole condition in plain words.
        Expression::Flag(field) => match found(field, data).as_slice() {
            [] => Truth::Unknown,
            values => Truth::of(values.iter().any(|value| is_set(value))),
        },
        Expression::Compare(field, operator, operand) => {
            let values = found(field, data);
            match (values.as_slice(), operand) {
                // "it is urgent" is no question of a field.
                ([], Operand::Word(_)) => Truth::Unknown,
                ([], Operand::Null) => Truth::of(*operator == Operator::Equals),
                ([], _) => Truth::No,
                (values, operand) => compare(values, *operator, operand, data),
            }
        }
    }
}

/// The values of a field; several where a list lies on the way.
fn found<'a>(field: &Path, data: &'a Value) -> Vec<&'a Value> {
    // `event.sender` is the same as `sender`, unless there is an event in the event.
    let whole = field.first().is_some_and(|name| name.eq_ignore_ascii_case("event")) && member(data, "event").is_none();
    let mut values = vec![data];
    for name in field.iter().skip(usize::from(whole)) {
        let step = |value: &'a Value| -> Vec<&'a Value> {
            match (value, name.parse::<usize>()) {
                (Value::Array(items), Ok(at)) => items.get(at).into_iter().collect(),
                (Value::Array(items), Err(_)) => items.iter().filter_map(|item| member(item, name)).collect(),
                (value, _) => member(value, name).into_iter().collect(),
            }
        };
        values = values.into_iter().flat_map(step).collect();
    }
    values
}

fn member<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let object = value.as_object()?;
    let alike = || object.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value);
    object.get(name).or_else(alike)
}

fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty() && !text.eq_ignore_ascii_case("false"),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

fn compare(values: &[&Value], operator: Operator, operand: &Operand, data: &Value) -> Truth {
    if operator == Operator::Differs {
        return compare(values, Operator::Equals, operand, data).not();
    }
    let operands: Vec<Value> = match operand {
        Operand::List(items) => items.iter().map(|item| literal(item, operator, data)).collect(),
        one => vec![literal(one, operator, data)],
    };
    if operator == Operator::Matches {
        return matches(values, operands.first());
    }
    let mut whole = Truth::No;
    for value in values {
        for operand in &operands {
            match test(value, operator, operand, DEEPEST) {
                Truth::Yes => return Truth::Yes,
                Truth::Unknown => whole = Truth::Unknown,
                Truth::No => {}
            }
        }
    }
    whole
}

/// A word that names another field is that field's value where two things are compared, and else a text.
fn literal(operand: &Operand, operator: Operator, data: &Value) -> Value {
    match operand {
        Operand::Text(text) => Value::from(text.as_str()),
        Operand::Word(word) => {
            let other = match operator {
                Operator::Equals
                | Operator::Less
                | Operator::LessOrEqual
                | Operator::Greater
                | Operator::GreaterOrEqual => path(word).and_then(|path| found(&path, data).first().copied().cloned()),
                _ => None,
            };
            other.unwrap_or_else(|| Value::from(word.as_str()))
        }
        Operand::Number(number) => Number::from_f64(*number).map_or(Value::Null, Value::Number),
        Operand::Truth(truth) => Value::Bool(*truth),
        Operand::Null | Operand::List(_) => Value::Null,
    }
}

/// Of a list or an object, whether it is so of anything in it.
fn test(value: &Value, operator: Operator, operand: &Value, deep: usize) -> Truth {
    let within = |values: &mut dyn Iterator<Item = &Value>| match deep {
        0 => Truth::Unknown,
        deep => {
            let mut whole = Truth::No;
            for value in values {
                match test(value, operator, operand, deep - 1) {
                    Truth::Yes => return Truth::Yes,
                    Truth::Unknown => whole = Truth::Unknown,
                    Truth::No => {}
                }
            }
            whole
        }
    };
    match value {
        Value::Array(items) => return within(&mut items.iter()),
        Value::Object(fields) => return within(&mut fields.values()),
        Value::Null => return Truth::of(operand.is_null() && matches!(operator, Operator::Equals | Operator::In)),
        _ => {}
    }
    match operator {
        Operator::Contains => Truth::of(plain(value).contains(&plain(operand))),
        Operator::StartsWith => Truth::of(plain(value).starts_with(&plain(operand))),
        Operator::EndsWith => Truth::of(plain(value).ends_with(&plain(operand))),
        Operator::Equals | Operator::In | Operator::Differs => Truth::of(equal(value, operand)),
        Operator::Less => order(value, operand, |order| order.is_lt()),
        Operator::LessOrEqual => order(value, operand, |order| order.is_le()),
        Operator::Greater => order(value, operand, |order| order.is_gt()),
        Operator::GreaterOrEqual => order(value, operand, |order| order.is_ge()),
        Operator::Matches => Truth::Unknown,
    }
}

/// As text, whatever the case.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_lowercase(),
        other => other.to_string(),
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
        _ => None,
    }
}

fn equal(value: &Value, operand: &Value) -> bool {
    match (value, operand) {
        (Value::Number(_), _) | (_, Value::Number(_)) => number(value).is_some() && number(value) == number(operand),
        (value, operand) => plain(value) == plain(operand),
    }
}

/// Numbers as numbers, moments as moments, texts as texts.
fn order(value: &Value, operand: &Value, holds: fn(std::cmp::Ordering) -> bool) -> Truth {
    if let (Some(one), Some(other)) = (number(value), number(operand)) {
        return one.partial_cmp(&other).map_or(Truth::Unknown, |order| Truth::of(holds(order)));
    }
    let (Value::String(one), Value::String(other)) = (value, operand) else { return Truth::Unknown };
    let moments = (one.parse::<Timestamp>(), other.parse::<Timestamp>());
    Truth::of(holds(match moments {
        (Ok(one), Ok(other)) => one.cmp(&other),
        _ => one.to_lowercase().cmp(&other.to_lowercase()),
    }))
}

fn matches(values: &[&Value], pattern: Option<&Value>) -> Truth {
    let Some(Value::String(pattern)) = pattern else { return Truth::Unknown };
    let Ok(regex) = RegexBuilder::new(pattern).size_limit(REGEX_BYTES).dfa_size_limit(REGEX_BYTES).build() else {
        return Truth::Unknown;
    };
    let mut left = SEARCHED_BYTES;
    let mut open: Vec<&Value> = values.to_vec();
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => open.extend(fields.values()),
            Value::String(text) if text.len() > left => return Truth::Unknown,
            Value::String(text) => {
                left -= text.len();
                if regex.is_match(text) {
                    return Truth::Yes;
                }
            }
            other if regex.is_match(&other.to_string()) => return Truth::Yes,
            _ => {}
        }
    }
    Truth::No
}
