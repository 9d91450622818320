//! The author of every entry: shown with it everywhere, taken from the key, and never from a client's own claim.

use kairo_local::{Service, StackOptions};
use kairo_proto::v1;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::{
    keys::{ADMIN, Caller},
    world::{DEADLINE, Wanted, World, scenario::USUAL},
};

fn guarded() -> Wanted {
    let wanted = Wanted::new(USUAL).env(Service::Gateway, "KAIRO_GATEWAY__REQUIRE_KEY", "always");
    wanted.env(Service::Gateway, "KAIRO_GATEWAY__ADMIN_KEY", ADMIN)
}

/// The events of a turn, as the read model shows them.
async fn events(world: &World, operator: &Caller, correlation: &Value) -> Vec<Value> {
    world.settled().await;
    let path = format!("/v1/events?correlation={}", correlation.as_str().unwrap());
    let (status, shown) = operator.get(&path).await;
    assert_eq!(status, 200, "{shown}");
    shown["events"].as_array().unwrap().clone()
}

#[tokio::test]
async fn every_command_says_whose_key_it_came_with() {
    let world = guarded().start().await;
    let operator = Caller::new(&world, 0, Some(ADMIN));
    let profile = json!({ "agent": "default", "prompt": "You are a helpful agent." });
    assert_eq!(operator.post("/v1/agents", profile).await.0, 201);
    let (id, key) = operator.make(json!({ "name": "app", "scopes": ["read", "write"] })).await;
    let app = Caller::new(&world, 0, Some(&key));
    let by_key = json!(format!("api_key:{id}"));

    // What a client says of itself, in whatever way, is not believed.
    let message = json!({ "user": "ann", "text": "what is the time in Asia/Tokyo" });
    let sent = app.request(Method::POST, "/v1/messages").json(&message);
    let sent = sent.header("ce-authtype", "api_key").header("ce-authid", "somebody").send().await.unwrap();
    assert_eq!(sent.status(), 202);
    let sent: Value = sent.json().await.unwrap();
    let turn = sent["correlation_id"].clone();
    world.log.wait(|event| json!(event.correlation_id) == turn && event.is_final_reply()).await;
    let (status, refused) =
        app.post("/v1/messages", json!({ "user": "ann", "text": "x", "entered_by": "api_key:somebody" })).await;
    assert_eq!((status, &refused["errors"][0]["field"]), (400, &json!("entered_by")));

    let shown = events(&world, &operator, &turn).await;
    let of_type = |name: &str| shown.iter().find(|event| event["type"] == name).unwrap_or_else(|| panic!("{name}"));
    assert_eq!(of_type(v1::UserMessage::TYPE)["entered_by"], by_key);
    assert_eq!(of_type(v1::AgentMessage::TYPE)["entered_by"], by_key);
    // What follows of it nobody entered.
    for event in shown.iter().filter(|event| event["causation_id"] != Value::Null) {
        let delivered = event["type"] == v1::AgentMessage::TYPE;
        assert_eq!(event["entered_by"] != Value::Null, delivered, "{event}");
    }

    let profile = json!({ "agent": "bob", "prompt": "You are a helpful agent." });
    assert_eq!(operator.post("/v1/agents", profile).await.0, 201);
    let verdict = json!({ "user": "ann", "agent": "bob", "action_id": turn, "verdict": "rejected" });
    assert_eq!(app.post("/v1/approvals", verdict).await.0, 202);
    let defined = world.log.wait(|event| event.subject == "kairo.agent.bob.defined").await;
    assert_eq!(defined.entered_by.as_deref(), Some("api_key:gateway.admin_key"));
    let told = world.log.wait(|event| event.subject == "kairo.agent.bob.approval").await;
    assert_eq!(json!(told.entered_by), by_key);

    let program = StackOptions::bin_dir_of_this_build().unwrap().join("kairo");
    let mut chain = Command::new(program);
    chain.args(["--url", &world.url(""), "send", "hello", "--user", "ann", "--wait", "--chain"]);
    let chain = tokio::time::timeout(DEADLINE, chain.env("KAIRO_API_KEY", &key).output()).await.unwrap().unwrap();
    let chain = String::from_utf8(chain.stdout).unwrap();
    assert!(chain.contains(&format!("[api_key:{id}] hello")), "{chain}");
    world.end().await;
}

#[tokio::test]
async fn on_loopback_it_is_somebody_of_this_machine() {
    let world = Wanted::new(USUAL).start().await;
    world.define("default").await;
    let sent = world.send("default", "hello").await;
    world.reply(&sent).await;
    let said = world.log.wait(|event| event.type_name == v1::UserMessage::TYPE).await;
    assert_eq!(said.entered_by.as_deref(), Some("unauthenticated:loopback"));
    world.end().await;
}
