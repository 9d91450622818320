//! The state of the read models, for operators.

use std::collections::BTreeMap;

use kairo_proto::v1::UnknownTypeRow;
use sqlx::{query_as, query_scalar};

use crate::{ReadError, ReadModel};

/// The numbers in the registry beside the generations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProjectionStats {
    /// Messages that became dead letters because they cannot be projected.
    pub set_aside: u64,
    /// Messages a second that generations read lately; one that rests is not there.
    pub rates: BTreeMap<i64, f64>,
}

const UNKNOWN_TYPES: &str = "
    SELECT type, messages, first_sequence, last_sequence FROM unknown_types ORDER BY messages DESC, type LIMIT 1000";
const SET_ASIDE: &str = "SELECT count(*) FROM set_aside";
/// Only recent rates: one measured long ago says nothing of now.
const RATES: &str = "
    SELECT generation, sum(rate) FROM positions WHERE updated_at > now() - interval '5 seconds' AND rate > 0
    GROUP BY generation";

impl ReadModel {
    /// Returns the dead letters and rates of the projections.
    pub async fn projection_stats(&self) -> Result<ProjectionStats, ReadError> {
        let mut held = self.acquire_connection().await?;
        let set_aside: i64 = query_scalar(SET_ASIDE).fetch_one(&mut *held.connection).await?;
        let rates: Vec<(i64, f64)> = query_as(RATES).fetch_all(&mut *held.connection).await?;
        Ok(ProjectionStats { set_aside: u64::try_from(set_aside).unwrap_or(0), rates: rates.into_iter().collect() })
    }

    /// Returns the counts of unknown types in the live tables, the most frequent first.
    pub async fn unknown_types(&self) -> Result<Vec<UnknownTypeRow>, ReadError> {
        let snapshot = self.snapshot().await?;
        let rows: Vec<(String, i64, i64, i64)> =
            query_as(UNKNOWN_TYPES).fetch_all(&mut **snapshot.connection().await).await?;
        let count = |number: i64| u64::try_from(number).unwrap_or(0);
        let row = |(type_name, messages, first, last)| UnknownTypeRow {
            r#type: type_name,
            messages: count(messages),
            first_sequence: count(first),
            last_sequence: count(last),
        };
        Ok(rows.into_iter().map(row).collect())
    }
}
