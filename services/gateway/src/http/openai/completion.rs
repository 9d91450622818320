//! Answers to a chat client, in the form of OpenAI's API. Pure.

use kairo_core::ids::Name;
use kairo_proto::{v1::ChatToolCall, words::AnswerEnding};
use serde_json::{Value, json};
use uuid::Uuid;

use super::turn::{ChatReply, TokenUsage};

/// The fields that all parts of an answer have in common.
#[derive(Clone, Debug)]
pub struct CompletionResponse {
    /// The event that is answered.
    pub event_id: Uuid,
    /// In seconds since the epoch.
    pub created: i64,
    pub model: Name,
}

impl CompletionResponse {
    /// All of it.
    pub fn completion(&self, reply: &ChatReply, tokens: TokenUsage) -> Value {
        let text = Some(reply.text.as_str()).filter(|text| !text.is_empty() || reply.calls.is_empty());
        let (content, refusal) = if reply.is_refusal() { (None, text) } else { (text, None) };
        let mut message = json!({ "role": "assistant", "content": content, "refusal": refusal });
        if let (Some(fields), false) = (message.as_object_mut(), reply.calls.is_empty()) {
            fields.insert("tool_calls".to_owned(), reply.calls.iter().map(tool_call_json).collect());
        }
        let finish_reason = reply.finish_reason();
        let choice = json!({ "index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason });
        self.build_object("chat.completion", json!([choice]), Some(tokens))
    }

    /// The first chunk, which says who speaks.
    pub fn role_chunk(&self) -> Value {
        self.choice_chunk(json!({ "role": "assistant", "content": "" }), None)
    }

    /// A piece of the content.
    pub fn content_chunk(&self, content: &str) -> Value {
        self.choice_chunk(json!({ "content": content }), None)
    }

    /// A refusal of which nothing was sent before.
    pub fn refusal_chunk(&self, text: &str) -> Value {
        self.choice_chunk(json!({ "refusal": text }), None)
    }

    /// Calls of the client's tools.
    pub fn tool_calls_chunk(&self, calls: &[ChatToolCall]) -> Value {
        let indexed = calls.iter().enumerate().map(|(at, call)| {
            let mut told = tool_call_json(call);
            if let Some(fields) = told.as_object_mut() {
                fields.insert("index".to_owned(), at.into());
            }
            told
        });
        self.choice_chunk(json!({ "tool_calls": indexed.collect::<Vec<_>>() }), None)
    }

    /// The last chunk of content.
    pub fn finish_chunk(&self, reply: &ChatReply) -> Value {
        self.choice_chunk(json!({}), Some(reply.finish_reason()))
    }

    /// A chunk that says what it took, for clients that asked for it.
    pub fn usage_chunk(&self, tokens: TokenUsage) -> Value {
        self.build_object(CHUNK, json!([]), Some(tokens))
    }

    fn choice_chunk(&self, delta: Value, finish_reason: Option<&str>) -> Value {
        let choice = json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason });
        self.build_object(CHUNK, json!([choice]), None)
    }

    fn build_object(&self, object: &str, choices: Value, tokens: Option<TokenUsage>) -> Value {
        let usage = tokens.map(|TokenUsage { input, output, cached }| {
            json!({
                "prompt_tokens": input,
                "completion_tokens": output,
                "total_tokens": input.saturating_add(output),
                "prompt_tokens_details": { "cached_tokens": cached },
            })
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

impl ChatReply {
    pub fn is_refusal(&self) -> bool {
        self.ending == AnswerEnding::Refused
    }

    /// Returns the reason why the reply ends, in the terms of OpenAI's API.
    fn finish_reason(&self) -> &'static str {
        match self.ending {
            _ if !self.calls.is_empty() => "tool_calls",
            AnswerEnding::Cut => "length",
            AnswerEnding::Filtered => "content_filter",
            AnswerEnding::Complete | AnswerEnding::Refused | AnswerEnding::Failed | AnswerEnding::Empty => "stop",
            AnswerEnding::Unknown(_) => "stop",
        }
    }
}

fn tool_call_json(call: &ChatToolCall) -> Value {
    let function = json!({ "name": call.tool, "arguments": call.arguments });
    json!({ "id": call.call_id, "type": "function", "function": function })
}

const CHUNK: &str = "chat.completion.chunk";

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(text: &str, ending: AnswerEnding, calls: usize) -> ChatReply {
        let call = ChatToolCall { call_id: "abcdefghi".into(), tool: "f".into(), arguments: "{}".into() };
        ChatReply { text: text.to_owned(), ending, calls: vec![call; calls] }
    }

    #[test]
    fn how_an_answer_ended_is_told() {
        let answer = CompletionResponse { event_id: Uuid::nil(), created: 7, model: Name::parse("coach").unwrap() };
        for (reply, finish, message) in [
            (reply("hi", AnswerEnding::Complete, 0), "stop", json!({ "content": "hi", "refusal": null })),
            (reply("hi", AnswerEnding::Cut, 0), "length", json!({ "content": "hi", "refusal": null })),
            (reply("", AnswerEnding::Filtered, 0), "content_filter", json!({ "content": "", "refusal": null })),
            (reply("no", AnswerEnding::Refused, 0), "stop", json!({ "content": null, "refusal": "no" })),
            (reply("", AnswerEnding::Complete, 1), "tool_calls", json!({ "content": null, "refusal": null })),
        ] {
            let whole = answer.completion(&reply, TokenUsage { input: u64::MAX, output: 2, cached: 1 });
            let choice = &whole["choices"][0];
            assert_eq!(choice["finish_reason"], finish);
            for (field, value) in message.as_object().unwrap() {
                assert_eq!(&choice["message"][field], value, "{whole}");
            }
            assert_eq!(
                (&whole["usage"]["total_tokens"], answer.finish_chunk(&reply)["choices"][0]["finish_reason"].as_str()),
                (&json!(u64::MAX), Some(finish))
            );
            assert_eq!(whole["usage"]["prompt_tokens_details"]["cached_tokens"], 1);
        }
        let chunk = answer.tool_calls_chunk(&reply("", AnswerEnding::Complete, 2).calls);
        assert_eq!(chunk["choices"][0]["delta"]["tool_calls"][1]["index"], 1);
    }
}
