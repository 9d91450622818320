//! Stopping a tool call in flight by asking the agent to, whatever tool it is and wherever it is carried out.

use kairo_core::event_json::EventJson;
use kairo_local::{Service, Tools};
use kairo_proto::v1;
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    time::timeout,
};

use crate::{
    faults::audit,
    world::{DEADLINE, Sent, Wanted, World, no_process_is_left_in},
};

const AGENT: &str = "default";

/// A user who has something done that lasts, and another message that stops it: the model finds the call in the facts.
fn scenario(tool: &str, arguments: &Value) -> Value {
    let facts = r#""action_id":"(?<id>[0-9a-f-]{36})""#;
    json!({ "rules": [
        // The first message's turn goes on after the second has been spoken.
        { "name": "told", "when": { "system_matches": "answer it now: do it" }, "reply": "I was told" },
        {
            "name": "lasting",
            "when": { "user_contains": "do it" },
            "turn": [{ "tool_calls": [{ "tool": tool, "arguments": arguments }] }],
        },
        {
            "name": "stop",
            "when": { "user_contains": "stop it", "step": 0, "system_matches": facts },
            "reply": { "tool_calls": [{ "tool": "action.cancel", "arguments": { "action_id": "{{ captures.id }}" } }] },
        },
        {
            "name": "stopped",
            "when": { "user_contains": "stop it", "step_at_least": 1 },
            "reply": "{{ results[-1].value.status }}",
        },
        { "name": "nothing", "when": { "user_contains": "stop it" }, "reply": "nothing to stop" },
        { "name": "slow", "when": { "user_contains": "think" }, "reply": { "text": "I have thought", "delay_ms": 3000 } },
    ] })
}

async fn of_type(world: &World, sent: &Sent, type_name: &str) -> EventJson {
    world.log.wait(|event| event.correlation_id == sent.event_id && event.type_name == type_name).await
}

/// Asks the agent to stop what `sent` began, and checks that both turns end, the call once and with this kind of error, at an order
/// in the log.
async fn assert_stopped(world: &World, sent: &Sent, kind: &str) -> Sent {
    let stop = world.send(AGENT, "stop it").await;
    assert_eq!(world.reply(&stop).await, kind);
    let result = of_type(world, sent, v1::ToolResult::TYPE).await;
    assert_eq!(result.payload["error"], kind, "{}", result.payload);
    assert_eq!(world.reply(sent).await, "I was told");
    let order = of_type(world, &stop, v1::ToolOrder::TYPE).await;
    assert_eq!(order.payload["action_id"], result.payload["action_id"]);
    let call = world.log.wait(|event| Some(event.event_id) == order.causation_id).await;
    assert_eq!(call.type_name, v1::ToolInvoke::TYPE, "the call that orders it");
    assert_eq!(call.payload["action_id"], order.payload["by_action_id"]);
    stop
}

#[tokio::test]
async fn a_tool_of_an_mcp_server_is_stopped_on_whichever_replica_has_it() {
    let tools = Tools::of_this_checkout().expect("run ./scripts/test");
    let Some(everything) = tools.mcp_everything() else {
        eprintln!("skipped: this machine has no Node");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let server = json!([{ "name": "slow", "command": everything, "trust_hints": false, "trust_content": true,
                          "cwd": folder.path() }]);
    // It lasts longer than anything is waited for.
    let lasting = json!({ "duration": 600, "steps": 6000 });
    let world = Wanted::new(&scenario("slow.trigger-long-running-operation", &lasting).to_string())
        .replicas(Service::ToolRunner, 2)
        .env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__MCP", server.to_string())
        .env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__CALL_TIMEOUT_MS", "600000")
        .start()
        .await;
    world.define(AGENT).await;
    let (mut here, mut elsewhere) = (false, false);
    // Who is given what is up to the server.
    while !(here && elsewhere) {
        let sent = world.send(AGENT, "do it").await;
        of_type(&world, &sent, v1::ToolProgress::TYPE).await;
        // Whether the server stopped in time, or at all, it does not say.
        let stop = assert_stopped(&world, &sent, "in_doubt").await;
        let runner = async |sent| of_type(&world, sent, v1::ToolInvoke::TYPE).await.payload["runner"].clone();
        let same = runner(&sent).await == runner(&stop).await;
        (here, elsewhere) = (here || same, elsewhere || !same);
    }
    audit::passes(&world).await;
    world.end().await;
    no_process_is_left_in(folder.path()).await;
}

/// A web server that never answers.
struct Site(TcpListener);

impl Site {
    async fn start() -> (Self, World) {
        let site = Self(TcpListener::bind("127.0.0.1:0").await.unwrap());
        let host = site.0.local_addr().unwrap().to_string();
        let scenario = scenario("http.get", &json!({ "url": format!("http://{host}/") }));
        let world = Wanted::new(&scenario.to_string())
            .env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__HTTP__ALLOW_HOSTS", json!([host]).to_string())
            .env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__HTTP__ALLOW_PRIVATE", "127.0.0.1")
            .env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__HTTP__TIMEOUT_MS", "600000")
            .start()
            .await;
        world.define(AGENT).await;
        (site, world)
    }

    async fn asked(&self) -> TcpStream {
        timeout(DEADLINE, self.0.accept()).await.expect("nobody asked").unwrap().0
    }
}

#[tokio::test]
async fn a_request_in_flight_is_given_up() {
    let (site, world) = Site::start().await;
    let sent = world.send(AGENT, "do it").await;
    let _asked = site.asked().await;
    assert_stopped(&world, &sent, "canceled").await;
    assert_eq!(world.ask(AGENT, "stop it").await, "nothing to stop", "it is no longer among the facts");
    audit::passes(&world).await;
    world.end().await;
}

#[tokio::test]
async fn an_order_to_stop_is_obeyed_before_the_messages_that_wait() {
    let (site, world) = Site::start().await;
    let sent = world.send(AGENT, "do it").await;
    let _asked = site.asked().await;
    let action = of_type(&world, &sent, v1::ToolInvoke::TYPE).await.payload["action_id"].clone();
    let mut waiting = Vec::new();
    for number in 0..5 {
        waiting.push(world.send(AGENT, &format!("think of {number}")).await);
    }
    let order = json!({ "user": "ann", "agent": AGENT, "command": "cancel", "action_id": action });
    let (status, answer) = world.post("/v1/commands", &order).await;
    assert_eq!(status, 202, "{answer}");
    of_type(&world, &sent, v1::ToolResult::TYPE).await;
    // In the log, the agent's answer to the order stands before that to the last message.
    let decided = |of: &Value| {
        let of = of.clone();
        move |event: &EventJson| json!(event.correlation_id) == of && event.subject.ends_with(".decision")
    };
    let obeyed = world.log.wait(decided(&answer["event_id"])).await;
    for sent in &waiting {
        assert_eq!(world.reply(sent).await, "I have thought");
    }
    let last = world.log.wait(decided(&json!(waiting.last().unwrap().event_id))).await;
    assert!(obeyed.sequence < last.sequence, "{}", world.log.text());
    audit::passes(&world).await;
    world.end().await;
}

#[tokio::test]
async fn orders_to_stop_what_was_stopped_or_has_ended_change_nothing() {
    let (site, world) = Site::start().await;
    let sent = world.send(AGENT, "do it").await;
    let asked = site.asked().await;
    let action = of_type(&world, &sent, v1::ToolInvoke::TYPE).await.payload["action_id"].clone();
    let order = json!({ "user": "ann", "agent": AGENT, "command": "cancel", "action_id": action });
    let mut orders = Vec::new();
    for _ in 0..2 {
        let (status, answer) = world.post("/v1/commands", &order).await;
        assert_eq!(status, 202, "{answer}");
        orders.push(answer["event_id"].clone());
    }
    of_type(&world, &sent, v1::ToolResult::TYPE).await;
    drop(asked);
    let of_order = |event: &EventJson| orders.contains(&json!(event.correlation_id));
    // The second finds it stopped, or is told that it is no longer in progress.
    world.log.wait_for(2, |event| of_order(event) && !event.type_name.starts_with("kairo.user")).await;
    world.settled().await;
    let events = world.log.now(&world.bus).await;
    let ends =
        events.iter().filter(|event| event.type_name == v1::ToolResult::TYPE && event.payload["action_id"] == action);
    assert_eq!(ends.count(), 1, "{}", world.log.text());
    audit::passes(&world).await;
    world.end().await;
}
