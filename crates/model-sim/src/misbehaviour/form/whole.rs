//! A stream in one body. Pure.

use serde_json::{Value, json};

use crate::json::{at, remove_field, set_field};

/// All of a stream, as an endpoint says it that does not stream.
pub(super) fn body(chunks: &[Value]) -> Value {
    let mut message = json!({ "role": "assistant", "content": null });
    let mut finish = Value::Null;
    let mut usage = Value::Null;
    for chunk in chunks {
        for (key, value) in at(chunk, "/choices/0/delta").as_object().into_iter().flatten() {
            add(&mut message, key, value);
        }
        for (kept, told) in [(&mut finish, at(chunk, "/choices/0/finish_reason")), (&mut usage, at(chunk, "/usage"))] {
            if !told.is_null() {
                *kept = told.clone();
            }
        }
    }
    let choices = json!([{ "index": 0, "message": message, "finish_reason": finish }]);
    let mut body = json!({ "object": "chat.completion", "choices": choices, "usage": usage });
    for (key, value) in chunks.first().and_then(Value::as_object).into_iter().flatten() {
        if ["id", "created", "model"].contains(&key.as_str()) {
            set_field(&mut body, key, value.clone());
        }
    }
    body
}

fn add(message: &mut Value, key: &str, value: &Value) {
    match (key, value.as_str()) {
        ("tool_calls", _) => value.as_array().into_iter().flatten().for_each(|call| add_call(message, call)),
        ("role", _) => {}
        (_, Some(text)) => {
            let before = message[key].as_str().unwrap_or_default().to_owned();
            set_field(message, key, Value::from(before + text));
        }
        _ => set_field(message, key, value.clone()),
    }
}

fn add_call(message: &mut Value, call: &Value) {
    if message["tool_calls"].is_null() {
        set_field(message, "tool_calls", json!([]));
    }
    let Some(calls) = message.pointer_mut("/tool_calls").and_then(Value::as_array_mut) else { return };
    let index = call["index"].as_u64().and_then(|index| usize::try_from(index).ok()).unwrap_or_default();
    match calls.get_mut(index).and_then(|begun| begun.pointer_mut("/function/arguments")) {
        Some(Value::String(arguments)) => {
            arguments.push_str(at(call, "/function/arguments").as_str().unwrap_or_default());
        }
        _ => {
            let mut begun = call.clone();
            remove_field(&mut begun, "index");
            calls.push(begun);
        }
    }
}
