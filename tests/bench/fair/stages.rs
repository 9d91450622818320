//! The stages of the others' waits: the times between the log entries of each of their turns.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use kairo_core::{bus::Bus, subjects::find_route};
use kairo_proto::{Body, v1::UserMessage};
use serde::Serialize;
use uuid::Uuid;

use crate::{Outcome, load::percentile, report::milliseconds};

/// From one message of a turn in the log to the next.
#[derive(Debug, Serialize)]
pub struct Stage {
    pub name: &'static str,
    pub p99_ms: f64,
    pub longest_ms: f64,
}

/// When what stood in the log of a turn.
#[derive(Default)]
struct Turn {
    said: Option<Timestamp>,
    told: Option<Timestamp>,
    decided: Option<Timestamp>,
}

/// Reads the turns of all agents but `flooded` that entered since `since`.
pub async fn read(bus: &Bus, flooded: &str, since: Timestamp) -> Outcome<Vec<Stage>> {
    let mut turns: BTreeMap<Uuid, Turn> = BTreeMap::new();
    let max_body = bus.limits.max_body_bytes;
    let each = |raw: kairo_core::record::RawMessage| {
        let stored = raw.stored;
        let Ok(record) = raw.read(max_body) else { return };
        let is_flood = find_route(&record.subject).is_some_and(|(_, owner)| owner.as_str() == flooded);
        if stored < since || is_flood {
            return;
        }
        let turn = record.envelope.correlation_id;
        if UserMessage::of(&record.body).is_some_and(|said| said.agent != flooded) {
            turns.entry(turn).or_default().said = Some(stored);
        } else if let Body::AgentMessage(_) = record.body {
            turns.entry(turn).or_default().told = Some(stored);
        } else if let Body::AgentDecision(_) = record.body {
            turns.entry(turn).or_default().decided = Some(stored);
        }
    };
    bus.read_all("kairo.>", 0, each).await?;
    let between = |from: fn(&Turn) -> Option<Timestamp>, to: fn(&Turn) -> Option<Timestamp>| {
        let waits = turns.values().filter_map(|turn| Duration::try_from(to(turn)?.duration_since(from(turn)?)).ok());
        let mut waits: Vec<Duration> = waits.collect();
        waits.sort_unstable();
        waits
    };
    let stages = [
        ("accepted to handed on", between(|turn| turn.said, |turn| turn.told)),
        ("handed on to decided", between(|turn| turn.told, |turn| turn.decided)),
    ];
    Ok(stages.into_iter().map(|(name, waits)| Stage::of(name, &waits)).collect())
}

impl Stage {
    fn of(name: &'static str, waits: &[Duration]) -> Self {
        let p99_ms = milliseconds(percentile(waits, 0.99));
        Self { name, p99_ms, longest_ms: waits.last().copied().map_or(0.0, milliseconds) }
    }
}
