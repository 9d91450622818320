//! Timers against a real nats-server: set by decisions, kept through its death, due once.

use std::sync::Arc;

use async_nats::jetstream::{
    consumer::{AckPolicy, pull},
    stream,
};
use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};
use kairo_agent_runtime::effects::Effects;
use kairo_core::{
    bus::{Bus, BusConfig, NatsConfig, append::OutgoingEvent, consume::consume, timers::TaskTimer},
    envelope::{Envelope, Origin},
    ids::{self, Name},
    record::{DecisionPosition, RawMessage, Record},
    subjects::{AGENT_DECISION, Consumer, EVENTS_STREAM, Service, TASK_DUE, TIMERS_STREAM},
};
use kairo_proto::{
    Body,
    v1::{AgentDecision, DecidedEvent, Task, TaskChanged, TaskDue, TaskScheduled, decided_event::Event},
};
use kairo_tests::login;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    bus::Server,
    world::{DEADLINE, agent, connect},
};

const MAX_BODY: usize = 1_000_000;

fn timer(task: Uuid, occurrence: u64, at: Timestamp, sequence: u64) -> TaskTimer {
    TaskTimer { agent: agent("a"), task, occurrence, at, decided: DecisionPosition { sequence, position: 0 } }
}

fn soon(milliseconds: i64) -> Timestamp {
    Timestamp::now() + SignedDuration::from_millis(milliseconds)
}

/// Returns every due task in the log, once `last` is among them.
async fn due_until(bus: &Bus, last: Uuid) -> Vec<(RawMessage, TaskDue)> {
    let said = async {
        loop {
            let mut due = Vec::new();
            let filter = TASK_DUE.stored_filter();
            let read = bus.read_all(&filter, 0, |raw| {
                let Body::TaskDue(body) = raw.read(MAX_BODY).unwrap().body else { panic!("{raw:?}") };
                due.push((raw, body));
            });
            read.await.unwrap();
            if due.iter().any(|(_, body)| body.task_id == last.to_string()) {
                return due;
            }
        }
    };
    tokio::time::timeout(DEADLINE, said).await.expect("it was never due")
}

/// Returns all that is due by this time and a little later: a sentinel timer marks the end and is left out.
async fn due_by(bus: &Bus, at: Timestamp) -> Vec<(RawMessage, TaskDue)> {
    let sentinel = ids::generate();
    bus.arm_timer(&timer(sentinel, 1, at.max(Timestamp::now()) + SignedDuration::from_millis(1_000), 1)).await.unwrap();
    due_until(bus, sentinel).await.into_iter().filter(|(_, body)| body.task_id != sentinel.to_string()).collect()
}

fn tasks(due: &[(RawMessage, TaskDue)]) -> Vec<(Uuid, u64)> {
    let mut tasks: Vec<_> = due.iter().map(|(_, due)| (due.task_id.parse().unwrap(), due.occurrence)).collect();
    tasks.sort();
    tasks
}

/// The message as a durable consumer delivers it.
async fn delivered(bus: &Bus, sequence: u64) -> Record {
    let stream = bus.nats().unwrap().jetstream.get_stream_no_info(EVENTS_STREAM).await.unwrap();
    let config = pull::Config { ack_policy: AckPolicy::Explicit, ..Default::default() };
    let mut messages = stream.create_consumer(config).await.unwrap().messages().await.unwrap();
    loop {
        let mut message = messages.next().await.unwrap().unwrap();
        let (raw, _) = RawMessage::from_delivery(&mut message).unwrap();
        if raw.sequence == sequence {
            return raw.read(MAX_BODY).unwrap();
        }
    }
}

#[tokio::test]
async fn a_timer_that_is_set_twice_is_due_once_and_says_so_in_the_log() {
    let server = Server::start().await;
    let bus = server.bus().await;
    let task = ids::generate();
    let at = soon(2_000);
    bus.arm_timer(&timer(task, 3, at, 5)).await.unwrap();
    bus.arm_timer(&timer(task, 3, at, 5)).await.unwrap();
    let due = due_by(&bus, at).await;
    assert_eq!(tasks(&due), [(task, 3)]);
    let (raw, body) = &due[0];
    assert_eq!(body.due_at, at.to_string());
    assert_eq!(raw.subject, "kairo.task.a.due");
    let record = raw.read(MAX_BODY).unwrap();
    let envelope = &record.envelope;
    assert_eq!(envelope.id, ids::derive(task, "due/3"));
    assert_eq!((envelope.correlation_id, envelope.causation_id), (envelope.id, None));
    assert_eq!((envelope.type_name.as_str(), envelope.source.as_str()), (TaskDue::TYPE, "/kairo/agent-runtime"));
    assert_eq!(envelope.subject.as_deref(), Some("a"));
    // Its time is when it became due, whoever reads it in whatever way.
    assert!(envelope.time >= at, "{} is before {at}", envelope.time);
    assert_eq!(bus.record_at(raw.sequence).await.unwrap(), record);
    assert_eq!(delivered(&bus, raw.sequence).await, record);
    let set = bus.nats().unwrap().jetstream.get_stream_no_info(TIMERS_STREAM).await.unwrap();
    assert!(set.get_last_raw_message_by_subject(&format!("kairo.timer.set.{task}.3")).await.is_err());
    // It goes from the other stream in time, and stays in the log.
    assert_eq!(
        set.get_last_raw_message_by_subject(&bus.stored_subject(&raw.subject))
            .await
            .unwrap()
            .headers
            .get("Nats-TTL")
            .unwrap()
            .as_str(),
        "604800s"
    );
}

#[tokio::test]
async fn what_was_decided_last_stands_whatever_the_order() {
    let server = Server::start().await;
    let bus = server.bus().await;
    let [moved, kept, stopped, far] = [(); 4].map(|()| ids::generate());
    let (hour, at) = (soon(3_600_000), soon(3_000));
    bus.arm_timer(&timer(moved, 1, hour, 10)).await.unwrap();
    bus.arm_timer(&timer(moved, 1, at, 12)).await.unwrap();
    bus.arm_timer(&timer(moved, 1, hour, 10)).await.unwrap();
    bus.arm_timer(&timer(kept, 2, at, 12)).await.unwrap();
    bus.disarm_timers(kept, DecisionPosition { sequence: 11, position: 7 }).await.unwrap();
    bus.arm_timer(&timer(stopped, 1, at, 10)).await.unwrap();
    bus.arm_timer(&timer(stopped, 2, at, 10)).await.unwrap();
    bus.disarm_timers(stopped, DecisionPosition { sequence: 10, position: 1 }).await.unwrap();
    // Beyond what the server can count, it would be due at once.
    bus.arm_timer(&timer(far, 1, Timestamp::MAX, 1)).await.unwrap();
    let due = due_by(&bus, at).await;
    let mut expected = [(moved, 1), (kept, 2)];
    expected.sort();
    assert_eq!(tasks(&due), expected);
    assert!(due.iter().all(|(_, due)| due.due_at == at.to_string()), "{due:?}");
    bus.disarm_timers(ids::generate(), DecisionPosition { sequence: 99, position: 0 }).await.unwrap();
}

#[tokio::test]
async fn what_was_due_while_the_server_was_dead_is_due_once_when_it_is_back() {
    let mut server = Server::start().await;
    let bus = server.bus().await;
    let mut expected: Vec<_> = (0..20).map(|_| (ids::generate(), 1)).collect();
    let at = soon(500);
    for (task, occurrence) in &expected {
        bus.arm_timer(&timer(*task, *occurrence, at, 1)).await.unwrap();
    }
    server.nats.kill9().await.unwrap();
    while Timestamp::now() <= at {
        tokio::task::yield_now().await;
    }
    server.nats.restart().await.unwrap();
    // Bus calls are not repeated while the connection is being made again.
    let bus = connect(&server.nats.operator()).await;
    expected.sort();
    let due = due_by(&bus, at).await;
    assert_eq!(tasks(&due), expected);
    assert!(due.iter().all(|(raw, _)| raw.read(MAX_BODY).unwrap().envelope.time > at));
    server.nats.kill9().await.unwrap();
    server.nats.restart().await.unwrap();
    let bus = connect(&server.nats.operator()).await;
    let sentinels = due_by(&bus, at).await.len() - expected.len();
    assert_eq!(sentinels, 1, "the sentinel of before");
}

#[tokio::test]
async fn a_log_of_four_tokens_is_refused_and_left_as_it_is() {
    let server = Server::start().await;
    let bus = connect(&server.nats.operator()).await;
    let older = stream::Config {
        name: EVENTS_STREAM.to_owned(),
        subjects: ["kairo.user.>", "kairo.agent.>"].map(str::to_owned).to_vec(),
        description: Some("ours".to_owned()),
        ..Default::default()
    };
    let config = bus.nats().unwrap().jetstream.create_stream(older).await.unwrap().cached_info().config.clone();
    bus.nats().unwrap().jetstream.publish("kairo.agent.a.decision", "".into()).await.unwrap().await.unwrap();
    let refused = bus.provision().await.unwrap_err().to_string();
    assert!(refused.contains("four tokens") && refused.contains("--fresh"), "{refused}");
    let stream = bus.nats().unwrap().jetstream.get_stream(EVENTS_STREAM).await.unwrap();
    assert_eq!((&stream.cached_info().config, stream.cached_info().state.messages), (&config, 1));
}

#[tokio::test]
async fn the_log_keeps_the_partitions_that_it_was_made_with() {
    let server = Server::start().await;
    let made = server.bus().await.log_identity().unwrap().clone();
    let nats = NatsConfig { partitions: 7, ..login::config(&server.nats.operator()) };
    let other = Bus::connect(Service::Gateway, agent("other"), &nats, &BusConfig::default()).await.unwrap();
    other.provision().await.unwrap();
    assert_eq!(other.log_identity().unwrap(), &made);
}

fn decision(owner: &Name, events: Vec<Event>) -> OutgoingEvent {
    let events = events.into_iter().map(|event| DecidedEvent { event: Some(event), ..Default::default() });
    let envelope = Envelope::from_outside(ids::generate(), Service::AgentRuntime, Origin::Internal, Timestamp::now());
    let body = AgentDecision { events: events.collect(), ..Default::default() };
    OutgoingEvent::new(&AGENT_DECISION, owner, envelope, body)
}

fn scheduled(task: Uuid, at: Timestamp) -> Event {
    let (task_id, kind, next_at) = (task.to_string(), "scheduled".to_owned(), at.to_string());
    let task = Task { task_id, kind, next_at, occurrence: 1, ..Default::default() };
    Event::TaskScheduled(TaskScheduled { task: Some(task) })
}

fn changed(task: Uuid, status: &str) -> Event {
    let (task_id, status) = (task.to_string(), status.to_owned());
    Event::TaskChanged(TaskChanged { task_id, status, ..Default::default() })
}

/// Waits until the effects of this decision are there.
async fn dealt_with(bus: &Bus, sequence: u64) {
    let stream = bus.nats().unwrap().jetstream.get_stream_no_info(EVENTS_STREAM).await.unwrap();
    let floor = async || {
        let info = stream.consumer_info(Consumer::AgentRuntimeEffects.name()).await;
        info.unwrap().ack_floor.stream_sequence
    };
    let dealt_with = async {
        // The server does not say when: asking is all there is.
        while floor().await < sequence {}
    };
    tokio::time::timeout(DEADLINE, dealt_with).await.expect("the effects never came");
}

#[tokio::test]
async fn a_decision_sets_timers_and_takes_them_back() {
    let server = Server::start().await;
    let bus = server.bus().await;
    let shutdown = CancellationToken::new();
    let effects = Arc::new(Effects::new(&bus));
    let (driven, stop) = (bus.clone(), shutdown.clone());
    let running = tokio::spawn(async move { consume(&driven, Consumer::AgentRuntimeEffects, effects, stop).await });
    let (a, [kept, canceled]) = (agent("a"), [(); 2].map(|()| ids::generate()));
    let at = soon(3_000);
    let both = decision(&a, vec![scheduled(kept, at), scheduled(canceled, at)]);
    let first = bus.append(&both, 0).await.unwrap();
    // A decision that is dealt with before the one before it takes nothing back; the agent then knows better.
    dealt_with(&bus, first.sequence).await;
    let second = decision(&a, vec![changed(canceled, "canceled")]);
    bus.append(&second, first.sequence).await.unwrap();
    assert_eq!(tasks(&due_by(&bus, at).await), [(kept, 1)]);
    shutdown.cancel();
    running.await.unwrap();
}
