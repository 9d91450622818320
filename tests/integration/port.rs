//! The port of the bus, on a real nats-server: what the services take for granted of it, and the simulation's server
//! imitates.

use std::time::Duration;

use async_nats::jetstream::stream::{Config, DiscardPolicy};
use futures::{TryStreamExt, future::join_all};
use kairo_core::{
    bus::{
        Bus, BusConfig, NatsConfig,
        port::{Headers, OutgoingMessage, ReadSource, StoreError, StreamStore, StreamTail, TailStart},
    },
    ids::Name,
    subjects::{EVENTS_STREAM, Service},
};
use kairo_local::{Login, NatsServer, Tools};

use kairo_tests::login;

use crate::{bus::Server, world::cluster};

const STREAM: &str = "SMALL";
/// The request timeout of an impatient client.
const ANSWER: Duration = Duration::from_millis(100);
/// Asked for at once where a server has gone away.
const READERS: usize = 12;
/// The interval of the heartbeats by which the server tells a reader that nothing is lost.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// A stream of three messages that takes no more, besides those of Kairo.
async fn small(bus: &Bus) {
    let config = Config {
        name: STREAM.to_owned(),
        subjects: vec!["small.>".to_owned()],
        max_messages: 3,
        discard: DiscardPolicy::New,
        allow_direct: true,
        ..Default::default()
    };
    bus.nats().unwrap().jetstream.create_stream(config).await.unwrap();
}

fn message(subject: &str, text: &'static str) -> OutgoingMessage {
    OutgoingMessage::new(subject, Headers::new(), text)
}

#[tokio::test]
async fn refusals_are_told_apart() {
    let server = Server::start().await;
    let bus = server.bus().await;
    small(&bus).await;
    let nats = bus.nats().unwrap();
    let first = nats.publish(message("small.a", "1").with_guard(0).with_id("one")).await.unwrap();
    let again = nats.publish(message("small.a", "1").with_id("one")).await.unwrap();
    assert_eq!((again.sequence, again.duplicate), (first.sequence, true));
    let error = nats.publish(message("small.a", "2").with_guard(0)).await.unwrap_err();
    assert!(matches!(error, StoreError::WrongLastSequence), "{error}");
    for text in ["2", "3"] {
        nats.publish(message("small.a", text)).await.unwrap();
    }
    let error = nats.publish(message("small.a", "4")).await.unwrap_err();
    assert!(matches!(error, StoreError::Full(_)), "{error}");
    let error = nats.publish(OutgoingMessage::new("small.a", Headers::new(), vec![0; 9 << 20])).await.unwrap_err();
    assert!(matches!(error, StoreError::TooLarge), "{error}");
    let error = nats.publish(message("nowhere.a", "1")).await.unwrap_err();
    assert!(matches!(error, StoreError::NoStream), "{error}");
    let last = nats.last_message(STREAM, "small.*", ReadSource::Leader).await.unwrap();
    assert_eq!(last.unwrap().payload, "3", "of all that is named");
    for asked in [ReadSource::Any, ReadSource::Leader] {
        assert!(nats.last_message(STREAM, "small.b", asked).await.unwrap().is_none());
        assert!(nats.message_at(STREAM, 9, asked).await.unwrap().is_none());
        assert_eq!(nats.last_message(STREAM, "small.a", asked).await.unwrap().unwrap().payload, "3");
        assert_eq!(nats.message_at(STREAM, 2, asked).await.unwrap().unwrap().payload, "2");
        let error = nats.last_message("NOWHERE", "small.a", asked).await.unwrap_err();
        assert!(matches!(error, StoreError::NoStream), "{error}");
    }
}

#[tokio::test]
async fn the_last_of_each_subject_is_read_at_once_and_one_message_is_deleted() {
    let server = Server::start().await;
    let bus = server.bus().await;
    small(&bus).await;
    let nats = bus.nats().unwrap();
    for (subject, text) in [("small.a", "1"), ("small.b", "2"), ("small.a", "3")] {
        nats.publish(message(subject, text)).await.unwrap();
    }
    let mut last = nats.last_of_each(STREAM, &["small.a".to_owned(), "small.b".to_owned()]).await.unwrap();
    last.sort_by_key(|raw| raw.sequence);
    assert_eq!(last.iter().map(|raw| &raw.payload[..]).collect::<Vec<_>>(), [b"2", b"3"]);
    let all = nats.last_of_each(STREAM, &["small.>".to_owned()]).await.unwrap();
    let all: std::collections::BTreeSet<u64> = all.iter().map(|raw| raw.sequence).collect();
    assert_eq!(all, [2, 3].into(), "a wildcard names each subject once");
    assert!(nats.last_of_each(STREAM, &["nothing.>".to_owned()]).await.unwrap().is_empty());
    assert!(nats.delete_message(STREAM, 3).await.unwrap());
    assert!(!nats.delete_message(STREAM, 3).await.unwrap(), "it is gone");
    assert_eq!(nats.next_at_leader(STREAM, "small.a", 0).await.unwrap().unwrap().sequence, 1);
    assert!(nats.next_at_leader(STREAM, "small.a", 1).await.unwrap().is_none());
    let state = nats.stream_state(STREAM).await.unwrap();
    assert_eq!((state.first_sequence, state.last_sequence), (1, 3));
}

#[tokio::test]
async fn a_tail_says_what_was_there_and_goes_on() {
    let server = Server::start().await;
    let bus = server.bus().await;
    small(&bus).await;
    let nats = bus.nats().unwrap();
    for text in ["1", "2"] {
        nats.publish(message("small.a", text)).await.unwrap();
    }
    let mut whole = nats.tail_stream(STREAM, &["small.>".to_owned()], TailStart::After(0)).await.unwrap();
    let mut rest = nats.tail_stream(STREAM, &["small.a".to_owned()], TailStart::After(1)).await.unwrap();
    let mut newest = nats.tail_stream(STREAM, &["small.a".to_owned()], TailStart::LastOfEach).await.unwrap();
    assert_eq!((whole.pending(), rest.pending(), newest.pending()), (2, 1, 1));
    nats.publish(message("small.a", "3")).await.unwrap();
    assert_eq!(read(&mut *whole, 3).await, ["1", "2", "3"]);
    assert_eq!(read(&mut *rest, 2).await, ["2", "3"]);
    assert_eq!(read(&mut *newest, 2).await, ["2", "3"]);
}

#[tokio::test]
async fn a_reader_is_opened_once_however_long_the_server_takes() {
    let server = Server::start().await;
    let patient = server.bus().await;
    small(&patient).await;
    let request_timeout_ms = ANSWER.as_millis().try_into().unwrap();
    let hasty = NatsConfig { request_timeout_ms, ..login::config(&server.nats.operator()) };
    let instance = Name::parse("hasty").unwrap();
    let reading = Bus::connect(Service::Gateway, instance, &hasty, &BusConfig::default()).await.unwrap();
    server.nats.process().freeze();
    let opening = tokio::spawn(async move {
        reading
            .nats()
            .unwrap()
            .tail_stream(STREAM, &["small.>".to_owned()], TailStart::After(0))
            .await
            .map_err(|error| format!("{error:?}"))
    });
    // For several answers, each of which is given up.
    tokio::time::sleep(ANSWER * 5).await;
    server.nats.process().thaw();
    let mut tail = opening.await.unwrap().unwrap();
    patient.nats().unwrap().publish(message("small.a", "1")).await.unwrap();
    assert_eq!(read(&mut *tail, 1).await, ["1"]);
    let readers = readers(&patient).await;
    assert_eq!(readers.len(), 1, "{readers:?}");
}

#[tokio::test]
async fn a_reader_outlives_a_silence_of_the_server_and_ends_with_one_that_lost_it() {
    let mut server = Server::start().await;
    let bus = server.bus().await;
    small(&bus).await;
    let nats = bus.nats().unwrap();
    let mut tail = nats.tail_stream(STREAM, &["small.>".to_owned()], TailStart::After(0)).await.unwrap();
    let opened = readers(&bus).await;
    let reading = tokio::spawn(async move {
        let read = read(&mut *tail, 1).await;
        (tail, read)
    });
    server.nats.process().freeze();
    // For several heartbeats.
    tokio::time::sleep(HEARTBEAT * 5).await;
    server.nats.process().thaw();
    nats.publish(message("small.a", "1")).await.unwrap();
    let (mut tail, read) = reading.await.unwrap();
    assert_eq!((read, readers(&bus).await), (vec!["1".to_owned()], opened));
    server.nats.kill9().await.unwrap();
    server.nats.restart().await.unwrap();
    let error = tail.next_batch().await.unwrap_err();
    assert!(readers(&bus).await.is_empty(), "{error}");
}

#[tokio::test]
async fn readers_are_opened_although_one_of_three_servers_has_just_gone_away() {
    let (tools, folder) = (Tools::of_this_checkout().expect("run ./scripts/test"), tempfile::tempdir().unwrap());
    let mut first = tools.nats_in(folder.path().join("nats")).unwrap();
    let others = cluster::start(&tools, folder.path(), &mut first, 2).await;
    let first = NatsServer::start(first).await.unwrap();
    let url = [&first].into_iter().chain(&others).map(NatsServer::url).collect::<Vec<_>>().join(",");
    let operator = Login { url, ..first.operator() };
    cluster::found_each_other(&operator).await;
    let config = NatsConfig { replicas: 3, ..login::config(&operator) };
    let instance = Name::parse("reading").unwrap();
    let bus = Bus::connect(Service::Gateway, instance, &config, &BusConfig::default()).await.unwrap();
    bus.provision().await.unwrap();
    // Some of them are given to it.
    others[1].kill9().await.unwrap();
    let (nats, filter) = (bus.nats().unwrap(), ["kairo.>".to_owned()]);
    for opened in join_all((0..READERS).map(|_| nats.tail_stream(EVENTS_STREAM, &filter, TailStart::After(0)))).await {
        opened.unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Returns the names of the stream's consumers.
async fn readers(bus: &Bus) -> Vec<String> {
    let stream = bus.nats().unwrap().jetstream.get_stream_no_info(STREAM).await.unwrap();
    stream.consumer_names().try_collect().await.unwrap()
}

/// The bodies of the next messages.
async fn read(tail: &mut dyn StreamTail, count: usize) -> Vec<String> {
    let mut bodies = Vec::new();
    while bodies.len() < count {
        let batch = tail.next_batch().await.unwrap();
        bodies.extend(batch.iter().map(|raw| String::from_utf8_lossy(&raw.payload).into_owned()));
    }
    bodies
}
