//! Events of other systems reach the agents whose tasks wait for them, against a real nats-server.

use std::{collections::BTreeSet, sync::Arc};

use async_nats::HeaderMap;
use futures::{FutureExt, StreamExt};
use jiff::Timestamp;
use kairo_agent_runtime::effects::Effects;
use kairo_core::{
    bus::{
        Bus,
        append::OutgoingEvent,
        consume::{consume, consume_raw},
    },
    envelope::{Envelope, Origin},
    ids,
    record::Record,
    subjects::{AGENT_DECISION, Consumer, DLQ_STREAM, Service, TASK_TRIGGERED},
};
use kairo_proto::{
    Body, ContentType,
    v1::{
        AgentDecision, DeadLetter, DecidedEvent, Task, TaskChanged, TaskScheduled, TaskTriggered, decided_event::Event,
    },
};
use kairo_router::{
    events::{self, OutsideEventHandler},
    missed_events::MissedEventHandler,
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    bus::Server,
    world::{DEADLINE, agent},
};

/// A router and an agent-runtime as far as they have to do with other systems.
struct Outside {
    server: Server,
    bus: Bus,
    shutdown: CancellationToken,
    running: Vec<JoinHandle<()>>,
    /// The consumers whose deliveries are handled.
    consumers: Vec<Consumer>,
}

impl Outside {
    async fn start() -> Self {
        let server = Server::start().await;
        let bus = server.bus().await;
        Self { server, bus, shutdown: CancellationToken::new(), running: Vec::new(), consumers: Vec::new() }
    }

    fn run_router(&mut self) {
        let (bus, events, stop) =
            (self.bus.clone(), Arc::new(OutsideEventHandler::new(&self.bus)), self.shutdown.clone());
        let run = async move { consume_raw(&bus, Consumer::RouterEvents, events, stop).await };
        self.running.push(tokio::spawn(run));
        self.consumers.push(Consumer::RouterEvents);
        self.run_missed();
    }

    fn run_missed(&mut self) {
        let (bus, missed, stop) =
            (self.bus.clone(), Arc::new(MissedEventHandler::new(&self.bus)), self.shutdown.clone());
        let run = async move { consume_raw(&bus, Consumer::RouterHooks, missed, stop).await };
        self.running.push(tokio::spawn(run));
        self.consumers.push(Consumer::RouterHooks);
    }

    fn run_effects(&mut self) {
        let (bus, effects, stop) = (self.bus.clone(), Arc::new(Effects::new(&self.bus)), self.shutdown.clone());
        let run = async move { consume(&bus, Consumer::AgentRuntimeEffects, effects, stop).await };
        self.running.push(tokio::spawn(run));
        // First: what comes to rest after it has seen all its effects.
        self.consumers.insert(0, Consumer::AgentRuntimeEffects);
    }

    /// Has an agent decide this.
    async fn decide(&self, owner: &str, events: impl IntoIterator<Item = Event>) {
        let owner = agent(owner);
        let events = events.into_iter().map(|event| DecidedEvent { event: Some(event), ..Default::default() });
        let envelope =
            Envelope::from_outside(ids::generate(), Service::AgentRuntime, Origin::Internal, Timestamp::now());
        let body = AgentDecision { events: events.collect(), ..Default::default() };
        let last =
            self.bus.last_message(&AGENT_DECISION.of_owner(&owner)).await.unwrap().map_or(0, |last| last.sequence);
        self.bus.append(&OutgoingEvent::new(&AGENT_DECISION, &owner, envelope, body), last).await.unwrap();
    }

    async fn publish(&self, subject: &str, headers: &[(&str, &str)], body: impl ToString) {
        let mut map = HeaderMap::new();
        headers.iter().for_each(|(name, value)| map.insert(*name, *value));
        let published = self.bus.nats().unwrap().jetstream.publish_with_headers(
            subject.to_owned(),
            map,
            body.to_string().into_bytes().into(),
        );
        published.await.unwrap().await.unwrap();
    }

    /// Waits until all that runs has dealt with all there is.
    async fn at_rest(&self) {
        for consumer in &self.consumers {
            let at_rest = async {
                let stream = self.bus.nats().unwrap().jetstream.get_stream_no_info(consumer.stream()).await.unwrap();
                let mut last = 0;
                for filter in consumer.filters() {
                    let newest = stream.get_last_raw_message_by_subject(&filter).await;
                    last = last.max(newest.map_or(0, |newest| newest.sequence));
                }
                loop {
                    let info = stream.consumer_info(consumer.name()).await.unwrap();
                    // What was written just now may not be pending yet.
                    let reached = info.delivered.stream_sequence >= last;
                    if reached && info.num_pending == 0 && info.num_ack_pending == 0 {
                        return;
                    }
                }
            };
            let rests = tokio::time::timeout(DEADLINE, at_rest).await;
            assert!(rests.is_ok(), "{} never came to rest", consumer.name());
        }
    }

    /// Returns the triggers sent to agents, once all running consumers have handled everything.
    async fn told(&self) -> Vec<(Record, TaskTriggered)> {
        self.at_rest().await;
        let mut told = Vec::new();
        let filter = TASK_TRIGGERED.stored_filter();
        let read = self.bus.read_all(&filter, 0, |raw| {
            let record = raw.read(1 << 20).unwrap();
            let Body::TaskTriggered(body) = record.body.clone() else { panic!("{record:?}") };
            told.push((record, body));
        });
        read.await.unwrap();
        told
    }

    async fn dead_letters(&self) -> Vec<DeadLetter> {
        let stream = self.bus.nats().unwrap().jetstream.get_stream(DLQ_STREAM).await.unwrap();
        let mut letters = Vec::new();
        for sequence in 1..=stream.cached_info().state.last_sequence {
            let message = stream.direct_get(sequence).await.unwrap();
            let body = Body::decode(DeadLetter::TYPE, ContentType::Protobuf, &message.payload).unwrap();
            letters.push(DeadLetter::try_from(body).unwrap());
        }
        letters
    }

    /// Ends the router and agent-runtime.
    async fn end_what_runs(&mut self) {
        std::mem::take(&mut self.shutdown).cancel();
        for running in self.running.drain(..) {
            running.await.unwrap();
        }
        self.consumers.clear();
    }

    async fn end(mut self) {
        self.end_what_runs().await;
        drop(self.server);
    }
}

fn hook(task: Uuid, trigger: &str) -> Event {
    let task = Task { task_id: task.to_string(), kind: "hook".into(), trigger: trigger.into(), ..Default::default() };
    Event::TaskScheduled(TaskScheduled { task: Some(task) })
}

fn changed(task: Uuid, status: &str) -> Event {
    Event::TaskChanged(TaskChanged { task_id: task.to_string(), status: status.into(), ..Default::default() })
}

fn agents(told: &[(Record, TaskTriggered)]) -> BTreeSet<&str> {
    told.iter().map(|(record, _)| record.subject.as_str()).collect()
}

#[tokio::test]
async fn each_agent_that_waits_is_told_once_in_whatever_form_it_is_said() {
    let mut outside = Outside::start().await;
    outside.run_router();
    let first = ids::generate();
    let waiting = [hook(first, "post:github.push"), hook(ids::generate(), "post:github.push")];
    outside.decide("a", waiting).await;
    outside.decide("b", [hook(ids::generate(), "post:github.push")]).await;
    outside.decide("c", [hook(ids::generate(), "post:gitlab.push")]).await;
    // It happens before anybody has registered what was decided.
    let (id, data) = (ids::generate(), json!({"ref": "main"}));
    let binary = [
        ("ce-specversion", "1.0"),
        ("ce-id", &id.to_string()),
        ("ce-source", "/github"),
        ("ce-type", "com.github.push"),
        ("content-type", "application/json"),
    ];
    outside.publish("kairo.system.github.push", &binary, &data).await;
    outside.publish("kairo.system.github.push", &binary, &data).await;
    let structured = json!({"specversion": "1.0", "id": "7", "source": "/github", "type": "t", "data": [1]});
    outside.publish("kairo.system.github.push", &[("Content-Type", "application/cloudevents+json")], structured).await;
    outside.publish("kairo.system.github.push", &[], "true").await;
    outside.publish("kairo.system.github.star", &[], "{}").await;
    outside.run_effects();
    let told = outside.told().await;
    assert_eq!(agents(&told), ["kairo.task.a.triggered", "kairo.task.b.triggered"].into());
    assert_eq!(told.len(), 6, "{told:?}");
    let first = ids::derive(id, "task.triggered/a");
    let (record, body) = told.iter().find(|(record, _)| record.envelope.id == first).unwrap();
    assert_eq!((record.envelope.correlation_id, record.envelope.causation_id), (id, Some(id)));
    let expected = TaskTriggered {
        trigger: "github.push".into(),
        event_id: id.to_string(),
        r#type: "com.github.push".into(),
        data: data.to_string(),
        outside: vec!["system:github".into()],
    };
    assert_eq!(body, &expected);
    let data: BTreeSet<String> = told.iter().map(|(_, body)| body.data.clone()).collect();
    assert_eq!(data, [r#"{"ref":"main"}"#, r#"{"value":[1]}"#, r#"{"value":true}"#].map(str::to_owned).into());
    assert!(outside.dead_letters().await.is_empty());
    outside.end().await;
}

#[tokio::test]
async fn a_task_that_rests_or_is_over_is_told_nothing_until_it_waits_again() {
    let mut outside = Outside::start().await;
    let [rests, over] = [(); 2].map(|()| ids::generate());
    outside.decide("a", [hook(rests, "post:github.push")]).await;
    outside.decide("b", [hook(over, "post:github.push")]).await;
    outside.decide("a", [changed(rests, "paused")]).await;
    outside.decide("b", [changed(over, "canceled")]).await;
    outside.run_effects();
    outside.run_router();
    // An agent that was told meanwhile would not heed it; once it is registered it is not even told.
    outside.at_rest().await;
    outside.publish("kairo.system.github.push", &[], "1").await;
    assert_eq!(outside.told().await, []);
    outside.decide("a", [changed(rests, "active")]).await;
    outside.publish("kairo.system.github.push", &[], "2").await;
    let told = outside.told().await;
    assert_eq!((agents(&told), told.len()), (["kairo.task.a.triggered"].into(), 1));
    outside.end().await;
}

#[tokio::test]
async fn an_effect_that_is_stuck_holds_up_nobody_else_and_what_its_task_missed_is_told() {
    let mut outside = Outside::start().await;
    outside.decide("a", [hook(ids::generate(), "post:github.push")]).await;
    outside.run_effects();
    outside.at_rest().await;
    outside.end_what_runs().await;

    let asked = format!("$JS.API.CONSUMER.INFO.*.{}", Consumer::AgentRuntimeEffects.name());
    let mut asked = outside.bus.nats().unwrap().client.subscribe(asked).await.unwrap();
    outside.run_router();
    outside.publish("kairo.system.github.push", &[], "0").await;
    // Nobody registers what z decides now.
    outside.decide("z", [hook(ids::generate(), "post:github.push")]).await;
    for number in 1..=600 {
        outside.publish("kairo.system.github.push", &[], number).await;
    }
    let told = outside.told().await;
    assert_eq!((agents(&told), told.len()), (["kairo.task.a.triggered"].into(), 601));
    outside.bus.nats().unwrap().client.flush().await.unwrap();
    assert!(asked.next().now_or_never().is_none(), "how far effects are was asked for");

    outside.run_effects();
    let told = outside.told().await;
    assert_eq!(agents(&told), ["kairo.task.a.triggered", "kairo.task.z.triggered"].into());
    let of_z = told.iter().filter(|(record, _)| record.subject == "kairo.task.z.triggered");
    let of_z: BTreeSet<&str> = of_z.map(|(_, body)| body.data.as_str()).collect();
    assert!(!of_z.contains(r#"{"value":0}"#), "before it waited");
    assert_eq!((of_z.len(), told.len()), (600, 1201), "each once");
    assert!(outside.dead_letters().await.is_empty());
    outside.end().await;
}

#[tokio::test]
async fn a_registration_that_is_made_again_brings_up_nothing_that_was_told() {
    let mut outside = Outside::start().await;
    outside.decide("a", [hook(ids::generate(), "post:github.push")]).await;
    for number in 1..=2 {
        outside.publish("kairo.system.github.push", &[], number).await;
    }
    // Told so long ago that the server does not know the id any more.
    let happened = outside.bus.last_message("kairo.system.github.push").await.unwrap().unwrap();
    let read = events::read_event(&happened, "github.push", 1 << 20).unwrap();
    let told = events::triggered_event(&happened, "github.push", &read, &agent("a"), Timestamp::now());
    outside.bus.append(&told, 0).await.unwrap();
    outside.run_effects();
    outside.run_missed();
    let told: Vec<String> = outside.told().await.into_iter().map(|(_, body)| body.data).collect();
    assert_eq!(told, [r#"{"value":2}"#, r#"{"value":1}"#]);
    outside.end().await;
}

#[tokio::test]
async fn what_cannot_be_read_is_set_aside_and_blocks_nothing() {
    let mut outside = Outside::start().await;
    outside.run_effects();
    outside.run_router();
    outside.decide("a", [hook(ids::generate(), "post:github.push")]).await;
    outside.publish("kairo.system.github.push", &[], "{\"ref\":").await;
    outside.publish("kairo.system.github.push", &[("ce-id", "1")], "{}").await;
    outside.publish("kairo.system.github.push", &[], Value::from("x".repeat(600_000))).await;
    outside.publish("kairo.system.GitHub.push", &[], "{}").await;
    outside.publish("kairo.system.github.push.more", &[], "{}").await;
    outside.publish("kairo.system.tool-runner.catalogue", &[], "not Kairo's, but not ours to judge").await;
    outside.publish("kairo.system.github.push", &[], "{}").await;
    assert_eq!(outside.told().await.len(), 1);
    let mut letters = outside.dead_letters().await;
    letters.sort_by_key(|letter| letter.sequence);
    let reasons: Vec<(&str, &str)> =
        letters.iter().map(|letter| (letter.consumer.as_str(), letter.reason.as_str())).collect();
    let expected = [
        "body: expected JSON",
        "header ce-specversion: expected a text",
        "body of 600002 bytes is larger",
        "subject: expected kairo.system.<source>.<verb>",
        "subject: expected kairo.system.<source>.<verb>",
    ];
    assert_eq!(reasons.len(), expected.len(), "{reasons:?}");
    for ((consumer, reason), expected) in reasons.into_iter().zip(expected) {
        assert!(consumer == "router-events" && reason.starts_with(expected), "{consumer}: {reason}");
    }
    outside.end().await;
}
