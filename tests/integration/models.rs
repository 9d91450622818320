//! Models that fail in all the ways endpoints do: each failure is an event, and within limits there is another try.

use futures::{StreamExt, future::join_all};
use kairo_core::event_json::EventJson;
use kairo_local::Service;
use kairo_proto::{Body, ContentType, v1};
use serde_json::Value;

use crate::world::{Sent, Wanted, World};

/// "x once" fails in the way x the first time it is asked in a conversation, "x always" whenever it is asked.
const FAULTS: &str = r#"
defaults: { chunk_chars: 4 }
rules:
  - { name: busy-once, when: { user_contains: "busy once" }, times: 1, reply: { error: { status: 500, message: "on fire" } } }
  - { name: busy-always, when: { user_contains: "busy always" }, reply: { error: { status: 503, message: "on fire" } } }
  - { name: limited-once, when: { user_contains: "limited once" }, times: 1, reply: { error: { status: 429, message: "slow down" } } }
  - { name: refused, when: { user_contains: "refused always" }, reply: { error: { status: 401, message: "bad key" } } }
  - { name: long-once, when: { user_contains: "long once" }, times: 1, reply: { error: { status: 400, message: "This model's maximum context length is 10 tokens" } } }
  - { name: long-always, when: { user_contains: "long always" }, reply: { error: { status: 400, message: "prompt is too long" } } }
  - { name: hang-once, when: { user_contains: "hang once" }, times: 1, reply: { text: "never to be seen", fault: hang } }
  - { name: stall-once, when: { user_contains: "stall once" }, times: 1, reply: { text: "never to be seen", fault: stall } }
  - { name: hang-always, when: { user_contains: "hang always" }, reply: { text: "never to be seen", fault: hang } }
  - { name: garbled-once, when: { user_contains: "garbled once" }, times: 1, reply: { text: "never to be seen", fault: invalid_json } }
  - { name: cut-once, when: { user_contains: "cut once" }, times: 1, reply: { text: "never to be seen", fault: truncate } }
  - { name: drop-once, when: { user_contains: "drop once" }, times: 1, reply: { text: "never to be seen", fault: drop } }
  - { name: empty-once, when: { user_contains: "empty once" }, times: 1, reply: { text: " " } }
  - { name: arguments-once, when: { user_contains: "arguments once" }, times: 1, reply: { tool_calls: [{ tool: tools.now, raw_arguments: '{"time_zone": ' }] } }
  - { name: list-once, when: { user_contains: "list once" }, times: 1, reply: { tool_calls: [{ tool: tools.now, raw_arguments: "[1]" }] } }
  - { name: unknown-once, when: { user_contains: "unknown once" }, times: 1, reply: { tool_calls: [{ tool: no.such.tool, arguments: {} }] } }
  - { name: unknown-always, when: { conversation_contains: "unknown always" }, reply: { tool_calls: [{ tool: no.such.tool, arguments: {} }] } }
  - { name: many-once, when: { user_contains: "many once" }, times: 1, reply: { tool_calls: [{ tool: tools.now }, { tool: tools.now }, { tool: tools.now }] } }
  - { name: fine, when: {}, reply: "All is well." }
"#;

/// The message, the failures of its answers (the kind of `agent.failed`), and true if the last try succeeds.
const CASES: [(&str, &[&str], bool); 16] = [
    ("busy once", &["model_unavailable"], true),
    ("busy always", &["model_overloaded", "model_overloaded", "model_overloaded"], false),
    ("limited once", &["model_rate_limited"], true),
    ("refused always", &["model_unauthorized"], false),
    ("long once", &["context_too_long"], true),
    ("long always", &["context_too_long", "context_too_long"], false),
    ("garbled once", &["malformed_answer"], true),
    ("cut once", &["malformed_answer"], true),
    ("drop once", &["malformed_answer"], true),
    ("empty once", &["malformed_answer"], true),
    ("arguments once", &["malformed_tool_call"], true),
    ("list once", &["malformed_tool_call"], true),
    ("unknown once", &["malformed_tool_call"], true),
    ("unknown always", &["malformed_tool_call", "malformed_tool_call", "malformed_tool_call"], false),
    // More than may run at once run one behind another.
    ("many once", &[], true),
    ("nothing at all", &[], true),
];

/// Says it to an agent of its own: agents think one thing at a time.
async fn say(world: &World, number: usize, text: &str) -> Sent {
    let agent = format!("agent-{number}");
    world.define(&agent).await;
    world.send(&agent, text).await
}

fn failures(events: &[EventJson]) -> Vec<&Value> {
    events.iter().filter(|event| event.type_name == v1::AgentFailed::TYPE).map(|event| &event.payload).collect()
}

async fn assert_fails_as_it_should(world: &World, sent: &Sent, case: &(&str, &[&str], bool)) {
    let (said, kinds, mended) = case;
    let reply = world.reply(sent).await;
    let events = world.events_of(sent).await;
    let failures = failures(&events);
    let told: Vec<&str> = failures.iter().map(|failure| failure["kind"].as_str().unwrap()).collect();
    assert_eq!(told, *kinds, "{said}: {failures:?}");
    for (failure, attempt) in failures.iter().zip(1..) {
        assert_eq!(failure["attempt"], attempt, "{said}");
        let last = attempt == failures.len() && !mended;
        assert_eq!(failure["retried"].as_bool().unwrap_or(false), !last, "{said}");
        assert!(!failure["message"].as_str().unwrap().is_empty(), "{said}");
    }
    match mended {
        true => assert_eq!(reply, "All is well.", "{said}"),
        false => {
            assert!(reply.contains(kinds[0]), "{said}: {reply}");
            let end = events.iter().find(|event| event.is_final_reply()).unwrap();
            assert_eq!(end.failure(), kinds[0], "{said}: it is no answer");
        }
    }
    let replies = events.iter().filter(|event| event.is_final_reply()).count();
    assert_eq!(replies, 1, "{said}");
}

async fn every_failure(stream: bool) {
    let world = Wanted::new(FAULTS)
        .env(Service::AgentRuntime, "KAIRO_MODELS__HEAVY__STREAM", stream.to_string())
        .env(Service::AgentRuntime, "KAIRO_AGENT_RUNTIME__RETRY_PAUSE_MS", "1")
        .env(Service::AgentRuntime, "KAIRO_AGENT_RUNTIME__OUTAGE_TRIES", "3")
        .env(Service::AgentRuntime, "KAIRO_AGENT_RUNTIME__PARALLEL_TOOLS", "2")
        .start()
        .await;
    let said = CASES.iter().enumerate().map(|(number, (said, ..))| say(&world, number, said));
    let sent = join_all(said).await;
    for (sent, case) in sent.iter().zip(&CASES) {
        // Of half a document nothing is an answer yet.
        let case =
            if case.0 == "drop once" && !stream { &("drop once", &["model_unavailable"][..], true) } else { case };
        assert_fails_as_it_should(&world, sent, case).await;
    }
    for request in world.model_requests().await {
        assert_eq!(request["body"]["stream"], stream);
    }
    // A model is shown what was wrong with its answer, an endpoint that failed is just asked again.
    let told = |said: &str| {
        let said = said.to_owned();
        let requests = world.model_requests();
        async move {
            let is_about = |request: &Value| request["body"].to_string().contains(&said);
            requests.await.iter().rfind(|request| is_about(request)).unwrap()["body"]["messages"].to_string()
        }
    };
    assert!(told("unknown once").await.contains("there is no tool named"));
    assert!(told("arguments once").await.contains("are not JSON"));
    assert!(!told("busy once").await.contains("could not be used"));
    world.end().await;
}

#[tokio::test]
async fn every_failure_of_a_stream_is_an_event_and_the_turn_still_ends_in_one_reply() {
    every_failure(true).await;
}

#[tokio::test]
async fn every_failure_of_a_whole_answer_is_an_event_and_the_turn_still_ends_in_one_reply() {
    every_failure(false).await;
}

/// Tries of a question that nobody answers in time: more than a busy machine needs for the answer that does come.
const TRIES: usize = 8;

/// Endpoints that never answer, or stop within an answer. A busy machine may also be too late with an answer that it has, so the
/// number of failures is known only where every try fails.
async fn every_silence(stream: bool) {
    let world = Wanted::new(FAULTS)
        .env(Service::AgentRuntime, "KAIRO_MODELS__HEAVY__TIMEOUT_MS", "1000")
        .env(Service::AgentRuntime, "KAIRO_MODELS__HEAVY__STREAM", stream.to_string())
        .env(Service::AgentRuntime, "KAIRO_AGENT_RUNTIME__RETRY_PAUSE_MS", "1")
        .env(Service::AgentRuntime, "KAIRO_AGENT_RUNTIME__OUTAGE_TRIES", TRIES.to_string())
        .start()
        .await;
    let cases = ["hang once", "stall once", "hang always"];
    let sent = join_all(cases.iter().enumerate().map(|(number, text)| say(&world, number, text))).await;
    for (sent, case) in sent.iter().zip(cases) {
        world.reply(sent).await;
        let events = world.events_of(sent).await;
        let timeouts = failures(&events).len();
        let kinds = vec!["model_timeout"; if case == "hang always" { TRIES } else { timeouts.max(1) }];
        assert_fails_as_it_should(&world, sent, &(case, &kinds, case != "hang always")).await;
    }
    world.end().await;
}

#[tokio::test]
async fn a_stream_that_stops_is_a_timeout_and_asked_for_again() {
    every_silence(true).await;
}

#[tokio::test]
async fn a_whole_answer_that_never_comes_is_a_timeout_and_asked_for_again() {
    every_silence(false).await;
}

/// Reasoning, told apart or written into the answer.
const THOUGHTS: &str = r#"
# What arrives at once is shown at once.
defaults: { chunk_chars: 3, chunk_delay_ms: 20 }
rules:
  - name: apart
    when: { user_contains: apart }
    reply: { reasoning: "Forty-two, surely.", text: "The answer is forty-two, no more and no less." }
  - name: aloud
    when: {}
    reply: "<think>Forty-two, surely.</think>The answer is forty-two, no more and no less."
"#;

#[tokio::test]
async fn tokens_are_streamed_and_reasoning_is_thought_and_not_said() {
    let world = Wanted::new(THOUGHTS).start().await;
    world.define("default").await;
    for said in ["apart", "aloud"] {
        let mut live = world.bus.nats().unwrap().client.subscribe("kairo.live.default.token").await.unwrap();
        world.bus.nats().unwrap().client.flush().await.unwrap();
        let sent = world.send("default", said).await;
        let reply = world.reply(&sent).await;
        assert_eq!(reply, "The answer is forty-two, no more and no less.");
        let events = world.events_of(&sent).await;
        let thoughts: Vec<&str> =
            events.iter().filter(|event| event.type_name == v1::AgentThought::TYPE).map(EventJson::text).collect();
        assert_eq!(thoughts, ["Forty-two, surely."]);

        let (mut text, mut reasoning) = (String::new(), String::new());
        let mut index = 0;
        while text != reply {
            let message = live.next().await.unwrap();
            let Ok(Body::LiveToken(token)) = Body::decode(v1::LiveToken::TYPE, ContentType::Protobuf, &message.payload)
            else {
                panic!("not a token")
            };
            assert_eq!(token.index, index);
            index += 1;
            if token.reasoning { &mut reasoning } else { &mut text }.push_str(&token.text);
            assert!(reply.starts_with(&text), "{said}: {text:?} is no part of what is said");
        }
        assert_eq!(reasoning, "Forty-two, surely.");
        assert!(index > 4, "{index} pieces");
    }
    world.end().await;
}

#[tokio::test]
async fn another_model_answers_where_the_first_is_away_or_refuses_and_says_which_it_was() {
    let scenario = r#"
rules:
  - { name: refuses, when: { model: first }, reply: { error: { status: 401, message: "bad key" } } }
  - { name: answers, when: {}, reply: "All is well." }
"#;
    let world = Wanted::new(scenario).fallbacks(&["first", "second", "third"]).start().await;
    world.define("default").await;
    let sent = world.send("default", "hello").await;
    assert_eq!(world.reply(&sent).await, "All is well.");
    assert!(failures(&world.events_of(&sent).await).is_empty());
    let log = world.raw_log().await;
    let decided = log.iter().filter_map(|raw| raw.read(usize::MAX).ok());
    let models: Vec<String> = decided
        .filter_map(|record| Some(v1::AgentDecision::of(&record.body)?.completions.first()?.model.clone()))
        .collect();
    assert_eq!(models, ["second"]);
    world.end().await;
}
