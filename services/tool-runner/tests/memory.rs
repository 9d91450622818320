//! `memory.search` against a real Postgres, and without one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::sync::Arc;
use std::time::Duration;

use kairo_core::config::Secret;
use kairo_local::{Postgres, Service, Tools};
use kairo_read_model::{
    INDEXES_SQL, PostgresConfig, Projection, READ_MODEL, ReadModel, TABLES_SQL, migrate, readers::grant_generation,
};
use kairo_tool_runner::builtin::memory::{MemorySearch, MemorySearchConfig, NAME};
use kairo_tool_runner::config::ToolsConfig;
use kairo_tool_runner::tool::{CallContext, CallResult, ProgressReporter, ToolErrorKind};
use kairo_tool_runner::toolbox::Toolbox;
use serde_json::{Value, json};
use sqlx::pool::PoolConnection;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Far beyond what anything here takes.
const DEADLINE: Duration = Duration::from_secs(60);

/// As projector would have written them.
const ROWS: &str = r#"
    INSERT INTO memories (agent, memory_id, event_id, sequence, position, updated_at, kind, subject, content, day,
                          definition, named)
    VALUES
        ('bob', gen_random_uuid(), gen_random_uuid(), 10, 0, now(), 'journal', '', 'Team meeting: Q1 results.',
         '2026-11-17', '{"keywords": ["meeting", "q1"], "source_event_ids": ["e-1"],
                         "secrets": [{"name": "pin", "sealed": "AQID"}]}', 'meeting q1'),
        ('bob', gen_random_uuid(), gen_random_uuid(), 11, 0, now(), 'person', 'Sarah', 'Leads marketing.',
         '2026-10-01', '{"keywords": ["sarah"], "source_event_ids": ["e-2"]}', 'Sarah sarah'),
        ('bob', gen_random_uuid(), gen_random_uuid(), 12, 0, now(), 'project', 'Launch', repeat('long ', 10000),
         '2026-11-20', '{"keywords": ["launch"]}', 'Launch launch'),
        ('eve', gen_random_uuid(), gen_random_uuid(), 13, 0, now(), 'journal', '', 'Another meeting.',
         '2026-11-17', '{}', '');
    INSERT INTO memories (agent, memory_id, event_id, sequence, position, updated_at, user_id, kind, subject, content,
                          day, definition, named)
    VALUES
        ('bob', gen_random_uuid(), gen_random_uuid(), 14, 0, now(), 'ann', 'preference', 'Tea', 'Ann drinks tea.',
         '2026-11-01', '{"keywords": ["tea"]}', 'Tea tea'),
        ('bob', gen_random_uuid(), gen_random_uuid(), 15, 0, now(), 'zoe', 'fact', 'Salary', 'Zoe earns a lot.',
         '2026-11-02', '{"keywords": ["salary"]}', 'Salary salary'),
        ('bob', gen_random_uuid(), gen_random_uuid(), 16, 0, now(), '', 'state', 'Odd', 'Of a user without a name.',
         '2026-11-03', '{"keywords": ["odd"]}', 'Odd odd');
    INSERT INTO threads (agent, thread_id, user_id, kind, standing, title, created_at, updated_at, last_sequence)
    VALUES
        ('bob', 'of-ann', 'ann', '', 'active', '', now(), now(), 5),
        ('bob', 'of-zoe', 'zoe', '', 'active', '', now(), now(), 6),
        ('bob', 'of-nobody', '', '', 'active', '', now(), now(), 7),
        ('eve', 'elsewhere', 'zoe', '', 'active', '', now(), now(), 8)"#;

/// A live generation of the tables, at sequence 40.
fn generation() -> String {
    let Projection { name, version } = READ_MODEL;
    format!(
        "CREATE SCHEMA kairo_1;
         INSERT INTO generations (projection, version, place, state) VALUES ('{name}', {version}, 'kairo_1', 'live');
         INSERT INTO positions (generation, partition, sequence) SELECT generation, 0, 40 FROM generations;
         SET search_path = kairo_1, public; {TABLES_SQL} {INDEXES_SQL} {ROWS}"
    )
}

struct Library {
    toolbox: Toolbox,
    /// A session of projector's.
    projector: PoolConnection<sqlx::Postgres>,
    _postgres: Postgres,
    _folder: TempDir,
}

async fn toolbox(url: &str, wait_ms: u64) -> Toolbox {
    let memory_search = MemorySearchConfig { wait_ms, ..Default::default() };
    let config = ToolsConfig { memory_search, ..ToolsConfig::default() };
    let postgres =
        PostgresConfig { url: Secret::new(url.to_owned()), acquire_timeout_ms: 5_000, ..PostgresConfig::default() };
    let search = MemorySearch::new(&postgres, &config, Uuid::nil()).unwrap();
    Toolbox::start(&config, vec![Arc::new(search)]).await.unwrap()
}

impl Library {
    async fn open(wait_ms: u64) -> Self {
        let tools = Tools::of_this_checkout().expect("run ./scripts/test");
        let folder = tempfile::tempdir().unwrap();
        let options = tools.ephemeral_postgres_in(folder.path().join("postgres")).unwrap();
        let postgres = Postgres::start(options).await.unwrap();
        let database = postgres.create_kairo_database("kairo").await.unwrap();
        let url = |service| database.service_url(service).unwrap().to_owned();
        let config = PostgresConfig { url: Secret::new(url(Service::Projector)), ..PostgresConfig::default() };
        migrate(&config).await.unwrap();
        let model = ReadModel::open(&config).unwrap();
        let mut projector = model.pool().acquire().await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(generation())).execute(&mut *projector).await.unwrap();
        grant_generation(&mut projector, "kairo_1").await.unwrap();
        let toolbox = toolbox(&url(Service::ToolRunner), wait_ms).await;
        Self { toolbox, projector, _postgres: postgres, _folder: folder }
    }

    async fn search(&self, args: Value) -> CallResult {
        search(&self.toolbox, args, 40).await
    }

    /// Returns the types of the memories found.
    async fn types(&self, args: Value) -> Vec<String> {
        self.types_in("", args).await
    }

    /// Returns the types of the memories that a call in a thread finds.
    async fn types_in(&self, thread: &str, args: Value) -> Vec<String> {
        let found = call_in(&self.toolbox, thread, NAME, args.clone(), 40).await;
        let found = found.unwrap_or_else(|error| panic!("{args}: {error}"));
        let matches = found["matches"].as_array().unwrap();
        matches.iter().map(|memory| memory["type"].as_str().unwrap().to_owned()).collect()
    }
}

async fn call(toolbox: &Toolbox, tool: &str, args: Value, decision_sequence: u64) -> CallResult {
    call_in(toolbox, "", tool, args, decision_sequence).await
}

async fn call_in(toolbox: &Toolbox, thread: &str, tool: &str, args: Value, decision_sequence: u64) -> CallResult {
    let context = CallContext {
        user: None,
        action_id: "action".to_owned(),
        now: "2026-11-21T10:00:00Z".parse().unwrap(),
        begun: jiff::Timestamp::now(),
        agent: "bob".to_owned(),
        thread_id: thread.to_owned(),
        decision_sequence,
        target: None,
        target_after: 0,
        cancel: CancellationToken::new(),
        progress: ProgressReporter::discard(),
        exchange: Default::default(),
    };
    tokio::time::timeout(DEADLINE, toolbox.call(tool, args, context)).await.expect("something hangs")
}

async fn search(toolbox: &Toolbox, args: Value, decision_sequence: u64) -> CallResult {
    call(toolbox, NAME, args, decision_sequence).await
}

#[tokio::test]
async fn an_agents_own_memories_are_found_in_every_way_to_ask() {
    let library = Library::open(2_000).await;
    let found = library.search(json!({"query": "team meeting"})).await.unwrap();
    let memory = &found["matches"][0];
    assert_eq!(
        (found["matches"].as_array().unwrap().len(), &memory["content"]),
        (1, &json!("Team meeting: Q1 results."))
    );
    assert_eq!((&memory["day"], &memory["source_event_ids"]), (&json!("2026-11-17"), &json!(["e-1"])));
    assert!(memory["score"].as_f64().unwrap() > 0.0 && !memory.to_string().contains("AQID"));
    for (args, types) in [
        (json!({"type": "people", "query": "Sara"}), vec!["person"]),
        (json!({"type": "project", "query": "product launch", "scope": "all"}), vec!["project"]),
        (json!({"scope": "recent"}), vec!["project", "journal"]),
        (json!({"scope": "all", "type": "any"}), vec!["project", "journal", "person"]),
        (json!({"type": "journal", "date": "2026-11-17", "scope": "all"}), vec!["journal"]),
        (json!({"type": "journal", "date": "last tuesday"}), vec!["journal"]),
        (
            json!({"date": {"start": "2026-11-17T00:00:00+01:00", "end": "2026-11-18T00:00:00+01:00", "date": "2026-11-17", "last_date": "2026-11-17"}}),
            vec!["journal"],
        ),
        (json!({"date": {"from": "2026-10-01", "to": "2026-11-17"}, "limit": 1}), vec!["journal"]),
        (json!({"query": "zebra"}), vec![]),
    ] {
        assert_eq!(library.types(args.clone()).await, types, "{args}");
    }
    let long = library.search(json!({"type": "project"})).await.unwrap();
    assert_eq!(
        (long["matches"][0]["content"].as_str().unwrap().len(), &long["matches"][0]["cut"]),
        (4_000, &json!(true))
    );
    for args in [json!({"date": "2026-02-30"}), json!({"type": "rumour"}), json!({"limit": 0}), json!({"date": 7})] {
        assert_eq!(library.search(args).await.unwrap_err().kind, ToolErrorKind::InvalidArguments);
    }
}

#[tokio::test]
async fn users_who_share_an_agent_do_not_see_each_others_memories() {
    let library = Library::open(2_000).await;
    for (thread, types) in [
        ("of-ann", vec!["project", "journal", "preference", "person"]),
        ("of-zoe", vec!["project", "journal", "fact", "person"]),
        ("unknown", vec!["project", "journal", "person"]),
        ("", vec!["project", "journal", "person"]),
        // A thread of another agent.
        ("elsewhere", vec!["project", "journal", "person"]),
    ] {
        assert_eq!(library.types_in(thread, json!({})).await, types, "{thread}");
    }
    for (thread, query, types) in [
        ("of-ann", "drinks", vec!["preference"]),
        ("of-ann", "salary", vec![]),
        ("of-zoe", "drinks salary earns", vec!["fact"]),
        ("of-nobody", "odd drinks salary", vec![]),
        ("unknown", "odd drinks salary", vec![]),
        ("of-ann' OR true --", "odd drinks salary", vec![]),
    ] {
        assert_eq!(library.types_in(thread, json!({"query": query})).await, types, "{thread}: {query}");
    }
    let by_day = json!({"date": {"from": "2026-11-01", "to": "2026-11-03"}});
    assert_eq!(library.types_in("of-zoe", by_day).await, ["fact"]);
}

#[tokio::test]
async fn a_search_waits_for_the_decision_that_asked_but_not_for_ever() {
    let library = Library::open(50).await;
    let error = search(&library.toolbox, json!({}), 47).await.unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ToolErrorKind::Unavailable, "the read model is 7 messages behind; try again in a moment")
    );
}

#[tokio::test]
async fn a_role_that_may_not_read_is_told_so_at_once_and_the_search_goes_on_when_it_may() {
    let mut library = Library::open(60_000).await;
    let forbid = "REVOKE SELECT ON kairo_1.memories FROM kairo_tool_runner";
    sqlx::raw_sql(forbid).execute(&mut *library.projector).await.unwrap();
    let error = library.search(json!({})).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Unavailable);
    assert!(error.message.contains("Postgres refuses the role of tool-runner"), "{error}");
    grant_generation(&mut library.projector, "kairo_1").await.unwrap();
    library.search(json!({})).await.unwrap();
}

#[tokio::test]
async fn without_postgres_only_the_search_fails() {
    // Nothing listens there: the port is given back at once.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let toolbox = toolbox(&format!("postgres://kairo@127.0.0.1:{port}/kairo"), 50).await;
    let error = search(&toolbox, json!({}), 1).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Unavailable);
    assert!(error.message.contains("Postgres does not answer"), "{error}");
    assert!(call(&toolbox, "tools.now", json!({}), 1).await.is_ok());
}
