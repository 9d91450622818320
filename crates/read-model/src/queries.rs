//! The queries, one file each, with the index that each goes by.
//!
//! Each is checked against the schema when it is compiled (`scripts/prepare-queries`), so what is optional in it is a
//! parameter that may be null: `$1::text IS NULL OR agent = $1`. Postgres plans it anew each time, with the parameters
//! known (see [`PostgresConfig::query_options`](crate::PostgresConfig::query_options)), and so by the index that fits.

pub mod agents;
pub mod approvals;
pub mod briefings;
pub mod chains;
pub mod conversation;
pub mod conversations;
pub mod events;
pub mod export;
pub mod history;
pub mod inbox;
pub mod inner_state;
pub mod interaction;
pub mod memories;
pub mod message;
pub mod objects;
pub mod outline;
pub mod owners;
pub mod processes;
pub mod recent;
pub mod tasks;
pub mod teams;
pub mod thoughts;
pub mod thread_messages;
pub mod threads;
pub mod usage;
pub mod user_holdings;
pub mod waits;

use crate::{MAX_ROWS, RowPosition};

/// Before and behind all that there is.
const BEGINNING: RowPosition = (0, 0);
const END: RowPosition = (u64::MAX, u32::MAX);

/// A place as Postgres counts.
fn to_sql_position((sequence, position): RowPosition) -> (i64, i32) {
    (to_bigint(sequence), i32::try_from(position).unwrap_or(i32::MAX))
}

/// A sequence as Postgres counts; streams do not reach what does not fit.
fn to_bigint(sequence: u64) -> i64 {
    i64::try_from(sequence).unwrap_or(i64::MAX)
}

/// Returns the number of rows to ask for, 1 to [`MAX_ROWS`].
fn row_limit(limit: u32) -> i64 {
    i64::from(limit.clamp(1, MAX_ROWS))
}
