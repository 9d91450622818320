//! Takes the bytes of an answer as they arrive, and gives the completion.

use std::collections::BTreeSet;

use kairo_proto::v1::Completion;
use serde_json::Value;

use crate::{
    answer::{
        call_ids::CallIds,
        ending::Finish,
        growing_answer::{GrowingAnswer, ReadProgress},
        reasoning_splitter::AddedText,
    },
    error::{ErrorKind, ModelError, in_band_error},
    offered_tools::OfferedTools,
    wire::frames::{Frame, Frames},
    written_calls::CallHoldback,
};

/// Settings for reading answers of one model.
#[derive(Clone, Debug)]
pub struct ReaderSettings {
    /// True if its answers begin within a block of reasoning that the prompt has opened.
    pub thinks_first: bool,
    /// Most bytes kept of the reasoning of one answer; and, each for itself, of the fields that are passed back.
    pub max_reasoning_bytes: usize,
    /// Longest answer, in bytes of its stream.
    pub max_answer_bytes: usize,
    /// True if an answer without any sign of an end counts as complete: for an endpoint that never gives one.
    pub takes_unmarked_end: bool,
    /// Seed for the ids of this answer's calls, which tells it from other answers.
    pub seed: String,
    /// Ids of calls that the request shows.
    pub taken_ids: BTreeSet<String>,
}

impl Default for ReaderSettings {
    fn default() -> Self {
        Self {
            thinks_first: false,
            max_reasoning_bytes: 64 * 1024,
            max_answer_bytes: 16 * 1024 * 1024,
            takes_unmarked_end: false,
            seed: String::new(),
            taken_ids: BTreeSet::new(),
        }
    }
}

/// The reason no more bytes come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// The endpoint has closed its answer.
    Closed,
    /// The connection broke, for this reason.
    Broken(String),
}

/// Reads one answer: a stream or a whole, whichever comes.
#[derive(Debug)]
pub struct AnswerReader {
    settings: ReaderSettings,
    offered: OfferedTools,
    frames: Frames,
    growing: GrowingAnswer,
    holding: CallHoldback,
    bytes: usize,
    /// Pieces that may be part of an answer.
    pieces: u64,
    /// The endpoint has said that this is all.
    is_done: bool,
    /// True if one whole answer came, or a last piece with the usage alone.
    is_whole: bool,
}

impl AnswerReader {
    pub fn new(settings: ReaderSettings, offered: OfferedTools) -> Self {
        Self {
            growing: GrowingAnswer::new(settings.thinks_first, settings.max_reasoning_bytes),
            holding: CallHoldback::new(&offered),
            settings,
            offered,
            frames: Frames::default(),
            bytes: 0,
            pieces: 0,
            is_done: false,
            is_whole: false,
        }
    }

    /// Takes in bytes, and says what they add for whoever watches.
    ///
    /// # Errors
    /// If the endpoint sends an error instead of an answer, or this is no answer. There is nothing more to read then.
    pub fn read(&mut self, bytes: &[u8]) -> Result<AddedText, ModelError> {
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > self.settings.max_answer_bytes {
            return Err(self.too_long_error());
        }
        let frames = self.frames.read(bytes).map_err(|_| self.too_long_error())?;
        self.read_frames(frames)
    }

    fn read_frames(&mut self, frames: Vec<Frame>) -> Result<AddedText, ModelError> {
        let mut added = AddedText::default();
        for frame in frames {
            match frame {
                _ if self.is_done => {}
                Frame::Done => self.is_done = true,
                Frame::Json { value, event } => self.read_value(&value, &event, &mut added)?,
                Frame::Garbled(text) => {
                    let start: String = text.chars().take(100).collect();
                    return Err(malformed_answer(format!("the answer is no JSON: {start}")));
                }
            }
        }
        Ok(added)
    }

    fn read_value(&mut self, value: &Value, event: &str, added: &mut AddedText) -> Result<(), ModelError> {
        if let Some(error) = in_band_error(value, event) {
            return Err(error);
        }
        if let Value::Array(values) = value {
            // Some proxies gather the pieces of a stream.
            return values
                .iter()
                .filter(|value| value.is_object())
                .try_for_each(|value| self.read_value(value, event, added));
        }
        if !value.is_object() {
            return Ok(());
        }
        let choices = value.get("choices").and_then(Value::as_array);
        let is_answer =
            choices.is_some_and(|choices| !choices.is_empty()) || value.get("message").is_some_and(Value::is_object);
        self.pieces += u64::from(is_answer || choices.is_some());
        let has_message =
            choices.into_iter().flatten().any(|choice| choice.get("message").is_some_and(Value::is_object));
        let counts = value.get("usage").and_then(Value::as_object).is_some_and(|usage| !usage.is_empty());
        self.is_whole |= has_message || !is_answer && choices.is_some() && counts;
        let more = self.growing.add_chunk(value, &self.offered);
        added.reasoning.push_str(&more.reasoning);
        added.text.push_str(&self.holding.filter(&more.text));
        Ok(())
    }

    /// Returns true if the whole answer has come, and nobody need wait for the connection to end.
    pub fn is_over(&self) -> bool {
        self.is_done
    }

    /// Returns true if the endpoint has said why the answer ends; its usage may follow.
    pub fn is_finished(&self) -> bool {
        self.is_done || self.growing.is_finished()
    }

    /// A number that grows with what arrives of an answer, comments and pings aside. 0 as long as nothing has.
    pub fn activity_count(&self) -> u64 {
        self.pieces.saturating_add(self.frames.document_bytes())
    }

    /// Returns how much of the answer has arrived.
    pub fn progress(&self) -> &ReadProgress {
        self.growing.progress()
    }

    /// The completion, and what was held back of it for whoever watches.
    ///
    /// # Errors
    /// If what came is no answer, or a part of one at best.
    pub fn finish(mut self, end: &StreamEnd) -> Result<(Completion, AddedText), ModelError> {
        let frames = self.frames.finish();
        // Of a connection that broke, the last piece may be half of one.
        let added = match (self.read_frames(frames), end) {
            (Ok(added), _) => added,
            (Err(error), _) if self.is_finished() || error.kind != ErrorKind::MalformedAnswer => {
                self.tolerate_after_finish(error)?
            }
            (Err(_), StreamEnd::Broken(cause)) => return Err(self.broken_error(cause)),
            (Err(error), StreamEnd::Closed) => return Err(error),
        };
        self.check(end)?;
        let ids = CallIds::new(self.settings.seed, self.settings.taken_ids);
        let (completion, rest) = self.growing.finish(&self.offered, ids);
        let mut held = self.holding.finish();
        held.insert_str(0, &added.text);
        // Calls that were written as words are nothing to be shown.
        let is_called = !completion.tool_calls.is_empty() && !completion.text.trim_end().ends_with(held.trim());
        let text = if is_called { String::new() } else { held + &rest.text };
        Ok((completion, AddedText { text, reasoning: added.reasoning + &rest.reasoning }))
    }

    /// Rubbish behind the end of an answer is nothing; an error is one wherever it stands.
    fn tolerate_after_finish(&self, error: ModelError) -> Result<AddedText, ModelError> {
        if self.is_finished() && error.kind == ErrorKind::MalformedAnswer {
            Ok(AddedText::default())
        } else {
            Err(error)
        }
    }

    /// Checks that what came is a whole answer.
    fn check(&self, end: &StreamEnd) -> Result<(), ModelError> {
        match self.growing.finish_kind() {
            Finish::Failed => {
                let reason = self.growing.reason();
                return Err(ModelError::new(
                    ErrorKind::Unavailable,
                    format!("the endpoint broke off its answer ({reason})"),
                ));
            }
            Finish::Garbled => {
                return Err(malformed_answer(format!(
                    "the model wrote a call that its server cannot read ({})",
                    self.growing.reason()
                )));
            }
            _ => {}
        }
        if self.growing.is_finished() || self.is_done && self.pieces > 0 {
            return Ok(());
        }
        match end {
            StreamEnd::Broken(cause) => Err(self.broken_error(cause)),
            StreamEnd::Closed if self.pieces == 0 => Err(self.no_answer_error()),
            StreamEnd::Closed if self.is_whole || self.settings.takes_unmarked_end && self.growing.says_anything() => {
                Ok(())
            }
            StreamEnd::Closed => Err(ModelError {
                is_unmarked_end: true,
                ..malformed_answer("the answer broke off before its end".to_owned())
            }),
        }
    }

    fn broken_error(&self, cause: &str) -> ModelError {
        match self.pieces {
            0 => ModelError::new(ErrorKind::Unavailable, format!("the connection broke before the answer: {cause}")),
            _ => malformed_answer(format!("the answer broke off before its end: {cause}")),
        }
    }

    /// Nothing of what came was an answer.
    fn no_answer_error(&self) -> ModelError {
        match crate::error::readable_text(self.frames.stray()) {
            words if words.is_empty() => malformed_answer("the answer is empty".to_owned()),
            words => malformed_answer(format!("the endpoint answered with something else: {words}")),
        }
    }

    fn too_long_error(&self) -> ModelError {
        malformed_answer(format!("the answer is longer than {} bytes", self.settings.max_answer_bytes))
    }
}

fn malformed_answer(message: String) -> ModelError {
    ModelError::new(ErrorKind::MalformedAnswer, message)
}
