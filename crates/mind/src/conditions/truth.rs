//! Evaluation of conditions in the syntax of seed 000.

use jiff::Timestamp;
use regex::RegexBuilder;
use serde_json::{Number, Value};

use super::syntax::{Expression, FieldPath, Operand, Operator, parse_field_path};

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
    fn from_bool(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }

    fn negate(self) -> Self {
        match self {
            Self::Yes => Self::No,
            Self::No => Self::Yes,
            Self::Unknown => Self::Unknown,
        }
    }
}

/// Evaluates the expression on the data.
pub fn evaluate(expression: &Expression, data: &Value) -> Truth {
    let parts = |parts: &[Expression], settles: Truth| {
        let mut whole = settles.negate();
        for part in parts {
            match evaluate(part, data) {
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
        Expression::Not(inner) => evaluate(inner, data).negate(),
        Expression::Exists(field) => Truth::from_bool(field_values(field, data).iter().any(|value| !value.is_null())),
        // A word that is no field may be a whole condition in plain words.
        Expression::Flag(field) => match field_values(field, data).as_slice() {
            [] => Truth::Unknown,
            values => Truth::from_bool(values.iter().any(|value| is_set(value))),
        },
        Expression::Compare(field, operator, operand) => {
            let values = field_values(field, data);
            match (values.as_slice(), operand) {
                // "it is urgent" is no question of a field.
                ([], Operand::Word(_)) => Truth::Unknown,
                ([], Operand::Null) => Truth::from_bool(*operator == Operator::Equals),
                ([], _) => Truth::No,
                (values, operand) => compare_values(values, *operator, operand, data),
            }
        }
    }
}

/// The values of a field; several where a list lies on the way.
fn field_values<'a>(field: &FieldPath, data: &'a Value) -> Vec<&'a Value> {
    // `event.sender` is the same as `sender`, unless there is an event in the event.
    let whole =
        field.first().is_some_and(|name| name.eq_ignore_ascii_case("event")) && member_of(data, "event").is_none();
    let mut values = vec![data];
    for name in field.iter().skip(usize::from(whole)) {
        let step = |value: &'a Value| -> Vec<&'a Value> {
            match (value, name.parse::<usize>()) {
                (Value::Array(items), Ok(at)) => items.get(at).into_iter().collect(),
                (Value::Array(items), Err(_)) => items.iter().filter_map(|item| member_of(item, name)).collect(),
                (value, _) => member_of(value, name).into_iter().collect(),
            }
        };
        values = values.into_iter().flat_map(step).collect();
    }
    values
}

fn member_of<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
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

fn compare_values(values: &[&Value], operator: Operator, operand: &Operand, data: &Value) -> Truth {
    if operator == Operator::Differs {
        return compare_values(values, Operator::Equals, operand, data).negate();
    }
    let operands: Vec<Value> = match operand {
        Operand::List(items) => items.iter().map(|item| operand_value(item, operator, data)).collect(),
        one => vec![operand_value(one, operator, data)],
    };
    if operator == Operator::Matches {
        return matches_pattern(values, operands.first());
    }
    let mut whole = Truth::No;
    for value in values {
        for operand in &operands {
            match test_value(value, operator, operand, DEEPEST) {
                Truth::Yes => return Truth::Yes,
                Truth::Unknown => whole = Truth::Unknown,
                Truth::No => {}
            }
        }
    }
    whole
}

/// A word that names another field is that field's value where two things are compared, and else a text.
fn operand_value(operand: &Operand, operator: Operator, data: &Value) -> Value {
    match operand {
        Operand::Text(text) => Value::from(text.as_str()),
        Operand::Word(word) => {
            let other = match operator {
                Operator::Equals
                | Operator::Less
                | Operator::LessOrEqual
                | Operator::Greater
                | Operator::GreaterOrEqual => {
                    parse_field_path(word).and_then(|path| field_values(&path, data).first().copied().cloned())
                }
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
fn test_value(value: &Value, operator: Operator, operand: &Value, deep: usize) -> Truth {
    let within = |values: &mut dyn Iterator<Item = &Value>| match deep {
        0 => Truth::Unknown,
        deep => {
            let mut whole = Truth::No;
            for value in values {
                match test_value(value, operator, operand, deep - 1) {
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
        Value::Null => {
            return Truth::from_bool(operand.is_null() && matches!(operator, Operator::Equals | Operator::In));
        }
        _ => {}
    }
    match operator {
        Operator::Contains => Truth::from_bool(lowercase_text(value).contains(&lowercase_text(operand))),
        Operator::StartsWith => Truth::from_bool(lowercase_text(value).starts_with(&lowercase_text(operand))),
        Operator::EndsWith => Truth::from_bool(lowercase_text(value).ends_with(&lowercase_text(operand))),
        Operator::Equals | Operator::In | Operator::Differs => Truth::from_bool(are_equal(value, operand)),
        Operator::Less => compare_order(value, operand, |order| order.is_lt()),
        Operator::LessOrEqual => compare_order(value, operand, |order| order.is_le()),
        Operator::Greater => compare_order(value, operand, |order| order.is_gt()),
        Operator::GreaterOrEqual => compare_order(value, operand, |order| order.is_ge()),
        Operator::Matches => Truth::Unknown,
    }
}

/// As text, whatever the case.
fn lowercase_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_lowercase(),
        other => other.to_string(),
    }
}

fn as_number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
        _ => None,
    }
}

fn are_equal(value: &Value, operand: &Value) -> bool {
    match (value, operand) {
        (Value::Number(_), _) | (_, Value::Number(_)) => {
            as_number(value).is_some() && as_number(value) == as_number(operand)
        }
        (value, operand) => lowercase_text(value) == lowercase_text(operand),
    }
}

/// Numbers as numbers, moments as moments, texts as texts.
fn compare_order(value: &Value, operand: &Value, holds: fn(std::cmp::Ordering) -> bool) -> Truth {
    if let (Some(one), Some(other)) = (as_number(value), as_number(operand)) {
        return one.partial_cmp(&other).map_or(Truth::Unknown, |order| Truth::from_bool(holds(order)));
    }
    let (Value::String(one), Value::String(other)) = (value, operand) else { return Truth::Unknown };
    let moments = (one.parse::<Timestamp>(), other.parse::<Timestamp>());
    Truth::from_bool(holds(match moments {
        (Ok(one), Ok(other)) => one.cmp(&other),
        _ => one.to_lowercase().cmp(&other.to_lowercase()),
    }))
}

fn matches_pattern(values: &[&Value], pattern: Option<&Value>) -> Truth {
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
