//! Answers in each form.

use super::*;
use crate::answer::{Reply, ReplyMessage, ReplyToolCall, SimulatedAnswer};
use crate::scenario::Pace;
use crate::wire::response::{Stamp, to_wire_answer};

const STREAM: Delivery = Delivery::Stream { include_usage: true };

fn message() -> ReplyMessage {
    let call =
        |arguments: &str| ReplyToolCall { id: None, name: "tools__now".to_owned(), arguments: arguments.to_owned() };
    ReplyMessage {
        text: Some("One moment, please, while I look it up.".to_owned()),
        tool_calls: vec![call(r#"{"time_zone":"Asia/Tokyo"}"#), call("{}")],
        finish_reason: "tool_calls".to_owned(),
        ..ReplyMessage::default()
    }
}

fn shaped(form: WireForm, delivery: Delivery) -> WireAnswer {
    let answer = SimulatedAnswer {
        rule: None,
        pace: Pace::default(),
        fault: None,
        forms: vec![form],
        reply: Reply::Message(message()),
    };
    let Reply::Message(message) = &answer.reply else { panic!("it is a message") };
    to_wire_answer(&answer, message, "m", Stamp { run: 1, request: 2, created: 3 }, delivery)
}

fn text(sent: &WireAnswer) -> String {
    let data = sent.frames.iter().filter_map(data).map(|data| data.to_vec());
    String::from_utf8(data.collect::<Vec<_>>().concat()).expect("it is text")
}

#[test]
fn every_form_changes_a_stream_and_those_that_fail_say_so() {
    let plain = {
        let answer = SimulatedAnswer {
            rule: None,
            pace: Pace::default(),
            fault: None,
            forms: Vec::new(),
            reply: Reply::Message(message()),
        };
        let Reply::Message(message) = &answer.reply else { panic!("it is a message") };
        to_wire_answer(&answer, message, "m", Stamp { run: 1, request: 2, created: 3 }, STREAM)
    };
    for form in WireForm::ALL {
        let sent = shaped(form, STREAM);
        assert_ne!((sent.status, &sent.frames), (plain.status, &plain.frames), "{form:?}");
        let has_answer = sent.status == 200
            && !text(&sent).contains("\"error\"")
            && !sent.frames.contains(&Frame::Cut)
            && text(&sent).contains("tool_calls");
        assert_eq!(has_answer && form != WireForm::Empty, !form.fails(), "{form:?}: {}", text(&sent));
    }
}

#[test]
fn forms_are_what_they_are_called() {
    let has = |form, piece: &str| {
        let told = text(&shaped(form, STREAM));
        assert!(told.contains(piece), "{form:?}: {piece} is not in {told}");
        told
    };
    has(WireForm::Crlf, "data: [DONE]\r\n\r\n");
    has(WireForm::Noise, ": keep-alive\n");
    assert!(!has(WireForm::NoDone, "usage").contains("[DONE]"));
    assert!(!has(WireForm::NoUsage, "[DONE]").contains("prompt_tokens"));
    has(WireForm::OddUsage, r#""completion_tokens":"7""#);
    assert!(!has(WireForm::SameIndex, "tools__now").contains(r#""index":1"#));
    has(WireForm::GappedIndex, r#""index":97"#);
    has(WireForm::EmptyFirst, r#""arguments":"{}""#);
    has(WireForm::EncodedTwice, r#""arguments":"\"{\\\"time_zone\\\""#);
    has(WireForm::ObjectArguments, r#""arguments":{"time_zone":"Asia/Tokyo"}"#);
    has(WireForm::TrailingRubbish, r#"Tokyo\"}\n</tool_call>""#);
    has(WireForm::PrefixedName, r#""name":"functions.tools__now""#);
    let body: Value = serde_json::from_str(&has(WireForm::WholeBody, "message")).expect("it is JSON");
    let message = &body["choices"][0]["message"];
    assert_eq!(message["content"], "One moment, please, while I look it up.");
    assert_eq!(message["tool_calls"][0]["function"]["arguments"], r#"{"time_zone":"Asia/Tokyo"}"#);
    assert_eq!(message["tool_calls"][1]["function"]["arguments"], "{}");
}

#[test]
fn every_form_of_a_whole_body_is_readable_or_fails() {
    for form in WireForm::ALL {
        let sent = shaped(form, Delivery::Whole);
        if !form.fails() {
            let body: Value = serde_json::from_str(&text(&sent)).expect("it is JSON");
            assert_eq!(body["choices"][0]["message"]["tool_calls"].as_array().map(Vec::len), Some(2), "{form:?}");
        }
    }
}

#[test]
fn a_name_is_the_one_that_scenarios_use() {
    for form in WireForm::ALL {
        let read: WireForm = serde_json::from_value(Value::from(form.name())).expect("it is a form");
        assert_eq!(read, form);
    }
}
