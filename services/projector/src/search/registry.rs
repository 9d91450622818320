//! Reads and updates the generations of documents in the registry.

use kairo_read_model::{
    GENERATIONS_CHANNEL, POSITION_CHANNEL, READ_MODEL, REQUEST_REBUILD, SEARCH, search::document::Document,
    stored::Text,
};
use sqlx::{PgPool, query, query_scalar};

use super::Trouble;

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
pub struct Registry {
    pub pool: PgPool,
}

impl Registry {
    /// Enters another generation, unless one is being made.
    pub async fn enter(&self) -> Result<(), Trouble> {
        let entered = query(REQUEST_REBUILD).bind(SEARCH.name).bind(SEARCH.version);
        entered.execute(&self.pool).await?;
        self.tell().await
    }

    /// Begins to make a generation from that one of the tables.
    pub async fn begin(&self, generation: i64, source: i64, target: i64) -> Result<(), Trouble> {
        let begun = query(BEGIN).bind(generation).bind(source).bind(target).execute(&self.pool).await?;
        if begun.rows_affected() == 0 {
            return Err(Trouble::Overtaken);
        }
        query(AT_THE_START).bind(generation).execute(&self.pool).await?;
        self.tell().await
    }

    pub async fn position(&self, generation: i64) -> Result<i64, Trouble> {
        Ok(query_scalar(POSITION).bind(generation).fetch_optional(&self.pool).await?.unwrap_or(0))
    }

    pub async fn move_position(&self, generation: i64, from: i64, to: i64) -> Result<(), Trouble> {
        let moved = query(MOVE).bind(generation).bind(from).bind(to).bind(POSITION_CHANNEL);
        match moved.fetch_optional(&self.pool).await? {
            Some(_) => Ok(()),
            None => Err(Trouble::Overtaken),
        }
    }

    /// Sets the position back, if it is further.
    pub async fn move_back(&self, generation: i64, to: i64) -> Result<(), Trouble> {
        query(BACK).bind(generation).bind(to).execute(&self.pool).await?;
        Ok(())
    }

    /// Makes it the live one, in the place of the one before.
    pub async fn swap(&self, generation: i64) -> Result<(), Trouble> {
        let mut transaction = self.pool.begin().await?;
        let keep = query(KEEP).bind(SEARCH.name).bind(SEARCH.version).bind(generation);
        keep.execute(&mut *transaction).await?;
        let swap = query(SWAP).bind(generation).bind(READ_MODEL.name).bind(READ_MODEL.version);
        if swap.execute(&mut *transaction).await?.rows_affected() == 0 {
            transaction.rollback().await?;
            return Err(Trouble::Overtaken);
        }
        query(TELL).bind(POSITION_CHANNEL).bind(GENERATIONS_CHANNEL).execute(&mut *transaction).await?;
        Ok(transaction.commit().await?)
    }

    /// Removes one that was to go.
    pub async fn remove(&self, generation: i64) -> Result<(), Trouble> {
        query(REMOVE).bind(generation).execute(&self.pool).await?;
        self.tell().await
    }

    /// Remembers that a document was refused.
    pub async fn refused(&self, generation: i64, document: &Document, reason: &str) -> Result<(), Trouble> {
        let refused = query(REFUSED).bind(generation).bind(&document.uid).bind(document.kind.name());
        let refused = refused.bind(&document.agent).bind(&document.id).bind(document.sequence).bind(Text::from(reason));
        refused.execute(&self.pool).await?;
        Ok(())
    }

    /// Forgets that these were.
    pub async fn taken(&self, generation: i64, documents: &[Document]) -> Result<(), Trouble> {
        let keys: Vec<&str> = documents.iter().map(|document| document.uid.as_str()).collect();
        query(TAKEN).bind(generation).bind(keys).execute(&self.pool).await?;
        Ok(())
    }

    async fn tell(&self) -> Result<(), Trouble> {
        query(TELL).bind(POSITION_CHANNEL).bind(GENERATIONS_CHANNEL).execute(&self.pool).await?;
        Ok(())
    }
}
