//! The origins of the data held on a user.

use kairo_proto::words::ExportSection;
use sqlx::query_as;
use uuid::Uuid;

use super::{ExportCursor, ExportQuery};
use crate::{
    ReadError, ReadSnapshot,
    queries::{to_bigint, to_sql_position},
    sql_values::{SqlKey, SqlText, U32, U64},
};

/// A piece of a section: its event, and by what it is looked up.
#[derive(Clone, Debug)]
pub struct ExportSource {
    pub id: String,
    pub agent: Option<String>,
    pub thread_id: Option<String>,
    pub sequence: u64,
    pub position: u32,
    pub event_id: Option<Uuid>,
}

impl ExportSource {
    pub fn to_cursor(&self, section: &ExportSection) -> ExportCursor {
        let Self { id, sequence, position, .. } = self;
        ExportCursor { section: section.clone(), sequence: *sequence, position: *position, id: id.clone() }
    }
}

/// Pieces behind a place, in the order of the log. An event that the piece does not name is the one at its place.
macro_rules! sources {
    ($pieces:literal, $($parameters:tt)*) => {
        query_as!(
            ExportSource,
            r#"
            SELECT pieces.id AS "id!", pieces.agent, pieces.thread_id, pieces.sequence AS "sequence!: U64",
                   pieces.position AS "position!: U32", coalesce(pieces.event_id, events.event_id) AS event_id
            FROM ("# + $pieces + r#") AS pieces
            LEFT JOIN events ON events.sequence = pieces.sequence AND events.position = pieces.position
            WHERE (pieces.sequence, pieces.position, pieces.id) > ($2, $3, $4)
            ORDER BY pieces.sequence, pieces.position, pieces.id LIMIT $5"#,
            $($parameters)*
        )
    };
}

impl ReadSnapshot {
    /// The next of a section. By the indexes of what is a user's: `threads_of_user`, `messages_of_user`, `tasks_of_user`,
    /// `memories_of_user`, `inner_state_changes_of_user`, `approvals_of_user`, `offers_of_user`, `briefings_of_user`; what
    /// happened in their threads by `actions_of_thread`, `chains_of_thread`, `model_calls_of_user` and
    /// `model_calls_of_thread`, what happened in none by `actions_outside_threads`.
    pub(super) async fn export_sources(
        &self,
        section: &ExportSection,
        wanted: &ExportQuery,
        after: Option<&ExportCursor>,
        most: usize,
    ) -> Result<Vec<ExportSource>, ReadError> {
        let user = SqlKey::from(wanted.user.as_str());
        let (sequence, position) = to_sql_position(after.map_or((0, 0), |after| (after.sequence, after.position)));
        let id = SqlText::from(after.map_or("", |after| &after.id));
        let most = to_bigint(most as u64);
        // One statement for each section, as each has a table of its own.
        macro_rules! of {
            ($pieces:literal) => {
                sources!($pieces, user as _, sequence, position, id as _, most)
                    .fetch_all(&mut **self.connection().await)
                    .await?
            };
        }
        let sources = match section {
            // One that was imported has events once it is gone on with.
            ExportSection::Threads => {
                of!("SELECT agent || '/' || thread_id AS id, agent, thread_id, coalesce(first.sequence, last_sequence) AS sequence,
                        coalesce(first.position, 0) AS position, first.event_id
                 FROM threads LEFT JOIN LATERAL (
                     SELECT sequence, position, event_id FROM events
                     WHERE events.agent = threads.agent AND events.thread_id = threads.thread_id
                     ORDER BY sequence, position LIMIT 1) AS first ON true
                 WHERE user_id = $1")
            }
            ExportSection::Messages => {
                of!("SELECT event_id::text AS id, agent, thread_id, sequence, position, event_id FROM messages
                 WHERE user_id = $1 AND sequence IS NOT NULL")
            }
            ExportSection::Tasks => {
                of!("SELECT task_id::text AS id, agent, thread_id, sequence, position, NULL::uuid AS event_id FROM tasks
                 WHERE user_id = $1")
            }
            ExportSection::Memories => {
                of!("SELECT agent || '/' || memory_id AS id, agent, thread_id, sequence, position, event_id FROM memories
                 WHERE user_id = $1")
            }
            ExportSection::InnerState => {
                of!("SELECT event_id::text AS id, agent, thread_id, sequence, position, event_id FROM inner_state_changes
                 WHERE user_id = $1")
            }
            ExportSection::Approvals => {
                of!("SELECT action_id::text AS id, agent, thread_id, sequence, position, action_id AS event_id FROM approvals
                 WHERE user_id = $1")
            }
            ExportSection::Choices => {
                of!("SELECT offer_id::text AS id, agent, thread_id, sequence, position, offer_id AS event_id FROM offers
                 WHERE user_id = $1")
            }
            ExportSection::Briefings => {
                of!("SELECT event_id::text AS id, agent, thread_id, sequence, 0 AS position, event_id FROM briefings
                 WHERE user_id = $1")
            }
            ExportSection::Plans => {
                of!("SELECT chain_id::text AS id, agent, thread_id, sequence, position, NULL::uuid AS event_id
                 FROM threads JOIN chains USING (agent, thread_id) WHERE user_id = $1")
            }
            ExportSection::Actions => {
                of!("SELECT action_id::text AS id, agent, thread_id, sequence, 0 AS position, action_id AS event_id
                 FROM threads JOIN actions USING (agent, thread_id) WHERE user_id = $1
                 UNION ALL
                 SELECT action_id::text, actions.agent, NULL, actions.sequence, 0, action_id
                 FROM actions JOIN messages ON messages.event_id = actions.correlation_id
                 WHERE messages.user_id = $1 AND actions.thread_id IS NULL")
            }
            ExportSection::Processes => {
                of!("SELECT process_id::text AS id, agent, thread_id, processes.sequence, 0 AS position, NULL::uuid AS event_id
                 FROM threads JOIN actions USING (agent, thread_id)
                 JOIN processes USING (agent, process_id) WHERE user_id = $1")
            }
            ExportSection::ModelCalls => {
                of!("SELECT event_id || '/' || call AS id, agent, thread_id, sequence, call AS position, event_id FROM model_calls
                 WHERE user_id = $1
                 UNION ALL
                 SELECT event_id || '/' || call, agent, thread_id, sequence, call, event_id
                 FROM threads JOIN model_calls USING (agent, thread_id)
                 WHERE threads.user_id = $1 AND model_calls.user_id IS NULL")
            }
            ExportSection::Unknown(_) => Vec::new(),
        };
        Ok(sources)
    }
}
