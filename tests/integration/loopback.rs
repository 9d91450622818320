//! A program on the same machine without a key, where none is required, may only talk to agents: an agent may have
//! started it.

use kairo_gateway::{Access, KeyRequirement, Scope};
use kairo_local::Service;
use kairo_proto::v1;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    keys::{ADMIN, Caller},
    world::{Wanted, World, scenario::USUAL},
};

const APPROVALS: &str = "/v1/approvals";

async fn start() -> (World, Caller, Caller) {
    let wanted = Wanted::new(USUAL)
        .env(Service::Gateway, "KAIRO_GATEWAY__LOOPBACK_SCOPES", r#"["read","write"]"#)
        .env(Service::Gateway, "KAIRO_GATEWAY__ADMIN_KEY", ADMIN)
        .env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__APPROVAL", r#"["tools.now"]"#);
    let world = wanted.start().await;
    let administrator = Caller::new(&world, 0, Some(ADMIN));
    let profile = json!({ "agent": "default", "prompt": "You are a helpful agent." });
    assert_eq!(administrator.post("/v1/agents", profile).await.0, 201);
    let program = Caller::new(&world, 0, None);
    (world, administrator, program)
}

fn needs_admin(access: &Access) -> bool {
    match access.needs {
        KeyRequirement::Scope(scope) => scope == Scope::Admin,
        KeyRequirement::Both(one, other) => [one, other].contains(&Scope::Admin),
        KeyRequirement::Nothing | KeyRequirement::Key => false,
    }
}

/// A path of the endpoint, whatever is at it.
fn path(access: &Access) -> String {
    let parts = access.path.split('/').map(|part| if part.starts_with('{') { "default" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

fn is_refused((status, problem): &(u16, Value)) -> bool {
    *status == 403 && problem["detail"].as_str().is_some_and(|detail| detail.contains("KAIRO_API_KEY"))
}

#[tokio::test]
async fn without_a_key_nobody_administrates_on_this_machine() {
    let (world, administrator, program) = start().await;
    let told: Value = program.get("/v1/whoami").await.1;
    assert_eq!(told["scopes"], json!(["read", "write"]));
    let before = world.end_of_log().await;
    let mut tried = 0;
    for access in kairo_gateway::endpoints().filter(|access| needs_admin(access)) {
        let method: Method = access.method.parse().unwrap();
        let answer = program.send(method, &path(access), Some(json!({ "agent": "mine", "prompt": "x" }))).await;
        assert!(is_refused(&answer), "{} {}: {answer:?}", access.method, access.path);
        tried += 1;
    }
    assert!(tried > 20, "{tried}");
    // What an order of the scope write may want beyond that.
    let submodule = json!({ "name": "critic", "prompt": "You find fault." });
    let order = json!({ "user": "ann", "agent": "default", "command": "add", "submodule": submodule });
    assert!(is_refused(&program.post("/v1/commands", order).await));
    assert_eq!(world.end_of_log().await, before);
    assert_eq!(administrator.get("/v1/keys").await.0, 200);
    // A key that is not in force is none.
    let stranger = Caller::new(&world, 0, Some("kairo_nobody"));
    assert_eq!(stranger.get("/v1/keys").await.0, 401);
    world.end().await;
}

#[tokio::test]
async fn a_program_talks_to_agents_and_consents_to_nothing() {
    let (world, administrator, program) = start().await;
    let sent = program.post("/v1/messages", json!({ "user": "ann", "agent": "default", "text": "time please" })).await;
    assert_eq!(sent.0, 202, "{}", sent.1);
    let asked = world.log.wait(|event| event.type_name == v1::ApprovalRequested::TYPE).await;
    world.projected().await;
    assert_eq!(program.get(&format!("{APPROVALS}/{}", asked.event_id)).await.0, 200);
    let before = world.end_of_log().await;
    for verdict in ["approved", "rejected", "happened", "did_not_happen"] {
        let verdict = json!({ "user": "ann", "agent": "default", "action_id": asked.event_id, "verdict": verdict });
        assert!(is_refused(&program.post(APPROVALS, verdict).await));
    }
    assert_eq!(world.end_of_log().await, before);
    let (_, anns) = administrator.make(json!({ "name": "ann", "scopes": ["write"], "user": "ann" })).await;
    let consent = json!({ "user": "ann", "agent": "default", "action_id": asked.event_id, "verdict": "approved" });
    assert_eq!(Caller::new(&world, 0, Some(&anns)).post(APPROVALS, consent).await.0, 202);
    world.log.wait(|event| event.is_final_reply()).await;
    world.end().await;
}
