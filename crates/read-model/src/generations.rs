//! The registry of read models, which projector and the readers share.
//!
//! A read model is never changed in place. Another *generation* of it is built beside the live one, from the log, in a
//! schema (or indexes) of its own, and becomes the live one by one transaction. Everybody asks the live generation of
//! the version they know, so services of two versions each have theirs.

use serde::Serialize;
use sqlx::{Connection as _, FromRow, query, query_as, query_scalar};

use crate::{POSITION_CHANNEL, ReadError, ReadModel, sql_values::Time};

/// A kind of read model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Projection {
    pub name: &'static str,
    /// The version of its rows. To be raised with every change of `model/` or of what is written into it.
    pub version: i32,
}

/// The tables in Postgres.
pub const READ_MODEL: Projection = Projection { name: "read-model", version: 16 };
/// The documents of the search engine.
pub const SEARCH: Projection = Projection { name: "search", version: 2 };
/// All of them.
pub const PROJECTIONS: [Projection; 2] = [READ_MODEL, SEARCH];

/// The tables of a generation, without its indexes.
pub const TABLES_SQL: &str = include_str!("../model/tables.sql");
/// The indexes of a generation.
pub const INDEXES_SQL: &str = include_str!("../model/indexes.sql");
/// Every table of a generation.
pub const TABLES: [&str; 22] = [
    "log",
    "events",
    "unknown_types",
    "agents",
    "threads",
    "teams",
    "briefings",
    "messages",
    "actions",
    "processes",
    "memories",
    "memory_versions",
    "inner_state_changes",
    "inner_state",
    "chains",
    "chain_steps",
    "tasks",
    "task_firings",
    "model_calls",
    "entries",
    "approvals",
    "offers",
];

/// One building of a read model from the log.
#[derive(Clone, Debug, PartialEq, Serialize, FromRow)]
pub struct Generation {
    pub generation: i64,
    pub projection: String,
    pub version: i32,
    /// The schema of its tables, or what the names of its indexes end with.
    pub place: String,
    /// As in the migration.
    pub state: String,
    /// The end of the log when the generation was begun.
    #[sqlx(try_from = "i64")]
    pub target: u64,
    pub reason: String,
    /// Of search: the generation that its documents are made from.
    pub source: Option<i64>,
    pub asked_at: Time,
    /// When it came into this state.
    pub since: Time,
    /// The last message that all of it takes account of.
    #[sqlx(try_from = "i64")]
    pub position: u64,
    #[sqlx(try_from = "i64")]
    pub partitions: u64,
}

const GENERATIONS: &str = "
    SELECT generation, projection, version, place, state, target, reason, source, asked_at, since,
           (SELECT coalesce(min(sequence), 0) FROM positions WHERE positions.generation = g.generation) AS position,
           (SELECT count(*) FROM positions WHERE positions.generation = g.generation) AS partitions
    FROM generations AS g ORDER BY projection, generation";

/// The position in the log of the live generation of a projection.
pub(crate) const POSITION: &str = "
    SELECT min(sequence) FROM positions JOIN generations USING (generation)
    WHERE projection = $1 AND version = $2 AND state = 'live' HAVING count(*) > 0";

/// Enters a generation in the registry, and says its number; null if another one of the projection is being built.
pub const REQUEST_REBUILD: &str = "SELECT request_rebuild($1, $2)";
/// Swaps a generation in even if it was found to differ.
const REQUEST_SWAP: &str = "SELECT request_swap($1, $2)";
/// Not what answers queries, unless a newer version does.
const REQUEST_DROP: &str = "SELECT request_drop($1)";
/// Wakes whoever waits for a change.
const TELL: &str = "SELECT pg_notify($1, '')";
/// The channel on which every change of what generations there are, and of their states, is told.
pub const GENERATIONS_CHANNEL: &str = "kairo_generations";

impl ReadModel {
    /// Asks for another generation of a projection; projector builds it. Returns its number, or none if one is being
    /// built already.
    pub async fn request_rebuild(&self, projection: Projection) -> Result<Option<i64>, ReadError> {
        let mut held = self.acquire_connection().await?;
        let mut transaction = held.connection.begin().await?;
        let entered = query_scalar(REQUEST_REBUILD).bind(projection.name).bind(projection.version);
        let entered: Option<i64> = entered.fetch_one(&mut *transaction).await?;
        query(TELL).bind(POSITION_CHANNEL).execute(&mut *transaction).await?;
        query(TELL).bind(GENERATIONS_CHANNEL).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(entered)
    }

    /// Asks for the generation of a projection that was found to differ from the live one to be swapped in. Returns its
    /// number, or none if there is none.
    pub async fn request_swap(&self, projection: Projection) -> Result<Option<i64>, ReadError> {
        let accepted = query_scalar(REQUEST_SWAP).bind(projection.name).bind(projection.version);
        let mut held = self.acquire_connection().await?;
        let accepted = accepted.fetch_one(&mut *held.connection).await?;
        query(TELL).bind(GENERATIONS_CHANNEL).execute(&mut *held.connection).await?;
        Ok(accepted)
    }

    /// Asks for a generation of any projection to be removed, be it kept, failed or still being built. Returns false if
    /// there is none, or if it answers queries.
    pub async fn request_drop(&self, generation: i64) -> Result<bool, ReadError> {
        let mut held = self.acquire_connection().await?;
        let dropped = query_scalar(REQUEST_DROP).bind(generation).fetch_one(&mut *held.connection).await?;
        query(TELL).bind(GENERATIONS_CHANNEL).execute(&mut *held.connection).await?;
        Ok(dropped)
    }

    /// Every generation that there is, those of other versions included.
    pub async fn list_generations(&self) -> Result<Vec<Generation>, ReadError> {
        Ok(query_as(GENERATIONS).fetch_all(&mut *self.acquire_connection().await?.connection).await?)
    }

    /// The sequence of the last message that everything here takes account of; 0 for none.
    pub async fn position(&self) -> Result<u64, ReadError> {
        self.position_of(READ_MODEL).await
    }

    /// Returns the sequence of the last message that a projection takes account of; 0 for none.
    pub async fn position_of(&self, projection: Projection) -> Result<u64, ReadError> {
        let position = query_scalar(POSITION).bind(projection.name).bind(projection.version);
        let sequence: i64 = position.fetch_one(&mut *self.acquire_connection().await?.connection).await?;
        Ok(u64::try_from(sequence).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The version and the SHA-256 of the SQL without comments. A model that changes under the same version leaves databases
    /// that exist with the old tables, so both change together.
    const MODEL: (i32, &str) = (16, "eaaf7a4aa8f58f06f837b57be8619019ced6719c3bcb9989aed0ecc112f60154");

    #[test]
    fn the_version_changes_with_the_tables() {
        let lines = [TABLES_SQL, INDEXES_SQL].into_iter().flat_map(str::lines).map(str::trim);
        let statements: Vec<_> = lines.filter(|line| !line.is_empty() && !line.starts_with("--")).collect();
        let digest = kairo_core::media::digest(statements.join("\n").as_bytes());
        assert_eq!((READ_MODEL.version, digest.as_str()), MODEL, "raise READ_MODEL.version, and note both here");
    }
}
