//! Helpers that the queries of the read model share.

use std::{cmp::Reverse, future::Future, time::Duration};

use axum::extract::{Path, rejection::PathRejection};
use kairo_core::ids::Name;
use kairo_read_model::{ReadError, ReadErrorKind};
use uuid::Uuid;

use super::Gateway;
use crate::{
    config::GatewayConfig,
    fields::{NAME, RequestFields, UUID, parse_name, parse_text, query_value},
    log_position::{LogPosition, PLACE},
    problem::{FieldError, Problem},
};

/// Returns the read model's answer if it arrives within `lookup_timeout_ms`, for callers that can do without it.
pub async fn lookup_or_none<T>(gateway: &Gateway, asked: impl Future<Output = Result<T, ReadError>>) -> Option<T> {
    lookup_within(Duration::from_millis(gateway.config.lookup_timeout_ms), asked).await
}

/// Returns the read model's answer if it arrives within a limit.
pub async fn lookup_within<T>(limit: Duration, asked: impl Future<Output = Result<T, ReadError>>) -> Option<T> {
    match tokio::time::timeout(limit, asked).await {
        Ok(Ok(answer)) => Some(answer),
        Ok(Err(error)) => {
            tracing::debug!(%error, "going on without the read model");
            None
        }
        Err(_) => None,
    }
}

/// Returns the read model's answer, which must arrive within `query_timeout_ms`.
pub async fn await_answer<T>(
    gateway: &Gateway,
    asked: impl Future<Output = Result<T, ReadError>>,
) -> Result<T, Problem> {
    let limit = Duration::from_millis(gateway.config.query_timeout_ms);
    match tokio::time::timeout(limit, asked).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(read_error_problem(gateway, &error)),
        Err(late) => Err(Problem::read_model_unavailable(&late)),
    }
}

/// Converts an error of the read model into a problem.
pub fn read_error_problem(gateway: &Gateway, error: &ReadError) -> Problem {
    match error.kind {
        ReadErrorKind::Unavailable => Problem::read_model_unavailable(error),
        ReadErrorKind::Denied => Problem::read_model_denied(error, &gateway.read_model.postgres_role()),
        ReadErrorKind::Other => Problem::internal(error),
    }
}

/// Rows that the last message of a page is completed with at once.
const REST: u32 = 64;

/// Returns true if the page is full, so that there may be more rows.
pub fn is_full_page<T>(rows: &[T], limit: u32) -> bool {
    u32::try_from(rows.len()).map_or(true, |rows| rows >= limit)
}

/// Adds the rest of the last message to a page, so that clients can go on by sequence. Returns the sequence if there
/// is more behind it. `ask` looks up at most so many rows behind a place.
pub async fn complete_last_message<T, A>(
    rows: &mut Vec<T>,
    place: impl Fn(&T) -> LogPosition,
    ask: impl Fn(LogPosition, u32) -> A,
) -> Result<Option<u64>, Problem>
where
    A: Future<Output = Result<Vec<T>, Problem>>,
{
    while let Some(last) = rows.last().map(&place) {
        let behind = ask(last, REST).await?;
        let rest = behind.iter().take_while(|row| place(row).sequence == last.sequence).count();
        let more = behind.len() > rest;
        let done = more || !is_full_page(&behind, REST);
        rows.extend(behind.into_iter().take(rest));
        if done {
            return Ok(more.then_some(last.sequence));
        }
    }
    Ok(None)
}

/// The field `limit`: rows wanted at most.
pub fn parse_limit(fields: &mut RequestFields<String>, config: &GatewayConfig) -> u32 {
    parse_row_count("limit", fields, config).unwrap_or(config.default_limit)
}

/// The fields `latest`, for so many of the newest rows, and `limit`, which it stands for when that is not given.
pub fn parse_latest_and_limit(fields: &mut RequestFields<String>, config: &GatewayConfig) -> (Option<u32>, u32) {
    let latest = parse_row_count("latest", fields, config);
    let limit = parse_row_count("limit", fields, config);
    (latest, limit.or(latest).unwrap_or(config.default_limit))
}

/// A field for a number of rows, as [`parse_limit`], where it is given.
pub fn parse_row_count(field: &'static str, fields: &mut RequestFields<String>, config: &GatewayConfig) -> Option<u32> {
    let most = config.max_limit;
    let fits = |text: &str| parse_text(text).filter(|rows| (1..=most).contains(rows));
    fields.optional(field, format!("1 to {most}"), query_value(fits))
}

/// The field `after`: the place behind which to begin.
pub fn parse_after(fields: &mut RequestFields<String>) -> Option<LogPosition> {
    fields.optional("after", PLACE, query_value(parse_text))
}

/// The field `before`: the message of the log before which a page of the newest ends.
pub fn parse_before(fields: &mut RequestFields<String>) -> Option<u64> {
    fields.optional("before", "a sequence", query_value(parse_text))
}

/// Puts a page of the newest rows in order, by sequence and among equals by `id`. Returns what to ask for as `before` to
/// see those behind it, if there may be any: pages end with a whole message.
pub fn sort_newest_first<T, I: Ord>(
    rows: &mut [T],
    limit: u32,
    sequence: impl Fn(&T) -> u64,
    id: impl Fn(&T) -> I,
) -> Option<u64> {
    rows.sort_by_cached_key(|row| (Reverse(sequence(row)), id(row)));
    rows.last().filter(|_| is_full_page(rows, limit)).map(sequence)
}

/// The agent in the path.
pub fn path_agent(path: Result<Path<String>, PathRejection>) -> Result<Name, Problem> {
    parse_path_part("agent", NAME, path, parse_name)
}

/// The user in the path.
pub fn path_user(path: Result<Path<String>, PathRejection>) -> Result<Name, Problem> {
    parse_path_part("user", NAME, path, parse_name)
}

/// The team in the path.
pub fn path_team(path: Result<Path<String>, PathRejection>) -> Result<Name, Problem> {
    parse_path_part("team", NAME, path, parse_name)
}

/// The thread in the path.
pub fn path_thread(path: Result<Path<String>, PathRejection>) -> Result<Name, Problem> {
    parse_path_part("thread_id", NAME, path, parse_name)
}

/// The id in the path, which is named so elsewhere.
pub fn path_id(field: &str, path: Result<Path<String>, PathRejection>) -> Result<Uuid, Problem> {
    parse_path_part(field, UUID, path, parse_text)
}

/// The agent in the path, and behind it the id of something of it.
pub fn path_agent_and_id(
    field: &str,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<(Name, Uuid), Problem> {
    let (given, id) = path.map(|Path(both)| both).unwrap_or_default();
    Ok((
        parse_path_part("agent", NAME, Ok(Path(given)), parse_name)?,
        parse_path_part(field, UUID, Ok(Path(id)), parse_text)?,
    ))
}

fn parse_path_part<T>(
    field: &str,
    expected: &str,
    path: Result<Path<String>, PathRejection>,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<T, Problem> {
    let given = path.map(|Path(given)| given).unwrap_or_default();
    read(&given).ok_or_else(|| {
        let found = Some(given.chars().take(80).collect());
        Problem::invalid_fields(vec![FieldError { field: field.to_owned(), expected: expected.to_owned(), found }])
    })
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    /// Completes the first `limit` of the rows of these sequences.
    async fn completed(sequences: &[u64], limit: usize) -> (usize, Option<u64>) {
        let log: Vec<LogPosition> = sequences
            .iter()
            .zip(0..)
            .map(|(sequence, position)| LogPosition { sequence: *sequence, position })
            .collect();
        let mut page = log[..limit].to_vec();
        let behind = |after: LogPosition, limit| {
            ready(Ok(log.iter().copied().filter(|row| *row > after).take(limit as usize).collect()))
        };
        let next = complete_last_message(&mut page, |row| *row, behind).await.unwrap();
        (page.len(), next)
    }

    #[test]
    fn the_newest_come_first_and_say_where_to_go_on() {
        let page = |rows: &[(u64, &'static str)], limit| {
            let mut rows = rows.to_vec();
            let next = sort_newest_first(&mut rows, limit, |row| row.0, |row| row.1);
            (rows, next)
        };
        assert_eq!(page(&[(7, "b"), (7, "a"), (9, "c")], 2), (vec![(9, "c"), (7, "a"), (7, "b")], Some(7)));
        assert_eq!(page(&[(9, "c"), (7, "a")], 3).1, None);
        assert_eq!(page(&[], 1), (vec![], None));
    }

    #[tokio::test]
    async fn a_page_ends_with_a_whole_message() {
        assert_eq!(completed(&[1, 2, 3], 2).await, (2, Some(2)));
        assert_eq!(completed(&[1, 2, 2, 3], 2).await, (3, Some(2)));
        assert_eq!(completed(&[1, 2, 2], 2).await, (3, None));
        assert_eq!(completed(&[1, 2], 2).await, (2, None));
        assert_eq!(completed(&[7; 200], 1).await, (200, None));
    }
}
