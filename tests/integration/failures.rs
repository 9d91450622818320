//! The number of times a message may fail before it becomes a dead letter; and that a polite return is no failure.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_nats::jetstream::consumer::PullConsumer;
use futures::StreamExt;
use jiff::Timestamp;
use kairo_core::{
    bus::{
        Bus,
        append::OutgoingEvent,
        consume::{Delivery, DeliveryOutcome, Handler, HandlerFailure, consume},
        dead_letter_retry::DeadLetterRetrier,
    },
    envelope::{Envelope, Origin},
    ids,
    principal::Principal,
    subjects::{AGENT_DECISION, Consumer, DEAD_LETTER_RETRIED, DLQ_STREAM, Service},
};
use kairo_proto::{
    Body, ContentType,
    v1::{AgentDecision, DeadLetter, DeadLetterRetried, DeadLetterRetry},
};
use tokio::{sync::Notify, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    bus::Server,
    world::{DEADLINE, agent},
};

const CONSUMER: Consumer = Consumer::ToolRunner;

/// The outcome of one delivery.
#[derive(Clone, Copy)]
enum Outcome {
    Return,
    Fail,
    Deal,
}

use Outcome::{Deal, Fail, Return};

/// Deals with one message as it was told, delivery by delivery.
struct Scripted {
    script: Mutex<VecDeque<Outcome>>,
    over: Notify,
}

impl Handler for Scripted {
    async fn handle(&self, _delivery: &Delivery) -> Result<DeliveryOutcome, HandlerFailure> {
        let (next, left) = {
            let mut script = self.script.lock().unwrap();
            (script.pop_front().expect("it was given up"), script.len())
        };
        if left == 0 {
            self.over.notify_one();
        }
        match next {
            Return => Ok(DeliveryOutcome::Later(Duration::ZERO)),
            Fail => Err(HandlerFailure::Transient("on purpose".to_owned())),
            Deal => Ok(DeliveryOutcome::Done),
        }
    }
}

/// A replica that gives up after three failures, and would wait for hours after a few more.
async fn impatient(server: &Server) -> Bus {
    let mut bus = server.bus().await;
    bus.limits.max_attempts = 3;
    bus.limits.retry_first_ms = 1;
    bus.limits.retry_longest_ms = 100_000_000;
    bus
}

/// Delivers a message until the script is over and it was settled; how many dead letters there are then.
async fn deliver(bus: &Bus, script: Vec<Outcome>) -> u64 {
    let envelope = Envelope::from_outside(ids::generate(), Service::AgentRuntime, Origin::Internal, Timestamp::now());
    bus.publish(&OutgoingEvent::new(&AGENT_DECISION, &agent("a"), envelope, AgentDecision::default())).await.unwrap();
    let scripted = Arc::new(Scripted { script: Mutex::new(script.into()), over: Notify::new() });
    let shutdown = CancellationToken::new();
    let (consuming, handler, stop) = (bus.clone(), scripted.clone(), shutdown.clone());
    let running = tokio::spawn(async move { consume(&consuming, CONSUMER, handler, stop).await });
    timeout(DEADLINE, scripted.over.notified()).await.expect("it was not delivered as often as that");
    let stream = bus.nats().unwrap().jetstream.get_stream_no_info(CONSUMER.stream()).await.unwrap();
    let mut consumer: PullConsumer = stream.get_consumer(CONSUMER.name()).await.unwrap();
    let settled = async { while consumer.info().await.unwrap().num_ack_pending > 0 {} };
    timeout(DEADLINE, settled).await.expect("it was never settled");
    shutdown.cancel();
    running.await.unwrap();
    bus.nats().unwrap().jetstream.get_stream(DLQ_STREAM).await.unwrap().cached_info().state.messages
}

#[tokio::test]
async fn a_polite_return_is_no_failure_and_lengthens_no_delay() {
    let server = Server::start().await;
    let bus = impatient(&server).await;
    // After 40 deliveries the second failure would be tried again in a day, or never.
    let script = [vec![Return; 20], vec![Fail], vec![Return; 20], vec![Fail], vec![Deal]].concat();
    assert_eq!(deliver(&bus, script).await, 0);
}

#[tokio::test]
async fn what_fails_so_often_is_set_aside_whatever_comes_between() {
    let server = Server::start().await;
    let bus = impatient(&server).await;
    assert_eq!(deliver(&bus, vec![Fail, Return, Fail, Return, Return, Fail]).await, 1);
    // Another message has failures of its own.
    assert_eq!(deliver(&bus, vec![Fail, Fail, Deal]).await, 1);
}

#[tokio::test]
async fn what_was_set_aside_is_dealt_with_again_when_somebody_orders_it_and_once() {
    let server = Server::start().await;
    let bus = impatient(&server).await;
    assert_eq!(deliver(&bus, vec![Fail, Fail, Fail]).await, 1);
    let stream = bus.nats().unwrap().jetstream.get_stream_no_info(DLQ_STREAM).await.unwrap();
    let stored = stream.direct_get(1).await.unwrap();
    let body = Body::decode(DeadLetter::TYPE, ContentType::Protobuf, &stored.payload).unwrap();
    let DeadLetter { consumer, stream, sequence, .. } = DeadLetter::try_from(body).unwrap();

    // It fails once more, and is dealt with then. Whoever dealt with it a third time would find no script.
    let scripted = Arc::new(Scripted { script: Mutex::new([Fail, Deal].into()), over: Notify::new() });
    let retries = Arc::new(DeadLetterRetrier::new(&bus).with_handler(CONSUMER, scripted));
    let (consuming, shutdown) = (bus.clone(), CancellationToken::new());
    let stop = shutdown.clone();
    let running = tokio::spawn(async move { consume(&consuming, Consumer::ToolRunnerRetries, retries, stop).await });
    let mut told = bus.subscribe(DEAD_LETTER_RETRIED.filter()).await.unwrap();
    let mut order = async |order: DeadLetterRetry| {
        let id = bus.retry_dead_letter(&Principal::api_key("operator"), Service::ToolRunner, order).await.unwrap();
        let heard = timeout(DEADLINE, told.next()).await.expect("nobody tells what came of it").unwrap();
        let body = Body::decode(DeadLetterRetried::TYPE, ContentType::Protobuf, &heard.payload).unwrap();
        let DeadLetterRetried { letter, outcome, reason } = DeadLetterRetried::try_from(body).unwrap();
        assert_eq!(letter, 1);
        (id, outcome, reason)
    };
    let wanted = DeadLetterRetry { letter: 1, consumer, stream, sequence };
    let (_, outcome, reason) = order(wanted.clone()).await;
    assert_eq!((outcome.as_str(), reason.as_str()), ("failed", "on purpose"));
    let gone = DeadLetterRetry { sequence: 99, ..wanted.clone() };
    let (_, outcome, reason) = order(gone).await;
    assert!(outcome == "failed" && reason.contains("99"), "{outcome}: {reason}");
    let (id, outcome, reason) = order(wanted.clone()).await;
    assert_eq!((outcome.as_str(), reason.as_str()), ("handled", ""));
    let (_, outcome, reason) = order(wanted).await;
    assert!(outcome == "handled" && reason.contains(&id.to_string()), "{outcome}: {reason}");
    shutdown.cancel();
    running.await.unwrap();
}
