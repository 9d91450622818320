//! Read models follow from the log: made again from it, they hold the same rows.

use std::collections::BTreeMap;

use futures::future::join_all;
use kairo_local::{Exit, Service};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};

use crate::world::{DEADLINE, Wanted, World, raw::own_headers};

/// Tools, processes, thoughts and failures of every kind.
pub const EVERYTHING: &str = r#"
rules:
  - name: time
    when: { user_contains: "time please" }
    turn:
      - reasoning: "A clock is needed."
        text: "Let me see."
        tool_calls: [{ tool: tools.now, arguments: {} }, { tool: tools.date_calc, arguments: { find: tomorrow } }]
      - text: "It is {{ results[0].value.now }}."
  - name: run
    when: { user_contains: "run" }
    turn:
      - tool_calls:
          - { tool: process.run, arguments: { program: sh, args: ["-c", "echo '::progress 1/2 half'; echo out; echo err >&2; exit 3"] } }
          - { tool: process.run, arguments: { program: nothing, args: [] } }
          - { tool: tools.now, arguments: { time_zone: 7 } }
      - text: "Done."
  - name: fail
    when: { user_contains: "fail" }
    reply: { error: { status: 401, message: "no" } }
  - name: stumble
    when: { user_contains: "stumble" }
    times: 1
    reply: { tool_calls: [{ tool: no.such, arguments: {} }] }
  - name: remember
    when: { user_contains: "remember" }
    turn:
      - tool_calls:
          - { tool: memory.append, arguments: { content: "Ann likes tea.", keywords: [ann, tea] } }
          - tool: task.schedule
            arguments: { type: delay, delay: 1 hour, action: [{ event: user.notify, params: { message: "Tea" } }] }
      - tool_calls: [{ tool: task.run, arguments: { task_id: "{{ last_result.task_id }}" } }]
      - text: "Noted."
  - name: keep
    when: { user_contains: "keep" }
    turn:
      - tool_calls:
          - { tool: state.write, arguments: { key: tea, content: "Ann likes tea.", related_keys: [ann] } }
          - { tool: state.write, arguments: { key: tea, content: "Ann likes coffee." } }
          - { tool: state.write, arguments: { key: cup, content: "It is blue." } }
          - { tool: state.delete, arguments: { key: cup } }
      - text: "Kept."
  - name: consent
    when: { user_contains: "spawn" }
    turn:
      - tool_calls: [{ tool: process.spawn, arguments: { program: sh, args: [] } }]
      - text: "Asked."
  - name: match
    when: { system_contains: "You are thread.match" }
    reply: '{"action": "suggest_new", "reason": "another subject"}'
  - name: echo
    when: {}
    reply: "You said: {{ user }}"
"#;

/// Every row of every table of a generation, in a fixed order.
async fn rows(world: &World, place: &str) -> BTreeMap<String, Vec<Value>> {
    let mut database = PgConnection::connect(&world.database.url).await.unwrap();
    let tables = "SELECT table_name::text FROM information_schema.tables WHERE table_schema = $1";
    let tables: Vec<String> = sqlx::query_scalar(tables).bind(place).fetch_all(&mut database).await.unwrap();
    let mut all = BTreeMap::new();
    for table in tables {
        let rows = format!("SELECT to_jsonb(row) FROM {place}.{table} AS row ORDER BY to_jsonb(row)::text");
        let rows = sqlx::query_scalar(sqlx::AssertSqlSafe(rows)).fetch_all(&mut database).await.unwrap();
        all.insert(table, rows);
    }
    all
}

/// Returns the schemas of the generations whose tables have rows: live or kept.
async fn places(world: &World) -> Vec<String> {
    let generations = world.projection("read-model").await["generations"].clone();
    let generations = generations.as_array().unwrap().iter();
    let places = generations.filter(|it| it["state"] == "live" || it["state"] == "kept").map(|it| &it["place"]);
    places.map(|place| place.as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_rebuild_gives_equal_rows() {
    let wanted = Wanted::new(EVERYTHING);
    let world = wanted.env(Service::ToolRunner, "KAIRO_TOOL_RUNNER__APPROVAL", r#"["process.spawn"]"#).start().await;
    for agent in ["default", "second", "default"] {
        world.define(agent).await;
    }
    let (status, _) = world.post("/v1/agents", &json!({ "agent": "second", "prompt": "Anew.", "max_steps": 3 })).await;
    assert_eq!(status, 200);
    let mut sent = Vec::new();
    for text in ["time please", "run it", "fail", "stumble", "remember", "@second hello", "hello"] {
        for user in ["ann", "bob"] {
            let message =
                json!({ "user": user, "text": text, "message_id": format!("{user}/{text}").replace(' ', "-") });
            sent.push(world.send_as(&message).await);
        }
    }
    let named = json!({ "user": "ann", "agent": "second", "text": "hello", "thread_id": "a-thread" });
    sent.push(world.send_as(&named).await);
    join_all(sent.iter().map(|sent| world.reply(sent))).await;
    let asked = world.send("default", "spawn").await;
    world
        .log
        .wait(|event| event.correlation_id == asked.event_id && event.type_name.contains("approval_requested"))
        .await;
    let topical = json!({ "agent": "topical", "prompt": "Be brief.", "threads": "topics" });
    world.post("/v1/agents", &topical).await;
    world.ask("topical", "one thing").await;
    let asked = world.send("topical", "another").await;
    world.log.wait(|event| event.correlation_id == asked.event_id && event.type_name.contains("suggested")).await;
    let keeper = json!({ "agent": "keeper", "prompt": "Be brief.", "inner_state": true });
    assert_eq!(world.post("/v1/agents", &keeper).await.0, 201);
    assert_eq!(world.ask("keeper", "keep it").await, "Kept.");
    let lost = world.send("nobody", "hello?").await;
    world.log.wait(|event| event.correlation_id == lost.event_id && event.subject.ends_with(".undelivered")).await;
    let team = json!({
        "team": "team", "owner": "ann", "mission": "Be there.",
        "lead": { "prompt": "You lead." }, "workers": [{ "name": "one", "prompt": "You work." }],
    });
    assert_eq!(world.post("/v1/teams", &team).await.0, 201);
    world.log.wait(|event| event.type_name.contains("briefed")).await;
    let pause = json!({ "user": "ann", "agent": "team", "command": "pause", "team": "team" });
    assert_eq!(world.post("/v1/commands", &pause).await.0, 202);
    world.log.wait(|event| event.subject.contains(".team.") && event.type_name.contains("team_changed")).await;
    // What is in the log twice, and what cannot be read, must not make a difference either.
    for message in world.raw_log().await.iter().filter(|message| message.sequence % 5 == 0) {
        world.publish_again(message).await;
    }
    world.publish("kairo.agent.default.defined", Default::default(), "garbage").await;
    // Nor what a newer version says.
    let defined = world.raw_log().await.into_iter().find(|it| it.subject == "kairo.agent.default.defined").unwrap();
    let mut newer = own_headers(&defined);
    newer.insert("ce-type", "kairo.agent.defined.v9");
    world.publish(&defined.subject, newer, "what it says").await;
    world.settled().await;
    world.projected().await;

    for _ in 0..2 {
        let built = world.begin_rebuild("read-model").await;
        world.swapped("read-model", built).await;
    }
    let places = places(&world).await;
    assert!(places.len() >= 2, "the one before is kept: {places:?}");
    let first = rows(&world, &places[0]).await;
    for (table, rows) in &first {
        // Nobody brings an API key here, so that there are no entries of any.
        assert!(!rows.is_empty() || table == "entries", "{table} is empty, so nothing is compared");
    }
    for place in &places[1..] {
        let other = rows(&world, place).await;
        for (table, rows) in &first {
            assert_eq!(other[table], *rows, "{table} of {place}");
        }
        assert_eq!(other.len(), first.len());
    }
    let tables = world.projection("read-model").await;
    assert_eq!(tables["unknown_types"][0]["type"], "kairo.agent.defined.v9", "{tables}");
    assert_eq!(world.dead_letters_so_far().await, 1, "a rebuild sets nothing aside anew");
    world.end().await;
}

/// Impossible orders are refused: 404 for unknown generations and projections, 409 for conflicts with what is live or
/// being built.
#[tokio::test]
async fn operators_are_told_what_cannot_be() {
    let world = Wanted::new(EVERYTHING).start().await;
    world.define("default").await;
    world.ask("default", "time please").await;
    world.projected().await;
    let first = world.projection("read-model").await["live"].as_i64().unwrap();
    let generation = |number: i64| format!("/v1/projections/read-model/generations/{number}");
    let (status, problem) = world.delete(&generation(first)).await;
    assert_eq!(status, 409, "{problem}");
    assert_eq!(world.delete(&generation(999)).await.0, 404);
    assert_eq!(world.delete("/v1/projections/read-model/generations/one").await.0, 400);
    assert_eq!(world.post("/v1/projections/read-model/swap", &json!({})).await.0, 409);
    let (status, problem) = world.post("/v1/projections/nothing/rebuild", &json!({})).await;
    assert!(status == 404 && problem["detail"].as_str().unwrap().contains("read-model, all"), "{problem}");

    // Nobody is there to build it, so it is still being built when another one is asked for.
    world.stack.freeze(Service::Projector, 0).unwrap();
    let second = world.begin_rebuild("all").await;
    assert_eq!(world.post("/v1/projections/read-model/rebuild", &json!({})).await.0, 409);
    world.stack.thaw(Service::Projector, 0).unwrap();
    world.swapped("read-model", second).await;
    let digests = world.digests_are_equal().await;
    assert_eq!(digests["generations"].as_array().unwrap().len(), 2, "{digests}");

    assert_eq!(world.delete(&generation(first)).await.0, 202);
    let gone = |answer: &Value| answer["projections"].is_array();
    world.generation_until("read-model", first, gone).await;
    world.end().await;
}

/// Queries are answered throughout, and never by what knows less than the answer before.
#[tokio::test]
async fn nobody_notices_a_rebuild() {
    let world = Wanted::new(EVERYTHING).start().await;
    world.define("default").await;
    for number in 0..20 {
        world.ask("default", &format!("hello {number}")).await;
    }
    let mut built = world.begin_rebuild("read-model").await;
    let (mut position, mut rebuilt) = (0, 0);
    while rebuilt < 3 {
        let sent = world.send("default", "hello").await;
        let (status, answer) = world.get(&format!("/v1/threads?agent=default&at_least={}", sent.sequence)).await;
        assert_eq!(status, 200, "{answer}");
        assert!(answer["position"].as_u64().unwrap() >= position, "{position} before, now {answer}");
        position = answer["position"].as_u64().unwrap();
        let generations = world.projection("read-model").await["generations"].clone();
        let mut generations = generations.as_array().unwrap().iter();
        let state = generations.find(|it| it["generation"] == built).unwrap()["state"].clone();
        assert!(state != "differing" && state != "failed", "{generations:?}");
        if state == "live" {
            rebuilt += 1;
            built = world.begin_rebuild("read-model").await;
        }
    }
    world.swapped("read-model", built).await;
    world.end().await;
}

/// As a job before the services of a new version are started.
#[tokio::test]
async fn a_projector_that_is_to_build_the_read_model_ends_when_it_is_live() {
    let mut world = Wanted::new(EVERYTHING).start().await;
    world.define("default").await;
    world.ask("default", "hello").await;
    world.projected().await;
    world.stack.stop_one(Service::Projector, 0).await.unwrap();
    // As if nothing of this version had been built yet.
    let mut database = PgConnection::connect(&world.database.url).await.unwrap();
    let older = "UPDATE generations SET version = version - 1 WHERE projection = 'read-model'";
    assert_eq!(sqlx::query(older).execute(&mut database).await.unwrap().rows_affected(), 1);

    world.stack.service(Service::Projector).env("KAIRO_PROJECTOR__UNTIL_LIVE", "true");
    let job = world.stack.start(Service::Projector).await.unwrap();
    let ended =
        tokio::time::timeout(DEADLINE, world.stack.replica(Service::Projector, job).unwrap().process().wait_for_exit());
    assert_eq!(ended.await.expect("it never ended"), Exit::Code(0));
    let states = "SELECT version::int, state FROM generations WHERE projection = 'read-model' ORDER BY version";
    let states: Vec<(i32, String)> = sqlx::query_as(states).fetch_all(&mut database).await.unwrap();
    let live = |(version, state): &(i32, String)| (*version, state == "live");
    let version = states.last().unwrap().0;
    assert_eq!(states.iter().map(live).collect::<Vec<_>>(), [(version - 1, true), (version, true)], "beside the other");
    world.stack.stop().await.unwrap();
}
