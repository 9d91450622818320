//! Read models follow from the log: made again from it, they hold the same rows.

use std::collections::BTreeMap;

use futures::future::join_all;
use kairo_cli::local::Service;
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};

use crate::world::{Wanted, World};

/// Tools, processes, thoughts and failures of every kind.
const EVERYTHING: &str = r#"
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

/// Every row of every table, in a fixed order.
async fn rows(world: &World) -> BTreeMap<String, Vec<Value>> {
    let mut database = PgConnection::connect(&world.database).await.unwrap();
    let tables: Vec<String> = sqlx::query_scalar(
        "SELECT table_name::text FROM information_schema.tables
         WHERE table_schema = current_schema() AND table_name NOT IN ('projections', '_sqlx_migrations')",
    )
    .fetch_all(&mut database)
    .await
    .unwrap();
    let mut all = BTreeMap::new();
    for table in tables {
        let rows = format!("SELECT to_jsonb(row) FROM {table} AS row ORDER BY to_jsonb(row)::text");
        let rows = sqlx::query_scalar(sqlx::AssertSqlSafe(rows)).fetch_all(&mut database).await.unwrap();
        all.insert(table, rows);
    }
    all
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
    let lost = world.send("nobody", "hello?").await;
    world.log.wait(|event| event.correlation_id == lost.event_id && event.subject.ends_with(".undelivered")).await;
    // What is in the log twice, and what cannot be read, must not make a difference either.
    for message in world.raw_log().await.iter().filter(|message| message.sequence % 5 == 0) {
        world.publish_again(message).await;
    }
    world.publish("kairo.agent.default.defined", Default::default(), "garbage").await;
    world.settled().await;
    world.projected().await;
    let before = rows(&world).await;
    for (table, rows) in &before {
        assert!(!rows.is_empty(), "{table} is empty, so nothing is compared");
    }

    let (status, answer) = world.post("/v1/projections/rebuild", &json!({})).await;
    assert_eq!(status, 202, "{answer}");
    world.projected().await;
    let after = rows(&world).await;
    for (table, rows) in &before {
        assert_eq!(after[table], *rows, "{table}");
    }
    assert_eq!(after.len(), before.len());
    assert_eq!(world.dead_letters_so_far().await, 1, "a rebuild sets nothing aside anew");
    world.end().await;
}
