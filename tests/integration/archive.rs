//! `kairo archive` on a real server: what is archived is read as log, whatever is killed on the way, and of a log that has lost its
//! beginning nothing is made.

use std::{
    fs,
    path::Path,
    process::{Output, Stdio},
};

use async_nats::jetstream::stream::DiscardPolicy;
use kairo_core::{
    permissions::NatsIdentity,
    subjects::{AGENT_DECISION, AGENT_MESSAGE, EVENTS_STREAM, SNAPSHOTS_BUCKET},
};
use kairo_local::{Service, StackOptions};
use serde_json::{Value, json};
use tokio::{process::Command, time::timeout};

use crate::{
    command_line::kairo,
    relay::Relay,
    world::{DEADLINE, Wanted, World, agent, scenario::USUAL},
};

const AGENT: &str = "default";
/// The API subject by which a reader of the log starts.
const READING: &str = "CONSUMER.CREATE.KAIRO_EVENTS";

/// A command for operators, as who may read streams.
pub fn command(world: &World, arguments: &[&str]) -> Command {
    let program = StackOptions::bin_dir_of_this_build().unwrap().join("kairo");
    let mut command = Command::new(program);
    command.arg("--json").args(arguments).env("KAIRO_NATS__URL", &world.url_of_nats).kill_on_drop(true);
    command.envs(world.nats.users().settings(NatsIdentity::Provision)).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub fn said(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

pub async fn archived(world: &World, arguments: &[&str]) -> Value {
    let output = command(world, &[&["archive"], arguments].concat()).output().await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    said(&output)
}

/// Runs a command that must be refused and returns its error output.
async fn refused(world: &World, arguments: &[&str]) -> String {
    let output = kairo(world, arguments).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Runs a command that reads the log and returns its JSON lines.
pub async fn read(world: &World, arguments: &[&str]) -> Value {
    let output = kairo(world, &[&["--json"], arguments].concat()).await;
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice::<Value>(line).unwrap()).collect()
}

async fn that_answered() -> World {
    let world = Wanted::new(USUAL).start().await;
    for name in [AGENT, "other"] {
        world.define(name).await;
        world.ask(name, "time please").await;
        world.ask(name, "hello").await;
    }
    world.settled().await;
    world
}

#[tokio::test]
async fn what_is_archived_is_read_as_log_and_joined_with_what_came_since() {
    let world = that_answered().await;
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive");
    let path = archive.to_str().unwrap();
    let none = archived(&world, &[path, "--older-than", "1000h"]).await;
    assert_eq!((&none["part"], &none["through"]), (&json!(null), &json!(0)), "nothing is that old: {none}");
    let first = archived(&world, &[path]).await;
    assert_eq!(first["part"], 1, "{first}");
    let through = first["through"].as_u64().unwrap();
    assert_eq!(through, world.end_of_log().await);

    world.ask(AGENT, "time please").await;
    world.ask("other", "thanks").await;
    world.settled().await;
    killed_on_the_way(&world, &archive, through).await;
    let second = archived(&world, &[path]).await;
    assert_eq!((&second["part"], &second["begins_behind"]), (&json!(2), &json!(0)), "{second}");
    world.ask(AGENT, "hello").await;
    world.settled().await;

    let verified = archived(&world, &["verify", path]).await;
    assert_eq!((&verified["fits"], &verified["through"]), (&json!(true), &second["through"]), "{verified}");
    let whole = read(&world, &["verify", "--all"]).await;
    assert_eq!(read(&world, &["verify", "--all", "--archive", path]).await, whole);
    assert_eq!(
        read(&world, &["verify", "--agent", "other", "--archive", path]).await,
        read(&world, &["verify", "--agent", "other"]).await
    );
    for asked in [&["state", AGENT][..], &["replay", "--agent", AGENT]] {
        let joined = read(&world, &[asked, &["--archive", path]].concat()).await;
        assert_eq!(joined, read(&world, asked).await, "{asked:?}");
    }
    let at = through.to_string();
    let alone = read(&world, &["state", AGENT, "--file", path, "--at", &at]).await;
    assert_eq!(alone, read(&world, &["state", AGENT, "--at", &at]).await, "of the archive alone");
    what_does_not_fit_is_refused(&world, &archive).await;
    world.end().await;
}

/// It is killed when it begins to read, and leaves a part of a segment or of a manifest, as one does that is killed while it writes: the
/// archive is what it was.
async fn killed_on_the_way(world: &World, archive: &Path, through: u64) {
    let manifest = fs::read(archive.join("manifest.json")).unwrap();
    let part = archive.join("0002");
    fs::create_dir_all(&part).unwrap();
    let segment = part.join(format!("{EVENTS_STREAM}-{:020}.jsonl.gz", through + 1));
    for at in [segment, archive.join("manifest.json.new")] {
        let relay = Relay::holding_behind(&world.nats.url(), READING).await;
        let mut archiving = command(world, &["archive", archive.to_str().unwrap()]);
        let mut archiving = archiving.env("KAIRO_NATS__URL", relay.url()).spawn().unwrap();
        timeout(DEADLINE, relay.holds()).await.expect("it never came so far");
        archiving.kill().await.unwrap();
        fs::write(&at, "half of").unwrap();
        assert_eq!(fs::read(archive.join("manifest.json")).unwrap(), manifest);
        let verified = archived(world, &["verify", archive.to_str().unwrap()]).await;
        assert_eq!((&verified["fits"], &verified["through"]), (&json!(true), &json!(through)), "{verified}");
    }
}

async fn what_does_not_fit_is_refused(world: &World, archive: &Path) {
    let path = archive.to_str().unwrap();
    let output = command(world, &["backup", "--onto", path]).output().await.unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("holds an archive: expected a backup"), "{output:?}");
    let output = command(world, &["restore", path]).output().await.unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("holds an archive: expected a backup"), "{output:?}");
    let manifest = archive.join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    let mut of_another: Value = serde_json::from_str(&text).unwrap();
    of_another["log"] = json!("00000000-0000-0000-0000-000000000007");
    // Made by a build of before, which wrote no checksum.
    of_another.as_object_mut().unwrap().remove("sha256");
    fs::write(&manifest, of_another.to_string()).unwrap();
    let output = command(world, &["archive", path]).output().await.unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("begin another folder"), "{output:?}");
    assert!(refused(world, &["state", AGENT, "--archive", path]).await.contains("it is of the log 00000000"));
    fs::write(&manifest, text).unwrap();
}

#[tokio::test]
async fn of_a_log_that_lost_its_beginning_nothing_is_made_but_with_its_archive() {
    let mut world = that_answered().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("archive").to_str().unwrap().to_owned();
    world.stack.kill9(Service::AgentRuntime, 0).await.unwrap();
    world.send(AGENT, "still there?").await;
    world
        .log
        .wait(|event| event.subject == AGENT_MESSAGE.of_owner(&agent(AGENT)) && event.text() == "still there?")
        .await;
    let before = read(&world, &["state", AGENT]).await;
    let archived = archived(&world, &[&path]).await;
    trimmed_by_limit(&world, 2).await;
    let begins = world.bus.log_start().await.unwrap().first;
    assert!(begins > 1 && begins <= archived["through"].as_u64().unwrap() + 1, "{begins}, {archived}");

    assert!(refused(&world, &["state", AGENT]).await.contains("no longer in the log: name an archive"));
    assert_eq!(
        read(&world, &["state", AGENT, "--archive", &path]).await,
        before,
        "with what is archived it is all there"
    );
    let proof = read(&world, &["verify", "--all", "--archive", &path]).await;
    assert!(proof[0]["agents"][0]["decisions"].as_u64() > Some(1), "{proof}");
    let status = kairo(&world, &["status"]).await;
    assert!(String::from_utf8(status.stdout).unwrap().contains(&format!("begins        at {begins}")));

    // Whoever has no snapshot does not begin anew as if nothing had been.
    world.wipe(SNAPSHOTS_BUCKET).await;
    world.stack.restart(Service::AgentRuntime, 0).await.unwrap();
    let log = world.logs().join("kairo-agent-runtime-0.log");
    // Nobody tells it but in the log of the service: looking there is all there is.
    let is_told =
        async { while !fs::read_to_string(&log).is_ok_and(|text| text.contains("an agent cannot be loaded")) {} };
    timeout(DEADLINE, is_told).await.expect("nobody said so");
    let text = fs::read_to_string(&log).unwrap();
    assert!(text.contains(&format!("the log begins at message {begins}")), "{text}");
    assert_eq!(
        world.bus.last_at_leader(&AGENT_DECISION.of_owner(&agent(AGENT))).await.unwrap(),
        0,
        "it decides nothing"
    );
    // What waits for that agent never settles.
    world.stack.stop().await.unwrap();
}

/// Trims the log as an operator's limit does: the newest `left` messages stay.
pub async fn trimmed_by_limit(world: &World, left: i64) {
    let jetstream = &world.bus.nats().unwrap().jetstream;
    let mut config = jetstream.get_stream(EVENTS_STREAM).await.unwrap().cached_info().config.clone();
    let (max_messages, discard) = (config.max_messages, config.discard);
    (config.max_messages, config.discard) = (left, DiscardPolicy::Old);
    jetstream.update_stream(&config).await.unwrap();
    (config.max_messages, config.discard) = (max_messages, discard);
    jetstream.update_stream(&config).await.unwrap();
}
