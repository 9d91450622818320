//! Each demand takes what its provider takes and refuses what it refuses.

use serde_json::{Value, json};

use super::*;

fn call(id: &str, more: &Value) -> Value {
    let mut call = json!({ "id": id, "type": "function", "function": { "name": "tools__now", "arguments": "{}" } });
    for (key, value) in more.as_object().expect("an object") {
        call[key] = value.clone();
    }
    call
}

fn request_with_messages(messages: &Value) -> Value {
    json!({ "messages": messages, "tools": [{ "function": { "name": "tools__now", "parameters": { "type": "object" } } }] })
}

fn with_call(message: &Value) -> Value {
    let mut caller = json!({ "role": "assistant", "tool_calls": [call("aaaaaaaa1", &json!({}))] });
    for (key, value) in message.as_object().expect("an object") {
        caller[key] = value.clone();
    }
    let result = json!({ "role": "tool", "tool_call_id": caller["tool_calls"][0]["id"], "content": "noon" });
    request_with_messages(
        &json!([{ "role": "system", "content": "s" }, { "role": "user", "content": "u" }, caller, result]),
    )
}

fn with_schema(parameters: &Value) -> Value {
    json!({ "messages": [], "tools": [{ "function": { "name": "t", "parameters": parameters } }] })
}

/// A demand, a request that it takes, and one that it refuses.
fn cases() -> Vec<(Demand, Value, Value)> {
    let user = json!({ "role": "user", "content": "u" });
    let signed = json!({ "extra_content": { "google": { "thought_signature": "S" } } });
    let mut without_tools = with_call(&json!({}));
    without_tools["tools"] = Value::Null;
    let twice = json!([call("a", &json!({})), call("a", &json!({}))]);
    vec![
        (
            Demand::FullAssistant,
            with_call(&json!({ "content": "" })),
            request_with_messages(&json!([user, { "role": "assistant", "content": " " }])),
        ),
        (Demand::ReasoningContent, with_call(&json!({ "reasoning_content": "r" })), with_call(&json!({}))),
        (Demand::ReasoningDetails, with_call(&json!({ "reasoning_details": [] })), with_call(&json!({}))),
        (Demand::ThoughtSignature, with_call(&json!({ "tool_calls": [call("a", &signed)] })), with_call(&json!({}))),
        (Demand::ToolsWithCalls, with_call(&json!({})), without_tools),
        (Demand::OpenAi, with_call(&json!({})), with_call(&json!({ "tool_calls": twice }))),
        (Demand::OpenAi, with_schema(&json!({ "type": "object" })), with_schema(&json!({ "type": "array" }))),
        (
            Demand::PlainSchemas,
            with_schema(&json!({ "type": "object", "properties": { "a": { "type": "string", "enum": ["x"] } } })),
            with_schema(&json!({ "type": "object", "properties": { "a": { "enum": ["x"] } } })),
        ),
        (
            Demand::PlainSchemas,
            with_schema(&json!({ "type": "array", "items": { "type": "string" } })),
            with_schema(&json!({ "type": "object", "properties": { "a": { "type": ["string", "null"] } } })),
        ),
        (
            Demand::OneSystem,
            with_call(&json!({})),
            request_with_messages(&json!([user, { "role": "system", "content": "late" }])),
        ),
        (Demand::Alternating, with_call(&json!({})), request_with_messages(&json!([user, user]))),
        (
            Demand::NineCharacterIds,
            with_call(&json!({})),
            with_call(&json!({ "tool_calls": [call("call_1234", &json!({}))] })),
        ),
        (
            Demand::PairedResults,
            with_call(&json!({})),
            request_with_messages(&json!([user, { "role": "tool", "tool_call_id": "a" }])),
        ),
        (
            Demand::PairedResults,
            request_with_messages(&json!([user])),
            request_with_messages(&json!([{ "role": "assistant", "tool_calls": [call("a", &json!({}))] }, user])),
        ),
    ]
}

#[test]
fn a_demand_takes_what_it_should_and_says_what_it_refuses() {
    for (demand, fine, refused) in cases() {
        assert_eq!(demand.violation(&fine), None, "{demand:?}: {fine}");
        assert!(demand.violation(&refused).is_some_and(|words| !words.is_empty()), "{demand:?}: {refused}");
    }
}
