//! A completion as it grows, from the pieces of a stream or from one whole answer.

#![allow(clippy::indexing_slicing, reason = "indexing a serde_json::Value yields null, it does not panic")]

use kairo_proto::{
    v1::{Completion, CompletionToolCall},
    words::AnswerEnding,
};
use serde_json::Value;

use super::{
    call_ids::CallIds,
    calls::CallAssembler,
    ending::Finish,
    message::{PieceContent, read_message},
    passthrough_fields::PassthroughFields,
    reasoning_details::ReasoningDetails,
    reasoning_splitter::{AddedText, Splitter},
    usage::AnswerUsage,
};
use crate::{
    offered_tools::OfferedTools,
    wire::surrogate_halves::Joiner,
    written_calls::{self, WrittenAnswer},
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
pub struct ReadProgress {
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
pub struct GrowingAnswer {
    splitter: Splitter,
    /// Halves of characters at the end of what arrived of words, reasoning and the refusal.
    halves: [Joiner; 3],
    text: String,
    refusal: String,
    reasoning: String,
    max_reasoning_bytes: usize,
    /// Bytes of it that were too many.
    reasoning_left_out: usize,
    calls: CallAssembler,
    details: ReasoningDetails,
    passed_back: PassthroughFields,
    /// Of several choices the one that is read.
    choice: Option<u64>,
    /// True if pieces arrived: a message behind them says all of it again.
    in_pieces: bool,
    finish_reason: String,
    usage: AnswerUsage,
    progress: ReadProgress,
}

impl GrowingAnswer {
    pub fn new(thinks_first: bool, max_reasoning_bytes: usize) -> Self {
        Self {
            splitter: Splitter::new(thinks_first),
            halves: Default::default(),
            text: String::new(),
            refusal: String::new(),
            reasoning: String::new(),
            max_reasoning_bytes,
            reasoning_left_out: 0,
            calls: CallAssembler::new(max_reasoning_bytes),
            details: ReasoningDetails::new(max_reasoning_bytes),
            passed_back: PassthroughFields::new(max_reasoning_bytes),
            choice: None,
            in_pieces: false,
            finish_reason: String::new(),
            usage: AnswerUsage::default(),
            progress: ReadProgress::default(),
        }
    }

    /// Takes in a chunk of a stream or a whole answer: they differ in `delta` and `message` only.
    pub fn add_chunk(&mut self, chunk: &Value, offered: &OfferedTools) -> AddedText {
        if let Some(model) = chunk["model"].as_str().filter(|model| !model.is_empty()) {
            self.progress.model = model.chars().take(200).collect();
        }
        self.usage.add_chunk(chunk);
        (self.progress.input_tokens, self.progress.output_tokens) = (self.usage.input, self.usage.output);
        let Some(choice) = self.choice(chunk) else { return AddedText::default() };
        if let Some(reason) = find_finish_reason(choice) {
            reason.clone_into(&mut self.finish_reason);
        }
        if is_filled(&choice["delta"]) {
            self.in_pieces = true;
            self.add_delta(&choice["delta"], offered)
        } else if choice["message"].is_object() && !self.in_pieces {
            self.add_message(&choice["message"])
        } else if let Some(text) = choice["text"].as_str() {
            // As completions have it that are not of chats.
            self.count(text.len());
            self.add_words(text, "")
        } else {
            self.flush_held()
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

    fn add_delta(&mut self, delta: &Value, offered: &OfferedTools) -> AddedText {
        let said = read_message(delta);
        for call in &said.calls {
            self.calls.add_pieces(call, offered);
        }
        self.calls.add_pieces(&delta["tool_calls"], offered);
        self.calls.add_pieces(&delta["function_call"], offered);
        self.add_content(delta, said)
    }

    fn add_message(&mut self, message: &Value) -> AddedText {
        let said = read_message(message);
        let of_message = match &message["tool_calls"] {
            Value::Array(calls) => calls.as_slice(),
            one @ Value::Object(_) => std::slice::from_ref(one),
            _ => &[],
        };
        said.calls.iter().copied().chain(of_message).for_each(|call| self.calls.add_whole(call));
        if self.calls.is_empty() {
            self.calls.add_whole(&message["function_call"]);
        }
        self.add_content(message, said)
    }

    fn add_content(&mut self, message: &Value, said: PieceContent<'_>) -> AddedText {
        self.details.add(&message["reasoning_details"]);
        self.passed_back.add_fields(message, &KNOWN);
        self.count(said.words.len() + said.reasoning.len() + said.refusal.len() + call_bytes(message));
        let refusal = self.halves[2].join(&said.refusal).into_owned();
        self.refusal.push_str(&refusal);
        self.add_words(&said.words, &said.reasoning)
    }

    /// Takes in words, which may hold blocks of reasoning, and reasoning that is told apart from them.
    fn add_words(&mut self, words: &str, apart: &str) -> AddedText {
        let [of_words, of_reasoning, _] = &mut self.halves;
        let AddedText { text, reasoning } = self.splitter.push(&of_words.join(words));
        let mut added = AddedText { text, reasoning: of_reasoning.join(apart).into_owned() + &reasoning };
        self.text.push_str(&added.text);
        self.keep_reasoning(&added.reasoning);
        let rest = self.flush_held();
        added.text.push_str(&rest.text);
        added.reasoning.push_str(&rest.reasoning);
        added
    }

    /// Returns the text that was held back, if the answer is over.
    fn flush_held(&mut self) -> AddedText {
        if !self.is_finished() {
            return AddedText::default();
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
    pub fn progress(&self) -> &ReadProgress {
        &self.progress
    }

    /// Returns true if the endpoint has said why the answer ends.
    pub fn is_finished(&self) -> bool {
        !self.finish_reason.is_empty()
    }

    /// Returns the meaning of that reason; a complete answer if there is none.
    pub fn finish_kind(&self) -> Finish {
        Finish::from_reason(&self.finish_reason)
    }

    pub fn reason(&self) -> &str {
        &self.finish_reason
    }

    /// Returns true if anything was said or called.
    pub fn says_anything(&self) -> bool {
        self.progress.bytes > 0 || !self.calls.is_empty()
    }

    /// The whole, when no more comes, and what is shown of it that was not before.
    pub fn finish(mut self, offered: &OfferedTools, mut ids: CallIds) -> (Completion, AddedText) {
        let mut rest = self.end_text();
        let finish = self.finish_kind();
        let usage = self.usage.finish();
        let mut tool_calls = self.calls.finish(offered, &mut ids);
        let mut text = self.text;
        if tool_calls.is_empty()
            && let Some(WrittenAnswer { words, calls }) = written_calls::read(&text, offered)
        {
            text = words;
            tool_calls =
                calls.into_iter().enumerate().map(|(place, call)| to_tool_call(call, place, &mut ids)).collect();
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
    fn end_text(&mut self) -> AddedText {
        let [words, reasoning, refusal] = &mut self.halves;
        let words = words.finish();
        let reasoning = reasoning.finish();
        self.refusal.push_str(refusal.finish());
        let mut rest = self.splitter.push(words);
        rest.reasoning.push_str(reasoning);
        let held = std::mem::replace(&mut self.splitter, Splitter::new(false)).finish();
        rest.text.push_str(&held.text);
        rest.reasoning.push_str(&held.reasoning);
        self.text.push_str(&rest.text);
        self.keep_reasoning(&rest.reasoning);
        rest
    }
}

fn to_tool_call(call: written_calls::WrittenCall, place: usize, ids: &mut CallIds) -> CompletionToolCall {
    let written_calls::WrittenCall { tool, arguments } = call;
    CompletionToolCall { call_id: ids.assign("", place), tool, arguments, passed_back: String::new() }
}

fn with_gap(reasoning: &str, left_out: usize) -> String {
    match left_out {
        0 => reasoning.to_owned(),
        bytes => format!("{reasoning}… ({bytes} bytes left out)"),
    }
}

fn find_finish_reason(choice: &Value) -> Option<&str> {
    let fields = ["finish_reason", "done_reason", "finishReason"].map(|name| choice[name].as_str());
    fields.into_iter().flatten().find(|reason| !reason.is_empty())
}

fn is_filled(value: &Value) -> bool {
    value.as_object().is_some_and(|fields| !fields.is_empty())
}

/// Bytes of the names and arguments of calls.
fn call_bytes(message: &Value) -> usize {
    let bytes = |value: &Value| match value {
        Value::String(text) => text.len(),
        Value::Object(_) => value.to_string().len(),
        _ => 0,
    };
    let calls = message["tool_calls"].as_array().into_iter().flatten().map(|call| &call["function"]);
    let calls = calls.chain(std::iter::once(&message["function_call"]));
    calls.map(|function| bytes(&function["name"]) + bytes(&function["arguments"])).sum()
}
