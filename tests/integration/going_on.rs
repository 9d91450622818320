//! Tasks that go on and promises that are kept, with places, works and languages that no example uses.

use kairo_core::event_json::EventJson;
use kairo_local::Service;
use kairo_proto::v1;
use serde_json::{Value, json};

use crate::{
    faults::audit,
    world::{Sent, Wanted, World},
};

const AGENT: &str = "clerk";

/// The requests of users, each with the promise that a model makes without calling anything.
const WORKS: [(&str, &str); 6] = [
    ("please book the crane in Zeebrugge for Tuesday", "Sure, I will book the crane."),
    ("帮我订厦门港周二的吊车", "好的，我来订。"),
    ("bestell zwölf Fässer für Lübeck", "Gern, ich kümmere mich darum."),
    ("réserve trois places pour Ajaccio", "Bien sûr, je vais les réserver."),
    ("reserva dos grúas en Vigo", "Claro, me encargo."),
    ("забронируй склад в Туапсе", "Хорошо, я забронирую склад."),
];

/// A text that marks the work at hand, in any language, such as a place.
fn mark(work: &str) -> String {
    let chars: Vec<char> = work.chars().collect();
    chars[chars.len() / 2 - 3..].iter().collect()
}

async fn start(rules: &[Value], profile: &Value) -> World {
    let scenario = json!({ "rules": rules }).to_string();
    let wanted = Wanted::new(&scenario).replicas(Service::AgentRuntime, 2).replicas(Service::ToolRunner, 2);
    let world = wanted.start().await;
    let mut definition =
        json!({ "agent": AGENT, "prompt": "Be brief.", "conduct": "background", "tools": ["tools.*"] });
    definition.as_object_mut().unwrap().extend(profile.as_object().unwrap().clone());
    let (status, answer) = world.post("/v1/agents", &definition).await;
    assert_eq!(status, 201, "{answer}");
    world
}

/// Of each work: it is queued, and takes three calls, one after the other.
fn of_three_steps() -> Vec<Value> {
    let call = || json!({ "tool_calls": [{ "tool": "tools.now", "arguments": {} }] });
    let queue = json!({ "tool": "task.queue", "arguments": { "text": "{{ user }}" } });
    vec![
        json!({
            "name": "acknowledge",
            "when": { "system_starts_with": "You are agent.acknowledge", "tools_offered": "task.queue" },
            "reply": { "text": "ok", "tool_calls": [queue] },
        }),
        json!({ "name": "learn", "when": { "system_starts_with": "You are agent.learn" }, "reply": { "json": [] } }),
        json!({
            "name": "work",
            "when": { "system_starts_with": "You are agent.work" },
            "turn": [call(), call(), call(), "done: {{ user }} after {{ results | length }}"],
        }),
    ]
}

/// Waits for the outcome of the task in the conversation, with a text that fits.
async fn wait_for_words(world: &World, sent: &Sent, fits: impl Fn(&str) -> bool) -> EventJson {
    let is_told = |event: &EventJson| {
        event.correlation_id == sent.event_id
            && event.type_name == v1::AgentAction::TYPE
            && event.payload["final"] != true
            && fits(event.text())
    };
    world.log.wait(is_told).await
}

/// Events of this type that follow from what was sent.
async fn count(world: &World, sent: &Sent, type_name: &str) -> usize {
    world.events_of(sent).await.iter().filter(|event| event.type_name == type_name).count()
}

/// Calls that tool-runner began, in the whole log: those of a later session are of the chain of its time.
async fn calls(world: &World) -> usize {
    world.log.now(&world.bus).await.iter().filter(|event| event.type_name == v1::ToolInvoke::TYPE).count()
}

async fn kill_and_restart(world: &mut World) {
    for replica in 0..2 {
        world.stack.kill9(Service::AgentRuntime, replica).await.unwrap();
        world.stack.restart(Service::AgentRuntime, replica).await.unwrap();
    }
}

#[tokio::test]
async fn a_task_of_several_sessions_makes_each_call_once_whatever_is_killed() {
    let bounds = json!({ "session": { "model_calls": 2 }, "session_pause": 1 });
    let mut world = start(&of_three_steps(), &bounds).await;
    for (at, (work, _)) in WORKS[..3].iter().enumerate() {
        let sent = world.send(AGENT, work).await;
        let is_put_back = |event: &EventJson| {
            event.correlation_id == sent.event_id
                && event.type_name == v1::TaskChanged::TYPE
                && event.payload["rests"] == true
        };
        world.log.wait(is_put_back).await;
        kill_and_restart(&mut world).await;
        let done = wait_for_words(&world, &sent, |text| text.starts_with("done")).await;
        assert_eq!(done.text(), format!("done: {work} after 3"));
        world.settled().await;
        assert_eq!(count(&world, &sent, v1::TaskStarted::TYPE).await, 2, "sessions");
        assert_eq!(calls(&world).await, 3 * (at + 1), "three for each");
    }
    audit::passes(&world).await;
    world.verified().await;
    world.end().await;
}

#[tokio::test]
async fn a_task_that_reaches_its_own_bound_fails_and_is_not_tried_again() {
    let bounds = json!({ "session": { "model_calls": 2 }, "task": { "model_calls": 3 }, "session_pause": 1 });
    let world = start(&of_three_steps(), &bounds).await;
    let sent = world.send(AGENT, WORKS[3].0).await;
    let failed = wait_for_words(&world, &sent, |text| text.contains("the task took")).await;
    assert!(failed.text().contains("the task took 3 model calls, and it may make 3"), "{}", failed.text());
    world.settled().await;
    let work = world.model_requests().await.iter().filter(|it| it["rule"] == "work").count();
    assert_eq!((work, calls(&world).await), (3, 3));
    world.projected().await;
    let (_, answer) = world.get(&format!("/v1/tasks?agent={AGENT}&status=all")).await;
    assert_eq!(answer["tasks"][0]["status"], "failed", "{answer}");
    audit::passes(&world).await;
    world.end().await;
}

#[tokio::test]
async fn what_is_promised_without_a_call_is_queued_in_the_same_turn_and_done() {
    // Of every second work the fast model finds the promise itself; of the others it says nothing that is of use.
    let mut rules = Vec::new();
    for (at, (work, words)) in WORKS.iter().enumerate() {
        let of = |system: &str| json!({ "system_starts_with": system, "user_contains": mark(work) });
        if at % 2 == 0 {
            let task = json!({ "title": "", "text": format!("{work} (found)") });
            let verdict = json!({ "verdict": "queue", "tasks": [task], "answer": "" });
            let when = of("You are agent.promise");
            rules.push(json!({ "name": format!("found-{at}"), "when": when, "reply": { "json": verdict } }));
        }
        let when = of("You are agent.acknowledge");
        rules.push(json!({ "name": format!("promise-{at}"), "when": when, "reply": words }));
    }
    rules.push(json!({
        "name": "small-talk", "when": { "system_starts_with": "You are agent.acknowledge" }, "reply": "Hello!",
    }));
    rules.push(
        json!({ "name": "learn", "when": { "system_starts_with": "You are agent.learn" }, "reply": { "json": [] } }),
    );
    rules.push(
        json!({ "name": "work", "when": { "system_starts_with": "You are agent.work" }, "reply": "done: {{ user }}" }),
    );
    let mut world = start(&rules, &json!({})).await;
    assert_eq!(world.ask(AGENT, "hi there").await, "Hello!");
    for (at, (work, words)) in WORKS.iter().enumerate() {
        let sent = world.send(AGENT, work).await;
        if at == 3 {
            kill_and_restart(&mut world).await;
        }
        assert_eq!(world.reply(&sent).await, *words);
        let expected = if at % 2 == 0 { format!("done: {work} (found)") } else { format!("done: {work}") };
        assert_eq!(wait_for_words(&world, &sent, |text| text.starts_with("done")).await.text(), expected);
        assert_eq!(count(&world, &sent, v1::TaskScheduled::TYPE).await, 1);
    }
    world.settled().await;
    world.projected().await;
    let (_, answer) = world.get(&format!("/v1/tasks?agent={AGENT}&status=all")).await;
    let tasks = answer["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), WORKS.len(), "small talk is no work: {answer}");
    assert!(tasks.iter().all(|task| task["source"] == "user" && task["status"] == "completed"), "{answer}");
    audit::passes(&world).await;
    world.verified().await;
    world.end().await;
}
