//! Tokens that a model server does not report are estimated: whoever pays for them must not find them counted as none.

use kairo_mind::{deliberation::LATE, request::ModelRequest, tokens};
use kairo_proto::v1::Completion;

use crate::answer_progress::AnswerProgress;

/// More tokens than any model takes at once or answers with: a number beyond it is made up.
const MOST: u64 = 100_000_000;
/// Failures after which the model server may have worked on the answer to the end.
const UNHEARD: [&str; 2] = ["model_timeout", LATE];

/// A request's tokens as its model counts them, who counts `factor` tokens for one of o200k_base.
pub fn request_tokens(request: &ModelRequest, factor: f64) -> u64 {
    scale_tokens(tokens::of_request(request) as u64, factor)
}

/// The completion with an estimate of each number of tokens that is not reported, or that no model can have taken. A call that
/// failed took something where a part of an answer had arrived, or where nobody waited for it any longer.
pub fn fill_in_tokens(
    completion: Completion,
    request: &ModelRequest,
    received: &AnswerProgress,
    factor: f64,
) -> Completion {
    let answered = |it: &Completion| {
        let calls = it.tool_calls.iter().map(|call| tokens::of_text(&call.tool) + tokens::of_text(&call.arguments));
        tokens::of_text(&it.text) + tokens::of_text(&it.reasoning) + calls.sum::<usize>()
    };
    let is_unheard = completion.error.as_ref().is_some_and(|error| UNHEARD.contains(&error.kind.as_str()));
    let is_answered = completion.error.is_none();
    let (arrived, _) = received.output_estimate();
    let output = match completion.output_tokens {
        // What was thought and is not kept was written all the same.
        0 if is_answered && received.bytes > kept_bytes(&completion) => arrived,
        0 if is_answered => scale_tokens(answered(&completion) as u64, factor),
        0 => arrived,
        said if said > MOST => scale_tokens(answered(&completion) as u64, factor),
        said => said,
    };
    let input = match completion.input_tokens {
        0 if received.input_tokens > 0 && received.input_tokens <= MOST => received.input_tokens,
        0 if is_answered || arrived > 0 || is_unheard => request_tokens(request, factor),
        said if said > MOST => request_tokens(request, factor),
        said => said,
    };
    let is_reported = [(completion.input_tokens, input), (completion.output_tokens, output)]
        .into_iter()
        .all(|(said, counted)| said == counted);
    Completion {
        input_tokens: input,
        cached_tokens: completion.cached_tokens.min(input),
        output_tokens: output,
        is_estimate: completion.is_estimate || !is_reported,
        ..completion
    }
}

/// Bytes that a completion keeps of its answer.
fn kept_bytes(completion: &Completion) -> u64 {
    let calls = completion.tool_calls.iter().map(|call| call.tool.len() + call.arguments.len());
    (completion.text.len() + completion.reasoning.len() + calls.sum::<usize>()) as u64
}

fn scale_tokens(counted: u64, factor: f64) -> u64 {
    (counted.min(MOST) as f64 * factor).ceil() as u64
}

#[cfg(test)]
mod tests {
    use kairo_mind::request::PromptMessage;
    use kairo_proto::v1::{CompletionError, CompletionToolCall};

    use super::*;

    fn request() -> ModelRequest {
        ModelRequest::from_messages("heavy", vec![PromptMessage::user("hello world ".repeat(50))])
    }

    fn told(text: &str, [input_tokens, output_tokens]: [u64; 2]) -> Completion {
        Completion { text: text.into(), input_tokens, output_tokens, ..Default::default() }
    }

    fn failed(kind: &str) -> Completion {
        let error = CompletionError { kind: kind.into(), ..Default::default() };
        Completion { error: Some(error), ..Default::default() }
    }

    fn numbers(completion: Completion, received: &AnswerProgress) -> (u64, u64, bool) {
        let it = fill_in_tokens(completion, &request(), received, 1.0);
        (it.input_tokens, it.output_tokens, it.is_estimate)
    }

    #[test]
    fn what_is_not_reported_is_estimated_and_marked() {
        let asked = request_tokens(&request(), 1.0);
        let nothing = AnswerProgress::default();
        assert!((100..=110).contains(&asked), "{asked}");
        let table = [
            (told("hello world", [7, 3]), (7, 3, false)),
            (told("hello world", [0, 0]), (asked, 2, true)),
            (told("hello world", [7, 0]), (7, 2, true)),
            (told("hello world", [0, 3]), (asked, 3, true)),
            (told("", [7, 0]), (7, 0, false)),
            (told("hello world", [u64::MAX, u64::MAX]), (asked, 2, true)),
            (failed("model_unavailable"), (0, 0, false)),
            (failed("model_timeout"), (asked, 0, true)),
            (failed(LATE), (asked, 0, true)),
        ];
        for (completion, expected) in table {
            assert_eq!(numbers(completion.clone(), &nothing), expected, "{completion:?}");
        }
        let call = CompletionToolCall { tool: "a.b".into(), arguments: "{}".into(), ..Default::default() };
        let called = Completion { tool_calls: vec![call], ..Default::default() };
        assert!(numbers(called, &nothing).1 > 1);
    }

    #[test]
    fn a_part_of_an_answer_is_counted_as_it_arrived() {
        let asked = request_tokens(&request(), 1.0);
        let half = AnswerProgress { bytes: 400, pieces: 9, ..AnswerProgress::default() };
        assert_eq!(numbers(failed("model_unavailable"), &half), (asked, 100, true));
        let reported = AnswerProgress { input_tokens: 70, output_tokens: 5, ..half.clone() };
        assert_eq!(numbers(failed("malformed_answer"), &reported), (70, 5, true));
        let cut = Completion { reasoning: "short".into(), ..Default::default() };
        assert_eq!(numbers(cut, &half).1, 100, "reasoning that is not kept was written all the same");
    }

    #[test]
    fn a_model_with_a_vocabulary_of_its_own_counts_more() {
        let it = fill_in_tokens(told("hello world", [0, 0]), &request(), &AnswerProgress::default(), 1.5);
        assert_eq!((it.output_tokens, it.input_tokens), (3, request_tokens(&request(), 1.5)));
        assert_eq!(fill_in_tokens(told("x", [5, 9]), &request(), &AnswerProgress::default(), 1.5).output_tokens, 9);
    }
}
