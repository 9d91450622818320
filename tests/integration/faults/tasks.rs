//! Tasks and hooks whose time comes, or for which something happens, while nobody is there.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use async_nats::HeaderMap;
use jiff::{SignedDuration, Timestamp};
use kairo_core::{event_json::EventJson, ids};
use kairo_local::Service;
use kairo_proto::v1;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{audit, killed, turn::AGENT};
use crate::world::{Wanted, World};

/// Shortest interval that an agent accepts.
const INTERVAL: SignedDuration = SignedDuration::from_secs(10);

/// A Kairo whose model does as it is told, and where the agent's own folder and its effects are.
struct Office {
    world: World,
    folder: TempDir,
}

impl Office {
    /// Starts an office with this many replicas of everything.
    async fn open(replicas: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let told = r"do (?<chain>\[[\s\S]*\])";
        let step = |name: &str| json!(format!("You are {name}"));
        let rule = |name: &str, when: Value, reply: Value| json!({ "name": name, "when": when, "reply": reply });
        let plan = json!({ "json": { "event": "agent.chain", "params": { "plan": "do {{ captures.chain }}" } } });
        let think = step("agent.think");
        let scenario = json!({ "rules": [
            rule("done", json!({ "system_starts_with": think, "step_at_least": 1 }), json!("Done.")),
            rule("plan", json!({ "system_starts_with": think, "user_matches": told }), plan),
            rule(
                "compile",
                json!({ "system_starts_with": step("agent.chain"), "user_matches": told }),
                json!("{{ captures.chain }}"),
            ),
            rule(
                "sum up",
                json!({ "system_starts_with": step("thread.summarize") }),
                json!({ "json": { "title": "tasks", "summary": "Something is to be done." } }),
            ),
        ] });
        let programs = json!({ "note": { "path": "/bin/sh", "args": ["-c", r#"echo "$2" >>"$1""#, "note"] } });
        let world = Wanted::new(&scenario.to_string())
            .replicas_of_all(replicas)
            .env(Service::ProcessSupervisor, "KAIRO_PROCESS_SUPERVISOR__PROGRAMS", programs.to_string())
            .env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__WORKSPACE__ROOT", folder.path().display().to_string())
            .start()
            .await;
        let offers =
            |event: &EventJson| event.type_name == v1::ToolCatalogue::TYPE && event.text().contains("process.run");
        world.log.wait(offers).await;
        // Nobody is there to consent to what a mail or an event of another system sets off.
        let profile =
            json!({ "agent": AGENT, "prompt": "Be brief.", "planning": "chain", "outside_content": "trusted" });
        assert_eq!(world.post("/v1/agents", &profile).await.0, 201);
        Self { world, folder }
    }

    /// Has the agent make a task. Returns its id.
    async fn task(&self, event: &str, params: Value) -> String {
        let chain = json!([{ "event": event, "params": params }]);
        let sent = self.world.send(AGENT, &format!("do {chain}")).await;
        assert_eq!(self.world.reply(&sent).await, "Done.");
        let events = self.world.events_of(&sent).await;
        let task = events.iter().find(|event| event.type_name == v1::TaskScheduled::TYPE);
        let task = task.unwrap_or_else(|| panic!("{}", self.world.log.text()));
        task.payload["task"]["task_id"].as_str().unwrap().to_owned()
    }

    /// Returns the actions of a task: notify the user, and leave a line in the notes.
    fn action(&self, said: &str) -> Value {
        let note = json!([self.notes().display().to_string(), said]);
        json!([
            { "event": "user.notify", "params": { "message": said } },
            { "event": "process.run", "params": { "program": "note", "args": note } },
        ])
    }

    fn notes(&self) -> PathBuf {
        self.folder.path().join("notes")
    }

    /// The lines that were left.
    fn noted(&self) -> Vec<String> {
        fs::read_to_string(self.notes()).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Returns the notifications that the user got.
    async fn told(&self) -> Vec<String> {
        let events = self.world.log.now(&self.world.bus).await;
        let told = |event: &&EventJson| event.payload["type"] == "say" && event.payload["final"] != true;
        events.iter().filter(told).map(|event| event.text().to_owned()).collect()
    }

    async fn fired(&self) -> Vec<EventJson> {
        self.world
            .log
            .now(&self.world.bus)
            .await
            .into_iter()
            .filter(|event| event.type_name == v1::TaskFired::TYPE)
            .collect()
    }

    /// Waits until nothing is left to do, and sees that this was done, once.
    async fn was_done_once(&self, what: &str) {
        self.world.log.wait(|event| event.type_name == v1::TaskFired::TYPE).await;
        audit::passes(&self.world).await;
        assert_eq!(self.fired().await.len(), 1, "{}", self.world.log.text());
        assert_eq!(self.told().await, [what]);
        assert_eq!(self.noted(), [what]);
    }

    /// Puts a mail into the agent's mailbox, as mail servers do: whole, and from elsewhere.
    fn deliver(&self, name: &str) {
        let desk = self.folder.path().join(AGENT);
        let mailbox = desk.join("mail");
        for part in ["tmp", "new", "cur"] {
            fs::create_dir_all(mailbox.join(part)).unwrap();
        }
        // What others could write to is not looked at.
        fs::set_permissions(desk, Permissions::from_mode(0o700)).unwrap();
        let mail =
            "From: Sarah <sarah@example.org>\r\nSubject: The budget\r\nMessage-ID: <1@example.org>\r\n\r\nHi\r\n";
        written(&mailbox.join("tmp").join(name), mail);
        fs::rename(mailbox.join("tmp").join(name), mailbox.join("new").join(name)).unwrap();
    }
}

/// Writes a file that was left alone for a while.
fn written(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    let before = SystemTime::now() - Duration::from_secs(60);
    File::options().write(true).open(path).unwrap().set_modified(before).unwrap();
}

async fn killed(world: &World, service: Service) {
    for replica in 0..world.stack.replicas(service).len() {
        world.stack.kill9(service, replica).await.unwrap();
    }
}

async fn restarted(world: &mut World, service: Service) {
    for replica in 0..world.stack.replicas(service).len() {
        world.stack.restart(service, replica).await.unwrap();
    }
}

#[tokio::test]
async fn a_task_that_was_due_while_everything_was_dead_is_done_once() {
    let mut office = Office::open(1).await;
    let due = Timestamp::now() + SignedDuration::from_secs(5);
    let action = office.action("It is time");
    office.task("task.schedule", json!({ "type": "once", "at": due.to_string(), "action": action })).await;
    office.world.settled().await;
    assert!(Timestamp::now() < due, "this machine is too slow for this test");
    killed::all_killed(&mut office.world).await;
    office.world.nats.kill9().await.unwrap();
    while Timestamp::now() <= due {
        // Its time must have passed.
        tokio::task::yield_now().await;
    }
    office.world.nats.restart().await.unwrap();
    killed::all_restarted(&mut office.world).await;
    office.was_done_once("It is time").await;

    // A timer that has gone off does not go off again.
    office.world.nats.kill9().await.unwrap();
    office.world.nats.restart().await.unwrap();
    killed(&office.world, Service::AgentRuntime).await;
    restarted(&mut office.world, Service::AgentRuntime).await;
    office.was_done_once("It is time").await;
    office.world.end().await;
}

/// Kills and restarts a replica of one service, each service in turn, and nats-server as well at every third blow.
async fn strike(world: &mut World, blow: usize) {
    let services =
        [Service::AgentRuntime, Service::ToolRunner, Service::ProcessSupervisor, Service::Router, Service::Projector];
    let (service, replica) = (services[blow % services.len()], blow % 3);
    world.stack.kill9(service, replica).await.unwrap();
    if blow % 3 == 1 {
        world.nats.kill9().await.unwrap();
        world.nats.restart().await.unwrap();
    }
    world.stack.restart(service, replica).await.unwrap();
}

#[tokio::test]
async fn repeated_tasks_are_done_once_each_time_whatever_is_killed() {
    const TASKS: i64 = 4;
    const TIMES: usize = 2;
    let mut office = Office::open(3).await;
    let first = Timestamp::now() + SignedDuration::from_secs(4);
    for number in 0..TASKS {
        let at = first + SignedDuration::from_millis(2_000 * number);
        let action = office.action(&format!("{number} {{event.due_at}}"));
        let params = json!({ "type": "repeat", "interval": "10 seconds", "at": at.to_string(), "action": action });
        office.task("task.schedule", params).await;
    }
    let wanted = usize::try_from(TASKS).unwrap() * TIMES;
    for blow in 0..wanted {
        office.world.log.wait_for(blow + 1, |event| event.type_name == v1::TaskFired::TYPE).await;
        strike(&mut office.world, blow).await;
    }
    let fired = office.fired().await;
    let tasks: BTreeSet<&str> = fired.iter().map(|event| event.payload["task_id"].as_str().unwrap()).collect();
    for task in &tasks {
        let order = json!({ "user": "ann", "agent": AGENT, "command": "cancel", "task_id": task, "command_id": task });
        assert_eq!(office.world.post("/v1/commands", &order).await.0, 202);
    }
    office.world.log.wait_for(tasks.len(), |event| event.payload["status"] == "canceled").await;
    audit::passes(&office.world).await;
    each_time_once(&office, usize::try_from(TASKS).unwrap(), TIMES).await;
    office.world.end().await;
}

/// Every time of each task was dealt with once, in order, none is missing, and what it does was done once, or is in
/// doubt.
async fn each_time_once(office: &Office, tasks: usize, at_least: usize) {
    let mut times: BTreeMap<String, Vec<(u64, Timestamp)>> = BTreeMap::new();
    for event in office.fired().await {
        let text = |field: &str| event.payload[field].as_str().unwrap().to_owned();
        let time = (text("occurrence").parse().unwrap(), text("due_at").parse().unwrap());
        times.entry(text("task_id")).or_default().push(time);
    }
    assert_eq!(times.len(), tasks);
    for times in times.values() {
        assert!(times.len() >= at_least, "{times:?}");
        let (numbers, due): (Vec<u64>, Vec<Timestamp>) = times.iter().copied().unzip();
        assert_eq!(numbers, (1..=times.len() as u64).collect::<Vec<_>>());
        assert!(due.windows(2).all(|pair| pair[1].duration_since(pair[0]) >= INTERVAL), "{due:?}");
    }
    let all: usize = times.values().map(Vec::len).sum();
    // What could not be done is told, too.
    let mut told = office.told().await;
    told.retain(|text| !text.contains("could not be done"));
    let noted = office.noted();
    for lines in [&told, &noted] {
        let distinct: BTreeSet<&String> = lines.iter().collect();
        assert_eq!(distinct.len(), lines.len(), "{lines:?}");
    }
    assert_eq!(told.len(), all, "{told:?}");
    let events = office.world.log.now(&office.world.bus).await;
    let results = events.iter().filter(|event| event.type_name == v1::ToolResult::TYPE);
    let (done, doubtful): (Vec<_>, Vec<_>) = results.partition(|event| event.payload["ok"] == true);
    assert!(doubtful.iter().all(|event| event.payload["error"] == "in_doubt"), "{doubtful:?}");
    assert!(done.len() <= noted.len() && noted.len() <= all, "{} done, {noted:?}", done.len());
    assert_eq!(done.len() + doubtful.len(), all);
}

#[tokio::test]
async fn what_happens_outside_while_the_router_is_dead_triggers_a_hook_once() {
    let mut office = Office::open(2).await;
    let action = office.action("{event.invoice} was paid");
    office.task("task.register", json!({ "trigger": "post:billing.paid", "action": action })).await;
    // The hook is registered by agent-runtime, which is killed, too.
    office.world.settled().await;
    killed(&office.world, Service::Router).await;
    killed(&office.world, Service::AgentRuntime).await;
    let (mut headers, id) = (HeaderMap::new(), ids::generate().to_string());
    for (name, value) in
        [("ce-specversion", "1.0"), ("ce-id", &id), ("ce-source", "/billing"), ("ce-type", "billing.paid")]
    {
        headers.insert(name, value);
    }
    // Whoever tells of it is not sure either that it was heard.
    for _ in 0..2 {
        let body = json!({ "invoice": 7 }).to_string();
        office.world.publish("kairo.system.billing.paid", headers.clone(), body).await;
    }
    restarted(&mut office.world, Service::Router).await;
    let told = office.world.log.wait(|event| event.type_name == v1::TaskTriggered::TYPE).await;
    killed(&office.world, Service::Router).await;
    restarted(&mut office.world, Service::AgentRuntime).await;
    restarted(&mut office.world, Service::Router).await;
    office.was_done_once("7 was paid").await;
    // The same once more, when nobody remembers having written it.
    let again = office.world.raw_log().await.into_iter().find(|raw| raw.sequence == told.sequence).unwrap();
    office.world.publish_again(&again).await;
    office.was_done_once("7 was paid").await;
    office.world.end().await;
}

#[tokio::test]
async fn a_mail_that_comes_while_tool_runner_is_dead_triggers_a_hook_once() {
    let mut office = Office::open(2).await;
    let action = office.action("{event.subject} has come");
    let condition = "sender contains 'Sarah' AND subject contains 'budget'";
    let hook = json!({ "trigger": "post:email.received", "condition": condition, "action": action });
    office.task("task.register", hook).await;
    killed(&office.world, Service::ToolRunner).await;
    office.deliver("1.budget");
    killed(&office.world, Service::AgentRuntime).await;
    // Both look for mail as they start.
    restarted(&mut office.world, Service::ToolRunner).await;
    let told = office.world.log.wait(|event| event.type_name == v1::EmailReceived::TYPE).await;
    killed(&office.world, Service::ToolRunner).await;
    restarted(&mut office.world, Service::AgentRuntime).await;
    restarted(&mut office.world, Service::ToolRunner).await;
    office.was_done_once("The budget has come").await;
    let again = office.world.raw_log().await.into_iter().find(|raw| raw.sequence == told.sequence).unwrap();
    office.world.publish_again(&again).await;
    office.was_done_once("The budget has come").await;
    office.world.end().await;
}
