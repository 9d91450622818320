//! Calls as tags: `<function=now><parameter=time_zone>UTC</parameter></function>`, and what is like it.

use serde_json::{Map, Value};

use crate::{
    answer::arguments,
    offered_tools::OfferedTools,
    wire::{lenient_json, surrogate_halves},
};

/// The call that a text begins with: the name that was written, its arguments and how many bytes it takes.
pub fn call(text: &str, offered: &OfferedTools) -> Option<(String, String, usize)> {
    let (name, body) = opening(text, &["<function=", "<function name=", "<invoke name="])?;
    let tool = offered.find_meant(name)?;
    let ends = ["</function>", "</invoke>"];
    let close = ends.iter().filter_map(|end| body.find(end).map(|at| (at, end.len()))).min();
    // The end of the last call may be missing: a stop sequence.
    let (within, behind) = match close {
        Some((at, length)) => (body.get(..at)?, body.get(at + length..)?),
        None => (body, ""),
    };
    let within = within.trim();
    let arguments = match within.starts_with('{') {
        true => arguments::normalize(within),
        false => parameters(within, tool, offered)?,
    };
    Some((name.to_owned(), arguments, text.len() - behind.len()))
}

fn parameters(mut text: &str, tool: &str, offered: &OfferedTools) -> Option<String> {
    let mut parameters = Map::new();
    loop {
        text = text.trim_start();
        if text.is_empty() || text.starts_with("</tool_call>") {
            return Some(to_json_text(parameters));
        }
        let (name, body) = opening(text, &["<parameter=", "<parameter name="])?;
        let (value, behind) = body.split_once("</parameter>")?;
        parameters.insert(name.to_owned(), typed(value, tool, name, offered));
        text = behind;
    }
}

/// Pairs of `<arg_key>` and `<arg_value>`, and how many bytes they take.
pub fn pairs(text: &str, tool: &str, offered: &OfferedTools) -> Option<(String, usize)> {
    let mut rest = text;
    let mut parameters = Map::new();
    while let Some(key) = rest.trim_start().strip_prefix("<arg_key>") {
        let (key, behind) = key.split_once("</arg_key>")?;
        let (value, behind) = behind.trim_start().strip_prefix("<arg_value>")?.split_once("</arg_value>")?;
        parameters.insert(key.trim().to_owned(), typed(value, tool, key.trim(), offered));
        rest = behind;
    }
    Some((to_json_text(parameters), text.len() - rest.len()))
}

/// The name in an opening tag, and what stands behind the tag.
fn opening<'t>(text: &'t str, tags: &[&str]) -> Option<(&'t str, &'t str)> {
    let behind = tags.iter().find_map(|tag| text.strip_prefix(tag))?;
    let (name, body) = behind.split_once('>')?;
    let name = name.split("\" ").next()?.trim().trim_matches(['"', '\'']);
    (!name.is_empty() && name.len() <= 200 && !name.contains('<')).then_some((name, body))
}

/// A value as the schema wants it: what looks like a number may be meant as text.
fn typed(value: &str, tool: &str, parameter: &str, offered: &OfferedTools) -> Value {
    let text = value.strip_prefix('\n').unwrap_or(value);
    let text = text.strip_suffix('\n').unwrap_or(text);
    let is_text = offered.is_text_parameter(tool, parameter);
    let value = if is_text { None } else { lenient_json::parse(text.trim()) };
    value.unwrap_or_else(|| Value::String(text.to_owned()))
}

fn to_json_text(parameters: Map<String, Value>) -> String {
    surrogate_halves::whole(&Value::Object(parameters).to_string())
}
