//! `kairo backup` and `kairo restore` on real servers: what was wiped is there again, and nobody goes on from what was lost.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use jiff::{SignedDuration, Timestamp};
use kairo_core::{
    bus::{
        port::{StreamStore, TailStart},
        timers::TaskTimer,
    },
    ids,
    permissions::NatsIdentity,
    record::{DecisionPosition, RawMessage},
    subjects::{EVENTS_STREAM, TASK_DUE, TIMERS_STREAM},
};
use kairo_local::{Service, StackOptions};
use kairo_read_model::{GenerationDigest, digest_generation};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection, query_scalar};
use tokio::{process::Command, time::timeout};

use crate::{
    command_line::kairo,
    forgetting::{AGENT, MARK, OTHER, wanted},
    relay::Relay,
    world::{DEADLINE, World, agent, connect, log::Log, signing_key},
};

/// Said behind the place that is gone back to, and nowhere before.
const LATER: &str = "tangerine";
/// The streams that a restore fills, except snapshots and the partition owners.
pub const LOST: [&str; 7] = [
    EVENTS_STREAM,
    TIMERS_STREAM,
    "KV_KAIRO_HOOKS",
    "KV_KAIRO_DATA_KEYS",
    "KV_KAIRO_KEYS",
    "KAIRO_DLQ",
    "OBJ_KAIRO_OBJECTS",
];
const SNAPSHOTS: &str = "KV_KAIRO_SNAPSHOTS";

/// A command of `kairo` for operators, as who may make streams.
pub fn command(world: &World, arguments: &[&str]) -> Command {
    let program = StackOptions::bin_dir_of_this_build().unwrap().join("kairo");
    let mut command = Command::new(program);
    command.arg("--json").args(arguments).env("KAIRO_NATS__URL", world.nats.url()).kill_on_drop(true);
    command.envs(world.nats.users().settings(NatsIdentity::Provision)).env("KAIRO_SIGNING__KEY", signing_key());
    command
}

async fn run(world: &World, arguments: &[&str]) -> Output {
    command(world, arguments).output().await.unwrap()
}

/// Runs the command to its successful end and returns its output as JSON.
pub async fn done(world: &World, arguments: &[&str]) -> Value {
    let output = run(world, arguments).await;
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs the command, which must fail with `status`, and returns its output with the reason.
pub async fn refused(world: &World, arguments: &[&str], status: i32) -> String {
    let output = run(world, arguments).await;
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {output:?}");
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

fn services() -> impl DoubleEndedIterator<Item = Service> {
    Service::ALL.into_iter().filter(|service| *service != Service::ModelSim)
}

impl World {
    pub async fn services_stop(&self) {
        for service in services().rev() {
            self.stack.stop_one(service, 0).await.unwrap();
        }
    }

    pub async fn services_start(&mut self) {
        for service in services() {
            self.stack.restart(service, 0).await.unwrap();
        }
    }

    /// Looks at the log anew, which is another by now.
    pub async fn look_again(&mut self) {
        self.bus = connect(&self.nats.operator()).await;
        self.log = Log::follow(&self.bus);
    }

    async fn log_id(&self) -> String {
        self.bus.nats().unwrap().stream_state(EVENTS_STREAM).await.unwrap().metadata["kairo-log"].clone()
    }

    /// The live tables, as they are.
    pub async fn tables_hold(&self) -> GenerationDigest {
        let live = self.live_generation().await.unwrap();
        let mut database = PgConnection::connect(&self.database.url).await.unwrap();
        digest_generation(&mut database, live).await.unwrap().unwrap()
    }

    /// Starts projector, which makes tables anew that were made from the log before; they hold the same.
    pub async fn tables_are_made_again(&mut self, before: &GenerationDigest) {
        self.stack.restart(Service::Projector, 0).await.unwrap();
        // Nobody tells when they are built: asking is all there is.
        let built = async { while self.live_generation().await.is_none_or(|live| live == before.generation) {} };
        timeout(DEADLINE, built).await.expect("what was made from the log before is made again");
        self.projected().await;
        let again = self.tables_hold().await;
        assert_eq!((&again.positions, again.differing_tables(before)), (&before.positions, Vec::new()));
    }

    /// Removes all that nats-server keeps.
    pub async fn streams_are_lost(&mut self) {
        self.nats.stop(std::time::Duration::from_secs(10)).await.unwrap();
        fs::remove_dir_all(self.nats_folder().join("jetstream")).unwrap();
        self.nats.restart().await.unwrap();
    }

    async fn live_generation(&self) -> Option<i64> {
        let mut database = PgConnection::connect(&self.database.url).await.unwrap();
        let live = "SELECT generation FROM generations WHERE projection = 'read-model' AND state = 'live'";
        query_scalar(live).fetch_optional(&mut database).await.unwrap()
    }

    /// All that a stream has, as it is stored.
    async fn stored_in(&self, stream: &str) -> Vec<RawMessage> {
        let (nats, mut all) = (self.bus.nats().unwrap(), Vec::new());
        let mut tail = nats.tail_stream(stream, &[">".to_owned()], TailStart::After(0)).await.unwrap();
        let pending = usize::try_from(tail.pending()).unwrap();
        while all.len() < pending {
            all.extend(tail.next_batch().await.unwrap());
        }
        all
    }

    /// Checks that a timer that is set goes off and reaches the log.
    async fn timers_go_off(&self) {
        let (task, at) = (ids::generate(), Timestamp::now() + SignedDuration::from_millis(10));
        let decided = DecisionPosition { sequence: 1, position: 0 };
        let timer = TaskTimer { agent: agent("a"), task, occurrence: 1, at, decided };
        self.bus.arm_timer(&timer).await.unwrap();
        let is_due = |event: &kairo_core::event_json::EventJson| {
            event.subject == TASK_DUE.of_owner(&agent("a")) && event.payload["task_id"] == task.to_string()
        };
        self.log.wait(is_due).await;
    }
}

fn contents(messages: &[RawMessage]) -> Vec<(u64, String, i128, Vec<u8>)> {
    let content =
        |raw: &RawMessage| (raw.sequence, raw.subject.clone(), raw.stored.as_nanosecond(), raw.payload.to_vec());
    messages.iter().map(content).collect()
}

/// The files of a backup whose names hold this.
fn files(folder: &Path, name: &str) -> Vec<PathBuf> {
    let parts = fs::read_dir(folder).unwrap().flatten().map(|part| part.path()).filter(|path| path.is_dir());
    let files =
        parts.flat_map(|part| fs::read_dir(part).unwrap().flatten().map(|file| file.path()).collect::<Vec<_>>());
    let mut found: Vec<_> = files.filter(|file| file.to_str().unwrap().contains(name)).collect();
    found.sort();
    found
}

pub async fn an_agent_that_knows_people(world: &World) {
    let keeper = json!({ "agent": AGENT, "prompt": "Be brief.", "inner_state": true });
    assert_eq!(world.post("/v1/agents", &keeper).await.0, 201);
    for (user, word) in [("ann", MARK), ("bob", OTHER), ("eve", "evergreen")] {
        for what in ["run", "remember", "hello"] {
            world.ask_as(user, AGENT, &format!("{what} {word}")).await;
        }
    }
}

#[tokio::test]
async fn what_was_wiped_is_restored_and_goes_on_as_if_nothing_had_been() {
    let mut world = wanted().start().await;
    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("backup");
    let path = backup.to_str().unwrap().to_owned();
    an_agent_that_knows_people(&world).await;
    let image = world.http.post(world.url("/v1/objects")).header("content-type", "image/png");
    let image: Value = image.body(image_bytes()).send().await.unwrap().json().await.unwrap();
    world.settled().await;
    let whole = done(&world, &["backup", "-o", &path]).await;
    assert_eq!((whole["part"].as_u64(), whole["after"].as_u64()), (Some(1), Some(0)), "while services are at work");
    a_full_disk_keeps_no_half_of_a_part(&world, &folder.path().join("full")).await;

    world.ask_as("bob", AGENT, "run again").await;
    // Whoever orders it is told what there is, and refused for now while the read model does not know.
    world.projected().await;
    assert_eq!(world.post("/v1/users/eve/forget", &json!({})).await.0, 202);
    world.forgotten("eve").await;
    world.settled().await;
    world.projected().await;
    world.services_stop().await;
    let keys_before = files(&backup, "DATA_KEYS");
    let part = done(&world, &["backup", "--onto", &path]).await;
    assert_eq!(part["after"], whole["through"], "only what came since");
    assert!(keys_before.iter().all(|file| !file.exists()), "keys that are destroyed by now are kept nowhere");
    let verified = done(&world, &["backup", "verify", &path]).await;
    assert_eq!((&verified["fits"], &verified["through"]), (&json!(true), &part["through"]), "{verified:#}");
    assert!(done(&world, &["verify", &path]).await["agents"][0]["decisions"].as_u64() > Some(5));
    damage_is_named(&world, &backup).await;

    let (log, timers, id) =
        (world.stored_in(EVENTS_STREAM).await, world.stored_in(TIMERS_STREAM).await, world.log_id().await);
    let tables = world.tables_hold().await;
    assert!(refused(&world, &["restore", &path], 1).await.contains("is not empty"));
    world.streams_are_lost().await;

    killed_halfway(&mut world, &backup, part["through"].as_u64().unwrap()).await;
    let restored = done(&world, &["restore", &path]).await;
    assert_eq!((&restored["through"], &restored["forgotten_again"]), (&part["through"], &json!([])), "{restored}");
    assert_eq!(restored["before"], id.as_str());
    assert!(refused(&world, &["restore", &path], 1).await.contains("is not empty"));
    world.look_again().await;
    assert_ne!(world.log_id().await, id, "nobody takes it for the log that it was");
    assert_eq!(contents(&world.stored_in(EVENTS_STREAM).await), contents(&log), "with sequences and times");
    assert_eq!(contents(&world.stored_in(TIMERS_STREAM).await), contents(&timers));

    world.tables_are_made_again(&tables).await;
    goes_on(&mut world, part["through"].as_u64().unwrap(), image["digest"].as_str().unwrap()).await;
    assert!(refused(&world, &["backup", "--onto", &path], 1).await.contains("as after a restore"));
    world.end().await;
}

fn image_bytes() -> Vec<u8> {
    [b"\x89PNG\r\n\x1a\n".to_vec(), vec![7; 300_000]].concat()
}

/// Services take up what they did, and do nothing again that was done.
async fn goes_on(world: &mut World, end: u64, image: &str) {
    world.services_start().await;
    world.settled().await;
    let behind =
        world.stored_in(EVENTS_STREAM).await.into_iter().filter(|raw| raw.sequence > end).map(|raw| raw.subject);
    let said: BTreeSet<String> = behind.filter(|subject| !subject.starts_with("kairo.system.")).collect();
    assert!(said.is_empty(), "nothing is done again: {said:?}");
    let got = world.http.get(world.url(&format!("/v1/objects/{image}"))).send().await.unwrap();
    assert_eq!(got.bytes().await.unwrap(), image_bytes());
    let output = kairo(world, &["--json", "verify", "--all"]).await;
    assert_eq!(output.status.code(), Some(0), "{output:?}");

    world.ask_as("bob", AGENT, "what do you know?").await;
    let requests = world.model_requests().await;
    let last = requests.iter().map(Value::to_string).find(|it| it.contains("what do you know?")).unwrap();
    assert!(last.contains(OTHER) && !last.contains(MARK) && !last.contains("evergreen"), "{last}");
    world.ask_as("bob", AGENT, "run new").await;
    world.timers_go_off().await;
    world.settled().await;
    world.verified().await;
}

/// As little as a part of the image may be written to a file.
async fn a_full_disk_keeps_no_half_of_a_part(world: &World, place: &Path) {
    let path = place.to_str().unwrap();
    let whole = command(world, &["backup", "-o", path]);
    let mut bounded = Command::new("/bin/sh");
    bounded.args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\""]).arg(whole.as_std().get_program());
    bounded.args(whole.as_std().get_args());
    bounded.envs(whole.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = bounded.output().await.unwrap();
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && why.contains("too large"), "{output:?}");
    let left: Vec<_> = fs::read_dir(place.join("0001")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty() && !place.join("manifest.json").exists(), "{left:?}");
    // With room it is taken in the same place.
    assert_eq!(done(world, &["backup", "-o", path]).await["part"], 1);
}

/// A file that was cut or edited is named, and nothing is restored of it.
async fn damage_is_named(world: &World, backup: &Path) {
    let log = files(backup, EVENTS_STREAM).remove(0);
    let whole = fs::read(&log).unwrap();
    let mut edited = whole.clone();
    edited[whole.len() / 2] ^= 1;
    for damaged in [&edited[..], &whole[..whole.len() - 9]] {
        fs::write(&log, damaged).unwrap();
        let why = refused(world, &["backup", "verify", backup.to_str().unwrap()], 1).await;
        assert!(why.contains(log.to_str().unwrap()), "{why}");
        let why = refused(world, &["restore", backup.to_str().unwrap()], 1).await;
        assert!(why.contains(log.to_str().unwrap()), "{why}");
    }
    fs::write(&log, whole).unwrap();
    let manifest = backup.join("manifest.json");
    let whole = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, whole.replacen("\"first\": 1,", "\"first\": 2,", 1)).unwrap();
    let why = refused(world, &["backup", "verify", backup.to_str().unwrap()], 64).await;
    assert!(why.contains("its checksum is"), "{why}");
    fs::write(&manifest, whole).unwrap();
}

/// A restore that is killed when the log is filled and its keys are not: nobody takes the log for one.
async fn killed_halfway(world: &mut World, backup: &Path, end: u64) {
    let relay = Relay::holding_behind(&world.nats.url(), "STREAM.RESTORE.KV_KAIRO_DATA_KEYS").await;
    let mut restore = command(world, &["restore", backup.to_str().unwrap()]);
    let mut restoring = restore.env("KAIRO_NATS__URL", relay.url()).spawn().unwrap();
    timeout(DEADLINE, relay.holds()).await.expect("the keys were never restored");
    let is_filled = async {
        let nats = world.bus.nats().unwrap();
        // Nobody tells how far it is: asking is all there is.
        while nats.stream_state(EVENTS_STREAM).await.map_or(0, |log| log.last_sequence) < end {}
    };
    timeout(DEADLINE, is_filled).await.expect("the log was never filled");
    restoring.kill().await.unwrap();
    let started = world.stack.restart(Service::Router, 0).await.unwrap_err().to_string();
    assert!(started.contains("kairo restore"), "{started}");
    let provisioned = world.stack.provision().await.unwrap_err().to_string();
    assert!(provisioned.contains("kairo restore"), "{provisioned}");
}

#[tokio::test]
async fn nobody_goes_on_from_what_is_ahead_of_a_restored_log_and_who_was_forgotten_since_is_forgotten_again() {
    let mut world = wanted().start().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backup").to_str().unwrap().to_owned();
    an_agent_that_knows_people(&world).await;
    world.settled().await;
    // As a job does that is always the same.
    let at = done(&world, &["backup", "--into", &path]).await["through"].as_u64().unwrap();
    world.ask_as("bob", AGENT, &format!("remember {LATER}")).await;
    assert_eq!(world.post("/v1/users/ann/forget", &json!({})).await.0, 202);
    world.forgotten("ann").await;
    world.settled().await;
    world.projected().await;
    assert!(refused(&world, &["restore", &path], 1).await.contains("is running"));
    world.services_stop().await;
    assert_eq!(done(&world, &["backup", "--into", &path]).await["after"].as_u64(), Some(at), "only what came since");

    // The log is lost, and what was kept of it is not.
    let jetstream = world.bus.nats().unwrap().jetstream.clone();
    for stream in LOST {
        jetstream.delete_stream(stream).await.unwrap();
    }
    assert!(world.stored_in(SNAPSHOTS).await.iter().any(|entry| entry.subject.contains(&format!("agent.{AGENT}"))));
    let restored = done(&world, &["restore", &path, "--at", &at.to_string()]).await;
    assert_eq!((&restored["through"], &restored["forgotten_again"]), (&json!(at), &json!(["ann"])), "{restored}");
    world.look_again().await;
    assert_eq!(world.end_of_log().await, at);
    let keys = world.stored_in("KV_KAIRO_DATA_KEYS").await;
    let of_ann = keys.iter().find(|entry| entry.subject.ends_with(".user.ann.1")).unwrap();
    assert_eq!(&of_ann.payload[..], b"\"destroyed\"", "before anybody could read with it");

    world.services_start().await;
    world.ask_as("bob", AGENT, "what do you know?").await;
    let requests = world.model_requests().await;
    let last = requests.iter().map(Value::to_string).find(|it| it.contains("what do you know?")).unwrap();
    assert!(last.contains(OTHER) && !last.contains(LATER) && !last.contains(MARK), "{last}");
    world.forgotten("ann").await;
    world.settled().await;
    world.projected().await;
    let said: Vec<String> = world.stored_in(EVENTS_STREAM).await.into_iter().map(|raw| raw.subject).collect();
    for subject in ["kairo.user.ann.forget", "kairo.user.ann.forgotten", "kairo.agent.keeper.forgotten"] {
        assert_eq!(said.iter().filter(|it| *it == subject).count(), 1, "{subject}");
    }
    let (_, state) = world.get(&format!("/v1/agents/{AGENT}/state?at={}", world.end_of_log().await)).await;
    let (state, shown) = (state.to_string(), world.shown().await);
    assert!(state.contains(OTHER) && !state.contains(LATER) && !state.contains(MARK), "{state}");
    assert!(shown.contains(OTHER) && !shown.contains(LATER) && !shown.contains(MARK), "{shown}");
    let output = kairo(&world, &["--json", "verify", "--all"]).await;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    world.verified().await;
    world.end().await;
}

/// The drill restores another Kairo, with other servers: the one that was backed up goes on undisturbed.
#[tokio::test]
async fn a_drill_restores_a_backup_elsewhere_and_has_an_agent_reply() {
    let world = wanted().start().await;
    world.define(AGENT).await;
    world.ask(AGENT, MARK).await;
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("backup").display().to_string();
    let taken = done(&world, &["backup", "-o", &place]).await;
    let before = world.end_of_log().await;
    let mut drill = command(&world, &["backup", "drill", &place]);
    drill.env("KAIRO_PRIVACY__MASTER_KEY", "07".repeat(32)).env("KAIRO_TOOL_RUNNER__APPROVAL", "no list");
    let output = drill.output().await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let drilled: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&drilled["proven"], &drilled["replied"]), (&json!(true), &json!(true)), "{drilled}");
    assert!(drilled["through"].as_u64() >= taken["through"].as_u64(), "{drilled} {taken}");
    assert!(drilled["first_reply_s"].as_f64() > Some(0.0) && drilled["read_model_s"].as_f64() > Some(0.0), "{drilled}");
    assert_eq!(world.end_of_log().await, before);
    // One that is damaged is not restored.
    let manifest = folder.path().join("backup/manifest.json");
    fs::write(&manifest, fs::read_to_string(&manifest).unwrap().replacen("\"parts\"", "\"part\"", 1)).unwrap();
    let output = command(&world, &["backup", "drill", &place]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("restore"), "{output:?}");
    world.end().await;
}
