//! Reads and updates the generations of documents in the registry.

use kairo_read_model::{
    GENERATIONS_CHANNEL, POSITION_CHANNEL, READ_MODEL, REQUEST_REBUILD, SEARCH, search::document::SearchDocument,
    sql_values::SqlText,
};
use sqlx::{PgPool, query, query_scalar};

use super::SearchIndexError;

const BEGIN: &str = "UPDATE generations SET state = 'filling', source = $2, target = $3, since = now(), \
                     log = (SELECT log FROM generations WHERE generation = $2) \
                     WHERE generation = $1 AND state IN ('asked', 'filling')";
const AT_THE_START: &str = "INSERT INTO positions (generation, partition) VALUES ($1, 0) \
                            ON CONFLICT (generation, partition) DO UPDATE SET sequence = 0, updated_at = now()";
const POSITION: &str = "SELECT sequence FROM positions WHERE generation = $1";
/// The fence: changes nothing if the position is not the one it began behind, or the generation is to go.
const MOVE: &str = "
    WITH moved AS (
        UPDATE positions SET sequence = $3, updated_at = now()
        FROM generations WHERE positions.generation = $1 AND sequence = $2
            AND generations.generation = $1 AND state IN ('filling', 'live')
        RETURNING sequence
    )
    SELECT pg_notify($4, '') FROM moved";
const BACK: &str = "UPDATE positions SET sequence = least(sequence, $2) WHERE generation = $1";
const KEEP: &str = "UPDATE generations SET state = 'kept', since = now() \
                    WHERE projection = $1 AND version = $2 AND state = 'live' AND generation <> $3";
/// Only while the tables are those that its documents are made from.
const SWAP: &str = "
    UPDATE generations SET state = 'live', since = now()
    WHERE generation = $1 AND state = 'filling'
        AND source = (SELECT generation FROM generations WHERE projection = $2 AND version = $3 AND state = 'live')";
const TELL: &str = "SELECT pg_notify($1, ''), pg_notify($2, '')";
const REMOVE: &str = "DELETE FROM generations WHERE generation = $1 AND state = 'dropping'";
const REFUSED: &str = "
    INSERT INTO refused_documents (generation, document, kind, agent, id, sequence, reason)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (generation, document) DO UPDATE SET sequence = excluded.sequence, reason = excluded.reason, at = now()";
const TAKEN: &str = "DELETE FROM refused_documents WHERE generation = $1 AND document = ANY($2)";

/// The registry.
#[derive(Clone, Debug)]
pub struct SearchRegistry {
    pub pool: PgPool,
}

impl SearchRegistry {
    /// Enters another generation, unless one is being made.
    pub async fn request_generation(&self) -> Result<(), SearchIndexError> {
        let entered = query(REQUEST_REBUILD).bind(SEARCH.name).bind(SEARCH.version);
        entered.execute(&self.pool).await?;
        self.notify_listeners().await
    }

    /// Begins to make a generation from that one of the tables.
    pub async fn begin_filling(&self, generation: i64, source: i64, target: i64) -> Result<(), SearchIndexError> {
        let begun = query(BEGIN).bind(generation).bind(source).bind(target).execute(&self.pool).await?;
        if begun.rows_affected() == 0 {
            return Err(SearchIndexError::Overtaken);
        }
        query(AT_THE_START).bind(generation).execute(&self.pool).await?;
        self.notify_listeners().await
    }

    pub async fn position(&self, generation: i64) -> Result<i64, SearchIndexError> {
        Ok(query_scalar(POSITION).bind(generation).fetch_optional(&self.pool).await?.unwrap_or(0))
    }

    pub async fn move_position(&self, generation: i64, from: i64, to: i64) -> Result<(), SearchIndexError> {
        let moved = query(MOVE).bind(generation).bind(from).bind(to).bind(POSITION_CHANNEL);
        match moved.fetch_optional(&self.pool).await? {
            Some(_) => Ok(()),
            None => Err(SearchIndexError::Overtaken),
        }
    }

    /// Sets the position back, if it is further.
    pub async fn move_back(&self, generation: i64, to: i64) -> Result<(), SearchIndexError> {
        query(BACK).bind(generation).bind(to).execute(&self.pool).await?;
        Ok(())
    }

    /// Makes it the live one, in the place of the one before.
    pub async fn swap_in(&self, generation: i64) -> Result<(), SearchIndexError> {
        let mut transaction = self.pool.begin().await?;
        let keep = query(KEEP).bind(SEARCH.name).bind(SEARCH.version).bind(generation);
        keep.execute(&mut *transaction).await?;
        let swap = query(SWAP).bind(generation).bind(READ_MODEL.name).bind(READ_MODEL.version);
        if swap.execute(&mut *transaction).await?.rows_affected() == 0 {
            transaction.rollback().await?;
            return Err(SearchIndexError::Overtaken);
        }
        query(TELL).bind(POSITION_CHANNEL).bind(GENERATIONS_CHANNEL).execute(&mut *transaction).await?;
        Ok(transaction.commit().await?)
    }

    /// Removes one that was to go.
    pub async fn remove_generation(&self, generation: i64) -> Result<(), SearchIndexError> {
        query(REMOVE).bind(generation).execute(&self.pool).await?;
        self.notify_listeners().await
    }

    /// Remembers that a document was refused.
    pub async fn record_refusal(
        &self,
        generation: i64,
        document: &SearchDocument,
        reason: &str,
    ) -> Result<(), SearchIndexError> {
        let refused = query(REFUSED).bind(generation).bind(&document.uid).bind(document.kind.name());
        let refused =
            refused.bind(&document.agent).bind(&document.id).bind(document.sequence).bind(SqlText::from(reason));
        refused.execute(&self.pool).await?;
        Ok(())
    }

    /// Forgets that these were.
    pub async fn clear_refusals(&self, generation: i64, documents: &[SearchDocument]) -> Result<(), SearchIndexError> {
        let keys: Vec<&str> = documents.iter().map(|document| document.uid.as_str()).collect();
        query(TAKEN).bind(generation).bind(keys).execute(&self.pool).await?;
        Ok(())
    }

    async fn notify_listeners(&self) -> Result<(), SearchIndexError> {
        query(TELL).bind(POSITION_CHANNEL).bind(GENERATIONS_CHANNEL).execute(&self.pool).await?;
        Ok(())
    }
}
