//! `/command words` and `@agent words`: whoever is named answers from there on, whichever replica routes, and whatever is killed.

use std::fs;

use futures::StreamExt;
use kairo_core::{event_json::EventJson, subjects::SNAPSHOTS_BUCKET, vocabulary::READER};
use kairo_local::Service;
use kairo_proto::v1;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::time::timeout;
use uuid::Uuid;

use crate::{
    keys::ADMIN,
    world::{DEADLINE, Sent, Wanted, World},
};

/// Says what it was told.
const ECHO: &str = r#"
rules: [{ name: echo, when: {}, reply: "heard: {{ user }}" }]
"#;

async fn define(world: &World, agent: &str, commands: Value) {
    let profile = json!({ "agent": agent, "prompt": "You are helpful.", "commands": commands });
    let answer = world.post("/v1/agents", &profile).await;
    assert!(answer.0 == 200 || answer.0 == 201, "{answer:?}");
}

async fn world() -> World {
    let world = Wanted::new(ECHO).start().await;
    define(&world, "default", json!([])).await;
    let search = json!({ "value": "search", "label": "Search", "help": "finds things" });
    define(&world, "finder", json!([search, { "value": "ask", "label": "Ask" }])).await;
    define(&world, "cook", json!([{ "value": "ask", "label": "Ask the cook" }])).await;
    world
}

/// Says something that names nobody beside its words.
async fn say(world: &World, user: &str, text: &str) -> Sent {
    world.send_as(&json!({ "user": user, "text": text })).await
}

/// The agent that answered, and what it was told.
async fn answered(world: &World, sent: &Sent) -> (String, String) {
    let reply = world.reply(sent).await;
    let events = world.events_of(sent).await;
    let delivered: Vec<&EventJson> = events.iter().filter(|event| event.type_name == v1::AgentMessage::TYPE).collect();
    assert_eq!(delivered.len(), 1, "{delivered:?}");
    let told = delivered[0].text().to_owned();
    assert_eq!(reply, format!("heard: {told}"));
    (delivered[0].subject.split('.').nth(2).unwrap().to_owned(), told)
}

async fn switches(world: &World) -> Vec<String> {
    let all = world.log.now(&world.bus).await;
    let switched = all.into_iter().filter(|event| event.type_name == v1::UserSwitched::TYPE);
    switched.map(|event| event.payload["agent"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn whoever_is_named_answers_until_another_is() {
    let world = world().await;
    let said = [
        ("hello", "default", "hello"),
        ("/search python tutorials", "finder", "/search python tutorials"),
        ("and rust?", "finder", "and rust?"),
        // The one the user speaks with declares it, too.
        ("/ask why", "finder", "/ask why"),
        ("@cook what is for dinner?", "cook", "what is for dinner?"),
        ("/ask why", "cook", "/ask why"),
        ("/etc/passwd is a file", "cook", "/etc/passwd is a file"),
        ("@nobody.else is text", "cook", "@nobody.else is text"),
    ];
    for (text, agent, told) in said {
        let sent = say(&world, "ann", text).await;
        assert_eq!(answered(&world, &sent).await, (agent.to_owned(), told.to_owned()), "{text}");
    }
    // Another user has named nobody: of two that declare it, the first by name.
    let sent = say(&world, "bob", "/ask why").await;
    assert_eq!(answered(&world, &sent).await.0, "cook");
    // A message that is sent to somebody is for them alone, and what it begins with is words.
    let sent = world.send_as(&json!({ "user": "ann", "agent": "default", "text": "/search x" })).await;
    assert_eq!(answered(&world, &sent).await, ("default".to_owned(), "/search x".to_owned()));
    assert_eq!(switches(&world).await, ["finder", "cook", "cook"]);
    world.end().await;
}

#[tokio::test]
async fn a_command_that_nobody_declares_is_for_the_current_agent_which_is_told_of_those_there_are() {
    let world = world().await;
    let sent = say(&world, "ann", "/frobnicate it").await;
    let (agent, told) = answered(&world, &sent).await;
    assert_eq!(agent, "default");
    let known = "/ask (Ask the cook, cook), /search (Search, finder), /ask (Ask, finder)";
    assert_eq!(told, format!("/frobnicate it\n\n[There is no command /frobnicate. There are: {known}.]"));
    // An agent that is not there is nobody to go on with.
    let sent = say(&world, "ann", "@nobody hello").await;
    let is_refused = |event: &EventJson| {
        event.correlation_id == sent.event_id && event.type_name == v1::UserMessageUndelivered::TYPE
    };
    world.log.wait(is_refused).await;
    let sent = say(&world, "ann", "still there?").await;
    assert_eq!(answered(&world, &sent).await.0, "default");
    assert!(switches(&world).await.is_empty());
    world.end().await;
}

/// As if the router, which is dead, had never written down how far it was. It may not have come to that.
async fn forget_checkpoints(world: &World) {
    let jetstream = &world.bus.nats().unwrap().jetstream;
    let bucket = jetstream.get_key_value(SNAPSHOTS_BUCKET).await.unwrap();
    let keys: Vec<String> = bucket.keys().await.unwrap().map(Result::unwrap).collect().await;
    for key in keys.into_iter().filter(|key| key.starts_with("checkpoint.router.")) {
        bucket.delete(&key).await.unwrap();
    }
}

#[tokio::test]
async fn whom_a_user_speaks_with_is_known_from_the_log_and_what_is_read_again_goes_where_it_went() {
    let mut world = world().await;
    for (text, agent) in [("hello", "default"), ("/search x", "finder"), ("more", "finder"), ("@cook hi", "cook")] {
        let sent = say(&world, "ann", text).await;
        assert_eq!(answered(&world, &sent).await.0, agent, "{text}");
    }
    world.settled().await;
    let delivered = |events: &[EventJson]| -> Vec<String> {
        let delivered = events.iter().filter(|event| event.type_name == v1::AgentMessage::TYPE);
        delivered.map(|event| event.subject.clone()).collect()
    };
    let before = delivered(&world.log.now(&world.bus).await);
    // Without checkpoints all is read again, from the beginning.
    world.stack.kill9(Service::Router, 0).await.unwrap();
    forget_checkpoints(&world).await;
    world.stack.restart(Service::Router, 0).await.unwrap();
    let sent = say(&world, "ann", "and now?").await;
    assert_eq!(answered(&world, &sent).await.0, "cook");
    world.settled().await;
    let after = delivered(&world.log.now(&world.bus).await);
    assert_eq!(after[..before.len()], before);
    assert_eq!(after.len(), before.len() + 1, "{after:?}");
    assert_eq!(switches(&world).await, ["finder", "cook"]);
    world.end().await;
}

/// Waits until the router's snapshot holds the commands of exactly these agents, and returns it.
async fn written_down(world: &World, agents: &[&str]) -> Value {
    let key = format!("commands.{READER}");
    let there = async {
        loop {
            // Nobody tells: asking is all there is.
            let entry = world.bus.read_value(SNAPSHOTS_BUCKET, &key).await.unwrap();
            let kept = entry.and_then(|entry| serde_json::from_slice::<Value>(&entry.value).ok());
            let declared = kept.as_ref().and_then(|kept| kept["declared"].as_object());
            if declared.is_some_and(|declared| declared.keys().eq(agents)) {
                return kept.unwrap();
            }
        }
    };
    timeout(DEADLINE, there).await.expect("that was never written down")
}

/// Starts a gateway that finds `kept` written down; returns the agents that declare something then.
async fn started_with(world: &mut World, kept: &str) -> Vec<String> {
    world.stack.kill9(Service::Router, 0).await.unwrap();
    let key = format!("commands.{READER}");
    world.bus.put_value(SNAPSHOTS_BUCKET, &key, kept.to_owned().into()).await.unwrap();
    world.stack.kill9(Service::Gateway, 0).await.unwrap();
    world.stack.restart(Service::Gateway, 0).await.unwrap();
    let (status, listed) = world.get("/v1/commands").await;
    assert_eq!(status, 200, "{listed}");
    world.stack.restart(Service::Router, 0).await.unwrap();
    let agents = listed["commands"].as_array().unwrap().iter().map(|command| command["agent"].as_str().unwrap());
    let mut agents: Vec<String> = agents.map(str::to_owned).collect();
    agents.dedup();
    agents
}

#[tokio::test]
async fn whoever_starts_reads_only_the_definitions_behind_those_that_are_written_down() {
    let wanted = Wanted::new(ECHO).env(Service::Router, "KAIRO_ROUTER__COMMANDS_KEPT_AFTER", "1");
    let mut world = wanted.start().await;
    for agent in ["default", "cook"] {
        define(&world, agent, json!([{ "value": agent, "label": "It" }])).await;
    }
    let kept = written_down(&world, &["cook", "default"]).await;
    let mut otherwise = kept.clone();
    assert_eq!(kept["declared"]["cook"], json!([{ "value": "cook", "label": "It", "help": "" }]), "{kept}");

    // As no definition says it, so that it can only be from there.
    let declared = otherwise["declared"].as_object_mut().unwrap();
    declared.remove("cook");
    declared.insert("finder".to_owned(), json!([{ "value": "search", "label": "Search", "help": "" }]));
    define(&world, "later", json!([{ "value": "late", "label": "Late" }])).await;
    define(&world, "finder", json!([])).await;
    let finder = otherwise.to_string().replace("finder", "seeker");
    assert_eq!(started_with(&mut world, &finder).await, ["default", "later", "seeker"]);
    assert_eq!(started_with(&mut world, &otherwise.to_string()).await, ["default", "later"], "it declares nothing now");
    for (said, agent) in [("/late x", "later"), ("/default x", "default")] {
        let sent = say(&world, "ann", said).await;
        assert_eq!(answered(&world, &sent).await.0, agent, "{said}");
    }

    // Of another log, of a past in which this one was longer, of another build.
    let (mut other, mut longer) = (otherwise.clone(), otherwise);
    other["log"] = json!(Uuid::nil());
    longer["through"] = json!(1_000_000);
    for not_read in [other.to_string(), longer.to_string(), "not JSON".to_owned()] {
        assert_eq!(started_with(&mut world, &not_read).await, ["cook", "default", "later"], "{not_read}");
        written_down(&world, &["cook", "default", "later"]).await;
    }
    world.end().await;
}

/// Has nats-server permit what it did before anything was written down.
async fn permitted_as_before(world: &World) {
    let path = world.nats_folder().join("nats.conf");
    let configured = fs::read_to_string(&path).unwrap();
    let (gateway, others) = configured.split_once("\nPERMISSIONS_ROUTER = {").unwrap();
    let without = |text: &str, what: &str| {
        assert!(text.contains(what), "{what}");
        text.lines().filter(|line| !line.contains(what)).collect::<Vec<_>>().join("\n")
    };
    let gateway = without(gateway, "GET.KV_KAIRO_SNAPSHOTS");
    let others = without(others, "KAIRO_SNAPSHOTS.commands");
    fs::write(&path, format!("{gateway}\nPERMISSIONS_ROUTER = {{{others}\n")).unwrap();
    let server = Pid::from_raw(world.nats.process().pid().try_into().unwrap()).unwrap();
    kill_process(server, Signal::HUP).unwrap();
    let log = world.nats_folder().join("nats.log");
    let reloaded = async {
        // The server says so in its log only.
        while !fs::read_to_string(&log).unwrap().contains("Reloaded server configuration") {}
    };
    timeout(DEADLINE, reloaded).await.expect("it was not reloaded");
}

#[tokio::test]
async fn whoever_may_not_read_or_write_down_what_is_declared_reads_all_definitions() {
    let wanted = Wanted::new(ECHO).env(Service::Router, "KAIRO_ROUTER__COMMANDS_KEPT_AFTER", "1");
    let mut world = wanted.start().await;
    define(&world, "finder", json!([{ "value": "search", "label": "Search" }])).await;
    written_down(&world, &["finder"]).await;
    permitted_as_before(&world).await;
    started_again(&mut world).await;
    define(&world, "cook", json!([{ "value": "ask", "label": "Ask" }])).await;
    let (status, listed) = world.get("/v1/commands").await;
    assert_eq!((status, listed["commands"].as_array().unwrap().len()), (200, 2), "{listed}");
    for (said, agent) in [("/search x", "finder"), ("/ask x", "cook")] {
        let sent = say(&world, "ann", said).await;
        assert_eq!(answered(&world, &sent).await.0, agent, "{said}");
    }
    let users = world.nats.users().clone();
    world.nats.reload(users).await.unwrap();
    started_again(&mut world).await;
    written_down(&world, &["cook", "finder"]).await;
    world.end().await;
}

async fn started_again(world: &mut World) {
    for service in [Service::Router, Service::Gateway] {
        world.stack.kill9(service, 0).await.unwrap();
        world.stack.restart(service, 0).await.unwrap();
    }
}

#[tokio::test]
async fn commands_are_listed_and_a_key_that_is_limited_to_agents_reaches_no_others_by_them() {
    let world = Wanted::new(ECHO).env(Service::Gateway, "KAIRO_GATEWAY__REQUIRE_KEY", "always");
    let world = world.env(Service::Gateway, "KAIRO_GATEWAY__ADMIN_KEY", ADMIN).start().await;
    let post = async |key: &str, path: &str, body: Value| {
        let answer = world.http.post(world.url(path)).bearer_auth(key).json(&body).send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap_or_default())
    };
    for (agent, value) in [("default", "help"), ("finder", "search")] {
        let commands = json!([{ "value": value, "label": value, "help": "does it" }]);
        let profile = json!({ "agent": agent, "prompt": "Be kind.", "commands": commands });
        assert_eq!(post(ADMIN, "/v1/agents", profile).await.0, 201);
    }
    let wanted = json!({ "name": "limited", "scopes": ["read", "write"], "agents": ["default"] });
    let (status, made) = post(ADMIN, "/v1/keys", wanted).await;
    assert_eq!(status, 201, "{made}");
    let limited = made["key"].as_str().unwrap();
    let listed = async |key: &str| {
        let answer = world.http.get(world.url("/v1/commands")).bearer_auth(key).send().await.unwrap();
        answer.json::<Value>().await.unwrap()["commands"].clone()
    };
    let help = json!({ "agent": "default", "command": "help", "label": "help", "help": "does it" });
    let search = json!({ "agent": "finder", "command": "search", "label": "search", "help": "does it" });
    assert_eq!(listed(ADMIN).await, json!([help, search]));
    assert_eq!(listed(limited).await, json!([help]));
    for text in ["/search x", "@finder x", "x"] {
        let (status, answer) = post(limited, "/v1/messages", json!({ "user": "ann", "text": text })).await;
        assert_eq!((status, answer["errors"][0]["field"].as_str()), (403, Some("agent")), "{text}: {answer}");
        let named = json!({ "user": "ann", "agent": "default", "text": text });
        let (status, answer) = post(limited, "/v1/messages", named).await;
        assert_eq!(status, 202, "{answer}");
        let event_id: Uuid = answer["event_id"].as_str().unwrap().parse().unwrap();
        let is_delivered =
            |event: &EventJson| event.correlation_id == event_id && event.type_name == v1::AgentMessage::TYPE;
        let delivered = world.log.wait(is_delivered).await;
        assert!(delivered.subject.contains(".default."), "{text}: {}", delivered.subject);
    }
    world.end().await;
}
