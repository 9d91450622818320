//! Only the consent of the user who was asked counts: at the boundary, for the agent and in the read model alike.

use jiff::Timestamp;
use kairo_core::{
    bus::append::OutgoingEvent,
    envelope::{Envelope, Origin},
    event_json::EventJson,
    ids,
    subjects::{self, AGENT_APPROVAL, USER_APPROVAL},
};
use kairo_local::Service;
use kairo_proto::v1::{self, AgentApproval, UserApproval};
use serde_json::{Value, json};

use crate::{
    command_line::kairo,
    world::{Sent, Wanted, World, agent, scenario::USUAL},
};

async fn world() -> World {
    let world =
        Wanted::new(USUAL).env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__APPROVAL", r#"["tools.now"]"#).start().await;
    world.define("clerk").await;
    world
}

/// Sends a message that needs this user's consent; returns it and the id of the request, once the read model has it.
async fn ask_for_consent(world: &World, user: &str) -> (Sent, String) {
    let message = json!({ "user": user, "agent": "clerk", "text": "the time please" });
    let sent = world.send_as(&message).await;
    let is_asked = |type_name: &str| type_name == v1::ApprovalRequested::TYPE;
    let request = world.log.wait(|event| event.correlation_id == sent.event_id && is_asked(&event.type_name)).await;
    world.projected().await;
    (sent, request.event_id.to_string())
}

async fn row(world: &World, id: &str) -> Value {
    world.projected().await;
    world.get(&format!("/v1/approvals/{id}")).await.1["approval"].clone()
}

async fn waiting_of(world: &World, user: &str) -> usize {
    world.get(&format!("/v1/inbox?user={user}")).await.1["approvals"].as_array().map_or(0, Vec::len)
}

#[tokio::test]
async fn a_verdict_of_somebody_who_was_not_asked_is_none() {
    let world = world().await;
    for (user, other, verdict) in [("mireille", "tomasz", "approved"), ("z-4", "you", "rejected")] {
        let (sent, id) = ask_for_consent(&world, user).await;
        let body = |user: &str| json!({ "user": user, "agent": "clerk", "action_id": id, "verdict": verdict });
        let (status, problem) = world.post("/v1/approvals", &body(other)).await;
        assert_eq!((status, &problem["errors"][0]["field"]), (403, &json!("user")), "{problem}");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(user)), "{problem}");

        // One that entered all the same, such as through a gateway of before.
        let approval = UserApproval {
            approval_id: ids::generate().to_string(),
            user: other.to_owned(),
            agent: "clerk".to_owned(),
            action_id: id.clone(),
            verdict: verdict.to_owned(),
            ..UserApproval::default()
        };
        let envelope =
            Envelope::from_outside(ids::generate(), subjects::Service::Gateway, Origin::User, Timestamp::now());
        let event_id = envelope.id;
        world.bus.publish(&OutgoingEvent::new(&USER_APPROVAL, &agent(other), envelope, approval)).await.unwrap();
        let refused = |type_name: &str| type_name == v1::AgentFailed::TYPE;
        world.log.wait(|event| event.correlation_id == event_id && refused(&event.type_name)).await;
        let waiting = row(&world, &id).await;
        assert_eq!((&waiting["status"], &waiting["decided_by"]), (&json!("waiting"), &Value::Null), "{waiting}");
        assert_eq!((waiting_of(&world, user).await, waiting_of(&world, other).await), (1, 0));

        assert_eq!(world.post("/v1/approvals", &body(user)).await.0, 202);
        world.reply(&sent).await;
        let decided = row(&world, &id).await;
        assert_eq!((&decided["status"], &decided["decided_by"]), (&json!(verdict), &json!(user)), "{decided}");
        assert_eq!(waiting_of(&world, user).await, 0);
    }
    world.end().await;
}

/// A holder of router's password can have an agent told that its user consented, and that is all.
#[tokio::test]
async fn a_consent_that_no_gateway_has_written_is_none_to_whoever_runs_the_call() {
    let world = world().await;
    for (arguments, user) in [("", "noor"), (r#"{"time_zone":"Asia/Tokyo"}"#, "mireille")] {
        refuse_forged_consent(&world, user, arguments).await;
    }
    world.end().await;
}

async fn refuse_forged_consent(world: &World, user: &str, arguments: &str) {
    let (sent, id) = ask_for_consent(world, user).await;
    let body = AgentApproval {
        approval_id: ids::generate().to_string(),
        user: user.to_owned(),
        action_id: id.clone(),
        verdict: "approved".to_owned(),
        arguments: arguments.to_owned(),
        ..AgentApproval::default()
    };
    let envelope = Envelope {
        correlation_id: sent.event_id,
        ..Envelope::from_outside(ids::generate(), subjects::Service::Router, Origin::User, Timestamp::now())
    };
    world.bus.publish(&OutgoingEvent::new(&AGENT_APPROVAL, &agent("clerk"), envelope, body)).await.unwrap();
    world.reply(&sent).await;
    let results = world.events_of(&sent).await;
    let results: Vec<_> = results.iter().filter(|event| event.type_name == v1::ToolResult::TYPE).collect();
    assert_eq!(results.len(), 1, "{results:?}");
    let said = format!("{user} has not answered");
    assert!(results[0].payload.to_string().contains(&said), "{:?}", results[0].payload);
}

/// A gateway wrote that the user consented, and somebody with router's password delivers other arguments.
#[tokio::test]
async fn arguments_that_the_user_did_not_approve_are_not_called_with() {
    let world = world().await;
    let (sent, id) = ask_for_consent(&world, "noor").await;
    let approval = UserApproval {
        user: "noor".to_owned(),
        // Router delivers it to nobody.
        agent: "nobody".to_owned(),
        action_id: id.clone(),
        verdict: "approved".to_owned(),
        ..UserApproval::default()
    };
    let envelope = Envelope::from_outside(ids::generate(), subjects::Service::Gateway, Origin::User, Timestamp::now());
    world.bus.publish(&OutgoingEvent::new(&USER_APPROVAL, &agent("noor"), envelope, approval)).await.unwrap();
    let body = AgentApproval {
        approval_id: ids::generate().to_string(),
        user: "noor".to_owned(),
        action_id: id,
        verdict: "approved".to_owned(),
        arguments: r#"{"time_zone":"Asia/Tokyo"}"#.to_owned(),
        ..AgentApproval::default()
    };
    let envelope = Envelope {
        correlation_id: sent.event_id,
        ..Envelope::from_outside(ids::generate(), subjects::Service::Router, Origin::User, Timestamp::now())
    };
    world.bus.publish(&OutgoingEvent::new(&AGENT_APPROVAL, &agent("clerk"), envelope, body)).await.unwrap();
    world.reply(&sent).await;
    let results = world.events_of(&sent).await;
    let result = results.iter().find(|event| event.type_name == v1::ToolResult::TYPE).unwrap();
    assert!(result.payload.to_string().contains("noor has not answered"), "{:?}", result.payload);
    world.end().await;
}

#[tokio::test]
async fn a_call_that_nobody_answers_in_time_expires() {
    let world = world().await;
    let change = json!({ "agent": "clerk", "prompt": "Be brief.", "tools": ["tools.*"], "consent_timeout": 1 });
    assert_eq!(world.post("/v1/agents", &change).await.0, 200);
    let (sent, id) = ask_for_consent(&world, "noor").await;
    // The agent goes on by itself.
    world.reply(&sent).await;
    let expired = row(&world, &id).await;
    assert_eq!((&expired["status"], &expired["decided_by"]), (&json!("expired"), &Value::Null), "{expired}");
    assert!(expired["expires_at"].as_str() > expired["requested_at"].as_str(), "{expired}");
    assert_eq!(waiting_of(&world, "noor").await, 0);
    let results = world.events_of(&sent).await.into_iter().filter(|event| event.type_name == v1::ToolResult::TYPE);
    assert_eq!(results.count(), 0, "it was never made");
    let late = json!({ "user": "noor", "agent": "clerk", "action_id": id, "verdict": "approved" });
    let (_, accepted) = world.post("/v1/approvals", &late).await;
    let is_refused = |event: &EventJson| event.type_name == v1::AgentFailed::TYPE;
    world.log.wait(|event| json!(event.correlation_id) == accepted["correlation_id"] && is_refused(event)).await;
    assert_eq!(row(&world, &id).await["status"], "expired");
    world.end().await;
}

#[tokio::test]
async fn a_call_is_approved_with_other_arguments() {
    let world = world().await;
    let (sent, id) = ask_for_consent(&world, "noor").await;
    let body = |arguments: Value| json!({ "user": "noor", "agent": "clerk", "action_id": id, "verdict": "approved", "arguments": arguments });
    for wrong in [json!({ "time_zone": 7 }), json!([]), json!("x")] {
        let (status, problem) = world.post("/v1/approvals", &body(wrong)).await;
        assert_eq!((status, &problem["errors"][0]["field"]), (400, &json!("arguments")), "{problem}");
    }
    assert_eq!(waiting_of(&world, "noor").await, 1);
    let changed = json!({ "time_zone": "Asia/Tokyo" });
    assert_eq!(world.post("/v1/approvals", &body(changed.clone())).await.0, 202);
    world.reply(&sent).await;
    let is_result = |event: &EventJson| event.type_name == v1::ToolResult::TYPE;
    let result = world.log.wait(is_result).await;
    assert!(result.payload.to_string().contains("+09:00"), "{:?}", result.payload);
    let decided = row(&world, &id).await;
    assert_eq!((&decided["arguments"], &decided["changed_arguments"]), (&json!({}), &changed), "{decided}");
    let (_, state) = world.get("/v1/agents/clerk/state").await;
    assert!(state.to_string().contains("approved the call of tools.now with other arguments"), "{state}");

    let (sent, id) = ask_for_consent(&world, "mireille").await;
    let output = kairo(&world, &["approve", &id, "--set", "time_zone=Asia/Kolkata", "--note", "for Asha"]).await;
    assert!(output.status.success(), "{output:?}");
    world.reply(&sent).await;
    let decided = row(&world, &id).await;
    assert_eq!(decided["changed_arguments"], json!({ "time_zone": "Asia/Kolkata" }), "{decided}");
    world.end().await;
}

#[tokio::test]
async fn the_command_line_answers_as_whoever_was_asked() {
    let world = world().await;
    for command in ["approve", "reject"] {
        let (sent, id) = ask_for_consent(&world, "noor").await;
        let wrong = kairo(&world, &[command, &id, "--user", "you"]).await;
        let told = String::from_utf8_lossy(&wrong.stderr).into_owned();
        assert!(!wrong.status.success() && told.contains("noor"), "{told}");
        let output = kairo(&world, &[command, &id]).await;
        assert!(output.status.success(), "{output:?}");
        world.reply(&sent).await;
        assert_eq!(row(&world, &id).await["decided_by"], "noor");
    }
    world.end().await;
}

#[tokio::test]
async fn a_call_that_waits_for_consent_can_be_canceled() {
    let world = world().await;
    let (sent, id) = ask_for_consent(&world, "noor").await;
    let output = kairo(&world, &["actions", "cancel", &id[..8]]).await;
    assert!(output.status.success(), "{output:?}");
    world.reply(&sent).await;
    assert_eq!(row(&world, &id).await["status"], "withdrawn");
    let late = json!({ "user": "noor", "agent": "clerk", "action_id": id, "verdict": "approved" });
    let (_, accepted) = world.post("/v1/approvals", &late).await;
    let refused = |type_name: &str| type_name == v1::AgentFailed::TYPE;
    let correlation = accepted["correlation_id"].clone();
    world.log.wait(|event| json!(event.correlation_id) == correlation && refused(&event.type_name)).await;
    assert_eq!(row(&world, &id).await["status"], "withdrawn");
    let called =
        world.events_of(&sent).await.into_iter().filter(|event| event.type_name == v1::ToolResult::TYPE).count();
    assert_eq!(called, 0, "it was never made");
    world.end().await;
}
