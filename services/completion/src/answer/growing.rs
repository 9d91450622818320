//! A completion as it grows, from the pieces of a stream or from one whole answer.

#![allow(clippy::indexing_slicing, reason = "indexing a serde_json::Value yields null, it does not panic")]

use kairo_proto::{
    v1::{Completion, CompletionToolCall},
    words::AnswerEnding,
};
use serde_json::Value;

use super::{
    calls::Calls,
    details::Details,
    ending::Finish,
    ids::Ids,
    message::{Said, said},
    passed_back::PassedBack,
    thinking::{Added, Splitter},
    usage::Usage,
};
use crate::{
    offered::Offered,
    wire::halves::Joiner,
    written::{self, Written},
};

/// Fields of a message that are the format's own, or are read here.
const KNOWN: [&str; 16] = [
    "role",
    "content",
    "refusal",
    "tool_calls",
    "function_call",
    "reasoning",
    "reasoning_text",
    "reasoning_details",
    "annotations",
    "audio",
    "name",
    "index",
    "logprobs",
    "token_ids",
    "stop_reason",
    "matched_stop",
];

/// The part of an answer that has arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Empty until the answer says it.
    pub model: String,
    /// Of words, reasoning and calls.
    pub bytes: u64,
    /// Pieces that brought any of these.
    pub pieces: u32,
    /// As the endpoint says; 0 until then.
    pub input_tokens: u64,
    pub output_tokens: u64,
}

/// An answer as it grows.
#[derive(Debug)]
pub struct Growing {
    splitter: Splitter,
    /// Halves of characters at the end of what arrived of words, reasoning and the refusal.
    halves: [Joiner; 3],
    text: String,
    refusal: String,
    reasoning: String,
    max_reasoning_bytes: usize,
    /// Bytes of it that were too many.
    reasoning_left_out: usize,
    calls: Calls,
    details: Details,
    passed_back: PassedBack,
    /// Of several choices the one that is read.
    choice: Option<u64>,
    /// True if pieces arrived: a message behind them says all of it again.
    in_pieces: bool,
    finish_reason: String,
    usage: Usage,
    progress: Progress,
}

impl Growing {
    pub fn new(thinks_first: bool, max_reasoning_bytes: usize) -> Self {
        Self {
            splitter: Splitter::new(thinks_first),
            halves: Default::default(),
            text: String::new(),
            refusal: String::new(),
            reasoning: String::new(),
            max_reasoning_bytes,
            reasoning_left_out: 0,
            calls: Calls::new(max_reasoning_bytes),
            details: Details::new(max_reasoning_bytes),
            passed_back: PassedBack::new(max_reasoning_bytes),
            choice: None,
            in_pieces: false,
            finish_reason: String::new(),
            usage: Usage::default(),
            progress: Progress::default(),
        }
    }

    /// Takes in a chunk of a stream or a whole answer: they differ in `delta` and `message` only.
    pub fn take(&mut self, chunk: &Value, offered: &Offered) -> Added {
        if let Some(model) = chunk["model"].as_str().filter(|model| !model.is_empty()) {
            self.progress.model = model.chars().take(200).collect();
        }
        self.usage.take(chunk);
        (self.progress.input_tokens, self.progress.output_tokens) = (self.usage.input, self.usage.output);
        let Some(choice) = self.choice(chunk) else { return Added::default() };
        if let Some(reason) = finish_reason(choice) {
            reason.clone_into(&mut self.finish_reason);
        }
        if is_filled(&choice["delta"]) {
            self.in_pieces = true;
            self.take_piece(&choice["delta"], offered)
        } else if choice["message"].is_object() && !self.in_pieces {
            self.take_whole(&choice["message"])
        } else if let Some(text) = choice["text"].as_str() {
            // As completions have it that are not of chats.
            self.count(text.len());
            self.hear(text, "")
        } else {
            self.flushed()
        }
    }

    /// The choice that is read of a chunk: of several answers to one request, the first.
    fn choice<'c>(&mut self, chunk: &'c Value) -> Option<&'c Value> {
        let choices = match &chunk["choices"] {
            Value::Array(choices) => choices.as_slice(),
            choice @ Value::Object(_) => std::slice::from_ref(choice),
            // As Ollama's own format has it.
            _ if chunk["message"].is_object() || chunk["delta"].is_object() => std::slice::from_ref(chunk),
            _ => &[],
        };
        let index = |(at, choice): (usize, &Value)| choice["index"].as_u64().unwrap_or(at as u64);
        let first = choices.iter().enumerate().map(index).min()?;
        let wanted = *self.choice.get_or_insert(first);
        choices.iter().enumerate().find(|found| index(*found) == wanted).map(|(_, choice)| choice)
    }

    fn take_piece(&mut self, delta: &Value, offered: &Offered) -> Added {
        let said = said(delta);
        for call in &said.calls {
            self.calls.take_pieces(call, offered);
        }
        self.calls.take_pieces(&delta["tool_calls"], offered);
        self.calls.take_pieces(&delta["function_call"], offered);
        self.take_said(delta, said)
    }

    fn take_whole(&mut self, message: &Value) -> Added {
        let said = said(message);
        let of_message = match &message["tool_calls"] {
            Value::Array(calls) => calls.as_slice(),
            one @ Value::Object(_) => std::slice::from_ref(one),
            _ => &[],
        };
        said.calls.iter().copied().chain(of_message).for_each(|call| self.calls.take_whole(call));
        if self.calls.is_empty() {
            self.calls.take_whole(&message["function_call"]);
        }
        self.take_said(message, said)
    }

    fn take_said(&mut self, message: &Value, said: Said<'_>) -> Added {
        self.details.take(&message["reasoning_details"]);
        self.passed_back.take(message, &KNOWN);
        self.count(said.words.len() + said.reasoning.len() + said.refusal.len() + called_bytes(message));
        let refusal = self.halves[2].take(&said.refusal).into_owned();
        self.refusal.push_str(&refusal);
        self.hear(&said.words, &said.reasoning)
    }

    /// Takes in words, which may hold blocks of reasoning, and reasoning that is told apart from them.
    fn hear(&mut self, words: &str, apart: &str) -> Added {
        let [of_words, of_reasoning, _] = &mut self.halves;
        let Added { text, reasoning } = self.splitter.take(&of_words.take(words));
        let mut added = Added { text, reasoning: of_reasoning.take(apart).into_owned() + &reasoning };
        self.text.push_str(&added.text);
        self.keep_reasoning(&added.reasoning);
        let rest = self.flushed();
        added.text.push_str(&rest.text);
        added.reasoning.push_str(&rest.reasoning);
        added
    }

    /// Returns the text that was held back, if the answer is over.
    fn flushed(&mut self) -> Added {
        if !self.is_finished() {
            return Added::default();
        }
        let held = std::mem::replace(&mut self.splitter, Splitter::new(false)).finish();
        self.text.push_str(&held.text);
        self.keep_reasoning(&held.reasoning);
        held
    }

    /// Keeps reasoning up to its bound.
    fn keep_reasoning(&mut self, more: &str) {
        let room = self.max_reasoning_bytes.saturating_sub(self.reasoning.len());
        let kept = more.get(..more.floor_char_boundary(room)).unwrap_or_default();
        self.reasoning.push_str(kept);
        self.reasoning_left_out += more.len() - kept.len();
        if kept.len() < more.len() {
            // What comes behind a gap is left out, too.
            self.max_reasoning_bytes = self.reasoning.len();
        }
    }

    fn count(&mut self, bytes: usize) {
        self.progress.bytes = self.progress.bytes.saturating_add(bytes as u64);
        self.progress.pieces = self.progress.pieces.saturating_add(u32::from(bytes > 0));
    }

    /// Returns the progress up to now.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Returns true if the endpoint has said why the answer ends.
    pub fn is_finished(&self) -> bool {
        !self.finish_reason.is_empty()
    }

    /// Returns the meaning of that reason; a complete answer if there is none.
    pub fn finish_kind(&self) -> Finish {
        Finish::of(&self.finish_reason)
    }

    pub fn reason(&self) -> &str {
        &self.finish_reason
    }

    /// Returns true if anything was said or called.
    pub fn says_anything(&self) -> bool {
        self.progress.bytes > 0 || !self.calls.is_empty()
    }

    /// The whole, when no more comes, and what is shown of it that was not before.
    pub fn finish(mut self, offered: &Offered, mut ids: Ids) -> (Completion, Added) {
        let mut rest = self.end_of_text();
        let finish = self.finish_kind();
        let usage = self.usage.finish();
        let mut tool_calls = self.calls.finish(offered, &mut ids);
        let mut text = self.text;
        if tool_calls.is_empty()
            && let Some(Written { words, calls }) = written::read(&text, offered)
        {
            text = words;
            tool_calls = calls.into_iter().enumerate().map(|(place, call)| called(call, place, &mut ids)).collect();
            rest.text.clear();
        }
        let is_silent = text.trim().is_empty() && tool_calls.is_empty();
        let ending = match finish {
            _ if is_silent && !self.refusal.trim().is_empty() => AnswerEnding::Refused,
            Finish::Complete if is_silent => AnswerEnding::Empty,
            finish => finish.ending(),
        };
        if ending == AnswerEnding::Refused && is_silent {
            rest.text.push_str(&self.refusal);
            text = self.refusal;
        }
        let completion = Completion {
            model: self.progress.model,
            text,
            reasoning: with_gap(self.reasoning.trim(), self.reasoning_left_out),
            reasoning_details: self.details.finish(),
            // They are wanted back with calls.
            passed_back: if tool_calls.is_empty() { String::new() } else { self.passed_back.finish() },
            tool_calls,
            finish_reason: self.finish_reason,
            input_tokens: usage.input,
            output_tokens: usage.output,
            cached_tokens: usage.cached,
            ending: ending.text(),
            ..Default::default()
        };
        (completion, rest)
    }

    /// Ends what was held back of words, reasoning and the refusal.
    fn end_of_text(&mut self) -> Added {
        let [words, reasoning, refusal] = &mut self.halves;
        let (words, reasoning) = (words.finish(), reasoning.finish());
        self.refusal.push_str(refusal.finish());
        let mut rest = self.splitter.take(words);
        rest.reasoning.push_str(reasoning);
        let held = std::mem::replace(&mut self.splitter, Splitter::new(false)).finish();
        rest.text.push_str(&held.text);
        rest.reasoning.push_str(&held.reasoning);
        self.text.push_str(&rest.text);
        self.keep_reasoning(&rest.reasoning);
        rest
    }
}

fn called(call: written::Call, place: usize, ids: &mut Ids) -> CompletionToolCall {
    let written::Call { tool, arguments } = call;
    CompletionToolCall { call_id: ids.give("", place), tool, arguments, passed_back: String::new() }
}

fn with_gap(reasoning: &str, left_out: usize) -> String {
    match left_out {
        0 => reasoning.to_owned(),
        bytes => format!("{reasoning}… ({bytes} bytes left out)"),
    }
}

fn finish_reason(choice: &Value) -> Option<&str> {
    let fields = ["finish_reason", "done_reason", "finishReason"].map(|name| choice[name].as_str());
    fields.into_iter().flatten().find(|reason| !reason.is_empty())
}

fn is_filled(value: &Value) -> bool {
    value.as_object().is_some_and(|fields| !fields.is_empty())
}

/// Bytes of the names and arguments of calls.
fn called_bytes(message: &Value) -> usize {
    let bytes = |value: &Value| match value {
        Value::String(text) => text.len(),
        Value::Object(_) => value.to_string().len(),
        _ => 0,
    };
    let calls = message["tool_calls"].as_array().into_iter().flatten().map(|call| &call["function"]);
    let calls = calls.chain(std::iter::once(&message["function_call"]));
    calls.map(|function| bytes(&function["name"]) + bytes(&function["arguments"])).sum()
}
