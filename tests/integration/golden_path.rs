//! The path of one message: words, decision, tool call, result, reply.

use kairo_core::vocabulary::READER;
use kairo_proto::v1;
use serde_json::json;

use crate::world::{Wanted, scenario::USUAL};

#[tokio::test]
async fn a_message_becomes_a_decision_a_tool_call_a_result_and_a_reply() {
    for epoch in [READER, READER - 1] {
        a_message_becomes_a_reply(epoch).await;
    }
}

async fn a_message_becomes_a_reply(epoch: u32) {
    let world = Wanted::new(USUAL).env_of_all("KAIRO_NATS__EPOCH", epoch.to_string()).start().await;
    world.define("default").await;
    let sent = world.send("default", "the time please").await;
    let reply = world.reply(&sent).await;
    assert!(reply.starts_with("It is 2"), "{reply}");

    let events = world.events_of(&sent).await;
    let types: Vec<&str> = events.iter().map(|event| event.type_name.as_str()).collect();
    assert_eq!(
        types,
        [
            v1::UserMessage::TYPE,
            v1::AgentMessage::TYPE,
            v1::ThreadCreated::TYPE,
            v1::AgentAction::TYPE,
            v1::ToolInvoke::TYPE,
            v1::ToolResult::TYPE,
            v1::AgentAction::TYPE,
        ]
    );
    let mut stored: Vec<u64> = events.iter().map(|event| event.sequence).collect();
    stored.dedup();
    assert_eq!(stored.len(), 6, "a turn with one tool is six stored messages");
    for (event, cause) in [(1, 0), (3, 1), (4, 3), (5, 4), (6, 5)] {
        assert_eq!(events[event].causation_id, Some(events[cause].event_id), "{}", events[event].type_name);
    }
    let thread = events[2].payload["thread_id"].as_str().unwrap();
    assert!(events[2..].iter().all(|event| event.thread_id.as_deref() == Some(thread)));
    world.end().await;
}

#[tokio::test]
async fn several_tools_run_at_once_and_a_process_is_a_tool() {
    let scenario = r#"
rules:
  - name: run
    when: { user_contains: "run it" }
    turn:
      - tool_calls:
          - { tool: process.run, arguments: { program: echo, args: ["hello", "$(whoami)"] } }
          - { tool: tools.now, arguments: {} }
      - text: "It said {{ results[0].value.stdout }}"
"#;
    let world = Wanted::new(scenario).start().await;
    world.define("default").await;
    let reply = world.ask("default", "run it").await;
    assert_eq!(reply.trim(), "It said hello $(whoami)");
    world.end().await;
}

#[tokio::test]
async fn the_same_message_id_is_the_same_message() {
    let world = Wanted::new(USUAL).start().await;
    world.define("default").await;
    let message = json!({ "user": "ann", "text": "hello", "message_id": "m-1" });
    let first = world.send_as(&message).await;
    let second = world.send_as(&message).await;
    assert_eq!((first.event_id, first.sequence), (second.event_id, second.sequence));
    world.reply(&first).await;
    let all = world.log.now(&world.bus).await;
    assert_eq!(all.iter().filter(|event| event.type_name == v1::UserMessage::TYPE).count(), 1);
    world.end().await;
}

#[tokio::test]
async fn a_message_for_nobody_tells_its_sender() {
    let world = Wanted::new(USUAL).start().await;
    let sent = world.send("nobody", "hello?").await;
    let failure = world.log.wait(|event| event.type_name == v1::UserMessageUndelivered::TYPE).await;
    assert_eq!(failure.correlation_id, sent.event_id);
    assert!(failure.text().contains("no agent named \"nobody\""), "{}", failure.text());
    world.end().await;
}
