//! The content of a user's exported pieces, as it is shown elsewhere.

use std::collections::HashMap;

use kairo_proto::{
    v1::{ExportedChoice, ExportedModelCall, ExportedRow, Json, OfferRow},
    words::ExportSection,
};
use sqlx::{query, types::Json as Column};
use uuid::Uuid;

use super::{ExportQuery, sources::ExportSource};
use crate::{
    ReadError, ReadSnapshot,
    output_columns::At,
    queries::inbox::shown,
    sql_values::{SqlKey, U64},
};

/// The JSON texts of emptied fields.
const EMPTIED: [&str; 3] = ["\"\"", "null", ""];

/// Rows by the id of their piece, each in the field of its section.
type RowsById = HashMap<String, ExportedRow>;

/// Each row in a field, by the id that a piece has.
macro_rules! keyed {
    ($rows:expr, $field:ident, |$row:ident| $id:expr) => {
        $rows
            .into_iter()
            .map(|$row| {
                let id: String = $id;
                (id, ExportedRow { $field: Some($row), ..ExportedRow::default() })
            })
            .collect()
    };
}

impl ReadSnapshot {
    /// The pieces with what they say, in their order.
    pub(super) async fn export_rows(
        &self,
        section: &ExportSection,
        wanted: &ExportQuery,
        sources: Vec<ExportSource>,
    ) -> Result<Vec<ExportedRow>, ReadError> {
        if sources.is_empty() {
            return Ok(Vec::new());
        }
        let mut rows = self.rows_of(section, &wanted.user, &sources).await?;
        let whole = |source: ExportSource| {
            let said = rows.remove(&source.id)?;
            let ExportSource { agent, thread_id, sequence, event_id, .. } = source;
            let event_id = event_id.map(|id| id.to_string());
            let forgotten = sequence <= wanted.forgotten_through && is_emptied(&said);
            Some(ExportedRow { section: section.text(), agent, event_id, sequence, thread_id, forgotten, ..said })
        };
        Ok(sources.into_iter().filter_map(whole).collect())
    }

    async fn rows_of(
        &self,
        section: &ExportSection,
        user: &str,
        sources: &[ExportSource],
    ) -> Result<RowsById, ReadError> {
        let ids: Vec<Uuid> = sources.iter().filter_map(|source| source.id.parse().ok()).collect();
        let events: Vec<Uuid> = sources.iter().filter_map(|source| source.event_id).collect();
        let rows = match section {
            ExportSection::Threads => {
                let key = |part: &Option<String>| SqlKey::from(part.as_deref().unwrap_or_default());
                let agents: Vec<SqlKey> = sources.iter().map(|source| key(&source.agent)).collect();
                let threads: Vec<SqlKey> = sources.iter().map(|source| key(&source.thread_id)).collect();
                let rows = self.threads_of(&agents, &threads).await?;
                keyed!(rows, thread, |row| format!("{}/{}", row.agent, row.thread_id))
            }
            ExportSection::Messages => keyed!(self.messages_of(&ids).await?, message, |row| row.event_id.clone()),
            ExportSection::Tasks => keyed!(self.tasks_of(&ids).await?, task, |row| row.task_id.clone()),
            ExportSection::Memories => {
                let rows = self.memories_of(user, &events).await?;
                keyed!(rows, memory, |row| format!("{}/{}", row.agent, row.memory_id))
            }
            ExportSection::InnerState => {
                keyed!(self.inner_state_of(&ids).await?, inner_state, |row| row.event_id.clone())
            }
            ExportSection::Approvals => keyed!(self.approvals_of(&ids).await?, approval, |row| row.action_id.clone()),
            ExportSection::Choices => self.choices_of(&ids).await?,
            ExportSection::Briefings => keyed!(self.briefings_of(&ids).await?, briefing, |row| row.event_id.clone()),
            ExportSection::Plans => keyed!(self.chains_of(&ids).await?, plan, |row| row.chain_id.clone()),
            ExportSection::Actions => keyed!(self.actions_of(&ids).await?, action, |row| row.action_id.clone()),
            ExportSection::Processes => keyed!(self.processes_of(&ids).await?, process, |row| row.process_id.clone()),
            ExportSection::ModelCalls => self.model_calls_of(&events).await?,
            ExportSection::Unknown(_) => RowsById::new(),
        };
        Ok(rows)
    }

    /// By the primary key, the messages they are about as well.
    async fn choices_of(&self, ids: &[Uuid]) -> Result<RowsById, ReadError> {
        let offers = query!(
            r#"
            SELECT offer_id, offers.sequence AS "sequence: U64", offers.agent, offers.user_id, offers.correlation_id,
                   messages.text AS "message?", offers.thread_id, definition AS "definition: Column<OfferRow>",
                   offered_at AS "offered_at: At", choice, chosen_at AS "chosen_at!: At"
            FROM offers
            LEFT JOIN messages ON messages.event_id = offers.correlation_id AND messages.role = 'user'
                AND messages.sequence IS NOT NULL AND messages.user_id = offers.user_id
            WHERE offer_id = ANY($1)"#,
            ids
        )
        .map(|row| ExportedChoice {
            offer: Some(shown!(row)),
            choice: row.choice,
            chosen_at: row.chosen_at.into(),
        });
        let offers = offers.fetch_all(&mut **self.connection().await).await?;
        let id =
            |choice: &ExportedChoice| choice.offer.as_ref().map(|offer| offer.offer_id.clone()).unwrap_or_default();
        Ok(keyed!(offers, choice, |row| id(&row)))
    }

    /// By the primary key.
    async fn model_calls_of(&self, events: &[Uuid]) -> Result<RowsById, ReadError> {
        let calls = query!(
            r#"
            SELECT event_id || '/' || call AS "id!", tier, model, module, decided_at AS "decided_at: At",
                   input_tokens AS "input_tokens: U64", output_tokens AS "output_tokens: U64",
                   latency_ms AS "latency_ms: U64", failed, cached_tokens AS "cached_tokens: U64", is_estimate
            FROM model_calls WHERE event_id = ANY($1)"#,
            events
        )
        .map(|row| {
            let call = ExportedModelCall {
                tier: row.tier,
                model: row.model,
                module: Some(row.module).filter(|module| !module.is_empty()),
                decided_at: row.decided_at.into(),
                input_tokens: row.input_tokens.into(),
                output_tokens: row.output_tokens.into(),
                latency_ms: row.latency_ms.into(),
                failed: row.failed,
                cached_tokens: row.cached_tokens.into(),
                is_estimate: row.is_estimate,
            };
            (row.id, call)
        });
        let calls = calls.fetch_all(&mut **self.connection().await).await?;
        let row = |(id, call)| (id, ExportedRow { model_call: Some(call), ..ExportedRow::default() });
        Ok(calls.into_iter().map(row).collect())
    }
}

/// Returns true if nothing is left of a piece's content. A model call held none.
fn is_emptied(row: &ExportedRow) -> bool {
    let json = |text: &Option<Json>| text.as_ref().is_none_or(|text| EMPTIED.contains(&text.text.as_str()));
    let ExportedRow { thread, message, task, memory, inner_state, approval, choice, briefing, plan, action, .. } = row;
    thread.as_ref().is_some_and(|it| it.title.is_empty() && it.summary.is_empty())
        || message.as_ref().is_some_and(|it| it.text.is_empty() && it.parts.is_empty())
        || task.as_ref().is_some_and(|it| it.title.is_empty() && json(&it.action))
        || memory.as_ref().is_some_and(|it| it.content.is_empty())
        || inner_state.as_ref().is_some_and(|it| it.content.is_empty() && !it.deleted)
        || approval.as_ref().is_some_and(|it| json(&it.arguments))
        || choice
            .as_ref()
            .and_then(|it| it.offer.as_ref())
            .is_some_and(|it| it.summary.is_empty() && it.reason.is_empty())
        || briefing.as_ref().is_some_and(|it| it.reason.is_empty())
        || plan.as_ref().is_some_and(|it| it.plan.is_empty() && it.steps.iter().all(|step| json(&step.params)))
        || action.as_ref().is_some_and(|it| json(&it.arguments))
        || row
            .process
            .as_ref()
            .is_some_and(|it| json(&it.arguments) && it.stdout_tail.as_deref().is_none_or(str::is_empty))
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::{ActionRow, InnerStateRow, MessageRow, PartRow};

    use super::*;

    #[test]
    fn what_was_emptied_is_told_from_what_says_something() {
        let message = |text: &str, parts| {
            let message = MessageRow { text: text.to_owned(), parts, ..MessageRow::default() };
            is_emptied(&ExportedRow { message: Some(message), ..ExportedRow::default() })
        };
        assert!(message("", vec![]) && !message("hello", vec![]) && !message("", vec![PartRow::default()]));
        let action = |arguments: &str| {
            let arguments = Some(Json { text: arguments.to_owned() });
            let action = ActionRow { arguments, ..ActionRow::default() };
            is_emptied(&ExportedRow { action: Some(action), ..ExportedRow::default() })
        };
        assert!(action("\"\"") && !action("{}"), "a call without arguments has said all that it had to say");
        let deleted = InnerStateRow { deleted: true, ..InnerStateRow::default() };
        assert!(!is_emptied(&ExportedRow { inner_state: Some(deleted), ..ExportedRow::default() }));
    }
}
