//! `GET /v1/agents/{agent}/log`: an agent's part of the log as it stands there, and what its decisions rest on.

use std::ops::ControlFlow;

use axum::{
    Json,
    extract::{Path, RawQuery, State, rejection::PathRejection},
};
use kairo_core::{ids::Name, record::Raw, subjects::part_of};
use kairo_proto::v1::{GetAgentLogResponse, LogMessage};

use super::{Gateway, query};
use crate::{
    fields::{Fields, parsed, value},
    problem::Problem,
};

/// Messages of a page, and bytes after which it ends, as they are stored. With the last message and all headers it is less
/// than the 4 MiB that clients of gRPC take unless they are told otherwise.
const MESSAGES: usize = 1_000;
const BYTES: usize = 2 * 1024 * 1024;

/// Asked of the log itself: a copy of it may lag behind, and has no place for a decision that decided nothing.
pub async fn get(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Json<GetAgentLogResponse>, Problem> {
    let agent = query::agent(path)?;
    let mut fields = Fields::from_query(query.as_deref());
    let after: Option<u64> = fields.optional("after", "a sequence", value(parsed));
    let after = fields.complete(|| Some(after.unwrap_or(0)))?;
    let mut page = GetAgentLogResponse::default();
    let mut bytes = 0;
    let each = |raw: Raw| {
        if page.messages.len() == MESSAGES || bytes >= BYTES {
            page.next_after = page.messages.last().map(|last| last.sequence);
            return ControlFlow::Break(());
        }
        bytes += raw.payload.len();
        page.messages.push(raw.to_log_message());
        ControlFlow::Continue(())
    };
    gateway.bus.read_together(&part_of(&agent), after, each).await?;
    Ok(Json(page))
}

/// An agent's part of the log up to a place, all of it.
///
/// # Errors
/// When it is longer than is held in memory.
pub async fn part(gateway: &Gateway, agent: &Name, to: u64) -> Result<Vec<LogMessage>, Problem> {
    let most = gateway.config.max_replay_bytes;
    let (mut messages, mut bytes) = (Vec::new(), 0);
    let each = |raw: Raw| {
        if raw.sequence > to || bytes > most {
            return ControlFlow::Break(());
        }
        bytes += stored_bytes(&raw);
        messages.push(raw.to_log_message());
        ControlFlow::Continue(())
    };
    gateway.bus.read_together(&part_of(agent), 0, each).await?;
    if bytes > most {
        return Err(Problem::log_too_long());
    }
    Ok(messages)
}

/// With its headers, which of small messages are the most.
fn stored_bytes(raw: &Raw) -> usize {
    let headers = raw.headers.iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
    headers.map(|(name, value)| AsRef::<str>::as_ref(name).len() + value.as_str().len()).sum::<usize>()
        + raw.payload.len()
}
