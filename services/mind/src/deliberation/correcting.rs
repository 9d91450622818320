//! Showing a model its mistake: its answer as it was, and why it could not be used.

use kairo_proto::v1::Completion;
use serde_json::{Value, json};

use crate::{
    chat_completions::to_wire,
    request::{Message, ModelRequest, ToolCall},
};

/// Longest name of a tool, in bytes, that every endpoint accepts.
const NAME_BYTES: usize = 64;

/// Puts an answer behind a request, and below it what is wrong with it. No message is empty, and each call that was made has a
/// result: endpoints refuse anything else.
pub(super) fn correct(request: &mut ModelRequest, completion: &Completion, mistake: &str) {
    let text = completion.text.trim();
    if completion.tool_calls.is_empty() {
        let told = match text {
            "" => "(no words)",
            text => text,
        };
        request.messages.push(Message::answered(told));
        request.messages.push(Message::said(format!("That answer could not be used: {mistake}. Try again.")));
        return;
    }
    let at = request.messages.len();
    let call = |(position, call): (usize, &kairo_proto::v1::CompletionToolCall)| ToolCall {
        id: format!("mistake{at}x{position}"),
        tool: name(&call.tool),
        arguments: arguments(&call.arguments),
        ..ToolCall::default()
    };
    let calls: Vec<ToolCall> = completion.tool_calls.iter().enumerate().map(call).collect();
    let ids: Vec<String> = calls.iter().map(|call| call.id.clone()).collect();
    request.messages.push(Message::called(text, calls));
    for call_id in ids {
        let text = json!({ "error": "not_called", "message": format!("{mistake}. Try again.") }).to_string();
        request.messages.push(Message::Tool { call_id, text });
    }
}

/// The name of a tool as every endpoint accepts it.
fn name(tool: &str) -> String {
    let accepted =
        |char: char| if char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.') { char } else { '_' };
    let name: String = to_wire(tool).chars().map(accepted).take(NAME_BYTES).collect();
    if name.is_empty() { "nameless".to_owned() } else { name }
}

/// Arguments as the model wrote them or, where that is no JSON object, an object that holds them.
fn arguments(written: &str) -> String {
    match serde_json::from_str::<Value>(written) {
        Ok(Value::Object(_)) => written.to_owned(),
        _ => json!({ "not_an_object": written }).to_string(),
    }
}
