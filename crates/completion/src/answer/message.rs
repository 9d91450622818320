//! The contents of a piece of an answer: words, reasoning, a refusal, calls among the parts of its content.

#![allow(clippy::indexing_slicing, reason = "indexing a serde_json::Value yields null, it does not panic")]

use serde_json::Value;

/// The parts of one piece.
#[derive(Debug, Default, PartialEq)]
pub struct PieceContent<'v> {
    pub words: String,
    /// Reasoning in fields or parts of its own; blocks within the words are told apart later.
    pub reasoning: String,
    pub refusal: String,
    /// Calls that are parts of the content.
    pub calls: Vec<&'v Value>,
}

/// Fields that hold reasoning; some endpoints send two that say the same.
const REASONING: [&str; 4] = ["reasoning_content", "reasoning", "thinking", "reasoning_text"];

/// Reads a delta or a message.
pub fn read_message(message: &Value) -> PieceContent<'_> {
    let mut said = PieceContent::default();
    content(&message["content"], &mut said);
    if let Some(refusal) = message["refusal"].as_str() {
        said.refusal.push_str(refusal);
    }
    let field = REASONING.iter().map(|name| text(&message[*name])).find(|text| !text.is_empty());
    let field = field.unwrap_or_else(|| details_text(&message["reasoning_details"]));
    said.reasoning.insert_str(0, &field);
    said
}

fn content<'v>(value: &'v Value, said: &mut PieceContent<'v>) {
    match value {
        Value::String(words) => said.words.push_str(words),
        Value::Number(number) => said.words.push_str(&number.to_string()),
        Value::Array(parts) => parts.iter().for_each(|part| content(part, said)),
        Value::Object(_) => part(value, said),
        Value::Null | Value::Bool(_) => {}
    }
}

fn part<'v>(part: &'v Value, said: &mut PieceContent<'v>) {
    match part["type"].as_str().unwrap_or("text") {
        "thinking" | "reasoning" | "reasoning_text" | "reasoning.text" => {
            let fields = ["thinking", "reasoning", "text", "content", "summary"];
            said.reasoning.extend(fields.iter().map(|name| text(&part[*name])).find(|text| !text.is_empty()));
        }
        "refusal" => said.refusal.push_str(&text(&part["refusal"])),
        "tool_use" | "tool_call" | "function" | "function_call" => said.calls.push(part),
        _ => said
            .words
            .extend(["text", "content", "value"].iter().map(|name| text(&part[*name])).find(|text| !text.is_empty())),
    }
}

/// The text of a value that may be a text, an object with one, or a list of these.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(pieces) => pieces.iter().map(text).collect(),
        Value::Object(object) => {
            let fields = ["text", "content", "value", "summary", "thinking"];
            fields
                .iter()
                .filter_map(|name| object.get(*name))
                .map(text)
                .find(|text| !text.is_empty())
                .unwrap_or_default()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// The plain text of `reasoning_details`, where no other field says it.
fn details_text(details: &Value) -> String {
    details.as_array().into_iter().flatten().map(|item| text(&item["text"]) + &text(&item["summary"])).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_and_reasoning_are_found_wherever_they_stand() {
        for (message, words, reasoning, refusal) in [
            (json!({ "content": "a" }), "a", "", ""),
            (json!({ "content": null, "refusal": "no" }), "", "", "no"),
            (json!({ "content": ["a", { "type": "text", "text": "b" }, { "text": { "value": "c" } }] }), "abc", "", ""),
            (json!({ "content": { "type": "output_text", "text": "a" } }), "a", "", ""),
            (json!({ "content": [{ "type": "refusal", "refusal": "no" }] }), "", "", "no"),
            (
                json!({ "content": [{ "type": "thinking", "thinking": [{ "type": "text", "text": "h" }, { "text": "m" }] }] }),
                "",
                "hm",
                "",
            ),
            (json!({ "reasoning": { "text": "hm" }, "content": "" }), "", "hm", ""),
            (json!({ "reasoning": "hm", "reasoning_content": "hm" }), "", "hm", ""),
            (json!({ "reasoning_details": [{ "type": "reasoning.summary", "summary": "hm" }] }), "", "hm", ""),
            (json!(null), "", "", ""),
            (json!([1, "x"]), "", "", ""),
        ] {
            let said = read_message(&message);
            assert_eq!(
                (said.words.as_str(), said.reasoning.as_str(), said.refusal.as_str()),
                (words, reasoning, refusal),
                "{message}"
            );
        }
        let with_call = json!({ "content": [{ "type": "tool_use", "id": "a", "name": "n", "input": {} }] });
        assert_eq!(read_message(&with_call).calls.len(), 1);
    }
}
