//! `kairo trim` on a real server: what an archive has is removed from the log, whatever is killed on the way, and everybody goes on from
//! what was carried forward and from the archive.

mod gateway;
mod limit;
mod readers;
mod restored;
mod servers;

use std::process::Stdio;

use async_nats::jetstream::stream::{Config, DiscardPolicy};
use kairo_core::{
    bus::provision::TRIMMING,
    subjects::{
        AGENT_DECISION, AGENT_DEFINED, AGENT_MESSAGE, EVENTS_STREAM, SNAPSHOTS_BUCKET, TOOL_RESULT, USER_SWITCHED,
    },
};
use kairo_local::Service;
use serde_json::{Value, json};
use tokio::{
    process::{Child, Command},
    time::timeout,
};

use crate::{
    archive::{archived, command, read, said},
    relay::Relay,
    world::{DEADLINE, Wanted, World, agent, scenario::USUAL},
};

const AGENT: &str = "default";

/// `kairo trim` of all before this message.
fn trim(world: &World, path: &str, before: u64) -> Command {
    trim_but(world, path, before, "0s")
}

/// `kairo trim` of all before this message, with this margin.
fn trim_but(world: &World, path: &str, before: u64, margin: &str) -> Command {
    let before = before.to_string();
    let mut trim = command(world, &["trim", path, "--before", &before, "--margin", margin]);
    trim.env("KAIRO_URL", world.url(""));
    trim
}

async fn trimmed(world: &World, path: &str, before: u64) -> Value {
    let output = trim(world, path, before).output().await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    said(&output)
}

/// Runs a trim that must be refused and returns its error output.
async fn not_trimmed(world: &World, path: &str, before: u64) -> String {
    let output = trim(world, path, before).args(["--wait", "1s"]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Waits until everything is read and projected, archives it with these arguments, and returns the archive's last
/// position.
async fn at_rest(world: &World, archive: &[&str]) -> u64 {
    world.settled().await;
    world.projected().await;
    archived(world, archive).await["through"].as_u64().unwrap()
}

async fn last(world: &World, subject: &str) -> u64 {
    world.bus.last_at_leader(subject).await.unwrap()
}

/// Says something as bob, who names nobody beside the words; who answered.
async fn say(world: &World, text: &str) -> String {
    let sent = world.send_as(&json!({ "user": "bob", "text": text })).await;
    world.reply(&sent).await;
    let delivered = world.events_of(&sent).await.into_iter().find(|event| AGENT_MESSAGE.matches(&event.subject));
    delivered.unwrap().subject.split('.').nth(2).unwrap().to_owned()
}

/// Two agents that have told the time, where everybody reads the archive there.
async fn two_agents(path: &str) -> World {
    let world = Wanted::new(USUAL).env_of_all("KAIRO_ARCHIVE__FOLDER", path).start().await;
    told_the_time(&world).await;
    world
}

async fn told_the_time(world: &World) {
    for name in [AGENT, "other"] {
        world.define(name).await;
        world.ask(name, "time please").await;
    }
}

#[tokio::test]
async fn a_log_is_trimmed_and_everybody_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("archive").to_str().unwrap().to_owned();
    let mut world = two_agents(&path).await;
    say(&world, "@other hello").await;
    let through = at_rest(&world, &[&path]).await;
    let at = through.to_string();
    let before = [AGENT, "other"].map(|name| ["state", name, "--archive", &path, "--at", &at]);
    let known = [read(&world, &before[0]).await, read(&world, &before[1]).await];
    let asked = gateway::Asked::of_a_whole_log(&world, through).await;

    let beyond = not_trimmed(&world, &path, through + 2).await;
    assert!(beyond.contains(&format!("ends at {through}: run `kairo archive")), "{beyond}");
    killed_on_the_way(&mut world, &path, through).await;
    let done = trimmed(&world, &path, through + 1).await;
    assert_eq!((&done["through"], &done["carried"]), (&json!(through), &json!(0)), "it was carried before: {done}");
    let begins = done["begins"].as_u64().unwrap();
    assert_eq!(begins, through + 1);
    as_it_was_made(&world).await;
    asked.are_answered(&world).await;

    // What is in force is so still, and what is guarded is.
    for (subject, name) in
        [(AGENT_DEFINED, "other"), (AGENT_DECISION, AGENT), (TOOL_RESULT, AGENT), (USER_SWITCHED, "bob")]
    {
        assert!(last(&world, &subject.of_owner(&agent(name))).await > through, "{}", subject.of_owner(&agent(name)));
    }
    without_snapshots(&mut world).await;
    assert!(!world.ask(AGENT, "time please").await.is_empty());
    world.define("new").await;
    assert!(!world.ask("new", "hello").await.is_empty(), "of whom there was nothing before");
    assert_eq!(say(&world, "hello").await, "other", "with whom bob speaks is carried forward");
    world.settled().await;
    for (asked, known) in before.iter().zip(known) {
        assert_eq!(read(&world, asked).await, known, "{asked:?}");
    }
    proven(&world, &path).await;
    let replayed = read(&world, &["replay", "--agent", AGENT, "--archive", &path]).await;
    assert!(replayed[0].is_object(), "{replayed:#}");
    // Made of the archive and the log, it holds what the one does that was there all the while.
    world.verified().await;
    asked.are_gone_without_an_archive(&mut world).await;
    world.end().await;
}

/// The archive and the log are what they were.
async fn proven(world: &World, path: &str) {
    let proof = read(world, &["verify", "--all", "--archive", path]).await;
    assert!(proof[0]["agents"].as_array().unwrap().iter().all(|agent| agent["misfit"].is_null()), "{proof:#}");
}

/// It is killed when it has carried forward and waits for agent-runtime.
async fn killed_on_the_way(world: &mut World, path: &str, through: u64) {
    world.stack.kill9(Service::AgentRuntime, 0).await.unwrap();
    let mut trimming = trim(world, path, through + 1).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap();
    carried(world, &mut trimming, through).await;
    let behind = not_trimmed(world, path, through + 1).await;
    assert!(behind.contains("another command is writing to it"), "{behind}");
    trimming.kill().await.unwrap();
    let behind = not_trimmed(world, path, through + 1).await;
    assert!(behind.contains("agent-runtime has read and saved partition"), "{behind}");
    assert_eq!(world.bus.log_start().await.unwrap().first, 1);
    world.stack.restart(Service::AgentRuntime, 0).await.unwrap();
    world.settled().await;
}

/// Waits until the last was carried forward that is.
async fn carried(world: &World, trimming: &mut Child, through: u64) {
    let carried = async { while last(world, &USER_SWITCHED.of_owner(&agent("bob"))).await <= through {} };
    tokio::select! {
        carried = timeout(DEADLINE, carried) => carried.expect("nothing was carried forward"),
        ended = trimming.wait() => panic!("nobody has read what was carried forward, and it ended: {ended:?}"),
    }
}

async fn log_config(world: &World) -> Config {
    let jetstream = &world.bus.nats().unwrap().jetstream;
    jetstream.get_stream(EVENTS_STREAM).await.unwrap().cached_info().config.clone()
}

async fn as_it_was_made(world: &World) {
    let config = log_config(world).await;
    assert_eq!((config.max_messages, config.discard), (-1, DiscardPolicy::New));
    assert!(!config.metadata.contains_key(TRIMMING), "{:?}", config.metadata);
}

/// Agents are folded from the archive and the log, and the router hands on again. An owner that went on would write its
/// checkpoint of a partition only when something comes to it.
async fn without_snapshots(world: &mut World) {
    let owners = [Service::Router, Service::AgentRuntime];
    for owner in owners {
        world.stack.kill9(owner, 0).await.unwrap();
    }
    world.wipe(SNAPSHOTS_BUCKET).await;
    for owner in owners {
        world.stack.restart(owner, 0).await.unwrap();
    }
}
