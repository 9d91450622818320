//! Every message delivered twice: at once, later, in any order, to replicas that have forgotten everything. Nothing
//! happens twice.

use std::collections::{BTreeMap, BTreeSet};

use async_nats::jetstream::consumer::{DeliverPolicy, pull::OrderedConfig};
use futures::{StreamExt, future::join_all};
use kairo_core::{
    bus::Bus,
    event_json::EventJson,
    ids,
    record::RawMessage,
    subjects::{AGENT_MESSAGE, EVENTS_STREAM, USER_MESSAGE},
};
use kairo_local::Service;
use kairo_proto::{
    Body,
    v1::{self, UserMessage},
};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::world::{
    Sent, Wanted, World, agent,
    raw::{headers, own_headers},
};

/// "note x" appends a line to a file, the outside effect that is counted, and calls a second tool beside it.
const NOTES: &str = r#"
rules:
  - name: note
    when: { user_matches: 'note (?<word>\w+)' }
    turn:
      - tool_calls:
          - { tool: process.run, arguments: { program: sh, args: ["-c", "echo {{ captures.word }} >> notes"] } }
          - { tool: tools.now, arguments: {} }
      - text: "Noted {{ captures.word }}."
  - name: echo
    when: {}
    reply: "You said: {{ user }}"
"#;

/// The words an agent wrote down, sorted.
fn notes(world: &World, agent: &str) -> Vec<String> {
    let text = std::fs::read_to_string(world.workplace(agent).join("notes")).unwrap();
    let mut words: Vec<String> = text.lines().map(str::to_owned).collect();
    words.sort();
    words
}

/// Returns the number of copies of each event in the log.
fn copies(log: &[RawMessage]) -> BTreeMap<String, usize> {
    let mut copies = BTreeMap::new();
    for message in log {
        *copies.entry(message.header("ce-id").unwrap().to_owned()).or_default() += 1;
    }
    copies
}

/// Checks that each message was answered once and each call ended once, however often that is told.
async fn assert_once(world: &World, sent: &[Sent]) {
    let events = world.log.now(&world.bus).await;
    let distinct = |fits: &dyn Fn(&EventJson) -> bool| {
        events.iter().filter(|event| fits(event)).map(|event| event.event_id).collect::<BTreeSet<_>>().len()
    };
    for sent in sent {
        let replies = distinct(&|event| event.correlation_id == sent.event_id && event.is_final_reply());
        assert_eq!(replies, 1, "replies to {}", sent.message_id);
    }
    let calls = distinct(&|event| event.payload["type"] == "tool_call");
    let results = distinct(&|event| event.type_name == v1::ToolResult::TYPE);
    assert_eq!(calls, results);
}

/// Asks the agent once more and returns the messages of its request to the model: all that the agent knows.
async fn known(world: &World, agent: &str) -> Vec<Value> {
    world.ask(agent, "and now?").await;
    let requests = world.model_requests().await;
    requests.last().unwrap()["body"]["messages"].as_array().unwrap().clone()
}

async fn rows(world: &World) -> Value {
    let (_, conversation) = world.get("/v1/conversations/default").await;
    let (_, actions) = world.get("/v1/actions?agent=default").await;
    json!([conversation["messages"], actions["actions"]])
}

#[tokio::test]
async fn a_log_published_once_more_changes_nothing() {
    let mut world = Wanted::new(NOTES).start().await;
    world.define("default").await;
    let mut sent = Vec::new();
    for text in ["note one", "hello", "note two"] {
        sent.push(world.send("default", text).await);
        world.reply(sent.last().unwrap()).await;
    }
    world.settled().await;
    world.projected().await;
    let original = world.raw_log().await;
    let before = rows(&world).await;

    // Nothing is remembered but what the log says.
    for service in [Service::Router, Service::AgentRuntime, Service::ToolRunner, Service::ProcessSupervisor] {
        world.stack.restart(service, 0).await.unwrap();
    }
    for message in &original {
        world.publish_again(message).await;
    }
    world.settled().await;
    assert_eq!(world.raw_log().await.len(), 2 * original.len(), "{}", world.log.text());

    // Of what the newest message puts in force, an old one published again would be a new one.
    let in_force = |subject: &str| subject.starts_with("kairo.system.") || subject.ends_with(".defined");
    let mut shuffled: Vec<&RawMessage> = original.iter().filter(|message| !in_force(&message.subject)).collect();
    shuffled.sort_by_key(|message| ids::from_parts("shuffled", &[&message.sequence.to_string()]));
    for message in &shuffled {
        world.publish_again(message).await;
    }
    world.settled().await;
    assert_eq!(world.raw_log().await.len(), 2 * original.len() + shuffled.len(), "{}", world.log.text());

    assert_once(&world, &sent).await;
    assert_eq!(notes(&world, "default"), ["one", "two"]);
    world.projected().await;
    assert_eq!(rows(&world).await, before);
    let warm = known(&world, "default").await;
    let words = |messages: &[Value], role: &str| {
        messages.iter().filter(|message| message["role"] == role).map(|m| m["content"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(words(&warm, "user"), ["note one", "hello", "note two", "and now?"]);
    assert_eq!(words(&warm, "tool").len(), 4);
    let said = words(&warm, "assistant");
    assert_eq!(said, [Value::Null, "Noted one.".into(), "You said: hello".into(), Value::Null, "Noted two.".into()]);

    // Folding all of it from the beginning comes to the same.
    world.stack.restart(Service::AgentRuntime, 0).await.unwrap();
    let cold = known(&world, "default").await;
    assert_eq!(cold[..warm.len()], warm);
    world.end().await;
}

/// Publishes every message from now on once more as soon as it appears. Tells how far it has come.
async fn echo(bus: &Bus) -> watch::Receiver<u64> {
    let stream = bus.nats().unwrap().jetstream.get_stream_no_info(EVENTS_STREAM).await.unwrap();
    let config = OrderedConfig { deliver_policy: DeliverPolicy::New, ..Default::default() };
    let mut messages = stream.create_consumer(config).await.unwrap().messages().await.unwrap();
    let (come, far) = watch::channel(0);
    let bus = bus.clone();
    tokio::spawn(async move {
        let mut seen = BTreeSet::new();
        while let Some(message) = messages.next().await {
            let (raw, _) = RawMessage::from_delivery(&mut message.unwrap()).unwrap();
            if seen.insert(raw.header("ce-id").unwrap().to_owned()) {
                let headers = own_headers(&raw);
                let published = bus
                    .nats()
                    .unwrap()
                    .jetstream
                    .publish_with_headers(bus.stored_subject(&raw.subject), headers, raw.payload)
                    .await;
                published.unwrap().await.unwrap();
            }
            come.send_replace(raw.sequence);
        }
    });
    far
}

#[tokio::test]
async fn every_message_comes_twice_while_turns_go_on() {
    let world = Wanted::new(NOTES).replicas_of_all(2).start().await;
    let agents = ["a", "b", "c", "d"];
    join_all(agents.map(|agent| world.define(agent))).await;
    let start = world.raw_log().await.len();
    let mut echoed = echo(&world.bus).await;
    let mut sent = Vec::new();
    for word in ["one", "two", "three"] {
        // A user for each: what one thread holds of several turns at once would confuse the simulator.
        let message = |agent| json!({ "user": word, "agent": agent, "text": format!("note {word}") });
        let messages = agents.map(message);
        sent.extend(join_all(messages.iter().map(|message| world.send_as(message))).await);
    }
    join_all(sent.iter().map(|sent| world.reply(sent))).await;
    world.settled().await;
    while *echoed.borrow_and_update() < world.end_of_log().await {
        echoed.changed().await.unwrap();
        world.settled().await;
    }
    assert_once(&world, &sent).await;
    for agent in agents {
        assert_eq!(notes(&world, agent), ["one", "three", "two"], "{}", world.log.text());
    }
    let log = world.raw_log().await;
    let copies = copies(&log[start..]);
    assert!(copies.values().all(|copies| *copies == 2), "{}", world.log.text());
    world.end().await;
}

#[tokio::test]
async fn the_same_message_sent_again_in_any_way_is_answered_once() {
    let world = Wanted::new(NOTES).start().await;
    world.define("default").await;
    // By clients that try again, at the same time.
    let message = json!({ "user": "ann", "agent": "default", "text": "note one", "message_id": "m-1" });
    let sent = join_all((0..8).map(|_| world.send_as(&message))).await;
    let places: BTreeSet<_> = sent.iter().map(|sent| (sent.event_id, sent.sequence)).collect();
    assert_eq!(places.len(), 1);
    world.reply(&sent[0]).await;

    // By somebody who makes a new event of it, before the router and behind it.
    let log = world.raw_log().await;
    for row in [USER_MESSAGE, AGENT_MESSAGE] {
        let owner = agent(if row.noun == "user" { "ann" } else { "default" });
        let message = log.iter().find(|raw| raw.subject == row.of_owner(&owner)).unwrap();
        let mut envelope = message.read(100_000).unwrap().envelope;
        envelope.id = ids::generate();
        world.publish(&message.subject, headers(&envelope), message.payload.clone()).await;
    }
    // Another user's message may have the same id.
    let other = json!({ "user": "bob", "agent": "default", "text": "note two", "message_id": "m-1" });
    let other = world.send_as(&other).await;
    assert_eq!(world.reply(&other).await, "Noted two.");
    world.settled().await;
    assert_once(&world, &[sent[0].clone(), other]).await;
    assert_eq!(notes(&world, "default"), ["one", "two"]);
    world.end().await;
}

#[tokio::test]
async fn outsiders_messages_without_an_id_are_all_answered() {
    let world = Wanted::new(NOTES).start().await;
    world.define("default").await;
    for text in ["hello", "good bye"] {
        let body = Body::from(UserMessage { user: "ann".into(), text: text.into(), ..Default::default() });
        let mut envelope = world.raw_log().await[0].read(1_000_000).unwrap().envelope;
        envelope.id = ids::generate();
        envelope.correlation_id = envelope.id;
        envelope.type_name = body.type_name().to_owned();
        world.publish("kairo.user.ann.message", headers(&envelope), body.encode()).await;
        let reply = world.log.wait(|event| event.correlation_id == envelope.id && event.is_final_reply()).await;
        assert_eq!(reply.text(), format!("You said: {text}"));
    }
    world.end().await;
}
