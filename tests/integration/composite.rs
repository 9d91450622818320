//! Agents that are composed of others, as seed 004 tells it: a coordinator offers the tools of its members, has each call carried
//! out by the member that has the tool, or has a member think. With the real services; the model's words are the simulator's.

use std::fs;

use kairo_core::event_json::EventJson;
use kairo_local::Service;
use kairo_proto::v1;
use serde_json::{Value, json};

use crate::{
    faults::audit,
    world::{Sent, Wanted, World},
};

const WHOLE: &str = "whole";

const SCENARIO: &str = r#"
rules:
  - name: keywords
    when: { system_starts_with: You are memory.append }
    reply: { json: { keywords: [marmalade] } }
  - name: keeper
    when: { system_starts_with: You are agent.work, user_contains: Remember }
    turn:
      - { tool_calls: [{ tool: memory.append, arguments: { content: "The marmalade is in the cellar." } }], usage: { prompt_tokens: 700, completion_tokens: 7 } }
      - { text: "Kept.", usage: { prompt_tokens: 300, completion_tokens: 3 } }
  - name: both
    when: { user_contains: the time and a greeting }
    turn:
      - tool_calls:
          - { tool: tools.now, arguments: {} }
          - { tool: process.run, arguments: { program: echo, args: [hello] } }
      - text: "{{ last_result.stdout }}"
  - name: keep
    when: { user_contains: keep it }
    turn:
      - tool_calls: [{ tool: member.ask, arguments: { member: keeper, text: "Remember where the marmalade is, for {{ user }}." } }]
      - text: "{{ last_result.result }}"
  - name: search
    when: { user_contains: what of the marmalade }
    turn:
      - tool_calls: [{ tool: memory.search, arguments: { query: marmalade } }]
      - text: "found {{ last_result.matches | length }}"
  - name: mail
    when: { user_contains: write to bob }
    turn:
      - tool_calls: [{ tool: email.send, arguments: { to: [bob@example.org], subject: Hi, body: Hello } }]
      - text: "{{ last_result_text }}"
  - name: broken
    when: { user_contains: fail }
    turn:
      - tool_calls: [{ tool: process.run, arguments: { program: nothing } }]
      - text: "{{ last_result_text }}"
  - name: write-down
    when: { user_contains: write it down }
    turn:
      - tool_calls: [{ tool: process.run, arguments: { program: sh, args: ["-c", "echo once >> notes"] } }]
      - tool_calls: [{ tool: member.ask, arguments: { member: keeper, text: "Remember that it was written." } }]
      - text: "{{ last_result.result }}"
  - name: told
    when: { system_matches: "answer it now: wait" }
    reply: "{{ last_result.error }}"
  - name: wait
    when: { user_contains: wait }
    turn:
      - tool_calls: [{ tool: process.run, arguments: { program: sh, args: ["-c", "exec sleep 600"] } }]
      - text: "{{ last_result.error }}"
"#;

async fn define(world: &World, profile: Value) {
    let (status, answer) = world.post("/v1/agents", &profile).await;
    assert_eq!(status, 201, "{answer}");
}

/// A coordinator, and its three specialists.
async fn start(wanted: Wanted) -> World {
    let world = wanted.start().await;
    let member = |agent: &str, tools: Value| json!({ "agent": agent, "description": format!("{agent} things"), "prompt": "You are a specialist.", "tools": tools });
    define(&world, member("clock", json!(["tools.now", "process.run"]))).await;
    define(&world, member("keeper", json!(["memory.*"]))).await;
    define(&world, member("mail", json!(["email.send"]))).await;
    let members = json!([{ "agent": "clock" }, { "agent": "keeper" }, { "agent": "mail" }]);
    define(&world, json!({ "agent": WHOLE, "prompt": "You coordinate.", "members": members })).await;
    world
}

fn of(sent: &Sent, subject: &'static str, type_name: &'static str) -> impl Fn(&EventJson) -> bool + use<> {
    let correlation = sent.event_id;
    move |event| event.correlation_id == correlation && event.subject == subject && event.type_name == type_name
}

async fn says(world: &World, user: &str, text: &str) -> Sent {
    world.send_as(&json!({ "user": user, "agent": WHOLE, "text": text })).await
}

async fn rows(world: &World, path: &str, list: &str) -> Vec<Value> {
    world.projected().await;
    let (status, answer) = world.get(path).await;
    assert_eq!(status, 200, "{answer}");
    answer[list].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_composite_agent_delegates_tools_to_sub_agents_rather_than_executing_them_directly() {
    let desk = tempfile::tempdir().unwrap();
    let root = desk.path().display().to_string();
    let wanted = Wanted::new(SCENARIO).env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__WORKSPACE__ROOT", root);
    let world = start(wanted).await;
    // What members offer was taken from their own profiles.
    world.projected().await;
    let (_, shown) = world.get("/v1/agents/whole").await;
    let tools = &shown["agent"]["profile"]["members"][0];
    assert_eq!(
        (&tools["tools"], &tools["description"]),
        (&json!(["tools.now", "process.run"]), &json!("clock things"))
    );

    // Several at once, each carried out by the mapped agent, in its own log.
    let sent = says(&world, "ann", "the time and a greeting").await;
    assert_eq!(world.reply(&sent).await.trim(), "hello");
    let events = world.events_of(&sent).await;
    let subjects = |type_name: &str| -> Vec<String> {
        let of_type = events.iter().filter(|event| event.type_name == type_name);
        of_type.map(|event| event.subject.clone()).collect()
    };
    assert_eq!(subjects(v1::ToolResult::TYPE), ["kairo.tool.clock.result"; 2]);
    assert_eq!(subjects(v1::AgentRequest::TYPE), ["kairo.agent.clock.request"; 2]);
    assert_eq!(subjects(v1::AgentAnswer::TYPE), ["kairo.agent.whole.answer"; 2]);
    world.projected().await;
    let (_, answer) = world.get(&format!("/v1/interactions/{}", sent.event_id)).await;
    let turn = &answer["interaction"];
    let called = |agent: &str| -> Vec<&str> {
        let steps = turn["steps"].as_array().unwrap().iter();
        steps.filter(|step| step["agent"] == agent).filter_map(|step| step["action"].as_str()).collect()
    };
    let tools = vec!["tools.now", "process.run"];
    assert_eq!((called(WHOLE), called("clock")), (tools.clone(), tools), "{turn}");
    assert_eq!(turn["status"], "completed");
    let actions = rows(&world, "/v1/actions?agent=whole", "actions").await;
    assert!(actions.iter().all(|action| action["executor"] == "clock" && action["ok"] == true), "{actions:?}");

    // What fails is the answer, to the letter.
    let sent = says(&world, "ann", "fail").await;
    let reply = world.reply(&sent).await;
    let result = world.log.wait(of(&sent, "kairo.tool.clock.result", v1::ToolResult::TYPE)).await;
    assert!(reply.contains(result.payload["error"].as_str().unwrap()) && reply.contains("nothing"), "{reply}");

    // A member thinks with its own prompt, in its own log, and that is its usage.
    let sent = says(&world, "ann", "keep it").await;
    assert_eq!(world.reply(&sent).await, "Kept.");
    let answer = world.log.wait(of(&sent, "kairo.agent.whole.answer", v1::AgentAnswer::TYPE)).await;
    let usage = rows(&world, "/v1/usage?by=agent,user", "usage").await;
    let of_keeper = usage.iter().find(|row| row["agent"] == "keeper").unwrap();
    let took = of_keeper["input_tokens"].as_u64().unwrap() + of_keeper["output_tokens"].as_u64().unwrap();
    assert!(took >= 1_010 && of_keeper["user"] == "ann", "{usage:?}");
    // Keywords of what it keeps are found later, and are no part of the answer.
    let spent: u64 = answer.payload["spent"]["tokens"].as_str().unwrap().parse().unwrap();
    assert!(answer.payload["from"] == "keeper" && (1_010..=took).contains(&spent), "{}", answer.payload);
    assert!(usage.iter().all(|row| row["agent"] != "clock"), "it asks no model to make a call: {usage:?}");
    let said = rows(&world, "/v1/conversations/keeper?user=ann", "messages").await;
    assert_eq!(said, Vec::<Value>::new(), "nobody's conversation shows it");

    // Whoever it is done for has the results, and nobody else.
    let found = says(&world, "ann", "what of the marmalade").await;
    assert_eq!(world.reply(&found).await, "found 1");
    let found = says(&world, "bob", "what of the marmalade").await;
    assert_eq!(world.reply(&found).await, "found 0", "what a member remembers of ann is hers");
    let sent = says(&world, "bob", "keep it").await;
    world.reply(&sent).await;
    let requests = world.model_requests().await;
    let of_bob = requests
        .iter()
        .rev()
        .find(|request| request["body"]["messages"].to_string().contains("for bob"))
        .map(|it| it["body"].to_string());
    assert!(of_bob.is_none_or(|request| !request.contains("for ann")), "a member's threads are apart");

    // The member asks for consent, of the user for whom it acts.
    let sent = says(&world, "ann", "write to bob").await;
    let asked = world.log.wait(of(&sent, "kairo.agent.mail.decision", v1::ApprovalRequested::TYPE)).await;
    let inbox = rows(&world, "/v1/inbox?user=ann", "approvals").await;
    assert_eq!(
        (inbox.len(), &inbox[0]["agent"], &inbox[0]["tool"]),
        (1, &json!("mail"), &json!("email.send")),
        "{inbox:?}"
    );
    assert_eq!(rows(&world, "/v1/inbox?user=bob", "approvals").await, Vec::<Value>::new());
    let verdict = json!({ "user": "ann", "agent": "mail", "action_id": asked.event_id, "verdict": "rejected" });
    assert_eq!(world.post("/v1/approvals", &verdict).await.0, 202);
    assert!(world.reply(&sent).await.contains("ann rejected it"));

    audit::passes(&world).await;
    world.verified().await;
    world.end().await;
}

#[tokio::test]
async fn each_request_to_a_member_has_one_answer_whichever_runtime_is_killed() {
    let mut world = start(Wanted::new(SCENARIO).replicas(Service::AgentRuntime, 2)).await;
    let sent = says(&world, "ann", "write it down").await;
    for (subject, type_name) in [
        ("kairo.agent.clock.request", v1::AgentRequest::TYPE),
        ("kairo.tool.clock.result", v1::ToolResult::TYPE),
        ("kairo.agent.whole.answer", v1::AgentAnswer::TYPE),
        ("kairo.agent.keeper.request", v1::AgentRequest::TYPE),
        ("kairo.agent.keeper.decision", v1::AgentAnswered::TYPE),
    ] {
        world.log.wait(of(&sent, subject, type_name)).await;
        for replica in 0..2 {
            world.stack.kill9(Service::AgentRuntime, replica).await.unwrap();
            world.stack.restart(Service::AgentRuntime, replica).await.unwrap();
        }
    }
    assert_eq!(world.reply(&sent).await, "Kept.");
    world.settled().await;
    assert_eq!(fs::read_to_string(world.workplace("clock").join("notes")).unwrap(), "once\n");
    let events = world.events_of(&sent).await;
    for type_name in [v1::AgentRequest::TYPE, v1::AgentAnswered::TYPE, v1::AgentAnswer::TYPE] {
        assert_eq!(events.iter().filter(|event| event.type_name == type_name).count(), 2, "{type_name}");
    }
    audit::passes(&world).await;
    world.verified().await;
    world.end().await;
}

#[tokio::test]
async fn stopping_what_a_member_does_reaches_its_process_and_the_composite_goes_on() {
    let world = start(Wanted::new(SCENARIO)).await;
    let sent = says(&world, "ann", "wait").await;
    world.log.wait(of(&sent, "kairo.process.clock.spawned", v1::ProcessSpawned::TYPE)).await;
    let request = world.log.wait(of(&sent, "kairo.agent.clock.request", v1::AgentRequest::TYPE)).await;
    let action = request.payload["request_id"].clone();
    let order = json!({ "user": "ann", "agent": WHOLE, "command": "cancel", "action_id": action });
    assert_eq!(world.post("/v1/commands", &order).await.0, 202);
    assert_eq!(world.reply(&sent).await, "canceled");
    let answer = world.log.wait(of(&sent, "kairo.agent.whole.answer", v1::AgentAnswer::TYPE)).await;
    assert_eq!((&answer.payload["status"], &answer.payload["error"]["kind"]), (&json!("canceled"), &json!("canceled")));
    world.settled().await;
    let exits = world.log.now(&world.bus).await;
    let exits = exits.iter().filter(|event| event.type_name == v1::ProcessExited::TYPE).count();
    assert_eq!(exits, 1, "no process is left");
    audit::passes(&world).await;
    world.end().await;
}

#[tokio::test]
async fn members_must_be_there_and_what_is_looked_at_must_only_read() {
    let world = start(Wanted::new(SCENARIO)).await;
    for (more, field) in [
        (json!({ "members": [{ "agent": "nobody" }] }), "members[0].agent"),
        (json!({ "members": [{ "agent": "clock" }, { "agent": "bad" }] }), "members[1].agent"),
        (json!({ "environment": [{ "tool": "tools.now" }, { "tool": "process.run" }] }), "environment[1].tool"),
        (json!({ "environment": [{ "tool": "no.such" }] }), "environment[0].tool"),
    ] {
        let mut profile = json!({ "agent": "bad", "prompt": "Be kind." });
        profile.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, answer) = world.post("/v1/agents", &profile).await;
        assert_eq!((status, &answer["errors"][0]["field"]), (400, &json!(field)), "{answer}");
    }
    world.end().await;
}
