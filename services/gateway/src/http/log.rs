//! `GET /v1/agents/{agent}/log`: an agent's part of the log as it stands there, and what its decisions rest on; `GET /v1/log`: all
//! of the log.

use std::ops::ControlFlow;

use axum::{
    Json,
    extract::{Path, RawQuery, State, rejection::PathRejection},
};
use kairo_core::{ids::Name, record::RawMessage, subjects::replay_subjects};
use kairo_proto::v1::{GetAgentLogResponse, GetLogResponse, LogMessage};

use super::{Gateway, query};
use crate::{
    fields::{RequestFields, parse_text, query_value},
    problem::Problem,
};

/// Messages of a page, and bytes after which it ends, as they are stored. With the last message and all headers it is less
/// than the 4 MiB that clients of gRPC take unless they are told otherwise.
const MESSAGES: usize = 1_000;
const BYTES: usize = 2 * 1024 * 1024;

/// Asked of the log itself: a copy of it may lag behind, and has no place for a decision that decided nothing.
pub async fn get_agent_log(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Json<GetAgentLogResponse>, Problem> {
    let agent = query::path_agent(path)?;
    let mut fields = RequestFields::from_query(query.as_deref());
    let after: Option<u64> = fields.optional("after", "a sequence", query_value(parse_text));
    let sealed: Option<bool> = fields.optional("sealed", "true or false", query_value(parse_text));
    let (after, sealed) = fields.complete(|| Some((after.unwrap_or(0), sealed.unwrap_or(false))))?;
    let mut page = GetAgentLogResponse::default();
    let mut bytes = 0;
    let each = |raw: RawMessage| {
        if page.messages.len() == MESSAGES || bytes >= BYTES {
            page.next_after = page.messages.last().map(|last| last.sequence);
            return ControlFlow::Break(());
        }
        bytes += raw.payload.len();
        let message = if sealed { raw.to_stored().to_log_message() } else { raw.to_log_message() };
        page.messages.push(message);
        ControlFlow::Continue(())
    };
    gateway.bus.read_merged(&replay_subjects(&agent), after, each).await?;
    page.log_begins = gateway.bus.log_start().await?.first;
    Ok(Json(page))
}

/// `GET /v1/log`: all of it.
pub async fn get_log(
    State(gateway): State<Gateway>,
    RawQuery(query): RawQuery,
) -> Result<Json<GetLogResponse>, Problem> {
    let mut fields = RequestFields::from_query(query.as_deref());
    let after: Option<u64> = fields.optional("after", "a sequence", query_value(parse_text));
    let mut after = fields.complete(|| Some(after.unwrap_or(0)))?;
    let log = gateway.bus.log_identity()?.id.to_string();
    let end = gateway.bus.end_sequence().await?;
    let mut answer = GetLogResponse { log, end, ..GetLogResponse::default() };
    let mut bytes = 0;
    while after < end {
        let page = gateway.bus.read_log_page(after).await?;
        for raw in page.messages {
            if answer.messages.len() == MESSAGES || bytes >= BYTES {
                answer.next_after = Some(after);
                return Ok(Json(answer));
            }
            (after, bytes) = (raw.sequence, bytes + stored_bytes(&raw));
            answer.messages.push(mark_misplaced(&gateway, &raw));
        }
        if !page.more {
            break;
        }
    }
    Ok(Json(answer))
}

/// One that is not where its owner's messages are is nothing that its agent knows.
fn mark_misplaced(gateway: &Gateway, raw: &RawMessage) -> LogMessage {
    let message = raw.to_stored().to_log_message();
    if gateway.bus.misplacement_of(raw).is_none() {
        return message;
    }
    let partition = raw.partition.map_or_else(|| "-".to_owned(), |partition| partition.to_string());
    LogMessage { subject: format!("{}.{partition}", message.subject), ..message }
}

/// An agent's part of the log up to a place, all of it: what was trimmed is read from the archive.
///
/// # Errors
/// When it is longer than is held in memory, and where what was trimmed is in no archive: nothing follows from what is left.
pub async fn read_agent_log(gateway: &Gateway, agent: &Name, to: u64) -> Result<Vec<LogMessage>, Problem> {
    let begins = gateway.bus.log_start().await?.first_everywhere();
    if begins > 1 && !gateway.bus.has_archive() {
        return Err(Problem::no_archive(begins));
    }
    let most = gateway.config.max_replay_bytes;
    let mut messages = Vec::new();
    let mut bytes = 0;
    let each = |raw: RawMessage| {
        if raw.sequence > to || bytes > most {
            return ControlFlow::Break(());
        }
        bytes += stored_bytes(&raw);
        messages.push(raw.to_log_message());
        ControlFlow::Continue(())
    };
    gateway.bus.read_full_history(&replay_subjects(agent), each).await?;
    if bytes > most {
        return Err(Problem::log_too_long());
    }
    Ok(messages)
}

/// With its headers, which of small messages are the most.
fn stored_bytes(raw: &RawMessage) -> usize {
    let headers = raw.headers.iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
    headers.map(|(name, value)| AsRef::<str>::as_ref(name).len() + value.as_str().len()).sum::<usize>()
        + raw.payload.len()
}
