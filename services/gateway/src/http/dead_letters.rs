//! `GET /v1/dead-letters`: the messages that were set aside, newest first.

use async_nats::jetstream::{
    message::StreamMessage,
    stream::{DirectGetErrorKind, Stream},
};
use axum::extract::{RawQuery, State};
use futures::future::try_join_all;
use jiff::Timestamp;
use kairo_core::{bus::BusError, event_json, record::Raw, subjects::DLQ_STREAM};
use kairo_proto::v1::{Event, ListDeadLettersResponse};

use super::{Gateway, answer::Told, query};
use crate::{fields::Fields, problem::Problem};

/// Letters asked for at once.
const AT_ONCE: u64 = 16;

pub async fn get(
    State(gateway): State<Gateway>,
    RawQuery(query): RawQuery,
) -> Result<Told<ListDeadLettersResponse>, Problem> {
    let mut fields = Fields::from_query(query.as_deref());
    let limit = query::limit(&mut fields, &gateway.config);
    let limit = fields.complete(|| usize::try_from(limit).ok())?;
    let dead_letters = newest(&gateway, limit).await;
    let dead_letters =
        dead_letters.map_err(|source| BusError::Unavailable { doing: "reading the dead letters", source })?;
    Ok(Told(ListDeadLettersResponse { dead_letters }))
}

async fn newest(gateway: &Gateway, limit: usize) -> Result<Vec<Event>, async_nats::Error> {
    let stream = gateway.bus.nats()?.jetstream.get_stream_no_info(DLQ_STREAM).await?;
    let state = stream.get_info().await?.state;
    let mut newest = Vec::new();
    let mut end = state.last_sequence;
    while newest.len() < limit && end >= state.first_sequence.max(1) {
        let start = end.saturating_sub(AT_ONCE - 1).max(state.first_sequence).max(1);
        for letter in try_join_all((start..=end).rev().map(|sequence| letter(&stream, sequence))).await? {
            // The server's own advisories lie here too, and are no letters.
            newest.extend(letter.and_then(|letter| read(letter, gateway.bus.limits.max_body_bytes)));
        }
        end = start - 1;
    }
    newest.truncate(limit);
    Ok(newest)
}

/// The letter at this place; none if an operator removed it.
async fn letter(stream: &Stream<()>, sequence: u64) -> Result<Option<StreamMessage>, async_nats::Error> {
    match stream.direct_get(sequence).await {
        Ok(letter) => Ok(Some(letter)),
        Err(error) if error.kind() == DirectGetErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn read(letter: StreamMessage, max_body: usize) -> Option<Event> {
    let raw = Raw {
        sequence: letter.sequence,
        subject: letter.subject.to_string(),
        partition: None,
        headers: letter.headers,
        payload: letter.payload,
        sealed: None,
        stored: Timestamp::UNIX_EPOCH,
    };
    event_json::events(&raw.read(max_body).ok()?).pop().map(Event::from)
}
