//! Raw answers as endpoints send them, good and bad.

mod reports;

use kairo_proto::v1::Completion;
use serde_json::{Value, json};

use super::{
    AnswerReader, OfferedTools, ReaderSettings, StreamEnd,
    error::{ErrorKind, ModelError},
};

fn offered() -> OfferedTools {
    let names = ["tools.now", "tools.date_calc", "memory.append"];
    OfferedTools::new(names.map(|name| (name, name.replace('.', "__"), "{}")))
}

/// Reads an answer in pieces of so many bytes; what was shown of it goes with it.
fn read_by(bytes: &[u8], size: usize, end: &StreamEnd) -> Result<(Completion, String), ModelError> {
    let settings = ReaderSettings { seed: "request".into(), ..ReaderSettings::default() };
    let mut reader = AnswerReader::new(settings, offered());
    let mut shown = String::new();
    for piece in bytes.chunks(size) {
        shown.push_str(&reader.read(piece)?.text);
    }
    let (completion, rest) = reader.finish(end)?;
    Ok((completion, shown + &rest.text))
}

/// The same wherever the bytes are cut.
fn read(bytes: &[u8]) -> Result<Completion, ModelError> {
    let whole = read_by(bytes, usize::MAX, &StreamEnd::Closed);
    for size in [1, 2, 5, 64] {
        assert_eq!(read_by(bytes, size, &StreamEnd::Closed), whole, "by {size}");
    }
    let (completion, shown) = whole?;
    assert_eq!(shown.trim(), completion.text.trim(), "what was shown is what was said");
    Ok(completion)
}

fn chunk(delta: Value, finish: Value) -> Value {
    json!({ "id": "x", "object": "chat.completion.chunk", "model": "fake", "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
}

fn stream(chunks: &[Value]) -> Vec<u8> {
    let events: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    (events + "data: [DONE]\n\n").into_bytes()
}

fn usage() -> Value {
    json!({ "choices": [], "usage": { "prompt_tokens": 10, "completion_tokens": 5 } })
}

/// A stream with one delta that ends for this reason.
fn stream_of_delta(delta: Value, finish: &str) -> Vec<u8> {
    stream(&[chunk(delta, Value::Null), chunk(json!({}), json!(finish)), usage()])
}

fn call(index: u64, id: &str, name: &str, arguments: Value) -> Value {
    json!({ "index": index, "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
}

fn calls_of(completion: &Completion) -> Vec<(&str, &str)> {
    completion.tool_calls.iter().map(|call| (call.tool.as_str(), call.arguments.as_str())).collect()
}

const TOKYO: &str = r#"{"time_zone":"Asia/Tokyo"}"#;

#[test]
fn answers_are_read_whole_whatever_form_they_have() {
    let complete = json!("stop");
    let hello = |text: &str| chunk(json!({ "role": "assistant", "content": text }), Value::Null);
    let whole = json!({ "model": "m", "choices": [{ "index": 0, "message": { "role": "assistant", "content": "A complete answer." }, "finish_reason": "stop" }] });
    let pretty = serde_json::to_string_pretty(&whole).unwrap();
    for bytes in [
        stream_of_delta(json!({ "role": "assistant", "content": "A complete answer." }), "stop"),
        // Without a reason, or with an empty one.
        stream(&[hello("A complete answer."), chunk(json!({}), Value::Null), usage()]),
        stream(&[chunk(json!({ "content": "A complete " }), json!("")), chunk(json!({ "role": null, "content": "answer.", "tool_calls": null }), json!("")), chunk(json!({}), json!("stop"))]),
        // Without the end of the stream, and without a blank line.
        format!("data: {}\n\ndata: {}\n", hello("A complete answer."), chunk(json!({}), complete.clone())).into_bytes(),
        format!("data: {}\r\n\r\ndata: {}", hello("A complete answer."), chunk(json!({}), complete.clone())).into_bytes(),
        format!("{}\n{}\n", hello("A complete "), chunk(json!({ "content": "answer." }), complete.clone())).into_bytes(),
        format!(": OPENROUTER PROCESSING\r\n\r\nevent: message\r\nid: 4\r\nretry: 100\r\ndata:{}\r\n\r\ndata: {}\r\n\r\ndata: [DONE]\r\n\r\n", hello("A complete "), chunk(json!({ "content": "answer." }), complete.clone())).into_bytes(),
        format!("event: ping\ndata: {{\"type\": \"ping\"}}\n\ndata: {}\n\nevent: ping\ndata: null\n\ndata:\n\ndata: {}\n\n", hello("A complete answer."), chunk(json!({}), complete.clone())).into_bytes(),
        // A whole answer where a stream was asked for.
        whole.to_string().into_bytes(),
        pretty.clone().into_bytes(),
        format!("\n\n  \u{feff}{pretty}").into_bytes(),
        format!("data: {whole}\n\n").into_bytes(),
        json!([hello("A complete "), chunk(json!({ "content": "answer." }), complete.clone())]).to_string().into_bytes(),
        json!({ "message": { "role": "assistant", "content": "A complete answer." }, "done": true, "done_reason": "stop" }).to_string().into_bytes(),
        // As Azure begins, and with several choices of which the first is read.
        stream(&[
            json!({ "id": "", "model": "", "choices": [], "prompt_filter_results": [{ "prompt_index": 0 }] }),
            json!({ "choices": [{ "index": 0, "delta": null, "finish_reason": null }] }),
            json!({ "choices": [{ "index": 0, "finish_reason": null, "content_filter_offsets": {} }] }),
            hello("A complete answer."),
            json!({ "choices": [{ "index": 1, "delta": { "content": "Another." } }] }),
            chunk(json!({}), json!("stop")),
            json!({ "choices": [] }),
        ]),
        // A message that says all of it again.
        stream(&[hello("A complete answer."), json!({ "choices": [{ "index": 0, "message": { "content": "A complete answer." }, "finish_reason": "stop" }] })]),
        stream(&[chunk(json!({ "content": [{ "type": "text", "text": "A complete " }, { "type": "text", "text": "answer." }] }), json!("stop"))]),
        b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"A complete answer.\"},\"finish_reason\":\"stop\"}]}\n\ndata: {\"broken\n".to_vec(),
    ] {
        let completion = read(&bytes).unwrap_or_else(|error| panic!("{error:?}: {}", String::from_utf8_lossy(&bytes)));
        assert_eq!(completion.text, "A complete answer.", "{}", String::from_utf8_lossy(&bytes));
        assert_eq!(completion.ending, "complete");
    }
}

#[test]
fn text_is_whole_however_its_characters_are_cut_or_broken() {
    let text = "日本語 😀 конец";
    assert_eq!(read(&stream_of_delta(json!({ "content": text }), "stop")).unwrap().text, text);
    let halves = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\\ud83d\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"\\ude00b\"},\"finish_reason\":\"stop\"}]}\n\n";
    assert_eq!(read(halves).unwrap().text, "a😀b");
    let invalid = b"data: {\"choices\":[{\"delta\":{\"content\":\"caf\xe9 broken\"},\"finish_reason\":\"stop\"}]}\n\n";
    assert_eq!(read(invalid).unwrap().text, "caf\u{fffd} broken");
    let control = b"data: {\"choices\":[{\"delta\":{\"content\":\"one\ttwo\"},\"finish_reason\":\"stop\"}]}\n\n";
    assert_eq!(read(control).unwrap().text, "one\ttwo");
    let lone = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\\ud83d\"},\"finish_reason\":\"stop\"}]}\n\n";
    assert_eq!(read(lone).unwrap().text, "a\u{fffd}");
}

#[test]
fn how_an_answer_ended_is_a_fact() {
    for (delta, finish, ending, text) in [
        (json!({ "content": "1. Turn off the mains. 2. Never" }), "length", "cut", "1. Turn off the mains. 2. Never"),
        (json!({ "content": "", "reasoning_content": "thinking and thinking" }), "length", "cut", ""),
        (json!({ "content": "x" }), "MAX_TOKENS", "cut", "x"),
        (json!({ "content": "x" }), "content_filter", "filtered", "x"),
        (json!({ "content": null }), "content_filter", "filtered", ""),
        (
            json!({ "content": null, "refusal": "I cannot help with that." }),
            "stop",
            "refused",
            "I cannot help with that.",
        ),
        (json!({ "content": "I will not." }), "refusal", "refused", "I will not."),
        (json!({ "content": "" }), "stop", "empty", ""),
        (json!({ "content": " \n" }), "stop", "empty", " \n"),
        (json!({ "content": "", "reasoning": "only thoughts" }), "stop", "empty", ""),
        (json!({ "tool_calls": [call(0, "c1", "tools__now", json!(""))] }), "length", "cut", ""),
        (
            json!({ "tool_calls": [call(0, "c1", "tools__now", json!("{\"time_zone\":\"Europe/Ber"))] }),
            "length",
            "cut",
            "",
        ),
        (json!({ "tool_calls": [call(0, "c1", "tools__now", json!("{}"))] }), "stop", "complete", ""),
    ] {
        let completion = read(&stream_of_delta(delta.clone(), finish)).unwrap();
        assert_eq!((completion.ending.as_str(), completion.text.as_str()), (ending, text), "{delta} {finish}");
    }
}

#[test]
fn errors_within_answers_and_half_answers_are_no_answers() {
    let half = chunk(json!({ "content": "Half an ans" }), Value::Null);
    let error = json!({ "error": { "message": "Worker queue full (33/32)", "code": 502 } });
    let mut disconnected = chunk(json!({ "content": "" }), json!("error"));
    disconnected["error"] = json!({ "code": "server_error", "message": "Provider disconnected unexpectedly" });
    let context = json!({ "error": { "message": "This model's maximum context length is 8192 tokens.", "code": "context_length_exceeded" } });
    for (bytes, kind, words) in [
        (stream(&[half.clone(), error.clone()]), ErrorKind::Overloaded, "Worker queue full"),
        (stream(&[half.clone(), disconnected]), ErrorKind::Unavailable, "Provider disconnected"),
        (stream(&[half.clone(), chunk(json!({}), json!("error"))]), ErrorKind::Unavailable, "broke off"),
        (stream(&[context]), ErrorKind::ContextTooLong, "8192"),
        (
            json!({ "error": { "message": "quota exceeded for project 7", "type": "insufficient_quota" } })
                .to_string()
                .into_bytes(),
            ErrorKind::OutOfCredit,
            "project 7",
        ),
        (
            format!("data: {half}\n\nevent: error\ndata: out of memory\n\n").into_bytes(),
            ErrorKind::Unavailable,
            "out of memory",
        ),
        (format!("data: {half}\n\n{error}").into_bytes(), ErrorKind::Overloaded, "Worker queue full"),
        (format!("data: {half}\n\n").into_bytes(), ErrorKind::MalformedAnswer, "broke off before its end"),
        (b"<html><title>Sign in</title></html>".to_vec(), ErrorKind::MalformedAnswer, "Sign in"),
        (b"".to_vec(), ErrorKind::MalformedAnswer, "empty"),
        (b"data: {\"choices\": [\n\n".to_vec(), ErrorKind::MalformedAnswer, "no JSON"),
        (b"{\"choices\": [".to_vec(), ErrorKind::MalformedAnswer, "no JSON"),
        (
            stream_of_delta(json!({ "content": "x" }), "MALFORMED_FUNCTION_CALL"),
            ErrorKind::MalformedAnswer,
            "cannot read",
        ),
    ] {
        let error = read(&bytes).unwrap_err();
        assert_eq!(error.kind, kind, "{}", String::from_utf8_lossy(&bytes));
        assert!(error.message.contains(words), "{error:?}");
    }
}

#[test]
fn a_broken_connection_is_told_from_an_end() {
    let half = format!("data: {}\n\ndata: {{\"choi", chunk(json!({ "content": "Half" }), Value::Null));
    let broken = StreamEnd::Broken("reset".into());
    let error = read_by(half.as_bytes(), 7, &broken).unwrap_err();
    assert_eq!((error.kind, error.is_unmarked_end), (ErrorKind::MalformedAnswer, false));
    assert!(error.message.contains("reset"));
    assert_eq!(read_by(b": wait\n\n", 3, &broken).unwrap_err().kind, ErrorKind::Unavailable);
    let finished = stream_of_delta(json!({ "content": "All." }), "stop");
    assert_eq!(read_by(&finished, 7, &broken).unwrap().0.text, "All.");
    // One that never marks its end is believed once that is known.
    let unmarked = format!("data: {}\n\n", chunk(json!({ "content": "All." }), Value::Null));
    assert!(read_by(unmarked.as_bytes(), 7, &StreamEnd::Closed).unwrap_err().is_unmarked_end);
    let mut reader = AnswerReader::new(
        ReaderSettings { takes_unmarked_end: true, ..ReaderSettings::default() },
        OfferedTools::default(),
    );
    reader.read(unmarked.as_bytes()).unwrap();
    assert_eq!(reader.finish(&StreamEnd::Closed).unwrap().0.text, "All.");
}

#[test]
fn what_is_too_long_is_an_error_and_no_memory() {
    let mut reader = AnswerReader::new(
        ReaderSettings { max_answer_bytes: 100, ..ReaderSettings::default() },
        OfferedTools::default(),
    );
    let taken = (0..100).map(|_| reader.read(b"data: {\"choices\":[]}\n\n")).find_map(Result::err);
    assert!(taken.unwrap().message.contains("longer than 100 bytes"));
}

#[test]
fn calls_are_read_with_what_belongs_to_them() {
    let mut signed = call(0, "c1", "tools__now", json!(TOKYO));
    signed["extra_content"] = json!({ "google": { "thought_signature": "SIG==" } });
    let completion = read(&stream_of_delta(
        json!({ "role": "assistant", "reasoning_content": "I need the time.", "tool_calls": [signed] }),
        "stop",
    ))
    .unwrap();
    let called = &completion.tool_calls[0];
    assert_eq!((called.call_id.as_str(), called.tool.as_str(), called.arguments.as_str()), ("c1", "tools.now", TOKYO));
    assert_eq!(called.passed_back, r#"{"extra_content":{"google":{"thought_signature":"SIG=="}}}"#);
    assert_eq!(completion.passed_back, r#"{"reasoning_content":"I need the time."}"#);
    assert_eq!((completion.reasoning.as_str(), completion.ending.as_str()), ("I need the time.", "complete"));
    let words = read(&stream_of_delta(json!({ "reasoning_content": "hm", "content": "Hello" }), "stop")).unwrap();
    assert_eq!(words.passed_back, "", "nothing is wanted back without calls");
}

#[test]
fn calls_are_read_however_they_are_written() {
    let now = |arguments: Value| json!({ "tool_calls": [call(0, "c1", "tools__now", arguments)] });
    for (delta, expected) in [
        (now(json!(TOKYO)), TOKYO),
        (now(json!("")), "{}"),
        (now(Value::Null), "{}"),
        (now(json!("null")), "{}"),
        (now(json!({ "time_zone": "Asia/Tokyo" })), TOKYO),
        (now(json!(format!("{TOKYO}\n</tool_call>"))), TOKYO),
        (now(json!(serde_json::to_string(TOKYO).unwrap())), TOKYO),
        (json!({ "function_call": { "name": "tools__now", "arguments": TOKYO } }), TOKYO),
        (
            json!({ "content": [{ "type": "tool_use", "id": "c1", "name": "tools__now", "input": { "time_zone": "Asia/Tokyo" } }] }),
            TOKYO,
        ),
        (
            json!({ "tool_calls": [call(0, "c1", "<|channel|>commentary to=functions.tools__now", json!(TOKYO))] }),
            TOKYO,
        ),
        (json!({ "content": format!(r#"{{"name": "tools__now", "arguments": {TOKYO}}}"#) }), TOKYO),
        (
            json!({ "content": format!("<think>hm</think>\n<tool_call>{{\"name\": \"tools__now\", \"arguments\": {TOKYO}}}</tool_call>") }),
            TOKYO,
        ),
    ] {
        let completion = read(&stream_of_delta(delta.clone(), "stop")).unwrap();
        assert_eq!(calls_of(&completion), [("tools.now", expected)], "{delta}");
        assert_eq!((completion.text.as_str(), completion.ending.as_str()), ("", "complete"), "{delta}");
        let message = json!({ "choices": [{ "message": delta, "finish_reason": "stop" }] });
        assert_eq!(calls_of(&read(message.to_string().as_bytes()).unwrap()), [("tools.now", expected)], "{message}");
    }
    let ghost =
        read(&stream_of_delta(json!({ "tool_calls": [call(0, "c1", "delete_everything", json!("{}"))] }), "stop"))
            .unwrap();
    assert_eq!(calls_of(&ghost), [("delete_everything", "{}")]);
    let same = call(0, "same", "tools__now", json!("{}"));
    let twice = read(
        json!({ "choices": [{ "message": { "tool_calls": [same, same] }, "finish_reason": "stop" }] })
            .to_string()
            .as_bytes(),
    );
    let twice = twice.unwrap().tool_calls;
    assert!(twice.len() == 2 && twice[0].call_id == "same" && twice[1].call_id.len() == 9, "{twice:?}");
}

#[test]
fn reasoning_is_told_apart_and_kept_up_to_its_bound() {
    let whole = |message: Value| {
        read(json!({ "choices": [{ "message": message, "finish_reason": "stop" }] }).to_string().as_bytes()).unwrap()
    };
    for message in [
        json!({ "content": "<think>hm</think>\nHello" }),
        json!({ "content": "Hello", "reasoning_content": "hm" }),
        json!({ "content": "Hello", "reasoning": "hm" }),
        json!({ "content": "Hello", "reasoning": { "text": "hm" } }),
        json!({ "content": "Hello", "reasoning_content": "hm", "reasoning": "hm" }),
        json!({ "content": [{ "type": "thinking", "thinking": [{ "type": "text", "text": "h" }, { "type": "text", "text": "m" }] }, { "type": "text", "text": "Hello" }] }),
    ] {
        let completion = whole(message.clone());
        assert_eq!((completion.reasoning.as_str(), completion.text.as_str()), ("hm", "Hello"), "{message}");
    }
    let settings = ReaderSettings { max_reasoning_bytes: 16, ..ReaderSettings::default() };
    let mut reader = AnswerReader::new(settings, OfferedTools::default());
    let delta = |text: &str| chunk(json!({ "reasoning_content": text }), Value::Null);
    reader.read(&stream(&[delta("fifteen bytes. "), delta("größer"), delta("!")])).unwrap();
    assert_eq!(reader.finish(&StreamEnd::Closed).unwrap().0.reasoning, "fifteen bytes. g… (8 bytes left out)");
}

#[test]
fn what_has_arrived_is_counted_and_pings_are_none() {
    let mut reader = AnswerReader::new(ReaderSettings::default(), offered());
    reader.read(b": ping\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n").unwrap();
    assert_eq!(reader.activity_count(), 0);
    reader
        .read(&stream(&[
            chunk(json!({ "content": "né" }), Value::Null),
            chunk(json!({ "reasoning": "hm" }), Value::Null),
            usage(),
        ]))
        .unwrap();
    let progress = reader.progress();
    assert_eq!((progress.model.as_str(), progress.bytes, progress.pieces, progress.output_tokens), ("fake", 5, 2, 5));
    assert!(reader.is_over() && reader.activity_count() > 0);
}
