//! Models that reason, in every form in which endpoints tell it, over the real HTTP client: what they think is thought and shown
//! as such, never said, and no later request holds it.

use futures::StreamExt;
use kairo_core::event_json::EventJson;
use kairo_local::Service;
use kairo_proto::{Body, ContentType, v1};
use serde_json::Value;

use crate::world::{Sent, Wanted, World};

/// The messages that make the model answer in each form. In each, it thinks before it calls a tool, and before it
/// answers.
const FORMS: [&str; 8] = [
    "form-field",
    "form-other-field",
    "form-both-fields",
    "form-think-tags",
    "form-thinking-tags",
    "form-given-places",
    "form-several-blocks",
    "form-code",
];
/// The thoughts that are in every form, and in no reply.
const BEFORE_CALL: &str = "A clock is needed here.";
const BEFORE_ANSWER: &str = "It must be noon.";
const SAID: &str = "It is noon, as `<think>` is a tag.";

fn matrix() -> String {
    let rule = |name: &str, form: &str, more: &str| {
        format!(
            r#"
  - name: {name}
    when: {{ user_contains: {name} }}
    turn:
      - {{ reasoning: "{BEFORE_CALL}", {form} {more} tool_calls: [{{ tool: tools.now, arguments: {{}} }}] }}
      - {{ reasoning: "{BEFORE_ANSWER}", {form} {more} text: "{SAID}" }}"#
        )
    };
    let blocks = format!(
        r#"
  - name: form-several-blocks
    when: {{ user_contains: form-several-blocks }}
    turn:
      - {{ text: "<think>{BEFORE_CALL}</think>", tool_calls: [{{ tool: tools.now, arguments: {{}} }}] }}
      - {{ text: "<think>It must</think>\n<thinking>be noon.</thinking>\n{SAID}" }}
  - name: form-code
    when: {{ user_contains: form-code }}
    turn:
      - {{ text: "<think>{BEFORE_CALL}</think>", tool_calls: [{{ tool: tools.now, arguments: {{}} }}] }}
      - {{ text: "<think>{BEFORE_ANSWER}</think>```xml\n<think>kept</think>\n```" }}"#
    );
    [
        "defaults: { chunk_chars: 1 }\nrules:".to_owned(),
        rule("form-field", "", ""),
        rule("form-other-field", "reasoning_as: reasoning,", ""),
        rule("form-both-fields", "reasoning_as: both,", ""),
        rule("form-think-tags", "reasoning_as: think,", ""),
        rule("form-thinking-tags", "reasoning_as: thinking,", ""),
        rule("form-given-places", "reasoning_as: think,", "chunk_ends: [3, 10, 12, 25, 29],"),
        blocks,
        "\n  - { name: rest, when: {}, reply: \"{{ user }}\" }\n".to_owned(),
    ]
    .concat()
}

async fn world(stream: bool) -> World {
    let world = Wanted::new(&matrix()).env(Service::AgentRuntime, "KAIRO_MODELS__HEAVY__STREAM", stream.to_string());
    let world = world.start().await;
    for form in FORMS {
        world.define(form).await;
    }
    world
}

fn said_in(form: &str) -> &'static str {
    if form == "form-code" { "```xml\n<think>kept</think>\n```" } else { SAID }
}

fn thought_in(form: &str) -> [&'static str; 2] {
    [BEFORE_CALL, if form == "form-several-blocks" { "It must\nbe noon." } else { BEFORE_ANSWER }]
}

fn texts<'e>(events: &'e [EventJson], type_name: &str) -> Vec<&'e str> {
    events.iter().filter(|event| event.type_name == type_name).map(EventJson::text).collect()
}

/// The requests since the turn began, as JSON.
async fn requests(world: &World, form: &str) -> Vec<String> {
    let is_about = |request: &Value| request["body"]["messages"].to_string().contains(form);
    world
        .model_requests()
        .await
        .iter()
        .filter(|request| is_about(request))
        .map(|request| without_returned(request["body"]["messages"].clone()).to_string())
        .collect()
}

/// Without the field of reasoning that goes back with its calls: model servers refuse the calls without it.
fn without_returned(mut messages: Value) -> Value {
    for message in messages.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        if message.contains_key("tool_calls") {
            message.remove("reasoning_content");
        }
    }
    messages
}

async fn assert_thought_and_not_said(world: &World, form: &str, sent: &Sent) {
    assert_eq!(world.reply(sent).await, said_in(form), "{form}");
    let events = world.events_of(sent).await;
    assert_eq!(texts(&events, v1::AgentThought::TYPE), thought_in(form), "{form}");
    let requests = requests(world, form).await;
    assert_eq!(requests.len(), 2, "{form}: {requests:?}");
    for thought in ["A clock", "It must", "be noon"] {
        assert!(requests.iter().all(|request| !request.contains(thought)), "{form}: {thought} in {requests:?}");
    }
}

#[tokio::test]
async fn what_is_reasoned_in_a_stream_is_shown_as_thought_and_never_said_or_asked_again() {
    let world = world(true).await;
    for form in FORMS {
        let mut live = world.bus.nats().unwrap().client.subscribe(format!("kairo.live.{form}.token")).await.unwrap();
        world.bus.nats().unwrap().client.flush().await.unwrap();
        let sent = world.send(form, form).await;
        assert_thought_and_not_said(&world, form, &sent).await;
        let (mut text, mut reasoning) = (String::new(), String::new());
        while text != said_in(form) {
            let message = live.next().await.unwrap();
            let token = Body::decode(v1::LiveToken::TYPE, ContentType::Protobuf, &message.payload);
            let Ok(Body::LiveToken(token)) = token else { panic!("not a token") };
            if token.reasoning { &mut reasoning } else { &mut text }.push_str(&token.text);
            assert!(said_in(form).starts_with(&text), "{form}: {text:?} is no part of what is said");
        }
        assert_eq!(reasoning, thought_in(form).concat(), "{form}");
    }
    world.end().await;
}

#[tokio::test]
async fn what_is_reasoned_in_a_whole_answer_is_thought_and_never_said_or_asked_again() {
    let world = world(false).await;
    for form in FORMS {
        let sent = world.send(form, form).await;
        assert_thought_and_not_said(&world, form, &sent).await;
    }
    // Nor does it come with a later message of the same conversation.
    let sent = world.send("form-field", "and now?").await;
    world.reply(&sent).await;
    let last = world.model_requests().await.pop().unwrap()["body"]["messages"].to_string();
    assert!(last.contains("and now?") && last.contains("It is noon"), "{last}");
    assert!(!last.contains("It must") && !last.contains("A clock"), "{last}");
    world.end().await;
}

#[tokio::test]
async fn an_answer_that_begins_within_a_block_is_reasoned_up_to_its_end_and_what_is_too_long_is_left_out() {
    let scenario = r#"
defaults: { chunk_chars: 1 }
rules: [{ name: opened, when: {}, reply: "Forty-two, I think.\n</think>\n\nForty-two." }]
"#;
    let world = Wanted::new(scenario)
        .env(Service::AgentRuntime, "KAIRO_MODELS__HEAVY__THINKS_FIRST", "true")
        .env(Service::AgentRuntime, "KAIRO_MODELS__HEAVY__MAX_REASONING_BYTES", "9")
        .start()
        .await;
    world.define("default").await;
    let sent = world.send("default", "what?").await;
    assert_eq!(world.reply(&sent).await, "Forty-two.");
    let events = world.events_of(&sent).await;
    assert_eq!(texts(&events, v1::AgentThought::TYPE), ["Forty-two… (11 bytes left out)"]);
    world.end().await;
}

#[tokio::test]
async fn encrypted_reasoning_is_passed_through_with_the_calls_that_it_came_with() {
    let scenario = r#"
rules:
  - name: time
    when: { user_contains: time }
    turn:
      - reasoning: A clock is needed.
        reasoning_as: reasoning
        reasoning_details:
          - { type: reasoning.encrypted, index: 0, id: rs_1, format: f, data: c2VjcmV0 }
        tool_calls: [{ tool: tools.now, arguments: {} }]
      - text: It is noon.
  - name: plain
    when: { user_contains: plain }
    turn:
      - reasoning_details: [{ type: reasoning.text, index: 0, text: A clock is needed. }]
        tool_calls: [{ tool: tools.now, arguments: {} }]
      - text: It is noon.
  - { name: rest, when: {}, reply: "You are welcome." }
"#;
    for stream in [true, false] {
        let wanted = Wanted::new(scenario);
        let world = wanted.env(Service::AgentRuntime, "KAIRO_MODELS__HEAVY__STREAM", stream.to_string()).start().await;
        world.define("default").await;
        for words in ["the time please", "thank you", "a plain one"] {
            world.ask("default", words).await;
        }
        let requests = world.model_requests().await;
        let details = requests.iter().map(|request| {
            let messages = request["body"]["messages"].as_array().unwrap().iter();
            let found = messages.map(|message| &message["reasoning_details"]).filter(|found| !found.is_null());
            found.cloned().collect::<Vec<Value>>()
        });
        // Asked, and asked again with the result; thanked; asked, and asked again, for what is plain text only.
        let item = serde_json::json!([
            { "type": "reasoning.encrypted", "index": 0, "id": "rs_1", "format": "f", "data": "c2VjcmV0" }
        ]);
        assert_eq!(details.collect::<Vec<_>>(), [vec![], vec![item], vec![], vec![], vec![]], "stream: {stream}");
        // Nobody is shown it.
        let shown = serde_json::to_string(&world.log.now(&world.bus).await).unwrap();
        assert!(shown.contains("A clock is needed.") && !shown.contains("c2VjcmV0"), "{shown}");
        world.end().await;
    }
}
