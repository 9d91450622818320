//! The read model under fire: whatever is killed, full or away, during load and while another generation is built, a
//! clean rebuild gives the same rows afterwards.

use std::{ops::Range, path::PathBuf, process::Stdio, time::Duration};

use kairo_core::bus::Bus;
use kairo_local::Service;
use kairo_tests::multiply::{AGENT, Pattern, USER};
use serde_json::{Value, json};
use tokio::{process::Command, time::timeout};

use crate::{
    rebuild::EVERYTHING,
    world::{DEADLINE, Wanted, World},
};

/// Turns that are recorded, and written again and again with other ids.
const TURNS: [&str; 5] = ["time please", "run it", "remember", "hello", "spawn"];
/// Copies that make a rebuild take a while.
const COPIES: u32 = 60;
/// The time for which Postgres refuses connections, in milliseconds: the variable that sets it, and its default.
const AWAY: (&str, u64) = ("KAIRO_TEST_AWAY_MS", 3_000);
/// The variable with the path of the small disk, set in the process that has one.
const SMALL_DISK: &str = "KAIRO_TEST_SMALL_DISK";

/// The states of a generation, in order.
const STATES: [&str; 5] = ["asked", "filling", "indexing", "comparing", "ready"];

fn wanted(projectors: usize) -> Wanted {
    Wanted::new(EVERYTHING)
        .replicas(Service::Projector, projectors)
        .env(Service::Projector, "KAIRO_PROJECTOR__SESSION_TIMEOUT_MS", "1000")
        .env(Service::Projector, "KAIRO_PROJECTOR__REBALANCE_MS", "100")
        .env(Service::Projector, "KAIRO_PROJECTOR__BATCH", "100")
        .env(Service::Projector, "KAIRO_PROJECTOR__REBUILD_BATCH", "100")
        .env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__APPROVAL", r#"["process.spawn"]"#)
}

/// A world in which turns of every kind have happened and now only projectors and the gateway run, and what was written.
async fn recorded(wanted: Wanted) -> (World, Vec<Pattern>) {
    let world = wanted.start().await;
    let (agent, user) = (format!("{AGENT}-00"), format!("{USER}-00"));
    world.define(&agent).await;
    for text in TURNS {
        let sent = world.send_as(&json!({ "user": user, "agent": agent, "text": text })).await;
        let answered = |correlation, event: &kairo_core::event_json::EventJson| {
            event.correlation_id == correlation
                && (event.is_final_reply() || event.type_name.contains("approval_requested"))
        };
        world.log.wait(|event| answered(sent.event_id, event)).await;
    }
    world.settled().await;
    for service in [Service::Router, Service::AgentRuntime, Service::ToolRunner, Service::ProcessSupervisor] {
        world.stack.stop_one(service, 0).await.unwrap();
    }
    let patterns = world.raw_log().await.iter().map(Pattern::of).filter(|pattern| pattern.is_owned).collect();
    (world, patterns)
}

/// Writes copies of what was recorded.
async fn write(bus: &Bus, patterns: &[Pattern], copies: Range<u32>) {
    for copy in copies {
        for pattern in patterns {
            let (subject, headers, payload) = pattern.copy(copy);
            let written = bus
                .nats()
                .unwrap()
                .jetstream
                .publish_with_headers(bus.stored_subject(&subject), headers, payload)
                .await
                .unwrap();
            written.await.unwrap();
        }
    }
}

/// A fault, and its end.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Projector(usize),
    Postgres,
}

impl Fault {
    async fn strikes(self, world: &mut World) {
        match self {
            Self::Projector(index) => {
                world.stack.kill9(Service::Projector, index).await.unwrap();
                world.stack.restart(Service::Projector, index).await.unwrap();
            }
            Self::Postgres => {
                world.postgres.kill9().await.unwrap();
                world.postgres.restart().await.unwrap();
            }
        }
    }
}

/// Strikes again and again while messages are written.
async fn during_load(faults: &[Fault]) {
    let (mut world, patterns) = recorded(wanted(2)).await;
    let bus = world.bus.clone();
    let writing = tokio::spawn(async move { write(&bus, &patterns, 1..COPIES).await });
    for fault in faults.iter().cycle() {
        fault.strikes(&mut world).await;
        if writing.is_finished() {
            break;
        }
    }
    writing.await.unwrap();
    world.verified().await;
    world.stack.stop().await.unwrap();
}

/// Strikes at every state of a rebuild, a rebuild for each, while messages are written.
async fn during_rebuilds(faults: &[Fault]) {
    let (mut world, patterns) = recorded(wanted(2)).await;
    write(&world.bus, &patterns, 1..COPIES).await;
    world.projected().await;
    for ((state, fault), copy) in STATES.iter().zip(faults.iter().cycle()).zip(COPIES..) {
        let built = world.begin_rebuild("read-model").await;
        // One that is short may be over when it is asked about; then the fault strikes later.
        let there = |it: &Value| {
            let now = it["state"].as_str().unwrap_or_default();
            let at = |state: &str| STATES.iter().position(|known| *known == state).unwrap_or(STATES.len());
            !now.is_empty() && at(now) >= at(state)
        };
        world.generation_until("read-model", built, there).await;
        fault.strikes(&mut world).await;
        write(&world.bus, &patterns, copy..copy + 1).await;
        world.swapped("read-model", built).await;
        world.digests_are_equal().await;
    }
    world.verified().await;
    world.stack.stop().await.unwrap();
}

#[tokio::test]
async fn projectors_killed_during_load() {
    during_load(&[Fault::Projector(0), Fault::Projector(1)]).await;
}

#[tokio::test]
async fn projectors_killed_while_they_build() {
    during_rebuilds(&[Fault::Projector(0), Fault::Projector(1)]).await;
}

#[tokio::test]
async fn postgres_killed_during_load() {
    during_load(&[Fault::Postgres]).await;
}

#[tokio::test]
async fn postgres_killed_during_a_rebuild() {
    during_rebuilds(&[Fault::Postgres]).await;
}

/// Returns true if projector reports that it is ready.
async fn is_ready(world: &World) -> bool {
    let health = world.stack.replicas(Service::Projector)[0].health_url().unwrap().to_owned();
    reqwest::get(format!("{health}/readyz")).await.unwrap().status() == 200
}

async fn gives_up(world: &World) {
    let noticed = async {
        // Nobody tells: asking is all there is.
        while is_ready(world).await {}
    };
    timeout(DEADLINE, noticed).await.expect("projector never noticed");
}

#[tokio::test]
async fn a_postgres_that_refuses_connections_for_a_while() {
    let (mut world, patterns) = recorded(wanted(1)).await;
    write(&world.bus, &patterns, 1..COPIES / 2).await;
    let built = world.begin_rebuild("read-model").await;
    world.postgres.stop(DEADLINE).await.unwrap();
    let away = std::env::var(AWAY.0).map_or(AWAY.1, |away| away.parse().unwrap());
    let refused = tokio::time::Instant::now() + Duration::from_millis(away);
    write(&world.bus, &patterns, COPIES / 2..COPIES).await;
    gives_up(&world).await;
    tokio::time::sleep_until(refused).await;
    world.postgres.restart().await.unwrap();
    world.swapped("read-model", built).await;
    world.verified().await;
    assert!(is_ready(&world).await);
    world.stack.stop().await.unwrap();
}

/// Runs itself once more where a small disk is mounted that nobody else sees: root may do that, and others may in a
/// namespace of their own.
#[tokio::test]
async fn a_full_disk() {
    if let Some(disk) = std::env::var_os(SMALL_DISK) {
        return fills_up(disk.into()).await;
    }
    let disk =
        tempfile::Builder::new().permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755)).tempdir().unwrap();
    let root = is_root();
    let own = if root { "" } else { "unshare --user --map-user=1000 --map-group=1000" };
    let script = format!(r#"mount -t tmpfs -o size=192m,mode=755 small "${SMALL_DISK}" && exec {own} "$@""#);
    let mut again = Command::new("unshare");
    again.arg("--mount").args(if root { [].as_slice() } else { &["--user", "--map-root-user"] });
    again.args(["sh", "-c", &script, "sh"]).arg(std::env::current_exe().unwrap());
    again.args(["--exact", "faults::rebuild::a_full_disk", "--nocapture"]).env(SMALL_DISK, disk.path());
    let output = again.stdin(Stdio::null()).kill_on_drop(true).output().await.unwrap();
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    assert!(output.status.success() && said[0].contains("1 passed"), "{}", said.concat());
}

fn is_root() -> bool {
    // What /proc says of a process belongs to whom it runs as.
    std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0
}

async fn fills_up(disk: PathBuf) {
    let (mut world, patterns) = recorded(wanted(1).postgres_in(disk.join("postgres"))).await;
    write(&world.bus, &patterns, 1..COPIES / 2).await;
    world.projected().await;
    let built = world.begin_rebuild("read-model").await;
    let ballast = disk.join("ballast");
    let full = std::io::copy(&mut std::io::repeat(0), &mut std::fs::File::create(&ballast).unwrap());
    assert_eq!(full.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    write(&world.bus, &patterns, COPIES / 2..COPIES).await;
    gives_up(&world).await;
    std::fs::remove_file(ballast).unwrap();
    // It may have ended, having nowhere to write that it crashed.
    world.postgres.restart().await.unwrap();
    world.swapped("read-model", built).await;
    world.verified().await;
    world.stack.stop().await.unwrap();
}
