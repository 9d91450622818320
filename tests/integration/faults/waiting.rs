//! Questions to a user that are answered while the services waiting for the answer are dead.

use kairo_core::event_json::EventJson;
use kairo_local::Service;
use kairo_proto::v1;
use serde_json::json;

use super::{
    audit,
    chains::{self, CALLS},
    killed,
    turn::AGENT,
    workpiece::Workpiece,
};
use crate::world::{Sent, Wanted, World};

/// An agent that has asked its user whether to begin a thread, and that question.
async fn with_a_question() -> (World, Sent, EventJson) {
    let scenario = json!({ "rules": [
        {
            "name": "interrupts",
            "when": { "system_starts_with": "You are thread.match", "user_matches": r#""message":"[^"]*dentist"# },
            "reply": { "json": { "action": "suggest_new", "reason": "an appointment" } },
        },
        {
            "name": "continues",
            "when": { "system_starts_with": "You are thread.match" },
            "reply": { "json": { "action": "continue" } },
        },
        {
            "name": "sum up",
            "when": { "system_starts_with": "You are thread.summarize" },
            "reply": { "json": { "title": "talk", "summary": "this and that" } },
        },
        { "name": "echo", "when": {}, "reply": "You said: {{ user }}" },
    ] });
    let world = Wanted::new(&scenario.to_string()).start().await;
    let profile = json!({ "agent": AGENT, "prompt": "Be brief.", "threads": "topics" });
    assert_eq!(world.post("/v1/agents", &profile).await.0, 201);
    world.ask(AGENT, "about the meeting").await;
    let sent = world.send(AGENT, "about the dentist").await;
    let asked = world.log.wait(|event| event.type_name == v1::ThreadSuggested::TYPE).await;
    (world, sent, asked)
}

#[tokio::test]
async fn a_choice_that_comes_while_agent_runtime_is_dead_is_followed_once() {
    let (mut world, sent, asked) = with_a_question().await;
    world.stack.kill9(Service::AgentRuntime, 0).await.unwrap();
    let choice = json!({
        "user": "ann", "agent": AGENT, "offer_id": asked.event_id, "option": "accept", "choice_id": "c-1",
    });
    // A client that was not sure, and one that does not want to wait.
    for _ in 0..2 {
        assert_eq!(world.post("/v1/choices", &choice).await.0, 202);
    }
    let meanwhile = world.send(AGENT, "are you there?").await;
    world.stack.restart(Service::AgentRuntime, 0).await.unwrap();
    assert_eq!(world.reply(&sent).await, "You said: about the dentist");
    world.reply(&meanwhile).await;
    audit::passes(&world).await;
    let events = world.log.now(&world.bus).await;
    let placed: Vec<_> = events
        .iter()
        .filter(|event| event.type_name == v1::ThreadMatched::TYPE && event.correlation_id == sent.event_id)
        .collect();
    assert_eq!(placed.len(), 1);
    assert_eq!(
        (&placed[0].payload["by"], &placed[0].payload["thread_id"]),
        (&json!("user"), &asked.payload["thread_id"])
    );
    let refused = events.iter().filter(|event| event.type_name == v1::AgentFailed::TYPE).count();
    assert_eq!(refused, 0, "{}", world.log.text());
    world.end().await;
}

#[tokio::test]
async fn a_consent_that_is_given_before_everything_dies_is_acted_on_once() {
    let approval = json!(["process.run"]).to_string();
    let wanted = chains::wanted().env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__APPROVAL", approval);
    let mut world = chains::start(wanted).await;
    let pieces = [Workpiece::new(), Workpiece::new()];
    pieces.iter().for_each(Workpiece::release);
    let sent = chains::send(&world, AGENT, &pieces).await;
    let asks = |event: &EventJson| event.type_name == v1::ApprovalRequested::TYPE;
    let asked = world.log.wait_for(2, asks).await;
    for service in [Service::AgentRuntime, Service::Router, Service::ToolRunner, Service::ProcessSupervisor] {
        world.stack.kill9(service, 0).await.unwrap();
    }
    for asked in &asked {
        let approval = json!({
            "user": "ann", "agent": AGENT, "action_id": asked.event_id, "verdict": "approved",
            "approval_id": asked.event_id.to_string(),
        });
        assert_eq!(world.post("/v1/approvals", &approval).await.0, 202);
    }
    world.stack.kill9(Service::Gateway, 0).await.unwrap();
    world.stack.kill9(Service::Projector, 0).await.unwrap();
    world.nats.kill9().await.unwrap();
    world.postgres.kill9().await.unwrap();
    assert!(pieces.iter().all(|piece| piece.effects() == 0), "nobody had consented");
    world.nats.restart().await.unwrap();
    world.postgres.restart().await.unwrap();
    killed::all_restarted(&mut world).await;

    // The step that follows asks for itself.
    let last = world.log.wait_for(3, asks).await.remove(2);
    let rejected = json!({
        "user": "ann", "agent": AGENT, "action_id": last.event_id, "verdict": "rejected", "note": "not that",
    });
    assert_eq!(world.post("/v1/approvals", &rejected).await.0, 202);
    let reply = world.reply(&sent).await;
    assert!(reply.contains("not that"), "{reply}");
    assert!(pieces.iter().all(|piece| piece.effects() == 1));
    chains::is_whole(&world, &sent, CALLS - 1).await;
    audit::passes(&world).await;
    world.end().await;
}
