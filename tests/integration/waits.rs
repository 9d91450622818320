//! `kairo status` shows the work that waits: for whom, since when, and the command that ends it.

use kairo_local::Service;
use kairo_proto::v1;
use serde_json::{Value, json};

use crate::{
    command_line::kairo,
    world::{DEADLINE, Wanted, World},
};

/// "pay" needs consent, "run" starts a program that does not end, and "think" is never answered.
const SCENARIO: &str = r#"
rules:
  - name: pay
    when: { user_contains: pay }
    turn:
      - tool_calls: [{ tool: tools.now, arguments: {} }]
      - text: "paid"
  - name: run
    when: { user_contains: run }
    turn:
      - tool_calls: [{ tool: process.run, arguments: { program: sh, args: ["-c", "sleep 600"] } }]
      - text: "it ran"
  - name: think
    when: { user_contains: think }
    reply: { text: "at last", delay_ms: 600000 }
"#;

async fn waits(world: &World) -> Vec<Value> {
    let (status, answer) = world.get("/v1/status").await;
    assert_eq!(status, 200, "{answer}");
    answer["waits"].as_array().unwrap().clone()
}

/// Waits until work waits for this reason, and returns the row of the status.
async fn wait(world: &World, reason: &str) -> Value {
    let found = async {
        loop {
            if let Some(row) = waits(world).await.into_iter().find(|row| row["waits_for"] == reason) {
                return row;
            }
        }
    };
    tokio::time::timeout(DEADLINE, found).await.unwrap_or_else(|_| panic!("nothing ever waited for {reason}"))
}

/// Waits until `kairo status` shows all of these. On a busy machine it goes without the read model's answer.
async fn until_shown(world: &World, parts: &[String]) {
    let shown = async {
        loop {
            let shown = kairo(world, &["status"]).await;
            let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
            if parts.iter().all(|part| shown.contains(part)) {
                return;
            }
        }
    };
    tokio::time::timeout(DEADLINE, shown).await.unwrap_or_else(|_| panic!("the status never showed all of {parts:?}"));
}

#[tokio::test]
async fn the_status_shows_what_work_waits_for_and_what_ends_it() {
    let mut world =
        Wanted::new(SCENARIO).env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__APPROVAL", r#"["tools.now"]"#).start().await;
    for agent in ["cashier", "runner", "thinker"] {
        world.define(agent).await;
    }
    assert_eq!(waits(&world).await, Vec::<Value>::new());

    let paying = world.send("cashier", "pay, please").await;
    let consent = wait(&world, "consent").await;
    let asked = (&consent["count"], &consent["agent"], &consent["user"], &consent["tool"], &consent["turn_id"]);
    let turn = json!(paying.event_id);
    assert_eq!(asked, (&json!(1), &json!("cashier"), &json!("ann"), &json!("tools.now"), &turn));

    let running = world.send("runner", "run, please").await;
    let call = wait(&world, "tool").await;
    let asked = (&call["agent"], &call["tool"], &call["turn_id"]);
    assert_eq!(asked, (&json!("runner"), &json!("process.run"), &json!(running.event_id)));

    let thinking = world.send("thinker", "think, please").await;
    let decision = wait(&world, "decision").await;
    let asked = (&decision["agent"], &decision["turn_id"], &decision["action_id"]);
    assert_eq!(asked, (&json!("thinker"), &json!(thinking.event_id), &Value::Null));

    let short = |row: &Value| row["action_id"].as_str().unwrap()[..8].to_owned();
    let ends = [
        format!("kairo approve {}", short(&consent)),
        format!("kairo actions cancel {}", short(&call)),
        format!("kairo turn show {}", thinking.event_id),
    ];
    until_shown(&world, &ends).await;

    // What the commands say they do, they do.
    for command in &ends[..2] {
        let arguments: Vec<&str> = command.split(' ').skip(1).collect();
        let done = kairo(&world, &arguments).await;
        assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
    }
    assert_eq!(world.reply(&paying).await, "paid");
    assert_eq!(world.reply(&running).await, "it ran");
    world.projected().await;
    let gone = ["consent", "tool"];
    let left = waits(&world).await;
    assert!(left.iter().all(|row| !gone.iter().any(|reason| row["waits_for"] == *reason)), "{left:?}");
    // Not `end`, which waits for all decisions.
    world.stack.stop().await.unwrap();
}

#[tokio::test]
async fn a_call_that_no_replica_begins_is_shown_until_one_does() {
    let mut world = Wanted::new(SCENARIO).start().await;
    world.define("cashier").await;
    world.stack.kill9(Service::ToolRunner, 0).await.unwrap();
    let paying = world.send("cashier", "pay, please").await;
    let call = wait(&world, "runner").await;
    assert_eq!((&call["agent"], &call["tool"]), (&json!("cashier"), &json!("tools.now")));
    let expected = ["tool-runner: no replica is ready", "a replica that begins a call"];
    until_shown(&world, &expected.map(str::to_owned)).await;
    world.stack.restart(Service::ToolRunner, 0).await.unwrap();
    assert_eq!(world.reply(&paying).await, "paid");
    let ended = world.log.now(&world.bus).await;
    assert_eq!(ended.iter().filter(|event| event.type_name == v1::ToolResult::TYPE).count(), 1);
    world.end().await;
}
