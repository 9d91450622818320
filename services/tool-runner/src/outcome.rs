//! The error of a call without an answer: one rule for every kind of tool. Pure.
//!
//! | | nothing was sent | sent, and an agent can call it again | sent, and it cannot |
//! |---|---|---|---|
//! | the time limit passed | `timed_out` | `timed_out` | `in_doubt` |
//! | stopped on request | `canceled` | `canceled` | `in_doubt` |
//! | the connection was lost | `failed` | `failed` | `in_doubt` |
//! | the answer cannot be used | `failed` | `failed` | `in_doubt`, with what could be read |

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::tool::{ToolError, ToolErrorKind};

/// Longest part of an answer that is repeated in an error, in characters.
const MAX_READABLE_CHARS: usize = 1_000;

const AGAIN: &str = "it can be called again";
const NOTHING_SENT: &str = "nothing was sent, so it can be called again";
const FIND_OUT: &str = "its effect may have happened or may still happen: find out before calling it again";

/// The reason a call has no usable answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissingAnswer {
    /// The time limit of the call passed.
    TimeLimit(Duration),
    /// Somebody wanted the call stopped.
    Canceled,
    /// The connection was lost, or the answer broke off, with the details.
    Lost(String),
    /// An answer came that cannot be used: why, and what could be read of it.
    Unusable { why: String, readable: String },
}

/// Builds the error of a call whose answer is missing. `is_repeatable`: an agent can call it again without harm, under
/// another action id; `may_have_left`: the peer may have received the request.
pub fn missing_answer_error(missing: &MissingAnswer, is_repeatable: bool, may_have_left: bool) -> ToolError {
    let what = missing.in_words();
    match (may_have_left, is_repeatable) {
        (false, _) => ToolError::new(missing.kind(), format!("{what}; {NOTHING_SENT}")),
        (true, true) => ToolError::new(missing.kind(), format!("{what}; {AGAIN}{}", missing.advice())),
        (true, false) => ToolError::in_doubt(format!("{what}; {FIND_OUT}{}", missing.readable())),
    }
}

impl MissingAnswer {
    /// An answer that cannot be used, with what could be read of it.
    pub fn unusable(why: impl Into<String>, readable: &str) -> Self {
        Self::Unusable { why: why.into(), readable: readable.chars().take(MAX_READABLE_CHARS).collect() }
    }

    fn kind(&self) -> ToolErrorKind {
        match self {
            Self::TimeLimit(_) => ToolErrorKind::TimedOut,
            Self::Canceled => ToolErrorKind::Canceled,
            Self::Lost(_) | Self::Unusable { .. } => ToolErrorKind::Failed,
        }
    }

    fn in_words(&self) -> String {
        match self {
            Self::TimeLimit(limit) => format!("no answer came within {} ms", limit.as_millis()),
            Self::Canceled => "it was stopped on request".to_owned(),
            Self::Lost(how) => how.clone(),
            Self::Unusable { why, .. } => why.clone(),
        }
    }

    /// Returns further advice for the caller; may be empty.
    fn advice(&self) -> &'static str {
        match self {
            Self::TimeLimit(_) => ": ask for less or raise the limit",
            Self::Canceled | Self::Lost(_) | Self::Unusable { .. } => "",
        }
    }

    fn readable(&self) -> String {
        match self {
            Self::Unusable { readable, .. } if !readable.is_empty() => format!("; what could be read: {readable}"),
            Self::TimeLimit(_) | Self::Canceled | Self::Lost(_) | Self::Unusable { .. } => String::new(),
        }
    }
}

/// Signals between a call and its tool. If the tool reports nothing here, its request counts as possibly sent.
#[derive(Debug, Clone, Default)]
pub struct Exchange {
    reached: Arc<AtomicU8>,
    wanted_late: Arc<AtomicBool>,
    overdue: CancellationToken,
}

// 0 is what a tool leaves that says nothing.
const NOT_SENT: u8 = 1;
const SENT: u8 = 2;
const ANSWERED: u8 = 3;

impl Exchange {
    /// Nothing has left so far: the tool will say when it does.
    pub fn mark_unsent(&self) {
        self.reached.store(NOT_SENT, Ordering::SeqCst);
    }

    /// The request is about to leave.
    pub fn mark_sent(&self) {
        self.reached.store(SENT, Ordering::SeqCst);
    }

    /// The peer said how the call ended: what the tool returns is the truth.
    pub fn mark_answered(&self) {
        self.reached.store(ANSWERED, Ordering::SeqCst);
    }

    /// Returns true if the peer may have received the request.
    pub fn may_have_left(&self) -> bool {
        self.reached.load(Ordering::SeqCst) != NOT_SENT
    }

    /// Returns true if the tool's result is the answer of the peer that carried out the call.
    pub fn is_answered(&self) -> bool {
        self.reached.load(Ordering::SeqCst) == ANSWERED
    }

    /// Marks the peer's answer as wanted even after the call was canceled.
    pub fn request_late_answer(&self) {
        self.wanted_late.store(true, Ordering::SeqCst);
    }

    /// Returns true if [`Self::request_late_answer`] was called.
    pub fn is_late_answer_wanted(&self) -> bool {
        self.wanted_late.load(Ordering::SeqCst)
    }

    /// Returns the token that is canceled when the time limit passes while the call goes on: its result says
    /// `in_doubt`, and an answer is still awaited. A tool that can ask its peer to stop does so then, and waits on.
    pub fn overdue(&self) -> &CancellationToken {
        &self.overdue
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn missing() -> impl Strategy<Value = MissingAnswer> {
        prop_oneof![
            any::<u64>().prop_map(|ms| MissingAnswer::TimeLimit(Duration::from_millis(ms))),
            Just(MissingAnswer::Canceled),
            ".{0,100}".prop_map(MissingAnswer::Lost),
            (".{0,100}", ".{0,3000}").prop_map(|(why, readable)| MissingAnswer::unusable(why, &readable)),
        ]
    }

    proptest! {
        #[test]
        fn only_what_left_and_cannot_be_repeated_is_in_doubt(
            missing in missing(),
            is_repeatable in any::<bool>(),
            may_have_left in any::<bool>(),
        ) {
            let error = missing_answer_error(&missing, is_repeatable, may_have_left);
            let is_in_doubt = error.kind == ToolErrorKind::InDoubt;
            prop_assert_eq!(is_in_doubt, may_have_left && !is_repeatable);
            prop_assert_eq!(error.message.ends_with(FIND_OUT) || error.message.contains(&format!("{FIND_OUT};")), is_in_doubt);
            prop_assert!(is_in_doubt || error.message.contains(AGAIN));
            prop_assert!(error.message.chars().count() < MAX_READABLE_CHARS + 500);
        }
    }

    #[test]
    fn what_could_be_read_is_told() {
        let error = missing_answer_error(&MissingAnswer::unusable("it is no JSON", "paid, receipt 7"), false, true);
        assert!(error.message.contains("paid, receipt 7") && error.message.contains("it is no JSON"), "{error}");
    }

    #[test]
    fn a_limit_has_another_kind_than_a_stop_or_a_loss() {
        let kind = |missing| missing_answer_error(&missing, true, true).kind;
        assert_eq!(kind(MissingAnswer::TimeLimit(Duration::ZERO)), ToolErrorKind::TimedOut);
        assert_eq!(kind(MissingAnswer::Canceled), ToolErrorKind::Canceled);
        assert_eq!(kind(MissingAnswer::Lost(String::new())), ToolErrorKind::Failed);
    }

    #[test]
    fn a_tool_that_says_nothing_may_have_sent_its_request() {
        let exchange = Exchange::default();
        assert!(exchange.may_have_left() && !exchange.is_answered());
        exchange.mark_unsent();
        assert!(!exchange.may_have_left());
        exchange.clone().mark_sent();
        assert!(exchange.may_have_left() && !exchange.is_answered());
        exchange.mark_answered();
        assert!(exchange.may_have_left() && exchange.is_answered());
    }
}
