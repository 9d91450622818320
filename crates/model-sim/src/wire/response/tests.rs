//! The exact bytes of responses.

use serde_json::Value;

use super::*;
use crate::answer::Reply;
use crate::scenario::Pace;

const STAMP: Stamp = Stamp { run: 0xab, request: 7, created: 1_700_000_000 };

fn call(name: &str, arguments: &str) -> ReplyToolCall {
    ReplyToolCall { id: None, name: name.to_owned(), arguments: arguments.to_owned() }
}

fn wire_frames(message: ReplyMessage, fault: Option<Fault>, delivery: Delivery) -> Vec<Frame> {
    let pace = Pace { chunk_chars: 4, ..Pace::default() };
    let answer = SimulatedAnswer { rule: None, pace, fault, forms: Vec::new(), reply: Reply::Message(message) };
    let Reply::Message(message) = &answer.reply else { unreachable!() };
    frames(&answer, message, "m", STAMP, delivery)
}

fn text_reply(text: &str) -> ReplyMessage {
    ReplyMessage {
        text: Some(text.to_owned()),
        finish_reason: "stop".to_owned(),
        prompt_tokens: 3,
        completion_tokens: 4,
        ..ReplyMessage::default()
    }
}

/// The events of a stream, without `data: `.
fn events(frames: &[Frame]) -> Vec<String> {
    let event = |frame: &Frame| {
        let Frame::Data(data) = frame else { panic!("data was expected, not {frame:?}") };
        let text = String::from_utf8(data.to_vec()).expect("it is text");
        text.strip_prefix("data: ").and_then(|event| event.strip_suffix("\n\n")).expect("an event").to_owned()
    };
    frames.iter().map(event).collect()
}

fn deltas(events: &[String]) -> Vec<Value> {
    let delta = |event: &String| serde_json::from_str::<Value>(event).ok()?.pointer("/choices/0/delta").cloned();
    events.iter().filter_map(delta).collect()
}

#[test]
fn a_whole_answer_has_everything_in_one_body() {
    let mut message = text_reply("yes");
    message.tool_calls = vec![call("tools__now", "{}")];
    let frames = wire_frames(message, None, Delivery::Whole);
    let [Frame::Data(body)] = frames.as_slice() else { panic!("one body was expected") };
    assert_eq!(
        serde_json::from_slice::<Value>(body).expect("it is JSON"),
        json!({
            "id": "chatcmpl-sim-ab-7", "object": "chat.completion", "created": 1_700_000_000, "model": "m",
            "choices": [{ "index": 0, "finish_reason": "stop", "message": {
                "role": "assistant", "content": "yes", "tool_calls": [{
                    "id": "call_ab_7_0", "type": "function", "function": { "name": "tools__now", "arguments": "{}" },
                }],
            } }],
            "usage": { "prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7 },
        }),
    );
}

#[test]
fn text_is_streamed_in_pieces_that_never_split_a_character() {
    let events = events(&wire_frames(text_reply("现在是几点钟"), None, Delivery::Stream { include_usage: false }));
    let contents: Vec<_> =
        deltas(&events).iter().filter_map(|delta| delta["content"].as_str().map(str::to_owned)).collect();
    assert_eq!(contents, ["现在是几", "点钟"]);
    assert_eq!(deltas(&events)[0], json!({ "role": "assistant" }));
    assert_eq!(events.last().map(String::as_str), Some("[DONE]"));
    assert!(events.iter().all(|event| !event.contains("usage")), "it was not asked for");
}

#[test]
fn the_index_of_a_tool_call_is_in_each_delta_and_its_id_and_name_only_in_the_first() {
    let message =
        ReplyMessage { tool_calls: vec![call("a", r#"{"x":1}"#), call("b", "{}")], ..ReplyMessage::default() };
    let events = events(&wire_frames(message, None, Delivery::Stream { include_usage: false }));
    let calls: Vec<_> = deltas(&events).iter().filter_map(|delta| delta.pointer("/tool_calls/0").cloned()).collect();
    let first = |index: usize, name: &str| {
        json!({ "index": index, "id": format!("call_ab_7_{index}"), "type": "function",
                "function": { "name": name, "arguments": "" } })
    };
    let more = |index: usize, part: &str| json!({ "index": index, "function": { "arguments": part } });
    assert_eq!(calls, [first(0, "a"), more(0, r#"{"x""#), more(0, ":1}"), first(1, "b"), more(1, "{}")],);
}

#[test]
fn usage_comes_last_with_no_choices_and_is_null_before() {
    let events = events(&wire_frames(text_reply("yes"), None, Delivery::Stream { include_usage: true }));
    let [before @ .., last, done] = events.as_slice() else { panic!("there are several") };
    assert_eq!(done, "[DONE]");
    let last: Value = serde_json::from_str(last).expect("it is JSON");
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"]["total_tokens"], 7);
    assert!(before.iter().all(|event| event.contains(r#""usage":null"#)), "{before:?}");
    assert!(before.last().is_some_and(|event| event.contains(r#""finish_reason":"stop""#)));
}

#[test]
fn faults_spoil_a_stream_in_its_middle() {
    let stream = Delivery::Stream { include_usage: false };
    let whole = wire_frames(text_reply("eight ch"), None, stream);
    let half = whole.len() / 2;
    let with = |fault| wire_frames(text_reply("eight ch"), Some(fault), stream);
    assert_eq!(with(Fault::Truncate), whole[..half]);
    assert_eq!(with(Fault::Drop), [&whole[..half], &[Frame::Cut]].concat());
    assert_eq!(with(Fault::Stall), [&whole[..half], &[Frame::Stall]].concat());
    let broken = with(Fault::InvalidJson);
    assert_eq!((&broken[..half], &broken[half + 1..]), (&whole[..half], &whole[half..]));
    let [event] = &events(&broken[half..=half])[..] else { panic!("one was expected") };
    assert!(serde_json::from_str::<Value>(event).is_err());
}

#[test]
fn faults_spoil_a_whole_body() {
    let with = |fault| wire_frames(text_reply("yes"), Some(fault), Delivery::Whole);
    let [Frame::Data(whole)] = &wire_frames(text_reply("yes"), None, Delivery::Whole)[..] else { panic!("one body") };
    let half = Frame::Data(whole.slice(..whole.len() / 2));
    assert_eq!(with(Fault::Truncate), std::slice::from_ref(&half));
    assert_eq!(with(Fault::Drop), [half, Frame::Cut]);
    let [Frame::Data(broken)] = &with(Fault::InvalidJson)[..] else { panic!("one body") };
    assert!(serde_json::from_slice::<Value>(broken).is_err());
}

#[test]
fn reasoning_goes_in_the_fields_of_its_form() {
    for (form, fields) in [
        (ReasoningForm::ReasoningContent, [true, false]),
        (ReasoningForm::Reasoning, [false, true]),
        (ReasoningForm::Both, [true, true]),
    ] {
        let message = || ReplyMessage { reasoning: Some("hm".to_owned()), reasoning_form: form, ..text_reply("yes") };
        let whole = wire_frames(message(), None, Delivery::Whole);
        let [Frame::Data(body)] = whole.as_slice() else { panic!("one body was expected") };
        let body: Value = serde_json::from_slice(body).expect("it is JSON");
        let message_of_whole = body.pointer("/choices/0/message").cloned().expect("a message");
        let streamed = deltas(&events(&wire_frames(message(), None, Delivery::Stream { include_usage: false })));
        let delta = streamed.get(1).cloned().expect("a delta");
        for said in [message_of_whole, delta] {
            let has = ["reasoning_content", "reasoning"].map(|field| said.get(field).is_some_and(|it| it == "hm"));
            assert_eq!(has, fields, "{form:?}: {said}");
        }
    }
}

#[test]
fn chunks_end_at_the_places_that_are_given() {
    let message = ReplyMessage { chunk_ends: Some(vec![1, 4, 99]), ..text_reply("größer als") };
    let streamed = deltas(&events(&wire_frames(message, None, Delivery::Stream { include_usage: false })));
    let chunks: Vec<&str> = streamed.iter().filter_map(|delta| delta.get("content")?.as_str()).collect();
    assert_eq!(chunks, ["g", "röß", "er als"]);
}
