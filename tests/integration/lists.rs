//! Lists page by page, filtered; and one of each by its id.

use kairo_local::Service;
use kairo_proto::v1;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    command_line::kairo,
    world::{Wanted, World, scenario::USUAL},
};

async fn get(world: &World, path: &str) -> Value {
    let (status, answer) = world.get(path).await;
    assert_eq!(status, 200, "{path}: {answer}");
    answer
}

/// Every row of a list that comes newest first, asked for one by one, as ids.
async fn one_by_one(world: &World, path: &str, list: &str, id: &str) -> Vec<Value> {
    let (mut rows, mut before) = (Vec::new(), String::new());
    loop {
        let page = get(world, &format!("{path}limit=1{before}")).await;
        rows.extend(page[list].as_array().unwrap().iter().map(|row| row[id].clone()));
        let Some(next) = page["next_before"].as_u64() else { return rows };
        before = format!("&before={next}");
    }
}

async fn ids(world: &World, path: &str, list: &str, id: &str) -> Vec<Value> {
    let answer = get(world, path).await;
    answer[list].as_array().unwrap().iter().map(|row| row[id].clone()).collect()
}

#[tokio::test]
async fn actions_are_listed_by_what_became_of_them() {
    let world = Wanted::new(USUAL).start().await;
    world.define("bob").await;
    world.ask("bob", "the time please").await;
    world.ask("bob", "time and time again").await;
    world.projected().await;
    assert_eq!(ids(&world, "/v1/actions", "actions", "action_id").await, Vec::<Value>::new());
    let all = ids(&world, "/v1/actions?status=all&agent=bob", "actions", "action_id").await;
    assert_eq!(all.len(), 3);
    assert_eq!(one_by_one(&world, "/v1/actions?status=done&", "actions", "action_id").await, all);
    assert_eq!(ids(&world, "/v1/actions?status=failed", "actions", "action_id").await, Vec::<Value>::new());

    let action = &get(&world, &format!("/v1/actions/{}", all[0].as_str().unwrap())).await["action"];
    assert_eq!(
        (&action["action_id"], &action["status"], &action["tool"]),
        (&all[0], &json!("done"), &json!("tools.now"))
    );
    assert!(action["result"]["now"].is_string() && action["ended_at"].is_string(), "{action}");
    let thread = action["thread_id"].as_str().unwrap();
    assert_eq!(ids(&world, &format!("/v1/actions?status=all&thread={thread}"), "actions", "action_id").await, all);
    world.end().await;
}

#[tokio::test]
async fn conversations_and_agents_are_listed() {
    let world = Wanted::new(USUAL).start().await;
    for agent in ["eve", "bob"] {
        world.define(agent).await;
        assert_eq!(world.ask(agent, "hello").await, "You said: hello");
    }
    let sent = world.send_as(&json!({ "user": "carl", "agent": "eve", "text": "good evening" })).await;
    world.reply(&sent).await;
    world.projected().await;
    let answer = get(&world, "/v1/conversations").await;
    let rows = answer["conversations"].as_array().unwrap();
    let told: Vec<_> =
        rows.iter().map(|row| json!([row["agent"], row["user"], row["last_role"], row["last_text"]])).collect();
    let expected = [
        json!(["eve", "carl", "agent", "You said: good evening"]),
        json!(["bob", "ann", "agent", "You said: hello"]),
        json!(["eve", "ann", "agent", "You said: hello"]),
    ];
    assert_eq!(told, expected);
    assert_eq!(one_by_one(&world, "/v1/conversations?", "conversations", "last_sequence").await.len(), 3);
    assert_eq!(ids(&world, "/v1/conversations?agent=eve&user=ann", "conversations", "user").await, [json!("ann")]);
    assert_eq!(ids(&world, "/v1/conversations?user=nobody", "conversations", "user").await, Vec::<Value>::new());

    let first = get(&world, "/v1/agents?limit=1").await;
    assert_eq!((&first["agents"][0]["agent"], &first["next_after"]), (&json!("bob"), &json!("bob")));
    let second = get(&world, "/v1/agents?limit=1&after=bob").await;
    assert_eq!((&second["agents"][0]["agent"], &second["next_after"]), (&json!("eve"), &json!(null)));
    assert_eq!(get(&world, "/v1/agents/eve").await["agent"], second["agents"][0]);
    for unknown in ["/v1/agents/nobody", "/v1/actions/", "/v1/processes/", "/v1/approvals/", "/v1/memories/eve/"] {
        let path = if unknown.ends_with('/') { format!("{unknown}{}", Uuid::nil()) } else { unknown.to_owned() };
        let (status, problem) = world.get(&path).await;
        assert_eq!((status, problem["position"].is_u64()), (404, true), "{path}: {problem}");
    }
    world.end().await;
}

#[tokio::test]
async fn approvals_are_listed_with_what_was_said_to_them() {
    let wanted = Wanted::new(USUAL).env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__APPROVAL", r#"["tools.now"]"#);
    let world = wanted.start().await;
    world.define("bob").await;
    let mut asked = Vec::new();
    for (verdict, expected) in [("approved", "approved"), ("rejected", "rejected")] {
        let sent = world.send("bob", "the time please").await;
        let requested = |type_name: &str| type_name == v1::ApprovalRequested::TYPE;
        let id = world
            .log
            .wait(|event| event.correlation_id == sent.event_id && requested(&event.type_name))
            .await
            .event_id
            .to_string();
        world.projected().await;
        assert_eq!(ids(&world, "/v1/approvals?status=waiting", "approvals", "action_id").await, [json!(id)]);
        let body = json!({ "user": "ann", "agent": "bob", "action_id": id, "verdict": verdict, "note": "so be it" });
        assert_eq!(world.post("/v1/approvals", &body).await.0, 202);
        world.reply(&sent).await;
        world.projected().await;
        let approval = &get(&world, &format!("/v1/approvals/{id}")).await["approval"];
        let told = json!([approval["status"], approval["decided_by"], approval["note"], approval["tool"]]);
        assert_eq!(told, json!([expected, "ann", "so be it", "tools.now"]));
        assert_eq!(approval["entered_by"], "unauthenticated:loopback");
        asked.insert(0, json!(id));
    }
    assert_eq!(one_by_one(&world, "/v1/approvals?user=ann&agent=bob&", "approvals", "action_id").await, asked);
    assert_eq!(ids(&world, "/v1/approvals?status=rejected", "approvals", "action_id").await, asked[..1]);
    assert_eq!(ids(&world, "/v1/approvals?user=carl", "approvals", "action_id").await, Vec::<Value>::new());
    let output = kairo(&world, &["approvals", "--status", "approved"]).await;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("ann: so be it") && !said.contains("rejected"), "{said}");
    world.end().await;
}
