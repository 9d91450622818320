//! The facts of a request that rules can ask about, worked out once for all rules.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use serde_json::Value;

use crate::scenario::ResultStatus;
use crate::wire::{
    part::ReceivedPart,
    request::{ChatRequest, RequestMessage},
};

/// The facts about one request.
pub struct Conversation<'r> {
    pub model: &'r str,
    /// The text of the last user message; empty if there is none.
    pub user: &'r str,
    /// The images and audio of the last user message.
    pub parts: &'r [ReceivedPart],
    /// Answers that the model has given since the last user message.
    pub round: usize,
    /// Tool results at the end that nothing but system messages follow.
    pub fresh_results: usize,
    /// The names of the tools offered, as on the wire; none where none may be called.
    pub offered: Vec<&'r str>,
    /// The request as it came, where that was said.
    body: &'r [u8],
    messages: &'r [RequestMessage<'r>],
    /// Of the whole conversation, in order.
    results: Vec<ToolResult<'r>>,
    /// The index in `results` of the first one since the last user message.
    turn_results: usize,
    key: u64,
}

/// The result of one tool call.
#[derive(Debug, PartialEq, Eq)]
pub struct ToolResult<'r> {
    /// The name of the tool as on the wire; empty if the call is not in the conversation.
    pub tool: &'r str,
    pub content: &'r str,
}

impl<'r> Conversation<'r> {
    #[must_use]
    pub fn from_request(request: &'r ChatRequest<'r>) -> Self {
        let messages = request.messages.as_slice();
        let last_user = messages.iter().rposition(is_of_user);
        let may_call = request.tool_choice.as_ref().and_then(Value::as_str) != Some("none");
        let since = last_user.map_or(0, |index| index + 1);
        let turn = messages.get(since..).unwrap_or_default();
        let said = last_user.and_then(|index| messages.get(index)).map(|message| &message.content);
        Self {
            model: &request.model,
            user: said.map_or("", |content| content.0.as_ref()),
            parts: said.map_or(&[], |content| content.1.as_slice()),
            round: turn.iter().filter(|message| message.role == "assistant").count(),
            fresh_results: turn
                .iter()
                .rev()
                .filter(|message| !is_instruction(message))
                .take_while(|message| message.role == "tool")
                .count(),
            offered: request
                .tools
                .iter()
                .filter(|_| may_call)
                .flatten()
                .filter_map(|tool| tool.function.as_ref())
                .map(|function| function.name.as_ref())
                .collect(),
            body: &[],
            messages,
            results: tool_results(messages),
            turn_results: messages.iter().take(since).filter(|message| message.role == "tool").count(),
            key: derive_key(request),
        }
    }

    /// With the request as it came.
    #[must_use]
    pub fn with_body(self, body: &'r [u8]) -> Self {
        Self { body, ..self }
    }

    /// The request as it came; null where that was not said.
    #[must_use]
    pub fn request_json(&self) -> Value {
        serde_json::from_slice(self.body).unwrap_or_default()
    }

    /// Estimates the tokens of the request, tools and all, at four bytes to a token.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.body.len().div_ceil(4)
    }

    /// The texts of the user messages, the newest first.
    pub fn user_texts(&self) -> impl Iterator<Item = &'r str> {
        self.messages.iter().rev().filter(|message| message.role == "user").map(|message| message.content.0.as_ref())
    }

    /// The tool results since the last user message, in order.
    #[must_use]
    pub fn results(&self) -> &[ToolResult<'r>] {
        self.results.get(self.turn_results..).unwrap_or_default()
    }

    /// The tool results of the whole conversation, in order.
    #[must_use]
    pub fn all_results(&self) -> &[ToolResult<'r>] {
        &self.results
    }

    /// The last tool result of the whole conversation.
    #[must_use]
    pub fn last_result(&self) -> Option<&ToolResult<'r>> {
        self.results.last()
    }

    /// The texts of the system and developer messages, and of blocks, the newest first.
    pub fn system_texts(&self) -> impl Iterator<Item = &'r str> {
        self.messages.iter().rev().flat_map(|message| {
            let words = (is_instruction(message) && message.told.is_empty()).then(|| message.content.0.as_ref());
            message.told.iter().rev().map(String::as_str).chain(words)
        })
    }

    /// The texts of all other messages, the newest first.
    pub fn texts(&self) -> impl Iterator<Item = &'r str> {
        let said = self.messages.iter().rev().filter(|message| !is_instruction(message) && message.has_words());
        said.map(|message| message.content.0.as_ref())
    }

    /// The images and audio of the whole conversation, in order.
    pub fn all_parts(&self) -> impl Iterator<Item = &'r ReceivedPart> {
        self.messages.iter().flat_map(|message| &message.content.1)
    }

    /// Returns a key that all requests of one conversation share: derived from the `user` field of the request or, if a
    /// client sends none, from the conversation's first user message.
    #[must_use]
    pub fn key(&self) -> u64 {
        self.key
    }

    /// Returns a key that all requests of one turn share, that is, all until the next user message.
    #[must_use]
    pub fn turn_key(&self) -> u64 {
        let users = self.messages.iter().filter(|message| is_of_user(message)).count();
        hash(&(self.key, users, self.user))
    }

    /// Returns the bytes of text in the request.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let told = |message: &RequestMessage<'_>| message.told.iter().map(String::len).sum::<usize>();
        self.messages.iter().map(|message| message.content.0.len() + told(message)).sum()
    }
}

impl ToolResult<'_> {
    /// The API has no field for it, so: a JSON object with `ok: false`, `is_error: true`,
    /// `isError: true` or an `error` that is not null, or a text that begins with "error".
    #[must_use]
    pub fn status(&self) -> ResultStatus {
        let failed = match serde_json::from_str(self.content) {
            Ok(Value::Object(fields)) => {
                let is = |key: &str, value: bool| fields.get(key) == Some(&Value::Bool(value));
                is("ok", false)
                    || is("is_error", true)
                    || is("isError", true)
                    || fields.get("error").is_some_and(|error| !error.is_null())
            }
            _ => self.content.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error")),
        };
        if failed { ResultStatus::Error } else { ResultStatus::Ok }
    }

    /// The content as JSON, or as a string if it is not JSON.
    #[must_use]
    pub fn value(&self) -> Value {
        serde_json::from_str(self.content).unwrap_or_else(|_| Value::String(self.content.to_owned()))
    }
}

/// Returns true if only the system says anything in it.
fn is_instruction(message: &RequestMessage<'_>) -> bool {
    message.role == "system" || message.role == "developer" || message.role == "user" && !message.has_words()
}

fn is_of_user(message: &RequestMessage<'_>) -> bool {
    message.role == "user" && message.has_words()
}

fn tool_results<'r>(messages: &'r [RequestMessage<'r>]) -> Vec<ToolResult<'r>> {
    let results = messages.iter().enumerate().filter(|(_, message)| message.role == "tool");
    results
        .map(|(index, message)| ToolResult {
            tool: tool_of_call(messages.get(..index).unwrap_or_default(), message.tool_call_id.as_deref()),
            content: message.content.0.as_ref(),
        })
        .collect()
}

/// The tool of the call with this id. Nearly always it is in the message just before.
fn tool_of_call<'r>(before: &'r [RequestMessage<'r>], id: Option<&str>) -> &'r str {
    let calls = before.iter().rev().filter_map(|message| message.tool_calls.as_ref()).flatten();
    let mut with_id = calls.filter(|call| Some(call.id.as_ref()) == id);
    with_id.next().map_or("", |call| call.function.name.as_ref())
}

fn derive_key(request: &ChatRequest<'_>) -> u64 {
    match &request.user {
        Some(user) => hash(&("user", user.as_str())),
        None => {
            let first = request.messages.iter().find(|message| is_of_user(message));
            hash(&("first", first.map_or("", |message| message.content.0.as_ref())))
        }
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: &str = r#"{"model":"m","messages":[
        {"role":"system","content":"You are Kairo."},
        {"role":"user","content":"earlier"},
        {"role":"assistant","content":"yes"},
        {"role":"user","content":"what time is it"},
        {"role":"assistant","tool_calls":[
            {"id":"a","type":"function","function":{"name":"tools__now","arguments":"{}"}},
            {"id":"b","type":"function","function":{"name":"http__get","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"a","content":"{\"now\":\"noon\"}"},
        {"role":"tool","tool_call_id":"b","content":"{\"ok\":false}"},
        {"role":"developer","content":"nothing is in flight"}],
        "tools":[{"type":"function","function":{"name":"tools__now","parameters":{}}}]}"#;

    fn with<T>(json: &str, look: impl FnOnce(&Conversation<'_>) -> T) -> T {
        let request: ChatRequest<'_> = serde_json::from_str(json).expect("it is a request");
        look(&Conversation::from_request(&request))
    }

    #[test]
    fn facts_are_about_what_came_after_the_last_user_message() {
        with(TURN, |conversation| {
            assert_eq!(conversation.user, "what time is it");
            assert_eq!((conversation.round, conversation.fresh_results), (1, 2));
            let tools: Vec<_> = conversation.results().iter().map(|result| result.tool).collect();
            assert_eq!(tools, ["tools__now", "http__get"]);
            assert_eq!(conversation.offered, ["tools__now"]);
        });
    }

    #[test]
    fn a_new_user_message_begins_a_turn_without_results() {
        let next = TURN.replace(
            r#"{"role":"developer","content":"nothing is in flight"}"#,
            r#"{"role":"user","content":"and now?"}"#,
        );
        with(&next, |conversation| {
            assert_eq!((conversation.round, conversation.results().len()), (0, 0));
            assert_eq!(conversation.key(), with(TURN, |other| other.key()));
            assert_ne!(conversation.turn_key(), with(TURN, |other| other.turn_key()));
        });
    }

    #[test]
    fn blocks_are_system_words_and_no_choice_offers_nothing() {
        let told = TURN
            .replace(
                r#"{"role":"developer","content":"nothing is in flight"}"#,
                r#"{"role":"user","content":"<kairo:context>\na job ended\n</kairo:context>"}"#,
            )
            .replace(r#"{\"ok\":false}"#, r#"{\"ok\":false}\n\n<kairo:context>\nanswer now\n</kairo:context>"#)
            .replace(r#""model":"m","#, r#""model":"m","tool_choice":"none","#);
        with(&told, |conversation| {
            assert_eq!(conversation.user, "what time is it");
            assert_eq!((conversation.round, conversation.fresh_results), (1, 2));
            assert_eq!(
                conversation.system_texts().collect::<Vec<_>>(),
                ["a job ended", "answer now", "You are Kairo."]
            );
            assert_eq!(conversation.last_result().map(|result| result.content), Some(r#"{"ok":false}"#));
            assert_eq!(conversation.offered, [""; 0]);
            assert!(conversation.texts().all(|text| !text.contains("kairo:")));
        });
    }

    #[test]
    fn results_tell_success_from_failure() {
        let status = |content| ToolResult { tool: "", content }.status();
        for failed in [r#"{"ok":false}"#, r#"{"isError":true}"#, r#"{"error":"in_doubt"}"#, "Error: no such host"] {
            assert_eq!(status(failed), ResultStatus::Error, "{failed}");
        }
        for fine in [r#"{"ok":true,"error":null}"#, "12:00", "", "[]", "你好", "\"error\""] {
            assert_eq!(status(fine), ResultStatus::Ok, "{fine}");
        }
    }

    #[test]
    fn the_user_field_names_the_conversation_if_it_is_there() {
        let one = r#"{"model":"m","user":"u","messages":[{"role":"user","content":"a"}]}"#;
        let other = r#"{"model":"m","user":"u","messages":[{"role":"user","content":"b"}]}"#;
        assert_eq!(with(one, |other| other.key()), with(other, |other| other.key()));
    }
}
