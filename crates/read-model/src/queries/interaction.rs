//! A turn as steps: what was planned, done and made of it, from the events of its correlation.

mod progress;
mod step_builder;
mod steps;
mod surroundings;

use std::collections::BTreeMap;

use kairo_core::event_json::EventJson;
use kairo_proto::v1::{self, AgentDecision};
use uuid::Uuid;

use super::row_limit;
use crate::{
    MAX_ROWS, ReadError, ReadSnapshot,
    event_rows::{self, rendered},
    sql_values::{Time, U32, U64},
};

pub use progress::TurnProgress;
pub use steps::build_interaction;

/// Events that report the progress of a turn, but not its actions.
const ON_THE_WAY: &[&str] = &[v1::ToolInvoke::TYPE, v1::ToolProgress::TYPE, v1::ProcessProgress::TYPE];

/// The events of a turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnEvents {
    /// In the order of the log.
    pub events: Vec<EventJson>,
    /// Tokens that models read and wrote for each decision, by its sequence.
    pub tokens: BTreeMap<u64, (u64, u64)>,
    /// True if there are more events than one query reads.
    pub more: bool,
}

impl ReadSnapshot {
    /// Its first [`MAX_ROWS`] events. By index `events_of_chain`.
    pub async fn turn_events(&self, turn: Uuid) -> Result<TurnEvents, ReadError> {
        let rows = rendered!(
            "correlation_id = $1 AND type <> ALL($2) ORDER BY sequence, position LIMIT $3",
            turn,
            ON_THE_WAY as _,
            row_limit(MAX_ROWS)
        );
        let rows = rows.fetch_all(&mut **self.connection().await).await?;
        let more = u32::try_from(rows.len()).is_ok_and(|rows| rows >= MAX_ROWS);
        let mut tokens = BTreeMap::new();
        for row in &rows {
            if tokens.contains_key(&row.sequence) || !row.subject.ends_with(".decision") {
                continue;
            }
            let record = event_rows::to_record(row);
            let decision = record.as_ref().and_then(|record| AgentDecision::of(&record.body));
            let completions = decision.map_or(&[][..], |decision| &decision.completions);
            let sum = completions.iter().fold((0_u64, 0_u64), |(read, written), completion| {
                (read.saturating_add(completion.input_tokens), written.saturating_add(completion.output_tokens))
            });
            tokens.insert(row.sequence, sum);
        }
        Ok(TurnEvents { events: event_rows::to_events(rows), tokens, more })
    }
}
