//! Metrics of what only JetStream and Postgres know: they are asked from time to time, never on the path of a message or by
//! whoever looks at `/metrics`. What is not known at the moment is left out.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kairo_core::{
    bus::room::Room,
    metrics::{
        Metrics, Values,
        table::{
            CONSENT_WAITING, CONSUMER_LAG, CONSUMER_UNACKNOWLEDGED, DEAD_LETTERS, LOG_LIMIT, LOG_MESSAGES, LOG_SIZE,
            Metric, PROJECTION_LAG,
        },
    },
};
use kairo_read_model::ReadError;
use tokio::time::MissedTickBehavior;

use crate::{http::query, log_state, state::Gateway};

/// What was found out last; nothing before the first time, and while it cannot be.
#[derive(Clone, Default)]
struct Latest(Arc<Mutex<Option<Reading>>>);

struct Reading {
    bytes: u64,
    limit: Option<u64>,
    last_sequence: u64,
    dead_letters: u64,
    /// Pending and unacknowledged, by the consumer's name.
    consumers: Vec<(String, u64, u64)>,
    lag: Option<u64>,
    consents: Option<u64>,
}

/// Asks until the gateway stops.
pub async fn run(gateway: Gateway) {
    let latest = Latest::default();
    latest.observe(&gateway.bus.metrics);
    let mut looks = tokio::time::interval(Duration::from_millis(gateway.config.metrics_interval_ms));
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut room = Room::default();
    while gateway.shutdown.run_until_cancelled(looks.tick()).await.is_some() {
        let found = gateway.shutdown.run_until_cancelled(look(&gateway)).await;
        let Some(found) = found else { return };
        let found = found.inspect_err(|error| tracing::debug!(%error, "the state of the log is not known")).ok();
        if let Some(reading) = &found {
            room = tell(room, Room::of(reading.bytes, reading.limit));
        }
        *latest.0.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }
}

/// Says once that the log has come to a mark, or has room again.
fn tell(before: Room, now: Room) -> Room {
    match now {
        _ if !now.is_another_mark(before) => {}
        Room::Enough => tracing::info!("the log has room again"),
        Room::Filling(_) | Room::AlmostFull(_) => tracing::warn!("{now}; see docs/retention.md"),
    }
    now
}

async fn look(gateway: &Gateway) -> Result<Reading, async_nats::Error> {
    let nats = gateway.bus.nats()?;
    let limit = Duration::from_millis(gateway.config.query_timeout_ms);
    let log = tokio::time::timeout(limit, log_state::ask(nats));
    // Nobody waits for it: on a busy machine connecting alone may take longer than an answer can do without it.
    let position = query::within(limit, gateway.read_model.position());
    let consents = query::within(limit, consents(gateway));
    let (log, position, consents) = tokio::join!(log, position, consents);
    let log = log??;
    Ok(Reading {
        bytes: log.events.bytes,
        limit: log.limit(&gateway.config),
        last_sequence: log.events.last_sequence,
        dead_letters: log.dead_letters,
        consumers: log
            .consumers
            .into_iter()
            .map(|info| (info.name, info.num_pending, info.num_ack_pending as u64))
            .collect(),
        lag: position.map(|position| log.events.last_sequence.saturating_sub(position)),
        consents,
    })
}

async fn consents(gateway: &Gateway) -> Result<u64, ReadError> {
    gateway.read_model.snapshot().await?.waiting_consents().await
}

impl Latest {
    fn observe(&self, metrics: &Metrics) {
        self.say(metrics, &LOG_SIZE, |reading, say| say(reading.bytes as f64, &[]));
        self.say(metrics, &LOG_MESSAGES, |reading, say| say(reading.last_sequence as f64, &[]));
        self.say(metrics, &DEAD_LETTERS, |reading, say| say(reading.dead_letters as f64, &[]));
        self.say_if_known(metrics, &LOG_LIMIT, |reading| reading.limit);
        self.say_if_known(metrics, &PROJECTION_LAG, |reading| reading.lag);
        self.say_if_known(metrics, &CONSENT_WAITING, |reading| reading.consents);
        self.say(metrics, &CONSUMER_LAG, |reading, say| {
            reading.consumers.iter().for_each(|(name, pending, _)| say(*pending as f64, &[name]));
        });
        self.say(metrics, &CONSUMER_UNACKNOWLEDGED, |reading, say| {
            reading.consumers.iter().for_each(|(name, _, unacknowledged)| say(*unacknowledged as f64, &[name]));
        });
    }

    fn say_if_known(&self, metrics: &Metrics, metric: &'static Metric, known: fn(&Reading) -> Option<u64>) {
        self.say(metrics, metric, move |reading, say| {
            if let Some(value) = known(reading) {
                say(value as f64, &[]);
            }
        });
    }

    fn say(
        &self,
        metrics: &Metrics,
        metric: &'static Metric,
        values: impl Fn(&Reading, Values<'_>) + Send + Sync + 'static,
    ) {
        let latest = self.clone();
        metrics.observe(metric, move |say| {
            if let Some(reading) = &*latest.0.lock().unwrap_or_else(PoisonError::into_inner) {
                values(reading, say);
            }
        });
    }
}
