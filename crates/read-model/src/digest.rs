//! Digests of a generation's tables: equal rows give equal digests, in whichever order they were written.

use std::collections::BTreeMap;

use serde::Serialize;
use sqlx::{AssertSqlSafe, Connection, FromRow, PgConnection, query_as, query_scalar, raw_sql};

use crate::{ReadError, ReadModel, TABLES};

/// The digests of one generation of the tables at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GenerationDigest {
    pub generation: i64,
    /// The last message that each partition took account of, by partition.
    pub positions: BTreeMap<i32, u64>,
    /// By table.
    pub tables: BTreeMap<String, TableDigest>,
}

/// The digest of one table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, FromRow)]
pub struct TableDigest {
    #[sqlx(try_from = "i64")]
    pub rows: u64,
    /// The sum of a hash of each row, as a decimal number.
    pub digest: String,
}

impl GenerationDigest {
    /// The tables that differ between the two, in alphabetical order.
    pub fn differing_tables<'d>(&'d self, other: &'d Self) -> Vec<&'d str> {
        let tables = self.tables.iter().filter(|(table, digest)| other.tables.get(*table) != Some(digest));
        tables.map(|(table, _)| table.as_str()).collect()
    }
}

const PLACE: &str = "SELECT place FROM generations WHERE generation = $1 AND projection = 'read-model'";
const POSITIONS: &str = "SELECT partition, sequence FROM positions WHERE generation = $1";
/// The columns to hash, without those derived from others of their row, which have no hash in Postgres.
const COLUMNS: &str = "
    SELECT string_agg(quote_ident(column_name), ', ' ORDER BY ordinal_position) FROM information_schema.columns
    WHERE table_schema = $1 AND table_name = $2 AND data_type <> 'tsvector'";

impl ReadModel {
    /// The digests of a generation as it is, none if there is no such generation of the tables. It reads every row, so
    /// it takes as long as that.
    pub async fn generation_digest(&self, generation: i64) -> Result<Option<GenerationDigest>, ReadError> {
        let mut held = self.acquire_connection().await?;
        Ok(digest_generation(&mut held.connection, generation).await?)
    }
}

/// Returns the digests of a generation, read on a connection that is in no transaction; `None` if there is no such
/// generation.
pub async fn digest_generation(
    connection: &mut PgConnection,
    generation: i64,
) -> sqlx::Result<Option<GenerationDigest>> {
    // One moment for all tables, and nobody removes the generation meanwhile.
    let mut snapshot = connection.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    let hold = "SET LOCAL statement_timeout = 0; LOCK TABLE generations IN ACCESS SHARE MODE";
    raw_sql(hold).execute(&mut *snapshot).await?;
    let place: Option<String> = query_scalar(PLACE).bind(generation).fetch_optional(&mut *snapshot).await?;
    let Some(place) = place else { return Ok(None) };
    let positions: Vec<(i32, i64)> = query_as(POSITIONS).bind(generation).fetch_all(&mut *snapshot).await?;
    let mut tables = BTreeMap::new();
    for table in TABLES {
        let columns: Option<String> = query_scalar(COLUMNS).bind(&place).bind(table).fetch_one(&mut *snapshot).await?;
        // Of another version, which has no such table.
        let Some(columns) = columns else { continue };
        let sql = format!(
            "SELECT count(*) AS rows, coalesce(sum(hash_record_extended(ROW({columns}), 0)), 0)::text AS digest \
             FROM {place}.{table}"
        );
        let digest: TableDigest = query_as(AssertSqlSafe(sql)).fetch_one(&mut *snapshot).await?;
        tables.insert(table.to_owned(), digest);
    }
    snapshot.commit().await?;
    let positions = positions.into_iter().map(|(partition, at)| (partition, u64::try_from(at).unwrap_or(0))).collect();
    Ok(Some(GenerationDigest { generation, positions, tables }))
}
