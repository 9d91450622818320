//! Limits of what a program run by an agent can learn about the machine, tested with ordinary programs that try.

use std::{fs, path::Path};

use kairo_core::event_json::EventJson;
use kairo_local::Service;
use kairo_proto::v1;
use serde_json::{Value, json};

use crate::world::{Sent, Wanted, World};

const AGENT: &str = "default";

/// A script that tries to read the processes whose ids it is given, as a debugger or a thief would, and prints what
/// it could open.
const LOOK: &str = "for pid in $PPID \"$@\"; do \
                      for file in environ maps mem; do \
                        (exec 3</proc/$pid/$file) 2>/dev/null && echo \"$pid $file\"; \
                      done; \
                      readlink /proc/$pid/fd/0 >/dev/null && echo \"$pid fd\"; \
                    done; \
                    echo over";

const ADMIN_KEY: &str = "kairo_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// "look at 1 2 3" runs the program that looks, "sleep" starts one that stays.
fn scenario() -> String {
    let look = json!({ "program": "look", "args": "{{ captures.pids | split }}" });
    let sleep = json!({ "program": "sleep", "args": ["600"] });
    json!({ "rules": [
        { "name": "look", "when": { "user_matches": "look at (?<pids>.*)" },
          "turn": [{ "tool_calls": [{ "tool": "process.run", "arguments": look }] }, "{{ last_result.stdout }}"] },
        { "name": "sleep", "when": { "user_contains": "sleep" },
          "turn": [{ "tool_calls": [{ "tool": "process.spawn", "arguments": sleep }] }, "asleep"] },
        { "name": "told", "when": {}, "reply": "{{ user }}" },
    ] })
    .to_string()
}

/// Services with secrets in their environments, which may do what an ordinary user may.
fn wanted(landlock: &str, pid_namespace: &str) -> Wanted {
    let look = json!({ "path": "/bin/sh", "args": ["-c", LOOK, "look"] });
    let programs = json!({ "look": look, "sleep": "/bin/sleep" }).to_string();
    Wanted::new(&scenario())
        .unprivileged()
        .env(Service::Gateway, "KAIRO_GATEWAY__ADMIN_KEY", ADMIN_KEY)
        .env(Service::ProcessSupervisor, "KAIRO_PROCESS_SUPERVISOR__PROGRAMS", programs)
        .env(Service::ProcessSupervisor, "KAIRO_PROCESS_SUPERVISOR__LANDLOCK__MODE", landlock)
        .env(Service::ProcessSupervisor, "KAIRO_PROCESS_SUPERVISOR__PID_NAMESPACE", pid_namespace)
}

async fn start(wanted: Wanted) -> World {
    let world = wanted.start().await;
    world.define(AGENT).await;
    world.log.wait(|event| event.type_name == v1::ToolCatalogue::TYPE && event.text().contains("process.run")).await;
    world
}

fn pids_of_services(world: &World) -> Vec<u32> {
    let services = Service::ALL.into_iter().filter(|service| *service != Service::ModelSim);
    services.map(|service| world.stack.replicas(service)[0].process().pid()).collect()
}

fn parent(pid: u64) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
    parent.trim().parse().unwrap()
}

/// A program that stays, and its guard.
async fn sleeper(world: &World) -> (u64, u32) {
    let sent = world.send(AGENT, "sleep").await;
    let is_it =
        |event: &EventJson| event.type_name == v1::ProcessSpawned::TYPE && event.correlation_id == sent.event_id;
    let spawned = world.log.wait(is_it).await;
    let program = spawned.payload["pid"].as_u64().unwrap();
    // What is said before that is decided on together with its result.
    assert_eq!(world.reply(&sent).await, "asleep");
    (program, parent(program))
}

/// Returns the files of these processes and of its own guard that a program could open, one line each.
async fn opened(world: &World, pids: impl IntoIterator<Item = String>) -> Vec<String> {
    let pids = pids.into_iter().collect::<Vec<_>>().join(" ");
    let found = world.ask(AGENT, &format!("look at {pids}")).await;
    let mut lines: Vec<String> = found.lines().map(str::to_owned).collect();
    assert_eq!(lines.pop().as_deref(), Some("over"), "{found}\n{}", world.log.text());
    lines
}

#[tokio::test]
async fn no_program_looks_into_a_guard_or_a_service() {
    let world = start(wanted("off", "off").env(Service::Router, "KAIRO_TELEMETRY__CORE_DUMPS", "true")).await;
    let (program, guard) = sleeper(&world).await;
    let router = world.stack.replicas(Service::Router)[0].process().pid();
    let closed = pids_of_services(&world).into_iter().filter(|pid| *pid != router).chain([guard]);
    assert_eq!(opened(&world, closed.map(|pid| pid.to_string())).await, Vec::<String>::new());
    // Its like it can look into, and a service that was opened: there is nothing wrong with how it looks.
    for pid in [program.to_string(), router.to_string()] {
        let open = ["environ", "maps", "mem", "fd"].map(|file| format!("{pid} {file}"));
        assert_eq!(opened(&world, [pid]).await, open);
    }
    // Root sees it; whoever else runs the tests is kept out like the program.
    let environment = fs::read(format!("/proc/{guard}/environ")).unwrap_or_default();
    assert_eq!(String::from_utf8_lossy(&environment), "", "a guard is given no secret to keep");
}

#[tokio::test]
async fn with_landlock_no_program_looks_into_another_either() {
    let world = start(wanted("best_effort", "off")).await;
    if shortcomings(&world).await.iter().any(|note| note.contains("Landlock")) {
        eprintln!("SKIPPED: this kernel's Landlock is not all there, so there is nothing to test");
        return;
    }
    let (program, guard) = sleeper(&world).await;
    let all = pids_of_services(&world).into_iter().map(u64::from).chain([guard.into(), program, 1]);
    assert_eq!(opened(&world, all.map(|pid| pid.to_string())).await, Vec::<String>::new());
}

#[tokio::test]
async fn with_process_ids_of_its_own_no_program_even_sees_another() {
    let world = start(wanted("off", "best_effort")).await;
    if shortcomings(&world).await.iter().any(|note| note.contains("PID namespace")) {
        eprintln!("SKIPPED: this machine allows ordinary users no PID namespace, so there is nothing to test");
        return;
    }
    let (program, guard) = sleeper(&world).await;
    assert!(fs::read_link(format!("/proc/{program}/exe")).unwrap().ends_with("sleep"), "the log has the machine's id");
    // In its own numbering few ids are taken, and these are all far beyond.
    let all = pids_of_services(&world).into_iter().map(u64::from).chain([guard.into(), program]);
    let all = all.inspect(|pid| assert!(*pid > 10));
    assert_eq!(opened(&world, all.map(|pid| pid.to_string())).await, Vec::<String>::new());
}

#[tokio::test]
async fn what_the_machine_does_not_enforce_is_in_the_status() {
    let world = start(wanted("off", "off")).await;
    let notes = shortcomings(&world).await;
    assert!(notes.iter().any(|note| note.contains("landlock.mode is off")), "{notes:?}");
    assert!(notes.iter().any(|note| note.contains("pid_namespace is off")), "{notes:?}");
}

/// Returns the notes on process-supervisor in the status.
async fn shortcomings(world: &World) -> Vec<String> {
    let request = world.http.get(world.url("/v1/status")).bearer_auth(ADMIN_KEY);
    let status: Value = request.send().await.unwrap().json().await.unwrap();
    let services = status["services"].as_array().unwrap();
    let supervisor = services.iter().find(|replica| replica["service"] == "process-supervisor").unwrap();
    serde_json::from_value(supervisor["notes"].clone()).unwrap()
}

#[tokio::test]
async fn a_program_that_needs_consent_does_not_run_before_it_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let effect = folder.path().join("effect");
    let code = format!("echo done >{}", effect.display());
    let run =
        |program: &str| json!({ "tool": "process.run", "arguments": { "program": program, "args": ["-c", &code] } });
    let scenario = json!({ "rules": [
        { "name": "shell", "when": { "user_contains": "shell" }, "turn": [{ "tool_calls": [run("shell")] }, "ran"] },
        { "name": "free", "when": { "user_contains": "free" }, "turn": [{ "tool_calls": [run("true")] }, "ran"] },
    ] });
    let programs = json!({ "shell": { "path": "/bin/sh", "consent": true }, "true": "/bin/true" });
    let wanted = Wanted::new(&scenario.to_string());
    let programs = wanted.env(Service::ProcessSupervisor, "KAIRO_PROCESS_SUPERVISOR__PROGRAMS", programs.to_string());
    let world = start(programs).await;
    assert_eq!(world.ask(AGENT, "free").await, "ran", "what needs no consent runs unasked");

    let runs = runs(&world).await;
    for (verdict, ran) in [("rejected", false), ("approved", true)] {
        let sent = world.send(AGENT, "shell").await;
        let asked = asked_for_consent(&world, &sent).await;
        let body = json!({ "user": "ann", "agent": AGENT, "action_id": asked.event_id, "verdict": verdict });
        assert_eq!(world.post("/v1/approvals", &body).await.0, 202);
        if ran {
            let ended =
                |event: &EventJson| event.type_name == v1::ProcessExited::TYPE && event.sequence > asked.sequence;
            world.log.wait(ended).await;
        } else {
            world.reply(&sent).await;
        }
        let now = self::runs(&world).await - runs;
        assert_eq!((Path::exists(&effect), now), (ran, usize::from(ran)), "{verdict}");
    }
    world.end().await;
}

async fn asked_for_consent(world: &World, sent: &Sent) -> EventJson {
    let is_it =
        |event: &EventJson| event.correlation_id == sent.event_id && event.type_name.contains("approval_requested");
    world.log.wait(is_it).await
}

/// Returns the number of programs run so far.
async fn runs(world: &World) -> usize {
    let events = world.log.now(&world.bus).await;
    events.iter().filter(|event| event.type_name == v1::ProcessSpawned::TYPE).count()
}
