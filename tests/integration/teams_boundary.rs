//! Teams at the boundary: how they are made, and how they are shown. No agent thinks here: what they decide is written by
//! the tests.

use jiff::Timestamp;
use kairo_core::{
    bus::append::OutgoingEvent,
    envelope::{Envelope, Origin},
    ids,
    subjects::{AGENT_DECISION, Service},
};
use kairo_local::Service as Process;
use kairo_proto::v1::{
    self, AgentBriefed, AgentDecision, Completion, DecidedEvent, Task, TaskScheduled, TaskStarted, TeamChanged,
    ThreadCompleted, ThreadCreated, decided_event::Event,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::world::{Wanted, World, agent};

async fn start() -> World {
    let world = Wanted::new("rules: [{ name: echo, when: {}, reply: hello }]").replicas(Process::AgentRuntime, 0);
    world.env(Process::Gateway, "KAIRO_GATEWAY__PRICES", r#"{"m":{"input":"2","output":"4"}}"#).start().await
}

fn team() -> Value {
    json!({
        "team": "market", "owner": "ann", "mission": "Know our competitors.",
        "lead": { "prompt": "You lead.", "description": "knows the market", "next_run_after": 60 },
        "workers": [
            { "name": "reader", "description": "reads pages", "prompt": "You read.", "tools": ["http.get"] },
            { "name": "writer", "prompt": "You write." },
        ],
        "tokens_per_day": 1000, "cost_per_day": "2.50",
    })
}

async fn definitions(world: &World) -> usize {
    world.log.now(&world.bus).await.iter().filter(|event| event.type_name == v1::AgentDefined::TYPE).count()
}

#[tokio::test]
async fn a_team_is_made_once_whole_and_of_nobody_else() {
    let world = start().await;
    let (status, made) = world.post("/v1/teams", &team()).await;
    assert_eq!(status, 201, "{made}");
    assert_eq!(made["agents"], json!(["market", "market-reader", "market-writer"]));
    assert_eq!(made["changes"].as_array().unwrap().len(), 3, "{made}");
    let (status, again) = world.post("/v1/teams", &team()).await;
    assert_eq!((status, &again["agents"], &again["sequence"]), (200, &made["agents"], &made["sequence"]));
    assert_eq!((&again["changes"], definitions(&world).await), (&json!([]), 3));
    // What is changed is written, and nothing else.
    let mut changed = team();
    changed["workers"][0]["prompt"] = json!("You read slowly.");
    let (status, answer) = world.post("/v1/teams", &changed).await;
    assert!(status == 200 && answer["sequence"].as_u64() > made["sequence"].as_u64(), "{answer}");
    let change = json!({ "field": "prompt", "before": "You read.", "after": "You read slowly." });
    assert_eq!(answer["changes"], json!([{ "agent": "market-reader", "is_new": false, "changes": [change] }]));
    assert_eq!(definitions(&world).await, 4);
    changed["lead"]["prompt"] = json!("You lead well.");
    changed["dry_run"] = json!(true);
    let (_, dry) = world.post("/v1/teams", &changed).await;
    assert_eq!((&dry["changes"][0]["agent"], definitions(&world).await), (&json!("market"), 4), "{dry}");

    // Nobody is taken away from anybody, and nothing is written where that would be.
    let mut other = team();
    other["team"] = json!("shop");
    assert_eq!(world.post("/v1/agents", &json!({ "agent": "shop-writer", "prompt": "x" })).await.0, 201);
    let (status, problem) = world.post("/v1/teams", &other).await;
    assert!(status == 409 && problem["detail"].as_str().unwrap().contains("shop-writer"), "{problem}");
    assert_eq!(definitions(&world).await, 5);
    other["team"] = json!("shop-writer");
    let (status, problem) = world.post("/v1/teams", &other).await;
    assert!(status == 409 && problem["detail"].as_str().unwrap().contains("leads no team"), "{problem}");
    let mut of_worker = team();
    of_worker["team"] = json!("market-reader");
    assert_eq!(world.post("/v1/teams", &of_worker).await.0, 409);
    for of_team in ["market", "market-reader"] {
        let (status, problem) = world.post("/v1/agents", &json!({ "agent": of_team, "prompt": "x" })).await;
        assert!(status == 409 && problem["detail"].as_str().unwrap().contains("the team market"), "{problem}");
    }
    let wrong = json!({ "team": "t", "owner": "ann", "mission": "m", "lead": {}, "workers": [{ "prompt": "x" }] });
    let (status, problem) = world.post("/v1/teams", &wrong).await;
    let fields: Vec<_> = problem["errors"].as_array().unwrap().iter().map(|error| error["field"].clone()).collect();
    assert_eq!((status, fields), (400, vec![json!("lead.prompt"), json!("workers[0].name")]));
    assert_eq!(definitions(&world).await, 5);
    // An order is about the team of the agent that it is given.
    let order = |about: &str| json!({ "user": "ann", "agent": "market", "command": "pause", "team": about });
    assert_eq!(
        (world.post("/v1/commands", &order("market")).await.0, world.post("/v1/commands", &order("x")).await.0),
        (202, 400)
    );
    let told = world.log.wait(|event| event.type_name == v1::AgentCommand::TYPE).await;
    assert_eq!((&told.payload["team"], &told.payload["command"]), (&json!("market"), &json!("pause")));
}

/// A decision that nobody decided.
async fn decided(world: &World, by: &str, thread: &str, tokens: u64, events: Vec<Event>) {
    let id = ids::generate();
    let envelope = Envelope::from_outside(id, Service::AgentRuntime, Origin::Internal, Timestamp::now());
    let events = (0..).zip(events).map(|(position, event): (u32, Event)| DecidedEvent {
        event_id: ids::derive(id, &position.to_string()).to_string(),
        thread_id: thread.to_owned(),
        correlation_id: id.to_string(),
        event: Some(event),
        ..DecidedEvent::default()
    });
    let call = Completion { tier: "heavy".into(), model: "m".into(), input_tokens: tokens, ..Completion::default() };
    let completions = if tokens > 0 { vec![call] } else { Vec::new() };
    let decision = AgentDecision { events: events.collect(), completions, ..AgentDecision::default() };
    world.bus.publish(&OutgoingEvent::new(&AGENT_DECISION, &agent(by), envelope, decision)).await.unwrap();
}

fn queued(id: u128, title: &str, next_at: &str) -> Event {
    let task = Task {
        task_id: Uuid::from_u128(id).to_string(),
        user: "ann".into(),
        kind: "queued".into(),
        title: title.into(),
        source: "system".into(),
        next_at: next_at.into(),
        is_next_run: !next_at.is_empty(),
        ..Task::default()
    };
    Event::TaskScheduled(TaskScheduled { task: Some(task) })
}

fn briefed(told: bool, reason: &str) -> Event {
    let summary = if told { "Prices fell.".to_owned() } else { String::new() };
    Event::Briefed(AgentBriefed { thread_id: "w".into(), user: "ann".into(), told, reason: reason.into(), summary })
}

/// Writes the decisions that the lead and a worker would make in an hour, and waits until they are projected.
async fn at_work(world: &World) {
    let thread_id = "w".to_owned();
    let created =
        ThreadCreated { thread_id: thread_id.clone(), user: "ann".into(), kind: "work".into(), ..Default::default() };
    let completed = ThreadCompleted { thread_id: thread_id.clone() };
    let first = vec![Event::ThreadCreated(created), briefed(true, "it is news"), Event::ThreadCompleted(completed)];
    decided(world, "market", "w", 1_000, first).await;
    decided(world, "market", "", 0, vec![briefed(false, "it is not news"), queued(1, "Next", "2999-01-01T00:00:00Z")])
        .await;
    let started = TaskStarted { task_id: Uuid::from_u128(2).to_string(), thread_id, ..TaskStarted::default() };
    let tasks = vec![queued(2, "Read pages", ""), queued(3, "Read more", ""), Event::TaskStarted(started)];
    decided(world, "market-reader", "w", 500, tasks).await;
    let changed = TeamChanged { status: "paused".into(), reason: "enough".into(), over_budget: true, decided: 0 };
    decided(world, "market", "", 0, vec![Event::TeamChanged(changed)]).await;
    world.projected().await;
}

#[tokio::test]
async fn a_team_is_shown_with_what_its_agents_are_at() {
    let world = start().await;
    assert_eq!(world.post("/v1/teams", &team()).await.0, 201);
    world.projected().await;
    let shown = world.get("/v1/teams/market").await.1["team"].clone();
    let day = shown["spent"]["day"].clone();
    assert_eq!(
        (&shown["status"], &shown["spent"]["tokens"], &shown["lead"]["queued"]),
        (&json!("active"), &json!(0), &json!(0))
    );
    at_work(&world).await;
    let (status, answer) = world.get("/v1/teams/market").await;
    let shown = &answer["team"];
    assert_eq!(status, 200, "{answer}");
    assert_eq!((&shown["owner"], &shown["mission"]), (&json!("ann"), &json!("Know our competitors.")));
    assert_eq!(
        (&shown["status"], &shown["reason"], &shown["over_budget"]),
        (&json!("paused"), &json!("enough"), &json!(true))
    );
    assert_eq!((&shown["tokens_per_day"], &shown["cost_per_day"]), (&json!(1000), &json!("2.50")));
    // Unless a day has ended meanwhile.
    if shown["spent"]["day"] == day {
        assert_eq!((&shown["spent"]["tokens"], &shown["spent"]["cost"]), (&json!(1500), &json!("0.003")));
    }
    let lead = &shown["lead"];
    assert_eq!(
        (&lead["role"], &lead["queued"], &lead["next_run_at"]),
        (&json!("lead"), &json!(0), &json!("2999-01-01T00:00:00Z"))
    );
    assert!(lead["last_completed_at"].is_string() && lead["task"].is_null(), "{lead}");
    let [reader, writer] = &shown["workers"].as_array().unwrap()[..] else { panic!("{shown}") };
    assert_eq!((&reader["agent"], &reader["description"]), (&json!("market-reader"), &json!("reads pages")));
    assert_eq!((&reader["task"]["title"], &reader["queued"]), (&json!("Read pages"), &json!(2)));
    assert!(reader["oldest_queued_at"].is_string() && reader["last_completed_at"].is_null(), "{reader}");
    assert_eq!((&writer["queued"], &writer["task"]), (&json!(0), &Value::Null));
    assert_eq!(world.get("/v1/teams").await.1["teams"][0], *shown);
    let row = world.get("/v1/agents/market").await.1["agent"].clone();
    assert_eq!((&row["queued"], &row["next_run_at"]), (&json!(0), &json!("2999-01-01T00:00:00Z")));
    for unknown in ["/v1/teams/market-reader", "/v1/teams/nobody"] {
        assert_eq!(world.get(unknown).await.0, 404, "{unknown}");
    }

    // What was told is in the inbox, and what was not is found, too.
    let inbox = world.get("/v1/inbox?user=ann").await.1;
    let told: Vec<_> = inbox["briefings"].as_array().unwrap().iter().map(|it| it["summary"].clone()).collect();
    assert_eq!(told, ["Prices fell."]);
    assert_eq!(world.get("/v1/inbox?user=joe").await.1["briefings"], json!([]));
    let all = world.get("/v1/briefings?agent=market&user=ann").await.1;
    let reasons: Vec<_> = all["briefings"].as_array().unwrap().iter().map(|it| it["reason"].clone()).collect();
    assert_eq!(reasons, ["it is not news", "it is news"]);
    let page = world.get("/v1/briefings?limit=1").await.1;
    let before = page["next_before"].as_u64().unwrap();
    let rest = world.get(&format!("/v1/briefings?limit=1&before={before}")).await.1;
    assert_eq!(rest["briefings"][0]["reason"], "it is news");
}
