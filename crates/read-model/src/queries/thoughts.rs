//! The thoughts of agents and their submodules, from the events of decisions.

use std::collections::{BTreeMap, BTreeSet};

use kairo_core::event_json::EventJson;
use kairo_proto::{
    time,
    v1::{self, AgentDecision, SubmoduleChanged, ThoughtRow, decided_event::Event},
    words::{SubmoduleFailure, ThoughtKind},
};
use serde_json::Value;

use super::{row_limit, to_bigint};
use crate::{
    MAX_ROWS, ReadError, ReadSnapshot,
    event_rows::{self, rendered},
    sql_values::{SqlKey, Time, U32, U64},
};

/// The thoughts to return; all conditions must hold.
#[derive(Clone, Debug, Default)]
pub struct ThoughtsQuery {
    pub agent: String,
    /// Only of this submodule.
    pub module: Option<String>,
    /// Those before this message of the log.
    pub before: Option<u64>,
    /// At most so many, and never more than [`MAX_ROWS`]; more only if several stand in one decision.
    pub limit: u32,
}

/// Events of thinking, the newest first, and what was spent on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThinkingEvents {
    pub events: Vec<EventJson>,
    /// Tokens that models read and wrote for each submodule in each decision, and the time taken, by sequence and
    /// name.
    pub spent: BTreeMap<(u64, String), [u64; 3]>,
    /// The value of `before` for the next page; none if there is no more.
    pub next_before: Option<u64>,
}

/// A submodule that was added or removed.
#[derive(Clone, Debug, PartialEq)]
pub struct SubmoduleChange {
    /// The position in the log.
    pub sequence: u64,
    pub change: SubmoduleChanged,
}

impl ReadSnapshot {
    /// The newest first. By index `events_of_thinking`.
    pub async fn thinking_events(&self, wanted: &ThoughtsQuery) -> Result<ThinkingEvents, ReadError> {
        let found = rendered!(
            "agent = $1 AND type IN ('kairo.agent.thought.v1', 'kairo.agent.submodule_asked.v1',
                 'kairo.agent.submodule_failed.v1', 'kairo.agent.broadcast.v1') AND sequence < $2
             ORDER BY sequence DESC FETCH FIRST ($3) ROWS WITH TIES",
            SqlKey::from(wanted.agent.as_str()) as _,
            to_bigint(wanted.before.unwrap_or(u64::MAX)),
            row_limit(wanted.limit)
        );
        let mut found = found.fetch_all(&mut **self.connection().await).await?;
        found.sort_by(|one, other| (other.sequence, one.position).cmp(&(one.sequence, other.position)));
        let is_full = u32::try_from(found.len()).map_or(true, |found| found >= wanted.limit);
        let next_before = found.last().filter(|_| is_full).map(|last| last.sequence);
        let mut spent = BTreeMap::new();
        let mut read = BTreeSet::new();
        for row in found.iter().filter(|row| read.insert(row.sequence)) {
            let record = event_rows::to_record(row);
            let decision = record.as_ref().and_then(|record| AgentDecision::of(&record.body));
            for completion in decision.map_or(&[][..], |decision| &decision.completions) {
                let of: &mut [u64; 3] = spent.entry((row.sequence, completion.module.clone())).or_default();
                let took = [completion.input_tokens, completion.output_tokens, completion.latency_ms.into()];
                of.iter_mut().zip(took).for_each(|(sum, took)| *sum = sum.saturating_add(took));
            }
        }
        Ok(ThinkingEvents { events: event_rows::to_events(found), spent, next_before })
    }

    /// In the order of the log, the last [`MAX_ROWS`] of them. By index `events_of_submodules`.
    pub async fn submodule_changes(&self, agent: &str) -> Result<Vec<SubmoduleChange>, ReadError> {
        let found = rendered!(
            "agent = $1 AND type = 'kairo.agent.submodule_changed.v1' ORDER BY sequence DESC, position DESC LIMIT $2",
            SqlKey::from(agent) as _,
            row_limit(MAX_ROWS)
        );
        let mut found = found.fetch_all(&mut **self.connection().await).await?;
        found.reverse();
        let change = |row: &event_rows::EventMessageRow| {
            let record = event_rows::to_record(row)?;
            let events = &AgentDecision::of(&record.body)?.events;
            let at = usize::try_from(row.position).ok()?;
            let Some(Event::SubmoduleChanged(change)) = &events.get(at)?.event else { return None };
            Some(SubmoduleChange { sequence: row.sequence, change: change.clone() })
        };
        Ok(found.iter().filter_map(change).collect())
    }
}

/// Events of thinking as rows, of all or of one submodule.
pub fn thought_rows(thinking: &ThinkingEvents, module: Option<&str>) -> Vec<ThoughtRow> {
    let mut told = BTreeSet::new();
    let row = |event: &EventJson| {
        let text = |field: &str| event.payload.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let kind = match event.type_name.as_str() {
            v1::AgentThought::TYPE if event.payload.get("for_next") == Some(&Value::Bool(true)) => ThoughtKind::Left,
            v1::AgentThought::TYPE => ThoughtKind::Thought,
            v1::SubmoduleAsked::TYPE => ThoughtKind::Asked,
            v1::SubmoduleFailed::TYPE if text("kind") == SubmoduleFailure::Late.as_str() => ThoughtKind::Late,
            v1::SubmoduleFailed::TYPE => ThoughtKind::Failed,
            v1::AgentBroadcast::TYPE => ThoughtKind::Broadcast,
            _ => return None,
        };
        let of = text("module");
        if module.is_some_and(|wanted| wanted != of) {
            return None;
        }
        let said = match kind {
            ThoughtKind::Asked => text("question"),
            ThoughtKind::Late | ThoughtKind::Failed => text("message"),
            _ => event.text().to_owned(),
        };
        // What was spent is told once for each of a decision, with what came of it.
        let place = (event.sequence, of.clone());
        let is_outcome = !matches!(kind, ThoughtKind::Asked | ThoughtKind::Broadcast);
        let spent = thinking.spent.get(&place).filter(|_| is_outcome && told.insert(place.clone()));
        let [input_tokens, output_tokens, latency_ms] = spent.copied().unwrap_or_default();
        Some(ThoughtRow {
            event_id: event.event_id.to_string(),
            sequence: event.sequence,
            at: Some(time::message(event.ts)),
            turn_id: event.correlation_id.to_string(),
            thread_id: event.thread_id.clone(),
            kind: kind.text(),
            module: Some(of).filter(|of| !of.is_empty()),
            text: said,
            input_tokens,
            output_tokens,
            latency_ms,
        })
    };
    thinking.events.iter().filter_map(row).collect()
}
