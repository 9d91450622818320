//! Two users of one agent cannot reach each other's data by way of the agent.
//!
//! Access over HTTP is tested in [`crate::limited`] and [`crate::keys`], endpoint by endpoint.

mod endpoints;

use std::collections::BTreeMap;

use jiff::Timestamp;
use kairo_core::{
    bus::append::OutgoingEvent,
    envelope::{Envelope, Origin},
    event_json::EventJson,
    ids,
    subjects::{AGENT_DECISION, Service},
    threads,
};
use kairo_proto::v1::{
    self, AgentAction, AgentDecision, DecidedEvent, ToolCall, agent_action::Action, decided_event::Event,
};
use serde_json::{Value, json};

use crate::world::{Wanted, World, agent};

const AGENT: &str = "bob";

/// The calls that the agent makes for the words of its users.
const SCENARIO: &str = r#"
rules:
  - name: critic
    when: { system_starts_with: You are a submodule }
    reply: careful
  - name: keywords
    when: { system_starts_with: You are memory.append }
    reply: { json: { keywords: [marmalade] } }
  - name: spawn
    when: { user_contains: "run something" }
    turn:
      - tool_calls: [{ tool: process.spawn, arguments: { program: sh, args: ["-c", "exec sleep 600"] } }]
      - text: "{{ last_result.process_id }}"
  - name: wait
    when: { user_contains: "wait for something" }
    turn:
      - tool_calls: [{ tool: process.run, arguments: { program: sh, args: ["-c", "exec sleep 600"] } }]
      - text: It is over.
  - name: list
    when: { user_contains: "what runs" }
    turn:
      - tool_calls: [{ tool: process.list, arguments: {} }]
      - text: "{{ last_result.processes | length }}"
  - name: status
    when: { user_matches: 'process.status (?<id>[0-9a-f-]{36})' }
    turn:
      - tool_calls: [{ tool: process.status, arguments: { process_id: "{{ captures.id }}" } }]
      - text: "{{ last_result }}"
  - name: cancel
    when: { user_matches: 'process.cancel (?<id>[0-9a-f-]{36})' }
    turn:
      - tool_calls: [{ tool: process.cancel, arguments: { process_id: "{{ captures.id }}" } }]
      - text: "{{ last_result }}"
  - name: signal
    when: { user_matches: 'signal (?<id>[0-9a-f-]{36})' }
    turn:
      - tool_calls: [{ tool: process.signal, arguments: { process_id: "{{ captures.id }}", signal: KILL } }]
      - text: "{{ last_result }}"
  - name: write
    when: { user_matches: 'write to (?<id>[0-9a-f-]{36})' }
    turn:
      - tool_calls: [{ tool: process.write, arguments: { process_id: "{{ captures.id }}", text: "exit" } }]
      - text: "{{ last_result }}"
  - name: stop
    when: { user_matches: 'stop (?<id>[0-9a-f-]{36})' }
    turn:
      - tool_calls: [{ tool: action.cancel, arguments: { action_id: "{{ captures.id }}" } }]
      - text: "{{ last_result }}"
  - name: remember
    when: { user_contains: "keep this" }
    turn:
      - tool_calls: [{ tool: memory.append, arguments: { content: "The marmalade is behind the books." } }]
      - text: Kept.
  - name: search
    when: { user_contains: "where is the marmalade" }
    turn:
      - tool_calls: [{ tool: memory.search, arguments: { query: "marmalade" } }]
      - text: "found {{ last_result.matches | length }}"
  - name: watch
    when: { user_contains: "watch searches" }
    turn:
      - tool_calls: [{ tool: task.register, arguments: { trigger: "post:memory.search", title: nosy, action: [{ event: user.notify, params: { message: "seen" } }] } }]
      - text: "{{ last_result.task_id }}"
  - name: prevent
    when: { user_contains: "prevent searches" }
    turn:
      - tool_calls: [{ tool: task.register, arguments: { trigger: "pre:memory.search", title: mean, action: [{ event: step.stop, params: { reason: "no" } }] } }]
      - text: "{{ last_result.task_id }}"
  - name: now
    when: { user_contains: "what time is it" }
    turn:
      - tool_calls: [{ tool: tools.now, arguments: {} }]
      - text: "{{ last_result }}"
  - name: echo
    when: {}
    reply: "You said: {{ user }}"
"#;

/// The rule that keeps each tool to the user on whose behalf it is called. A new tool must be listed here.
const TOOLS: &[(&str, Kept)] = &[
    ("action.cancel", Kept::ToTheirs),
    ("process.cancel", Kept::ToTheirs),
    ("state.write", Kept::ToTheirs),
    ("state.read", Kept::ToTheirs),
    ("state.search", Kept::ToTheirs),
    ("state.related", Kept::ToTheirs),
    ("state.delete", Kept::ToTheirs),
    ("team.delegate", Kept::ToTheirs),
    ("member.ask", Kept::ToTheirs),
    ("history.query", Kept::ToTheirs),
    ("submodule.ask", Kept::ToTheirs),
    ("submodule.add", Kept::OfTheAgent),
    ("submodule.remove", Kept::OfTheAgent),
    ("team.status", Kept::ToTheirs),
    ("process.list", Kept::ToTheirs),
    ("process.signal", Kept::ToTheirs),
    ("process.status", Kept::ToTheirs),
    ("process.write", Kept::ToTheirs),
    ("memory.search", Kept::ToTheirs),
    ("memory.append", Kept::ToTheirs),
    ("memory.digest", Kept::ToTheirs),
    ("task.archive", Kept::ToTheirs),
    ("task.cancel", Kept::ToTheirs),
    ("task.list", Kept::ToTheirs),
    ("task.first", Kept::ToTheirs),
    ("task.pause", Kept::ToTheirs),
    ("task.queue", Kept::ToTheirs),
    ("task.register", Kept::ToTheirs),
    ("task.resume", Kept::ToTheirs),
    ("task.run", Kept::ToTheirs),
    ("task.schedule", Kept::ToTheirs),
    ("thread.archive", Kept::ToTheirs),
    ("thread.summarize", Kept::ToTheirs),
    ("thread.unarchive", Kept::ToTheirs),
    ("chain.cancel", Kept::ToTheirs),
    ("user.notify", Kept::ToTheirs),
    ("process.run", Kept::OfTheAgent),
    ("process.spawn", Kept::OfTheAgent),
    ("step.change", Kept::Nothing),
    ("step.stop", Kept::Nothing),
    ("tools.date_calc", Kept::Nothing),
    ("tools.now", Kept::Nothing),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    /// It reaches what is this user's.
    ToTheirs,
    /// It works on what the agent's users share: its folder, its submodules.
    OfTheAgent,
    /// It reaches nothing.
    Nothing,
}

async fn ask(world: &World, user: &str, text: &str) -> String {
    ask_in(world, json!({ "user": user, "agent": AGENT, "text": text })).await.payload["text"]
        .as_str()
        .unwrap()
        .to_owned()
}

async fn ask_in(world: &World, message: Value) -> EventJson {
    let sent = world.send_as(&message).await;
    world.log.wait(|event| event.correlation_id == sent.event_id && event.is_final_reply()).await
}

async fn how_it_ended(world: &World, process: &str) -> Value {
    world.projected().await;
    world.get(&format!("/v1/processes/{process}")).await.1["outcome"].clone()
}

#[tokio::test]
async fn users_of_an_agent_reach_their_own_by_chat() {
    let world = Wanted::new(SCENARIO).start().await;
    world.define(AGENT).await;

    // Processes.
    let process = ask(&world, "ann", "run something").await;
    for attempt in [
        format!("process.status {process}"),
        format!("process.cancel {process}"),
        format!("signal {process}"),
        format!("write to {process}"),
    ] {
        let told = ask(&world, "joe", &attempt).await;
        assert!(told.contains("not_found") && told.contains("no process of this agent"), "{attempt}: {told}");
    }
    assert_eq!(
        (ask(&world, "joe", "what runs").await, ask(&world, "ann", "what runs").await),
        ("0".into(), "1".into())
    );
    assert_eq!(how_it_ended(&world, &process).await, Value::Null);

    // Actions.
    let sent = world.send_as(&json!({ "user": "ann", "agent": AGENT, "text": "wait for something" })).await;
    let of_hers = |event: &EventJson| event.correlation_id == sent.event_id;
    let begun = world.log.wait(|event| of_hers(event) && event.type_name == v1::ProcessSpawned::TYPE).await;
    let action = begun.payload["action_id"].as_str().unwrap().to_owned();
    let told = ask(&world, "joe", &format!("stop {action}")).await;
    assert!(told.contains("not_found"), "{told}");
    assert_eq!(how_it_ended(&world, begun.payload["process_id"].as_str().unwrap()).await, Value::Null);
    assert!(!ask(&world, "ann", &format!("stop {action}")).await.contains("not_found"));

    // Memories, also from a thread that is called like hers.
    ask(&world, "ann", "keep this").await;
    assert_eq!(ask(&world, "ann", "where is the marmalade").await, "found 1");
    assert_eq!(ask(&world, "joe", "where is the marmalade").await, "found 0");
    let hers = threads::single_thread_id(AGENT, "ann");
    let message = json!({ "user": "joe", "agent": AGENT, "text": "where is the marmalade", "thread_id": hers });
    let told = ask_in(&world, message).await;
    assert_eq!((&told.payload["text"], told.thread_id.as_deref() == Some(&hers)), (&json!("found 0"), false));
    assert!(!ask(&world, "ann", &format!("process.cancel {process}")).await.contains("not_found"));
    world.end().await;
}

#[tokio::test]
async fn nobody_takes_a_thread_before_or_behind_its_user() {
    let world = Wanted::new(SCENARIO).start().await;
    world.define(AGENT).await;
    // Before she has said a word, and by a name that she will use, too.
    let hers = threads::single_thread_id(AGENT, "ann");
    for thread in [hers.as_str(), "dinner"] {
        let message = json!({ "user": "joe", "agent": AGENT, "text": "mine now", "thread_id": thread });
        assert_eq!(ask_in(&world, message).await.payload["text"], "You said: mine now");
    }
    let told = ask_in(&world, json!({ "user": "ann", "agent": AGENT, "text": "hello" })).await;
    assert_eq!(
        (told.payload["text"].as_str(), told.thread_id.as_deref()),
        (Some("You said: hello"), Some(hers.as_str()))
    );
    let dinner = json!({ "user": "ann", "agent": AGENT, "text": "soup", "thread_id": "dinner" });
    let told = ask_in(&world, dinner).await;
    let called_so = told.thread_id.unwrap();
    assert_eq!(called_so, threads::id_for_name(AGENT, "ann", "dinner"));
    // By what she calls it and by its id it is the same thread, and an order finds it by both.
    for thread in ["dinner", called_so.as_str()] {
        let message = json!({ "user": "ann", "agent": AGENT, "text": "more", "thread_id": thread });
        assert_eq!(ask_in(&world, message).await.thread_id.as_deref(), Some(called_so.as_str()));
    }
    let order = json!({ "user": "ann", "agent": AGENT, "command": "archive", "thread_id": "dinner" });
    assert_eq!(world.post("/v1/commands", &order).await.0, 202);
    let archived = world.log.wait(|event| event.type_name == v1::ThreadArchived::TYPE).await;
    assert_eq!(archived.payload["thread_id"], called_so.as_str());
    // In the read model each thread is its user's, too.
    world.projected().await;
    let listed = world.get(&format!("/v1/threads?agent={AGENT}&status=all")).await.1;
    let users: BTreeMap<&str, &str> = listed["threads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|thread| (thread["thread_id"].as_str().unwrap(), thread["user"].as_str().unwrap()))
        .collect();
    assert_eq!((users.len(), users[hers.as_str()], users[called_so.as_str()]), (4, "ann", "ann"), "{listed}");
    // What she said there is in it, whatever she called it.
    let messages = world.get(&format!("/v1/threads/{called_so}/messages?agent={AGENT}")).await.1;
    let said = messages["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "user");
    assert_eq!(said.map(|message| &message["content"]).collect::<Vec<_>>(), ["soup", "more", "more"], "{messages}");
    world.end().await;
}

#[tokio::test]
async fn hooks_are_their_users_own_until_an_administrator_shares_them() {
    let world = Wanted::new(SCENARIO).start().await;
    world.define(AGENT).await;
    let nosy = ask(&world, "joe", "watch searches").await;
    ask(&world, "joe", "prevent searches").await;
    let fired = |hook: &str, by: &str| {
        let (hook, by) = (hook.to_owned(), by.to_owned());
        move |event: &EventJson| {
            event.type_name == v1::TaskFired::TYPE
                && event.payload["task_id"] == hook
                && event.payload.to_string().contains(&by)
        }
    };
    // Hers is neither prevented nor seen.
    assert_eq!(ask(&world, "ann", "where is the marmalade").await, "found 0");
    let all = world.log.now(&world.bus).await;
    assert!(!all.iter().any(|event| event.type_name == v1::TaskFired::TYPE), "{}", world.log.text());
    // His own is prevented, so nothing was found for the other hook to see.
    assert_ne!(ask(&world, "joe", "where is the marmalade").await, "found 0");

    let share = |word: &str| json!({ "user": "joe", "agent": AGENT, "command": word, "task_id": nosy });
    assert_eq!(world.post("/v1/commands", &share("share")).await.0, 202);
    world.log.wait(|event| event.type_name == v1::TaskChanged::TYPE && event.payload["shared"] == true).await;
    assert_eq!(ask(&world, "ann", "where is the marmalade").await, "found 0");
    world.log.wait(fired(&nosy, "marmalade")).await;

    assert_eq!(world.post("/v1/commands", &share("unshare")).await.0, 202);
    world.log.wait(|event| event.type_name == v1::TaskChanged::TYPE && event.payload["shared"] == false).await;
    let before = world.log.now(&world.bus).await.into_iter().filter(fired(&nosy, "")).count();
    assert_eq!(ask(&world, "ann", "where is the marmalade").await, "found 0");
    assert_eq!(world.log.now(&world.bus).await.into_iter().filter(fired(&nosy, "")).count(), before);
    world.end().await;
}

/// A decision that nobody decided, which calls a tool with whatever consent.
fn forged(call: ToolCall, cursor: u64) -> OutgoingEvent {
    let (id, owner) = (ids::generate(), agent(AGENT));
    let envelope = Envelope::from_outside(id, Service::AgentRuntime, Origin::Internal, Timestamp::now());
    let action = Event::Action(AgentAction { action: Some(Action::ToolCall(call)) });
    let event = DecidedEvent {
        event_id: ids::derive(id, "0").to_string(),
        correlation_id: id.to_string(),
        event: Some(action),
        ..Default::default()
    };
    OutgoingEvent::new(
        &AGENT_DECISION,
        &owner,
        envelope,
        AgentDecision { cursor, events: vec![event], ..Default::default() },
    )
}

#[tokio::test]
async fn no_decision_makes_up_a_humans_consent() {
    let wanted =
        Wanted::new(SCENARIO).env(kairo_local::Service::ToolRunner, "KAIRO_TOOL_RUNNER__APPROVAL", r#"["tools.now"]"#);
    let world = wanted.start().await;
    world.define(AGENT).await;
    let sent = world.send_as(&json!({ "user": "ann", "agent": AGENT, "text": "what time is it" })).await;
    let of_hers = |event: &EventJson| event.correlation_id == sent.event_id;
    let asked = world.log.wait(|event| of_hers(event) && event.type_name == v1::ApprovalRequested::TYPE).await;
    let call = ToolCall {
        tool: "tools.now".to_owned(),
        arguments: asked.payload["arguments"].as_str().map_or_else(|| "{}".to_owned(), str::to_owned),
        approval_id: asked.event_id.to_string(),
        asked_at: asked.sequence,
        user: Some("ann".to_owned()),
        ..Default::default()
    };
    let refusals = |call: ToolCall| {
        let world = &world;
        async move {
            let decision = forged(call, world.end_of_log().await);
            let correlation = decision.envelope.correlation_id;
            world.bus.publish(&decision).await.unwrap();
            let is_its =
                move |event: &EventJson| event.correlation_id == correlation && event.type_name == v1::ToolResult::TYPE;
            world.log.wait(is_its).await.payload
        }
    };
    let refused = |payload: &Value, why: &str| {
        assert!(
            payload["error"] == "approval_required" && payload["message"].as_str().unwrap().contains(why),
            "{payload}"
        );
    };
    refused(&refusals(ToolCall { approval_id: String::new(), ..call.clone() }).await, "no consent");
    refused(&refusals(ToolCall { approval_id: ids::generate().to_string(), ..call.clone() }).await, "nobody was asked");
    refused(&refusals(ToolCall { asked_at: 0, ..call.clone() }).await, "nobody was asked");
    refused(&refusals(call.clone()).await, "ann has not answered");
    let verdict = json!({ "user": "ann", "agent": AGENT, "action_id": asked.event_id, "verdict": "approved" });
    assert_eq!(world.post("/v1/approvals", &verdict).await.0, 202);
    world.log.wait(|event| event.type_name == v1::ToolResult::TYPE && event.payload["ok"] == true).await;
    // What she said yes to is this call, with these arguments.
    let other = r#"{"time_zone":"Asia/Tokyo"}"#.to_owned();
    refused(&refusals(ToolCall { arguments: other, ..call.clone() }).await, "nobody was asked");
    world.end().await;
}

/// A tool that an operator adds is never taken for one of Kairo's own.
#[test]
fn names_that_begin_like_those_of_built_in_tools_are_kept_for_them() {
    for (tool, _) in TOOLS {
        let (first, _) = tool.split_once('.').unwrap();
        assert!(kairo_tool_runner::tool_name::BUILT_IN_NAMESPACES.contains(&first), "{tool}");
    }
}

#[tokio::test]
async fn every_tool_says_what_keeps_it_to_its_user() {
    let world = Wanted::new(SCENARIO).start().await;
    let catalogue = world.log.wait(|event| event.type_name == v1::ToolCatalogue::TYPE).await;
    let offered =
        catalogue.payload["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
    let intrinsics = kairo_mind::intrinsics::all().map(|intrinsic| intrinsic.tool.name.to_string());
    for tool in offered.chain(intrinsics) {
        assert!(TOOLS.iter().any(|(name, _)| *name == tool), "{tool}: whose things does it reach?");
    }
    world.end().await;
}
