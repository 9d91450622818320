//! A request that is answered before its body has come: the client gets to read why, if it sends no more than the gateway throws away.

use std::{fmt::Write, time::Duration};

use axum::body::{Body, to_bytes};
use hyper::{
    Request,
    client::conn::http2::{self, SendRequest},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::timeout,
};

use crate::{
    keys::{ADMIN, Caller},
    open::{closed, connected, guarded, set},
    world::{DEADLINE, World},
};

/// Of a body, in bytes.
const BYTES: usize = 300_000;
/// A body comes in so many pieces.
const PIECES: usize = 3;
/// Between two of them, unless there is an answer: time enough to answer too early.
const PAUSE: Duration = Duration::from_millis(100);

/// A request that is answered early, and how.
struct Early {
    status: u16,
    path: &'static str,
    key: Option<String>,
    media_type: &'static str,
}

impl Early {
    /// The head of the request.
    fn head(&self, length: usize, more: &str) -> String {
        let Self { path, media_type, .. } = self;
        let mut head = format!("POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {media_type}\r\n");
        // Writing to a String cannot fail.
        let _ = write!(head, "Content-Length: {length}\r\n{more}");
        if let Some(key) = &self.key {
            let _ = write!(head, "Authorization: Bearer {key}\r\n");
        }
        head + "\r\n"
    }
}

/// One of each kind. The key of the last is busy when its turn comes.
async fn early(operator: &Caller) -> Vec<Early> {
    let of = |scope: &str| json!({ "name": scope, "scopes": [scope] });
    let (_, reader) = operator.make(of("read")).await;
    let (_, busy) = operator.make(of("write")).await;
    let admin = || Some(ADMIN.to_owned());
    let (messages, objects, media_type) = ("/v1/messages", "/v1/objects", "application/json");
    vec![
        Early { status: 401, path: messages, key: None, media_type },
        Early { status: 403, path: messages, key: Some(reader), media_type },
        Early { status: 413, path: messages, key: admin(), media_type },
        Early { status: 415, path: messages, key: admin(), media_type: "text/plain" },
        Early { status: 415, path: objects, key: admin(), media_type: "text/plain" },
        Early { status: 404, path: "/v1/nothing", key: admin(), media_type },
        Early { status: 429, path: messages, key: Some(busy), media_type },
    ]
}

/// A gateway with bounds that these requests go beyond.
struct Scene {
    world: World,
    early: Vec<Early>,
    /// The one request that the last key may make at a time.
    pending: TcpStream,
}

async fn bounded(settings: &[(&str, &str)]) -> Scene {
    let bounds = [("MAX_BODY_BYTES", "200000"), ("MAX_REQUESTS_PER_KEY", "1"), ("BODY_TIMEOUT_MS", "600000")];
    let world = set(guarded(), &[&bounds[..], settings].concat()).start().await;
    let early = early(&Caller::new(&world, 0, Some(ADMIN))).await;
    let last = early.last().unwrap();
    let mut pending = connected(&world).await;
    pending.write_all(last.head(100, "").as_bytes()).await.unwrap();
    let busy = Caller::new(&world, 0, last.key.as_deref());
    let taken = async { while busy.post(last.path, json!({})).await.0 != last.status {} };
    timeout(DEADLINE, taken).await.expect("a key may make two requests at once");
    Scene { world, early, pending }
}

/// Waits for a moment, or for less if there is an answer.
async fn pause(stream: &TcpStream) -> bool {
    timeout(PAUSE, stream.readable()).await.is_ok()
}

/// The status of an answer, which is read to its end.
async fn answer(stream: &mut BufReader<TcpStream>) -> u16 {
    let reading = async {
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            let at = head.len();
            assert!(stream.read_line(&mut head).await.unwrap() > 0, "it broke off: {head}");
            let said = head[at..].to_lowercase();
            length = said.strip_prefix("content-length:").map_or(length, |said| said.trim().parse().unwrap());
        }
        stream.read_exact(&mut vec![0_u8; length]).await.unwrap();
        status(&head)
    };
    timeout(DEADLINE, reading).await.expect("there is no answer")
}

fn status(head: &str) -> u16 {
    head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("no status: {head}"))
}

#[tokio::test]
async fn who_sends_all_of_a_body_first_reads_why_it_is_not_taken() {
    let Scene { world, early, pending } = bounded(&[]).await;
    let piece = vec![b' '; BYTES / PIECES];
    for early in &early {
        let mut stream = connected(&world).await;
        stream.write_all(early.head(BYTES, "").as_bytes()).await.unwrap();
        for _ in 0..PIECES {
            pause(&stream).await;
            stream.write_all(&piece).await.unwrap();
        }
        let mut stream = BufReader::new(stream);
        assert_eq!(answer(&mut stream).await, early.status, "{}", early.path);
        // And the connection is as good as before.
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await.unwrap();
        assert_eq!(answer(&mut stream).await, 200, "after {} of {}", early.status, early.path);
        // A client like others, too.
        let caller = Caller::new(&world, 0, early.key.as_deref());
        let request = caller.request(Method::POST, early.path).header("content-type", early.media_type);
        assert_eq!(request.body(vec![b' '; BYTES]).send().await.unwrap().status(), early.status, "{}", early.path);
    }
    drop(pending);
    world.end().await;
}

/// A connection over HTTP/2, on which requests go on beside each other.
async fn over_http2(world: &World) -> SendRequest<Body> {
    let stream = TokioIo::new(connected(world).await);
    let (client, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    client
}

/// More than is sent before the gateway asks for more: what is not read of it ends with the request, and nothing else does.
#[tokio::test]
async fn over_http2_a_request_is_answered_before_its_body_has_come_and_others_go_on() {
    let Scene { world, early, pending } = bounded(&[]).await;
    let mut client = over_http2(&world).await;
    for early in &early {
        let mut request =
            Request::post(format!("http://127.0.0.1{}", early.path)).header("content-type", early.media_type);
        if let Some(key) = &early.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let request = request.body(Body::from(vec![b' '; BYTES])).unwrap();
        let answer = timeout(DEADLINE, client.send_request(request)).await.expect("there is no answer").unwrap();
        assert_eq!(answer.status(), early.status, "{}", early.path);
        let problem = to_bytes(Body::new(answer.into_body()), BYTES).await.unwrap();
        let problem: Value = serde_json::from_slice(&problem).unwrap();
        assert_eq!(problem["status"], early.status, "{problem}");
        let request = Request::get("http://127.0.0.1/healthz").body(Body::empty()).unwrap();
        assert_eq!(
            client.send_request(request).await.unwrap().status(),
            200,
            "after {} of {}",
            early.status,
            early.path
        );
    }
    drop(pending);
    world.end().await;
}

#[tokio::test]
async fn who_asks_whether_to_send_a_body_is_told_no() {
    let Scene { world, early, pending } = bounded(&[]).await;
    for early in &early {
        let mut stream = BufReader::new(connected(&world).await);
        stream.write_all(early.head(BYTES, "Expect: 100-continue\r\n").as_bytes()).await.unwrap();
        let first = answer(&mut stream).await;
        assert_eq!(first, early.status, "{}", early.path);
    }
    drop(pending);
    world.end().await;
}

#[tokio::test]
async fn who_sends_more_than_is_thrown_away_is_answered_and_the_connection_closed() {
    for bound in [("UNREAD_BODY_MS", "300"), ("UNREAD_BODY_BYTES", "100000")] {
        let Scene { world, early, pending } = bounded(&[bound]).await;
        for early in &early {
            let mut stream = connected(&world).await;
            stream.write_all(early.head(BYTES * 1_000, "").as_bytes()).await.unwrap();
            let sending = async {
                // What it has begun it would go on with for long.
                while !pause(&stream).await && stream.write_all(&[b' '; 50_000]).await.is_ok() {}
            };
            timeout(DEADLINE, sending).await.expect("there is no answer");
            let said = String::from_utf8(closed(&mut stream).await).unwrap();
            assert_eq!(status(&said), early.status, "{}: {said}", early.path);
            assert!(said.to_lowercase().contains("\r\nconnection: close\r\n"), "{said}");
        }
        drop(pending);
        world.end().await;
    }
}
