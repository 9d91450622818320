//! Replicas lost while they carry out an action.

use kairo_core::event_json::EventJson;
use kairo_local::{Service, Tools};
use kairo_proto::v1;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use super::{
    audit,
    turn::{self, AGENT, wanted},
    workpiece::Workpiece,
};
use crate::world::{DEADLINE, Sent, Wanted, World, no_process_is_left_in};

/// The end of the one tool call of a turn.
async fn result(world: &World, sent: &Sent) -> EventJson {
    world.log.wait(|event| event.correlation_id == sent.event_id && event.type_name == v1::ToolResult::TYPE).await
}

async fn begun(world: &World, sent: &Sent) {
    world.log.wait(|event| event.correlation_id == sent.event_id && event.type_name == v1::ToolInvoke::TYPE).await;
}

/// A tool of an MCP server that takes half a minute and is not known to be repeatable.
fn with_slow_tool(everything: &str, folder: &TempDir) -> Wanted {
    let scenario = json!({ "rules": [{
        "name": "slow",
        "when": { "user_contains": "slowly" },
        "turn": [
            { "tool_calls": [{
                "tool": "slow.trigger-long-running-operation",
                "arguments": { "duration": 30, "steps": 1 },
            }] },
            "I was told: {{ last_result_text }}",
        ],
    }] });
    let server = json!([{ "name": "slow", "command": everything, "trust_hints": false, "cwd": folder.path() }]);
    Wanted::new(&scenario.to_string()).env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__MCP", server.to_string())
}

#[tokio::test]
async fn a_tool_that_cannot_be_repeated_is_in_doubt_when_its_runner_is_killed() {
    let tools = Tools::of_this_checkout().expect("run ./scripts/test");
    let Some(everything) = tools.mcp_everything() else {
        eprintln!("skipped: this machine has no Node");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut world = with_slow_tool(&everything.display().to_string(), &folder).start().await;
    world.define(AGENT).await;
    for takeover in [false, true] {
        let sent = world.send(AGENT, "slowly").await;
        begun(&world, &sent).await;
        if takeover {
            world.stack.start(Service::ToolRunner).await.unwrap();
            world.stack.kill9(Service::ToolRunner, 0).await.unwrap();
        } else {
            world.stack.kill9(Service::ToolRunner, 0).await.unwrap();
            world.stack.restart(Service::ToolRunner, 0).await.unwrap();
        }
        let result = result(&world, &sent).await;
        assert_eq!(result.payload["error"], "in_doubt", "{}", result.payload);
        let reply = world.reply(&sent).await;
        assert!(reply.contains("in_doubt"), "the agent is told: {reply}");
    }
    audit::passes(&world).await;
    world.end().await;
    no_process_is_left_in(folder.path()).await;
}

/// A web server whose answers the test gives.
struct Site(TcpListener);

impl Site {
    async fn new() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    /// A Kairo whose agent reads this site when it is asked to.
    fn wanted(&self) -> Wanted {
        let host = self.0.local_addr().unwrap().to_string();
        let scenario = json!({ "rules": [{
            "name": "read",
            "when": { "user_contains": "read it" },
            "turn": [
                { "tool_calls": [{ "tool": "http.get", "arguments": { "url": format!("http://{host}/") } }] },
                "It says: {{ last_result.body }}",
            ],
        }] });
        Wanted::new(&scenario.to_string())
            .env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__HTTP__ALLOW_HOSTS", json!([host]).to_string())
            .env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__HTTP__ALLOW_PRIVATE", "127.0.0.1")
    }

    /// Waits until somebody asks.
    async fn asked(&self) -> TcpStream {
        let (connection, _) = timeout(DEADLINE, self.0.accept()).await.expect("nobody asked").unwrap();
        let mut request = BufReader::new(connection);
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            assert_ne!(request.read_line(&mut line).await.unwrap(), 0);
        }
        request.into_inner()
    }
}

async fn answer(mut asked: TcpStream, text: &str) {
    let length = text.len();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close");
    // Whoever asked may be gone.
    let _ = asked.write_all(format!("{head}\r\n\r\n{text}").as_bytes()).await;
}

#[tokio::test]
async fn a_tool_that_can_be_repeated_runs_again_when_its_runner_is_killed() {
    let site = Site::new().await;
    let mut world = site.wanted().start().await;
    world.define(AGENT).await;
    let sent = world.send(AGENT, "read it").await;
    let _first = site.asked().await;
    world.stack.kill9(Service::ToolRunner, 0).await.unwrap();
    world.stack.restart(Service::ToolRunner, 0).await.unwrap();
    answer(site.asked().await, "the second").await;
    assert_eq!(world.reply(&sent).await, "It says: the second");
    assert_eq!(result(&world, &sent).await.payload["ok"], true);
    audit::passes(&world).await;
    world.end().await;
}

#[tokio::test]
async fn a_frozen_runner_s_late_result_is_refused() {
    let site = Site::new().await;
    let mut world = site.wanted().start().await;
    world.define(AGENT).await;
    let sent = world.send(AGENT, "read it").await;
    let first = site.asked().await;
    world.stack.freeze(Service::ToolRunner, 0).unwrap();
    world.stack.start(Service::ToolRunner).await.unwrap();
    answer(site.asked().await, "the second").await;
    assert_eq!(world.reply(&sent).await, "It says: the second");
    world.stack.thaw(Service::ToolRunner, 0).unwrap();
    answer(first, "the first").await;
    // An orderly end finishes what was begun: afterwards its result is written or refused.
    world.stack.stop_one(Service::ToolRunner, 0).await.unwrap();
    audit::passes(&world).await;
    world.end().await;
}

#[tokio::test]
async fn a_tool_at_work_outlives_nats_and_runs_once() {
    let site = Site::new().await;
    let mut world = site.wanted().replicas(Service::ToolRunner, 2).start().await;
    world.define(AGENT).await;
    let sent = world.send(AGENT, "read it").await;
    let only = site.asked().await;
    world.nats.kill9().await.unwrap();
    world.nats.restart().await.unwrap();
    answer(only, "the only").await;
    assert_eq!(world.reply(&sent).await, "It says: the only");
    audit::passes(&world).await;
    world.end().await;
}

/// The end of the process of a turn, which a supervisor that is not its own reports.
async fn lost(world: &World, sent: &Sent) -> Value {
    let of_turn = |event: &EventJson| event.correlation_id == sent.event_id;
    let spawned = world.log.wait(|event| of_turn(event) && event.type_name == v1::ProcessSpawned::TYPE).await;
    let exited = world.log.wait(|event| of_turn(event) && event.type_name == v1::ProcessExited::TYPE).await;
    assert_eq!(exited.payload["outcome"], "supervisor_lost", "{}", exited.payload);
    assert_ne!(exited.payload["supervisor"], spawned.payload["supervisor"]);
    exited.payload
}

#[tokio::test]
async fn a_process_dies_with_its_supervisor_and_another_says_so() {
    let mut world = turn::start(wanted()).await;
    let mut workpiece = Workpiece::new();
    let sent = turn::send(&world, &workpiece).await;
    workpiece.begun().await;
    world.stack.start(Service::ProcessSupervisor).await.unwrap();
    world.stack.kill9(Service::ProcessSupervisor, 0).await.unwrap();
    workpiece.gone().await;
    lost(&world, &sent).await;
    let reply = world.reply(&sent).await;
    assert!(reply.contains("in_doubt"), "the agent is told: {reply}");
    assert_eq!(workpiece.effects(), 1);
    audit::passes(&world).await;
    world.end().await;
}

#[tokio::test]
async fn a_process_dies_with_a_frozen_supervisor_and_its_end_stands_once() {
    let mut world = turn::start(wanted()).await;
    let mut workpiece = Workpiece::new();
    let sent = turn::send(&world, &workpiece).await;
    workpiece.begun().await;
    world.stack.start(Service::ProcessSupervisor).await.unwrap();
    world.stack.freeze(Service::ProcessSupervisor, 0).unwrap();
    workpiece.gone().await;
    lost(&world, &sent).await;
    world.reply(&sent).await;
    world.stack.thaw(Service::ProcessSupervisor, 0).unwrap();
    // An orderly end records what was begun: afterwards its word is written or refused.
    world.stack.stop_one(Service::ProcessSupervisor, 0).await.unwrap();
    assert_eq!(workpiece.effects(), 1);
    audit::passes(&world).await;
    world.end().await;
}
