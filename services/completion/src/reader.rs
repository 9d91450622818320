//! Takes the bytes of an answer as they arrive, and gives the completion.

use std::collections::BTreeSet;

use kairo_proto::v1::Completion;
use serde_json::Value;

use crate::{
    answer::{
        ending::Finish,
        growing::{Growing, Progress},
        ids::Ids,
        thinking::Added,
    },
    error::{ErrorKind, ModelError, in_band},
    offered::Offered,
    wire::frames::{Frame, Frames},
    written::Holding,
};

/// Settings for reading answers of one model.
#[derive(Clone, Debug)]
pub struct Settings {
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

impl Default for Settings {
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
pub enum End {
    /// The endpoint has closed its answer.
    Closed,
    /// The connection broke, for this reason.
    Broken(String),
}

/// Reads one answer: a stream or a whole, whichever comes.
#[derive(Debug)]
pub struct Reader {
    settings: Settings,
    offered: Offered,
    frames: Frames,
    growing: Growing,
    holding: Holding,
    bytes: usize,
    /// Pieces that may be part of an answer.
    pieces: u64,
    /// The endpoint has said that this is all.
    is_done: bool,
    /// True if one whole answer came, or a last piece with the usage alone.
    is_whole: bool,
}

impl Reader {
    pub fn new(settings: Settings, offered: Offered) -> Self {
        Self {
            growing: Growing::new(settings.thinks_first, settings.max_reasoning_bytes),
            holding: Holding::new(&offered),
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
    pub fn take(&mut self, bytes: &[u8]) -> Result<Added, ModelError> {
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > self.settings.max_answer_bytes {
            return Err(self.too_long());
        }
        let frames = self.frames.take(bytes).map_err(|_| self.too_long())?;
        self.take_frames(frames)
    }

    fn take_frames(&mut self, frames: Vec<Frame>) -> Result<Added, ModelError> {
        let mut added = Added::default();
        for frame in frames {
            match frame {
                _ if self.is_done => {}
                Frame::Done => self.is_done = true,
                Frame::Json { value, event } => self.take_value(&value, &event, &mut added)?,
                Frame::Garbled(text) => {
                    let start: String = text.chars().take(100).collect();
                    return Err(malformed(format!("the answer is no JSON: {start}")));
                }
            }
        }
        Ok(added)
    }

    fn take_value(&mut self, value: &Value, event: &str, added: &mut Added) -> Result<(), ModelError> {
        if let Some(error) = in_band(value, event) {
            return Err(error);
        }
        if let Value::Array(values) = value {
            // Some proxies gather the pieces of a stream.
            return values
                .iter()
                .filter(|value| value.is_object())
                .try_for_each(|value| self.take_value(value, event, added));
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
        let more = self.growing.take(value, &self.offered);
        added.reasoning.push_str(&more.reasoning);
        added.text.push_str(&self.holding.take(&more.text));
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
    pub fn arrived(&self) -> u64 {
        self.pieces.saturating_add(self.frames.document_bytes())
    }

    /// Returns how much of the answer has arrived.
    pub fn progress(&self) -> &Progress {
        self.growing.progress()
    }

    /// The completion, and what was held back of it for whoever watches.
    ///
    /// # Errors
    /// If what came is no answer, or a part of one at best.
    pub fn finish(mut self, end: &End) -> Result<(Completion, Added), ModelError> {
        let frames = self.frames.finish();
        // Of a connection that broke, the last piece may be half of one.
        let added = match (self.take_frames(frames), end) {
            (Ok(added), _) => added,
            (Err(error), _) if self.is_finished() || error.kind != ErrorKind::MalformedAnswer => {
                self.unless_finished(error)?
            }
            (Err(_), End::Broken(cause)) => return Err(self.broken(cause)),
            (Err(error), End::Closed) => return Err(error),
        };
        self.check(end)?;
        let ids = Ids::new(self.settings.seed, self.settings.taken_ids);
        let (completion, rest) = self.growing.finish(&self.offered, ids);
        let mut held = self.holding.finish();
        held.insert_str(0, &added.text);
        // Calls that were written as words are nothing to be shown.
        let is_called = !completion.tool_calls.is_empty() && !completion.text.trim_end().ends_with(held.trim());
        let text = if is_called { String::new() } else { held + &rest.text };
        Ok((completion, Added { text, reasoning: added.reasoning + &rest.reasoning }))
    }

    /// Rubbish behind the end of an answer is nothing; an error is one wherever it stands.
    fn unless_finished(&self, error: ModelError) -> Result<Added, ModelError> {
        if self.is_finished() && error.kind == ErrorKind::MalformedAnswer { Ok(Added::default()) } else { Err(error) }
    }

    /// Checks that what came is a whole answer.
    fn check(&self, end: &End) -> Result<(), ModelError> {
        match self.growing.finish_kind() {
            Finish::Failed => {
                let reason = self.growing.reason();
                return Err(ModelError::new(
                    ErrorKind::Unavailable,
                    format!("the endpoint broke off its answer ({reason})"),
                ));
            }
            Finish::Garbled => {
                return Err(malformed(format!(
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
            End::Broken(cause) => Err(self.broken(cause)),
            End::Closed if self.pieces == 0 => Err(self.nothing()),
            End::Closed if self.is_whole || self.settings.takes_unmarked_end && self.growing.says_anything() => Ok(()),
            End::Closed => {
                Err(ModelError { is_unmarked_end: true, ..malformed("the answer broke off before its end".to_owned()) })
            }
        }
    }

    fn broken(&self, cause: &str) -> ModelError {
        match self.pieces {
            0 => ModelError::new(ErrorKind::Unavailable, format!("the connection broke before the answer: {cause}")),
            _ => malformed(format!("the answer broke off before its end: {cause}")),
        }
    }

    /// Nothing of what came was an answer.
    fn nothing(&self) -> ModelError {
        match crate::error::words_of(self.frames.stray()) {
            words if words.is_empty() => malformed("the answer is empty".to_owned()),
            words => malformed(format!("the endpoint answered with something else: {words}")),
        }
    }

    fn too_long(&self) -> ModelError {
        malformed(format!("the answer is longer than {} bytes", self.settings.max_answer_bytes))
    }
}

fn malformed(message: String) -> ModelError {
    ModelError::new(ErrorKind::MalformedAnswer, message)
}
