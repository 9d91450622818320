//! Fuzzes the readers of model endpoints' answers.

use std::collections::BTreeSet;

use kairo_completion::{
    AnswerReader, OfferedTools, ReaderSettings, StreamEnd,
    error::{ModelError, from_http},
};
use kairo_fuzz::Corpus;
use kairo_proto::v1::{Completion, CompletionError};

/// The upper bound of the tokens that a completion reports.
const MOST_TOKENS: u64 = 1_000_000_000;

fn offered() -> OfferedTools {
    let schema = r#"{"type":"object","properties":{"a":{"type":"string"}}}"#;
    OfferedTools::new(["tools.now", "tools.date_calc"].map(|name| (name, name.replace('.', "__"), schema)))
}

fn read<'b>(pieces: impl IntoIterator<Item = &'b [u8]>, end: &StreamEnd) -> Result<Completion, ModelError> {
    let settings = ReaderSettings {
        max_reasoning_bytes: 64,
        max_answer_bytes: 40_000,
        seed: "request".to_owned(),
        taken_ids: BTreeSet::from(["c1".to_owned()]),
        ..ReaderSettings::default()
    };
    let mut reader = AnswerReader::new(settings, offered());
    for piece in pieces {
        reader.read(piece)?;
    }
    reader.finish(end).map(|(completion, _)| completion)
}

/// The same bytes are the same answer, wherever they are cut, and what is read of them is bounded.
#[test]
fn fuzz_the_reader_of_answers() {
    Corpus::named("answers").one_in(4).fuzz(|bytes| {
        let whole = read([bytes], &StreamEnd::Closed);
        for size in [1, 3, 17, 256] {
            assert_eq!(read(bytes.chunks(size), &StreamEnd::Closed), whole, "by {size}");
        }
        let _ = read([bytes], &StreamEnd::Broken("reset".to_owned()));
        let Ok(completion) = whole else { return };
        assert!(!completion.ending.is_empty());
        for tokens in [completion.input_tokens, completion.output_tokens, completion.cached_tokens] {
            assert!(tokens <= MOST_TOKENS);
        }
        let ids: BTreeSet<&str> = completion.tool_calls.iter().map(|call| call.call_id.as_str()).collect();
        assert_eq!(ids.len(), completion.tool_calls.len(), "ids differ");
        assert!(ids.iter().all(|id| !id.is_empty() && id.len() <= 64 && *id != "c1"));
        for json in completion.tool_calls.iter().map(|call| &call.passed_back).chain([&completion.passed_back]) {
            assert!(json.is_empty() || serde_json::from_str::<serde_json::Value>(json).is_ok(), "{json}");
        }
        // What was read as calls is no words any more.
        if completion.tool_calls.iter().all(|call| call.call_id.len() == 9) && !completion.tool_calls.is_empty() {
            assert!(!completion.text.contains("<tool_call>{\"name\":\"tools__now\",\"arguments\":{}}</tool_call>"));
        }
    });
}

#[test]
fn fuzz_the_errors_of_endpoints() {
    Corpus::named("model_errors").one_in(10).fuzz(|bytes| {
        let text = String::from_utf8_lossy(bytes);
        for status in [200, 400, 404, 429, 500, 503] {
            let headers = [("retry-after", text.trim()), ("x-ratelimit-reset-tokens", text.trim())];
            let error = from_http(status, headers, bytes, None);
            assert_eq!(error.status, status);
            let error = CompletionError::from(error);
            assert!(!error.kind.is_empty() && !error.message.is_empty());
            assert!(error.message.chars().count() < 1_000, "{}", error.message.len());
        }
    });
}
