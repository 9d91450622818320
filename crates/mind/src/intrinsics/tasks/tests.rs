//! Asking on Thursday, 5 March 2026, 10:00 in Berlin.

use jiff::Timestamp;
use kairo_proto::{
    Decided, about,
    v1::{TaskDue, decided_event::Event},
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{all, end_of_day, task_fired};
use crate::work_session::WorkBounds;
use crate::{
    intrinsics::{IntrinsicContext, IntrinsicOutcome, IntrinsicStart},
    request::Catalogue,
    state::{AgentState, AgentTurn, Profile, TurnCause},
    tasks::{MOST_OPEN, TaskPhase},
};

fn now() -> Timestamp {
    "2026-03-05T09:00:00Z".parse().unwrap()
}

fn profile() -> Profile {
    Profile {
        sequence: 1,
        prompt: String::new(),
        tools: Vec::new(),
        max_steps: 0,
        history_limit: 10,
        interjection: Default::default(),
        plans: true,
        topics: true,
        time_zone: "Europe/Berlin".to_owned(),
        day_ends_at: "22:00".to_owned(),
        trusts_outside: false,
        background: false,
        session_pause: 60,
        mission: String::new(),
        next_run_after: 0,
        owner: String::new(),
        team: None,
        lead: String::new(),
        session: WorkBounds::default(),
        task: WorkBounds::default(),
        guesses_goal: false,
        inner_state: false,
        max_reflections: 0,
        members: Vec::new(),
        environment: Vec::new(),
        submodules: Vec::new(),
        max_submodules: 0,
        cutoff: Default::default(),
        summary_after: 0,
        caps: Default::default(),
        request_deadline: 0,
        consent_timeout: 0,
        message_model_calls: 0,
    }
}

/// An agent to which tools are called one after another.
struct Agent {
    state: AgentState,
    calls: u128,
}

impl Agent {
    fn new() -> Self {
        Self { state: AgentState { profile: Some(profile()), ..Default::default() }, calls: 0 }
    }

    fn try_call(&mut self, tool: &str, params: Value) -> Result<(Value, Vec<Event>), String> {
        let turn = AgentTurn::new(TurnCause::Message, Uuid::nil(), "t-1", "ann");
        self.calls += 1;
        let known =
            |name: &str| ["user.notify", "email.search", "email.send", "memory.append", "task.cancel"].contains(&name);
        let context = IntrinsicContext {
            agent: "default",
            state: &self.state,
            turn_id: Uuid::nil(),
            turn: &turn,
            now: now(),
            id: Uuid::from_u128(self.calls),
            secret_key: None,
            most_steps: 20,
            known: &known,
            catalogue: &Catalogue::default(),
            memory_rules: 1,
        };
        let intrinsic = all().into_iter().find(|intrinsic| *intrinsic.tool.name == *tool).unwrap();
        let IntrinsicStart::Done(IntrinsicOutcome { events, result }) =
            (intrinsic.begin)(&context, params.as_object().unwrap())?
        else {
            panic!("it asks no model")
        };
        for event in &events {
            let Decided::Task(task) = event.about() else { panic!("{event:?}") };
            match task {
                about::Task::Scheduled(scheduled) => {
                    let task = scheduled.task.as_ref().unwrap();
                    self.state.tasks.apply_scheduled(now(), task);
                    self.state.tasks.append_to_queue(task, Uuid::nil());
                }
                about::Task::Changed(changed) => self.state.tasks.apply_changed(changed),
                about::Task::Fired(fired) => self.state.tasks.apply_fired(fired),
                about::Task::Started(started) => {
                    self.state.tasks.apply_started(Uuid::parse_str(&started.task_id).unwrap(), Timestamp::UNIX_EPOCH);
                }
                about::Task::Ended(ended) => self.state.tasks.apply_ended(ended),
            }
        }
        Ok((result, events))
    }

    fn call(&mut self, tool: &str, params: Value) -> Value {
        let shown = params.to_string();
        self.try_call(tool, params).unwrap_or_else(|error| panic!("{tool} {shown}: {error}")).0
    }

    fn refused(&mut self, tool: &str, params: Value, said: &str) {
        let shown = params.to_string();
        let error = self.try_call(tool, params).expect_err(&shown);
        assert!(error.contains(said), "{tool} {shown}: {error}");
    }

    fn listed(&mut self, params: Value) -> Vec<String> {
        let found = self.call("task.list", params);
        found["tasks"].as_array().unwrap().iter().map(|task| task["title"].as_str().unwrap().to_owned()).collect()
    }
}

fn remind(message: &str) -> Value {
    json!([{"event": "user.notify", "params": {"message": message}}])
}

#[test]
fn the_reminders_of_seed_000() {
    let mut agent = Agent::new();
    let groceries = json!({"type": "once", "at": "2026-03-05 17:00", "action": remind("Time to buy groceries")});
    let (result, events) = agent.try_call("task.schedule", groceries).unwrap();
    assert_eq!(result["next_at"], "2026-03-05T17:00:00+01:00");
    assert_eq!(result["title"], "Time to buy groceries");
    let [Event::TaskScheduled(scheduled)] = events.as_slice() else { panic!("{events:?}") };
    let task = scheduled.task.clone().unwrap();
    assert_eq!((task.kind.as_str(), task.source.as_str(), task.r#type.as_str()), ("scheduled", "user", "once"));
    assert_eq!((task.user.as_str(), task.thread_id.as_str(), task.occurrence), ("ann", "t-1", 1));
    assert_eq!(task.next_at, "2026-03-05T16:00:00Z");
    assert_eq!(result["task_id"], task.task_id.as_str());
    agent.call("task.schedule", json!({"type": "once", "at": "tomorrow 08:00", "action": remind("Review")}));
    assert_eq!(agent.listed(json!({"filter": {"due": "2026-03-05"}, "status": "pending"})), ["Time to buy groceries"]);
    assert_eq!(agent.listed(json!({"filter": {"due": {"date": "2026-03-06"}}})), ["Review"]);
    assert_eq!(agent.listed(json!({"filter": {"due": {"now": "2026-03-06T23:00:00+01:00"}}})), ["Review"]);
    assert_eq!(agent.listed(json!({"filter": {"due": "this week"}})).len(), 2);
    assert_eq!(agent.listed(json!({"limit": 1})).len(), 1);
}

#[test]
fn an_action_may_be_written_in_many_ways() {
    let mut agent = Agent::new();
    for action in [
        json!("user.notify"),
        json!({"event": "user.notify", "params": {"message": "x"}}),
        json!([{"event": "user.notify", "params": {"message": "x"}}]),
        json!(["email.search", "user.notify"]),
        json!([["email.search", "memory.append"]]),
        json!("[{\"event\": \"user.notify\", \"params\": {\"message\": \"x\"}}]"),
        json!({"chain": ["user.notify"]}),
    ] {
        agent.call("task.schedule", json!({"delay": "5m", "action": action}));
    }
    assert_eq!(agent.listed(json!({"filter": {"text": "email.search"}})).len(), 2);
}

#[test]
fn the_hook_of_seed_000() {
    let mut agent = Agent::new();
    let condition = "sender contains 'Sarah' AND (subject contains 'budget' OR body contains 'budget')";
    let params = json!({"trigger": "post:email.received", "condition": condition, "action": remind("Scheduled")});
    let (result, events) = agent.try_call("task.register", params).unwrap();
    let [Event::TaskScheduled(scheduled)] = events.as_slice() else { panic!("{events:?}") };
    let task = scheduled.task.clone().unwrap();
    assert_eq!((task.kind.as_str(), task.trigger.as_str()), ("hook", "post:email.received"));
    assert_eq!((task.condition.as_str(), task.next_at.as_str()), (condition, ""));
    assert_eq!(agent.state.tasks.hooks("post:email.received").count(), 1);
    let bare = agent.call("task.register", json!({"trigger": "email.received", "action": "user.notify"}));
    assert_eq!(bare["trigger"], "post:email.received");
    agent.call(
        "task.register",
        json!({"trigger": "pre:email.send", "condition": "to contains 'boss'", "action": [{"event": "step.stop", "params": {"reason": "no"}}, "user.notify"]}),
    );
    assert_eq!(agent.listed(json!({"status": "active"})).len(), 3);
    assert_eq!(agent.listed(json!({"filter": {"trigger": "pre:"}})).len(), 1);
    agent.call("task.pause", json!({"task_id": result["task_id"]}));
    assert_eq!(agent.state.tasks.hooks("post:email.received").count(), 1);
    agent.call("task.resume", json!({"task_id": result["task_id"]}));
    agent.refused("task.run", json!({"task_id": result["task_id"]}), "is a hook");
}

#[test]
fn a_task_is_paused_resumed_run_and_canceled() {
    let mut agent = Agent::new();
    let hourly = agent.call("task.schedule", json!({"interval": "1h", "title": "Hourly", "action": remind("x")}));
    let id = json!({"task_id": hourly["task_id"]});
    agent.refused("task.resume", id.clone(), "is pending and cannot be resumed");
    agent.call("task.pause", id.clone());
    agent.refused("task.pause", id.clone(), "is paused and cannot be paused");
    assert_eq!(agent.listed(json!({"status": "paused"})), ["Hourly"]);
    assert_eq!(agent.call("task.resume", id.clone())["next_at"], "2026-03-05T11:00:00+01:00");
    let task = Uuid::parse_str(hourly["task_id"].as_str().unwrap()).unwrap();
    assert!(agent.state.tasks.due_task(task, 1).is_none() && agent.state.tasks.due_task(task, 2).is_some());
    let (result, events) = agent.try_call("task.run", id.clone()).unwrap();
    assert_eq!((&result["status"], &result["next_at"]), (&json!("fired"), &json!("2026-03-05T11:00:00+01:00")));
    let [Event::TaskFired(fired)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((fired.occurrence, fired.next_at.as_str()), (2, "2026-03-05T10:00:00Z"));
    assert!(agent.state.tasks.due_task(task, 3).is_some());
    agent.call("task.cancel", id.clone());
    for tool in ["task.cancel", "task.run", "task.pause"] {
        agent.refused(tool, id.clone(), "is canceled");
    }
    agent.call("task.archive", id.clone());
    assert_eq!(agent.listed(json!({"status": "archived"})), ["Hourly"]);
    let once = agent.call("task.schedule", json!({"delay": "1h", "action": remind("x")}));
    agent.call("task.run", json!({"task_id": once["task_id"]}));
    assert_eq!(agent.listed(json!({"status": "completed"})), ["x"]);
}

#[test]
fn what_cannot_be_is_refused() {
    let mut agent = Agent::new();
    for (tool, params, said) in [
        ("task.schedule", json!({"delay": "5m"}), "action: expected"),
        ("task.schedule", json!({"delay": "5m", "action": []}), "at least one step"),
        ("task.schedule", json!({"delay": "5m", "action": ["rocket.launch"]}), "rocket.launch"),
        ("task.schedule", json!({"delay": "5m", "action": "[{"}), "action:"),
        ("task.schedule", json!({"delay": "5m", "action": ["step.stop"]}), "step.stop"),
        ("task.schedule", json!({"delay": "5m", "action": vec!["user.notify"; 21]}), "at most 20"),
        ("task.schedule", json!({"delay": "5m", "action": remind(&"x".repeat(40_000))}), "32 KB"),
        ("task.schedule", json!({"delay": "5m", "title": 5, "action": "user.notify"}), "title: expected"),
        ("task.schedule", json!({"at": "2026-03-01", "action": "user.notify"}), "past"),
        ("task.register", json!({"action": "user.notify"}), "trigger: expected"),
        ("task.register", json!({"trigger": "during:email.send", "action": "user.notify"}), "trigger: expected"),
        ("task.register", json!({"trigger": "post:everything", "action": "user.notify"}), "trigger: expected"),
        ("task.register", json!({"trigger": "post:a..b", "action": "user.notify"}), "trigger: expected"),
        ("task.register", json!({"trigger": "pre:rocket.launch", "action": "user.notify"}), "no tool"),
        ("task.register", json!({"trigger": "pre:email.send", "action": ["email.search"]}), "cannot run before a step"),
        ("task.register", json!({"trigger": "email.received", "action": ["step.stop"]}), "step.stop"),
        ("task.register", json!({"trigger": "email.received", "condition": 5, "action": "user.notify"}), "condition"),
        (
            "task.register",
            json!({"trigger": "email.received", "condition": "x".repeat(2_001), "action": "user.notify"}),
            "at most 2000",
        ),
        ("task.list", json!({"status": "sleeping"}), "status: expected"),
        ("task.list", json!({"filter": {"due": "someday"}}), "filter.due"),
        ("task.list", json!({"filter": {"due": {"start": "2026-03-06", "end": "2026-03-01"}}}), "ends before"),
        ("task.list", json!({"filter": {"color": "red"}}), "color"),
        ("task.list", json!({"filter": "all"}), "filter: expected"),
        ("task.list", json!({"limit": 0}), "limit: expected"),
        ("task.pause", json!({}), "task_id: expected"),
        ("task.cancel", json!({"task_id": Uuid::from_u128(99)}), "there is no task"),
    ] {
        agent.refused(tool, params, said);
    }
    for number in 0..MOST_OPEN as u128 {
        let mut task = end_of_day(&profile(), now(), Uuid::from_u128(1_000 + number));
        task.source = "user".to_owned();
        agent.state.tasks.apply_scheduled(now(), &task);
    }
    agent.refused("task.schedule", json!({"delay": "5m", "action": "user.notify"}), "1000 open tasks");
}

#[test]
fn missed_times_collapse_to_one() {
    let mut agent = Agent::new();
    let hourly = agent.call("task.schedule", json!({"interval": "1h", "action": remind("x")}));
    let id = Uuid::parse_str(hourly["task_id"].as_str().unwrap()).unwrap();
    let due = TaskDue { task_id: id.to_string(), occurrence: 1, ..Default::default() };
    let task = agent.state.tasks.due_task(id, due.occurrence).unwrap();
    let event = Uuid::from_u128(5);
    let on_time = task_fired(task, 1, event, "2026-03-05T10:00:01Z".parse().unwrap(), &json!({}));
    assert_eq!((on_time.late, on_time.next_at.as_str()), (false, "2026-03-05T11:00:00Z"));
    let early = task_fired(task, 1, event, "2026-03-05T09:59:59Z".parse().unwrap(), &json!({}));
    assert_eq!(early.next_at, "2026-03-05T11:00:00Z", "a clock that is behind must not make it due again");
    let late = task_fired(task, 1, event, "2026-03-07T12:30:00Z".parse().unwrap(), &Value::Null);
    assert_eq!((late.late, late.next_at.as_str()), (true, "2026-03-07T13:00:00Z"));
    assert_eq!((late.due_at.as_str(), late.data.as_str()), ("2026-03-05T10:00:00Z", "{}"));
    let next = late.next_at.clone();
    agent.state.tasks.apply_fired(&late);
    assert_eq!(agent.state.tasks.due_task(id, 2).unwrap().next_due().unwrap().0.to_string(), next);
}

#[test]
fn the_day_ends_by_the_profile() {
    let mut agent = Agent::new();
    let id = Uuid::from_u128(3);
    let task = end_of_day(&profile(), now(), id);
    assert_eq!((task.source.as_str(), task.at.as_str()), ("system", "22:00"));
    assert_eq!(task.next_at, "2026-03-05T21:00:00Z");
    agent.state.tasks.apply_scheduled(now(), &task);
    let task = agent.state.tasks.day_end().unwrap();
    assert_eq!(
        task_fired(task, 1, id, "2026-03-28T21:00:00Z".parse().unwrap(), &json!({})).next_at,
        "2026-03-29T20:00:00Z"
    );
    assert_eq!(task.status, TaskPhase::Pending);
    assert!(agent.listed(json!({"status": "all"})).is_empty());
    agent.refused("task.cancel", json!({ "task_id": id }), "belongs to the system");
    // What the gateway would have refused.
    for (time_zone, day_ends_at) in [("Mars", "22:00"), ("UTC", "late"), ("", "")] {
        let odd = Profile { time_zone: time_zone.to_owned(), day_ends_at: day_ends_at.to_owned(), ..profile() };
        assert!(!end_of_day(&odd, now(), id).next_at.is_empty(), "{time_zone} {day_ends_at}");
    }
}

#[test]
fn every_schema_is_json_and_lists_its_parameters() {
    for intrinsic in all() {
        let schema: Map<String, Value> = serde_json::from_str(&intrinsic.tool.schema).unwrap();
        let properties = schema["properties"].as_object().unwrap();
        for name in schema["required"].as_array().unwrap() {
            assert!(properties.contains_key(name.as_str().unwrap()), "{}", intrinsic.tool.name);
        }
    }
}
