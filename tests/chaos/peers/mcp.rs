//! The messages of the load's MCP servers, whatever the transport. Pure.

use serde_json::{Value, json};

use super::{BOOK, Errand, PAY, behavior::Behavior};

/// The kinds of client message that servers tell apart.
pub enum Request {
    /// It wants no answer.
    Notification,
    /// A request that is answered with this.
    Answered(Value),
    Call {
        id: Value,
        errand: Errand,
    },
}

/// The arguments of every tool.
pub fn schema() -> Value {
    json!({ "type": "object", "properties": { "effect": { "type": "string" } }, "required": ["effect"] })
}

/// Reads a message. Every other list of tools, of which `listed` is the number, has one tool more.
pub fn read(message: &Value, caller: &str, listed: usize) -> Request {
    let id = message.get("id").cloned().unwrap_or_default();
    let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
    if id.is_null() || method.is_empty() {
        return Request::Notification;
    }
    let result = |result: Value| Request::Answered(json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    match method {
        "initialize" => result(json!({
            "protocolVersion": "2025-06-18",
            "capabilities": { "tools": { "listChanged": true } },
            "serverInfo": { "name": "peer", "version": "1" },
        })),
        "tools/list" => result(json!({ "tools": tools(listed) })),
        "ping" => result(json!({})),
        "tools/call" => {
            let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
            let (effect, key) = (text("/params/arguments/effect"), text("/params/_meta/kairo~1action-id"));
            let is_keyed = text("/params/name") == BOOK;
            Request::Call { id, errand: Errand { effect, key, caller: caller.to_owned(), is_keyed } }
        }
        _ => Request::Answered(
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "Method not found" } }),
        ),
    }
}

fn tools(listed: usize) -> Vec<Value> {
    let tool = |name: &str, is_keyed: bool| {
        json!({
            "name": name, "description": "Has an effect.", "inputSchema": schema(),
            "annotations": { "destructiveHint": false, "idempotentHint": is_keyed },
        })
    };
    let mut tools = vec![tool(PAY, false), tool(BOOK, true)];
    tools.extend((listed % 2 == 1).then(|| tool("now_and_then", true)));
    tools
}

/// The bytes of the answer to a call, on one line.
pub fn answer(id: &Value, errand: &Errand, behavior: Behavior) -> Vec<u8> {
    let text = format!("did {}", errand.effect);
    let whole = |result: Value| json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
    let said = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
    match behavior {
        Behavior::UnknownBlock => {
            whole(json!({ "content": [{ "type": "text", "text": text }, { "type": "receipt", "number": 7 }] })).into()
        }
        Behavior::NoContent => whole(json!({ "receipt": text })).into(),
        Behavior::OtherShape => whole(json!({ "toolResult": said(&text) })).into(),
        Behavior::NullResult => whole(Value::Null).into(),
        Behavior::Refusal => {
            whole(json!({ "content": [{ "type": "text", "text": "no funds" }], "isError": true })).into()
        }
        Behavior::HalfSurrogate => whole(said("HALF")).replace("HALF", "half \\ud83d").into(),
        Behavior::BadUtf8 => {
            let (before, after) = (whole(said("ODD")), "ODD");
            let mut bytes = Vec::new();
            for (number, part) in before.split(after).enumerate() {
                bytes.extend_from_slice(if number == 0 { b"" } else { b"caf\xe9 \xff" });
                bytes.extend_from_slice(part.as_bytes());
            }
            bytes
        }
        _ => whole(said(&text)).into(),
    }
}
