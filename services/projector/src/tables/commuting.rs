//! However the log is shared among workers and cut into batches, it makes the same rows.

use std::collections::{BTreeMap, VecDeque};

use kairo_core::{config::Secret, principal::Principal, record::Record};
use kairo_local::{Postgres, Tools};
use kairo_proto::v1::{
    AgentApproval, AgentBriefed, AgentChoice, AgentMessage, ApprovalRequested, ChainEnded, ChainStarted, ChainStep,
    DecidedEvent, MemoryAppended, ProcessCanceled, ProcessExited, ProcessProgress, ProcessSpawned, StateDeleted,
    StateWritten, TaskChanged, TaskFired, TeamChanged, ThreadArchived, ThreadCompacted, ThreadCompleted, ThreadMatched,
    ThreadSuggested, ToolCall, ToolError, ToolInvocation, ToolInvoke, ToolProgress, ToolResult, UserMessage,
    UserMessageUndelivered, agent_action::Action, decided_event::Event,
};
use kairo_read_model::{PostgresConfig, TABLES, TABLES_SQL};
use proptest::{prelude::*, test_runner::TestRunner};
use sqlx::{AssertSqlSafe, ConnectOptions, PgConnection, postgres::PgConnectOptions, query_scalar, raw_sql};
use uuid::Uuid;

use super::{SETTINGS, write_changes};
use crate::{
    changes::TableChanges,
    projections::{
        project_record,
        testing::{decision, record, sample_event, sample_event_with},
    },
};

const WORKERS: usize = 3;

/// The event that a turn begins with.
fn start_event_id(sequence: u64) -> Uuid {
    record(sequence, "kairo.user.ann.message", UserMessage::default()).envelope.id
}

fn user_message(sequence: u64, user: &str, agent: &str, thread: &str) -> Record {
    let agent = agent.to_owned();
    let thread_id = thread.to_owned();
    let text = format!("words {sequence}");
    let body = UserMessage { message_id: format!("m-{sequence}"), agent, thread_id, text, ..Default::default() };
    let mut record = record(sequence, &format!("kairo.user.{user}.message"), body);
    record.envelope.thread_id = (!thread.is_empty()).then(|| thread.to_owned());
    record
}

fn delivered_message(sequence: u64, agent: &str, message: u64, thread: &str) -> Record {
    let body = AgentMessage { user: "ann".into(), thread_id: thread.into(), ..Default::default() };
    let mut record = record(sequence, &format!("kairo.agent.{agent}.message"), body);
    record.envelope.causation_id = Some(start_event_id(message));
    record
}

/// Belongs to the turn that this message began.
fn of_turn(message: u64, event: DecidedEvent) -> DecidedEvent {
    DecidedEvent { correlation_id: start_event_id(message).to_string(), ..event }
}

fn tool_result(sequence: u64, action: &DecidedEvent, ok: bool) -> Record {
    let error = (!ok).then(|| ToolError { kind: "in_doubt".into(), message: "who knows".into() });
    let action_id = action.event_id.clone();
    let body = ToolResult { action_id, ok, result: "{\"n\":1}".into(), error, ..Default::default() };
    record(sequence, "kairo.tool.bob.result", body)
}

/// Builds the result of a call by agent `eve`: in doubt, or the late result.
fn tool_result_of_eve(sequence: u64, action: &str, late: bool) -> Record {
    let error = (!late).then(|| ToolError { kind: "in_doubt".into(), message: "who knows".into() });
    let action_id = action.to_owned();
    let result = "{\"paid\":7}".to_owned();
    record(
        sequence,
        "kairo.tool.eve.result",
        ToolResult { action_id, ok: late, result, error, late, ..Default::default() },
    )
}

/// Builds a history of two users and two agents; events that may be delivered twice are.
fn history() -> Vec<Record> {
    let call = of_turn(1, sample_event("t", "call"));
    let id = call.event_id.clone();
    let process_id = Uuid::from_u128(7).to_string();
    let chain_id = Uuid::from_u128(9).to_string();
    let step = ToolCall {
        tool: "email.send".into(),
        arguments: "{}".into(),
        chain_id: chain_id.clone(),
        ..Default::default()
    };
    let step = kairo_proto::v1::AgentAction { action: Some(Action::ToolCall(step)) };
    let step = sample_event_with("t", "step", Event::Action(step));
    let steps = ["email.send", "tools.now"].map(|event| ChainStep { event: event.into(), ..Default::default() });
    let chain = ChainStarted { chain_id: chain_id.clone(), steps: steps.into(), ..Default::default() };
    let asked = ApprovalRequested { user: "ann".into(), chain_id: chain_id.clone(), ..Default::default() };
    let asked = sample_event_with("t", "asked", Event::ApprovalRequested(asked));
    let offer = ThreadSuggested { user: "ann".into(), thread_id: "other".into(), ..Default::default() };
    let offer = of_turn(6, sample_event_with("", "offer", Event::ThreadSuggested(offer)));
    let matched = Event::ThreadMatched(ThreadMatched { thread_id: "other".into(), ..Default::default() });
    let task_id = Uuid::from_u128(3).to_string();
    let task = kairo_proto::v1::Task { task_id: task_id.clone(), kind: "scheduled".into(), ..Default::default() };
    let task = Event::TaskScheduled(kairo_proto::v1::TaskScheduled { task: Some(task) });
    let fired = Event::TaskFired(TaskFired { task_id: task_id.clone(), occurrence: 1, ..Default::default() });
    let changed = Event::TaskChanged(TaskChanged { task_id, status: "canceled".into(), ..Default::default() });
    let invocation = ToolInvocation { action_id: id.clone(), executor: "tool-runner".into(), ..Default::default() };
    let invoke = ToolInvoke { runner: "r-1".into(), actions: vec![invocation], ..Default::default() };
    let verdict = |verdict: &str, action: &str| AgentApproval {
        action_id: action.to_owned(),
        verdict: verdict.into(),
        user: "ann".into(),
        ..Default::default()
    };
    let choice = AgentChoice {
        offer_id: offer.event_id.clone(),
        option: "accept".into(),
        user: "ann".into(),
        ..Default::default()
    };
    let spawned = ProcessSpawned { process_id: process_id.clone(), action_id: id.clone(), ..Default::default() };
    let advanced = ProcessProgress { process_id: process_id.clone(), action_id: id.clone(), ..Default::default() };
    let canceled = ProcessCanceled { process_id: process_id.clone(), action_id: id.clone(), ..Default::default() };
    let exited = ProcessExited { process_id, action_id: id.clone(), outcome: "exited".into(), ..Default::default() };
    let archived = Event::ThreadArchived(ThreadArchived { thread_id: "t".into(), archived: true });
    let archived_too = Event::ThreadArchived(ThreadArchived { thread_id: "u".into(), archived: true });
    let briefed = AgentBriefed { thread_id: "u".into(), user: "ann".into(), told: true, ..Default::default() };
    let briefed = sample_event_with("u", "briefed", Event::Briefed(briefed));
    let team = |status: &str| {
        let changed = TeamChanged { status: status.into(), ..Default::default() };
        sample_event_with("u", status, Event::TeamChanged(changed))
    };
    let completed = |thread: &str| {
        let completed = ThreadCompleted { thread_id: thread.into() };
        sample_event_with(thread, "completed", Event::ThreadCompleted(completed))
    };
    let written = |key: &str, content: &str| {
        let written = StateWritten { key: key.into(), content: content.into(), ..Default::default() };
        sample_event_with("u", content, Event::StateWritten(written))
    };
    let remembered = |content: &str| {
        let memory_id = Uuid::from_u128(4).to_string();
        let remembered = MemoryAppended { memory_id, content: content.into(), ..Default::default() };
        sample_event_with("u", &format!("remembered {content}"), Event::MemoryAppended(remembered))
    };
    let deleted = Event::StateDeleted(StateDeleted { key: "k".into(), ..Default::default() });
    let deleted = sample_event_with("u", "deleted", deleted);
    let compacted = ThreadCompacted { thread_id: "u".into(), ..Default::default() };
    let compacted = sample_event_with("u", "compacted", Event::ThreadCompacted(compacted));
    let refused = UserMessageUndelivered { agent: "nobody".into(), reason: "nobody".into(), ..Default::default() };
    let progress = ToolProgress { action_id: id.clone(), fraction: Some(0.5), ..Default::default() };
    let over = Event::ChainEnded(ChainEnded { chain_id, outcome: "done".into(), ..Default::default() });
    let mut with_key = user_message(1, "ann", "bob", "");
    let other = of_turn(30, sample_event("u", "call")).event_id;
    with_key.envelope.entered_by = Some(Principal::api_key("key-7"));
    vec![
        with_key,
        delivered_message(2, "bob", 1, ""),
        decision(3, "bob", [of_turn(1, sample_event("t", "thread")), call.clone()]),
        record(4, "kairo.tool.bob.invoke", invoke),
        user_message(5, "ann", "bob", "t"),
        user_message(6, "ann", "", ""),
        delivered_message(7, "bob", 5, "t"),
        delivered_message(8, "bob", 6, ""),
        // The same message with somebody else: the first delivery and the first thread count.
        delivered_message(9, "eve", 6, ""),
        decision(10, "eve", [of_turn(6, sample_event("u", "thread")), of_turn(6, sample_event("u", "say"))]),
        record(11, "kairo.process.bob.spawned", spawned),
        record(12, "kairo.tool.bob.progress", progress),
        decision(13, "bob", [offer, of_turn(5, sample_event("t", "say"))]),
        record(14, "kairo.process.bob.progress", advanced),
        record(15, "kairo.process.bob.canceled", canceled),
        record(16, "kairo.process.bob.exited", exited),
        tool_result(17, &call, false),
        tool_result(18, &call, true),
        record(19, "kairo.agent.bob.approval", verdict("happened", &id)),
        record(20, "kairo.agent.bob.choice", choice),
        decision(21, "bob", [of_turn(6, sample_event_with("other", "matched", matched))]),
        decision(22, "bob", [sample_event_with("t", "chain", Event::ChainStarted(chain)), asked.clone()]),
        // Somebody else's counts neither before nor behind that of the one who was asked.
        record(
            23,
            "kairo.agent.bob.approval",
            AgentApproval { user: "cat".into(), ..verdict("rejected", &asked.event_id) },
        ),
        record(24, "kairo.agent.bob.approval", verdict("approved", &asked.event_id)),
        decision(25, "bob", [step.clone(), sample_event_with("t", "task", task)]),
        tool_result(26, &step, true),
        decision(27, "bob", [sample_event_with("t", "over", over), sample_event_with("t", "fired", fired)]),
        decision(28, "bob", [sample_event_with("t", "changed", changed), sample_event_with("t", "archived", archived)]),
        // A decision that stands in the log twice.
        decision(29, "bob", [call, sample_event("t", "think")]),
        user_message(30, "cat", "eve", "u"),
        delivered_message(31, "eve", 30, "u"),
        decision(32, "eve", [of_turn(30, sample_event("u", "call"))]),
        user_message(33, "ann", "bob", "t"),
        decision(34, "eve", [team("paused"), compacted, completed("u"), briefed.clone()]),
        decision(35, "eve", [team("active"), sample_event_with("u", "archived u", archived_too), briefed]),
        decision(36, "eve", [written("k", "first"), written("l", "other"), written("k", "second")]),
        decision(37, "eve", [deleted]),
        decision(38, "eve", [written("l", "last"), written("l", "last")]),
        tool_result_of_eve(39, &other, false),
        tool_result_of_eve(40, &other, true),
        tool_result_of_eve(41, &other, true),
        record(42, "kairo.agent.eve.approval", verdict("did_not_happen", &other)),
        record(43, "kairo.user.cat.undelivered", refused),
        decision(44, "eve", [remembered("first"), remembered("second")]),
        decision(45, "eve", [remembered("third"), remembered("third")]),
    ]
}

fn owner(record: &Record) -> &str {
    record.subject.split('.').nth(2).unwrap()
}

/// Every row that these batches make, in this order.
async fn table_rows(connection: &mut PgConnection, batches: &[Vec<Record>]) -> BTreeMap<&'static str, String> {
    let begin = format!(
        "SET client_min_messages = warning; DROP SCHEMA IF EXISTS tried CASCADE; CREATE SCHEMA tried; \
         SET search_path = tried, public; {TABLES_SQL} {SETTINGS}"
    );
    raw_sql(AssertSqlSafe(begin)).execute(&mut *connection).await.unwrap();
    for batch in batches {
        let mut changes = TableChanges::default();
        batch.iter().for_each(|record| project_record(record, &mut changes));
        write_changes(connection, &changes).await.unwrap();
    }
    let mut rows = BTreeMap::new();
    for table in TABLES {
        let all = format!("SELECT coalesce(string_agg(r::text, E'\\n' ORDER BY r::text), '') FROM {table} AS r");
        rows.insert(table, query_scalar(AssertSqlSafe(all)).fetch_one(&mut *connection).await.unwrap());
    }
    rows
}

/// Each owner's records are some worker's, who reads them in order and writes as many at once as the numbers say.
fn share_among_workers(owners: &[usize], turns: &[(usize, usize)]) -> Vec<Vec<Record>> {
    let names = ["ann", "cat", "bob", "eve", "nobody"];
    let mut workers: Vec<VecDeque<Record>> = vec![VecDeque::new(); WORKERS];
    for record in history() {
        let name = names.iter().position(|name| *name == owner(&record)).unwrap();
        workers[owners[name]].push_back(record);
    }
    let mut batches = Vec::new();
    let steps = turns.iter().copied().chain((0..WORKERS).map(|worker| (worker, usize::MAX)));
    for (worker, most) in steps {
        let queue = &mut workers[worker];
        batches.push(queue.drain(..most.min(queue.len())).collect());
    }
    batches
}

#[test]
fn however_the_log_is_shared_and_cut_the_rows_are_the_same() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let tools = Tools::of_this_checkout().expect("run ./scripts/test");
    let folder = tempfile::tempdir().unwrap();
    let options = tools.ephemeral_postgres_in(folder.path().join("postgres")).unwrap();
    let postgres = runtime.block_on(Postgres::start(options)).unwrap();
    let url: PgConnectOptions = postgres.url("postgres").parse().unwrap();
    let mut connection = runtime.block_on(url.connect()).unwrap();
    let config = PostgresConfig { url: Secret::new(postgres.url("postgres")), ..Default::default() };
    runtime.block_on(kairo_read_model::migrate(&config)).unwrap();

    let one_by_one: Vec<_> = history().into_iter().map(|record| vec![record]).collect();
    let expected = runtime.block_on(table_rows(&mut connection, &one_by_one));
    assert!(TABLES.iter().filter(|table| expected[*table].is_empty()).count() <= 5, "{expected:?}");
    assert_eq!(runtime.block_on(table_rows(&mut connection, &[history()])), expected);

    let connection = std::cell::RefCell::new(connection);
    let shares = (prop::collection::vec(0..WORKERS, 5), prop::collection::vec((0..WORKERS, 1..6_usize), 0..24));
    let config = ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() };
    let same = |(owners, turns): (Vec<usize>, Vec<(usize, usize)>)| {
        let made = runtime.block_on(table_rows(&mut connection.borrow_mut(), &share_among_workers(&owners, &turns)));
        prop_assert_eq!(&made, &expected);
        Ok(())
    };
    TestRunner::new(config).run(&shares, same).unwrap();
}
