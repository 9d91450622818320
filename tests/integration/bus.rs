//! The bus against a real nats-server.

use std::ops::ControlFlow;

use jiff::Timestamp;
use kairo_core::{
    bus::{
        Bus, BusError,
        append::OutgoingEvent,
        ledger::{Ledger, LedgerOutcome},
    },
    envelope::{Envelope, Origin},
    ids::{self, Name},
    ownership::checkpoint::{CheckpointStore, StateFormat},
    record::RawMessage,
    subjects::{self, AGENT_DECISION, AGENT_MESSAGE, SNAPSHOTS_BUCKET, Service, TOOL_RESULT},
};
use kairo_local::{NatsServer, Tools};
use kairo_proto::v1::{AgentDecision, AgentMessage, ToolResult};
use tempfile::TempDir;
use uuid::Uuid;

use crate::world::{agent, connect};

/// A nats-server and nothing else.
pub struct Server {
    pub nats: NatsServer,
    _folder: TempDir,
}

impl Server {
    pub async fn start() -> Self {
        let tools = Tools::of_this_checkout().expect("run ./scripts/test");
        let folder = tempfile::tempdir().unwrap();
        let options = tools.nats_in(folder.path().join("nats")).unwrap();
        Self { nats: NatsServer::start(options).await.unwrap(), _folder: folder }
    }

    pub async fn bus(&self) -> Bus {
        let bus = connect(&self.nats.operator()).await;
        bus.provision().await.unwrap();
        bus
    }
}

fn decision(owner: &Name, id: Uuid) -> OutgoingEvent {
    let envelope = Envelope::from_outside(id, Service::AgentRuntime, Origin::Internal, Timestamp::now());
    OutgoingEvent::new(&AGENT_DECISION, owner, envelope, AgentDecision::default())
}

fn message(owner: &Name, text: &str) -> OutgoingEvent {
    let envelope = Envelope::from_outside(ids::generate(), Service::Router, Origin::User, Timestamp::now());
    OutgoingEvent::new(&AGENT_MESSAGE, owner, envelope, AgentMessage { text: text.into(), ..Default::default() })
}

fn result(owner: &Name, action: Uuid, runner: &str) -> OutgoingEvent {
    let id = ids::from_parts("result", &[&action.to_string(), runner]);
    let envelope = Envelope::from_outside(id, Service::ToolRunner, Origin::Tool, Timestamp::now());
    let body = ToolResult { action_id: action.to_string(), runner: runner.into(), ..Default::default() };
    OutgoingEvent::new(&TOOL_RESULT, owner, envelope, body)
}

#[tokio::test]
async fn the_guard_lets_one_writer_through_and_knows_its_own_success() {
    let server = Server::start().await;
    let (bus, other) = (server.bus().await, server.bus().await);
    let a = agent("a");
    let first = decision(&a, ids::generate());
    let written = bus.append(&first, 0).await.unwrap();
    // The answer may have been lost: the very same event again is a success, another one is a conflict.
    let again = bus.append(&first, 0).await.unwrap();
    assert_eq!((again.sequence, again.duplicate), (written.sequence, true));
    let error = other.append(&decision(&a, ids::generate()), 0).await.unwrap_err();
    assert!(matches!(error, BusError::Conflict { expected: 0 }), "{error}");
    other.append(&decision(&a, ids::generate()), written.sequence).await.unwrap();
}

#[tokio::test]
async fn another_replicas_event_of_the_same_id_is_no_success_of_ones_own() {
    let server = Server::start().await;
    let (bus, other) = (server.bus().await, server.bus().await);
    let (a, action) = (agent("a"), ids::generate());
    let mine = result(&a, action, "r0");
    let mut theirs = result(&a, action, "r1");
    theirs.envelope.id = mine.envelope.id;
    let written = bus.append(&mine, 0).await.unwrap();
    let error = other.append(&theirs, 0).await.unwrap_err();
    assert!(matches!(error, BusError::Conflict { expected: 0 }), "{error}");
    assert_eq!(bus.append(&mine, 0).await.unwrap().sequence, written.sequence);
}

#[tokio::test]
async fn a_stretch_of_one_agents_log_is_read_in_pages_and_in_order() {
    let server = Server::start().await;
    let bus = server.bus().await;
    let (a, b) = (agent("a"), agent("b"));
    let mut expected = Vec::new();
    for number in 0..600 {
        let written = bus.publish(&message(&a, &number.to_string())).await.unwrap();
        expected.push(written.sequence);
        if number % 3 == 0 {
            bus.publish(&message(&b, "other")).await.unwrap();
        }
    }
    let mut read = Vec::new();
    bus.read_all("kairo.*.a.>", 0, |raw| read.push(raw.sequence)).await.unwrap();
    assert_eq!(read, expected);
    let page = bus.read_page("kairo.*.a.>", expected[597]).await.unwrap();
    assert_eq!(page.messages.iter().map(|raw| raw.sequence).collect::<Vec<_>>(), expected[598..]);
    assert!(!page.more);
    assert!(bus.read_page("kairo.*.a.>", expected[599]).await.unwrap().messages.is_empty());
    assert!(bus.read_page("kairo.*.nobody.>", 0).await.unwrap().messages.is_empty());
    assert_eq!(bus.last_message("kairo.agent.a.message").await.unwrap().unwrap().sequence, expected[599]);
    assert!(bus.last_message("kairo.agent.nobody.message").await.unwrap().is_none());
}

#[tokio::test]
async fn subjects_are_read_together_in_the_order_of_the_log() {
    let server = Server::start().await;
    let bus = server.bus().await;
    let (a, b) = (agent("a"), agent("b"));
    let mut expected = Vec::new();
    for number in 0..700 {
        // Of one subject there are several pages, of the other a few messages among them.
        let event = if number % 70 == 0 { decision(&a, ids::generate()) } else { message(&a, &number.to_string()) };
        expected.push(bus.publish(&event).await.unwrap().sequence);
        bus.publish(&message(&b, "other")).await.unwrap();
    }
    let subjects = subjects::agent_subjects(&a);
    for from in [0, 1, 300, 699, 700] {
        let after = if from == 0 { 0 } else { expected[from - 1] };
        let mut read = Vec::new();
        let each = |raw: RawMessage| {
            read.push(raw.sequence);
            ControlFlow::Continue(())
        };
        let through = bus.read_merged(&subjects, after, each).await.unwrap();
        assert_eq!((read.as_slice(), through), (&expected[from..], expected[699]), "from {from}");
    }
    // Up to a message that is not wanted any more.
    let (mut read, limit) = (Vec::new(), expected[300]);
    let first = |raw: RawMessage| {
        if raw.sequence >= limit {
            return ControlFlow::Break(());
        }
        read.push(raw.sequence);
        ControlFlow::Continue(())
    };
    assert_eq!(bus.read_merged(&subjects, 0, first).await.unwrap(), limit - 1);
    assert_eq!(read, expected[..300]);
}

#[tokio::test]
async fn the_same_event_is_published_once() {
    let server = Server::start().await;
    let bus = server.bus().await;
    let event = message(&agent("a"), "hello");
    let first = bus.publish(&event).await.unwrap();
    let second = bus.publish(&event).await.unwrap();
    assert_eq!((second.sequence, second.duplicate), (first.sequence, true));
}

#[tokio::test]
async fn ones_own_entry_is_known_though_its_acknowledgement_was_lost_and_others_looked_or_wrote_since() {
    let server = Server::start().await;
    let bus = server.bus().await;
    let a = agent("a");
    let since = bus.publish(&message(&a, "ask")).await.unwrap().sequence;
    let ledger = Ledger::new(&bus, &TOOL_RESULT);
    let [looked_at, written_behind, theirs, later] = [(); 4].map(|()| ids::generate());

    // Stored, and nobody was told: then somebody in this replica looks.
    let first = result(&a, looked_at, "r0");
    let sequence = bus.append(&first, 0).await.unwrap().sequence;
    assert_eq!(ledger.entries_about(&a, since, &[looked_at]).await.unwrap().len(), 1);
    assert_eq!(ledger.record_once(&a, since, &first).await.unwrap(), LedgerOutcome::Written { sequence });

    // Stored, and somebody else writes behind it.
    let second = result(&a, written_behind, "r0");
    let sequence = bus.append(&second, sequence).await.unwrap().sequence;
    let last = bus.append(&result(&a, later, "r1"), sequence).await.unwrap().sequence;
    assert_eq!(ledger.record_once(&a, since, &second).await.unwrap(), LedgerOutcome::Written { sequence });

    // The entry of another replica, or of another time, is none of one's own, though it has the same id.
    let mine = result(&a, theirs, "r0");
    let mut another = result(&a, theirs, "r1");
    another.envelope.id = mine.envelope.id;
    bus.append(&another, last).await.unwrap();
    assert_eq!(ledger.record_once(&a, since, &mine).await.unwrap(), LedgerOutcome::Already(vec![theirs]));
    let again = result(&a, looked_at, "r0");
    assert_eq!(again.envelope.id, first.envelope.id);
    assert_eq!(ledger.record_once(&a, since, &again).await.unwrap(), LedgerOutcome::Already(vec![looked_at]));
}

#[tokio::test]
async fn a_ledger_takes_one_entry_about_an_action_whoever_is_faster() {
    let server = Server::start().await;
    let a = agent("a");
    let actions: Vec<Uuid> = (0..20).map(|_| ids::generate()).collect();
    let since = server.bus().await.publish(&message(&a, "ask")).await.unwrap().sequence;
    let mut writers = Vec::new();
    for number in 0..4 {
        let (bus, actions, a) = (server.bus().await, actions.clone(), a.clone());
        writers.push(tokio::spawn(async move {
            let ledger = Ledger::new(&bus, &TOOL_RESULT);
            let mut written = 0;
            for action in &actions {
                let entered = ledger.record_once(&a, since, &result(&a, *action, &format!("r{number}"))).await.unwrap();
                written += usize::from(matches!(entered, LedgerOutcome::Written { .. }));
            }
            written
        }));
    }
    let mut written = 0;
    for writer in writers {
        written += writer.await.unwrap();
    }
    assert_eq!(written, actions.len());
    let bus = server.bus().await;
    let entries = Ledger::new(&bus, &TOOL_RESULT).entries_about(&a, since, &actions).await.unwrap();
    assert_eq!(entries.len(), actions.len());
    let page = bus.read_page("kairo.tool.a.result", 0).await.unwrap();
    assert_eq!(page.messages.len(), actions.len());
}

#[tokio::test]
async fn a_ledger_finds_an_entry_however_many_came_after_it() {
    let server = Server::start().await;
    let (bus, a) = (server.bus().await, agent("a"));
    let since = bus.publish(&message(&a, "ask")).await.unwrap().sequence;
    let ledger = Ledger::new(&bus, &TOOL_RESULT);
    let first = ids::generate();
    let mut last = since;
    for action in std::iter::once(first).chain((0..1_500).map(|_| ids::generate())) {
        match ledger.record_once(&a, last, &result(&a, action, "r")).await.unwrap() {
            LedgerOutcome::Written { sequence } => last = sequence,
            LedgerOutcome::Already(already) => panic!("{already:?}"),
        }
    }
    for ledger in [ledger, Ledger::new(&bus, &TOOL_RESULT)] {
        let again = ledger.record_once(&a, since, &result(&a, first, "again")).await.unwrap();
        assert_eq!(again, LedgerOutcome::Already(vec![first]));
        assert!(ledger.entries_about(&a, since, &[first]).await.unwrap().contains_key(&first));
        assert!(ledger.entries_as_of_leader(&a, since, &[first]).await.unwrap().contains_key(&first));
        assert_eq!(ledger.all_entries(&a, since).await.unwrap().len(), 1_501);
        assert!(ledger.entries_as_of_leader(&agent("nobody"), 0, &[first]).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_checkpoint_that_somebody_moved_farther_is_adopted_and_never_goes_back() {
    let server = Server::start().await;
    let bus = server.bus().await;
    fill(&bus, 60).await;
    let mut slow = CheckpointStore::open(&bus, 3).await.unwrap();
    let mut fast = CheckpointStore::open(&bus, 3).await.unwrap();
    slow.write(10, vec![agent("a")]).await.unwrap();
    fast.write(50, Vec::new()).await.unwrap();
    // The first finds out, and then that it is behind.
    for through in [20, 30] {
        slow.write(through, vec![agent("a")]).await.unwrap();
        assert_eq!(CheckpointStore::open(&bus, 3).await.unwrap().last.through, 50);
    }
    slow.write(60, Vec::new()).await.unwrap();
    assert_eq!(CheckpointStore::open(&bus, 3).await.unwrap().last.through, 60);
}

/// A checkpoint is of a log that goes as far.
async fn fill(bus: &Bus, messages: u32) {
    for number in 0..messages {
        bus.publish(&message(&agent("a"), &number.to_string())).await.unwrap();
    }
}

#[tokio::test]
async fn a_build_begins_where_others_got_that_understood_no_more_and_overwrites_none_of_theirs() {
    let server = Server::start().await;
    let bus = server.bus().await;
    fill(&bus, 40).await;
    let format = |version, reader| StateFormat { version, reader };
    let through = async |format| CheckpointStore::open_with_format(&bus, 3, format).await.unwrap().last.through;
    CheckpointStore::open(&bus, 3).await.unwrap().write(10, vec![agent("a")]).await.unwrap();
    assert_eq!(through(format(6, 1)).await, 10);
    let mut newer = CheckpointStore::open_with_format(&bus, 3, format(7, 2)).await.unwrap();
    assert_eq!(newer.last.busy, [agent("a")]);
    newer.write(30, Vec::new()).await.unwrap();
    // The one before goes on where it was, another of its kind there, too; a newer one farther on.
    assert_eq!([through(format(6, 1)).await, through(format(7, 1)).await, through(format(8, 3)).await], [10, 10, 30]);
    let store = bus.nats().unwrap().jetstream.get_key_value(SNAPSHOTS_BUCKET).await.unwrap();
    store.delete(format!("checkpoint.{}.3.7-2", bus.service.name())).await.unwrap();
    assert_eq!(through(format(7, 2)).await, 10, "as where there never was one");
}

#[tokio::test]
async fn what_is_written_while_the_server_is_away_is_there_when_it_is_back() {
    let mut server = Server::start().await;
    let bus = server.bus().await;
    let a = agent("a");
    bus.publish(&message(&a, "before")).await.unwrap();
    server.nats.kill9().await.unwrap();
    let event = decision(&a, ids::generate());
    let (waiting, patient) = (bus.clone(), event.clone());
    let write = tokio::spawn(async move { waiting.append_with_retry(&patient, 0).await });
    server.nats.restart().await.unwrap();
    let written = write.await.unwrap().unwrap();
    assert_eq!(bus.last_message(&event.subject).await.unwrap().unwrap().sequence, written.sequence);
    assert_eq!(bus.read_page("kairo.*.a.>", 0).await.unwrap().messages.len(), 2);
}
