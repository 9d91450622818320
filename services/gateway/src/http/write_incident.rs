//! `GET /v1/incidents/{agent}`: an agent's part of the log as an incident file, which needs no server to be looked into.

use std::{collections::VecDeque, convert::Infallible};

use axum::{
    body::Body,
    extract::{Path, RawQuery, State, rejection::PathRejection},
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use kairo_core::ids::Name;
use kairo_proto::v1::{LogMessage, Part};
use kairo_replay::incident::{
    AROUND, Anchor, IncidentWriter, Manifest, MessageSelection,
    objects::{LARGEST, ObjectWriter, Objects, Reason, base64_len},
};

use super::{
    Gateway,
    blocking_computation::{WaitingClient, compute_while_waiting},
    log, query,
};
use crate::{
    fields::{RequestFields, parse_text, query_value},
    problem::{FieldError, Problem},
};

/// One JSON document a line.
const MEDIA_TYPE: &str = "application/x-ndjson";

/// Returns the incident file, with all content as it was said: secrets that are sealed stay sealed.
pub async fn export_incident(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let agent = query::path_agent(path)?;
    let mut fields = RequestFields::from_query(query.as_deref());
    let around = fields.optional("around", AROUND, query_value(Anchor::parse));
    let objects = fields.optional("objects", "true or false", query_value(parse_text));
    let (around, wants_objects) = fields.complete(|| Some((around, objects.unwrap_or(true))))?;
    let permit = gateway.replay_permit()?;
    let messages = log::read_agent_log(&gateway, &agent, u64::MAX).await?;
    let attached = format!("attachment; filename=\"{agent}.kairo\"");
    let (permit, written) =
        compute_while_waiting(move |wanted| (permit, file(agent, around, &messages, wanted))).await?;
    let (manifest, named, mut lines) = written?;
    let objects = match wants_objects {
        true => add_objects(&gateway, named, &mut lines).await?,
        false => Objects::left_out(named.len() as u64, Reason::Unwanted),
    };
    lines.push_front(Bytes::from(manifest.with_objects(objects).to_line()));
    let disposition = HeaderValue::try_from(attached).unwrap_or(HeaderValue::from_static("attachment"));
    let head = [
        (header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::CONTENT_DISPOSITION, disposition),
    ];
    // It is in memory until the client has all of it.
    let lines = lines.into_iter().map(move |line| {
        let _held = &permit;
        Ok::<_, Infallible>(line)
    });
    Ok((head, Body::from_stream(futures::stream::iter(lines))).into_response())
}

/// The messages of the file, their manifest, and the objects that they name.
fn file(
    agent: Name,
    around: Option<Anchor>,
    messages: &[LogMessage],
    wanted: &WaitingClient,
) -> Result<(Manifest, Vec<Part>, VecDeque<Bytes>), Problem> {
    let mut choosing = MessageSelection::new(agent, around.clone());
    wanted.while_waiting(messages).for_each(|message| choosing.locate_anchor(message));
    if let (Some(around), None) = (around, choosing.anchor()) {
        let expected = "the sequence of a message of this agent, or the id of an event in its log".to_owned();
        let error = FieldError { field: "around".to_owned(), expected, found: Some(around.to_string()) };
        return Err(Problem::invalid_fields(vec![error]));
    }
    wanted.while_waiting(messages).for_each(|message| choosing.extend_range(message));
    // Its key would be needed only to see that decisions which seal secrets come out the same.
    let mut writing = IncidentWriter::new(&choosing, None);
    let mut lines = VecDeque::new();
    for message in wanted.while_waiting(messages) {
        let line = writing.write(message).map_err(|broken| Problem::unreplayable(&broken))?;
        lines.extend(line.map(Bytes::from));
    }
    let ended = writing.finish(env!("CARGO_PKG_VERSION"));
    let (manifest, named) = ended.ok_or_else(|| Problem::not_found("the log has nothing of this agent"))?;
    Ok((manifest, named, lines))
}

/// Adds the objects, as far as they are stored.
///
/// # Errors
/// When all lines together are longer than is held in memory.
async fn add_objects(gateway: &Gateway, named: Vec<Part>, lines: &mut VecDeque<Bytes>) -> Result<Objects, Problem> {
    let held: usize = lines.iter().map(Bytes::len).sum();
    let mut room = (gateway.config.max_replay_bytes as u64).saturating_sub(held as u64);
    let mut adding = ObjectWriter::default();
    for part in named {
        let longest = part.size.min(LARGEST);
        let is_too_large = base64_len(longest) > room;
        // What is not stored any more takes no room.
        if is_too_large && gateway.objects.info(&part.digest).await?.is_some_and(|known| known.size <= longest) {
            return Err(Problem::objects_too_long());
        }
        let found = if is_too_large { None } else { gateway.objects.get(&part.digest, longest).await? };
        let Some((_, bytes)) = found else {
            adding.record_missing(&part);
            continue;
        };
        let written = compute_while_waiting(move |_| {
            let line = adding.write(&part, &bytes);
            (adding, line)
        });
        let line;
        (adding, line) = written.await?;
        room = room.saturating_sub(line.len() as u64);
        lines.push_back(Bytes::from(line));
    }
    Ok(adding.finish())
}

#[cfg(test)]
mod tests {
    use kairo_core::config::Validate;

    use super::*;
    use crate::config::GatewayConfig;

    #[test]
    fn whatever_a_gateway_takes_fits_an_incident_file() {
        let taken = |bytes: u64| {
            let max_part_bytes = usize::try_from(bytes).unwrap();
            GatewayConfig { max_part_bytes, ..GatewayConfig::default() }.mistakes().is_empty()
        };
        assert!(taken(LARGEST) && !taken(LARGEST + 1));
    }
}
