//! The owners of things: the user whom a thing names, the user who began its turn, and the owner of its thread.

use sqlx::{query_as, query_scalar};
use uuid::Uuid;

use crate::{ReadError, ReadSnapshot, sql_values::SqlKey};

/// The possible owners of a thing, as far as known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnerCandidates {
    /// Of the action, process, chain and so on that was asked for; nil for one that has no such id.
    pub id: Uuid,
    pub agent: String,
    /// The user it names.
    pub named: Option<String>,
    /// The subject of the event that its turn began with.
    pub began: Option<String>,
    /// The user of its thread.
    pub of_thread: Option<String>,
}

/// The kinds of things whose owners can be looked up by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnedKind {
    Action,
    Process,
    Chain,
    Task,
    Approval,
    Offer,
}

/// By index `events_of_chain` and the primary key of threads.
macro_rules! owners {
    ($things:literal, $($parameters:tt)*) => {
        query_as!(
            OwnerCandidates,
            r#"
            SELECT things.id AS "id!", things.agent AS "agent!", things.named,
                   (SELECT subject FROM events JOIN log USING (sequence)
                    WHERE events.correlation_id = things.correlation_id ORDER BY sequence, position LIMIT 1) AS began,
                   (SELECT user_id FROM threads
                    WHERE threads.agent = things.agent AND threads.thread_id = things.thread_id) AS of_thread
            FROM ("# + $things,
            $($parameters)*
        )
    };
}

/// The place of an event: its turn, its agent, and its thread.
pub type TurnContext = (Option<Uuid>, String, Option<String>);

impl ReadSnapshot {
    /// Returns the owners of these things, without those that are not known. By the primary keys.
    pub async fn find_owners(&self, kind: OwnedKind, ids: &[Uuid]) -> Result<Vec<OwnerCandidates>, ReadError> {
        // One statement for each kind, as each has a table of its own.
        macro_rules! of {
            ($things:literal) => {
                owners!($things, ids).fetch_all(&mut **self.connection().await).await?
            };
        }
        let owners = match kind {
            OwnedKind::Action => {
                of!("SELECT action_id AS id, agent, NULL::text AS named, correlation_id, thread_id FROM actions
                 WHERE action_id = ANY($1)) AS things")
            }
            OwnedKind::Process => {
                of!("SELECT processes.process_id AS id, processes.agent, NULL::text AS named, correlation_id, thread_id
                 FROM processes LEFT JOIN actions USING (action_id) WHERE processes.process_id = ANY($1)) AS things")
            }
            OwnedKind::Chain => {
                of!("SELECT chain_id AS id, agent, NULL::text AS named, correlation_id, thread_id FROM chains
                 WHERE chain_id = ANY($1)) AS things")
            }
            OwnedKind::Task => {
                of!("SELECT task_id AS id, agent, user_id AS named, correlation_id, thread_id FROM tasks
                 WHERE task_id = ANY($1)) AS things")
            }
            OwnedKind::Approval => {
                of!("SELECT action_id AS id, agent, user_id AS named, correlation_id, thread_id FROM approvals
                 WHERE action_id = ANY($1)) AS things")
            }
            OwnedKind::Offer => {
                of!("SELECT offer_id AS id, agent, user_id AS named, correlation_id, thread_id FROM offers
                 WHERE offer_id = ANY($1)) AS things")
            }
        };
        Ok(owners)
    }

    /// Returns the owner of a thread. By the primary key.
    pub async fn owner_of_thread(&self, agent: &str, thread: &str) -> Result<Option<String>, ReadError> {
        let user = query_scalar!(
            "SELECT user_id FROM threads WHERE agent = $1 AND thread_id = $2",
            SqlKey::from(agent) as _,
            SqlKey::from(thread) as _,
        );
        Ok(user.fetch_optional(&mut **self.connection().await).await?)
    }

    /// Returns the user who began each of these turns and the owner of each of these threads, in the order of the
    /// request.
    pub async fn owners_of_turns(&self, happened: &[TurnContext]) -> Result<Vec<OwnerCandidates>, ReadError> {
        let turns: Vec<Option<Uuid>> = happened.iter().map(|(turn, ..)| *turn).collect();
        let agents: Vec<SqlKey> = happened.iter().map(|(_, agent, _)| SqlKey::from(agent.as_str())).collect();
        let threads: Vec<Option<SqlKey>> =
            happened.iter().map(|(.., thread)| thread.as_deref().map(SqlKey::from)).collect();
        // Turns and threads, of which either may be missing.
        let owners = owners!(
            "SELECT ordinality AS place, '00000000-0000-0000-0000-000000000000'::uuid AS id, agent,
                    NULL::text AS named, correlation_id, thread_id
             FROM unnest($1::uuid[], $2::text[], $3::text[]) WITH ORDINALITY
                 AS asked (correlation_id, agent, thread_id, ordinality)) AS things
             ORDER BY things.place",
            turns as _,
            agents as _,
            threads as _
        );
        Ok(owners.fetch_all(&mut **self.connection().await).await?)
    }
}
