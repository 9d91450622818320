//! Agents that work in the background: users are answered at once, and what takes work is worked on beside them.

use kairo_core::{
    event_json::EventJson,
    vocabulary::{BACKGROUND, READER},
};
use kairo_local::Service;
use kairo_proto::v1::{self, AgentDecision};
use serde_json::{Value, json};

use crate::{
    faults::audit,
    world::{Sent, Wanted, World},
};

const AGENT: &str = "aide";

/// "research …" is acknowledged and queued; work calls `tools.now` and says what it was about, but "research for ever" is a
/// call of the heavy model that is never answered.
const SCENARIO: &str = r#"
rules:
  - name: acknowledge
    when: { system_starts_with: You are agent.acknowledge, user_contains: research, tools_offered: task.queue }
    reply:
      text: "I will {{ user }}."
      tool_calls: [{ tool: task.queue, arguments: { text: "{{ user }}" } }]
  - name: how-far
    when:
      system_starts_with: You are agent.acknowledge
      user_contains: how far
      system_matches: '"status":"(?<status>[a-z_]+)","task_id":"[0-9a-f-]{36}","text":"(?<text>[^"]*)"'
    reply: "{{ captures.text }}: {{ captures.status }}"
  - name: small-talk
    when: { system_starts_with: You are agent.acknowledge }
    reply: "hello"
  - name: learn
    when: { system_starts_with: You are agent.learn }
    reply: { json: [{ kind: insight, subject: research, content: "It takes a call of tools.now." }] }
  - name: never
    when: { system_starts_with: You are agent.work, user_contains: for ever }
    reply: { fault: hang }
  - name: work
    when: { system_starts_with: You are agent.work }
    turn:
      - tool_calls: [{ tool: tools.now, arguments: {} }]
      - text: "What came of it: {{ user }}."
"#;

async fn start(wanted: Wanted) -> World {
    let world = wanted.start().await;
    let profile = json!({ "agent": AGENT, "prompt": "Be brief.", "conduct": "background" });
    let (status, answer) = world.post("/v1/agents", &profile).await;
    assert_eq!(status, 201, "{answer}");
    world
}

/// The event of this type that follows from what was sent.
async fn of_type(world: &World, sent: &Sent, type_name: &str) -> EventJson {
    world.log.wait(|event| event.correlation_id == sent.event_id && event.type_name == type_name).await
}

/// Waits for the outcome of the task in the conversation.
async fn told(world: &World, sent: &Sent) -> EventJson {
    let is_told = |event: &EventJson| {
        let payload = &event.payload;
        event.correlation_id == sent.event_id
            && event.type_name == v1::AgentAction::TYPE
            && payload["user"] == "ann"
            && payload["final"] != true
    };
    world.log.wait(is_told).await
}

async fn rows(world: &World, path: &str, list: &str) -> Vec<Value> {
    world.projected().await;
    let (status, answer) = world.get(path).await;
    assert_eq!(status, 200, "{answer}");
    answer[list].as_array().unwrap().clone()
}

/// Returns the types of the decisions that follow from the message.
async fn decided(world: &World, sent: &Sent) -> Vec<String> {
    let others =
        [v1::UserMessage::TYPE, v1::AgentMessage::TYPE, v1::ToolInvoke::TYPE, v1::ToolResult::TYPE].map(str::to_owned);
    let types = world.events_of(sent).await.into_iter().map(|event| event.type_name);
    types.filter(|type_name| !others.contains(type_name)).collect()
}

#[tokio::test]
async fn user_messages_queue_tasks_and_return_a_contextual_acknowledgement_and_work_is_done_in_a_new_thread() {
    let world = start(Wanted::new(SCENARIO)).await;
    let sent = world.send(AGENT, "research NVIDIA stock").await;
    assert_eq!(world.reply(&sent).await, "I will research NVIDIA stock.");
    assert_eq!(told(&world, &sent).await.text(), "What came of it: research NVIDIA stock.");
    world.settled().await;
    assert_eq!(
        decided(&world, &sent).await,
        [
            v1::ThreadCreated::TYPE,
            v1::TaskScheduled::TYPE,
            v1::AgentAction::TYPE,
            v1::ThreadCreated::TYPE,
            v1::TaskStarted::TYPE,
            v1::AgentAction::TYPE,
            v1::TaskEnded::TYPE,
            v1::AgentAction::TYPE,
            v1::MemoryAppended::TYPE,
            v1::ThreadCompleted::TYPE,
        ]
    );

    let tasks = rows(&world, &format!("/v1/tasks?agent={AGENT}"), "tasks").await;
    let [task] = tasks.as_slice() else { panic!("{tasks:?}") };
    assert_eq!(
        (&task["kind"], &task["source"], &task["status"]),
        (&json!("queued"), &json!("user"), &json!("completed"))
    );
    assert_eq!(task["text"], "research NVIDIA stock");
    assert_eq!(task["result"], "What came of it: research NVIDIA stock.");
    let threads = rows(&world, &format!("/v1/threads?agent={AGENT}&status=all"), "threads").await;
    let of = |kind: &str| threads.iter().find(|thread| thread["kind"] == kind).unwrap();
    assert_eq!((&of("work")["status"], &of("work")["thread_id"]), (&json!("completed"), &task["work_thread_id"]));
    assert_eq!((&of("topic")["status"], &of("topic")["thread_id"]), (&json!("active"), &task["thread_id"]));

    // What was said at work is in no conversation.
    let messages = rows(&world, &format!("/v1/conversations/{AGENT}?user=ann"), "messages").await;
    let said: Vec<&str> = messages.iter().map(|message| message["text"].as_str().unwrap()).collect();
    let expected =
        ["research NVIDIA stock", "I will research NVIDIA stock.", "What came of it: research NVIDIA stock."];
    assert_eq!(said, expected);

    // The turn can be read step by step, and what it led to.
    let (status, turn) = world.get(&format!("/v1/interactions/{}", sent.event_id)).await;
    let turn = &turn["interaction"];
    assert_eq!((status, &turn["status"], &turn["intent"]), (200, &json!("completed"), &json!("task.queue")), "{turn}");
    let steps: Vec<_> = turn["steps"].as_array().unwrap().iter().map(|step| &step["kind"]).collect();
    assert_eq!(
        steps,
        ["plan", "execute", "answer", "plan", "execute", "reflect", "reflect"],
        "queued, acknowledged, called, told, learned: {turn}"
    );
    let (queued, executed) = (&turn["steps"][1], &turn["steps"][4]);
    assert_eq!((&queued["action"], &queued["result"]["task_id"]), (&json!("task.queue"), &task["task_id"]), "{turn}");
    assert_eq!((&queued["status"], &executed["status"]), (&json!("done"), &json!("done")));
    assert!(executed["result"]["now"].is_string() && executed["ended_at"].is_string(), "{turn}");
    assert!(turn["input_tokens"].as_u64().unwrap() > 0 && turn["ended_at"].is_string(), "{turn}");
    assert_eq!(turn["steps"][2]["content"], "I will research NVIDIA stock.");
    assert_eq!(world.get(&format!("/v1/interactions/{}", uuid::Uuid::nil())).await.0, 404);

    // Both threads can be read as messages: at work, the task is what its user said.
    let spoken = async |kind: &str| -> Vec<String> {
        let thread = of(kind)["thread_id"].as_str().unwrap();
        let messages = rows(&world, &format!("/v1/threads/{thread}/messages?agent={AGENT}"), "messages").await;
        let calls = |message: &Value| message["tool_calls"].as_array().unwrap().len();
        let line = |message: &Value| {
            let [role, content] = ["role", "content"].map(|field| message[field].as_str().unwrap());
            let content = if role == "tool" { "" } else { content };
            format!("{} {role} {content} {}", message["sequence"], calls(message))
        };
        messages.iter().map(line).collect()
    };
    assert_eq!(
        spoken("topic").await,
        [
            "1 user research NVIDIA stock 0",
            "2 assistant I will research NVIDIA stock. 1",
            "3 assistant What came of it: research NVIDIA stock. 0",
        ]
    );
    assert_eq!(
        spoken("work").await,
        [
            "1 user research NVIDIA stock 0",
            "2 assistant  1",
            "3 tool  0",
            "4 assistant What came of it: research NVIDIA stock. 0",
        ]
    );
    assert_eq!(of("work")["completed_at"].as_str().map(|_| ()), Some(()), "{threads:?}");
    assert_eq!((&of("topic")["completed_at"], &task["completed_at"]), (&Value::Null, &task["ended_at"]));
    assert_eq!((&of("topic")["title"], &of("work")["title"]), (&json!("research NVIDIA stock"), &task["title"]));

    let memories = rows(&world, &format!("/v1/memories?agent={AGENT}"), "memories").await;
    assert_eq!((&memories[0]["type"], &memories[0]["user"]), (&json!("insight"), &json!("ann")), "{memories:?}");
    assert_eq!(world.model_requests().await.len(), 4, "one call to acknowledge, two to work, one to learn");
    audit::passes(&world).await;
    world.verified().await;
    world.end().await;
}

#[tokio::test]
async fn a_user_is_answered_while_the_heavy_model_is_at_work_and_may_stop_it() {
    let wanted = Wanted::new(SCENARIO).env(Service::AgentRuntime, "KAIRO_MODELS__HEAVY__MAX_IN_FLIGHT", "1");
    let world = start(wanted).await;
    let sent = world.send(AGENT, "research for ever").await;
    assert_eq!(world.reply(&sent).await, "I will research for ever.");
    // It is said to be worked on before the model has answered, which it never does.
    of_type(&world, &sent, v1::TaskStarted::TYPE).await;
    assert_eq!(world.ask(AGENT, "how far are you?").await, "research for ever: in_progress");
    let queue = rows(&world, &format!("/v1/tasks?queue=true&agent={AGENT}"), "tasks").await;
    assert_eq!((queue.len(), &queue[0]["status"]), (1, &json!("in_progress")), "{queue:?}");
    while world.model_requests().await.iter().all(|it| it["rule"] != "never") {}

    let next = world.send(AGENT, "research AMD stock").await;
    assert_eq!(world.reply(&next).await, "I will research AMD stock.");
    let order = json!({ "user": "ann", "agent": AGENT, "command": "cancel", "task_id": queue[0]["task_id"] });
    let (status, answer) = world.post("/v1/commands", &order).await;
    assert_eq!(status, 202, "{answer}");
    let ended = of_type(&world, &sent, v1::TaskEnded::TYPE).await;
    assert_eq!(ended.payload["status"], "canceled");
    assert_eq!(told(&world, &next).await.text(), "What came of it: research AMD stock.");
    world.settled().await;

    // What was asked in vain is said, and is asked of nobody again.
    let given_up = world
        .raw_log()
        .await
        .iter()
        .filter_map(|raw| raw.read(usize::MAX).ok())
        .fold(0, |sum, record| sum + AgentDecision::of(&record.body).map_or(0, |decision| decision.given_up.len()));
    assert_eq!(given_up, 1);
    let hanging = world.model_requests().await.iter().filter(|it| it["rule"] == "never").count();
    assert_eq!(hanging, 1);
    audit::passes(&world).await;
    world.end().await;
}

#[tokio::test]
async fn each_task_is_worked_on_once_whichever_runtime_is_killed() {
    let mut world = start(Wanted::new(SCENARIO).replicas(Service::AgentRuntime, 2)).await;
    let mut sent = Vec::new();
    for number in 0..12 {
        sent.push(world.send(AGENT, &format!("research number {number}")).await);
        if number % 4 == 3 {
            // Whichever is at work is killed while it is.
            of_type(&world, &sent[number - 3], v1::TaskStarted::TYPE).await;
            for replica in 0..2 {
                world.stack.kill9(Service::AgentRuntime, replica).await.unwrap();
                world.stack.restart(Service::AgentRuntime, replica).await.unwrap();
            }
        }
    }
    for (number, sent) in sent.iter().enumerate() {
        assert_eq!(told(&world, sent).await.text(), format!("What came of it: research number {number}."));
    }
    world.settled().await;
    audit::passes(&world).await;
    world.verified().await;
    world.end().await;
}

#[tokio::test]
async fn agents_have_a_conduct_once_every_replica_knows_it() {
    let world = Wanted::new(SCENARIO).env_of_all("KAIRO_NATS__EPOCH", (BACKGROUND - 1).to_string()).start().await;
    let profile = json!({ "agent": AGENT, "prompt": "Be brief.", "conduct": "background" });
    let (status, answer) = world.post("/v1/agents", &profile).await;
    assert_eq!(status, 409, "{answer}");
    assert!(answer["detail"].as_str().unwrap().contains("kairo fleet promote"), "{answer}");
    let (status, answer) = world.post("/v1/fleet/promote", &json!({})).await;
    assert_eq!((status, &answer["epoch"]), (200, &json!(READER)), "{answer}");
    let (status, answer) = world.post("/v1/agents", &profile).await;
    assert_eq!(status, 201, "{answer}");
    assert_eq!(world.ask(AGENT, "hi").await, "hello");
    world.end().await;
}
