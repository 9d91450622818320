//! Decisions that begin again when another message comes, where the agent wants that.

use futures::StreamExt;
use kairo_core::{
    event_json::EventJson,
    vocabulary::{FIRST, READER, READER_HEADER},
};
use kairo_local::Service;
use kairo_proto::v1::{self, AgentDecision, GivenUpCall};
use serde_json::json;
use tokio::time::timeout;

use crate::{
    faults::audit,
    world::{DEADLINE, Wanted, World},
};

#[tokio::test]
async fn a_decision_is_begun_again_when_another_message_comes_and_the_agent_wants_that() {
    // The answer to the first alone would come after the deadline of every wait.
    let scenario = r#"
rules:
  - name: never
    when: { user_contains: first }
    reply: { text: "only the first", delay_ms: 600000 }
  - name: both
    when: { user_contains: second }
    reply: "both"
"#;
    for (replicas, epoch) in [(1, READER), (2, READER), (1, FIRST)] {
        let world = start_with_policy(scenario, replicas, epoch).await;
        let first = world.send("restarts", "first").await;
        // Only when the model is being asked there is something to begin again.
        requested(&world, 1).await;
        let second = world.send("restarts", "second").await;
        assert_eq!(world.reply(&second).await, "both");
        let joined = world.log.wait(|event| event.type_name == v1::AgentJoined::TYPE).await;
        assert_eq!(joined.correlation_id, first.event_id);
        // The decision says that a call was given up for it, so it is counted; in an epoch that knows of such.
        world.projected().await;
        let (_, usage) = world.get("/v1/usage?agent=restarts").await;
        let given_up = usize::from(epoch > FIRST);
        let counted = (&usage["total"]["calls"], &usage["total"]["failed"]);
        assert_eq!(counted, (&json!(1 + given_up), &json!(given_up)), "{usage}");
        let newer = world.raw_log().await.into_iter().filter(|raw| raw.header(READER_HEADER).is_some());
        assert_eq!(newer.count(), given_up);
        audit::passes(&world).await;
        world.end().await;
    }
}

#[tokio::test]
async fn a_later_step_is_begun_again_with_the_message_and_what_its_calls_came_to() {
    // Whatever is made of the result without the second message would come after the deadline of every wait.
    let scenario = r#"
rules:
  - name: both
    when: { user_contains: second }
    reply: "both"
  - name: never
    when: { user_contains: first }
    turn:
      - tool_calls: [{ tool: tools.now, arguments: {} }]
      - { text: "only the first", delay_ms: 600000 }
"#;
    for replicas in [1, 2] {
        let mut world = start_with_policy(scenario, replicas, READER).await;
        let first = world.send("restarts", "first").await;
        requested(&world, 2).await;
        if replicas == 2 {
            // Whoever takes over asks again what nobody answered, and nothing of what is known.
            for replica in 0..replicas {
                world.stack.kill9(Service::AgentRuntime, replica).await.unwrap();
                world.stack.restart(Service::AgentRuntime, replica).await.unwrap();
            }
            requested(&world, 3).await;
        }
        let asked_before = world.model_requests().await.len();
        let second = world.send("restarts", "second").await;
        assert_eq!(world.reply(&second).await, "both");

        let requests = world.model_requests().await;
        assert_eq!(requests.len(), asked_before + 1, "one for both messages: {requests:?}");
        let both = requests.iter().map(|request| request["body"]["messages"].to_string());
        let both: Vec<String> = both.filter(|messages| messages.contains("second")).collect();
        assert!(both[0].contains("first") && both[0].contains("time_zone"), "with the result: {}", both[0]);
        let events = world.events_of(&first).await;
        let count = |type_name: &str| events.iter().filter(|event| event.type_name == type_name).count();
        assert_eq!((count(v1::ToolInvoke::TYPE), count(v1::ToolResult::TYPE), count(v1::AgentJoined::TYPE)), (1, 1, 1));
        assert!(!events.iter().any(EventJson::is_final_reply));
        audit::passes(&world).await;
        world.end().await;
    }
}

/// Waits until so many requests have come to the model.
async fn requested(world: &World, count: usize) {
    let asked = timeout(DEADLINE, async { while world.model_requests().await.len() < count {} }).await;
    assert!(asked.is_ok(), "the model was not asked {count} times");
}

#[tokio::test]
async fn what_had_arrived_of_a_call_that_is_given_up_is_recorded_and_counted() {
    // Half of the answer to the first comes, and no end.
    let scenario = r#"
rules:
  - name: half
    when: { user_contains: first }
    reply: { text: "this answer breaks off in its middle", fault: stall, chunk_chars: 3 }
  - name: both
    when: { user_contains: second }
    reply: { text: "both", usage: { prompt_tokens: 100, completion_tokens: 10 } }
"#;
    let world = start_with_policy(scenario, 1, READER).await;
    let mut live = world.bus.nats().unwrap().client.subscribe("kairo.live.restarts.token").await.unwrap();
    world.bus.nats().unwrap().client.flush().await.unwrap();
    world.send("restarts", "first").await;
    timeout(DEADLINE, live.next()).await.expect("no piece was ever told").unwrap();
    let second = world.send("restarts", "second").await;
    assert_eq!(world.reply(&second).await, "both");
    let records = world.raw_log().await.into_iter().filter_map(|raw| raw.read(usize::MAX).ok());
    let decisions = records.filter_map(|record| AgentDecision::try_from(record.body).ok());
    let given_up: Vec<GivenUpCall> = decisions.flat_map(|decision| decision.given_up).collect();
    let [call] = &given_up[..] else { panic!("{given_up:?}") };
    // The model server had not said what it took: its request is counted here.
    assert_eq!((call.reason.as_str(), call.estimated), ("interrupted", true), "{call:?}");
    assert!(!call.model.is_empty() && call.received_pieces > 0 && call.input_tokens > 0, "{call:?}");
    assert!((1..36).contains(&call.received_bytes), "{call:?}");
    assert_eq!(call.output_tokens, call.received_bytes.div_ceil(4), "{call:?}");
    world.projected().await;
    let (_, usage) = world.get("/v1/usage?agent=restarts").await;
    let counted = (&usage["total"]["input_tokens"], &usage["total"]["output_tokens"]);
    assert_eq!(counted, (&json!(100 + call.input_tokens), &json!(10 + call.output_tokens)), "{usage}");
    audit::passes(&world).await;
    world.end().await;
}

async fn start_with_policy(scenario: &str, replicas: usize, epoch: u32) -> World {
    let wanted = Wanted::new(scenario).env_of_all("KAIRO_NATS__EPOCH", epoch.to_string());
    let world = wanted.replicas(Service::AgentRuntime, replicas).start().await;
    let profile = json!({ "agent": "restarts", "prompt": "Be brief.", "interjection": "restart" });
    assert_eq!(world.post("/v1/agents", &profile).await.0, 201);
    world
}
