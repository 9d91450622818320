//! Reads a text that is nothing but calls.

use serde_json::{Map, Value};

use super::{WrittenCall, python, tags};
use crate::{answer::arguments, offered_tools::OfferedTools, wire::lenient_json};

/// Calls that one text may hold; with more it is read as words.
const MOST_CALLS: usize = 256;
/// Deepest nesting in which a call stands.
const DEEPEST: usize = 6;
/// Wrappers around calls that mean nothing by themselves, beside tokens such as `<|…|>`.
const WRAPPERS: [&str; 20] = [
    "<tool_calls>",
    "</tool_calls>",
    "<tool_call>",
    "</tool_call>",
    "<function_calls>",
    "</function_calls>",
    "<function_call>",
    "</function_call>",
    "<functioncall>",
    "</functioncall>",
    "<minimax:tool_call>",
    "</minimax:tool_call>",
    "<seed:tool_call>",
    "</seed:tool_call>",
    "</function>",
    "[TOOL_CALLS]",
    "[/TOOL_CALLS]",
    "[ARGS]",
    "</s>",
    "Action:",
];
/// Words that stand where a name may, and are none.
const NO_NAMES: [&str; 6] = ["assistant", "function", "commentary", "analysis", "json", "call"];
/// Fences that calls may stand in.
const FENCES: [&str; 8] = ["", "json", "tool_code", "tool_call", "tool_calls", "python", "xml", "py"];
const NAMES: [&str; 6] = ["name", "tool", "tool_name", "function", "function_name", "recipient_name"];
const ARGUMENTS: [&str; 7] = ["arguments", "parameters", "args", "input", "tool_input", "params", "kwargs"];
/// Fields that may stand beside these.
const BESIDE: [&str; 6] = ["id", "type", "index", "call_id", "tool_call_id", "role"];

pub struct Scanner<'t> {
    rest: &'t str,
    offered: &'t OfferedTools,
    /// A token or tag said that calls follow: a name may stand by itself.
    is_marked: bool,
    /// Within the brackets of a list in Python.
    in_list: bool,
    /// A name that stands by itself, whose arguments follow.
    name: Option<String>,
    calls: Vec<WrittenCall>,
}

impl<'t> Scanner<'t> {
    pub fn new(text: &'t str, offered: &'t OfferedTools) -> Self {
        Self { rest: text, offered, is_marked: false, in_list: false, name: None, calls: Vec::new() }
    }

    /// The calls; none where the text is anything else, too.
    pub fn calls(mut self) -> Option<Vec<WrittenCall>> {
        loop {
            self.rest = self.rest.trim_start_matches(|sign: char| sign.is_whitespace() || sign == ';' || sign == ',');
            if self.rest.is_empty() {
                let is_whole = self.name.is_none() && !self.calls.is_empty();
                return is_whole.then_some(self.calls);
            }
            if self.calls.len() > MOST_CALLS {
                return None;
            }
            let before = self.rest.len();
            self.step()?;
            if self.rest.len() == before {
                return None;
            }
        }
    }

    fn step(&mut self) -> Option<()> {
        if self.skip_wrapper() || self.skip_fence() {
            return Some(());
        }
        if self.rest.starts_with("<function") || self.rest.starts_with("<invoke") {
            let (name, arguments, length) = tags::call(self.rest, self.offered)?;
            return self.push(&name, arguments, length);
        }
        if self.rest.starts_with("<arg_key>") {
            let (arguments, length) = tags::pairs(self.rest, self.name.as_deref()?, self.offered)?;
            let name = self.name.take()?;
            return self.push(&name, arguments, length);
        }
        if self.rest.starts_with('{') || self.rest.starts_with('[') && !self.begins_list() {
            return self.json();
        }
        if let Some(behind) = self.list_end() {
            self.rest = behind;
            return Some(());
        }
        if let Some((name, arguments, length)) = python::call(self.rest, self.offered) {
            return self.push(&name, arguments, length);
        }
        self.scan_bare_name()
    }

    fn push(&mut self, name: &str, arguments: String, length: usize) -> Option<()> {
        let tool = self.offered.find_meant(name)?.to_owned();
        self.calls.push(WrittenCall { tool, arguments });
        self.rest = self.rest.get(length..)?;
        Some(())
    }

    /// Steps over a tag or a token.
    fn skip_wrapper(&mut self) -> bool {
        let behind =
            WRAPPERS.iter().find_map(|wrapper| self.rest.strip_prefix(wrapper)).or_else(|| skip_token(self.rest));
        let behind = behind.or_else(|| {
            self.rest
                .strip_prefix("[CALL_ID]")
                .map(|id| id.trim_start_matches(|sign: char| sign.is_ascii_alphanumeric()))
        });
        let Some(behind) = behind else { return false };
        self.rest = behind;
        self.is_marked = true;
        true
    }

    /// Steps over the beginning or the end of a fence.
    fn skip_fence(&mut self) -> bool {
        let Some(behind) = self.rest.strip_prefix("```") else { return false };
        let word = behind.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_').next().unwrap_or_default();
        let known = FENCES.contains(&word);
        if known {
            self.rest = behind.get(word.len()..).unwrap_or_default();
        }
        known
    }

    /// Returns true if a list of calls in Python begins, as `[now(), later(days=1)]`.
    fn begins_list(&mut self) -> bool {
        let Some(behind) = self.rest.strip_prefix('[') else { return false };
        self.in_list = python::call(behind.trim_start(), self.offered).is_some();
        if self.in_list {
            self.rest = behind;
        }
        self.in_list
    }

    fn list_end(&mut self) -> Option<&'t str> {
        let behind = self.rest.strip_prefix(']').filter(|_| self.in_list)?;
        self.in_list = false;
        Some(behind)
    }

    fn json(&mut self) -> Option<()> {
        let (value, length) = lenient_json::parse_first(self.rest)?;
        match self.name.take() {
            Some(tool) if value.is_object() => {
                let arguments = arguments::normalize(self.rest.get(..length)?);
                self.calls.push(WrittenCall { tool, arguments });
            }
            Some(_) => return None,
            None => self.add_value(&value, 0)?,
        }
        self.rest = self.rest.get(length..)?;
        Some(())
    }

    fn add_value(&mut self, value: &Value, depth: usize) -> Option<()> {
        match value {
            Value::Array(values) if depth < DEEPEST && !values.is_empty() => {
                values.iter().try_for_each(|value| self.add_value(value, depth + 1))
            }
            Value::Object(object) if depth < DEEPEST => self.add_object(object, depth),
            _ => None,
        }
    }

    fn add_object(&mut self, object: &Map<String, Value>, depth: usize) -> Option<()> {
        if object.len() == 1
            && let Some(calls) = ["tool_calls", "function_calls", "calls"].iter().find_map(|name| object.get(*name))
        {
            return self.add_value(calls, depth + 1);
        }
        let is_beside = |name: &&String| BESIDE.contains(&name.as_str());
        if let Some(function) = object.get("function").filter(|function| function.is_object()) {
            let is_only = object.keys().filter(|name| !is_beside(name)).count() == 1;
            return if is_only { self.add_value(function, depth + 1) } else { None };
        }
        let (name, arguments) = match NAMES.iter().find_map(|name| Some((*name, object.get(*name)?.as_str()?))) {
            Some((field, name)) => {
                let with = ARGUMENTS.iter().find(|name| object.contains_key(**name))?;
                let is_all = object.keys().filter(|name| !is_beside(name)).all(|name| name == field || name == with);
                (name.to_owned(), object.get(*with).filter(|_| is_all)?)
            }
            // The name is the key.
            None => object.iter().next().filter(|_| object.len() == 1).map(|(name, value)| (name.clone(), value))?,
        };
        let arguments = match arguments {
            Value::Object(_) => arguments::normalize(&arguments.to_string()),
            Value::String(text) => arguments::normalize(text),
            Value::Null => "{}".to_owned(),
            _ => return None,
        };
        let tool = self.offered.find_meant(&name)?.to_owned();
        self.calls.push(WrittenCall { tool, arguments });
        Some(())
    }

    /// A name whose arguments follow, where a token said that calls do.
    fn scan_bare_name(&mut self) -> Option<()> {
        let end = self.rest.find(['{', '<', '\n', '`']).or_else(|| self.rest.find("[ARGS]"))?;
        let end = self.rest.find("[ARGS]").map_or(end, |args| args.min(end));
        let end = self.rest.find("[CALL_ID]").map_or(end, |id| id.min(end));
        let (word, behind) = self.rest.split_at_checked(end)?;
        let word = word.trim();
        if !self.is_marked || self.name.is_some() && !NO_NAMES.contains(&word) {
            return None;
        }
        match self.offered.find_meant(word) {
            Some(tool) => self.name = Some(tool.to_owned()),
            None if NO_NAMES.contains(&word) => {}
            None => return None,
        }
        self.rest = behind;
        Some(())
    }
}

/// Returns the text behind a token such as `<|im_end|>`.
fn skip_token(text: &str) -> Option<&str> {
    let within = text.strip_prefix("<|").or_else(|| text.strip_prefix("<｜"))?;
    let end = within.find('>').filter(|end| *end <= 60)?;
    let name = within.get(..end)?;
    let is_token = name.ends_with(['|', '｜']) && !name.contains(char::is_whitespace);
    within.get(end + 1..).filter(|_| is_token)
}
