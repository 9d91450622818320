//! Scenarios and requests in, answers out.

use serde_json::{Value, json};

use super::*;
use crate::DEFAULT_SCENARIO;
use crate::answer::{Reply, ReplyMessage};
use crate::scenario::Fault;
use crate::wire::request::ChatRequest;

fn scenario(yaml: &str) -> Scenario {
    Scenario::parse(yaml).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// Answers the request `{model: m, ...body}`, with every claim granted.
fn play<T>(scenario: &Scenario, mut body: Value, look: impl FnOnce(&SimulatedAnswer<'_>) -> T) -> T {
    body["model"] = body.get("model").cloned().unwrap_or(json!("m"));
    let body = body.to_string();
    let request: ChatRequest<'_> = serde_json::from_str(&body).expect("it is a request");
    look(&answer(scenario, &Conversation::from_request(&request), |_| true))
}

fn message<'a>(answer: &'a SimulatedAnswer<'_>) -> &'a ReplyMessage {
    match &answer.reply {
        Reply::Message(message) => message,
        other => panic!("a message was expected, not {other:?}"),
    }
}

fn text(scenario: &Scenario, body: Value) -> String {
    play(scenario, body, |answer| message(answer).text.clone().unwrap_or_default())
}

/// The names of the tools called and their arguments.
fn calls(scenario: &Scenario, body: Value) -> Vec<(String, Value)> {
    play(scenario, body, |answer| {
        let calls = message(answer).tool_calls.iter();
        calls.map(|call| (call.name.clone(), serde_json::from_str(&call.arguments).expect("JSON"))).collect()
    })
}

fn says(user: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": user }] })
}

/// A user message with the tools offered, then rounds of tool calls with their results.
fn turn(user: &str, offered: &[&str], rounds: &[&[(&str, Value)]]) -> Value {
    let mut messages = vec![json!({ "role": "user", "content": user })];
    for (round, results) in rounds.iter().enumerate() {
        let id = |index: usize| format!("{round}-{index}");
        let calls = results.iter().enumerate().map(|(index, (tool, _))| {
            json!({ "id": id(index), "type": "function", "function": { "name": tool, "arguments": "{}" } })
        });
        messages.push(json!({ "role": "assistant", "content": null, "tool_calls": calls.collect::<Vec<_>>() }));
        messages.extend(results.iter().enumerate().map(
            |(index, (_, result))| json!({ "role": "tool", "tool_call_id": id(index), "content": result.to_string() }),
        ));
    }
    let tools = offered.iter().map(|name| json!({ "type": "function", "function": { "name": name } }));
    json!({ "messages": messages, "tools": tools.collect::<Vec<_>>() })
}

#[test]
fn the_first_rule_that_matches_answers() {
    let scenario = scenario(
        "rules:
           - { name: a, when: { user_contains: [tea, COFFEE] }, reply: drinks }
           - { name: b, when: { user_matches: '^my (?<what>\\w+)' }, reply: 'your {{ captures.what }}' }
           - { name: c, when: { model: big }, reply: big }",
    );
    assert_eq!(text(&scenario, says("some Tea?")), "drinks");
    assert_eq!(text(&scenario, says("my coffee")), "drinks");
    assert_eq!(text(&scenario, says("My Hat")), "your Hat");
    assert_eq!(text(&scenario, json!({ "model": "big", "messages": [] })), "big");
    play(&scenario, says("else"), |answer| {
        assert_eq!(answer.rule, None);
        let told = message(answer).text.as_deref().unwrap_or_default();
        assert!(told.contains("no rule of the scenario matches"), "{told}");
    });
}

#[test]
fn images_and_audio_are_matched_and_named() {
    let scenario = scenario(
        "rules:
           - { name: known, when: { part_sha256: [277089d91c0bdf4f2e6862ba7e4a07605119431f5d13f726dd352b06f1b206a9] }, reply: known }
           - { name: gif, when: { part_media_type: image/gif }, reply: '{{ parts[0].size }} of {{ all_parts | length }}' }
           - { name: heard, when: { has_audio: true, has_image: false }, reply: '{{ parts[0].kind }}' }
           - { name: blind, when: { has_image: false, has_audio: false }, reply: nothing }",
    );
    let image = |media_type: &str, base64: &str| {
        let url = format!("data:{media_type};base64,{base64}");
        json!({ "type": "image_url", "image_url": { "url": url } })
    };
    let audio = json!({ "type": "input_audio", "input_audio": { "data": "AAAA", "format": "wav" } });
    let shows = |parts: &[Value]| {
        let earlier = json!({ "role": "user", "content": [image("image/webp", "")] });
        json!({ "messages": [earlier, { "role": "user", "content": parts }] })
    };
    assert_eq!(text(&scenario, shows(&[audio.clone(), image("image/png", "Ynl0ZXM=")])), "known");
    assert_eq!(text(&scenario, shows(&[image("image/gif", "AAAA")])), "3 of 2");
    assert_eq!(text(&scenario, shows(std::slice::from_ref(&audio))), "audio");
    assert_eq!(text(&scenario, shows(&[])), "nothing");
    play(&scenario, shows(&[audio, image("image/png", "")]), |answer| assert_eq!(answer.rule, None));
}

#[test]
fn all_conditions_of_a_rule_must_hold() {
    let scenario = scenario(
        "rules:
           - name: a
             when: { user_contains: go, system_contains: kairo, conversation_matches: 'id (?<id>\\d+)', tools_offered: [x.y, z] }
             reply: '{{ captures.id }}'
           - { name: otherwise, reply: 'no' }",
    );
    let whole = json!({
        "messages": [
            { "role": "system", "content": "You are Kairo" },
            { "role": "assistant", "content": "your id 17" },
            { "role": "user", "content": "go" },
        ],
        "tools": [{ "type": "function", "function": { "name": "x__y" } }, { "type": "function", "function": { "name": "z" } }],
    });
    assert_eq!(text(&scenario, whole.clone()), "17");
    for (pointer, other) in [
        ("/messages/0/content", "You are"),
        ("/messages/1/content", "none"),
        ("/messages/2/content", "stop"),
        ("/tools/0/function/name", "x"),
    ] {
        let mut changed = whole.clone();
        *changed.pointer_mut(pointer).expect("it is there") = json!(other);
        assert_eq!(text(&scenario, changed), "no", "{pointer}");
    }
}

#[test]
fn results_are_matched_by_tool_status_and_content() {
    let scenario = scenario(
        "rules:
           - { name: failed, when: { result: { status: error } }, reply: 'failed: {{ last_result.error }}' }
           - { name: code, when: { result: { tool: a.b, matches: 'code.:(?<code>\\d+)' } }, reply: 'code {{ captures.code }}' }
           - { name: any, when: { result: {} }, reply: '{{ last_tool }} {{ step }}' }
           - { name: none, reply: none }",
    );
    let after = |results: &[(&str, Value)]| text(&scenario, turn("go", &[], &[results]));
    assert_eq!(after(&[("a__b", json!({ "error": "gone" }))]), "failed: gone");
    assert_eq!(after(&[("a__b", json!({ "code": 7 })), ("c", json!(1))]), "code 7");
    assert_eq!(after(&[("c", json!({ "code": 7 }))]), "c 1");
    assert_eq!(text(&scenario, says("go")), "none");
    let mut again = turn("go", &[], &[&[("c", json!(1))]]);
    again["messages"].as_array_mut().expect("a list").push(json!({ "role": "user", "content": "and?" }));
    assert_eq!(text(&scenario, again), "none");
}

#[test]
fn a_turn_gives_one_reply_a_round_and_then_no_more() {
    let scenario = scenario(
        "rules:
           - name: a
             turn:
               - tool_calls: [{ tool: t.x, arguments: { n: 1 } }, { tool: t.y, raw_arguments: '{\"n\": ' }]
               - 'got {{ results[0].value }} and {{ results[1].text }}'
           - { name: after, reply: enough }",
    );
    play(&scenario, says("go"), |answer| {
        let calls: Vec<_> =
            message(answer).tool_calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
        assert_eq!(calls, [("t__x", r#"{"n":1}"#), ("t__y", r#"{"n": "#)]);
        assert_eq!(message(answer).finish_reason, "tool_calls");
    });
    let results: &[_] = &[("t__x", json!(1)), ("t__y", json!("two"))];
    assert_eq!(text(&scenario, turn("go", &[], &[results])), "got 1 and \"two\"");
    assert_eq!(text(&scenario, turn("go", &[], &[results, results])), "enough");
}

#[test]
fn a_rule_with_times_claims_each_use_and_only_if_it_matches_otherwise() {
    let scenario = scenario(
        "rules:
           - { name: other, when: { user_contains: other }, times: 1, reply: x }
           - { name: once, times: 1, times_per: turn, reply: { error: { status: 429, retry_after: 2 } } }
           - { name: then, reply: fine }",
    );
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "go" }] }).to_string();
    let request: ChatRequest<'_> = serde_json::from_str(&body).expect("it is a request");
    let conversation = Conversation::from_request(&request);
    let mut claims = Vec::new();
    let mut ask = |granted| {
        let answer = answer(&scenario, &conversation, |claim| {
            claims.push(claim);
            granted
        });
        answer.rule.map(str::to_owned)
    };
    assert_eq!(ask(true).as_deref(), Some("once"));
    assert_eq!(ask(false).as_deref(), Some("then"));
    let claim = Claim { rule: 1, counted_for: conversation.turn_key(), limit: 1, within_ms: None };
    assert_eq!(claims, [claim, claim]);
}

#[test]
fn errors_faults_and_pace_are_passed_on() {
    let scenario = scenario(
        "defaults: { delay_ms: 5 }
rules:
  - { name: e, when: { user_contains: e }, reply: { error: { status: 503, message: 'no {{ user }}', code: c }, delay_ms: 7 } }
  - { name: f, reply: { text: x, fault: truncate, chunk_chars: 1, usage: { prompt_tokens: 3, completion_tokens: 4 } } }",
    );
    play(&scenario, says("e"), |answer| {
        let Reply::Error(error) = &answer.reply else { panic!("an error was expected") };
        assert_eq!((error.status, error.message.as_str(), error.kind.as_str()), (503, "no e", "server_error"));
        assert_eq!((error.code.as_deref(), answer.pace.delay_ms), (Some("c"), 7));
    });
    play(&scenario, says("f"), |answer| {
        assert_eq!((answer.fault, answer.pace.delay_ms, answer.pace.chunk_chars), (Some(Fault::Truncate), 5, 1));
        assert_eq!((message(answer).prompt_tokens, message(answer).completion_tokens), (3, 4));
    });
}

#[test]
fn a_template_that_fails_is_told_in_the_answer() {
    let scenario = scenario("rules: [{ name: a, reply: { text: '{{ nothing }}', fault: hang } }]");
    play(&scenario, says("go"), |answer| {
        assert_eq!((answer.rule, answer.fault), (Some("a"), None));
        let told = message(answer).text.as_deref().unwrap_or_default();
        assert!(told.contains("rule 'a' cannot be rendered"), "{told}");
    });
}

#[test]
fn the_default_scenario_calls_the_tools_a_newcomer_asks_for() {
    let scenario = scenario(DEFAULT_SCENARIO);
    let offered = ["tools__now", "tools__date_calc", "process__run", "http__get"];
    for (user, tool, arguments) in [
        ("What time is it?", "tools__now", json!({})),
        ("现在几点了？", "tools__now", json!({})),
        ("what is 3 days after 2026-03-01", "tools__date_calc", json!({ "from": "2026-03-01", "add": "3 days" })),
        ("two weeks before today", "tools__date_calc", json!({ "from": "today", "subtract": "two weeks" })),
        ("next friday?", "tools__date_calc", json!({ "find": "next friday" })),
        ("what date is the end of next month?", "tools__date_calc", json!({ "find": "end of next month" })),
        ("when was 3 weeks ago", "tools__date_calc", json!({ "find": "3 weeks ago" })),
        ("后天是几号", "tools__date_calc", json!({ "find": "day after tomorrow" })),
        ("run echo hello  world", "process__run", json!({ "program": "echo", "args": ["hello", "world"] })),
        ("run true", "process__run", json!({ "program": "true", "args": [] })),
        ("fetch https://example.org/a", "http__get", json!({ "url": "https://example.org/a" })),
    ] {
        let called = calls(&scenario, turn(user, &offered, &[]));
        assert_eq!(called, [(tool.to_owned(), arguments)], "{user}");
    }
    let parallel = calls(&scenario, turn("the time in Europe/Berlin and Asia/Tokyo", &offered, &[]));
    assert_eq!(parallel.len(), 2);
}

#[test]
fn the_default_scenario_phrases_results_and_failures() {
    let scenario = scenario(DEFAULT_SCENARIO);
    let now = json!({ "now": "2026-03-01T12:00:00+00:00", "date": "2026-03-01", "time": "12:00:00",
                      "weekday": "Sunday", "time_zone": "UTC", "unix": 1 });
    let failed = json!({ "error": "timed_out", "message": "took too long" });
    let after =
        |user: &str, tool: &str, result: &Value| text(&scenario, turn(user, &[tool], &[&[(tool, result.clone())]]));
    assert_eq!(after("what time is it", "tools__now", &now), "It is 12:00:00 on Sunday, 2026-03-01 (UTC).");
    assert!(after("what time is it", "tools__now", &failed).contains("took too long"));
    assert_eq!(after("现在几点", "tools__now", &now), "现在是 2026-03-01 12:00:00（UTC）。");
    let date = json!({ "date": "2026-03-04", "last_date": "2026-03-04", "description": "Wednesday, 4 March 2026" });
    assert_eq!(after("next friday", "tools__date_calc", &date), "That is Wednesday, 4 March 2026.");
    assert_eq!(after("明天是几号", "tools__date_calc", &date), "2026-03-04。");
    let exit = json!({ "outcome": "exited", "code": 0, "stdout_tail": "hello\n" });
    assert_eq!(after("run echo hello", "process__run", &exit), "The process has ended. It says:\nhello\n");
    let two: &[_] = &[("tools__now", now.clone()), ("tools__now", failed)];
    assert_eq!(
        text(&scenario, turn("the time in Europe/Berlin and Asia/Tokyo", &["tools__now"], &[two])),
        "In UTC it is 12:00:00 on 2026-03-01. That did not work: {\"error\":\"timed_out\",\"message\":\"took too long\"}",
    );
}

#[test]
fn the_default_scenario_greets_and_echoes_and_says_what_it_lacks() {
    let scenario = scenario(DEFAULT_SCENARIO);
    assert!(text(&scenario, says("Hello there")).contains("simulator"));
    assert!(text(&scenario, says("你好")).contains("模拟器"));
    assert!(text(&scenario, says("run echo")).contains("not offered"));
    assert_eq!(text(&scenario, says("blue")), "(model simulator) You said: blue");
    assert_eq!(text(&scenario, says("蓝色")), "（模型模拟器）你说的是：蓝色");
}

#[test]
fn json_is_said_as_it_is_written_and_reads_what_the_user_and_the_tools_said() {
    let yaml = r#"
rules:
  - name: match
    when: { system_starts_with: [You are thread.match], user_matches: '"message":"[^"]*schedule' }
    reply:
      json: { action: switch, thread_id: "{{ (user_json.threads | having('plans') | first).thread_id }}", n: 1 }
  - name: think
    when: { system_starts_with: you are agent.think }
    reply: '{{ latest["tools.now"].date }} {{ latest["calendar.check"].total }}'
"#;
    let threads = json!([{ "thread_id": "a", "title": "Mail" }, { "thread_id": "b", "title": "My Plans" }]);
    let user = json!({ "message": "back to my schedule", "threads": threads }).to_string();
    let ask = |system: &str| json!({ "messages": [{ "role": "system", "content": system }, { "role": "user", "content": user }] });
    let said: Value =
        serde_json::from_str(&text(&scenario(yaml), ask("You are thread.match, and so on."))).expect("it is JSON");
    assert_eq!(said, json!({ "action": "switch", "thread_id": "b", "n": 1 }));
    assert!(text(&scenario(yaml), ask("Not so: You are thread.match")).contains("no rule"));

    let results = [("tools__now", json!({ "date": "2026-03-01" })), ("calendar__check", json!({ "total": 3 }))];
    let mut body = turn("what is on?", &[], &[&results[..1], &results[1..]]);
    let messages = body["messages"].as_array_mut().expect("messages");
    messages.insert(0, json!({ "role": "system", "content": "You are agent.think." }));
    messages.push(json!({ "role": "user", "content": "and now?" }));
    assert_eq!(text(&scenario(yaml), body), "2026-03-01 3");
}
