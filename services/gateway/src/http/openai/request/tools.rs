//! Tools that a chat client carries out itself, and the form that it wants the answer in. Pure.

use serde_json::{Map, Value};

use super::super::error::ChatError;

/// Tools that are taken, and their bytes together; of an answer's schema the same bytes.
const TOOLS: usize = 128;
const TOOLS_BYTES: usize = 64 * 1024;
const SCHEMA_BYTES: usize = 64 * 1024;
/// Longest name of a tool, in bytes.
const NAME_BYTES: usize = 64;
/// The choices that name no tool.
const CHOICES: [&str; 3] = ["auto", "none", "required"];

/// The tools and the form of answer that a client asks for; a text is empty if the client does not give it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ClientTools {
    /// A JSON array.
    pub tools: String,
    pub tool_choice: String,
    pub single_call: bool,
    /// A JSON object.
    pub response_format: String,
}

impl ClientTools {
    /// Returns true if an answer that does not match may be asked for again: it is shown only once it matches.
    pub fn requires_checked_answer(&self) -> bool {
        !self.response_format.is_empty() || !["", "none"].contains(&self.tool_choice.as_str())
    }
}

pub fn parse(given: &Map<String, Value>) -> Result<ClientTools, ChatError> {
    let none = Vec::new();
    let tools = match given.get("tools") {
        None => &none,
        Some(Value::Array(tools)) => tools,
        Some(_) => return Err(ChatError::invalid(Some("tools"), "tools: a list is expected")),
    };
    let names = parse_tool_names(tools)?;
    let text = if tools.is_empty() { String::new() } else { Value::from(tools.clone()).to_string() };
    if tools.len() > TOOLS || text.len() > TOOLS_BYTES {
        let most = format!("tools: up to {TOOLS} of up to {TOOLS_BYTES} bytes together are expected");
        return Err(ChatError::invalid(Some("tools"), most));
    }
    let single_call = match given.get("parallel_tool_calls") {
        None => false,
        Some(Value::Bool(parallel)) => !parallel,
        Some(_) => {
            let expected = "parallel_tool_calls: true or false is expected";
            return Err(ChatError::invalid(Some("parallel_tool_calls"), expected));
        }
    };
    let tool_choice = parse_tool_choice(given.get("tool_choice"), &names)?;
    Ok(ClientTools { tools: text, tool_choice, single_call, response_format: parse_response_format(given)? })
}

fn parse_tool_names(tools: &[Value]) -> Result<Vec<&str>, ChatError> {
    let mut names: Vec<&str> = Vec::new();
    for (at, tool) in tools.iter().enumerate() {
        let place = format!("tools[{at}]");
        if tool.get("type").and_then(Value::as_str) != Some("function") {
            return Err(ChatError::unsupported_parameter(
                &place,
                format!("{place}: a tool of type function is expected"),
            ));
        }
        let name = tool.pointer("/function/name").and_then(Value::as_str).unwrap_or_default();
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let is_name = (1..=NAME_BYTES).contains(&name.len()) && name.bytes().all(is_fit);
        if !is_name || CHOICES.contains(&name) || names.contains(&name) {
            let place = format!("{place}.function.name");
            let expected =
                format!("1 to {NAME_BYTES} letters, digits, _ and -, other than those before and auto, none, required");
            return Err(ChatError::invalid(Some(&place), format!("{place}: {expected} are expected")));
        }
        if tool.pointer("/function/parameters").is_some_and(|schema| !schema.is_object() && !schema.is_null()) {
            let place = format!("{place}.function.parameters");
            return Err(ChatError::invalid(Some(&place), format!("{place}: a JSON Schema is expected")));
        }
        names.push(name);
    }
    Ok(names)
}

fn parse_tool_choice(given: Option<&Value>, names: &[&str]) -> Result<String, ChatError> {
    let chosen = match given {
        None => return Ok(String::new()),
        Some(Value::String(word)) => word.as_str(),
        Some(object) => object.pointer("/function/name").and_then(Value::as_str).unwrap_or_default(),
    };
    let is_word = matches!(given, Some(Value::String(_)));
    let is_known = if is_word { CHOICES.contains(&chosen) } else { names.contains(&chosen) };
    if !is_known || chosen == "required" && names.is_empty() {
        let expected = "tool_choice: auto, none, required or one of tools as {\"type\": \"function\", \"function\": {\"name\": ...}} \
                        is expected";
        return Err(ChatError::invalid(Some("tool_choice"), expected));
    }
    Ok(if chosen == "auto" { String::new() } else { chosen.to_owned() })
}

fn parse_response_format(given: &Map<String, Value>) -> Result<String, ChatError> {
    let Some(format) = given.get("response_format") else { return Ok(String::new()) };
    let wrong = |expected: &str| ChatError::invalid(Some("response_format"), format!("response_format: {expected}"));
    match format.get("type").and_then(Value::as_str) {
        Some("text") => Ok(String::new()),
        Some("json_object") => Ok(format.to_string()),
        Some("json_schema") => {
            let text = format.to_string();
            if !format.pointer("/json_schema/schema").is_some_and(Value::is_object) {
                return Err(wrong("json_schema.schema: a JSON Schema is expected"));
            }
            match text.len() <= SCHEMA_BYTES {
                true => Ok(text),
                false => Err(wrong(&format!("up to {SCHEMA_BYTES} bytes are expected"))),
            }
        }
        _ => Err(wrong("the type text, json_object or json_schema is expected")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_of(value: Value) -> Result<ClientTools, Option<String>> {
        parse(value.as_object().unwrap()).map_err(|error| error.param)
    }

    fn tool(name: &str) -> Value {
        json!({ "type": "function", "function": { "name": name, "parameters": { "type": "object" } } })
    }

    #[test]
    fn tools_and_choices_are_read() {
        assert_eq!(read_of(json!({})).unwrap(), ClientTools::default());
        let given = json!({ "tools": [tool("f")], "tool_choice": "required", "parallel_tool_calls": false });
        let tools = read_of(given).unwrap();
        assert_eq!((tools.tool_choice.as_str(), tools.single_call), ("required", true));
        let named = json!({ "type": "function", "function": { "name": "f" } });
        assert_eq!(read_of(json!({ "tools": [tool("f")], "tool_choice": named })).unwrap().tool_choice, "f");
        assert_eq!(read_of(json!({ "tools": [], "tool_choice": "auto" })).unwrap(), ClientTools::default());
        let format = json!({ "type": "json_schema", "json_schema": { "name": "x", "schema": { "type": "object" } } });
        assert_eq!(read_of(json!({ "response_format": format })).unwrap().response_format, format.to_string());
    }

    #[test]
    fn what_cannot_be_taken_is_named() {
        let many: Vec<Value> = (0..=TOOLS).map(|at| tool(&format!("f{at}"))).collect();
        for (given, param) in [
            (json!({ "tools": {} }), "tools"),
            (json!({ "tools": many }), "tools"),
            (json!({ "tools": [{ "type": "custom" }] }), "tools[0]"),
            (json!({ "tools": [tool("f"), tool("f")] }), "tools[1].function.name"),
            (json!({ "tools": [tool("a b")] }), "tools[0].function.name"),
            (json!({ "tools": [tool("none")] }), "tools[0].function.name"),
            (json!({ "tools": [tool("f")], "tool_choice": "f" }), "tool_choice"),
            (json!({ "tool_choice": "required" }), "tool_choice"),
            (json!({ "tools": [tool("f")], "tool_choice": { "function": { "name": "g" } } }), "tool_choice"),
            (json!({ "parallel_tool_calls": 1 }), "parallel_tool_calls"),
            (json!({ "response_format": { "type": "grammar" } }), "response_format"),
            (json!({ "response_format": { "type": "json_schema", "json_schema": {} } }), "response_format"),
        ] {
            assert_eq!(read_of(given.clone()).unwrap_err().as_deref(), Some(param), "{given:.80}");
        }
    }
}
