//! Tells people of a turn that failed: in plain sentences that are true, by the kind of the failure. They quote an
//! endpoint, as a short reason without markup, where nothing else tells what is wrong.

use super::{AnswerFailure, answer_failures};
use crate::model_health::TOO_MUCH;

/// Longest reason in the words of an endpoint or a check, in bytes.
const REASON_BYTES: usize = 300;

/// The words of builds before epoch 10.
pub(super) fn describe_as_old_build(failure: &AnswerFailure) -> String {
    let AnswerFailure { kind, message, .. } = failure;
    match kind.as_str() {
        "invalid_chain" => format!(
            "I could not finish this: my plan cannot be carried out as it is ({message}). Please put it differently, or \
             ask for less at once."
        ),
        _ => format!("I could not finish this: {message} ({kind}). Please try again later."),
    }
}

/// Explains what is wrong and who can help, for every kind but [`TOO_MUCH`].
pub(super) fn describe_failure(failure: &AnswerFailure) -> String {
    let AnswerFailure { kind, retryable: mendable, retry_after_ms, .. } = failure;
    let reason = plain_reason(&failure.message);
    let (what, help) = match kind.as_str() {
        "model_unauthorized" => (
            "the model's endpoint refuses the key it is sent".to_owned(),
            "Whoever runs this Kairo must set a valid key.".to_owned(),
        ),
        "model_out_of_credit" => (
            "no credit is left at the model's endpoint".to_owned(),
            "Whoever runs this Kairo must add some there.".to_owned(),
        ),
        "model_not_found" => (
            "the model's endpoint does not have the model that is configured".to_owned(),
            "Whoever runs this Kairo must correct its name or address.".to_owned(),
        ),
        "model_rate_limited" => {
            ("the model's endpoint takes no more requests at the moment".to_owned(), retry_hint(*retry_after_ms))
        }
        "model_overloaded" => ("the model's endpoint is overloaded".to_owned(), retry_hint(*retry_after_ms)),
        answer_failures::UNAVAILABLE => ("the model's endpoint is away".to_owned(), retry_hint(*retry_after_ms)),
        "model_timeout" => ("the model did not answer in time".to_owned(), retry_hint(*retry_after_ms)),
        "model_filtered" => (
            "a content filter of the model's endpoint refuses the request".to_owned(),
            "Please put it differently.".to_owned(),
        ),
        "schema_refused" => (
            format!("the model's endpoint refuses the form of a tool or of an answer: {reason}"),
            "Whoever runs this Kairo can leave the tool out.".to_owned(),
        ),
        "model_refused" => (
            format!("the model's endpoint refuses the request: {reason}"),
            "Whoever runs this Kairo can find out why.".to_owned(),
        ),
        "invalid_chain" => (
            format!("my plan cannot be carried out as it is: {reason}"),
            "Please put it differently, or ask for less at once.".to_owned(),
        ),
        answer_failures::MALFORMED | answer_failures::MALFORMED_CALL => (
            format!("the model's answers could not be used: {reason}"),
            "Please ask again, or put it differently.".to_owned(),
        ),
        _ if *mendable => (reason, retry_hint(*retry_after_ms)),
        _ => (reason, String::new()),
    };
    format!("I could not finish this: {what} ({kind}). {help}").trim_end().to_owned()
}

/// A request is larger than its model takes, however much is left out of it: the system prompt and the tools alone take so many
/// tokens, and the model takes so many in all, where that is known.
pub(super) fn request_too_large(fixed: usize, most: Option<usize>) -> String {
    let most = most.map_or("it does not say how many".to_owned(), |most| format!("at most {most}"));
    format!(
        "I could not finish this: the model takes fewer tokens at once than are needed ({most}): the agent's prompt and its \
         tools alone take about {fixed} ({}). Offer the agent fewer tools, shorten its prompt, or use a model that takes more.",
        TOO_MUCH
    )
}

/// When to try again.
fn retry_hint(retry_after_ms: u64) -> String {
    match retry_after_ms.div_ceil(1_000) {
        0 => "Please try again later.".to_owned(),
        1 => "Please try again in a second.".to_owned(),
        seconds @ ..120 => format!("Please try again in {seconds} seconds."),
        seconds => format!("Please try again in {} minutes.", seconds.div_ceil(60)),
    }
}

/// A reason on one line, without markup and not too long.
pub(super) fn plain_reason(message: &str) -> String {
    let mut text = String::new();
    let mut is_markup = false;
    let mut rest = message.chars().peekable();
    while let Some(char) = rest.next() {
        match char {
            // A lone `<` is a comparison.
            '<' if rest.peek().is_some_and(|next| next.is_ascii_alphabetic() || matches!(next, '/' | '!')) => {
                is_markup = true;
            }
            '>' if is_markup => {
                is_markup = false;
                text.push(' ');
            }
            _ if is_markup => {}
            char if char.is_control() => text.push(' '),
            char => text.push(char),
        }
    }
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let kept = words.get(..words.floor_char_boundary(REASON_BYTES)).unwrap_or_default();
    let cut = if kept.len() < words.len() { "…" } else { "" };
    let reason = format!("{}{cut}", kept.trim_end_matches(['.', ' ']));
    if reason.is_empty() { "it gives no reason".to_owned() } else { reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_cannot_be_helped_by_waiting_is_not_told_to_try_again() {
        let lasting =
            ["model_unauthorized", "model_out_of_credit", "model_not_found", "model_filtered", "model_refused"];
        for kind in lasting.into_iter().chain(["schema_refused", "something_new"]) {
            let told = describe_failure(&AnswerFailure::of_kind(kind, "no"));
            assert!(told.contains(kind) && !told.contains("again"), "{told}");
        }
        let told = request_too_large(9_194, Some(8_192));
        assert!(told.contains("9194") && told.contains("8192") && !told.contains("again"), "{told}");
        let busy =
            AnswerFailure { retry_after_ms: 33_001, ..AnswerFailure::retryable("model_rate_limited", "slow down") };
        assert!(describe_failure(&busy).ends_with("Please try again in 34 seconds."));
        assert!(
            describe_failure(&AnswerFailure::retryable("model_overloaded", "")).ends_with("Please try again later.")
        );
    }

    #[test]
    fn a_reason_is_one_short_line_without_markup() {
        let html = "<html>\r\n<head><title>502 Bad Gateway</title></head><body><hr></body></html>";
        let table = [
            ("the key is wrong.", "the key is wrong"),
            (html, "502 Bad Gateway"),
            ("a < b and b > c", "a < b and b > c"),
            ("\u{1b}[31mred", "[31mred"),
            ("<unclosed", "it gives no reason"),
            ("", "it gives no reason"),
        ];
        for (message, expected) in table {
            assert_eq!(plain_reason(message), expected);
        }
        assert!(plain_reason(&"é".repeat(1_000)).len() < REASON_BYTES + 4);
    }
}
