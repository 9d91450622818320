//! Callers without a key, or with too many requests, shut nobody out: endpoints open to everybody have permits of their
//! own, silent connections end, and nobody takes all permits.

use futures::future::join_all;
use kairo_local::Service;
use kairo_proto::v1::KeepAlive;
use reqwest::Method;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tonic::{
    Code, Status, Streaming,
    client::Grpc,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;

use crate::{
    keys::{ADMIN, Caller},
    world::{DEADLINE, Wanted, World, scenario::USUAL},
};

pub fn guarded() -> Wanted {
    let wanted = Wanted::new(USUAL).env(Service::Gateway, "KAIRO_GATEWAY__REQUIRE_KEY", "always");
    wanted.env(Service::Gateway, "KAIRO_GATEWAY__ADMIN_KEY", ADMIN)
}

pub fn set(wanted: Wanted, settings: &[(&str, &str)]) -> Wanted {
    settings
        .iter()
        .fold(wanted, |wanted, (name, value)| wanted.env(Service::Gateway, &format!("KAIRO_GATEWAY__{name}"), *value))
}

/// A conversation about what services there are, in which the client says nothing, and does not end it either.
async fn silent(channel: &Channel) -> Result<Streaming<KeepAlive>, Status> {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.unwrap();
    let never = tonic::Request::new(futures::stream::pending::<KeepAlive>());
    let path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo".parse().unwrap();
    // Of what type the messages are that never come is all the same.
    let answer = grpc.streaming(never, path, ProstCodec::default());
    Ok(timeout(DEADLINE, answer).await.expect("no head of an answer")?.into_inner())
}

#[tokio::test]
async fn silent_conversations_without_a_key_shut_nobody_out_and_end() {
    let settings = [("OPEN_REQUESTS", "12"), ("OPEN_REQUESTS_PER_PEER", "8"), ("OPEN_REQUEST_MS", "3000")];
    let world = set(guarded(), &[&settings[..], &[("MAX_STREAMS", "10")]].concat()).start().await;
    let operator = Caller::new(&world, 0, Some(ADMIN));
    let channel = Endpoint::from_shared(world.url("")).unwrap().connect().await.unwrap();
    let open = join_all((0..40).map(|_| silent(&channel))).await;
    let (going_on, refused): (Vec<_>, Vec<_>) = open.into_iter().partition(Result::is_ok);
    assert_eq!((going_on.len(), refused.len()), (8, 32));
    for status in refused.into_iter().filter_map(Result::err) {
        assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
        assert!(status.message().contains("gateway.open_requests_per_peer"), "{status:?}");
    }
    // The administrator is not shut out, neither from requests nor from streams.
    assert_eq!(operator.get("/v1/status").await.0, 200);
    let stream = operator.request(Method::GET, "/v1/events/stream").send().await.unwrap();
    assert_eq!(stream.status(), 200);
    // Each ends by itself, and then there is room for others.
    for mut answer in going_on.into_iter().flatten() {
        let ended = timeout(DEADLINE, answer.message()).await.expect("a conversation never ended").unwrap_err();
        assert_eq!(ended.code(), Code::DeadlineExceeded, "{ended:?}");
    }
    assert!(silent(&channel).await.is_ok());
    drop(stream);
    world.end().await;
}

/// Sends this over a new connection and waits until the gateway closes it.
async fn ends(world: &World, sent: &[u8]) {
    let mut stream = connected(world).await;
    stream.write_all(sent).await.unwrap();
    closed(&mut stream).await;
}

pub async fn connected(world: &World) -> TcpStream {
    let address = world.url("").replace("http://", "");
    TcpStream::connect(address.trim_end_matches('/')).await.unwrap()
}

/// Reads until the other side has closed it.
pub async fn closed(stream: &mut TcpStream) -> Vec<u8> {
    let mut said = Vec::new();
    let reading = async {
        // One that was reset is closed as well.
        drop(stream.read_to_end(&mut said).await);
    };
    timeout(DEADLINE, reading).await.expect("the connection is kept open");
    said
}

#[tokio::test]
async fn a_connection_that_does_nothing_ends() {
    let settings = [("HEADER_TIMEOUT_MS", "1000"), ("HEARTBEAT_MS", "500"), ("IDLE_TIMEOUT_MS", "2000")];
    let world = set(guarded(), &settings).start().await;
    let operator = Caller::new(&world, 0, Some(ADMIN));
    let never_ending: [&[u8]; 4] = [
        b"",
        b"GET /v1/status HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
        b"PRI * HTTP/2.0\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
    ];
    let many = (0..300).map(|at| ends(&world, never_ending[at % never_ending.len()]));
    let answered = async {
        assert_eq!(operator.get("/v1/status").await.0, 200);
    };
    tokio::join!(join_all(many), answered);
    // After a request, too, be it with the beginning of another one.
    let mut kept = connected(&world).await;
    kept.write_all(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /healthz HTTP/1.1\r\nX-").await.unwrap();
    let said = closed(&mut kept).await;
    assert!(said.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&said));
    // A stream with nothing but signs of life goes on for longer than that.
    let mut stream = operator.request(Method::GET, "/v1/events/stream").send().await.unwrap();
    for _ in 0..8 {
        let sign = timeout(DEADLINE, stream.chunk()).await.expect("no sign of life").unwrap();
        assert!(sign.is_some(), "the stream ended");
    }
    world.end().await;
}

#[tokio::test]
async fn a_body_that_never_ends_is_broken_off() {
    let world = set(guarded(), &[("BODY_TIMEOUT_MS", "1000")]).start().await;
    let mut stream = connected(&world).await;
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {ADMIN}\r\nContent-Type: \
         application/json\r\nContent-Length: 100\r\nConnection: close\r\n\r\n{{"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let said = String::from_utf8(closed(&mut stream).await).unwrap();
    assert!(said.starts_with("HTTP/1.1 400") && said.contains("gateway.body_timeout_ms"), "{said}");
    world.end().await;
}

#[tokio::test]
async fn one_peer_has_so_many_connections_and_no_more() {
    let world = set(guarded(), &[("MAX_CONNECTIONS_PER_PEER", "5"), ("HEADER_TIMEOUT_MS", "600000")]).start().await;
    let mut silent = Vec::new();
    for _ in 0..5 {
        silent.push(connected(&world).await);
    }
    // Connections are taken in their order, so this one is the sixth.
    let mut one_more = connected(&world).await;
    assert!(closed(&mut one_more).await.is_empty());
    drop(silent);
    // Those who went make room.
    let operator = Caller::new(&world, 0, Some(ADMIN));
    let answered = async {
        while !operator.request(Method::GET, "/v1/status").send().await.is_ok_and(|answer| answer.status() == 200) {}
    };
    timeout(DEADLINE, answered).await.expect("there is never room again");
    world.end().await;
}

#[tokio::test]
async fn one_key_does_not_take_the_permits_of_others() {
    let settings =
        [("MAX_STREAMS", "6"), ("MAX_STREAMS_PER_KEY", "3"), ("MAX_REQUESTS", "6"), ("MAX_REQUESTS_PER_KEY", "3")];
    let world = set(guarded(), &[&settings[..], &[("FRESHNESS_WAIT_MS", "60000")]].concat()).start().await;
    let operator = Caller::new(&world, 0, Some(ADMIN));
    let (_, greedy) = operator.make(json!({ "name": "greedy", "scopes": ["read"] })).await;
    let (_, modest) = operator.make(json!({ "name": "modest", "scopes": ["read"] })).await;
    let [greedy, modest] = [greedy, modest].map(|key| Caller::new(&world, 0, Some(&key)));

    let stream = |caller: &Caller| caller.request(Method::GET, "/v1/events/stream").send();
    let mut open = Vec::new();
    for expected in [200, 200, 200, 429, 429] {
        let answer = stream(&greedy).await.unwrap();
        assert_eq!(answer.status(), expected);
        open.push(answer);
    }
    open.push(stream(&modest).await.unwrap());
    assert_eq!(open.last().unwrap().status(), 200);
    drop(open);

    // Requests that wait for what is not there yet: once three of them wait, others are refused at once. One that found the
    // place taken by somebody who was only passing asks again.
    let waiting = || {
        let greedy = greedy.clone();
        tokio::spawn(async move { while greedy.get("/v1/agents?at_least=1000000").await.0 == 429 {} })
    };
    let waiting: Vec<_> = (0..3).map(|_| waiting()).collect();
    let at_once = "urn:kairo:problem:too-many-at-once";
    let refused = async { while greedy.get("/v1/agents").await.1["type"] != at_once {} };
    timeout(DEADLINE, refused).await.expect("nothing was ever too much");
    assert_eq!(modest.get("/v1/agents").await.0, 200);
    for one in waiting {
        one.abort();
    }
    world.end().await;
}
