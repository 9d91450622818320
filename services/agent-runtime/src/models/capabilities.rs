//! Features that an endpoint does not support, learned from the requests it refuses. Kept in the memory of this
//! replica, so each is tried once after each start.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use kairo_completion::error::RefusedFeature;
use kairo_mind::{
    chat_completions::{EndpointFeatures, to_wire_name},
    request::{Tool, short_digest},
};
use serde_json::{Map, Value};

/// Tools and fields that are remembered; with more, all of them are forgotten and learned anew.
const REMEMBERED: usize = 256;

/// The request features that one endpoint supports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    refuses_json_schema: bool,
    refuses_stream_options: bool,
    refuses_max_completion_tokens: bool,
    refuses_tool_choice: bool,
    refuses_parts: bool,
    refuses_system_message: bool,
    refuses_parallel_calls: bool,
    refuses_call_ids: bool,
    /// Names on the wire of tools that it refuses, with digests of their schemas: a tool that changes is offered again.
    left_out_tools: BTreeSet<(String, u64)>,
    /// Fields of messages that it refuses.
    left_out_fields: BTreeSet<String>,
}

impl Capabilities {
    /// Returns true if the endpoint takes images, audio and video.
    pub fn takes_parts(&self) -> bool {
        !self.refuses_parts
    }

    /// Returns the request format for this endpoint.
    pub fn request_format(&self) -> EndpointFeatures {
        EndpointFeatures {
            system_message: !self.refuses_system_message,
            parallel_calls: !self.refuses_parallel_calls,
            call_ids: !self.refuses_call_ids,
            ..EndpointFeatures::default()
        }
    }

    /// Returns true if the endpoint takes everything that the format has.
    pub fn takes_all(&self) -> bool {
        *self == Self::default()
    }

    /// Notes a feature refused in a request with these tools. Returns false if the request lacks it or it was left out
    /// already: the endpoint then means something else.
    pub fn learn(&mut self, refused: &RefusedFeature, body: &Value, tools: &[Tool]) -> bool {
        let holds = |field: &str| body.get(field).is_some();
        match refused {
            RefusedFeature::ResponseFormat => {
                holds("response_format") && !std::mem::replace(&mut self.refuses_json_schema, true)
            }
            RefusedFeature::StreamOptions => {
                holds("stream_options") && !std::mem::replace(&mut self.refuses_stream_options, true)
            }
            RefusedFeature::MaxCompletionTokens => {
                holds("max_completion_tokens") && !std::mem::replace(&mut self.refuses_max_completion_tokens, true)
            }
            RefusedFeature::ToolChoice => {
                holds("tool_choice") && !std::mem::replace(&mut self.refuses_tool_choice, true)
            }
            RefusedFeature::Parts => !std::mem::replace(&mut self.refuses_parts, true),
            RefusedFeature::SystemMessage => !std::mem::replace(&mut self.refuses_system_message, true),
            RefusedFeature::ParallelCalls => !std::mem::replace(&mut self.refuses_parallel_calls, true),
            RefusedFeature::CallIds => !std::mem::replace(&mut self.refuses_call_ids, true),
            RefusedFeature::Tool(name) => {
                self.omit_tool(tools.iter().find(|tool| to_wire_name(&tool.name) == *name || *tool.name == **name))
            }
            RefusedFeature::ToolAt(place) => {
                let offered: Vec<&Tool> = tools.iter().filter(|tool| !self.omits_tool(tool)).collect();
                self.omit_tool(offered.get(*place).copied())
            }
            RefusedFeature::MessageField(field) => {
                if self.left_out_fields.len() >= REMEMBERED {
                    self.left_out_fields.clear();
                }
                self.left_out_fields.insert(field.clone())
            }
        }
    }

    /// The tools that it refuses, as they are named on the wire.
    pub fn refused_tools(&self) -> impl Iterator<Item = &str> {
        self.left_out_tools.iter().map(|(name, _)| name.as_str())
    }

    fn omits_tool(&self, tool: &Tool) -> bool {
        self.left_out_tools.contains(&key(tool))
    }

    fn omit_tool(&mut self, tool: Option<&Tool>) -> bool {
        let Some(tool) = tool else { return false };
        if self.left_out_tools.len() >= REMEMBERED {
            self.left_out_tools.clear();
        }
        self.left_out_tools.insert(key(tool))
    }

    /// Takes out of a request what is refused.
    pub fn adjust(&self, body: &mut Value, tools: &[Tool]) {
        let Some(body) = body.as_object_mut() else { return };
        let refused = [
            ("response_format", self.refuses_json_schema),
            ("stream_options", self.refuses_stream_options),
            ("tool_choice", self.refuses_tool_choice),
        ];
        for (field, _) in refused.into_iter().filter(|(_, refused)| *refused) {
            body.remove(field);
        }
        if self.refuses_max_completion_tokens
            && let Some(tokens) = body.remove("max_completion_tokens")
        {
            body.insert("max_tokens".to_owned(), tokens);
        }
        self.adjust_tools(body, tools);
        for message in body.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten() {
            self.adjust_message(message);
        }
    }

    fn adjust_tools(&self, body: &mut Map<String, Value>, tools: &[Tool]) {
        let left_out: BTreeSet<String> =
            tools.iter().filter(|tool| self.omits_tool(tool)).map(|tool| to_wire_name(&tool.name)).collect();
        let Some(offered) = body.get_mut("tools").and_then(Value::as_array_mut).filter(|_| !left_out.is_empty()) else {
            return;
        };
        let name = |tool: &Value| tool.pointer("/function/name").and_then(Value::as_str).map(str::to_owned);
        offered.retain(|tool| name(tool).is_none_or(|name| !left_out.contains(&name)));
        if offered.is_empty() {
            body.remove("tools");
            body.remove("tool_choice");
        }
    }

    fn adjust_message(&self, message: &mut Value) {
        let Some(message) = message.as_object_mut() else { return };
        message.retain(|field, _| !self.left_out_fields.contains(field));
        for call in message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(call) = call.as_object_mut() {
                call.retain(|field, _| !self.left_out_fields.contains(field));
            }
        }
    }
}

fn key(tool: &Tool) -> (String, u64) {
    (to_wire_name(&tool.name), short_digest(tool.schema.as_bytes()))
}

/// Facts that a replica has learned about an endpoint.
#[derive(Debug, Default)]
pub struct EndpointKnowledge(Mutex<Lessons>);

#[derive(Debug, Default)]
struct Lessons {
    capabilities: Capabilities,
    /// It has marked the end of an answer.
    marks_ends: bool,
    /// Digests of requests whose last answer ended without a sign that it was whole.
    unmarked: BTreeSet<String>,
    /// Digest of the last request that was more than the endpoint takes in a minute.
    too_large_for_minute: String,
}

impl EndpointKnowledge {
    pub fn capabilities(&self) -> Capabilities {
        self.lock().capabilities.clone()
    }

    /// An endpoint answered what was left of a request.
    pub fn keep(&self, capabilities: Capabilities) {
        self.lock().capabilities = capabilities;
    }

    /// Returns true if an answer to this request counts as complete without an end marker: if the previous one ended
    /// so, too, or no answer of this endpoint ever had a marker. A truncated answer is requested again, and then marks
    /// its end.
    pub fn takes_unmarked_end(&self, request_digest: &str) -> bool {
        let lessons = self.lock();
        lessons.unmarked.contains(request_digest) || !lessons.marks_ends && !lessons.unmarked.is_empty()
    }

    /// Notes whether an answer to this request marked its end.
    pub fn note_end(&self, request_digest: &str, is_marked: bool) {
        let mut lessons = self.lock();
        if is_marked {
            lessons.marks_ends = true;
            lessons.unmarked.remove(request_digest);
        } else {
            if lessons.unmarked.len() >= REMEMBERED {
                lessons.unmarked.clear();
            }
            lessons.unmarked.insert(request_digest.to_owned());
        }
    }

    /// Returns true if this request was also the last one that was too large for a minute.
    pub fn is_too_large_again(&self, request_digest: &str) -> bool {
        let mut lessons = self.lock();
        let before = std::mem::replace(&mut lessons.too_large_for_minute, request_digest.to_owned());
        before == request_digest
    }

    fn lock(&self) -> MutexGuard<'_, Lessons> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, schema: &str) -> Tool {
        Tool {
            name: name.into(),
            description: "".into(),
            schema: schema.into(),
            needs_approval: false,
            needs_approval_with: Vec::new(),
            acts_outside: false,
        }
    }

    #[test]
    fn what_is_refused_is_left_out_once_and_for_all() {
        let tools = [tool("a.b", "{}"), tool("c.d", "{}"), tool("e.f", "{}")];
        let offered = |name: &str| json!({ "type": "function", "function": { "name": name } });
        let body = json!({
            "messages": [{ "role": "assistant", "reasoning_content": "hm", "tool_calls": [{ "id": "1", "extra_content": {} }] }],
            "tools": [offered("a__b"), offered("c__d"), offered("e__f")],
            "stream_options": {}, "max_completion_tokens": 9, "response_format": {}, "tool_choice": "none",
        });
        let mut capabilities = Capabilities::default();
        for refused in [
            RefusedFeature::ResponseFormat,
            RefusedFeature::StreamOptions,
            RefusedFeature::MaxCompletionTokens,
            RefusedFeature::ToolChoice,
            RefusedFeature::Parts,
            RefusedFeature::SystemMessage,
            RefusedFeature::ParallelCalls,
            RefusedFeature::CallIds,
            RefusedFeature::Tool("a__b".into()),
            // Of those that are left.
            RefusedFeature::ToolAt(1),
            RefusedFeature::MessageField("reasoning_content".into()),
            RefusedFeature::MessageField("extra_content".into()),
        ] {
            assert!(capabilities.learn(&refused, &body, &tools), "{refused:?}");
            let is_place = matches!(refused, RefusedFeature::ToolAt(_));
            assert!(is_place || !capabilities.learn(&refused, &body, &tools), "{refused:?} again");
        }
        for refused in [RefusedFeature::Tool("x".into()), RefusedFeature::ToolAt(7)] {
            assert!(!capabilities.learn(&refused, &body, &tools), "{refused:?}");
        }
        let mut sent = body;
        capabilities.adjust(&mut sent, &tools);
        let expected = json!({
            "messages": [{ "role": "assistant", "tool_calls": [{ "id": "1" }] }],
            "tools": [offered("c__d")],
            "max_tokens": 9,
        });
        assert_eq!(sent, expected);
        assert!(!capabilities.takes_parts() && !capabilities.takes_all());
        let EndpointFeatures { system_message, parallel_calls, call_ids, .. } = capabilities.request_format();
        assert_eq!((system_message, parallel_calls, call_ids), (false, false, false));
        let changed = [tool("a.b", r#"{"type":"object"}"#)];
        let mut sent = json!({ "tools": [offered("a__b")] });
        capabilities.adjust(&mut sent, &changed);
        assert_eq!(sent["tools"], json!([offered("a__b")]));
        let none = json!({ "messages": [] });
        assert!(!Capabilities::default().learn(&RefusedFeature::ResponseFormat, &none, &[]), "it was not sent");
    }

    #[test]
    fn an_end_without_a_mark_is_believed_the_second_time() {
        let learned = EndpointKnowledge::default();
        assert!(!learned.takes_unmarked_end("a"));
        learned.note_end("a", false);
        assert!(learned.takes_unmarked_end("a") && learned.takes_unmarked_end("b"), "it never marks its ends");
        learned.note_end("b", true);
        assert!(learned.takes_unmarked_end("a") && !learned.takes_unmarked_end("b"));
        learned.note_end("a", true);
        assert!(!learned.takes_unmarked_end("a"));
        assert!(
            !learned.is_too_large_again("a") && learned.is_too_large_again("a") && !learned.is_too_large_again("b")
        );
    }
}
