//! The one database session of a replica that may write into a generation.
//!
//! A partition is held by a lock that is taken on the very connection that writes, so whoever writes holds it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kairo_core::record::RawMessage;
use kairo_read_model::{GENERATIONS_CHANNEL, POSITION_CHANNEL, PostgresConfig, sql_values::SqlText};
use sqlx::{AssertSqlSafe, Connection, PgConnection, query, query_as, query_scalar, raw_sql};
use tokio::time::timeout;

use crate::{
    ProjectorConfig,
    changes::TableChanges,
    connection::{self, SessionError, answer_timeout, from_bigint, lock_class, to_bigint, with_timeout},
    partition_progress::{PartitionPosition, PositionMove},
    tables,
    transition::BuildState,
};

/// The second key of the lock that every member shares; those of partitions are their numbers.
const MEMBER: i32 = -1;
/// The second key of the members' lock as `pg_locks` shows it.
const MEMBER_SHOWN: i64 = u32::MAX as i64;

const JOIN: &str = "SELECT pg_advisory_lock_shared($1, $2)";
const HOLD: &str = "SELECT pg_try_advisory_lock($1, $2)";
const RELEASE: &str = "SELECT pg_advisory_unlock($1, $2)";
const LOCKS: &str = "
    SELECT objid::bigint FROM pg_locks
    WHERE locktype = 'advisory' AND classid::bigint = $1 AND objsubid = 2 AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
const POSITIONS: &str = "
    SELECT state, partition, sequence, stop_at FROM positions JOIN generations USING (generation)
    WHERE generation = $1";
/// The fence: changes fewer rows if one of the positions is not the one that the batch begins behind. Who waits for the
/// position is told of it when the transaction is committed.
const MOVE: &str = "
    WITH moved AS (
        UPDATE positions SET sequence = new.behind, rate = $5, updated_at = now()
        FROM UNNEST($2::int[], $3::bigint[], $4::bigint[]) AS new (partition, expected, behind)
        WHERE positions.generation = $1 AND positions.partition = new.partition AND positions.sequence = new.expected
        RETURNING 1
    )
    SELECT count(*), pg_notify($6, '')::text FROM moved";
const TELL: &str = "SELECT pg_notify($1, '')";
const KNOWN: &str = "SELECT count(*) FROM set_aside WHERE sequence = $1";
const SET_ASIDE: &str = "INSERT INTO set_aside (sequence, subject, reason) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";

/// The state of a generation and the replicas that share it.
#[derive(Clone, Debug)]
pub struct GenerationStanding {
    /// None for one that a newer version may have written.
    pub state: Option<BuildState>,
    pub positions: BTreeMap<u32, PartitionPosition>,
    pub members: u32,
    /// Partitions that anybody holds.
    pub taken: BTreeSet<u32>,
}

/// A connection that holds some of a generation's partitions.
pub struct PartitionSession {
    connection: PgConnection,
    generation: i64,
    patience: Duration,
    /// True if a commit waits until it is on disk.
    durable: bool,
}

impl PartitionSession {
    /// `schema` is that of the generation.
    pub async fn open(
        postgres: &PostgresConfig,
        projector: &ProjectorConfig,
        generation: i64,
        schema: &str,
    ) -> Result<Self, SessionError> {
        let mut connection = connection::open_connection(postgres, projector).await?;
        let patience = answer_timeout(postgres, projector);
        let path = "SELECT set_config('search_path', $1 || ', ' || current_setting('search_path'), false)";
        with_timeout(patience, query(path).bind(schema).execute(&mut connection)).await?;
        with_timeout(patience, raw_sql(tables::SETTINGS).execute(&mut connection)).await?;
        with_timeout(patience, query(JOIN).bind(lock_class(generation)).bind(MEMBER).execute(&mut connection)).await?;
        Ok(Self { connection, generation, patience, durable: true })
    }

    /// Returns the state of the generation, none if it is gone. Also the sign of life that keeps the session.
    pub async fn read_standing(&mut self) -> Result<Option<GenerationStanding>, SessionError> {
        let rows = query_as(POSITIONS).bind(self.generation).fetch_all(&mut self.connection);
        let rows: Vec<(String, i32, i64, Option<i64>)> = with_timeout(self.patience, rows).await?;
        let Some((state, ..)) = rows.first() else { return Ok(None) };
        let locks = query_scalar(LOCKS).bind(i64::from(lock_class(self.generation))).fetch_all(&mut self.connection);
        let locks: Vec<i64> = with_timeout(self.patience, locks).await?;
        let members = locks.iter().filter(|lock| **lock == MEMBER_SHOWN).count();
        Ok(Some(GenerationStanding {
            state: BuildState::parse(state),
            members: u32::try_from(members).unwrap_or(u32::MAX),
            taken: locks.iter().filter_map(|lock| u32::try_from(*lock).ok()).collect(),
            positions: rows.into_iter().filter_map(to_position).collect(),
        }))
    }

    /// Tries to lock a partition. Returns true if this session holds it from now on.
    pub async fn hold_partition(&mut self, partition: u32) -> Result<bool, SessionError> {
        let held = query_scalar(HOLD).bind(lock_class(self.generation)).bind(partition_key(partition));
        with_timeout(self.patience, held.fetch_one(&mut self.connection)).await
    }

    pub async fn release_partition(&mut self, partition: u32) -> Result<(), SessionError> {
        let released = query(RELEASE).bind(lock_class(self.generation)).bind(partition_key(partition));
        with_timeout(self.patience, released.execute(&mut self.connection)).await?;
        Ok(())
    }

    /// Sets whether a commit waits until it is on disk: rows that nobody queries yet can be written again.
    pub async fn set_durable(&mut self, durable: bool) -> Result<(), SessionError> {
        if durable != self.durable {
            let value = if durable { "on" } else { "off" };
            let set = AssertSqlSafe(format!("SET synchronous_commit = {value}"));
            with_timeout(self.patience, raw_sql(set).execute(&mut self.connection)).await?;
            self.durable = durable;
        }
        Ok(())
    }

    /// Wakes those who take the next step about a generation.
    pub async fn notify_arrival(&mut self) -> Result<(), SessionError> {
        with_timeout(self.patience, query(TELL).bind(GENERATIONS_CHANNEL).execute(&mut self.connection)).await?;
        Ok(())
    }

    /// Returns true if a message was set aside before.
    pub async fn is_set_aside(&mut self, message: &RawMessage) -> Result<bool, SessionError> {
        let known = query_scalar(KNOWN).bind(to_bigint(message.sequence)).fetch_one(&mut self.connection);
        let known: i64 = with_timeout(self.patience, known).await?;
        Ok(known > 0)
    }

    /// Records that a message was set aside.
    pub async fn record_set_aside(&mut self, message: &RawMessage, reason: &str) -> Result<(), SessionError> {
        let row = query(SET_ASIDE).bind(to_bigint(message.sequence)).bind(SqlText::from(message.subject.as_str()));
        with_timeout(self.patience, row.bind(SqlText::from(reason)).execute(&mut self.connection)).await?;
        Ok(())
    }

    /// Writes changes and the positions that they lead to in one transaction, if the positions are still the expected
    /// ones. `rate` is in messages a second and of each partition.
    ///
    /// After any other error than [`SessionError::Moved`], [`SessionError::Refused`] and [`SessionError::Contended`] it
    /// may or may not have been written, and the session is not to be used any more.
    pub async fn commit(
        &mut self,
        changes: &TableChanges,
        moves: &[PositionMove],
        rate: f64,
    ) -> Result<(), SessionError> {
        let patience = self.patience;
        timeout(patience, self.write_transaction(changes, moves, rate))
            .await
            .map_err(|_| SessionError::Silent(patience))?
    }

    async fn write_transaction(
        &mut self,
        changes: &TableChanges,
        moves: &[PositionMove],
        rate: f64,
    ) -> Result<(), SessionError> {
        let mut transaction = self.connection.begin().await?;
        let written = async {
            let moved = query_as(MOVE)
                .bind(self.generation)
                .bind(moves.iter().map(|moved| partition_key(moved.partition)).collect::<Vec<_>>())
                .bind(moves.iter().map(|moved| to_bigint(moved.from)).collect::<Vec<_>>())
                .bind(moves.iter().map(|moved| to_bigint(moved.to)).collect::<Vec<_>>())
                .bind(rate)
                .bind(POSITION_CHANNEL);
            let (moved, _): (i64, String) = moved.fetch_one(&mut *transaction).await?;
            if usize::try_from(moved) != Ok(moves.len()) {
                return Err(SessionError::Moved);
            }
            Ok(tables::write_changes(&mut transaction, changes).await?)
        };
        match written.await {
            Ok(()) => Ok(transaction.commit().await?),
            Err(error) => {
                transaction.rollback().await?;
                Err(error)
            }
        }
    }
}

/// A partition as Postgres counts.
fn partition_key(partition: u32) -> i32 {
    i32::try_from(partition).unwrap_or(i32::MAX)
}

fn to_position((_, partition, at, stop_at): (String, i32, i64, Option<i64>)) -> Option<(u32, PartitionPosition)> {
    let position = PartitionPosition { sequence: from_bigint(at), stop_at: stop_at.map(from_bigint) };
    u32::try_from(partition).ok().map(|partition| (partition, position))
}
