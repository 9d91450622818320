//! The messages of a chat client's request: what the agent is to be like, what was said before, and what is to be answered. Pure.

use kairo_proto::{
    v1::{ChatMessage, ChatToolCall, ChatToolResult},
    words::ThreadMessageRole as Role,
};
use serde_json::Value;

use super::{super::error::ChatError, content};
use crate::{config::GatewayConfig, http::messages::parts::ClientPart};

/// Instructions that are taken, in bytes: a client's system and developer messages together.
pub const INSTRUCTIONS_BYTES: usize = 32 * 1024;
/// Results of a client's tools that are taken with one request, in bytes together.
const RESULTS_BYTES: usize = 256 * 1024;
/// Calls of one message of a history that are taken, and longest of their ids, in bytes.
const CALLS: usize = 128;
const CALL_ID_BYTES: usize = 128;
/// Of a history a new thread begins with so many messages, the newest, and so many bytes.
const SEED_MESSAGES: usize = 200;
const SEED_BYTES: usize = 192 * 1024;

/// The messages of a request.
#[derive(Debug, Default)]
pub struct RequestMessages {
    pub instructions: String,
    /// The entries before the input.
    pub history: Vec<HistoryEntry>,
    pub input: ChatInput,
}

/// The input to answer: words, or the results of calls of the client's tools.
#[derive(Debug, Default)]
pub struct ChatInput {
    pub text: String,
    pub parts: Vec<ClientPart>,
    pub results: Vec<ChatToolResult>,
    /// The input as entries of the conversation.
    pub entries: Vec<HistoryEntry>,
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryEntry {
    /// A text that tells the entry from others: for a user's message, it covers images and audio, too.
    pub mark: String,
    pub message: ChatMessage,
}

impl HistoryEntry {
    fn new(role: &Role, mark: String, text: String) -> Self {
        Self { mark, message: ChatMessage { role: role.text(), text, ..ChatMessage::default() } }
    }

    /// Builds the entry of an agent's answer.
    pub fn from_answer(text: &str, calls: Vec<ChatToolCall>) -> Self {
        let mut entry = Self::new(&Role::Assistant, text.trim().to_owned(), text.trim().to_owned());
        entry.message.calls = calls;
        entry
    }

    pub fn role(&self) -> Role {
        Role::from(self.message.role.as_str())
    }
}

/// Reads the messages of a request.
pub fn parse(messages: &[Value], limits: &GatewayConfig) -> Result<RequestMessages, ChatError> {
    let mut read = RequestMessages::default();
    for (at, message) in messages.iter().enumerate() {
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        match role {
            "system" | "developer" => add_instructions(&mut read.instructions, message, at)?,
            "user" => read.history.push(user_entry(message, at)),
            "assistant" => add_answer(&mut read.history, assistant_entry(message, at)?),
            "tool" | "function" => read.history.push(tool_entry(message, at)?),
            _ => {
                let name = format!("messages[{at}].role");
                let roles = "system, developer, user, assistant or tool is expected";
                return Err(ChatError::invalid(Some(&name), format!("{name}: {roles}")));
            }
        }
    }
    read.input = split_input(&mut read.history, messages, limits)?;
    Ok(read)
}

fn add_instructions(instructions: &mut String, message: &Value, at: usize) -> Result<(), ChatError> {
    let text = content::parse_words(message.get("content").unwrap_or(&Value::Null), at)?;
    if !instructions.is_empty() && !text.is_empty() {
        instructions.push_str("\n\n");
    }
    instructions.push_str(&text);
    if instructions.len() > INSTRUCTIONS_BYTES {
        let name = format!("messages[{at}].content");
        let most = format!("system and developer messages of up to {INSTRUCTIONS_BYTES} bytes together are expected");
        return Err(ChatError::invalid(Some(&name), format!("{name}: {most}")));
    }
    Ok(())
}

/// Builds the entry of an earlier user message, which tells conversations apart even if its content is invalid.
fn user_entry(message: &Value, at: usize) -> HistoryEntry {
    let content = message.get("content").unwrap_or(&Value::Null);
    match content::parse(content, at) {
        Ok(said) => HistoryEntry::new(&Role::User, said.fingerprint(), said.to_words()),
        Err(_) => HistoryEntry::new(&Role::User, content.to_string(), String::new()),
    }
}

fn assistant_entry(message: &Value, at: usize) -> Result<HistoryEntry, ChatError> {
    let content = message.get("content").filter(|content| !content.is_null());
    let text = match content.or(message.get("refusal")) {
        None => String::new(),
        Some(content) => content::parse_words(content, at).unwrap_or_default(),
    };
    let none = Vec::new();
    let calls = message.get("tool_calls").and_then(Value::as_array).unwrap_or(&none);
    if calls.len() > CALLS {
        let name = format!("messages[{at}].tool_calls");
        return Err(ChatError::invalid(Some(&name), format!("{name}: up to {CALLS} calls are expected")));
    }
    let calls = calls.iter().map(|call| {
        let text = |pointer: &str| call.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let call_id = text("/id");
        let tool = text("/function/name");
        let arguments = text("/function/arguments");
        ChatToolCall { call_id: truncate_call_id(call_id), tool: truncate_call_id(tool), arguments }
    });
    Ok(HistoryEntry::from_answer(&text, calls.collect()))
}

fn truncate_call_id(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(CALL_ID_BYTES));
    text
}

fn tool_entry(message: &Value, at: usize) -> Result<HistoryEntry, ChatError> {
    let text = content::parse_words(message.get("content").unwrap_or(&Value::Null), at)?;
    let id = message.get("tool_call_id").or(message.get("name")).and_then(Value::as_str).unwrap_or_default();
    let mut entry = HistoryEntry::new(&Role::Tool, text.clone(), text);
    entry.message.call_id = truncate_call_id(id.to_owned());
    Ok(entry)
}

/// An answer that clients keep in pieces is one.
fn add_answer(history: &mut Vec<HistoryEntry>, entry: HistoryEntry) {
    match history.last_mut() {
        Some(last) if last.role() == Role::Assistant && last.message.calls.is_empty() => {
            let pieces = [last.message.text.as_str(), entry.message.text.as_str()];
            let text = pieces.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
            *last = HistoryEntry::from_answer(&text, entry.message.calls);
        }
        _ => history.push(entry),
    }
}

/// Takes what is to be answered out of the history: the last message of the user or, behind calls of the client's tools, all that
/// follows them.
fn split_input(
    history: &mut Vec<HistoryEntry>,
    messages: &[Value],
    limits: &GatewayConfig,
) -> Result<ChatInput, ChatError> {
    let behind = history.iter().rposition(|entry| entry.role() == Role::Assistant).map_or(0, |at| at + 1);
    let has_results = history.iter().skip(behind).any(|entry| entry.role() == Role::Tool);
    let first = if has_results { behind } else { behind.max(history.len().saturating_sub(1)) };
    let entries = history.split_off(first);
    if entries.is_empty() {
        let expected = "messages: the last one must be the user's, to be answered, or the result of a tool";
        return Err(ChatError::invalid(Some("messages"), expected));
    }
    let results = match_tool_results(&entries, history.last())?;
    let last =
        messages.iter().enumerate().rev().find(|(_, message)| message.get("role").is_some_and(|role| role == "user"));
    let is_said = entries.iter().any(|entry| entry.role() == Role::User);
    let mut text = String::new();
    let mut parts = Vec::new();
    if let Some((at, message)) = last.filter(|_| is_said) {
        let said = content::parse(message.get("content").unwrap_or(&NOTHING), at)?;
        let found = said.words.len();
        if said.is_empty() && results.is_empty() || found > limits.max_text_bytes {
            let name = format!("messages[{at}].content");
            let longest = limits.max_text_bytes;
            let expected = format!("{name}: text of 1 to {longest} bytes is expected, found {found} bytes");
            return Err(ChatError::invalid(Some(&name), expected));
        }
        (parts, text) = (said.parse_parts(limits)?, said.words);
    }
    Ok(ChatInput { text, parts, results, entries })
}

/// The content of a message that has none.
static NOTHING: Value = Value::Null;

/// Reads the results of the calls that the previous answer made.
fn match_tool_results(
    entries: &[HistoryEntry],
    before: Option<&HistoryEntry>,
) -> Result<Vec<ChatToolResult>, ChatError> {
    let calls = before.map(|entry| entry.message.calls.as_slice()).unwrap_or_default();
    let mut results: Vec<ChatToolResult> = Vec::new();
    for entry in entries.iter().filter(|entry| entry.role() == Role::Tool) {
        let ChatMessage { call_id, text, .. } = entry.message.clone();
        if !calls.iter().any(|call| call.call_id == call_id) {
            let expected =
                format!("messages: the tool_call_id {call_id:?} is of no call of the assistant's message before");
            return Err(ChatError::invalid(Some("messages"), expected));
        }
        results.push(ChatToolResult { call_id, text });
    }
    if results.iter().map(|result| result.text.len()).sum::<usize>() > RESULTS_BYTES {
        let expected = format!("messages: results of tools of up to {RESULTS_BYTES} bytes together are expected");
        return Err(ChatError::invalid(Some("messages"), expected));
    }
    Ok(results)
}

/// Returns the beginning of a new thread: the newest entries of a history, from a message of the user on.
pub fn seed_messages(history: &[HistoryEntry]) -> Vec<ChatMessage> {
    let bytes = |entry: &HistoryEntry| {
        let calls = entry.message.calls.iter().map(|call| call.arguments.len() + call.tool.len() + call.call_id.len());
        entry.message.text.len() + calls.sum::<usize>()
    };
    let mut taken = 0;
    let mut first = history.len();
    for (at, entry) in history.iter().enumerate().rev().take(SEED_MESSAGES) {
        taken += bytes(entry);
        if taken > SEED_BYTES {
            break;
        }
        if entry.role() == Role::User {
            first = at;
        }
    }
    // A history that fits begins with whatever it begins with.
    let whole = history.len() <= SEED_MESSAGES && taken <= SEED_BYTES;
    let first = if whole { 0 } else { first };
    history.iter().skip(first).map(|entry| entry.message.clone()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn messages(list: Value) -> Result<RequestMessages, ChatError> {
        parse(list.as_array().unwrap(), &GatewayConfig { max_text_bytes: 1_000, ..GatewayConfig::default() })
    }

    #[test]
    fn what_is_to_be_answered_is_told_from_what_was_said_before() {
        let read = messages(json!([
            { "role": "system", "content": "Be kind." },
            { "role": "user", "content": "one" },
            { "role": "assistant", "content": "1" },
            { "role": "assistant", "content": " and a half " },
            { "role": "developer", "content": [{ "type": "text", "text": "Be brief." }] },
            { "role": "user", "content": "two" },
        ]))
        .unwrap();
        assert_eq!((read.instructions.as_str(), read.input.text.as_str()), ("Be kind.\n\nBe brief.", "two"));
        let said: Vec<_> = read.history.iter().map(|entry| entry.message.text.as_str()).collect();
        assert_eq!((said, read.input.entries.len()), (vec!["one", "1\n\nand a half"], 1));
    }

    #[test]
    fn results_go_with_the_calls_before_them() {
        let call = json!({ "id": "c1", "type": "function", "function": { "name": "f", "arguments": "{}" } });
        let called = |id: &str| {
            json!([
                { "role": "user", "content": "weather" },
                { "role": "assistant", "content": null, "tool_calls": [call] },
                { "role": "tool", "tool_call_id": id, "content": "rain" },
            ])
        };
        let read = messages(called("c1")).unwrap();
        assert_eq!((read.history.len(), read.input.text.as_str()), (2, ""));
        assert_eq!(read.input.results, [ChatToolResult { call_id: "c1".into(), text: "rain".into() }]);
        assert_eq!(messages(called("c2")).unwrap_err().param.as_deref(), Some("messages"));
        let orphan = json!([{ "role": "tool", "tool_call_id": "c", "content": "x" }]);
        assert!(messages(orphan).is_err());
    }

    #[test]
    fn what_is_too_much_is_refused_or_left_out() {
        let long = "x".repeat(INSTRUCTIONS_BYTES + 1);
        let error = messages(json!([{ "role": "system", "content": long }, { "role": "user", "content": "x" }]));
        assert_eq!(error.unwrap_err().param.as_deref(), Some("messages[0].content"));
        let entry = |role: &Role, text: &str| HistoryEntry::new(role, text.to_owned(), text.to_owned());
        let mut history: Vec<HistoryEntry> = Vec::new();
        for at in 0..SEED_MESSAGES {
            history.push(entry(&Role::User, &format!("question {at}")));
            history.push(entry(&Role::Assistant, "answer"));
        }
        let kept = seed_messages(&history);
        assert_eq!((kept.len(), kept[0].text.as_str()), (SEED_MESSAGES, "question 100"));
        assert_eq!(seed_messages(&history[1..3]).len(), 2);
        assert!(seed_messages(&[entry(&Role::User, &"y".repeat(SEED_BYTES + 1))]).is_empty());
    }
}
