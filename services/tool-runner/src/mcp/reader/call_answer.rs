//! Reads what came of a call: whatever form it has, what can be read of it is read.

use rmcp::model::{CallToolResult, ContentBlock, CustomResult, ServerResult};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::content_block;
use super::wording::{json_kind, shorten_text, text_of};

/// Longest text that is kept of an answer that cannot be read, in characters.
const MAX_TEXT_CHARS: usize = 2_000;
/// The kind of results that end a call.
pub(super) const COMPLETE: &str = "complete";
/// Fields of results that say nothing of what came of a call.
const NOT_CONTENT: [&str; 3] = ["_meta", "resultType", "isError"];

/// Stands in the place of an answer that cannot be read as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadableAnswer {
    /// The reason it cannot be read.
    pub reason: String,
    /// Text that could still be read, at most 2 000 characters; may be empty.
    pub text: String,
}

/// Under which name it travels in a result.
const UNREADABLE: &str = "kairo/unreadable";

impl UnreadableAnswer {
    pub fn new(reason: impl Into<String>, text: &str) -> Self {
        Self { reason: reason.into(), text: shorten_text(text.trim(), MAX_TEXT_CHARS) }
    }

    /// The result that says so.
    pub fn into_result(self) -> ServerResult {
        ServerResult::CustomResult(CustomResult(json!({ UNREADABLE: self })))
    }

    /// Reads the value from a result of unknown kind.
    pub fn from_result(result: &CustomResult) -> Self {
        let read = result.0.get(UNREADABLE).and_then(|value| Self::deserialize(value).ok());
        read.unwrap_or_else(|| Self::new("with a result of another kind", &text_of(&result.0)))
    }
}

/// Reads the result of a call, with notes on anything odd in it.
///
/// # Errors
/// When it says nothing about the outcome of the call.
pub fn read(result: Value) -> (Result<ServerResult, UnreadableAnswer>, Vec<String>) {
    let mut notes = Vec::new();
    let read = read_any(result, &mut notes);
    (read, notes)
}

fn read_any(result: Value, notes: &mut Vec<String>) -> Result<ServerResult, UnreadableAnswer> {
    let fields = match result {
        Value::Object(fields) => fields,
        Value::Null => return Err(UnreadableAnswer::new("with null as the result", "")),
        Value::Array(blocks) if blocks.iter().any(|block| block.get("type").is_some()) => {
            notes.push("the result of a call is a bare list of blocks".to_owned());
            return Ok(complete_result(read_content(Value::Array(blocks), notes), None, false));
        }
        Value::String(text) => {
            notes.push("the result of a call is a bare string".to_owned());
            return Ok(complete_result(vec![ContentBlock::text(text)], None, false));
        }
        other => {
            notes.push(format!("the result of a call is {}", json_kind(&other)));
            return Ok(complete_result(Vec::new(), Some(other), false));
        }
    };
    if let Some(other) = read_other_kind(&fields) {
        return other;
    }
    Ok(read_fields(fields, notes))
}

/// A result that is not the end of the call: a question, or a task that goes on.
fn read_other_kind(fields: &Map<String, Value>) -> Option<Result<ServerResult, UnreadableAnswer>> {
    let said = fields.get("resultType").and_then(Value::as_str).filter(|said| !said.is_empty() && *said != COMPLETE);
    let is_task =
        fields.get("task").is_some_and(|task| task.get("taskId").is_some()) && !fields.contains_key("content");
    let whole = || Value::Object(fields.clone());
    let Some(said) = said else {
        return is_task.then(|| Ok(ServerResult::CustomResult(CustomResult(whole()))));
    };
    Some(match serde_json::from_value(whole()) {
        Ok(result @ (ServerResult::InputRequiredResult(_) | ServerResult::CreateTaskResult(_))) => Ok(result),
        Ok(_) | Err(_) => Err(UnreadableAnswer::new(format!("with a result of kind {said:?}"), &text_of(&whole()))),
    })
}

fn read_fields(mut fields: Map<String, Value>, notes: &mut Vec<String>) -> ServerResult {
    let is_error = fields.get("isError").is_some_and(|said| read_flag(said, notes));
    let structured = fields.remove("structuredContent").filter(|content| !content.is_null());
    let blocks = fields.remove("content");
    let is_known = blocks.is_some() || structured.is_some();
    if let Some(blocks) = blocks.filter(|blocks| !blocks.is_null()) {
        return complete_result(read_content(blocks, notes), structured, is_error);
    }
    if structured.is_some() {
        return complete_result(Vec::new(), structured, is_error);
    }
    // The form of the protocol's first drafts.
    if let Some(inner) = fields.remove("toolResult") {
        notes.push("the result of a call is in toolResult".to_owned());
        return match inner {
            Value::Object(inner) if inner.contains_key("content") => read_fields(inner, notes),
            inner => complete_result(vec![ContentBlock::text(text_of(&inner))], None, is_error),
        };
    }
    fields.retain(|name, _| !NOT_CONTENT.contains(&name.as_str()));
    if !is_known {
        notes.push("the result of a call has no content".to_owned());
    }
    complete_result(Vec::new(), Some(Value::Object(fields)).filter(|fields| fields != &json!({})), is_error)
}

fn read_content(blocks: Value, notes: &mut Vec<String>) -> Vec<ContentBlock> {
    let blocks = match blocks {
        Value::Array(blocks) => blocks,
        other => {
            notes.push(format!("the content of a result is {}, not a list", json_kind(&other)));
            vec![other]
        }
    };
    let mut read = Vec::new();
    for block in blocks {
        let (block, note) = content_block::read(block);
        read.extend(block);
        notes.extend(note);
    }
    read
}

fn read_flag(said: &Value, notes: &mut Vec<String>) -> bool {
    let is_true = match said {
        Value::Bool(said) => return *said,
        Value::Null => false,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => matches!(text.trim().to_ascii_lowercase().as_str(), "true" | "yes" | "1"),
        Value::Array(_) | Value::Object(_) => false,
    };
    notes.push(format!("isError is {}", json_kind(said)));
    is_true
}

fn complete_result(content: Vec<ContentBlock>, structured: Option<Value>, is_error: bool) -> ServerResult {
    let mut result = match is_error {
        true => CallToolResult::error(content),
        false => CallToolResult::success(content),
    };
    result.structured_content = structured;
    ServerResult::CallToolResult(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::conversion::call_result;
    use crate::tool::ToolError;

    /// Returns the outcome of a result as the agent sees it.
    fn read_result(result: Value) -> Result<Value, ToolError> {
        match read(result).0.unwrap() {
            ServerResult::CallToolResult(result) => call_result(result),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn whatever_form_a_result_has_its_content_is_read() {
        let text = |text: &str| json!([{"type": "text", "text": text}]);
        for (result, value) in [
            (json!({"content": text("a")}), json!("a")),
            (
                json!({"content": [{"type": "text", "text": "paid"}, {"type": "receipt", "number": 7}]}),
                json!("paid\n[content of kind receipt: {\"number\":7}]"),
            ),
            (json!({"content": [null, {"type": "text", "text": "a"}]}), json!("a")),
            (json!({"content": {"type": "text", "text": "a"}}), json!("a")),
            (json!({"content": "a"}), json!("a")),
            (json!({"content": null}), json!("")),
            (json!({"content": []}), json!("")),
            (json!({}), json!("")),
            (json!({"_meta": {"x": 1}}), json!("")),
            (json!({"content": null, "receipt": 7}), json!({"receipt": 7})),
            (json!({"receipt": 7, "isError": null}), json!({"receipt": 7})),
            (json!({"toolResult": {"content": text("old form")}}), json!("old form")),
            (json!({"toolResult": "old form"}), json!("old form")),
            (json!({"content": text("seven"), "structuredContent": 7}), json!(7)),
            (json!({"content": text("seven"), "structuredContent": null}), json!("seven")),
            (json!({"structuredContent": [1]}), json!([1])),
            (json!({"content": text("a"), "isError": "false"}), json!("a")),
            (json!({"content": text("a"), "resultType": "complete", "ttlMs": "x"}), json!("a")),
            (json!("bare"), json!("bare")),
            (json!(7), json!(7)),
            (json!(true), json!(true)),
            (text("a"), json!("a")),
            (json!([1, 2]), json!([1, 2])),
        ] {
            assert_eq!(read_result(result.clone()), Ok(value), "{result}");
        }
    }

    #[test]
    fn an_error_is_one_in_whatever_form_it_is_said() {
        for said in [json!(true), json!("true"), json!("True"), json!(1)] {
            let result = json!({"content": [{"type": "text", "text": "no"}], "isError": said});
            assert_eq!(read_result(result), Err(ToolError::failed("no")), "{said}");
        }
        assert_eq!(read_result(json!({"isError": true, "reason": "no"})), Err(ToolError::failed(r#"{"reason":"no"}"#)));
    }

    #[test]
    fn what_is_no_end_of_the_call_is_not_taken_for_one() {
        for result in [json!(null), json!({"resultType": "partial", "content": []}), json!({"resultType": "task"})] {
            let unreadable = read(result.clone()).0.unwrap_err();
            assert!(unreadable.reason.starts_with("with "), "{result}");
            let ServerResult::CustomResult(travels) = unreadable.clone().into_result() else { panic!("{result}") };
            assert_eq!(UnreadableAnswer::from_result(&travels), unreadable);
        }
        assert_eq!(UnreadableAnswer::from_result(&CustomResult(json!({"x": 1}))).text, r#"{"x":1}"#);
    }

    #[test]
    fn questions_are_passed_on() {
        let question = json!({"resultType": "input_required", "inputRequests": {}, "requestState": "s"});
        assert!(matches!(read(question).0, Ok(ServerResult::InputRequiredResult(_))));
    }
}
