//! `GET /v1/incidents/{agent}`: an agent's part of the log as an incident file, which needs no server to be looked into.

use std::convert::Infallible;

use axum::{
    body::Body,
    extract::{Path, RawQuery, State, rejection::PathRejection},
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use kairo_core::ids::Name;
use kairo_proto::v1::LogMessage;
use kairo_replay::incident::{AROUND, Around, Choosing, Writing};

use super::{
    Gateway,
    computing::{Wanted, while_wanted},
    log, query,
};
use crate::{
    fields::{Fields, value},
    problem::{FieldError, Problem},
};

/// One JSON document a line.
const MEDIA_TYPE: &str = "application/x-ndjson";

/// What is in it is as it was said: secrets that are sealed stay sealed.
pub async fn get(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let agent = query::agent(path)?;
    let mut fields = Fields::from_query(query.as_deref());
    let around = fields.optional("around", AROUND, value(Around::read));
    let around = fields.complete(|| Some(around))?;
    let permit = gateway.replay_permit()?;
    let messages = log::part(&gateway, &agent, u64::MAX).await?;
    let named = format!("attachment; filename=\"{agent}.kairo\"");
    let (permit, lines) = while_wanted(move |wanted| (permit, file(agent, around, &messages, wanted))).await?;
    let disposition = HeaderValue::try_from(named).unwrap_or(HeaderValue::from_static("attachment"));
    let head = [
        (header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::CONTENT_DISPOSITION, disposition),
    ];
    // It is in memory until the client has all of it.
    let lines = lines?.into_iter().map(move |line| {
        let _held = &permit;
        Ok::<_, Infallible>(line)
    });
    Ok((head, Body::from_stream(futures::stream::iter(lines))).into_response())
}

/// The lines of the file.
fn file(agent: Name, around: Option<Around>, messages: &[LogMessage], wanted: &Wanted) -> Result<Vec<Bytes>, Problem> {
    let mut choosing = Choosing::new(agent, around.clone());
    wanted.each(messages).for_each(|message| choosing.look(message));
    if let (Some(around), None) = (around, choosing.met()) {
        let expected = "the sequence of a message of this agent, or the id of an event in its log".to_owned();
        let error = FieldError { field: "around".to_owned(), expected, found: Some(around.to_string()) };
        return Err(Problem::invalid(vec![error]));
    }
    wanted.each(messages).for_each(|message| choosing.measure(message));
    // Its key would be needed only to see that decisions which seal secrets come out the same.
    let mut writing = Writing::new(&choosing, None);
    let mut lines = vec![Bytes::new()];
    for message in wanted.each(messages) {
        let line = writing.take(message).map_err(|broken| Problem::unreplayable(&broken))?;
        lines.extend(line.map(Bytes::from));
    }
    let manifest = writing.end(env!("CARGO_PKG_VERSION"));
    let manifest = manifest.ok_or_else(|| Problem::not_found("the log has nothing of this agent"))?;
    if let Some(first) = lines.first_mut() {
        *first = Bytes::from(manifest.line());
    }
    Ok(lines)
}
