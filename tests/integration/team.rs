//! Teams at work, as seed 001 tells it: a new team starts at once, its lead delegates, its workers answer and are silent, long
//! work is compacted, and the owner is briefed. With the real services; the model's words are the simulator's.

use kairo_core::event_json::EventJson;
use kairo_local::Service;
use kairo_proto::v1;
use serde_json::{Value, json};

use crate::{
    faults::audit,
    replay::fork::fork,
    world::{Wanted, World},
};

const TEAM: &str = "research";

/// The lead has its first worker search, which takes many calls, then its second one write; what it is asked for later it does
/// itself, and finds nothing worth telling.
const SCENARIO: &str = r#"
rules:
  - name: brief-of-nvidia
    when: { system_starts_with: You are agent.learn and agent.brief, user_contains: "The report: NVIDIA" }
    reply:
      json:
        memories: [{ kind: fact, subject: NVIDIA, content: "NVIDIA reports in May." }]
        briefing: { worth: true, reason: "It moves the mission.", summary: "NVIDIA jumps 9 %.", text: "NVIDIA jumps 9 %; the whole report is in the thread." }
  - name: brief-of-nothing
    when: { system_starts_with: You are agent.learn and agent.brief }
    reply: { json: { memories: [], briefing: { worth: false, reason: "Nothing new." } } }
  - name: learn
    when: { system_starts_with: You are agent.learn }
    reply: { json: [{ kind: insight, subject: search, content: "Look at the filings first." }] }
  - name: compact
    when: { system_starts_with: You are thread.compact }
    reply: "Many times were looked at; all are the same."
  - name: acknowledge
    when: { system_starts_with: You are agent.acknowledge }
    reply:
      text: "I will see to it: {{ user }}"
      tool_calls: [{ tool: task.queue, arguments: { text: "{{ user }}" } }]
  - name: get-to-work
    when: { system_starts_with: You are agent.work, user_contains: Get to work on your mission }
    turn:
      - tool_calls: [{ tool: team.delegate, arguments: { worker: web, task: "Search for news of NVIDIA" } }]
      - tool_calls: [{ tool: team.delegate, arguments: { worker: writer, task: "Write a report", context: "{{ last_result.result }}" } }]
      - text: "{{ last_result.result }}"
  - name: search-on
    when: { system_starts_with: You are agent.work, user_contains: "Search for news of NVIDIA" }
    times: 30
    times_per: server
    reply: { tool_calls: [{ tool: tools.now, arguments: {} }] }
  - name: search
    when: { system_starts_with: You are agent.work, user_contains: "Search for news of NVIDIA" }
    reply: "NVIDIA is up 9 %."
  - name: write
    when: { system_starts_with: You are agent.work, user_contains: Write a report }
    reply: "The report: NVIDIA is up 9 %."
  - name: mission
    when: { system_starts_with: You are agent.work, user_contains: What should you work on for your mission now }
    reply: "Nothing needs doing."
  - name: work
    when: { system_starts_with: You are agent.work }
    reply: "Done: {{ user }}"
"#;

fn team() -> Value {
    json!({
        "team": TEAM,
        "owner": "ann",
        "mission": "Know all of NVIDIA.",
        "lead": { "prompt": "You lead.", "tools": ["tools.now", "task.queue"] },
        "workers": [
            { "name": "web", "description": "searches", "prompt": "You search.", "tools": ["tools.now"], "max_steps": 60 },
            { "name": "writer", "description": "writes", "prompt": "You write.", "tools": ["tools.now"] },
        ],
    })
}

async fn start(wanted: Wanted, team: &Value) -> World {
    let world = wanted.start().await;
    let (status, answer) = world.post("/v1/teams", team).await;
    assert_eq!(status, 201, "{answer}");
    world
}

async fn rows(world: &World, path: &str, list: &str) -> Vec<Value> {
    world.projected().await;
    let (status, answer) = world.get(path).await;
    assert_eq!(status, 200, "{answer}");
    answer[list].as_array().unwrap().clone()
}

async fn of_type(world: &World, agent: &str, type_name: &str, count: usize) -> Vec<EventJson> {
    let subject = format!("kairo.agent.{agent}.");
    world.log.wait_for(count, |event| event.subject.starts_with(&subject) && event.type_name == type_name).await
}

fn is_told(event: &EventJson) -> bool {
    event.payload["user"] == "ann" && event.payload["type"] == "say"
}

#[tokio::test]
async fn a_new_team_gets_to_work_delegates_compacts_briefs_and_wakes_for_its_mission() {
    // What the other tiers have is the heavy one's.
    let wanted = Wanted::new(SCENARIO).env(Service::AgentRuntime, "KAIRO_MODELS__HEAVY__MODEL", "gpt-sim").env(
        Service::AgentRuntime,
        "KAIRO_MODELS__HEAVY__CONTEXT_TOKENS",
        "2000",
    );
    let world = start(wanted, &team()).await;
    let briefed = of_type(&world, TEAM, v1::AgentBriefed::TYPE, 1).await;
    assert_eq!(
        (&briefed[0].payload["told"], &briefed[0].payload["summary"]),
        (&json!(true), &json!("NVIDIA jumps 9 %.")),
        "{:?}",
        briefed[0].payload
    );
    world.settled().await;

    // Each session has a thread of its own, whose knowledge is extracted, and is completed.
    for agent in [TEAM, "research-web", "research-writer"] {
        let threads = rows(&world, &format!("/v1/threads?agent={agent}&status=all"), "threads").await;
        let work: Vec<&Value> = threads.iter().filter(|thread| thread["kind"] == "work").collect();
        assert_eq!(work.len(), 1, "{agent}: {threads:?}");
        assert_eq!(work[0]["status"], "completed");
        let memories = rows(&world, &format!("/v1/memories?agent={agent}"), "memories").await;
        assert_eq!(memories.len(), 1, "{agent}: {memories:?}");
    }
    let compacted = of_type(&world, "research-web", v1::ThreadCompacted::TYPE, 1).await;
    assert!(!compacted.is_empty());
    forks_go_on_as_it_did(&world).await;

    // What was summed up stands among what was said, all of which is still there.
    let thread = compacted[0].thread_id.clone().unwrap();
    let messages = rows(&world, &format!("/v1/threads/{thread}/messages?agent=research-web"), "messages").await;
    let of_role = |role: &str| messages.iter().filter(|message| message["role"] == role).collect::<Vec<_>>();
    assert_eq!(messages[0]["role"], "user", "{messages:?}");
    assert_eq!(of_role("system")[0]["content"], compacted[0].payload["summary"], "{messages:?}");
    let calls: Vec<&Value> = of_role("assistant").iter().flat_map(|it| it["tool_calls"].as_array().unwrap()).collect();
    let ended: Vec<&Value> = of_role("tool").iter().map(|message| &message["tool_call_id"]).collect();
    assert_eq!(calls.iter().map(|call| &call["id"]).collect::<Vec<_>>(), ended);

    // Tasks say where they come from.
    let sources =
        |tasks: &[Value]| tasks.iter().map(|task| task["source"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let web = rows(&world, "/v1/tasks?agent=research-web", "tasks").await;
    assert_eq!((sources(&web), &web[0]["status"]), (vec!["delegation".to_owned()], &json!("completed")));
    assert_eq!(web[0]["result"], "NVIDIA is up 9 %.");
    let lead = rows(&world, "/v1/tasks?agent=research&status=all", "tasks").await;
    let mut from = sources(&lead);
    from.sort();
    assert_eq!(from, ["self", "system"], "{lead:?}");

    // The inbox has the summary, the conversation the whole, and nothing of the work.
    let (_, inbox) = world.get("/v1/inbox?user=ann").await;
    assert_eq!(inbox["briefings"].as_array().unwrap().len(), 1, "{inbox}");
    assert_eq!(inbox["briefings"][0]["summary"], "NVIDIA jumps 9 %.");
    let said = rows(&world, "/v1/conversations/research?user=ann", "messages").await;
    let said: Vec<&str> = said.iter().map(|message| message["text"].as_str().unwrap()).collect();
    assert_eq!(said, ["NVIDIA jumps 9 %; the whole report is in the thread."]);

    // The next run is brought forward, and finds nothing worth telling: nothing is said.
    let (_, shown) = world.get("/v1/agents/research").await;
    assert!(shown["agent"]["next_run_at"].is_string(), "{shown}");
    let (_, worker) = world.get("/v1/agents/research-web").await;
    assert!(worker["agent"]["next_run_at"].is_null(), "a worker is purely reactive: {worker}");
    let next = lead.iter().find(|task| task["source"] == "self").unwrap();
    let order = json!({ "user": "ann", "agent": TEAM, "command": "run", "task_id": next["task_id"] });
    assert_eq!(world.post("/v1/commands", &order).await.0, 202);
    let briefed = of_type(&world, TEAM, v1::AgentBriefed::TYPE, 2).await;
    assert!(!briefed[1].payload["told"].as_bool().unwrap_or_default());
    assert_eq!(briefed[1].payload["reason"], "Nothing new.");

    // What its owner asks for is acknowledged at once, and answered in the conversation.
    let sent = world.send(TEAM, "Look at AMD, too").await;
    assert_eq!(world.reply(&sent).await, "I will see to it: Look at AMD, too");
    let answer =
        |event: &EventJson| event.correlation_id == sent.event_id && is_told(event) && event.payload["final"] != true;
    assert_eq!(world.log.wait(answer).await.text(), "Done: Look at AMD, too");
    world.settled().await;
    audit::passes(&world).await;
    world.verified().await;
    world.end().await;
}

/// The whole team goes on from where its lead was asked to get to work, and does all of it again without a model; its lead alone
/// is answered what its workers answered then.
async fn forks_go_on_as_it_did(world: &World) {
    let requests = world.model_requests().await.len();
    let begun = of_type(world, TEAM, v1::TaskScheduled::TYPE, 1).await[0].sequence.to_string();
    let team = "research,research-web,research-writer";
    for (agents, others) in [(team, 0), (TEAM, 2)] {
        let forked = fork(world, &[agents, "--at", &begun], "").await;
        assert_eq!(forked.code, Some(0), "{}", forked.told);
        assert_eq!(forked.said, ["NVIDIA jumps 9 %; the whole report is in the thread."], "{}", forked.told);
        assert_eq!(
            (forked.count("models_asked"), forked.count("agents_recorded")),
            (0, others),
            "{:?}",
            forked.answers
        );
    }
    assert_eq!(world.model_requests().await.len(), requests);
}

#[tokio::test]
async fn nothing_that_was_delegated_is_lost_or_done_twice_whichever_runtime_is_killed() {
    let mut world = start(Wanted::new(SCENARIO).replicas(Service::AgentRuntime, 2), &team()).await;
    for (agent, type_name) in [
        (TEAM, v1::TaskStarted::TYPE),
        ("research-web", v1::AgentRequest::TYPE),
        ("research-web", v1::TaskStarted::TYPE),
        (TEAM, v1::AgentAnswer::TYPE),
        ("research-writer", v1::AgentRequest::TYPE),
        (TEAM, v1::TaskEnded::TYPE),
    ] {
        of_type(&world, agent, type_name, 1).await;
        for replica in 0..2 {
            world.stack.kill9(Service::AgentRuntime, replica).await.unwrap();
            world.stack.restart(Service::AgentRuntime, replica).await.unwrap();
        }
    }
    of_type(&world, TEAM, v1::AgentBriefed::TYPE, 1).await;
    world.settled().await;
    for agent in ["research-web", "research-writer"] {
        let tasks = rows(&world, &format!("/v1/tasks?agent={agent}"), "tasks").await;
        assert_eq!(tasks.len(), 1, "{tasks:?}");
        assert_eq!(tasks[0]["status"], "completed");
    }
    audit::passes(&world).await;
    world.verified().await;
    world.end().await;
}

#[tokio::test]
async fn a_team_that_has_spent_its_day_rests_and_its_owner_is_told_and_others_cannot_change_that() {
    let mut team = team();
    team["tokens_per_day"] = json!(1);
    let world = start(Wanted::new(SCENARIO), &team).await;
    let changed = of_type(&world, TEAM, v1::TeamChanged::TYPE, 1).await;
    assert_eq!((&changed[0].payload["status"], &changed[0].payload["over_budget"]), (&json!("paused"), &json!(true)));
    let told = world.log.wait(|event| is_told(event) && event.text().starts_with("The team rests until")).await;
    assert!(told.text().contains("of 1 tokens of the day are spent"), "{}", told.text());
    of_type(&world, "research-web", v1::TeamChanged::TYPE, 1).await;
    let shown = |world: World| async move {
        world.projected().await;
        let (_, team) = world.get("/v1/teams/research").await;
        (world, team["team"].clone())
    };
    let (world, seen) = shown(world).await;
    assert_eq!((&seen["status"], &seen["over_budget"]), (&json!("paused"), &json!(true)), "{seen}");
    for (user, expected) in [("ann", "tokens of the day are spent"), ("bob", "only its owner")] {
        let order = json!({ "user": user, "agent": TEAM, "command": "resume", "team": TEAM });
        assert_eq!(world.post("/v1/commands", &order).await.0, 202);
        let refused = |event: &EventJson| event.type_name == v1::AgentFailed::TYPE && event.text().contains(expected);
        world.log.wait(refused).await;
    }
    world.end().await;
}
