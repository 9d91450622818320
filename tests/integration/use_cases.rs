//! The six use cases of seed 000, and the flow of seed 001, as the examples tell them: every message, on a whole Kairo with real
//! files.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use jiff::{Timestamp, Zoned, civil::time};
use kairo_cli::{
    client::Client,
    example::{
        files::Example,
        player::{Player, SceneResult},
        scene_chains::{SceneChain, chains},
        search_stub::SearchStub,
        template::morning,
    },
};
use kairo_core::event_json::EventJson;
use kairo_local::{Service, StackOptions, Tools};
use kairo_proto::v1;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::{
    faults::audit,
    world::{DEADLINE, Wanted, World, no_process_is_left_in},
};

/// An example that was played.
struct Case {
    world: World,
    example: Example,
    /// Without what happened before.
    scenes: Vec<SceneResult>,
    /// The agent's own folder.
    desk: PathBuf,
    _root: TempDir,
    _search: Option<SearchStub>,
}

/// Plays an example to its end; whatever it expects must have come.
async fn played(name: &str) -> Case {
    let example = Example::open(name, &morning(Timestamp::now())).unwrap();
    let root = tempfile::tempdir().unwrap();
    let desk = example.write_workspace(root.path()).unwrap();
    let mut wanted = Wanted::new(&example.scenario)
        .env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__WORKSPACE__ROOT", root.path().display().to_string())
        .env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__TIME_ZONE", example.zone());
    let search = match &example.web {
        Some(results) => Some(SearchStub::serve(results).await.unwrap()),
        None => None,
    };
    for (name, value) in &example.settings {
        wanted = wanted.env(Service::AgentRuntime, name, value);
    }
    if let Some(search) = &search {
        wanted = wanted.env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__WEB_SEARCH__URL", search.url());
    }
    let world = wanted.start().await;
    let offers =
        |event: &EventJson| event.type_name == v1::ToolCatalogue::TYPE && event.text().contains("calendar.check");
    world.log.wait(offers).await;
    let client = Client::new(&world.url("")).unwrap();
    let mut player = Player::begin(&client, &example, &desk).await.unwrap();
    let all = player.play(|_| Ok(())).await.unwrap();
    let unmet: Vec<String> = all.iter().flat_map(note).collect();
    assert!(unmet.is_empty(), "{name}:\n{}\nthe log holds:\n{}", unmet.join("\n"), world.log.text());
    let scenes = all.into_iter().filter(|played| !played.before).collect();
    Case { world, example, scenes, desk, _root: root, _search: search }
}

fn note(played: &SceneResult) -> impl Iterator<Item = String> {
    played.unmet.iter().map(|unmet| format!("{}: {unmet}", played.cue))
}

impl Case {
    /// The only chain of a scene.
    fn chain(&self, scene: usize) -> SceneChain {
        let mut chains = chains(&self.scenes[scene].events);
        assert_eq!(chains.len(), 1, "{chains:?}");
        chains.remove(0)
    }

    fn events<'e>(&'e self, scene: usize, type_name: &'e str) -> impl Iterator<Item = &'e EventJson> {
        self.scenes[scene].events.iter().filter(move |event| event.type_name == type_name)
    }

    /// The thread that a scene's message was placed in.
    fn thread(&self, scene: usize) -> &str {
        let matched = self.events(scene, v1::ThreadMatched::TYPE).next().unwrap();
        matched.payload["thread_id"].as_str().unwrap()
    }

    /// Today in the agent's zone, at this time.
    fn today_at(&self, hour: i8) -> Zoned {
        self.example.now.with().time(time(hour, 0, 0, 0)).build().unwrap()
    }

    fn task(&self, scene: usize) -> &Value {
        &self.events(scene, v1::TaskScheduled::TYPE).next().unwrap().payload["task"]
    }

    /// Everything that was begun is over, and nothing contradicts the invariants.
    async fn end(self) {
        audit::passes(&self.world).await;
        self.world.end().await;
    }
}

/// The steps of a group were called for in one decision.
fn assert_at_once(case: &Case, scene: usize, tool: &str, count: usize) {
    let calls: Vec<&EventJson> = case
        .events(scene, v1::AgentAction::TYPE)
        .filter(|event| event.payload["type"] == "tool_call" && event.payload["tool"] == tool)
        .collect();
    assert_eq!(calls.len(), count, "{tool}");
    assert!(calls.iter().all(|call| call.sequence == calls[0].sequence), "{tool} was called for one after another");
}

fn due(task: &Value) -> Timestamp {
    task["next_at"].as_str().unwrap().parse().unwrap()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).map(|entries| entries.map(|entry| entry.unwrap().path()).collect()).unwrap_or_default()
}

#[tokio::test]
async fn case_1_a_morning_routine() {
    let case = played("morning").await;
    // In the calendar, not in the scenario.
    let schedule = case.chain(0);
    let check = &schedule.steps[1];
    assert_eq!((check.event.as_str(), &check.result["total"]), ("calendar.check", &json!(3)));
    assert_eq!(check.params["date"], case.example.now.date().to_string());
    assert_eq!(schedule.steps[2].result["tasks"].as_array().unwrap().len(), 2);
    // John's thread is neither the morning's nor a new one, and the last message came back to the morning's.
    assert_ne!(case.thread(1), case.thread(0));
    assert_eq!(case.thread(2), case.thread(0));
    let offered = case.events(1, v1::ThreadSuggested::TYPE).next().unwrap();
    assert_eq!(offered.payload["thread_id"], case.thread(1));
    assert_eq!(offered.payload["current_thread_id"], case.thread(0));
    assert_eq!(due(case.task(2)), case.today_at(17).timestamp());
    case.end().await;
}

#[tokio::test]
async fn case_2_planning_a_product_launch() {
    let case = played("launch").await;
    assert_at_once(&case, 0, "memory.search", 2);
    let found = &case.chain(0).steps[0].result["matches"];
    assert_eq!(found.as_array().unwrap().len(), 2, "{found}");
    assert_at_once(&case, 1, "team.members", 2);
    assert_at_once(&case, 1, "calendar.availability", 2);
    let meetings = case.chain(1);
    let people = &meetings.steps[4].params["people"]["members"];
    assert_eq!(people.as_array().unwrap().len(), 2, "a whole result was handed on: {people}");
    assert_eq!(case.thread(1), case.thread(0));
    case.end().await;
}

#[tokio::test]
async fn case_3_an_interrupted_flow() {
    let case = played("meeting").await;
    assert_ne!(case.thread(1), case.thread(0));
    assert_eq!(case.thread(2), case.thread(0));
    // The first was still being worked on when the second was said.
    let said = case.events(1, v1::AgentMessage::TYPE).next().unwrap().sequence;
    let answered = case.scenes[0].events.iter().find(|event| event.is_final_reply()).unwrap().sequence;
    assert!(said < answered, "the interruption came at {said}, the reply at {answered}");
    // What was found is in the thread: over the whole conversation it was searched for once.
    let log = case.world.log.now(&case.world.bus).await;
    let searches = log.iter().filter(|event| event.type_name == v1::ToolInvoke::TYPE);
    assert_eq!(searches.filter(|event| event.payload["tool"] == "memory.search").count(), 1);
    case.end().await;
}

#[tokio::test]
async fn case_4_research_in_several_steps() {
    let case = played("research").await;
    assert_at_once(&case, 0, "memory.search", 2);
    let created = &case.chain(1).steps[0];
    let deck = case.desk.join(created.result["path"].as_str().unwrap());
    let text = fs::read_to_string(&deck).unwrap();
    for part in ["Competitive Pricing Analysis", "Acme Corp lowers prices by 15 %", "we compete on features"] {
        assert!(text.contains(part), "{part} is not in {}:\n{text}", deck.display());
    }
    let tomorrow = case.today_at(8).tomorrow().unwrap();
    assert_eq!(due(case.task(1)), tomorrow.timestamp());
    case.end().await;
}

#[tokio::test]
async fn case_5_reviewing_the_journal() {
    let case = played("journal").await;
    let search = &case.chain(0).steps[2];
    let found = search.result["matches"].as_array().unwrap();
    assert_eq!(found.len(), 1, "only that day's: {found:?}");
    let tuesday: jiff::civil::Date = found[0]["day"].as_str().unwrap().parse().unwrap();
    let today = case.example.now.date();
    assert_eq!(tuesday.weekday(), jiff::civil::Weekday::Tuesday);
    assert!((1..=7).contains(&(today - tuesday).get_days()), "{tuesday} seen from {today}");
    // The end of the day: what happened in the threads, then what is to be known of it.
    let kinds: Vec<&str> =
        case.events(1, v1::MemoryAppended::TYPE).map(|event| event.payload["kind"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"journal"), "{kinds:?}");
    assert!(kinds.contains(&"project") && kinds.contains(&"person"), "{kinds:?}");
    assert_eq!(
        kinds.iter().rposition(|kind| *kind == "journal").unwrap() + 1,
        kinds.iter().position(|kind| *kind != "journal").unwrap()
    );
    case.end().await;
}

#[tokio::test]
async fn case_6_a_task_that_waits_for_a_mail() {
    let case = played("automation").await;
    let registered = case.task(0);
    assert_eq!((&registered["kind"], &registered["trigger"]), (&json!("hook"), &json!("post:email.received")));
    // Both mails came, one fired.
    let mails = case.world.log.wait_for(2, |event| event.type_name == v1::EmailReceived::TYPE).await;
    let fired: Vec<_> = case.events(1, v1::TaskFired::TYPE).collect();
    assert_eq!(fired.len(), 1);
    let sarahs = mails.iter().find(|mail| mail.payload["sender"].as_str().unwrap().contains("Sarah")).unwrap();
    assert_eq!(fired[0].payload["trigger_event_id"], sarahs.event_id.to_string());
    // The entry is there, half an hour long, with Sarah's address, and collides with nothing.
    let created = &case.chain(1).steps[0];
    assert_eq!(created.result["conflicts"], json!([]));
    let path = case.desk.join(created.result["path"].as_str().unwrap());
    let entry = fs::read_to_string(&path).unwrap();
    assert!(entry.contains("Budget Discussion") && entry.contains("sarah@example.org"), "{entry}");
    let event = &created.result["event"];
    let moment = |field: &str| event[field].as_str().unwrap().parse::<Timestamp>().unwrap();
    assert_eq!(moment("end").as_second() - moment("start").as_second(), 30 * 60);
    assert_eq!(files(&case.desk.join("calendar")).len(), 3);
    case.end().await;
}

#[tokio::test]
async fn a_coordinator_routes_to_the_right_specialist() {
    let case = played("composite").await;
    let answered = |scene: usize| case.events(scene, v1::AgentAnswer::TYPE).map(|event| &event.payload["from"]);
    assert_eq!(answered(1).collect::<Vec<_>>(), ["write"]);
    let canceled = case.scenes.iter().flat_map(|scene| &scene.events);
    let canceled = canceled.filter(|event| event.type_name == v1::AgentAnswer::TYPE);
    assert_eq!(canceled.filter(|event| event.payload["status"] == "canceled").count(), 1);
    case.end().await;
}

#[tokio::test]
async fn a_team_works_for_its_mission_answers_its_owner_and_briefs_her_once() {
    let case = played("team").await;
    let log = case.world.log.now(&case.world.bus).await;
    let of = |type_name: &str| -> Vec<&EventJson> { log.iter().filter(|it| it.type_name == type_name).collect() };
    let told = of(v1::AgentBriefed::TYPE).into_iter().filter(|it| it.payload["told"] == true).count();
    assert_eq!((told, of(v1::AgentBriefed::TYPE).len()), (1, 3), "of three sessions, one was worth telling");
    // The conversation has what was said to her, and nothing of the work.
    let to_ann = |it: &&EventJson| it.payload["type"] == "say" && it.payload["user"] == "ann";
    let said: Vec<&EventJson> = of(v1::AgentAction::TYPE).into_iter().filter(to_ann).collect();
    assert_eq!(said.len(), 3, "a briefing, an acknowledgement, an answer: {said:?}");
    assert!(said.iter().all(|it| it.thread_id == said[0].thread_id));
    let started: Vec<String> = of(v1::TaskStarted::TYPE).iter().map(|it| it.payload["task_id"].to_string()).collect();
    let ended: Vec<&Value> = of(v1::TaskEnded::TYPE).iter().map(|it| &it.payload["status"]).collect();
    assert_eq!((started.len(), ended.len()), (6, 6), "three of the lead, three of its workers");
    assert!(ended.iter().all(|status| **status == json!("completed")), "{ended:?}");
    let sources: Vec<&Value> = of(v1::TaskScheduled::TYPE).iter().map(|it| &it.payload["task"]["source"]).collect();
    for source in ["system", "user", "delegation", "self"] {
        assert!(sources.contains(&&json!(source)), "{source} in {sources:?}");
    }
    // Nobody wakes before the hour is over.
    let last = of(v1::TaskEnded::TYPE).last().unwrap().ts;
    let task = &of(v1::TaskScheduled::TYPE).into_iter().rfind(|it| it.payload["task"]["is_next_run"] == true).unwrap();
    assert!(due(&task.payload["task"]).duration_since(last).as_secs() >= 3_599, "{task:?} after {last}");
    case.end().await;
}

#[tokio::test]
async fn an_answer_is_reviewed_and_improved_before_the_user_sees_it() {
    let case = played("reflect").await;
    let log = case.world.log.now(&case.world.bus).await;
    let drafts = log.iter().filter(|it| it.type_name == v1::AgentReflected::TYPE);
    let drafts: Vec<(String, String)> = drafts
        .map(|it| ["verdict", "draft"].map(|field| it.payload[field].as_str().unwrap().to_owned()).into())
        .collect();
    assert_eq!(drafts[0], ("act".to_owned(), "It should be evening in Tokyo by now.".to_owned()));
    // Of four drafts two were said: those that were found finished.
    let said = log.iter().filter(|it| it.payload["type"] == "say").map(EventJson::text);
    let finished = drafts.iter().filter(|(verdict, _)| verdict == "finished").map(|(_, draft)| draft.as_str());
    assert_eq!((said.collect::<Vec<_>>(), drafts.len()), (finished.collect(), 4));
    case.end().await;
}

#[tokio::test]
async fn three_submodules_argue_one_is_asked_and_one_is_late() {
    let case = played("council").await;
    let log = case.world.log.now(&case.world.bus).await;
    let of = |type_name: &str| -> Vec<&EventJson> { log.iter().filter(|it| it.type_name == type_name).collect() };
    let late: Vec<_> = of(v1::SubmoduleFailed::TYPE).iter().map(|it| it.payload["module"].clone()).collect();
    assert_eq!(late, [json!("archivist"), json!("archivist")], "once for each message");
    let asked: Vec<_> = of(v1::SubmoduleAsked::TYPE).iter().map(|it| it.payload["question"].clone()).collect();
    assert_eq!(asked, [json!("How great is the risk, exactly?")]);
    let left: Vec<_> = of(v1::AgentThought::TYPE).into_iter().filter(|it| it.payload["for_next"] == true).collect();
    assert_eq!(left.len(), 1, "for the decision after the first: {left:?}");
    assert_eq!(of(v1::AgentBroadcast::TYPE).len(), 2);
    case.end().await;
}

/// `kairo example …`, whose temporary files are in a folder of the test's.
fn command(arguments: &[&str], folder: &TempDir) -> tokio::process::Command {
    let tools = Tools::of_this_checkout().unwrap();
    let program = StackOptions::bin_dir_of_this_build().unwrap().join("kairo");
    let mut command = tokio::process::Command::new(program);
    command
        .arg("example")
        .args(arguments)
        .env("TMPDIR", folder.path())
        .env("KAIRO_NATS_SERVER", tools.nats_server().unwrap())
        .env("KAIRO_POSTGRES_BIN", tools.postgres_bin().unwrap())
        .kill_on_drop(true);
    command
}

#[tokio::test]
async fn the_command_plays_an_example_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let output = command(&["automation", "--json"], &folder).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&told["example"], &told["met"]), (&json!("automation"), &json!(true)));
    assert_eq!(told["remains"]["tasks"].as_array().unwrap().len(), 1);
    assert!(told["files"][0].as_str().unwrap().ends_with(".ics"), "{}", told["files"]);
    assert_eq!(files(folder.path()), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn an_incident_is_found_in_the_log_mended_and_kept_as_a_test() {
    let folder = tempfile::tempdir().unwrap();
    let output = command(&["incident", "--json"], &folder).output().await.unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stderr));
    let ran = told["investigation"].as_array().unwrap();
    let of = |command: &str| {
        let found = ran.iter().find(|ran| ran["command"].as_str().unwrap().starts_with(&format!("kairo {command}")));
        let found = found.unwrap_or_else(|| panic!("{command} in {ran:?}"));
        (found["status"].as_i64().unwrap(), found["output"].as_str().unwrap())
    };
    // The message that is found is the decision that called for the slot.
    let is_call =
        |event: &&Value| event["payload"]["tool"] == "calendar.create" && event["payload"]["type"] == "tool_call";
    let call = told["scenes"][0]["events"].as_array().unwrap().iter().find(is_call).unwrap();
    assert_eq!(of("state"), (0, format!("message {} (kairo.agent.decision.v1)", call["sequence"]).as_str()));
    assert_eq!(of("replay slot.kairo --prompt").0, 1);
    assert_eq!(of("incident test").0, 0);
    // Both are in the calendar: what was booked wrongly, and what was booked after a look.
    assert_eq!(told["files"].as_array().unwrap().len(), 2, "{}", told["files"]);
    assert_eq!(files(folder.path()), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn the_command_leaves_nothing_when_it_is_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = command(&["morning"], &folder).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // It is in the middle of the conversation.
    while !lines.next_line().await.unwrap().expect("it said something").contains("thread new") {}
    let place = files(folder.path()).remove(0);
    let pid = child.id().unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let status = tokio::time::timeout(DEADLINE, child.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(1));
    assert_eq!(files(folder.path()), Vec::<PathBuf>::new());
    no_process_is_left_in(&place).await;
}
