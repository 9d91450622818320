//! Conversations in the form that every endpoint takes. After the system message user and assistant alternate; results stand right
//! behind their calls; no message is empty; the first message is a user's and the last one a user's or a tool's.

use std::collections::BTreeSet;

use kairo_proto::v1::{Completion, CompletionToolCall, Part};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    PromptMessage, ToolCall,
    block::{CLOSE, OPEN, block_contents, context_block, defuse_markers},
};
use crate::{chat_completions, prompts};

/// Placeholder for the words of a user or a tool that said none.
const NO_WORDS: &str = "(no words)";
/// Placeholder for the answer that a model did not give because the user went on: templates of models refuse a user's
/// message right behind a result.
const NO_ANSWER: &str = "(not answered before the next message)";
/// Placeholder for an answer between results and the images or audio that came with them.
const PARTS_FOLLOW: &str = "(what came with the results follows)";
/// Separator between two messages of a user without an answer between them.
const NEXT: &str = "The user's next message:";
/// First message of a conversation whose beginning is not shown.
pub(super) const LEFT_OUT: &str = "What came before is left out.";
/// Last message of a conversation that has nothing to be answered.
const GO_ON: &str = "Go on from here.";
/// Result of a call that could not be made.
const NOT_MADE: &str = "not called";
/// Longest id of a call that is kept as the model wrote it, in bytes: the shortest bound of any provider.
const ID_BYTES: usize = 64;
/// Letters of an id that is made here: Mistral takes no others, and no other number of them.
const ID_LETTERS: u32 = 9;

/// Adds to the messages of a request.
pub struct Conversation<'m> {
    messages: &'m mut Vec<PromptMessage>,
    /// Ids of the calls in it: looked up for each call, of which long threads have hundreds.
    ids: BTreeSet<String>,
}

impl<'m> Conversation<'m> {
    pub fn from_messages(messages: &'m mut Vec<PromptMessage>) -> Self {
        let calls = messages.iter().flat_map(|message| match message {
            PromptMessage::Assistant { calls, .. } => calls.as_slice(),
            PromptMessage::System { .. } | PromptMessage::User { .. } | PromptMessage::Tool { .. } => &[],
        });
        let ids = calls.map(|call| call.id.clone()).collect();
        Self { messages, ids }
    }

    /// Words of a user, with images and audio.
    pub fn push_user(&mut self, words: &str, parts: &[Part]) {
        let words = match (words.trim().is_empty(), parts.is_empty()) {
            (true, true) => NO_WORDS.into(),
            (true, false) => "".into(),
            (false, _) => defuse_markers(words),
        };
        if let Some(PromptMessage::Tool { .. }) = self.messages.last() {
            self.messages.push(PromptMessage::assistant(NO_ANSWER));
        }
        match self.messages.last_mut() {
            Some(PromptMessage::User { text, parts: known }) => {
                // Two messages are not one: a model must see where the second begins.
                if !text.is_empty() && !text.ends_with(CLOSE) {
                    add_paragraph(text, &context_block(NEXT));
                }
                add_paragraph(text, &words);
                known.extend_from_slice(parts);
            }
            _ => self.messages.push(PromptMessage::User { text: words.into_owned(), parts: parts.to_vec() }),
        }
    }

    /// Adds a text of the runtime as a block, to the last user or tool message if that stands at the end.
    pub fn push_context(&mut self, told: &str) {
        match self.messages.last_mut() {
            Some(PromptMessage::User { text, .. } | PromptMessage::Tool { text, .. }) => {
                add_paragraph(text, &context_block(told))
            }
            _ => self.messages.push(PromptMessage::user(context_block(told))),
        }
    }

    /// Images and audio that came with the results before, with a block that says with which. No user said them, but endpoints take
    /// them of users alone.
    pub fn push_result_parts(&mut self, names: &str, parts: &[Part]) {
        let told = format!("{} {names}", prompts::RESULT_PARTS);
        if let Some(PromptMessage::Tool { .. }) = self.messages.last() {
            self.messages.push(PromptMessage::assistant(PARTS_FOLLOW));
        }
        match self.messages.last_mut() {
            Some(PromptMessage::User { text, parts: known }) => {
                add_paragraph(text, &context_block(&told));
                known.extend_from_slice(parts);
            }
            _ => self.messages.push(PromptMessage::User { text: context_block(&told), parts: parts.to_vec() }),
        }
    }

    /// Words of the model.
    pub fn push_answer(&mut self, words: &str) {
        if words.trim().is_empty() {
            return;
        }
        self.begin_with_user();
        match self.messages.last_mut() {
            Some(PromptMessage::Assistant { text, .. }) => add_paragraph(text, &defuse_markers(words)),
            _ => self.messages.push(PromptMessage::assistant(defuse_markers(words))),
        }
    }

    /// Calls of the model, and behind them what came of each. `back` is what the model server wants back with them: its
    /// `reasoning_details`, and other fields of the answer.
    pub fn push_calls(&mut self, words: &str, calls: Vec<ToolCall>, back: (String, String), results: Vec<String>) {
        if calls.is_empty() {
            return self.push_answer(words);
        }
        self.begin_with_user();
        let mut said = match self.messages.pop_if(|last| matches!(last, PromptMessage::Assistant { .. })) {
            Some(PromptMessage::Assistant { text, .. }) => text,
            _ => String::new(),
        };
        if !words.trim().is_empty() {
            add_paragraph(&mut said, &defuse_markers(words));
        }
        // Two turns may have got the same id from their model before either knew of the other.
        let unique =
            |(position, call): (usize, ToolCall)| ToolCall { id: self.unique_call_id(&call.id, position), ..call };
        let calls: Vec<ToolCall> = calls.into_iter().enumerate().map(unique).collect();
        let ids: Vec<String> = calls.iter().map(|call| call.id.clone()).collect();
        let (reasoning_details, passed_back) = back;
        self.messages.push(PromptMessage::Assistant { text: said, calls, reasoning_details, passed_back });
        for (call_id, result) in ids.into_iter().zip(results) {
            let text =
                if result.trim().is_empty() { NO_WORDS.to_owned() } else { defuse_markers(&result).into_owned() };
            self.messages.push(PromptMessage::Tool { call_id, text });
        }
    }

    /// Adds a model's answer and the mistake in it, so that the model can do better. A call stays a call, with the
    /// mistake in place of its result, or becomes text if endpoints would refuse it.
    pub fn push_correction(&mut self, answer: &Completion, correction: &str) {
        let said = answer.text.trim();
        if answer.tool_calls.is_empty() {
            self.push_answer(said);
            return self.push_context(correction);
        }
        if !answer.tool_calls.iter().all(is_valid_call) {
            let in_words = answer.tool_calls.iter().map(|call| format!("(call of {}: {})", call.tool, call.arguments));
            let in_words = in_words.collect::<Vec<_>>().join("\n");
            self.push_answer(&if said.is_empty() { in_words } else { format!("{said}\n\n{in_words}") });
            return self.push_context(correction);
        }
        let call = |call: &CompletionToolCall| ToolCall {
            id: call.call_id.clone(),
            tool: call.tool.clone(),
            arguments: arguments_or_empty(&call.arguments),
            passed_back: call.passed_back.clone(),
        };
        let calls: Vec<ToolCall> = answer.tool_calls.iter().map(call).collect();
        let results = calls.iter().map(|_| json!({ "error": NOT_MADE, "message": correction }).to_string()).collect();
        let back = (answer.reasoning_details.clone(), answer.passed_back.clone());
        self.push_calls(said, calls, back, results);
    }

    /// Ends it with something that is to be answered.
    pub fn end_with_input(&mut self) {
        if !matches!(self.messages.last(), Some(PromptMessage::User { .. } | PromptMessage::Tool { .. })) {
            self.push_context(GO_ON);
        }
    }

    /// Makes the conversation begin with a user's message.
    fn begin_with_user(&mut self) {
        if matches!(self.messages.last(), None | Some(PromptMessage::System { .. })) {
            self.push_context(LEFT_OUT);
        }
    }

    /// The id that a model gave a call, or one that is made of its place where that is none or another call has it. A place can come
    /// twice, since messages are left out of requests that are too long.
    fn unique_call_id(&mut self, id: &str, position: usize) -> String {
        let [number, at] = [self.messages.len(), position].map(|number| number.to_string());
        let is_free = |id: &String| is_call_id(id) && !self.ids.contains(id);
        let derived = |salt: usize| {
            let salt = (salt > 0).then(|| salt.to_string());
            let parts = [number.as_str(), &at, id].into_iter().chain(salt.as_deref());
            short_call_id(kairo_events::ids::from_parts("correction", &parts.collect::<Vec<_>>()))
        };
        let candidates = std::iter::once(id.to_owned()).chain((0..).map(derived));
        let id = candidates.into_iter().find(is_free).unwrap_or_default();
        self.ids.insert(id.clone());
        id
    }
}

/// Returns true if a message holds only content that came with results.
pub(super) fn holds_result_parts(message: &PromptMessage) -> bool {
    matches!(message, PromptMessage::User { text, parts } if !parts.is_empty() && text.starts_with(OPEN)
        && block_contents(text).next().is_some_and(|told| told.starts_with(prompts::RESULT_PARTS)))
}

/// An id of a call that every provider takes: nine letters and digits, made of a longer id.
pub fn short_call_id(id: Uuid) -> String {
    const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let letter = |at: u32| {
        let digit = id.as_u128() / 62u128.pow(at) % 62;
        usize::try_from(digit).ok().and_then(|digit| LETTERS.get(digit)).map_or('0', |letter| char::from(*letter))
    };
    (0..ID_LETTERS).map(letter).collect()
}

/// Returns true if a call's id is valid in a request to any endpoint that may have made it.
pub fn is_call_id(id: &str) -> bool {
    (1..=ID_BYTES).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte))
}

/// Returns true if endpoints accept it as a call of an earlier answer.
fn is_valid_call(call: &CompletionToolCall) -> bool {
    let is_object = call.arguments.trim().is_empty()
        || serde_json::from_str::<Value>(&call.arguments).is_ok_and(|arguments| arguments.is_object());
    is_object && chat_completions::is_wire_name(&chat_completions::to_wire_name(&call.tool))
}

/// Arguments of a call that has none are an empty object.
fn arguments_or_empty(arguments: &str) -> String {
    if arguments.trim().is_empty() { "{}".to_owned() } else { arguments.to_owned() }
}

fn add_paragraph(text: &mut String, paragraph: &str) {
    if paragraph.is_empty() {
        return;
    }
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(paragraph);
}

/// Checks that every endpoint accepts the conversation.
///
/// # Errors
/// Returns the first rule that is broken.
pub fn check_conversation(messages: &[PromptMessage]) -> Result<(), String> {
    let rest = match messages.first() {
        Some(PromptMessage::System { text }) if text.trim().is_empty() => {
            return Err("an empty system message".to_owned());
        }
        Some(PromptMessage::System { .. }) => messages.get(1..).unwrap_or_default(),
        _ => messages,
    };
    if !matches!(rest.first(), Some(PromptMessage::User { .. })) {
        return Err("the first message is no user's".to_owned());
    }
    if !matches!(rest.last(), Some(PromptMessage::User { .. } | PromptMessage::Tool { .. })) {
        return Err("the last message is the model's".to_owned());
    }
    let mut open = Vec::new();
    let mut ids = BTreeSet::new();
    let mut before: Option<&PromptMessage> = None;
    for message in rest {
        let is_behind_answer = matches!(before, Some(PromptMessage::Assistant { .. }));
        let is_behind_result = matches!(before, Some(PromptMessage::Tool { .. }));
        match message {
            PromptMessage::System { .. } => return Err("a system message that is not the first".to_owned()),
            PromptMessage::User { text, parts } if text.trim().is_empty() && parts.is_empty() => {
                return Err("an empty user message".to_owned());
            }
            PromptMessage::User { .. } if before.is_some() && (!is_behind_answer || !open.is_empty()) => {
                return Err("a user message that is not behind an answer".to_owned());
            }
            PromptMessage::User { .. } => {}
            PromptMessage::Assistant { text, calls, .. } if text.trim().is_empty() && calls.is_empty() => {
                return Err("an empty answer".to_owned());
            }
            PromptMessage::Assistant { .. } if is_behind_answer || !open.is_empty() => {
                return Err("two answers in a row".to_owned());
            }
            PromptMessage::Assistant { calls, .. } => {
                for call in calls {
                    if !ids.insert(&call.id) {
                        return Err(format!("the id {} twice", call.id));
                    }
                    open.push(&call.id);
                }
            }
            PromptMessage::Tool { text, .. } if text.trim().is_empty() => return Err("an empty result".to_owned()),
            PromptMessage::Tool { call_id, .. }
                if !(is_behind_answer || is_behind_result) || !open.contains(&call_id) =>
            {
                return Err("a result that is not behind its call".to_owned());
            }
            PromptMessage::Tool { call_id, .. } => open.retain(|id| *id != call_id),
        }
        before = Some(message);
    }
    if open.is_empty() { Ok(()) } else { Err("a call without a result".to_owned()) }
}
