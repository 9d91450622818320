//! Answers that users of other clients reported of their endpoints, in the shapes of their reports.

use serde_json::{Value, json};

use super::{TOKYO, calls_of, chunk, read, stream};

/// A piece of a call: what is null is left out of the function.
fn piece(id: Value, name: Value, arguments: Value) -> Value {
    json!({ "tool_calls": [{ "index": 0, "id": id, "type": "function", "function": { "name": name, "arguments": arguments } }] })
}

fn halves() -> (&'static str, &'static str) {
    TOKYO.split_at(TOKYO.len() / 2)
}

/// su-kaka/gcli2api#403: every chunk says that it is the last one, also those of reasoning and of calls.
#[test]
fn a_reason_to_stop_in_every_chunk_stops_nothing() {
    let stop = || json!("stop");
    let completion = read(&stream(&[
        chunk(json!({ "role": "assistant", "reasoning_content": "Let me" }), stop()),
        chunk(json!({ "reasoning_content": " think." }), stop()),
        chunk(json!({ "content": "It is " }), stop()),
        chunk(json!({ "content": "<b>436</b>." }), stop()),
        chunk(json!({}), stop()),
    ]));
    let completion = completion.unwrap();
    assert_eq!((completion.reasoning.as_str(), completion.text.as_str()), ("Let me think.", "It is <b>436</b>."));

    let (first, second) = halves();
    let called = read(&stream(&[
        chunk(piece(json!("call_1"), json!("tools__now"), json!(first)), stop()),
        chunk(piece(Value::Null, Value::Null, json!(second)), stop()),
    ]));
    assert_eq!(calls_of(&called.unwrap()), [("tools.now", TOKYO)]);
}

/// weicj/vLLM-2080Ti-Definitive#127 and 1CatAI/1Cat-vLLM#240: the name comes again with each piece of the arguments, since some clients
/// want it there.
#[test]
fn a_name_in_every_piece_is_one_call() {
    let (first, second) = halves();
    for id in [json!("call_1"), Value::Null, json!("")] {
        let again = |id: &Value| if id == "call_1" { id.clone() } else { Value::Null };
        let completion = read(&stream(&[
            chunk(piece(id.clone(), json!("tools__now"), json!("")), Value::Null),
            chunk(piece(again(&id), json!("tools__now"), json!(first)), Value::Null),
            chunk(piece(again(&id), json!("tools__now"), json!(second)), Value::Null),
            chunk(piece(again(&id), json!("tools__now"), json!("")), Value::Null),
            chunk(json!({}), json!("tool_calls")),
        ]));
        assert_eq!(calls_of(&completion.unwrap()), [("tools.now", TOKYO)], "{id}");
    }
}

/// vercel/ai#14722: arguments come first, the name in a later piece.
#[test]
fn a_name_may_come_behind_the_arguments() {
    let (first, second) = halves();
    let completion = read(&stream(&[
        chunk(piece(json!("call_1"), Value::Null, json!(first)), Value::Null),
        chunk(piece(json!("call_1"), json!("tools__now"), json!("")), Value::Null),
        chunk(piece(json!("call_1"), Value::Null, json!(second)), Value::Null),
        chunk(json!({}), json!("tool_calls")),
    ]));
    assert_eq!(calls_of(&completion.unwrap()), [("tools.now", TOKYO)]);
}

/// BerriAI/litellm#4440: the piece with the name has null for arguments.
#[test]
fn null_arguments_beside_a_name_lose_neither() {
    let completion = read(&stream(&[
        chunk(piece(json!("call_1"), json!("tools__now"), Value::Null), Value::Null),
        chunk(piece(Value::Null, Value::Null, json!(TOKYO)), Value::Null),
        chunk(json!({}), json!("tool_calls")),
    ]));
    assert_eq!(calls_of(&completion.unwrap()), [("tools.now", TOKYO)]);
}

/// openclaw/openclaw#97994 and ollama/ollama#7963: calls behind which no reason stands, or `stop`.
#[test]
fn calls_need_no_reason_to_be_calls() {
    for reason in [Value::Null, json!("stop"), json!("")] {
        let completion = read(&stream(&[
            chunk(piece(json!("call_1"), json!("tools__now"), json!(TOKYO)), Value::Null),
            chunk(json!({}), reason.clone()),
        ]));
        assert_eq!(calls_of(&completion.unwrap()), [("tools.now", TOKYO)], "{reason}");
    }
}

/// pydantic/pydantic-ai#164 and simonw/llm#294: the first chunk of Azure has no choice, and no model.
#[test]
fn a_first_chunk_without_a_choice_is_passed_over() {
    let first = json!({
        "id": "", "object": "", "created": 0, "model": "", "choices": [], "usage": null,
        "prompt_filter_results": [{ "prompt_index": 0, "content_filter_results": { "hate": { "filtered": false, "severity": "safe" } } }],
    });
    let behind = json!({ "choices": [{ "index": 0, "finish_reason": null, "content_filter_offsets": { "check_offset": 44 }, "content_filter_results": {} }] });
    let words = chunk(json!({ "content": "Hello." }), Value::Null);
    let completion = read(&stream(&[first, words, behind, chunk(json!({}), json!("stop"))])).unwrap();
    assert_eq!((completion.model.as_str(), completion.text.as_str()), ("fake", "Hello."));
}
