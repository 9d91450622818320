//! The ending of an answer, by the word that its endpoint has for it.

use kairo_proto::words::AnswerEnding;

/// Reasons of endpoints, in lower case and with underscores.
const CUT: [&str; 13] = [
    "length",
    "max_tokens",
    "max_token",
    "model_length",
    "max_output_tokens",
    "max_length",
    "token_limit",
    "max_new_tokens",
    "incomplete",
    "truncated",
    "model_context_window_exceeded",
    "context_length",
    "context_length_exceeded",
];
const FILTERED: [&str; 14] = [
    "content_filter",
    "content_filtered",
    "contentfilter",
    "safety",
    "recitation",
    "blocklist",
    "prohibited_content",
    "spii",
    "image_safety",
    "guardrail_intervened",
    "sensitive",
    "moderation",
    "filtered",
    "language",
];
const FAILED: [&str; 12] = [
    "error",
    "network_error",
    "abort",
    "aborted",
    "cancelled",
    "canceled",
    "failed",
    "server_error",
    "other_error",
    "insufficient_system_resource",
    "error_toxic",
    "error_limit",
];
const GARBLED: [&str; 4] = ["malformed_function_call", "unexpected_tool_call", "malformed_tool_call", "tool_error"];

/// The meaning of a reason to finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    Complete,
    Cut,
    Filtered,
    Refused,
    /// The endpoint could not go on.
    Failed,
    /// The model wrote something that its own server could not read.
    Garbled,
}

impl Finish {
    /// Reads a reason. Whatever else it says, the answer is over, and complete.
    pub fn from_reason(reason: &str) -> Self {
        let reason = reason.to_lowercase().replace('-', "_");
        let is = |reasons: &[&str]| reasons.contains(&reason.as_str());
        if is(&CUT) {
            Self::Cut
        } else if is(&FILTERED) {
            Self::Filtered
        } else if is(&["refusal"]) {
            Self::Refused
        } else if is(&FAILED) {
            Self::Failed
        } else if is(&GARBLED) {
            Self::Garbled
        } else {
            Self::Complete
        }
    }

    /// Returns the ending of an answer that says or calls something.
    pub fn ending(self) -> AnswerEnding {
        match self {
            Self::Complete => AnswerEnding::Complete,
            Self::Cut => AnswerEnding::Cut,
            Self::Filtered => AnswerEnding::Filtered,
            Self::Refused => AnswerEnding::Refused,
            Self::Failed | Self::Garbled => AnswerEnding::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_known_in_the_words_of_many_endpoints() {
        for (reason, finish) in [
            ("stop", Finish::Complete),
            ("tool_calls", Finish::Complete),
            ("end_turn", Finish::Complete),
            ("STOP", Finish::Complete),
            ("length", Finish::Cut),
            ("MAX_TOKENS", Finish::Cut),
            ("model_length", Finish::Cut),
            ("content_filter", Finish::Filtered),
            ("content-filter", Finish::Filtered),
            ("SAFETY", Finish::Filtered),
            ("refusal", Finish::Refused),
            ("error", Finish::Failed),
            ("insufficient_system_resource", Finish::Failed),
            ("MALFORMED_FUNCTION_CALL", Finish::Garbled),
            ("something new", Finish::Complete),
        ] {
            assert_eq!(Finish::from_reason(reason), finish, "{reason}");
        }
    }
}
