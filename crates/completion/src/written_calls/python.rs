//! Calls as Python has them: `now(time_zone="UTC")`.

use serde_json::{Map, Value};

use crate::{
    offered_tools::OfferedTools,
    wire::{lenient_json, surrogate_halves},
};

/// The call that a text begins with: the name that was written, its arguments and how many bytes it takes.
pub fn call(text: &str, offered: &OfferedTools) -> Option<(String, String, usize)> {
    if let Some(printed) = text.strip_prefix("print(") {
        let (name, arguments, length) = call(printed, offered)?;
        let rest = printed.get(length..)?;
        let behind = rest.trim_start().strip_prefix(')')?;
        return Some((name, arguments, text.len() - behind.len()));
    }
    let open = text.find('(').filter(|open| *open <= 200)?;
    let name = text.get(..open)?;
    let is_name =
        !name.is_empty() && name.chars().all(|sign| sign.is_alphanumeric() || matches!(sign, '_' | '.' | ':'));
    if !is_name || offered.find_meant(name).is_none() {
        return None;
    }
    let (arguments, length) = keywords(text.get(open + 1..)?)?;
    Some((name.to_owned(), surrogate_halves::whole(&Value::Object(arguments).to_string()), open + 1 + length))
}

/// Arguments by name up to the closing parenthesis, and how many bytes they take.
fn keywords(text: &str) -> Option<(Map<String, Value>, usize)> {
    let mut arguments = Map::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if let Some(behind) = rest.strip_prefix(')') {
            return Some((arguments, text.len() - behind.len()));
        }
        let (key, value) = rest.split_once('=')?;
        let key = key.trim_end();
        let is_key =
            !key.is_empty() && key.len() <= 200 && key.chars().all(|sign| sign.is_alphanumeric() || sign == '_');
        if !is_key {
            return None;
        }
        let (literal, length) = lenient_json::literal(value)?;
        arguments.insert(key.to_owned(), literal);
        rest = value.get(length..)?.trim_start();
        match rest.strip_prefix(',') {
            Some(behind) => rest = behind,
            None if rest.starts_with(')') => {}
            None => return None,
        }
    }
}
