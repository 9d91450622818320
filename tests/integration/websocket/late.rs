//! Coming late to a process that runs already: what it wrote before comes first, then what it writes.

use std::path::Path;

use futures::StreamExt;
use kairo_proto::v1;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::client::Client;
use crate::world::{DEADLINE, Wanted, World};

/// Writes, waits for a pipe to be written to, and writes again.
const SCRIPT: &str = "for n in 1 2 3; do echo before $n; done; echo ready > \"$1\"; read -r _ < \"$2\"; \
    for n in 1 2 3; do echo after $n; done";
const WRITTEN: &str = "before 1\nbefore 2\nbefore 3\nafter 1\nafter 2\nafter 3\n";

/// A Kairo whose agent runs the script when told to.
async fn start(folder: &Path) -> World {
    let arguments = json!({ "program": "sh", "args": ["-c", SCRIPT, "sh", folder.join("ready"), folder.join("go")] });
    let scenario = json!({ "rules": [{
        "name": "run",
        "when": {},
        "turn": [{ "tool_calls": [{ "tool": "process.run", "arguments": arguments }] }, "done"],
    }] });
    let world = Wanted::new(&scenario.to_string()).start().await;
    world.define("default").await;
    let offered = |event: &kairo_core::event_json::EventJson| {
        event.type_name == v1::ToolCatalogue::TYPE && event.text().contains("process.run")
    };
    world.log.wait(offered).await;
    world
}

async fn pipe(path: &Path) {
    let made = tokio::process::Command::new("mkfifo").arg(path).status().await.unwrap();
    assert!(made.success());
}

/// The live pieces of an event stream.
async fn output_of_sse(world: &World) -> impl futures::Stream<Item = Value> + Unpin + use<> {
    let answer = reqwest::get(world.url("/v1/events/stream?agent=default&live=true")).await.unwrap();
    let mut text = String::new();
    let events = answer.error_for_status().unwrap().bytes_stream().flat_map(move |bytes| {
        text.push_str(std::str::from_utf8(&bytes.unwrap()).unwrap());
        let whole = text.rfind("\n\n").map_or(0, |end| end + 2);
        let events: Vec<String> = text.drain(..whole).collect::<String>().split("\n\n").map(str::to_owned).collect();
        futures::stream::iter(events)
    });
    Box::pin(events.filter_map(|event| {
        let data = event.strip_prefix("event: output\ndata: ").map(|data| serde_json::from_str(data).unwrap());
        std::future::ready(data)
    }))
}

/// Takes in pieces until all of what is expected was written.
fn take_in(pieces: &mut Vec<Value>, piece: Value, expected: &str) -> bool {
    pieces.push(piece);
    let text: String = pieces.iter().map(|piece| piece["text"].as_str().unwrap()).collect();
    assert!(expected.starts_with(&text), "{text:?}");
    text == expected
}

#[tokio::test]
async fn a_late_joiner_sees_what_a_running_process_wrote_before_and_then_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let [ready, go] = ["ready", "go"].map(|name| folder.path().join(name));
    for path in [&ready, &go] {
        pipe(path).await;
    }
    let world = start(folder.path()).await;
    let sent = world.send("default", "run it").await;
    // Opening the pipe waits until the process has written its first part.
    let waited = timeout(DEADLINE, tokio::fs::read(&ready)).await;
    assert_eq!(waited.expect("the process never got there").unwrap(), b"ready\n");

    let before = &WRITTEN[..WRITTEN.find("after").unwrap()];
    let mut sse = output_of_sse(&world).await;
    let mut client = Client::connect(&world).await;
    client.send(json!({ "type": "subscribe", "id": "late", "agent": "default", "live": true })).await;
    client.expect("subscribed", &[]).await;
    let mut next_of_sse =
        async || timeout(DEADLINE, sse.next()).await.expect("no piece came").expect("the stream ended");
    let (mut over_sse, mut over_socket) = (Vec::new(), Vec::new());
    while !take_in(&mut over_sse, next_of_sse().await, before) {}
    while !take_in(&mut over_socket, client.expect("live", &["event"]).await["data"].clone(), before) {}

    tokio::fs::write(&go, "go\n").await.unwrap();
    while !take_in(&mut over_sse, next_of_sse().await, WRITTEN) {}
    while !take_in(&mut over_socket, client.expect("live", &["event"]).await["data"].clone(), WRITTEN) {}
    assert_eq!(over_sse, over_socket);
    assert_eq!(world.reply(&sent).await, "done");
    world.end().await;
}
