//! `POST /v1/conversations/{agent}/import`: a conversation that was had elsewhere becomes history of an agent with a user.
//!
//! It enters the log as the definition of an agent does, under the guard of its subject, in as many messages as it takes. Their ids
//! follow from what they say, so that it can be sent again: whoever reads the log passes over what it has.

use std::collections::BTreeMap;

use axum::{
    Extension, Json,
    extract::{Path, Request, State, rejection::PathRejection},
    http::StatusCode,
};
use jiff::Timestamp;
use kairo_core::{
    bus::{BusError, append::OutgoingEvent},
    envelope::{Envelope, Origin},
    ids::Name,
    imports::{self, ConversationImport, DOCUMENT_BYTES},
    media,
    subjects::{AGENT_DEFINED, AGENT_IMPORTED, Service},
    vocabulary::IMPORTS,
};
use kairo_proto::v1::{AgentImported, ConversationDocument, ImportConversationResponse, ImportedThreadRow, Part};

use super::import_document::{self, ImportRequest};
use crate::{
    auth::Caller,
    http::{Gateway, body, query, request_span::traceparent},
    problem::Problem,
};

/// Imports into the same agent that may come in between before a request is given back to its client.
const TRIES: usize = 8;

pub async fn import_conversation(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<(StatusCode, Json<ImportConversationResponse>), Problem> {
    let agent = query::path_agent(path)?;
    let traceparent = traceparent(request.headers());
    let body = body::read_json(request, DOCUMENT_BYTES, "a document may be").await?;
    let ImportRequest { user, document } = import_document::parse(&body)?;
    let user = user.map_or_else(
        || Name::parse(&document.user).map_err(|error| Problem::malformed_request(error.to_string())),
        Ok,
    )?;
    caller.require_user(Some(user.as_str()))?;
    require_importable(&gateway, &agent).await?;
    let import = ConversationImport::new(&agent, &user, &document);
    let stored = find_stored_parts(&gateway, &document).await?;
    let parts = imports::split_document(&import, &document, &stored);
    let importing = ImportWriter { gateway: &gateway, caller: &caller, traceparent, agent: &agent, import: &import };
    let sequence = importing.write_parts(&parts).await?;
    Ok((StatusCode::ACCEPTED, Json(import_response(&import, &document, sequence, parts.len()))))
}

fn import_response(
    import: &ConversationImport,
    document: &ConversationDocument,
    sequence: u64,
    parts: usize,
) -> ImportConversationResponse {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let threads = document.threads.iter().map(|thread| {
        let named = thread.thread_id.clone();
        let thread_id = import.thread_id(&thread.thread_id);
        ImportedThreadRow { named, thread_id }
    });
    ImportConversationResponse {
        import_id: import.digest().to_owned(),
        sequence,
        parts: number(parts),
        messages: number(document.messages.len()),
        threads: threads.collect(),
    }
}

/// Refuses what nobody would take in, or not everybody who is there would understand.
async fn require_importable(gateway: &Gateway, agent: &Name) -> Result<(), Problem> {
    if gateway.bus.current_epoch().await? < IMPORTS {
        let detail = format!("conversations are imported from epoch {IMPORTS} on: see kairo fleet promote");
        return Err(Problem::conflict(detail));
    }
    // A server that lags behind may not have seen it yet.
    let is_known = gateway.directory.find(agent).await?.is_some()
        || gateway.bus.last_at_leader(&AGENT_DEFINED.of_owner(agent)).await? > 0;
    let unknown = || Problem::not_found(format!("no agent {agent} is known; GET /v1/agents lists those there are"));
    is_known.then_some(()).ok_or_else(unknown)
}

/// Returns the document's images, audio and video that are stored here, by their digests.
async fn find_stored_parts(
    gateway: &Gateway,
    document: &ConversationDocument,
) -> Result<BTreeMap<String, Part>, Problem> {
    let mut stored = BTreeMap::new();
    for part in document.messages.iter().flat_map(|message| &message.parts) {
        if stored.contains_key(&part.digest) {
            continue;
        }
        let found = gateway.refresh_object(&part.digest).await?;
        let known = found.filter(|part| media::canonical_type(&part.media_type).is_some());
        stored.extend(known.map(|known| (part.digest.clone(), known)));
    }
    Ok(stored)
}

/// A document on its way into the log.
struct ImportWriter<'a> {
    gateway: &'a Gateway,
    caller: &'a Caller,
    traceparent: Option<String>,
    agent: &'a Name,
    import: &'a ConversationImport,
}

impl ImportWriter<'_> {
    /// Writes what of it does not stand at the end of its subject already; where its last part stands.
    async fn write_parts(&self, parts: &[AgentImported]) -> Result<u64, Problem> {
        let (mut last, mut written) = self.last_written(parts).await?;
        let mut tries = TRIES;
        while let Some(part) = parts.get(written) {
            match self.gateway.bus.append(&self.part_message(part), last).await {
                Ok(there) => (last, written) = (there.sequence, written + 1),
                // Another document may stand between two parts.
                Err(BusError::Conflict { .. }) if tries > 0 => {
                    tries -= 1;
                    let (now, stands) = self.last_written(parts).await?;
                    (last, written) = (now, written.max(stands));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(last)
    }

    /// The last sequence of the subject, and how many parts of the document stand there, if it is of this one.
    async fn last_written(&self, parts: &[AgentImported]) -> Result<(u64, usize), Problem> {
        let Some(last) = self.gateway.bus.last_message(&AGENT_IMPORTED.of_owner(self.agent)).await? else {
            return Ok((0, 0));
        };
        let record = last.read(self.gateway.bus.limits.max_body_bytes).ok();
        let is_it =
            |part: &&AgentImported| record.as_ref().is_some_and(|it| it.envelope.id == self.import.event_id(part.part));
        let stands = parts.iter().find(is_it).and_then(|part| usize::try_from(part.part).ok());
        Ok((last.sequence, stands.unwrap_or(0)))
    }

    fn part_message(&self, part: &AgentImported) -> OutgoingEvent {
        let id = self.import.event_id(part.part);
        let envelope = Envelope::from_outside(id, Service::Gateway, Origin::User, Timestamp::now());
        let traceparent = self.traceparent.clone();
        let entered_by = Some(self.caller.principal());
        let envelope = Envelope { traceparent, entered_by, ..envelope };
        OutgoingEvent::new(&AGENT_IMPORTED, self.agent, envelope, part.clone())
    }
}
