//! The ending of an answer, and what follows: a cut answer is continued, a refused or filtered one is reported as such,
//! and an empty one ends a turn that has done something.

use std::sync::Arc;

use kairo_proto::v1::Completion;
use kairo_proto::words::{AnswerEnding, ChainOutcome, StepState as Ended, TaskStatus};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    AnswerFailure, AwaitedAnswer, Deliberation, Purpose, answer_failures, background_work::TurnConclusion,
    failure_messages,
};
use crate::{
    model_answer::{self, ModelAnswer},
    request::{PromptMessage, REPLY},
    secrets,
    thread::{ThreadCall, cut_to},
};

/// Most times that a model is asked to go on with an answer that was cut.
const CONTINUATIONS: u32 = 2;
/// Words that the end of one piece and the beginning of the next must have in common, in bytes, to be taken for the same ones.
const COMMON_BYTES: std::ops::RangeInclusive<usize> = 16..=512;
/// Calls that are named where a turn ends without words, and what is told of each result, in bytes.
const CALLS: usize = 8;
const RESULT_BYTES: usize = 200;

/// The result of reading a thinking model's answer.
pub(super) enum AnswerReading {
    /// It means this; with how it ended, where that is told.
    Answer(ModelAnswer, Option<AnswerEnding>),
    /// The model was asked to go on.
    Continues,
}

/// Fails unless an answer that the mind reads itself is whole: a part of JSON cannot be read. Where the answer is
/// words, a part is better than nothing.
pub(super) fn ensure_usable(purpose: &Purpose, completion: &Completion) -> Result<(), AnswerFailure> {
    let is_words = matches!(purpose, Purpose::Goal | Purpose::Compact(_) | Purpose::Summarize { .. });
    match completion.ending_word() {
        AnswerEnding::Complete | AnswerEnding::Unknown(_) => Ok(()),
        AnswerEnding::Cut if is_words => Ok(()),
        AnswerEnding::Cut => Err(AnswerFailure::malformed_answer("it was cut off by its length; answer more briefly")),
        AnswerEnding::Filtered => {
            Err(AnswerFailure::malformed_answer("a content filter of the model's endpoint withheld it"))
        }
        AnswerEnding::Refused => Err(AnswerFailure::malformed_answer(format!(
            "the model declined to answer: {}",
            failure_messages::plain_reason(&completion.text)
        ))),
        AnswerEnding::Failed => {
            Err(AnswerFailure::retryable(answer_failures::UNAVAILABLE, "the answer broke off before its end"))
        }
        AnswerEnding::Empty => Err(AnswerFailure::empty_answer()),
    }
}

impl Deliberation<'_> {
    /// Reads a thinking model's answer by its ending.
    pub(super) fn read_answer(
        &mut self,
        asked: &AwaitedAnswer,
        completion: &Completion,
    ) -> Result<AnswerReading, AnswerFailure> {
        let words = || join_pieces(&asked.history.words, &completion.text).trim().to_owned();
        let says = |text: String, ending| Ok(AnswerReading::Answer(ModelAnswer::Say(text), Some(ending)));
        match completion.ending_word() {
            AnswerEnding::Unknown(_) => {
                let read = model_answer::read(&asked.question.request, completion, self.limits.parallel_tools)?;
                Ok(AnswerReading::Answer(read, None))
            }
            AnswerEnding::Complete => self.read_complete_answer(asked, completion),
            AnswerEnding::Cut => self.read_cut_answer(asked, completion),
            AnswerEnding::Failed => {
                Err(AnswerFailure::retryable(answer_failures::UNAVAILABLE, "the answer broke off before its end"))
            }
            AnswerEnding::Empty => self.read_empty_answer(asked),
            AnswerEnding::Refused => match words() {
                text if text.is_empty() => says("The model declines to answer this.".to_owned(), AnswerEnding::Refused),
                text => says(text, AnswerEnding::Refused),
            },
            AnswerEnding::Filtered => match words() {
                text if text.is_empty() => says(
                    "A content filter of the model's endpoint withheld the answer.".to_owned(),
                    AnswerEnding::Filtered,
                ),
                text => says(text, AnswerEnding::Filtered),
            },
        }
    }

    /// A complete answer, or the last piece of one that was cut before.
    fn read_complete_answer(
        &self,
        asked: &AwaitedAnswer,
        completion: &Completion,
    ) -> Result<AnswerReading, AnswerFailure> {
        let text = join_pieces(&asked.history.words, &completion.text);
        if text.trim().is_empty() && completion.tool_calls.is_empty() {
            return self.read_empty_answer(asked);
        }
        let whole = Completion { text, ..completion.clone() };
        // All calls of one answer are made, more than may run at once one group behind another.
        let most = self.limits.chain_steps.saturating_sub(1).max(self.limits.parallel_tools);
        Ok(AnswerReading::Answer(model_answer::read(&asked.question.request, &whole, most)?, None))
    }

    /// A part of an answer: the model goes on with words. Calls of it are never made, since what is missing may be what matters.
    fn read_cut_answer(
        &mut self,
        asked: &AwaitedAnswer,
        completion: &Completion,
    ) -> Result<AnswerReading, AnswerFailure> {
        let words = join_pieces(&asked.history.words, &completion.text);
        let is_last_try = asked.history.mistakes + 1 >= self.limits.tries;
        if !completion.tool_calls.is_empty() {
            if is_last_try && !words.trim().is_empty() {
                return Ok(AnswerReading::Answer(ModelAnswer::Say(words.trim().to_owned()), Some(AnswerEnding::Cut)));
            }
            let mistake = "the answer was cut off by its length, so none of its calls was made; call with shorter \
                           arguments, or in several steps";
            return Err(AnswerFailure::retryable(answer_failures::MALFORMED_CALL, mistake));
        }
        if words.trim().is_empty() {
            if is_last_try {
                let text = "The answer was cut off by its length limit before its first word.".to_owned();
                return Ok(AnswerReading::Answer(ModelAnswer::Say(text), Some(AnswerEnding::Cut)));
            }
            return Err(AnswerFailure::malformed_answer(
                "it was cut off by its length before its first word; answer more briefly",
            ));
        }
        if asked.history.continuations >= CONTINUATIONS || completion.text.trim().is_empty() {
            return Ok(AnswerReading::Answer(partial_reply(&words), Some(AnswerEnding::Cut)));
        }
        let mut next = asked.clone();
        next.history.words = words;
        next.history.continuations += 1;
        next.question.attempt += 1;
        // What was shown of the first piece goes on with the whole, when that is said.
        next.question.speaks = false;
        let request = Arc::make_mut(&mut next.question.request);
        request.messages.push(PromptMessage::assistant(completion.text.trim()));
        request.messages.push(PromptMessage::user(
            "Your answer was cut off by its length. Go on exactly where it ended, and repeat nothing.",
        ));
        self.enqueue_question(next);
        Ok(AnswerReading::Continues)
    }

    /// An empty answer. Once something was done in the turn, or where it is not the first empty one, the turn ends with that.
    fn read_empty_answer(&self, asked: &AwaitedAnswer) -> Result<AnswerReading, AnswerFailure> {
        if !asked.history.words.is_empty() {
            return Ok(AnswerReading::Answer(partial_reply(&asked.history.words), Some(AnswerEnding::Cut)));
        }
        match self.describe_calls_made(asked.turn) {
            Some(text) => Ok(AnswerReading::Answer(ModelAnswer::Say(text), Some(AnswerEnding::Empty))),
            None => Err(AnswerFailure::empty_answer()),
        }
    }

    /// Lists the last calls of a turn, in words for people; none where it has made none.
    fn describe_calls_made(&self, turn_id: Uuid) -> Option<String> {
        let thread = self.mind.threads.get(&self.turn(turn_id)?.thread_id)?;
        let calls: Vec<&ThreadCall> = thread.calls_of(turn_id).collect();
        let left_out = calls.len().saturating_sub(CALLS);
        let lines: Vec<String> = calls.iter().skip(left_out).map(|call| describe_call(call)).collect();
        if lines.is_empty() {
            return None;
        }
        let before = if left_out > 0 { format!("\n- {left_out} earlier calls") } else { String::new() };
        Some(format!("The model had nothing to add. This was done:{before}\n{}", lines.join("\n")))
    }

    /// A turn ends with an answer that did not end as it should.
    pub(super) fn conclude_with_ending(&mut self, turn_id: Uuid, text: &str, ending: &AnswerEnding) {
        // A task, or somebody else's question, is not done with a refusal.
        let is_done = matches!(ending, AnswerEnding::Cut | AnswerEnding::Empty);
        let status = if is_done { &TaskStatus::Completed } else { &TaskStatus::Failed };
        let is_for_good = !is_done;
        self.conclude_with(
            turn_id,
            TurnConclusion { status, ending: ending.as_str(), is_for_good, ..TurnConclusion::answer(text) },
        );
    }

    /// Nothing more came of an answer that was cut: what there is of it is said.
    pub(super) fn conclude_cut_answer(&mut self, asked: &AwaitedAnswer, step: Option<usize>) {
        self.apply_decided();
        if let Some(step) = step {
            self.end_step(asked.turn, step, &Ended::Done, json!({}), "");
        }
        self.end_chain_of(asked.turn, &ChainOutcome::Done, "");
        self.apply_decided();
        self.conclude_with_ending(asked.turn, asked.history.words.trim(), &AnswerEnding::Cut);
    }
}

/// A call as people are told it.
fn describe_call(call: &ThreadCall) -> String {
    let Some(result) = &call.result else { return format!("- {} is still running", call.tool) };
    let error = serde_json::from_str::<Value>(result).ok().and_then(|result| {
        let kind = result.get("error").or_else(|| result.get("failed")).or_else(|| result.get("stopped"))?.as_str()?;
        let message = result.get("message").and_then(Value::as_str).unwrap_or_default();
        Some(format!("{kind} {message}"))
    });
    let told = |text: &str| cut_to(&secrets::redact(&failure_messages::plain_reason(text)).text, RESULT_BYTES);
    match error {
        Some(error) => format!("- {} failed: {}", call.tool, told(&error)),
        None => format!("- {}: {}", call.tool, told(result)),
    }
}

/// The reply in a part of an answer; of one in the form of an event, its message as far as it goes.
fn partial_reply(words: &str) -> ModelAnswer {
    let words = words.trim();
    let is_event = words.starts_with('{') && words.contains(REPLY);
    let message = words.split_once("\"message\"").and_then(|(_, rest)| rest.split_once('"')).map(|(_, text)| text);
    match message.filter(|_| is_event) {
        Some(message) => {
            // What is missing is at least a quotation mark; half an escape goes with it.
            let mut kept = message.trim_end_matches(['}', ' ', '\n']).trim_end_matches('"').to_owned();
            loop {
                match serde_json::from_str::<String>(&format!("\"{kept}\"")) {
                    Ok(text) => return ModelAnswer::Say(text),
                    Err(_) if kept.is_empty() => return ModelAnswer::Say(words.to_owned()),
                    Err(_) => _ = kept.pop(),
                }
            }
        }
        None => ModelAnswer::Say(words.to_owned()),
    }
}

/// Two pieces of an answer as one. A model that repeats the end of the first is taken at its word once.
fn join_pieces(first: &str, next: &str) -> String {
    if first.is_empty() {
        return next.to_owned();
    }
    let longest = (*COMMON_BYTES.end()).min(first.len()).min(next.len());
    let is_common =
        |size: &usize| next.is_char_boundary(*size) && next.get(..*size).is_some_and(|it| first.ends_with(it));
    let common = (*COMMON_BYTES.start()..=longest).rev().find(is_common).unwrap_or_default();
    format!("{first}{}", next.get(common..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_joined_without_what_the_next_one_repeats() {
        let table = [
            ("", "whole", "whole"),
            ("1. Turn off the mains. 2. Never", " touch it.", "1. Turn off the mains. 2. Never touch it."),
            (
                "1. Turn off the mains. 2. Never",
                "off the mains. 2. Never touch it.",
                "1. Turn off the mains. 2. Never touch it.",
            ),
            ("ha ha", "ha ha", "ha haha ha"),
        ];
        for (first, next, expected) in table {
            assert_eq!(join_pieces(first, next), expected);
        }
    }

    #[test]
    fn of_half_an_event_its_message_is_the_reply() {
        let part = |text: &str| match partial_reply(text) {
            ModelAnswer::Say(text) => text,
            other => panic!("{other:?}"),
        };
        assert_eq!(part(r#"{"event": "agent.reply", "params": {"message": "One\nand tw\u00"#), "One\nand tw");
        assert_eq!(part(r#"{"a": 1"#), r#"{"a": 1"#);
        assert_eq!(part("words "), "words");
    }
}
