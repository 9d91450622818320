//! The WebSocket of the gateway, and what can be said over it and over HTTP alike.

pub mod client;
mod late;

use futures::SinkExt;
use kairo_core::{event_json::EventJson, ids};
use kairo_local::Service;
use kairo_proto::v1;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio_tungstenite::tungstenite::Message;
use uuid::Uuid;

use crate::world::{DEADLINE, Wanted, scenario::USUAL};
use client::{Client, event, refusal, request};

/// Answers word by word, so that there is something to see live.
const TALKS: &str = r#"
rules:
  - name: talk
    when: {}
    reply: { text: "You said: {{ user }}", chunk_chars: 4 }
"#;

#[tokio::test]
async fn a_conversation_goes_over_one_connection() {
    let world = Wanted::new(TALKS).start().await;
    world.define("default").await;
    let mut client = Client::connect(&world).await;
    assert_eq!((&client.hello["max_frame_bytes"], &client.hello["max_subscriptions"]), (&json!(524_288), &json!(16)));

    let begun = client.ask(json!({ "type": "subscribe", "id": "all", "agent": "default", "live": true })).await;
    assert_eq!((&begun["type"], &begun["id"]), (&json!("subscribed"), &json!("all")));
    let message = json!({ "type": "message", "ref": "r-1", "user": "ann", "agent": "default", "text": "all of this" });
    let accepted = client.ask(message).await;
    assert_eq!((&accepted["type"], &accepted["ref"]), (&json!("accepted"), &json!("r-1")));
    let correlation: Uuid = accepted["correlation_id"].as_str().unwrap().parse().unwrap();
    assert_eq!(accepted["event_id"], accepted["correlation_id"]);

    // Pieces come in order, and are what is said in the end.
    let (mut live, mut events) = (String::new(), Vec::new());
    while live != "You said: all of this" || !events.last().is_some_and(EventJson::is_final_reply) {
        let frame = client.next().await;
        assert_eq!(frame["id"], "all");
        match frame["type"].as_str().unwrap() {
            "live" => {
                assert_eq!((&frame["name"], &frame["data"]["agent"]), (&json!("token"), &json!("default")));
                // The first piece of an answer has no index. A model that is asked again begins again.
                if frame["data"]["index"].is_null() {
                    live.clear();
                }
                live.push_str(frame["data"]["text"].as_str().unwrap());
            }
            _ => events.push(event(&frame)),
        }
    }
    // With the agent the client sees the user's words, too.
    assert_eq!(events[0].type_name, v1::AgentMessage::TYPE);
    assert!(events.iter().all(|event| event.correlation_id == correlation));

    // The subscription is ended and says nothing more; another one sees the same again.
    let again = json!({ "type": "subscribe", "id": "turn", "correlation": correlation, "after": begun["from"] });
    assert_eq!(client.ask(json!({ "type": "unsubscribe", "id": "all" })).await["type"], "unsubscribed");
    assert_eq!(client.ask(again).await["type"], "subscribed");
    let mut told = Vec::new();
    while !told.last().is_some_and(EventJson::is_final_reply) {
        let frame = client.expect("event", &[]).await;
        assert_eq!(frame["id"], "turn");
        told.push(event(&frame));
    }
    assert_eq!(told[1..], events[..], "and before it the message as it entered");
    assert_eq!(told[0].type_name, v1::UserMessage::TYPE);
    assert_eq!(client.ask(json!({ "type": "ping" })).await, json!({ "type": "pong" }));
    world.end().await;
}

#[tokio::test]
async fn coming_back_after_the_gateway_was_killed_misses_nothing_and_repeats_nothing() {
    let mut world = Wanted::new(USUAL).start().await;
    world.define("default").await;
    let mut seen: Vec<(String, EventJson)> = Vec::new();
    let mut after = "0".to_owned();
    for round in 0..4 {
        let mut client = Client::connect(&world).await;
        client.send(json!({ "type": "subscribe", "id": "s", "after": after })).await;
        assert_eq!(client.expect("subscribed", &[]).await["from"], after);
        let text = if round % 2 == 0 { "time and time" } else { "hello" };
        client.send(json!({ "type": "message", "user": "ann", "agent": "default", "text": text })).await;
        // The connection ends in the middle of things: at another place each time.
        for _ in 0..3 + round {
            let frame = client.expect("event", &["accepted"]).await;
            after = frame["place"].as_str().unwrap().to_owned();
            seen.push((after.clone(), event(&frame)));
        }
        world.stack.kill9(Service::Gateway, 0).await.unwrap();
        drop(client);
        world.stack.restart(Service::Gateway, 0).await.unwrap();
    }
    world.settled().await;
    let log = world.log.now(&world.bus).await;
    let mut client = Client::connect(&world).await;
    client.send(json!({ "type": "subscribe", "id": "s", "after": after })).await;
    client.expect("subscribed", &[]).await;
    while seen.len() < log.len() {
        let frame = client.expect("event", &[]).await;
        seen.push((frame["place"].as_str().unwrap().to_owned(), event(&frame)));
    }
    let log: Vec<_> = log.into_iter().map(|event| (format!("{}.{}", event.sequence, event.position), event)).collect();
    assert_eq!(seen, log);
    world.end().await;
}

#[tokio::test]
async fn a_wrong_frame_is_told_what_was_expected_and_costs_nothing_else() {
    let world = Wanted::new(USUAL)
        .env(Service::Gateway, "KAIRO_GATEWAY__MAX_BODY_BYTES", "4096")
        .env(Service::Gateway, "KAIRO_GATEWAY__WS_SUBSCRIPTIONS", "1")
        .start()
        .await;
    world.define("default").await;
    let before = world.end_of_log().await;
    let mut client = Client::connect(&world).await;
    let id = Uuid::nil();
    let order = json!({ "type": "command", "user": "ann", "agent": "default", "command": "cancel" });
    let wrong: &[(Value, &[&str])] = &[
        (json!({}), &["type"]),
        (json!({ "type": 7 }), &["type"]),
        (json!({ "type": "dance", "ref": "r" }), &["type"]),
        (json!({ "type": "ping", "loud": true }), &["loud"]),
        (json!({ "type": "subscribe" }), &["id"]),
        (
            json!({ "type": "subscribe", "id": "a b", "agent": "A", "thread": "*", "live": 1 }),
            &["id", "agent", "thread", "live"],
        ),
        (json!({ "type": "subscribe", "id": "s", "after": "x", "correlation": "7" }), &["correlation", "after"]),
        (json!({ "type": "subscribe", "id": "s", "after": "999999999" }), &["after"]),
        (json!({ "type": "unsubscribe", "id": "nothing" }), &["id"]),
        (json!({ "type": "message", "ref": "r" }), &["user", "text"]),
        (json!({ "type": "message", "user": "Ann B", "text": "", "mood": 1 }), &["user", "text", "mood"]),
        (json!({ "type": "choice", "user": "ann", "offer_id": 7 }), &["agent", "offer_id", "option"]),
        (json!({ "type": "approval", "user": "ann", "agent": "a", "action_id": id, "verdict": "maybe" }), &["verdict"]),
        (order.clone(), &["action_id"]),
        (json!({ "type": "command", "user": "ann", "agent": "a", "command": "dance", "action_id": id }), &["command"]),
    ];
    for (frame, fields) in wrong {
        let answer = client.ask(frame.clone()).await;
        assert_eq!(answer["type"], "error", "{frame}: {answer}");
        assert_eq!((&answer["ref"], &answer["problem"]["status"]), (&frame["ref"], &json!(400)), "{frame}");
        let errors = answer["problem"]["errors"].as_array().unwrap();
        assert_eq!(errors.iter().map(|error| &error["field"]).collect::<Vec<_>>(), *fields, "{frame}: {answer}");
        assert!(errors.iter().all(|error| !error["expected"].as_str().unwrap().is_empty()));
    }
    // What is no frame at all.
    let long = format!("\"{}\"", "x".repeat(5_000));
    for (message, status) in [
        (Message::text("{"), 400),
        (Message::text(""), 400),
        (Message::text("[]"), 400),
        (Message::binary(b"{\"type\": \"ping\"}".to_vec()), 400),
        (Message::text(long), 413),
    ] {
        client.socket.send(message).await.unwrap();
        assert_eq!(client.next().await["problem"]["status"], status);
    }
    // An id is used once, and there is a bound.
    assert_eq!(client.ask(json!({ "type": "subscribe", "id": "s" })).await["type"], "subscribed");
    for id in ["s", "t"] {
        let refused = client.ask(json!({ "type": "subscribe", "id": id })).await;
        assert_eq!((&refused["type"], &refused["id"]), (&json!("error"), &json!(id)));
    }
    assert_eq!(client.ask(json!({ "type": "unsubscribe", "id": "s" })).await["id"], "s");
    assert_eq!(client.ask(json!({ "type": "subscribe", "id": "t" })).await["type"], "subscribed");
    assert_eq!(world.end_of_log().await, before);

    // A frame that is far too large is not read; others still are served.
    let far_too_long = "x".repeat(10_000);
    let mut other = Client::connect(&world).await;
    other.socket.send(Message::text(far_too_long)).await.unwrap();
    assert_eq!(other.next().await["type"], "closing");
    assert_eq!(other.next_or_end().await, None);
    assert_eq!(client.ask(json!({ "type": "ping" })).await["type"], "pong");
    world.end().await;
}

#[tokio::test]
async fn pages_of_other_sites_are_refused_and_connections_are_counted() {
    let world = Wanted::new(USUAL).env(Service::Gateway, "KAIRO_GATEWAY__MAX_STREAMS", "1").start().await;
    let host = world.url("").replace("http://", "");
    let with = |name: &'static str, value: &str| {
        let mut request = request(&world);
        request.headers_mut().insert(name, value.parse().unwrap());
        request
    };
    for origin in ["https://example.com", "null", "http://127.0.0.1:1", "http://localhost.example.com"] {
        assert_eq!(refusal(with("origin", origin)).await, 403, "{origin}");
    }
    assert_eq!(refusal(with("host", "example.com")).await, 403);
    let (plain, problem) = world.get("/v1/ws").await;
    assert_eq!((plain, &problem["type"]), (400, &json!("urn:kairo:problem:malformed")));

    // The gateway's own page may.
    let (own, _) = tokio_tungstenite::connect_async(with("origin", &format!("http://{host}"))).await.unwrap();
    assert_eq!(refusal(request(&world)).await, 503);
    assert_eq!(world.get("/v1/events/stream").await.0, 503);
    drop(own);
    world.end().await;
}

#[tokio::test]
async fn a_client_that_answers_no_pings_is_disconnected_and_a_stopping_gateway_says_so() {
    let world = Wanted::new(USUAL).env(Service::Gateway, "KAIRO_GATEWAY__HEARTBEAT_MS", "200").start().await;
    // It is read past the WebSocket, so that nothing answers the pings.
    let mut silent = Client::connect(&world).await;
    let mut heard = Vec::new();
    let reading = silent.socket.get_mut().read_to_end(&mut heard);
    tokio::time::timeout(DEADLINE, reading).await.expect("never disconnected").unwrap();
    let heard = String::from_utf8_lossy(&heard);
    assert!(heard.contains("\"closing\"") && heard.contains("did not answer pings"), "{heard:?}");

    let mut client = Client::connect(&world).await;
    assert_eq!(client.ask(json!({ "type": "subscribe", "id": "s" })).await["type"], "subscribed");
    let (stopped, closing) = tokio::join!(world.stack.stop_one(Service::Gateway, 0), client.expect("closing", &[]));
    stopped.unwrap();
    assert!(closing["reason"].as_str().unwrap().contains("connect again"), "{closing}");
    assert_eq!(client.next_or_end().await, None);
    world.end().await;
}

#[tokio::test]
async fn choices_approvals_and_commands_reach_the_agent_once_however_they_are_sent() {
    let world = Wanted::new(USUAL).start().await;
    world.define("default").await;
    let mut client = Client::connect(&world).await;
    let id = ids::generate();
    let said = [
        ("choice", json!({ "offer_id": id, "option": "accept" })),
        ("approval", json!({ "action_id": id, "verdict": "did_not_happen", "note": "I looked" })),
        ("command", json!({ "command": "cancel", "process_id": id })),
    ];
    for (kind, fields) in said {
        let (path, id_field) = (format!("/v1/{kind}s"), format!("{kind}_id"));
        let mut body = fields.clone();
        body["user"] = json!("ann");
        body["agent"] = json!("default");
        body[&id_field] = json!("x-1");
        let (status, over_http) = world.post(&path, &body).await;
        assert_eq!(status, 202, "{over_http}");
        let mut frame = body.clone();
        frame["type"] = json!(kind);
        let over_socket = client.ask(frame).await;
        let event_id = ids::from_parts(kind, &["ann", "x-1"]);
        for answer in [&over_http, &over_socket] {
            assert_eq!((&answer["event_id"], &answer["correlation_id"]), (&json!(event_id), &json!(event_id)));
            assert_eq!((&answer["sequence"], &answer[&id_field]), (&over_http["sequence"], &json!("x-1")));
        }
        let told = world.log.wait(|event| event.type_name == format!("kairo.agent.{kind}.v1")).await;
        assert_eq!((told.subject, told.correlation_id), (format!("kairo.agent.default.{kind}"), event_id));
        for (field, value) in fields.as_object().unwrap() {
            assert_eq!(told.payload[field], *value, "{:?}", told.payload);
        }
        assert_eq!((&told.payload["user"], &told.payload[&id_field]), (&json!("ann"), &json!("x-1")));

        // Without an id one is made; an agent that does not exist is told to the user.
        body.as_object_mut().unwrap().remove(&id_field);
        body["agent"] = json!("nobody");
        let (status, answer) = world.post(&path, &body).await;
        assert_eq!(status, 202, "{answer}");
        let correlation: Uuid = answer["correlation_id"].as_str().unwrap().parse().unwrap();
        let undelivered = world
            .log
            .wait(|event| event.correlation_id == correlation && event.type_name == v1::UserMessageUndelivered::TYPE)
            .await;
        assert_eq!(
            (undelivered.subject.as_str(), &undelivered.payload["agent"]),
            ("kairo.user.ann.undelivered", &json!("nobody"))
        );
        assert!(undelivered.text().contains("no agent named \"nobody\""), "{}", undelivered.text());

        let (status, problem) = world.post(&path, &json!({ "user": "Ann", "mood": "good" })).await;
        assert_eq!(status, 400);
        let fields = problem["errors"].as_array().unwrap();
        assert!(["user", "agent", "mood"].iter().all(|field| fields.iter().any(|error| error["field"] == *field)));
    }
    world.settled().await;
    let events = world.log.now(&world.bus).await;
    for kind in ["choice", "approval", "command"] {
        let delivered = events.iter().filter(|event| event.type_name == format!("kairo.agent.{kind}.v1")).count();
        assert_eq!(delivered, 1, "{kind}");
    }
    world.end().await;
}
