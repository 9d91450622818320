//! Talking to an agent while its action runs: it answers from what the log says of it.

mod restarting;

use kairo_core::event_json::EventJson;
use kairo_local::Service;
use kairo_mind::request::block_contents;
use kairo_proto::v1;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    faults::audit,
    world::{Sent, Wanted, World},
};

const AGENT: &str = "default";

/// Says how far it is, then waits for a file named after its argument; a poke is written down.
const BUILD: &str = r#"
trap 'echo poked >> pokes; echo "::progress 10% $1: poked"' USR1
echo "building $1"
echo "::progress 10% $1: warming up"
echo begun > "begun-$1"
while [ ! -e "finish-$1" ]; do sleep 0.05; done
echo "::progress 100% $1: ready"
echo "built $1"
"#;

fn wanted() -> Wanted {
    let programs = json!({ "build": { "path": "/bin/sh", "args": ["-c", BUILD, "build"] } });
    Wanted::new(include_str!("interjection.yaml")).env(
        Service::ProcessSupervisor,
        "KAIRO_PROCESS_SUPERVISOR__PROGRAMS",
        programs.to_string(),
    )
}

async fn start(wanted: Wanted) -> World {
    let world = wanted.start().await;
    world.define(AGENT).await;
    let is_offered =
        |event: &EventJson| event.type_name == v1::ToolCatalogue::TYPE && event.text().contains("process.spawn");
    world.log.wait(is_offered).await;
    world
}

/// The first event of this type about a process.
async fn process_event(world: &World, process_id: &str, type_name: &str) -> EventJson {
    world.log.wait(|event| event.type_name == type_name && event.payload["process_id"] == process_id).await
}

/// A build in the background that has said how far it is; its process id.
async fn begin(world: &World, words: &str) -> String {
    let reply = world.ask(AGENT, words).await;
    let id = reply.strip_prefix("started ").unwrap_or_else(|| panic!("{reply}")).to_owned();
    process_event(world, &id, v1::ProcessProgress::TYPE).await;
    id
}

/// Lets a build come to its end.
fn finish(world: &World, which: &str) {
    std::fs::write(world.workplace(AGENT).join(format!("finish-{which}")), "").unwrap();
}

/// The messages of a user, in one language.
struct Words {
    begin: &'static str,
    how_far: &'static str,
    how_exactly: &'static str,
    time: &'static str,
    poke: &'static str,
    change: &'static str,
    stop: &'static str,
}

const ENGLISH: Words = Words {
    begin: "start the build, please",
    how_far: "how far is it?",
    how_exactly: "how exactly is it doing?",
    time: "and the time, please",
    poke: "poke it",
    change: "make it a quick instead of a thorough one: quick instead",
    stop: "stop it, I changed my mind",
};

const CHINESE: Words = Words {
    begin: "开始编译",
    how_far: "现在到哪了？",
    how_exactly: "具体情况怎么样？",
    time: "现在几点？",
    poke: "提醒它一下",
    change: "换成快速的",
    stop: "别做了，停掉",
};

/// The two ways of section 5.2 of the interjection document, a change of parameters, a signal and something parallel.
async fn conversation(words: Words) {
    let world = start(wanted()).await;
    let first = begin(&world, words.begin).await;
    assert_eq!(world.ask(AGENT, words.how_far).await, "10 % thorough: warming up", "from the facts");
    let status = world.ask(AGENT, words.how_exactly).await;
    assert!(status.contains("running") && status.contains("building thorough"), "{status}");
    assert_eq!(world.ask(AGENT, words.time).await, "clock UTC", "something parallel");
    let poked = world.ask(AGENT, words.poke).await;
    assert!(!poked.contains("error"), "{poked}");
    // A shell that is stopped before the signal has got through to it never says so.
    world.log.wait(|event| event.payload["message"] == "thorough: poked").await;

    let instead = world.ask(AGENT, words.change).await;
    let second = instead.strip_prefix("instead ").unwrap_or_else(|| panic!("{instead}")).to_owned();
    assert_ne!(first, second);
    assert_eq!(process_event(&world, &first, v1::ProcessExited::TYPE).await.payload["outcome"], "canceled");
    process_event(&world, &second, v1::ProcessProgress::TYPE).await;
    assert_eq!(world.ask(AGENT, words.how_far).await, "10 % quick: warming up");

    let stopped = world.ask(AGENT, words.stop).await;
    assert!(stopped.contains("canceled"), "{stopped}");
    let canceled = process_event(&world, &second, v1::ProcessCanceled::TYPE).await;
    let exited = process_event(&world, &second, v1::ProcessExited::TYPE).await;
    assert!(canceled.sequence < exited.sequence);
    let pokes = std::fs::read_to_string(world.workplace(AGENT).join("pokes")).unwrap();
    assert_eq!(pokes, "poked\n", "a signal arrives once");
    audit::passes(&world).await;
    world.end().await;
}

#[tokio::test]
async fn a_user_asks_changes_and_cancels_while_a_process_runs() {
    conversation(ENGLISH).await;
}

#[tokio::test]
async fn a_user_asks_changes_and_cancels_while_a_process_runs_in_chinese() {
    conversation(CHINESE).await;
}

#[tokio::test]
async fn the_end_of_a_process_in_the_background_is_told_without_being_asked() {
    let world = start(wanted()).await;
    let id = begin(&world, ENGLISH.begin).await;
    finish(&world, "thorough");
    let told = world.log.wait(|event| event.text().starts_with("over ")).await;
    assert_eq!(told.text(), format!("over {id}: exited with code 0"));
    assert_eq!(told.payload["message_id"], "");
    audit::passes(&world).await;
    world.end().await;
}

/// Returns the system blocks in the last request to the model.
async fn told(world: &World) -> String {
    let requests = world.model_requests().await;
    let messages = requests.last().unwrap()["body"]["messages"].as_array().unwrap().clone();
    let texts = messages.iter().map(|message| message["content"].as_str().unwrap_or_default());
    texts.flat_map(block_contents).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn after_everything_was_killed_the_agent_tells_finished_from_running_from_interrupted() {
    let mut world = start(wanted()).await;
    let finished = begin(&world, ENGLISH.begin).await;
    finish(&world, "thorough");
    world.log.wait(|event| event.text() == format!("over {finished}: exited with code 0")).await;
    std::fs::remove_file(world.workplace(AGENT).join("finish-thorough")).unwrap();
    let interrupted = begin(&world, ENGLISH.begin).await;

    const ALL: [Service; 6] = [
        Service::Projector,
        Service::ProcessSupervisor,
        Service::ToolRunner,
        Service::AgentRuntime,
        Service::Router,
        Service::Gateway,
    ];
    for service in ALL {
        world.stack.kill9(service, 0).await.unwrap();
    }
    for service in ALL {
        world.stack.restart(service, 0).await.unwrap();
    }
    let lost = process_event(&world, &interrupted, v1::ProcessExited::TYPE).await;
    assert_eq!(lost.payload["outcome"], "supervisor_lost", "{}", lost.payload);
    world.log.wait(|event| event.text().starts_with(&format!("over {interrupted}: supervisor_lost"))).await;

    let running = begin(&world, ENGLISH.begin).await;
    world.ask(AGENT, ENGLISH.how_far).await;
    let told = told(&world).await;
    let (history, facts) = told.split_once("In progress now").unwrap();
    assert!(facts.contains(&running) && !facts.contains(&interrupted) && !facts.contains(&finished), "{facts}");
    assert!(history.contains(&format!("the process {finished} that you spawned")), "{history}");
    assert!(history.contains(&format!("the process {interrupted} that you spawned")), "{history}");
    world.ask(AGENT, ENGLISH.stop).await;
    audit::passes(&world).await;
    world.end().await;
}

#[tokio::test]
async fn a_process_of_another_agent_or_of_nobody_gives_a_clear_result() {
    let world = start(wanted()).await;
    world.define("other").await;
    let id = begin(&world, ENGLISH.begin).await;
    for stranger in [id.as_str(), &Uuid::nil().to_string()] {
        let reply = world.ask("other", &format!("touch {stranger} with process.")).await;
        assert_eq!(reply.matches("not_found").count(), 5, "{reply}");
    }
    // Its own, and over.
    world.ask(AGENT, ENGLISH.stop).await;
    let reply = world.ask(AGENT, &format!("touch {id} with process.")).await;
    let lines: Vec<&str> = reply.lines().collect();
    assert!(lines[0].contains("canceled") && lines[2].contains("canceled"), "{reply}");
    assert!(lines[1].contains("failed") && lines[3].contains("failed"), "it is over: {reply}");
    audit::passes(&world).await;
    world.end().await;
}

async fn post(world: &World, path: &str, body: Value) -> Sent {
    let (status, answer) = world.post(path, &body).await;
    assert_eq!(status, 202, "{answer}");
    Sent {
        message_id: String::new(),
        event_id: answer["event_id"].as_str().unwrap().parse().unwrap(),
        sequence: answer["sequence"].as_u64().unwrap(),
    }
}

#[tokio::test]
async fn an_order_stops_what_the_agent_waits_for() {
    let world = start(wanted()).await;
    let sent = world.send(AGENT, "wait for the build").await;
    let spawned = world.log.wait(|event| event.type_name == v1::ProcessSpawned::TYPE).await;
    let action = spawned.payload["action_id"].clone();
    let order = json!({ "user": "ann", "agent": AGENT, "command": "cancel", "action_id": action });
    let order = post(&world, "/v1/commands", order).await;
    let reply = world.reply(&sent).await;
    assert!(reply.contains("canceled"), "{reply}");
    let of_order = |event: &EventJson| event.correlation_id == order.event_id;
    let result = world.log.wait(|event| of_order(event) && event.type_name == v1::ToolResult::TYPE).await;
    assert_eq!(result.payload["ok"], true, "{}", result.payload);

    let unknown = json!({ "user": "ann", "agent": AGENT, "command": "cancel", "action_id": Uuid::nil() });
    let unknown = post(&world, "/v1/commands", unknown).await;
    let failed = world.log.wait(|event| event.correlation_id == unknown.event_id && event.text().contains(": ")).await;
    assert!(failed.text().starts_with("unknown_action"), "{}", failed.text());
    audit::passes(&world).await;
    world.end().await;
}

#[tokio::test]
async fn a_human_settles_what_is_in_doubt() {
    let mut world = start(wanted()).await;
    let sent = world.send(AGENT, "wait for the build").await;
    let spawned = world.log.wait(|event| event.type_name == v1::ProcessSpawned::TYPE).await;
    world.stack.kill9(Service::ProcessSupervisor, 0).await.unwrap();
    world.stack.restart(Service::ProcessSupervisor, 0).await.unwrap();
    let reply = world.reply(&sent).await;
    assert!(reply.contains("in_doubt"), "{reply}");
    let approval = json!({
        "user": "ann", "agent": AGENT, "action_id": spawned.payload["action_id"], "verdict": "did_not_happen",
    });
    let approval = post(&world, "/v1/approvals", approval).await;
    assert_eq!(world.reply(&approval).await, "noted: it did not happen");
    audit::passes(&world).await;
    world.end().await;
}

/// Messages that came while nobody could decide: whoever takes over reads all of them before deciding.
async fn messages_at_once(world: &mut World, agent: &str) -> Vec<Sent> {
    world.stack.kill9(Service::AgentRuntime, 0).await.unwrap();
    let mut sent = Vec::new();
    for text in ["one", "two", "three"] {
        sent.push(world.send(agent, text).await);
    }
    let subject = format!("kairo.agent.{agent}.message");
    world.log.wait_for(3, |event| event.subject == subject).await;
    world.stack.restart(Service::AgentRuntime, 0).await.unwrap();
    sent
}

#[tokio::test]
async fn messages_that_came_together_are_answered_in_order_or_together_as_the_agent_wants() {
    let mut world = start(wanted()).await;
    let profile = json!({ "agent": "joins", "prompt": "Be brief.", "interjection": "join" });
    assert_eq!(world.post("/v1/agents", &profile).await.0, 201);
    for sent in messages_at_once(&mut world, AGENT).await {
        world.reply(&sent).await;
    }
    let sent = messages_at_once(&mut world, "joins").await;
    assert_eq!(world.reply(&sent[2]).await, "You said: three");
    for joined in &sent[..2] {
        let events = world.events_of(joined).await;
        let event = events.iter().find(|event| event.type_name == v1::AgentJoined::TYPE).unwrap();
        assert_eq!(event.payload["into_message_id"], json!(sent[2].message_id));
        assert!(!events.iter().any(EventJson::is_final_reply));
    }
    audit::passes(&world).await;
    world.end().await;
}
