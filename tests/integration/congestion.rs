//! An agent with too many inputs waiting takes no messages, over whatever they come, and everything else; and it takes
//! messages again as soon as it is said to.

use futures::StreamExt;
use kairo_core::{
    bus::congestion::{self, Congestion, InputQueue},
    subjects::CONGESTION_BUCKET,
};
use kairo_local::Service;
use kairo_proto::v1::{SendMessageRequest, SendMessageResponse};
use reqwest::Response;
use serde_json::{Value, json};
use tokio::time::timeout;
use tonic::{Code, Request, Status, client::Grpc, transport::Endpoint};
use tonic_prost::ProstCodec;
use uuid::Uuid;

use crate::{
    websocket::client::Client,
    world::{DEADLINE, Wanted, World, agent, scenario::USUAL},
};

const BUSY: &str = "busy";
const CONGESTION: Congestion = Congestion { pending: 1_234, limit: 1_000 };

fn message(to: Option<&str>, text: &str) -> Value {
    json!({ "user": "ann", "agent": to, "text": text })
}

async fn post(world: &World, path: &str, body: &Value) -> Response {
    world.http.post(world.url(path)).json(body).send().await.unwrap()
}

/// Returns true if a message is refused because the agent is congested, not because of a rate limit.
async fn is_refused(world: &World, name: &str) -> bool {
    let answer = post(world, "/v1/messages", &message(Some(name), "hello")).await;
    answer.status() == 429 && answer.json::<Value>().await.unwrap()["type"] == "urn:kairo:problem:congested"
}

/// Says that the agent is congested, until the gateway has heard of it.
async fn congest(world: &World, name: &str) {
    let heard = async {
        loop {
            congestion::announce(&world.bus, &InputQueue::for_agent(&agent(name)), Some(CONGESTION)).await;
            if is_refused(world, name).await {
                return;
            }
        }
    };
    timeout(DEADLINE, heard).await.expect("messages are never refused");
}

/// Says that it is so no longer, until the gateway has heard of it.
async fn relieve(world: &World, name: &str) {
    congestion::announce(&world.bus, &InputQueue::for_agent(&agent(name)), None).await;
    let heard = async { while is_refused(world, name).await {} };
    timeout(DEADLINE, heard).await.expect("messages are refused for ever");
}

async fn over_grpc(world: &World, name: &str) -> Status {
    let channel = Endpoint::from_shared(world.url("")).unwrap().connect().await.unwrap();
    let mut grpc = Grpc::new(channel);
    grpc.ready().await.unwrap();
    let request =
        SendMessageRequest { user: "ann".into(), agent: name.into(), text: "hello".into(), ..Default::default() };
    let codec = ProstCodec::<SendMessageRequest, SendMessageResponse>::default();
    let path = "/kairo.v1.Commands/SendMessage".parse().unwrap();
    grpc.unary(Request::new(request), path, codec).await.expect_err("it was taken")
}

#[tokio::test]
async fn a_congested_agent_is_said_no_message_and_everything_else() {
    let world = Wanted::new(USUAL).start().await;
    for name in [BUSY, "default", "free"] {
        world.define(name).await;
    }
    let before = json!({ "user": "ann", "agent": BUSY, "text": "hello", "message_id": "m-1" });
    assert_eq!(world.post("/v1/messages", &before).await.0, 202);
    congest(&world, BUSY).await;

    let refused = post(&world, "/v1/messages", &message(Some(BUSY), "hello")).await;
    assert_eq!((refused.status().as_u16(), refused.headers()["retry-after"].to_str().unwrap()), (429, "5"));
    let problem: Value = refused.json().await.unwrap();
    assert_eq!(problem["type"], "urn:kairo:problem:congested");
    let told = problem["detail"].as_str().unwrap();
    assert!([BUSY, "1234", "1000", "retry-after"].iter().all(|word| told.contains(word)), "{told}");
    // What is in the log is as good as decided on: said again, it is where it was.
    assert_eq!(world.post("/v1/messages", &before).await.0, 202);

    // The address is read as router reads it.
    for (to, text, status) in [
        (None, "@busy hello", 429),
        (None, "hello", 202),
        (None, "@free hello", 202),
        (Some("free"), "@busy hello", 202),
        (Some(BUSY), "@free hello", 429),
    ] {
        assert_eq!(world.post("/v1/messages", &message(to, text)).await.0, status, "{to:?} {text}");
    }
    congest(&world, "default").await;
    assert_eq!(world.post("/v1/messages", &message(None, "hello")).await.0, 429);
    relieve(&world, "default").await;

    let chat = json!({ "model": BUSY, "messages": [{ "role": "user", "content": "hello" }] });
    let refused = post(&world, "/v1/chat/completions", &chat).await;
    assert_eq!((refused.status().as_u16(), refused.headers()["retry-after"].to_str().unwrap()), (429, "5"));
    let error: Value = refused.json().await.unwrap();
    assert_eq!((&error["error"]["type"], &error["error"]["code"]), (&json!("rate_limit_error"), &json!("congested")));
    let mut socket = Client::connect(&world).await;
    let frame = json!({ "type": "message", "ref": "r", "user": "ann", "agent": BUSY, "text": "hello" });
    let refused = socket.ask(frame.clone()).await;
    assert_eq!((&refused["type"], &refused["ref"]), (&json!("error"), &json!("r")));
    assert_eq!(refused["problem"]["type"], "urn:kairo:problem:congested");
    let refused = over_grpc(&world, BUSY).await;
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("1234 inputs wait for the agent busy"), "{refused:?}");

    // What is no message is for the agent to deal with, however many wait.
    let id = Uuid::new_v4();
    for (path, said) in [
        ("/v1/commands", json!({ "user": "ann", "agent": BUSY, "command": "cancel", "action_id": id })),
        ("/v1/approvals", json!({ "user": "ann", "agent": BUSY, "action_id": id, "verdict": "approved" })),
        ("/v1/choices", json!({ "user": "ann", "agent": BUSY, "offer_id": id, "option": "accept" })),
    ] {
        let (status, answer) = world.post(path, &said).await;
        assert_eq!(status, 202, "{path}: {answer}");
    }
    let order = json!({ "type": "command", "user": "ann", "agent": BUSY, "command": "cancel", "action_id": id });
    assert_eq!(socket.ask(order).await["type"], "accepted");

    relieve(&world, BUSY).await;
    assert_eq!(socket.ask(frame).await["type"], "accepted");
    assert_eq!(post(&world, "/v1/chat/completions", &chat).await.status(), 200);
    world.end().await;
}

#[tokio::test]
async fn congestion_outlives_a_gateway_and_its_bucket_a_restart_of_the_server() {
    let mut world = Wanted::new(USUAL).start().await;
    world.define(BUSY).await;
    world.nats.kill9().await.unwrap();
    world.nats.restart().await.unwrap();
    // It was in memory, and nobody but the gateway misses it.
    let made = async { while world.bus.nats().unwrap().jetstream.get_key_value(CONGESTION_BUCKET).await.is_err() {} };
    timeout(DEADLINE, made).await.expect("the bucket is gone for good");
    congest(&world, BUSY).await;

    // It is said no more, so a gateway that starts now has to read it.
    world.stack.restart(Service::Gateway, 0).await.unwrap();
    let read = async { while !is_refused(&world, BUSY).await {} };
    timeout(DEADLINE, read).await.expect("nobody read what was said before");
    relieve(&world, BUSY).await;
    world.end().await;
}

#[tokio::test]
async fn a_user_with_too_much_on_its_way_to_an_agent_is_told_and_nobody_else() {
    let world = Wanted::new(USUAL).env(Service::Router, "KAIRO_ROUTER__PENDING_MESSAGES", "4").start().await;
    world.define(BUSY).await;
    let queue = InputQueue::for_user_line(&agent(BUSY), &agent("ann"));
    let subject = format!("$KV.{CONGESTION_BUCKET}.{BUSY}.ann");
    let mut announced = world.bus.nats().unwrap().client.subscribe(subject).await.unwrap();
    // Everything that was sent meanwhile is read at once.
    world.stack.freeze(Service::Router, 0).unwrap();
    let mut last = None;
    for number in 0..8 {
        last = Some(world.send_as(&message(Some(BUSY), &number.to_string())).await);
    }
    world.stack.thaw(Service::Router, 0).unwrap();
    let mut heard = async || timeout(DEADLINE, announced.next()).await.expect("nothing is announced").unwrap().payload;
    let congestion: Congestion = serde_json::from_slice(&heard().await).unwrap();
    assert_eq!((congestion.pending, congestion.limit), (5, 4));
    assert!(heard().await.is_empty(), "it is not withdrawn");
    world.reply(&last.unwrap()).await;

    congestion::announce(&world.bus, &queue, Some(CONGESTION)).await;
    // The gateway may not have read yet that the first was withdrawn.
    let refused = async {
        loop {
            let answer = post(&world, "/v1/messages", &message(Some(BUSY), "hello")).await;
            let problem = answer.json::<Value>().await.unwrap();
            let told = problem["detail"].as_str().unwrap_or_default();
            if told.contains("1234 messages of ann wait for the agent busy") {
                return problem;
            }
        }
    };
    let problem = timeout(DEADLINE, refused).await.expect("messages are never refused");
    assert_eq!(problem["status"], 429);
    let other = json!({ "user": "bob", "agent": BUSY, "text": "hello" });
    assert_eq!(post(&world, "/v1/messages", &other).await.status(), 202);
    world.end().await;
}
