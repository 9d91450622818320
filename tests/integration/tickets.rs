//! Tickets: what stands for a key where none can be sent, once.

use async_nats::jetstream::kv::Operation;
use futures::{SinkExt, StreamExt, future::join_all};
use kairo_core::subjects::TICKETS_BUCKET;
use kairo_local::Service;
use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};
use tokio_tungstenite::{
    connect_async,
    tungstenite::{Message, client::IntoClientRequest},
};

use crate::{
    websocket::client::refusal,
    world::{DEADLINE, Wanted, World, scenario::USUAL},
};

const ADMIN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef";

/// Two gateways that ask for keys.
async fn guarded() -> World {
    let wanted = Wanted::new(USUAL).replicas(Service::Gateway, 2);
    let wanted = wanted.env(Service::Gateway, "KAIRO_GATEWAY__REQUIRE_KEY", "always");
    wanted.env(Service::Gateway, "KAIRO_GATEWAY__ADMIN_KEY", ADMIN).start().await
}

fn url(world: &World, gateway: usize, path: &str) -> String {
    format!("{}{path}", world.stack.replicas(Service::Gateway)[gateway].url().unwrap())
}

async fn post(url: &str, key: &str, body: Value) -> (StatusCode, Value) {
    let answer = Client::new().post(url).bearer_auth(key).json(&body).send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

/// The id and the text of a new key that both gateways know.
async fn key(world: &World, wanted: Value) -> (String, String) {
    let (status, made) = post(&url(world, 0, "/v1/keys"), ADMIN, wanted).await;
    assert_eq!(status, 201, "{made}");
    let [id, key] = ["key_id", "key"].map(|field| made[field].as_str().unwrap().to_owned());
    let known = async {
        while Client::new().get(url(world, 1, "/v1/status")).bearer_auth(&key).send().await.unwrap().status() == 401 {}
    };
    tokio::time::timeout(DEADLINE, known).await.expect("the other gateway never heard of the key");
    (id, key)
}

async fn ticket(world: &World, key: &str) -> String {
    let answer = Client::new().post(url(world, 0, "/v1/tickets")).bearer_auth(key).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.headers()["cache-control"].to_str().unwrap()), (201, "no-store"));
    let made: Value = answer.json().await.unwrap();
    let lasts = made["expires_at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap() - jiff::Timestamp::now();
    assert!(lasts.total(jiff::Unit::Second).unwrap() <= 30.0, "{made}");
    made["ticket"].as_str().unwrap().to_owned()
}

/// Opens a stream with a ticket; `last` comes back.
async fn stream(world: &World, gateway: usize, rest: &str, ticket: &str, last: Option<&str>) -> Response {
    let request = Client::new().get(url(world, gateway, &format!("/v1/events/stream?{rest}ticket={ticket}")));
    let request = if let Some(last) = last { request.header("last-event-id", last) } else { request };
    request.send().await.unwrap()
}

/// Reads a stream until it ends.
async fn drained(mut stream: Response) {
    let ending = async { while let Ok(Some(_)) = stream.chunk().await {} };
    tokio::time::timeout(DEADLINE, ending).await.expect("the stream never ended");
}

#[tokio::test]
async fn a_ticket_opens_one_connection_at_whatever_gateway() {
    let world = guarded().await;
    let (_, reads) = key(&world, json!({ "name": "page", "scopes": ["read"] })).await;

    // Of many uses at once, at both gateways, one succeeds.
    let once = ticket(&world, &reads).await;
    let uses = (0..10).map(|at| stream(&world, at % 2, "", &once, None));
    let opened = join_all(uses).await.into_iter().filter(|answer| answer.status() == 200).count();
    assert_eq!(opened, 1);

    // A WebSocket's is used up whatever comes afterwards.
    let socket = |ticket: &str| {
        let url = url(&world, 1, &format!("/v1/ws?ticket={ticket}")).replace("http://", "ws://");
        url.as_str().into_client_request().unwrap()
    };
    let once = ticket(&world, &reads).await;
    let (mut connection, answer) = connect_async(socket(&once)).await.unwrap();
    assert_eq!(answer.headers()["x-request-id"].len(), 36);
    connection.send(Message::text(r#"{"type": "subscribe", "id": "s"}"#)).await.unwrap();
    let said = connection.next().await.unwrap().unwrap().into_text().unwrap();
    assert!(said.contains("hello"), "{said}");
    assert_eq!(refusal(socket(&once)).await, 401);
    assert_eq!(stream(&world, 0, "", &once, Some("0")).await.status(), 401);

    // What is no ticket, or is one at another place, opens nothing.
    let unused = ticket(&world, &reads).await;
    let both = format!("{unused}&ticket={unused}");
    for wrong in ["x", "", &"a".repeat(52), &unused[1..], &unused.to_uppercase(), &both] {
        assert_eq!(stream(&world, 0, "", wrong, None).await.status(), 401, "{wrong}");
    }
    let elsewhere = Client::new().get(url(&world, 0, &format!("/v1/agents?ticket={unused}"))).send().await.unwrap();
    assert_eq!(elsewhere.status(), 401);
    let nobodys = Client::new().post(url(&world, 0, "/v1/tickets")).send().await.unwrap();
    assert_eq!(nobodys.status(), 401);
    // It stands for its key, and for no more.
    let (_, writes) = key(&world, json!({ "name": "page", "scopes": ["write"] })).await;
    let cannot = stream(&world, 0, "", &ticket(&world, &writes).await, None).await;
    assert_eq!(cannot.status(), 403);
    assert_eq!(stream(&world, 1, "", &unused, None).await.status(), 200);

    let logs = world.workplace("x").ancestors().nth(2).unwrap().join("logs");
    for file in std::fs::read_dir(logs).unwrap().flatten() {
        let text = String::from_utf8_lossy(&std::fs::read(file.path()).unwrap()).into_owned();
        for secret in [&once, &unused] {
            assert!(!text.contains(secret.as_str()), "{} holds a ticket", file.path().display());
        }
    }
    world.end().await;
}

#[tokio::test]
async fn a_stream_is_come_back_to_by_whoever_saw_it_and_ends_with_its_key() {
    let world = guarded().await;
    let (id, reads) = key(&world, json!({ "name": "page", "scopes": ["read"] })).await;
    let once = ticket(&world, &reads).await;
    let first = stream(&world, 0, "agent=bob&", &once, None).await;
    assert_eq!(first.status(), 200);
    // Not without having seen it, and not to another one.
    assert_eq!(stream(&world, 1, "agent=bob&", &once, None).await.status(), 401);
    for rest in ["", "agent=eve&", "agent=bob&after=0&"] {
        assert_eq!(stream(&world, 1, rest, &once, Some("0")).await.status(), 401, "{rest}");
    }
    let second = stream(&world, 1, "agent=bob&", &once, Some("0")).await;
    assert_eq!(second.status(), 200);
    // Once more, since the next connection may be lost, too.
    drop(second);
    let third = stream(&world, 1, "agent=bob&", &once, Some("0")).await;
    assert_eq!(third.status(), 200);

    let revoked = Client::new().delete(url(&world, 0, &format!("/v1/keys/{id}"))).bearer_auth(ADMIN).send().await;
    assert_eq!(revoked.unwrap().status(), 200);
    drained(first).await;
    drained(third).await;
    assert_eq!(stream(&world, 0, "agent=bob&", &once, Some("0")).await.status(), 401);
    world.end().await;
}

#[tokio::test]
async fn whoever_comes_back_takes_the_stream_over_and_nobody_comes_back_too_late() {
    let wanted = Wanted::new(USUAL).env(Service::Gateway, "KAIRO_GATEWAY__TICKET_RECONNECT_MS", "3000");
    let world = wanted.start().await;
    let made = world.post("/v1/tickets", &json!({})).await;
    assert_eq!(made.0, 201, "where no key is required");
    let once = made.1["ticket"].as_str().unwrap();
    let first = stream(&world, 0, "", once, None).await;
    assert_eq!(first.status(), 200);
    let second = stream(&world, 0, "", once, Some("0")).await;
    assert_eq!(second.status(), 200);
    // That it is taken over is noticed when the first next says that it is there.
    drained(first).await;
    // The second kept its ticket good for as long as it was open.
    let third = stream(&world, 0, "", once, Some("0")).await;
    assert_eq!(third.status(), 200);
    drained(second).await;
    let bucket = world.bus.nats().unwrap().jetstream.get_key_value(TICKETS_BUCKET).await.unwrap();
    let mut changes = bucket.watch_all().await.unwrap();
    drop(third);
    let forgotten = async { while changes.next().await.unwrap().unwrap().operation == Operation::Put {} };
    tokio::time::timeout(DEADLINE, forgotten).await.expect("the ticket was never forgotten");
    assert_eq!(stream(&world, 0, "", once, Some("0")).await.status(), 401);
    world.end().await;
}
