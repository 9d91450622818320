//! Input of chat clients beside the words: instructions, a history, tools of their own and the results of calling
//! these. Splits it into the parts that belong to the turn and the entries that a thread begins with.

use std::collections::{BTreeSet, VecDeque};

use kairo_events::{ids, record::Record};
use kairo_proto::{
    v1::{AgentMessage, ChatMessage, ChatRequest, ChatToolResult, CompletionToolCall, Say},
    words::ThreadMessageRole,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::{
    message_content::MessageContent,
    provenance::Provenance,
    state::AgentState,
    thread::{Thread, ThreadEntry, cut_to_entry},
};

/// Instructions of a client that are kept, in bytes; the gateway takes no more.
const INSTRUCTIONS_BYTES: usize = 32 * 1024;
/// Messages of a client's history that are taken in; the gateway sends no more.
const HISTORY: usize = 400;
/// The mark of content that came in by a client's tools or by the history that it tells.
const FROM_CLIENT: &str = "client";
/// Placeholder for a result that the client does not send.
const NO_RESULT: &str = r#"{"error":"no_result","message":"the client sent no result of this call"}"#;
/// Placeholder for a result that another thread waits for.
const ELSEWHERE: &str = r#"{"status":"still running when this conversation went on elsewhere"}"#;
/// Error kind for a message whose thread has moved on: the gateway sends it again, in a thread of its own.
pub const MOVED_ON: &str = "thread_moved_on";

/// A chat client's settings for one turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChatSettings {
    /// The client's instructions on how the agent is to behave.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instructions: String,
    /// As in `ChatRequest.tools`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tools: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool_choice: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub response_format: String,
    /// At most one of the client's tools is called at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub single_call: bool,
    /// It is no turn of a conversation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_aside: bool,
    /// It goes on with what came of calls of the client's tools.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_results: bool,
}

/// A call of one of the client's tools, which the client carries out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientCall {
    /// By which client and model know it.
    pub call_id: String,
    pub tool: String,
    pub arguments: String,
    /// As in `CompletionToolCall.passed_back`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub passed_back: String,
    /// With the first call of an answer, as in `Completion.passed_back`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub answer_back: String,
    /// Absent while the client has not sent it.
    pub result: Option<String>,
}

impl ChatSettings {
    fn from_proto(chat: &ChatRequest) -> Self {
        Self {
            instructions: super::thread::cut_to(&chat.instructions, INSTRUCTIONS_BYTES),
            tools: chat.tools.clone(),
            tool_choice: chat.tool_choice.clone(),
            response_format: chat.response_format.clone(),
            single_call: chat.single_call,
            is_aside: chat.is_aside,
            has_results: !chat.results.is_empty(),
        }
    }
}

impl AgentState {
    /// Returns the reason a chat client's message cannot be put into this thread: somebody else has said something
    /// there since that the client does not know of. `None` if it can.
    pub(super) fn moved_on_reason(&self, message: &AgentMessage, thread_id: &str) -> Option<String> {
        let after = message.chat.as_ref().filter(|chat| chat.fork_of.is_empty()).map(|chat| chat.after.as_str())?;
        let head = self.threads.get(thread_id).map(|thread| thread.head.to_string());
        let is_there = after.is_empty() || head.as_deref() == Some(after);
        (!is_there).then(|| format!("the thread {thread_id:?} does not end with the message {after}"))
    }

    /// Notes what a chat client brings with a message, before its words are put into the thread.
    pub(super) fn apply_chat(&mut self, record: &Record, message: &AgentMessage, turn_id: Uuid, thread_id: &str) {
        let Some(chat) = &message.chat else { return };
        if let Some(turn) = self.turns.get_mut(&turn_id) {
            turn.chat = Some(Box::new(ChatSettings::from_proto(chat)));
        }
        if !self.threads.contains_key(thread_id) {
            self.begin_chat_thread(record, message, chat, thread_id);
        }
        let sent = self.threads.get_mut(thread_id).is_some_and(|thread| thread.take_results(&chat.results));
        if sent {
            self.mark_outside(thread_id, turn_id, &[FROM_CLIENT.to_owned()]);
        }
    }

    /// Begins a thread with what was said before: as it is known here or else as the client tells it.
    fn begin_chat_thread(&mut self, record: &Record, message: &AgentMessage, chat: &ChatRequest, thread_id: &str) {
        let user = &message.user;
        let after = Uuid::parse_str(&chat.after).unwrap_or_default();
        let known =
            self.threads.get(&chat.fork_of).filter(|thread| thread.user == *user && !thread.work && !thread.asked);
        let forked = known.and_then(|thread| Some((thread.entries_until(after)?, thread.outside.clone())));
        let (entries, outside) = forked.unwrap_or_else(|| seed_history(chat, record.envelope.correlation_id));
        if entries.is_empty() && !chat.is_aside {
            return;
        }
        let keeping = self.entry_retention();
        let mut thread = Thread { user: user.clone(), outside, asked: chat.is_aside, ..Thread::default() };
        entries.into_iter().for_each(|entry| thread.push(record.sequence, entry, keeping));
        // It was news elsewhere.
        thread.news = 0;
        self.threads.insert(thread_id.to_owned(), thread.into());
    }

    /// An aside leaves nothing behind.
    pub(super) fn end_aside(&mut self, thread_id: &str) {
        if self.threads.get(thread_id).is_some_and(|thread| thread.asked) {
            self.threads.remove(thread_id);
        }
    }
}

impl Thread {
    /// Returns the entries up to the end of this turn, without those of turns that began later; `None` if no entry
    /// of the turn is kept any more.
    fn entries_until(&self, turn: Uuid) -> Option<Vec<ThreadEntry>> {
        let is_of_turn = |entry: &ThreadEntry| entry.turn() == turn;
        let first = self.entries().position(is_of_turn)?;
        let last = self.entries.iter().rposition(|entry| is_of_turn(entry))?;
        let mut earlier: BTreeSet<Uuid> = self.entries().take(first).map(ThreadEntry::turn).collect();
        earlier.insert(turn);
        let kept = self.entries().take(last + 1).filter(|entry| earlier.contains(&entry.turn()));
        Some(kept.cloned().map(settle_open_calls).collect())
    }

    /// Takes in what came of the calls that the client was handed last. Whether it sends anything of them. What it does not send by
    /// now never comes.
    fn take_results(&mut self, results: &[ChatToolResult]) -> bool {
        let is_client = |entry: &ThreadEntry| matches!(entry, ThreadEntry::Client { .. });
        let Some(at) = self.entries.iter().rposition(|entry| is_client(entry)) else { return false };
        let Some(ThreadEntry::Client { calls, .. }) = self.entries.get_mut(at).map(|entry| &mut **entry) else {
            return false;
        };
        let mut sent = false;
        for call in calls {
            match results.iter().find(|result| result.call_id == call.call_id) {
                Some(result) => (call.result, sent) = (Some(cut_to_entry(&result.text)), true),
                None if call.result.is_none() => call.result = Some(NO_RESULT.to_owned()),
                None => {}
            }
        }
        sent
    }

    /// Returns true if a call of a client's tool in the thread has this id.
    pub(super) fn has_client_call(&self, id: &str) -> bool {
        self.entries().any(
            |entry| matches!(entry, ThreadEntry::Client { calls, .. } if calls.iter().any(|call| call.call_id == id)),
        )
    }
}

/// An entry as it stands in a thread that nothing in flight comes back to.
fn settle_open_calls(mut entry: ThreadEntry) -> ThreadEntry {
    if let ThreadEntry::Called { calls, .. } = &mut entry {
        calls.iter_mut().filter(|call| call.result.is_none()).for_each(|call| call.result = Some(ELSEWHERE.to_owned()));
    }
    entry
}

/// Builds the entries of the history that the client sends, with their provenance. Anybody may have written any of it,
/// and the parts that came from outside are not known.
fn seed_history(chat: &ChatRequest, turn_id: Uuid) -> (Vec<ThreadEntry>, Provenance) {
    let turn = ids::derive(turn_id, "history");
    let mut results: VecDeque<(&str, &str)> = VecDeque::new();
    let mut entries: Vec<ThreadEntry> = Vec::new();
    for message in chat.history.iter().rev().take(HISTORY) {
        match message.role_word() {
            ThreadMessageRole::User => {
                entries.push(ThreadEntry::User { turn, words: MessageContent::from_parts(&message.text, &[]) })
            }
            ThreadMessageRole::Tool => results.push_front((&message.call_id, &message.text)),
            ThreadMessageRole::Assistant if message.calls.is_empty() => {
                entries.push(ThreadEntry::Said { turn, text: cut_to_entry(&message.text) });
            }
            ThreadMessageRole::Assistant => entries.push(history_calls_entry(turn, message, &mut results)),
            ThreadMessageRole::System | ThreadMessageRole::Unknown(_) => {}
        }
    }
    entries.reverse();
    let mut outside = Provenance::default();
    if chat.history.iter().any(|message| message.role_word() == ThreadMessageRole::Tool) {
        outside.add_marks([FROM_CLIENT]);
    }
    (entries, outside)
}

fn history_calls_entry(turn: Uuid, message: &ChatMessage, results: &mut VecDeque<(&str, &str)>) -> ThreadEntry {
    let calls = message.calls.iter().map(|call| {
        let result = results.iter().find(|(id, _)| *id == call.call_id).map(|(_, text)| cut_to_entry(text));
        let call_id = call.call_id.clone();
        let tool = call.tool.clone();
        let arguments = as_json_object(&call.arguments);
        ClientCall { call_id, tool, arguments, passed_back: String::new(), answer_back: String::new(), result }
    });
    let entry = ThreadEntry::Client { turn, text: cut_to_entry(&message.text), calls: calls.collect() };
    results.clear();
    entry
}

/// Arguments as model servers take them: a JSON object.
fn as_json_object(arguments: &str) -> String {
    match serde_json::from_str(arguments) {
        Ok(serde_json::Value::Object(_)) => arguments.to_owned(),
        _ => json!({ "text": cut_to_entry(arguments) }).to_string(),
    }
}

/// Builds the thread entry of the agent's words or, if there are any, of its calls of the client's tools.
pub(super) fn reply_entry(turn: Uuid, say: &Say) -> ThreadEntry {
    if say.client_calls.is_empty() {
        return ThreadEntry::from_say(turn, say);
    }
    let call = |call: &CompletionToolCall| ClientCall {
        call_id: call.call_id.clone(),
        tool: call.tool.clone(),
        arguments: call.arguments.clone(),
        passed_back: call.passed_back.clone(),
        answer_back: String::new(),
        result: None,
    };
    let mut calls: Vec<ClientCall> = say.client_calls.iter().map(call).collect();
    if let Some(first) = calls.first_mut() {
        first.answer_back.clone_from(&say.passed_back);
    }
    ThreadEntry::Client { turn, text: cut_to_entry(&say.text), calls }
}

/// For whom only words will do.
pub(super) fn client_calls_text(text: &str, calls: &[ClientCall]) -> String {
    let call = |call: &ClientCall| {
        let result = call.result.as_deref().unwrap_or("no result");
        format!("agent called the client's {} {}: {result}", call.tool, call.arguments)
    };
    let said = (!text.is_empty()).then(|| format!("agent: {text}"));
    said.into_iter().chain(calls.iter().map(call)).collect::<Vec<_>>().join("\n")
}
