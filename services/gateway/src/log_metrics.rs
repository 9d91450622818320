//! Metrics from JetStream and Postgres. They are queried at intervals, never while a message is handled or `/metrics`
//! is scraped. Values that are unknown at the moment are left out.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use kairo_core::{
    bus::log_room::LogRoom,
    metrics::{
        Metrics, ValueSink,
        table::{
            CONSENT_WAITING, CONSUMER_LAG, CONSUMER_UNACKNOWLEDGED, DEAD_LETTERS, LOG_LIMIT, LOG_MESSAGES, LOG_SIZE,
            Metric, OLDEST_WAIT, PROJECTION_LAG,
        },
    },
};
use kairo_proto::{time, v1::WaitRow, words::WaitReason};
use tokio::time::MissedTickBehavior;

use crate::{
    http::{query, status},
    log_state,
    state::Gateway,
};

/// The latest reading; none before the first one and while readings fail.
#[derive(Clone, Default)]
struct LatestReading(Arc<Mutex<Option<LogReading>>>);

struct LogReading {
    bytes: u64,
    limit: Option<u64>,
    last_sequence: u64,
    dead_letters: u64,
    /// The name of each consumer, with its pending and its unacknowledged messages.
    consumers: Vec<(String, u64, u64)>,
    lag: Option<u64>,
    /// The work that waits, and seconds that the oldest of it has waited.
    waits: Option<Vec<(WaitRow, f64)>>,
}

/// The reasons to wait that the read model knows.
const REASONS: [WaitReason; 4] = [WaitReason::Consent, WaitReason::Choice, WaitReason::Runner, WaitReason::Tool];

/// Takes readings at intervals until the gateway stops.
pub async fn run(gateway: Gateway) {
    let latest = LatestReading::default();
    latest.observe_all(&gateway.bus.metrics);
    let mut looks = tokio::time::interval(Duration::from_millis(gateway.config.metrics_interval_ms));
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut room = LogRoom::default();
    while gateway.shutdown.run_until_cancelled(looks.tick()).await.is_some() {
        let found = gateway.shutdown.run_until_cancelled(take_reading(&gateway)).await;
        let Some(found) = found else { return };
        let found = found.inspect_err(|error| tracing::debug!(%error, "the state of the log is not known")).ok();
        if let Some(reading) = &found {
            room = log_room_change(room, LogRoom::from_usage(reading.bytes, reading.limit));
        }
        *latest.0.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }
}

/// Logs once that the log has reached a mark of its size limit, or has room again.
fn log_room_change(before: LogRoom, now: LogRoom) -> LogRoom {
    match now {
        _ if !now.is_different_level(before) => {}
        LogRoom::Enough => tracing::info!("the log has room again"),
        LogRoom::Filling(_) | LogRoom::AlmostFull(_) => tracing::warn!("{now}; see docs/retention.md"),
    }
    now
}

async fn take_reading(gateway: &Gateway) -> Result<LogReading, async_nats::Error> {
    let nats = gateway.bus.nats()?;
    let limit = Duration::from_millis(gateway.config.query_timeout_ms);
    let log = tokio::time::timeout(limit, log_state::fetch_log_state(nats));
    // Nobody waits for it: on a busy machine connecting alone may take longer than an answer can do without it.
    let position = query::lookup_within(limit, gateway.read_model.position());
    let waits = query::lookup_within(limit, status::read_waits(&gateway.read_model));
    let (log, position, waits) = tokio::join!(log, position, waits);
    let log = log??;
    Ok(LogReading {
        bytes: log.events.bytes,
        limit: log.size_limit(&gateway.config),
        last_sequence: log.events.last_sequence,
        dead_letters: log.dead_letters,
        consumers: log
            .consumers
            .into_iter()
            .map(|info| (info.name, info.num_pending, info.num_ack_pending as u64))
            .collect(),
        lag: position.map(|position| log.events.last_sequence.saturating_sub(position)),
        waits: waits.map(|waits| waits.into_iter().map(|wait| with_wait_seconds(wait, gateway.bus.now())).collect()),
    })
}

fn with_wait_seconds(wait: WaitRow, now: Timestamp) -> (WaitRow, f64) {
    let since = wait.since.as_ref().and_then(time::read);
    let seconds = since.map_or(0.0, |since| now.duration_since(since).as_secs_f64().max(0.0));
    (wait, seconds)
}

impl LogReading {
    /// Returns the work that waits for a reason, and seconds that the oldest of it has waited; zeros if nothing does.
    fn waits_for(&self, reason: &WaitReason) -> Option<(u64, f64)> {
        let waits = self.waits.as_ref()?;
        let wait = waits.iter().find(|(wait, _)| wait.waits_for_word() == *reason);
        Some(wait.map_or((0, 0.0), |(wait, seconds)| (wait.count, *seconds)))
    }
}

impl LatestReading {
    fn observe_all(&self, metrics: &Metrics) {
        self.observe_metric(metrics, &LOG_SIZE, |reading, say| say(reading.bytes as f64, &[]));
        self.observe_metric(metrics, &LOG_MESSAGES, |reading, say| say(reading.last_sequence as f64, &[]));
        self.observe_metric(metrics, &DEAD_LETTERS, |reading, say| say(reading.dead_letters as f64, &[]));
        self.observe_known(metrics, &LOG_LIMIT, |reading| reading.limit);
        self.observe_known(metrics, &PROJECTION_LAG, |reading| reading.lag);
        self.observe_known(metrics, &CONSENT_WAITING, |reading| Some(reading.waits_for(&WaitReason::Consent)?.0));
        self.observe_metric(metrics, &OLDEST_WAIT, |reading, say| {
            for reason in &REASONS {
                if let Some((_, seconds)) = reading.waits_for(reason) {
                    say(seconds, &[reason.known_word()]);
                }
            }
        });
        self.observe_metric(metrics, &CONSUMER_LAG, |reading, say| {
            reading.consumers.iter().for_each(|(name, pending, _)| say(*pending as f64, &[name]));
        });
        self.observe_metric(metrics, &CONSUMER_UNACKNOWLEDGED, |reading, say| {
            reading.consumers.iter().for_each(|(name, _, unacknowledged)| say(*unacknowledged as f64, &[name]));
        });
    }

    fn observe_known(&self, metrics: &Metrics, metric: &'static Metric, known: fn(&LogReading) -> Option<u64>) {
        self.observe_metric(metrics, metric, move |reading, say| {
            if let Some(value) = known(reading) {
                say(value as f64, &[]);
            }
        });
    }

    fn observe_metric(
        &self,
        metrics: &Metrics,
        metric: &'static Metric,
        values: impl Fn(&LogReading, ValueSink<'_>) + Send + Sync + 'static,
    ) {
        let latest = self.clone();
        metrics.observe(metric, move |say| {
            if let Some(reading) = &*latest.0.lock().unwrap_or_else(PoisonError::into_inner) {
                values(reading, say);
            }
        });
    }
}
