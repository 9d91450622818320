//! Model calls of which nothing came: whether the model is asked again, and what follows where it is not. What people are told
//! is in [`super::failure_messages`].

use std::sync::Arc;

use kairo_proto::v1::{Completion, CompletionError};
use kairo_proto::words::{ChainOutcome, StepState as Ended, TaskStatus};
use serde_json::Value;

use super::{AwaitedAnswer, Deliberation, Purpose, call_shares::CALLS_REACHED, failure_messages, request_fitting};
use crate::{
    caps::CAP_REACHED,
    model_answer::AnswerFlaw,
    model_health::TOO_MUCH,
    request::{ModelRequest, PromptMessage},
};

/// Kinds of failures, as in `AgentFailed.kind`: an answer is not what was asked for.
pub(super) const MALFORMED: &str = "malformed_answer";
/// A call of a tool cannot be made.
pub(super) const MALFORMED_CALL: &str = "malformed_tool_call";
/// The endpoint is away.
pub(super) const UNAVAILABLE: &str = "model_unavailable";
/// An endpoint refuses a request, for a reason of its own.
const REFUSED: &str = "model_refused";
/// Kinds that pass by waiting.
const PASSING: [&str; 4] = ["model_rate_limited", "model_overloaded", UNAVAILABLE, "model_timeout"];
/// Kinds that somebody else must mend: the same is not asked again, whatever a reader of answers says.
const LASTING: [&str; 4] = ["model_unauthorized", "model_out_of_credit", "model_not_found", "model_filtered"];
/// Most times that one request is shortened.
const SHORTENINGS: u32 = 32;
/// Answers that may be empty before the turn ends.
const EMPTY_ANSWERS: u32 = 2;

/// The reason why an answer cannot be used.
#[derive(Clone, Debug, Default)]
pub(super) struct AnswerFailure {
    /// As in `AgentFailed.kind`.
    pub(super) kind: String,
    pub(super) message: String,
    /// True if the same question may get a better answer.
    pub(super) retryable: bool,
    /// The wait that the endpoint asks for, in milliseconds; 0 where it does not say.
    pub(super) retry_after_ms: u64,
    /// The tokens that the model takes, as the endpoint says; 0 where it does not say.
    pub(super) context_tokens: u64,
    /// True if there is no answer at all.
    pub(super) is_empty: bool,
}

impl AnswerFailure {
    /// One that ends what it happens to.
    pub(super) fn of_kind(kind: &str, message: impl Into<String>) -> Self {
        Self { kind: kind.to_owned(), message: message.into(), ..Self::default() }
    }

    /// One that another try may mend.
    pub(super) fn retryable(kind: &str, message: impl Into<String>) -> Self {
        Self { retryable: true, ..Self::of_kind(kind, message) }
    }

    /// An answer that is not what was asked for.
    pub(super) fn malformed_answer(message: impl Into<String>) -> Self {
        Self::retryable(MALFORMED, message)
    }

    /// An answer that says nothing.
    pub(super) fn empty_answer() -> Self {
        Self { is_empty: true, ..Self::malformed_answer("the answer is empty") }
    }

    /// Converts the error of a model's endpoint.
    pub(super) fn from_completion_error(error: &CompletionError) -> Self {
        let CompletionError { kind, message, transient, retry_after_ms, context_tokens, .. } = error;
        let retry_after_ms = *retry_after_ms;
        let context_tokens = *context_tokens;
        Self { retryable: *transient, retry_after_ms, context_tokens, ..Self::of_kind(kind, message.as_str()) }
    }

    fn is_outage(&self) -> bool {
        PASSING.contains(&self.kind.as_str())
    }
}

impl From<AnswerFlaw> for AnswerFailure {
    fn from(flaw: AnswerFlaw) -> Self {
        Self::retryable(flaw.kind, flaw.message)
    }
}

impl Deliberation<'_> {
    /// A question has no usable answer: it is asked again, or what it was asked for goes on without.
    pub(super) fn retry_or_give_up(
        &mut self,
        mut asked: AwaitedAnswer,
        completion: &Completion,
        failure: AnswerFailure,
    ) {
        // The user's answer neither waits for a summary nor fails with it, and keywords are looked for again later.
        if matches!(asked.purpose, Purpose::Summarize { .. } | Purpose::Keywords(_)) {
            return self.work.push_back(asked.turn);
        }
        // It is asked once: the user waits.
        if matches!(asked.purpose, Purpose::Promise { .. }) {
            return self.resolve_unclear_promise(&asked);
        }
        let attempt = asked.question.attempt;
        let again = match self.limits.is_of_old_build() {
            true => self.should_retry_as_old_build(&asked, &failure),
            false => self.register_retry(&mut asked, &failure),
        };
        self.record_answer_failure(asked.turn, &failure, attempt, again);
        match again {
            true => self.retry_question(asked, completion, &failure),
            false => self.give_up(asked, &failure),
        }
    }

    /// As builds before epoch 10 decided it.
    fn should_retry_as_old_build(&self, asked: &AwaitedAnswer, failure: &AnswerFailure) -> bool {
        let is_shorter = failure.kind == TOO_MUCH && asked.question.attempt == 1;
        let mendable = failure.retryable || is_shorter || may_have_refused_media(asked, failure);
        asked.question.attempt < self.limits.tries && mendable
    }

    /// Returns true if a question is asked again, and counts the try. A request that was too long is shortened for it.
    fn register_retry(&self, asked: &mut AwaitedAnswer, failure: &AnswerFailure) -> bool {
        if failure.kind == TOO_MUCH {
            return self.shorten_for_retry(asked, failure);
        }
        let is_lasting = LASTING.contains(&failure.kind.as_str());
        if is_lasting || !failure.retryable && !may_have_refused_media(asked, failure) {
            return false;
        }
        if failure.is_outage() {
            asked.history.outages += 1;
            return asked.history.outages < self.outage_tries(&asked.purpose);
        }
        asked.history.mistakes += 1;
        asked.history.empty_answers += u32::from(failure.is_empty);
        asked.history.mistakes < self.limits.tries && asked.history.empty_answers < EMPTY_ANSWERS
    }

    /// Tries of a question whose endpoint is away. What a turn can do without is not waited for as long.
    fn outage_tries(&self, purpose: &Purpose) -> u32 {
        let has_failed = || {
            let tier = if matches!(purpose, Purpose::Compact(_)) { "light" } else { "fast" };
            self.limits.memory_rules > 0 && self.mind.models.failing().contains_key(tier)
        };
        match purpose {
            // One that failed the last time is tried once.
            Purpose::Goal | Purpose::Compact(_) if has_failed() => 1,
            Purpose::Goal | Purpose::Reflect { .. } | Purpose::Compact(_) => self.limits.tries,
            Purpose::Match
            | Purpose::Think { .. }
            | Purpose::Promise { .. }
            | Purpose::Plan(_)
            | Purpose::Decide(_)
            | Purpose::Judge(_)
            | Purpose::Complete(_)
            | Purpose::Summarize { .. }
            | Purpose::Keywords(_)
            | Purpose::Learn { .. }
            | Purpose::Submodule(_) => self.limits.outage_tries,
        }
    }

    /// Shortens a request that is larger than its model takes. False where nothing is left to shorten, but for the first time: endpoints
    /// say so of requests, too, that they take a moment later.
    fn shorten_for_retry(&self, asked: &mut AwaitedAnswer, failure: &AnswerFailure) -> bool {
        // Whoever sums up is shown all that the summary stands for, in smaller parts if need be.
        if matches!(&asked.purpose, Purpose::Compact(of) if of.part.is_some()) {
            return false;
        }
        // What there is of an answer that is gone on with is worth more than one to less of the question.
        if !asked.history.words.is_empty() {
            return false;
        }
        asked.history.shortenings += 1;
        let told = usize::try_from(failure.context_tokens).ok().filter(|tokens| *tokens > 0);
        let request = Arc::make_mut(&mut asked.question.request);
        let is_first = asked.history.shortenings == 1;
        asked.history.shortenings <= SHORTENINGS && (request_fitting::shorten(request, told) || is_first)
    }

    /// Asks once more, showing the model its mistake where it answered at all.
    fn retry_question(&mut self, mut asked: AwaitedAnswer, completion: &Completion, failure: &AnswerFailure) {
        let is_old = self.limits.is_of_old_build();
        if may_have_refused_media(&asked, failure) {
            Arc::make_mut(&mut asked.question.request).replace_media_with_words("you cannot be shown it");
        }
        if is_old && failure.kind == TOO_MUCH {
            Arc::make_mut(&mut asked.question.request).drop_older_half();
        }
        if completion.error.is_none() {
            let request = Arc::make_mut(&mut asked.question.request);
            match is_old {
                true => correct_as_old_build(request, completion, failure),
                false => {
                    let reason = match completion.tool_calls.is_empty() || request.may_call_tools() {
                        true => failure.message.as_str(),
                        false => "no tool can be called any more; answer in words",
                    };
                    request
                        .push_correction(completion, &format!("That answer could not be used: {reason}. Try again."));
                }
            }
        }
        asked.question.attempt += 1;
        self.enqueue_question(asked);
    }

    /// Goes on without a usable answer, by the purpose of the question.
    pub(super) fn give_up(&mut self, asked: AwaitedAnswer, failure: &AnswerFailure) {
        let AnswerFailure { kind, message, .. } = failure;
        match &asked.purpose {
            Purpose::Match => self.stay_in_thread(asked.turn),
            Purpose::Think { step } if !asked.history.words.is_empty() => self.conclude_cut_answer(&asked, *step),
            Purpose::Think { .. } | Purpose::Plan(_) => {
                self.apply_decided();
                self.end_chain_of(asked.turn, &ChainOutcome::Failed, message);
                // Whoever waits comes to the same: the message says what helps.
                if kind == CAP_REACHED || kind == CALLS_REACHED {
                    return self.end_at_cap(asked.turn, failure);
                }
                let text = match self.limits.is_of_old_build() {
                    true => failure_messages::describe_as_old_build(failure),
                    false => self.describe_failure(&asked, failure),
                };
                self.conclude_failed(asked.turn, &text, kind);
            }
            Purpose::Decide(deciding) => {
                self.end_step(asked.turn, deciding.step, &Ended::Failed, Value::Null, message);
                self.work.push_back(asked.turn);
            }
            Purpose::Complete(completing) => {
                if self.remember_verbatim(asked.turn, completing) {
                    return;
                }
                self.end_step(asked.turn, completing.step, &Ended::Failed, Value::Null, message);
                self.work.push_back(asked.turn);
            }
            Purpose::Compact(of) => match of.part {
                Some(part) => self.receive_part_summary(asked.turn, part, Err(kind)),
                None => self.continue_without_summary(asked.turn, *of),
            },
            Purpose::Goal => {
                self.apply_decided();
                self.think(asked.turn, None);
            }
            // What nobody could review is said.
            Purpose::Reflect { draft } => {
                self.apply_decided();
                self.conclude(asked.turn, draft, &TaskStatus::Completed);
            }
            Purpose::Promise { .. } => self.resolve_unclear_promise(&asked),
            Purpose::Judge(judging) => self.give_up_judgement(asked.turn, judging.clone()),
            Purpose::Learn { thread_id } => self.complete_without_lessons(asked.turn, thread_id, message),
            Purpose::Summarize { .. } | Purpose::Keywords(_) | Purpose::Submodule(_) => {}
        }
    }

    /// Describes a failure to people.
    fn describe_failure(&self, asked: &AwaitedAnswer, failure: &AnswerFailure) -> String {
        if failure.kind != TOO_MUCH {
            return failure_messages::describe_failure(failure);
        }
        let request = &asked.question.request;
        let told = usize::try_from(failure.context_tokens).ok().filter(|tokens| *tokens > 0);
        failure_messages::request_too_large(
            request_fitting::fixed_tokens(request),
            told.or_else(|| self.context_tokens_of(request.tier)),
        )
    }
}

/// Returns true if the model may have refused images or audio, which words can stand for.
fn may_have_refused_media(asked: &AwaitedAnswer, failure: &AnswerFailure) -> bool {
    failure.kind == REFUSED && asked.question.request.media_parts().next().is_some()
}

/// As builds before epoch 10 showed a model its mistake.
fn correct_as_old_build(request: &mut ModelRequest, completion: &Completion, failure: &AnswerFailure) {
    request.messages.push(PromptMessage::assistant(completion.text.trim()));
    let text = format!("That answer could not be used: {}. Try again.", failure.message);
    request.messages.push(PromptMessage::user(text));
}
