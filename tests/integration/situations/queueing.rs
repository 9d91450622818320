//! Requests for work and small talk.

use kairo_core::event_json::EventJson;
use kairo_proto::v1;
use kairo_tests::situations::{Speaker, seeds};
use serde_json::{Value, json};

use super::{define_background, kill_runtimes, rows, rule, sorted, with_rules};
use crate::faults::audit;

/// Requests and pleasantries of each speaker.
const REQUESTS: usize = 2;

struct Spoken {
    agent: String,
    requests: Vec<String>,
    small_talk: Vec<String>,
}

fn spoken(mut speaker: Speaker) -> Spoken {
    let requests = (0..REQUESTS).map(|_| speaker.request()).collect();
    let small_talk = (0..REQUESTS).map(|_| speaker.small_talk()).collect();
    Spoken { agent: speaker.name(), requests, small_talk }
}

/// The fast model queues requests, which it is told apart from small talk by; the heavy one says what it worked on.
fn rules(all: &[Spoken]) -> Vec<Value> {
    let requests: Vec<&String> = all.iter().flat_map(|spoken| &spoken.requests).collect();
    let queue = json!([{
        "text": "I will: {{ user }}",
        "tool_calls": [{ "tool": "task.queue", "arguments": { "text": "{{ user }}" } }],
    }]);
    let to_acknowledge = json!({
        "system_starts_with": "You are agent.acknowledge", "user_contains": requests, "tools_offered": "task.queue",
    });
    let work = json!([{ "tool_calls": [{ "tool": "tools.now", "arguments": {} }] }, { "text": "Done: {{ user }}" }]);
    vec![
        rule("acknowledge".into(), to_acknowledge, queue),
        rule(
            "chat".into(),
            json!({ "system_starts_with": "You are agent.acknowledge" }),
            json!([{ "text": "Hello." }]),
        ),
        rule("learn".into(), json!({ "system_starts_with": "You are agent.learn" }), json!([{ "json": [] }])),
        rule("work".into(), json!({ "system_starts_with": "You are agent.work" }), work),
    ]
}

#[tokio::test]
async fn a_request_in_any_language_becomes_a_task_that_is_done_once_and_small_talk_becomes_none() {
    let all: Vec<Spoken> = seeds().flat_map(Speaker::all).map(spoken).collect();
    let mut world = with_rules(&rules(&all)).start().await;
    let mut sent = Vec::new();
    for Spoken { agent, requests, small_talk } in &all {
        define_background(&world, agent).await;
        for (request, pleasantry) in requests.iter().zip(small_talk) {
            sent.push((world.send(agent, request).await, Some(request)));
            sent.push((world.send(agent, pleasantry).await, None));
        }
    }
    world.log.wait(|event| event.type_name == v1::TaskStarted::TYPE).await;
    kill_runtimes(&mut world).await;
    for (sent, request) in &sent {
        let Some(request) = request else {
            assert_eq!(world.reply(sent).await, "Hello.");
            continue;
        };
        assert_eq!(world.reply(sent).await, format!("I will: {request}"));
        let is_result = |event: &EventJson| {
            event.correlation_id == sent.event_id && event.payload["type"] == "say" && event.payload["final"] != true
        };
        assert_eq!(world.log.wait(is_result).await.text(), format!("Done: {request}"));
    }
    world.settled().await;
    world.projected().await;
    let log = world.log.now(&world.bus).await;
    for Spoken { agent, requests, .. } in &all {
        let tasks = rows(&world, &format!("/v1/tasks?agent={agent}&status=all"), "tasks").await;
        let mut wanted = requests.clone();
        wanted.sort();
        assert_eq!(sorted(&tasks, "text"), wanted, "{tasks:?}");
        assert!(tasks.iter().all(|task| task["status"] == "completed" && task["source"] == "user"), "{tasks:?}");
    }
    for (sent, request) in &sent {
        let count = |type_name: &str| {
            log.iter().filter(|event| event.correlation_id == sent.event_id && event.type_name == type_name).count()
        };
        // Calls as they were decided on: a runner may begin one again that can be repeated.
        let is_call =
            |event: &&EventJson| event.correlation_id == sent.event_id && event.payload["tool"] == "tools.now";
        let calls = log.iter().filter(is_call).filter(|event| event.type_name == v1::AgentAction::TYPE).count();
        let times = usize::from(request.is_some());
        assert_eq!([count(v1::TaskScheduled::TYPE), count(v1::TaskEnded::TYPE), calls], [times; 3], "{request:?}");
    }
    audit::passes(&world).await;
    world.verified().await;
    world.end().await;
}
