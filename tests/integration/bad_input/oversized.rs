//! Fifty megabytes where a message is expected: refused with the limit, whatever they come over, while others are served.

use std::net::SocketAddr;

use futures::SinkExt;
use kairo_core::{permissions::NatsIdentity, subjects::Service};
use kairo_local::Login;
use kairo_proto::v1;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::timeout,
};
use tokio_tungstenite::tungstenite::Message;

use crate::{
    websocket::client::Client,
    world::{DEADLINE, Wanted, World, scenario::USUAL},
};

const BYTES: usize = 50 * 1024 * 1024;

#[tokio::test]
async fn fifty_megabytes_are_refused_and_nobody_else_notices() {
    let world = Wanted::new(USUAL).start().await;
    world.define("default").await;
    let before = world.end_of_log().await;
    let refused = async {
        tokio::join!(
            over_http(&world),
            over_http_of_unknown_length(&world),
            over_a_websocket(&world),
            over_nats(&world)
        );
    };
    // What others say meanwhile is answered.
    let served = async {
        for _ in 0..5 {
            assert_eq!(world.ask("default", "hello").await, "You said: hello");
        }
    };
    tokio::join!(refused, served);
    let words = |event: &&kairo_core::event_json::EventJson| event.type_name == v1::UserMessage::TYPE;
    let said = world.log.now(&world.bus).await.iter().filter(|event| event.sequence > before).filter(words).count();
    assert_eq!((said, world.dead_letters_so_far().await), (5, 0));
    world.end().await;
}

fn assert_names_the_limit(problem: &Value) {
    assert_eq!((&problem["status"], &problem["type"]), (&json!(413), &json!("urn:kairo:problem:too-large")));
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("gateway.max_body_bytes, which is 524288 bytes"), "{detail}");
}

async fn over_http(world: &World) {
    let message = json!({ "user": "ann", "agent": "default", "text": "x".repeat(BYTES) });
    let (status, problem) = world.post("/v1/messages", &message).await;
    assert_eq!(status, 413, "{problem}");
    assert_names_the_limit(&problem);
}

/// A client that sends all it has before it reads a word, and does not say how much that is.
async fn over_http_of_unknown_length(world: &World) {
    let address: SocketAddr = world.url("").replace("http://", "").parse().unwrap();
    let mut gateway = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         transfer-encoding: chunked\r\nconnection: close\r\n\r\n"
    );
    gateway.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    for _ in 0..BYTES / 0x10000 {
        gateway.write_all(chunk.as_bytes()).await.unwrap();
    }
    gateway.write_all(b"0\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    timeout(DEADLINE, gateway.read_to_string(&mut answer)).await.expect("no answer").unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert_names_the_limit(&serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap());
}

async fn over_a_websocket(world: &World) {
    // Answered up to twice the limit; beyond, it is not even read.
    let mut client = Client::connect(world).await;
    assert_eq!(client.hello["max_frame_bytes"], 524_288);
    let frame = json!({ "type": "message", "ref": "r", "user": "ann", "text": "x".repeat(600_000) });
    let refused = client.ask(frame).await;
    assert_eq!(refused["type"], "error");
    assert_names_the_limit(&refused["problem"]);
    // The connection may break under the one who goes on sending.
    drop(client.socket.send(Message::text("x".repeat(BYTES))).await);
    assert_eq!(client.next().await["type"], "closing");
}

/// Past the gateway, nats-server itself refuses.
async fn over_nats(world: &World) {
    let address = world.nats.url().replace("nats://", "");
    let mut server = BufReader::new(TcpStream::connect(address).await.unwrap());
    let mut line = String::new();
    server.read_line(&mut line).await.unwrap();
    let told: Value = serde_json::from_str(line.strip_prefix("INFO ").unwrap()).unwrap();
    let limit = usize::try_from(told["max_payload"].as_u64().unwrap()).unwrap();
    assert!(limit < BYTES, "{told}");
    let Login { user, password, .. } = world.nats.login(NatsIdentity::Service(Service::Gateway));
    let connect = json!({ "verbose": false, "user": user, "pass": password });
    let publish = format!("CONNECT {connect}\r\nPUB kairo.user.ann.message {BYTES}\r\n");
    server.write_all(publish.as_bytes()).await.unwrap();
    line.clear();
    timeout(DEADLINE, server.read_line(&mut line)).await.expect("nothing was said").unwrap();
    assert_eq!(line.trim(), "-ERR 'Maximum Payload Violation'");
}
