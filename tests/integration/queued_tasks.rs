//! Programs put tasks into the queue of an agent, and wait for what comes of them.

use kairo_local::Service;
use kairo_proto::v1;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    command_line::{kairo, lines},
    grpc::python_client,
    keys::{ADMIN, Caller},
    world::{Wanted, World},
};

const SCENARIO: &str = r#"
rules:
  - name: never
    when: { system_starts_with: You are agent.work, user_contains: for ever }
    reply: { fault: hang }
  - name: work
    when: { system_starts_with: You are agent.work }
    turn:
      - tool_calls: [{ tool: tools.now, arguments: {} }]
      - text: "What came of it: {{ user }}."
  - name: rest
    reply: { json: [] }
"#;

async fn start(wanted: Wanted) -> World {
    let world = wanted.start().await;
    for (agent, conduct) in [("scout", "background"), ("poet", "direct")] {
        let profile = json!({ "agent": agent, "prompt": "Be brief.", "conduct": conduct });
        assert_eq!(world.post("/v1/agents", &profile).await.0, 201);
    }
    world
}

async fn queue(world: &World, task: &Value) -> Value {
    let (status, answer) = world.post("/v1/tasks", task).await;
    assert_eq!(status, 202, "{answer}");
    answer
}

async fn result(world: &World, id: &Value) -> Value {
    let (status, answer) = world.get(&format!("/v1/tasks/{}/result?timeout_ms=120000", id.as_str().unwrap())).await;
    assert_eq!(status, 200, "{answer}");
    answer
}

#[tokio::test]
async fn a_program_queues_a_task_once_and_waits_for_its_result() {
    let mut world = start(Wanted::new(SCENARIO)).await;
    let mut task =
        json!({ "user": "ann", "agent": "scout", "text": "fees", "title": "Fees", "request_id": "nightly-7" });
    let queued = queue(&world, &task).await;
    // A replica that is killed in between changes nothing.
    world.stack.kill9(Service::AgentRuntime, 0).await.unwrap();
    world.stack.restart(Service::AgentRuntime, 0).await.unwrap();
    let done = result(&world, &queued["task_id"]).await;
    assert_eq!((&done["is_over"], &done["task"]["status"]), (&json!(true), &json!("completed")), "{done}");
    assert_eq!(done["task"]["result"], "What came of it: fees.");
    assert_eq!((&done["task"]["title"], &done["task"]["text"]), (&json!("Fees"), &json!("fees")));

    assert_eq!(queue(&world, &task).await, queued, "the same request is the same task");
    world.settled().await;
    world.projected().await;
    let (_, all) = world.get("/v1/tasks?agent=scout&status=all").await;
    assert_eq!(all["tasks"].as_array().unwrap().len(), 1, "{all}");
    task["text"] = json!("tides");
    let (status, reused) = world.post("/v1/tasks", &task).await;
    assert_eq!(status, 409, "{reused}");

    let printed = kairo(&world, &["tasks", "add", "--agent", "scout", "--wait", "tides"]).await;
    assert_eq!((printed.status.code(), lines(&printed)), (Some(0), vec!["What came of it: tides."]), "{printed:?}");
    if let Some(mut python) = python_client(&world) {
        let task = json!({ "user": "ann", "agent": "scout", "text": "winds" });
        let queued = python.call("Commands/QueueTask", task).await.unwrap();
        let wait = json!({ "task_id": queued["task_id"], "timeout_ms": 120_000 });
        let done = python.call("Queries/AwaitTask", wait).await.unwrap();
        assert_eq!(done["task"]["result"], "What came of it: winds.");
    }
    world.end().await;
}

#[tokio::test]
async fn a_wait_ends_with_the_task_or_with_its_time() {
    let world = start(Wanted::new(SCENARIO)).await;
    let queued = queue(&world, &json!({ "user": "ann", "agent": "scout", "text": "look for ever" })).await;
    let id = &queued["task_id"];
    world.log.wait(|event| event.type_name == v1::TaskStarted::TYPE && event.payload["task_id"] == *id).await;
    let (status, open) = world.get(&format!("/v1/tasks/{}/result?timeout_ms=0", id.as_str().unwrap())).await;
    assert_eq!((status, &open["is_over"]), (200, &json!(false)), "{open}");
    let cancel = json!({ "user": "ann", "agent": "scout", "command": "cancel", "task_id": id });
    let ((status, _), ended) = tokio::join!(world.post("/v1/commands", &cancel), result(&world, id));
    assert_eq!((status, &ended["task"]["status"]), (202, &json!("canceled")), "{ended}");
    for unknown in ["timeout_ms=0", "timeout_ms=100"] {
        let (status, answer) = world.get(&format!("/v1/tasks/{}/result?{unknown}", Uuid::from_u128(7))).await;
        assert_eq!(status, 404, "{answer}");
    }
    world.end().await;
}

#[tokio::test]
async fn a_chat_client_gets_the_result_of_the_work_if_it_asks_for_it() {
    let acknowledging = SCENARIO.replace(
        "rules:\n",
        r#"rules:
  - name: acknowledge
    when: { system_starts_with: You are agent.acknowledge, user_contains: fees, tools_offered: task.queue }
    reply:
      text: "I will look."
      tool_calls: [{ tool: task.queue, arguments: { text: "{{ user }}" } }]
  - name: small-talk
    when: { system_starts_with: You are agent.acknowledge }
    reply: "Hello."
"#,
    );
    let world = start(Wanted::new(&acknowledging)).await;
    let ask = async |text: &str, metadata: Value, stream: bool| {
        let messages = json!([{ "role": "user", "content": text }]);
        let body = json!({ "model": "scout", "messages": messages, "metadata": metadata, "stream": stream });
        let answer = reqwest::Client::new().post(world.url("/v1/chat/completions")).json(&body).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    for (text, metadata, expected) in [
        ("the fees", json!({}), "I will look."),
        ("all fees", json!({ "answer": "acknowledgement" }), "I will look."),
        ("new fees", json!({ "answer": "result" }), "What came of it: new fees."),
        ("hi there", json!({ "answer": "result" }), "Hello."),
    ] {
        let (status, answer) = ask(text, metadata, false).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((status, &answer["choices"][0]["message"]["content"]), (200, &json!(expected)), "{answer}");
    }
    let (status, streamed) = ask("old fees", json!({ "answer": "result" }), true).await;
    assert!(
        status == 200 && streamed.contains("What came of it: old fees.") && !streamed.contains("I will look"),
        "{streamed}"
    );
    let (status, wrong) = ask("hi", json!({ "answer": "soon" }), false).await;
    assert!(status == 400 && wrong.contains("metadata.answer"), "{wrong}");
    world.end().await;
}

#[tokio::test]
async fn an_agent_without_a_queue_is_given_no_task() {
    let world = start(Wanted::new(SCENARIO)).await;
    let task = |agent: &str| json!({ "user": "ann", "agent": agent, "text": "look" });
    let (status, refused) = world.post("/v1/tasks", &task("poet")).await;
    assert_eq!((status, &refused["errors"][0]["field"]), (400, &json!("agent")), "{refused}");
    assert!(refused.to_string().contains("kairo agents set poet --conduct background"), "{refused}");
    let (status, unknown) = world.post("/v1/tasks", &task("nobody")).await;
    assert_eq!(status, 404, "{unknown}");
    world.end().await;
}

#[tokio::test]
async fn the_task_of_another_user_is_none() {
    let wanted = Wanted::new(SCENARIO).env(Service::Gateway, "KAIRO_GATEWAY__REQUIRE_KEY", "always");
    let world = wanted.env(Service::Gateway, "KAIRO_GATEWAY__ADMIN_KEY", ADMIN).start().await;
    let operator = Caller::new(&world, 0, Some(ADMIN));
    let profile = json!({ "agent": "scout", "prompt": "Be brief.", "conduct": "background" });
    assert_eq!(operator.post("/v1/agents", profile).await.0, 201);
    let key = json!({ "name": "bob", "scopes": ["read", "write"], "user": "bob" });
    let (_, made) = operator.post("/v1/keys", key).await;
    let bob = Caller::new(&world, 0, made["key"].as_str());
    let task = |user: &str| json!({ "user": user, "agent": "scout", "text": "fees", "request_id": "r-1" });
    assert_eq!(bob.post("/v1/tasks", task("ann")).await.0, 403);
    let (_, of_ann) = operator.post("/v1/tasks", task("ann")).await;
    let path =
        |queued: &Value, ms: u32| format!("/v1/tasks/{}/result?timeout_ms={ms}", queued["task_id"].as_str().unwrap());
    assert_eq!(operator.get(&path(&of_ann, 120_000)).await.0, 200);
    assert_eq!(bob.get(&path(&of_ann, 0)).await.0, 404);
    let (_, own) = bob.post("/v1/tasks", task("bob")).await;
    assert_eq!(bob.get(&path(&own, 120_000)).await.1["task"]["status"], "completed");
    world.end().await;
}
