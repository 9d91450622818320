//! What a chat client is sent, in the form of OpenAI's API. Pure.

use kairo_core::ids::Name;
use serde_json::{Value, json};
use uuid::Uuid;

use super::turn::Tokens;

/// What all parts of an answer have in common.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The event that is answered.
    pub event_id: Uuid,
    /// In seconds since the epoch.
    pub created: i64,
    pub model: Name,
}

impl Answer {
    /// All of it.
    pub fn whole(&self, content: &str, tokens: Tokens) -> Value {
        let message = json!({ "role": "assistant", "content": content, "refusal": null });
        let choice = json!({ "index": 0, "message": message, "logprobs": null, "finish_reason": "stop" });
        self.of("chat.completion", json!([choice]), Some(tokens))
    }

    /// The first chunk, which says who speaks.
    pub fn beginning(&self) -> Value {
        self.chunk(json!({ "role": "assistant", "content": "" }), None)
    }

    /// A piece of the content.
    pub fn piece(&self, content: &str) -> Value {
        self.chunk(json!({ "content": content }), None)
    }

    /// The last chunk of content.
    pub fn end(&self) -> Value {
        self.chunk(json!({}), Some("stop"))
    }

    /// A chunk that says what it took, for clients that asked for it.
    pub fn usage(&self, tokens: Tokens) -> Value {
        self.of(CHUNK, json!([]), Some(tokens))
    }

    fn chunk(&self, delta: Value, finish_reason: Option<&str>) -> Value {
        let choice = json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason });
        self.of(CHUNK, json!([choice]), None)
    }

    fn of(&self, object: &str, choices: Value, tokens: Option<Tokens>) -> Value {
        let usage = tokens.map(|Tokens { input, output }| {
            json!({ "prompt_tokens": input, "completion_tokens": output, "total_tokens": input.saturating_add(output) })
        });
        json!({
            "id": format!("chatcmpl-{}", self.event_id),
            "object": object,
            "created": self.created,
            "model": self.model.as_str(),
            "choices": choices,
            "usage": usage,
        })
    }
}

const CHUNK: &str = "chat.completion.chunk";
