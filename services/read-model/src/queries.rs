//! The queries, one file each, with the index that each goes by.

pub mod actions;
pub mod agents;
pub mod chains;
pub mod conversation;
pub mod events;
pub mod history;
pub mod inbox;
pub mod memories;
pub mod message;
pub mod position;
pub mod processes;
pub mod tasks;
pub mod threads;

use sqlx::{Postgres, QueryBuilder};

use crate::{MAX_ROWS, Place};

/// `AND` these lie behind that place.
fn behind(sql: &mut QueryBuilder<Postgres>, (sequence, position): Place) {
    sql.push(" AND (sequence, position) > (").push_bind(number(sequence));
    sql.push(", ").push_bind(i32::try_from(position).unwrap_or(i32::MAX)).push(")");
}

/// In the order of the log: the first rows, or the last ones, which then come in reverse.
fn ordered(sql: &mut QueryBuilder<Postgres>, backwards: bool, rows: u32) {
    let order = if backwards { "DESC" } else { "ASC" };
    sql.push(format_args!(" ORDER BY sequence {order}, position {order} LIMIT "));
    sql.push_bind(i64::from(rows.clamp(1, MAX_ROWS)));
}

/// A sequence as Postgres counts; streams do not reach what does not fit.
fn number(sequence: u64) -> i64 {
    i64::try_from(sequence).unwrap_or(i64::MAX)
}
