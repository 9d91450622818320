//! The log as a test sees it: followed from its beginning, whatever happens to the server.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use futures::StreamExt;
use kairo_core::{
    bus::Bus,
    event_json::{self, EventJson},
    record::RawMessage,
    subjects::EVENTS_STREAM,
};
use tokio::sync::watch;

use super::DEADLINE;

const MAX_BODY: usize = 1_000_000;
/// A server that was killed has forgotten the follower, who notices when two of these do not come.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// The time for which the server keeps a follower that is gone.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// Every event so far, growing as it is written.
pub struct Log {
    events: Arc<Mutex<Vec<EventJson>>>,
    length: watch::Receiver<usize>,
    follower: tokio::task::JoinHandle<()>,
}

impl Log {
    pub fn follow(bus: &Bus) -> Self {
        let events = Arc::new(Mutex::new(Vec::new()));
        let (grown, length) = watch::channel(0);
        let (bus, all) = (bus.clone(), events.clone());
        let follower = tokio::spawn(async move {
            let mut after = 0;
            loop {
                // The server may be killed by the test: go on from where it was.
                let _ = read_on(&bus, &mut after, |raw| {
                    if let Ok(record) = raw.read(MAX_BODY) {
                        let mut all = all.lock().unwrap();
                        all.extend(event_json::events(&record));
                        grown.send_replace(all.len());
                    }
                })
                .await;
                tokio::task::yield_now().await;
            }
        });
        Self { events, length, follower }
    }

    /// The first event that fits, waiting for it.
    pub async fn wait(&self, fits: impl Fn(&EventJson) -> bool) -> EventJson {
        self.wait_for(1, fits).await.remove(0)
    }

    /// The first `count` events that fit, waiting for them.
    pub async fn wait_for(&self, count: usize, fits: impl Fn(&EventJson) -> bool) -> Vec<EventJson> {
        let mut length = self.length.clone();
        let found = async {
            loop {
                length.borrow_and_update();
                let found: Vec<_> = self.events.lock().unwrap().iter().filter(|event| fits(event)).cloned().collect();
                if found.len() >= count {
                    return found;
                }
                length.changed().await.unwrap();
            }
        };
        match tokio::time::timeout(DEADLINE, found).await {
            Ok(found) => found,
            Err(_) => panic!("{count} such events never came; the log holds:\n{}", self.text()),
        }
    }

    /// All events, read afresh from the log.
    pub async fn now(&self, bus: &Bus) -> Vec<EventJson> {
        let mut events = Vec::new();
        let read = bus.read_all("kairo.>", 0, |raw| {
            if let Ok(record) = raw.read(MAX_BODY) {
                events.extend(event_json::events(&record));
            }
        });
        read.await.unwrap();
        events
    }

    /// Returns the events seen so far, one line each.
    pub fn text(&self) -> String {
        let events = self.events.lock().unwrap();
        let line = |event: &EventJson| {
            format!("{:>5}.{} {} {} {}", event.sequence, event.position, event.subject, event.type_name, event.text())
        };
        events.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

async fn read_on(bus: &Bus, after: &mut u64, mut each: impl FnMut(RawMessage)) -> Result<(), async_nats::Error> {
    let stream = bus.nats().unwrap().jetstream.get_stream_no_info(EVENTS_STREAM).await?;
    let config = pull::Config {
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: *after + 1 },
        ack_policy: AckPolicy::None,
        memory_storage: true,
        inactive_threshold: FORGOTTEN_AFTER,
        ..Default::default()
    };
    let consumer = stream.create_consumer(config).await?;
    let mut messages = consumer.stream().heartbeat(HEARTBEAT).messages().await?;
    let mut arrived = 0;
    while let Some(message) = messages.next().await {
        let mut message = message?;
        arrived += 1;
        if message.info()?.consumer_sequence != arrived {
            return Err("a message was lost on its way".into());
        }
        let (raw, _) = RawMessage::from_delivery(&mut message)?;
        *after = raw.sequence;
        each(raw);
    }
    Ok(())
}
