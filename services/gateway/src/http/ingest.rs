//! Writes what a user says to the log, over any transport: one acknowledged publish, and nothing else, when the gateway
//! chose the id. When the client chose it, the request may be a retry: see [`UserInput::find_known`].

use std::time::Duration;

use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use jiff::Timestamp;
use kairo_core::{
    bus::{
        BusError,
        append::{OutgoingEvent, StoreAck},
    },
    envelope::{Envelope, FORGOTTEN, Modality, Origin},
    ids::{self, Name},
    sharing::QuotaHolder,
    subjects::{Route, Service},
};
use kairo_proto::Body;
use kairo_read_model::EventsQuery;
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;
use uuid::Uuid;

use super::{Gateway, body::JsonBody, query, request_span::traceparent};
use crate::{
    auth::{Caller, Scope},
    caps::spending,
    config::GatewayConfig,
    fields::RequestFields,
    ownership::{self, OrderSubject},
    problem::Problem,
};

/// A kind of thing that a user can say.
pub trait UserInput: Clone + Sized + Send + Sync {
    /// The name of this kind, from which event ids are derived.
    const KIND: &'static str;
    /// The field in which the client may choose an id; the same id is the same thing, however often it is said.
    const ID: &'static str;
    const ROUTE: Route;

    /// Reads what a client sent. Fields that were read before count as known.
    fn from_fields(fields: RequestFields<Value>, limits: &GatewayConfig) -> Result<Self, Problem>;

    fn user(&self) -> &Name;

    /// The agent it names.
    fn agent(&self) -> Option<&Name>;

    /// The id, if the client chose one.
    fn id(&self) -> Option<&str>;

    /// The thread it names; empty for none.
    fn thread(&self) -> &str {
        ""
    }

    /// Returns the agent's object that it concerns, which must be the user's own where the key is limited to a user.
    fn concerned_object(&self) -> Option<OrderSubject> {
        None
    }

    /// The agent that may be too busy to take it; none for what is always taken.
    fn backpressured_agent(&self, _default_agent: &str) -> Option<Name> {
        None
    }

    /// Returns true if it makes agents think, so that spending caps apply to it.
    fn is_capped(&self) -> bool {
        false
    }

    /// Returns the scope that a key needs to say it.
    fn required_scope(&self) -> Scope {
        Scope::Write
    }

    /// Refuses a caller who may not say such a thing.
    fn authorize(&self, caller: &Caller) -> Result<(), Problem> {
        caller.require_scope(self.required_scope())
    }

    /// Returns the modality of its content beside words.
    fn modality(&self) -> Modality {
        Modality::Text
    }

    /// Before it is written, and only then: what it brings along is put where it belongs.
    fn prepare(&mut self, _gateway: &Gateway, _caller: &Caller) -> impl Future<Output = Result<(), Problem>> + Send {
        std::future::ready(Ok(()))
    }

    fn into_body(self, id: &str) -> Body;

    /// Returns true if the event in the log under this id says the same.
    fn is_the_same_as(&self, stored: &Body, id: &str) -> bool {
        self.clone().into_body(id) == *stored
    }

    /// Returns its event id and position in the log, if they are known without the log, which drops duplicates within
    /// its duplicate window. The read model knows older input; if it cannot answer, the request goes on.
    fn find_known(&self, gateway: &Gateway, id: &str) -> impl Future<Output = Option<(Uuid, u64)>> + Send {
        let event_id = event_id::<Self>(self.user(), id);
        async move { Some((event_id, find_sequence(gateway, self.user(), event_id).await?)) }
    }
}

/// Returns the position in the log of the event that entered with this id, as far as the read model knows.
async fn find_sequence(gateway: &Gateway, user: &Name, event_id: Uuid) -> Option<u64> {
    let query = EventsQuery { correlation: Some(event_id), limit: 1, ..EventsQuery::default() };
    let model = gateway.read_model.for_holder(QuotaHolder::for_user(user.as_str()));
    let events = async { model.snapshot().await?.list_events(&query).await };
    let first = query::lookup_or_none(gateway, events).await?.into_iter().next()?;
    (first.event_id == event_id).then_some(first.sequence)
}

/// The answer: it is in the log.
#[derive(Debug)]
pub struct AcceptedInput {
    id_field: &'static str,
    pub id: String,
    pub event_id: Uuid,
    pub sequence: u64,
    /// It had been said before.
    pub is_known: bool,
}

#[cfg(test)]
impl AcceptedInput {
    pub fn sample(id_field: &'static str) -> Self {
        Self { id_field, id: "x-1".to_owned(), event_id: Uuid::nil(), sequence: 7, is_known: false }
    }
}

impl Serialize for AcceptedInput {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut fields = out.serialize_map(Some(4))?;
        fields.serialize_entry(self.id_field, &self.id)?;
        fields.serialize_entry("event_id", &self.event_id)?;
        fields.serialize_entry("sequence", &self.sequence)?;
        // What it leads to carries the id of what entered.
        fields.serialize_entry("correlation_id", &self.event_id)?;
        fields.end()
    }
}

/// The endpoint of a kind.
pub async fn accept_input<E: UserInput>(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<(StatusCode, Json<AcceptedInput>), Problem> {
    let said = E::from_fields(RequestFields::from_json(&body)?, &gateway.config)?;
    let accepted = submit_input(&gateway, &caller, traceparent(&headers), said).await?;
    Ok((StatusCode::ACCEPTED, Json(accepted)))
}

/// Writes it, if the caller may say it.
pub async fn submit_input<E: UserInput>(
    gateway: &Gateway,
    caller: &Caller,
    traceparent: Option<String>,
    said: E,
) -> Result<AcceptedInput, Problem> {
    said.authorize(caller)?;
    caller.require_user(Some(said.user().as_str()))?;
    caller.require_agent(said.agent().map(Name::as_str))?;
    if let (Some(user), Some(agent), Some(about)) = (caller.user(), said.agent(), said.concerned_object()) {
        ownership::require_ownership(gateway, user, agent.as_str(), &about).await?;
    }
    let (id, known) = match said.id() {
        Some(chosen) => (chosen.to_owned(), said.find_known(gateway, chosen).await),
        None => (ids::generate().to_string(), None),
    };
    let (event_id, StoreAck { sequence, duplicate: is_known }) = match known {
        Some((event_id, sequence)) => (event_id, StoreAck { sequence, duplicate: true }),
        None => publish_input(gateway, caller, traceparent, said.clone(), &id).await?,
    };
    if is_known {
        reject_changed_input(gateway, &said, &id, sequence).await?;
    }
    Ok(AcceptedInput { id_field: E::ID, id, event_id, sequence, is_known })
}

/// Refuses what is said under an id under which something else was said before, at this sequence. What is gone from the log, or
/// of a user who was forgotten, cannot be compared.
async fn reject_changed_input<E: UserInput>(
    gateway: &Gateway,
    said: &E,
    id: &str,
    sequence: u64,
) -> Result<(), Problem> {
    let Some(raw) = gateway.bus.message_at(sequence).await? else { return Ok(()) };
    let is_forgotten = raw.header(FORGOTTEN).is_some();
    let Ok(stored) = raw.read(gateway.bus.limits.max_body_bytes) else { return Ok(()) };
    match is_forgotten || said.is_the_same_as(&stored.body, id) {
        true => Ok(()),
        false => Err(Problem::id_reused(E::KIND, E::ID, id, sequence)),
    }
}

/// The id of the event that says it, which is also the correlation id of all that comes of it.
pub fn event_id<E: UserInput>(user: &Name, id: &str) -> Uuid {
    ids::from_parts(E::KIND, &[user.as_str(), id])
}

async fn publish_input<E: UserInput>(
    gateway: &Gateway,
    caller: &Caller,
    traceparent: Option<String>,
    mut said: E,
    id: &str,
) -> Result<(Uuid, StoreAck), Problem> {
    // What is in the log is always dealt with, so what has no room has to be refused here.
    if let Some(agent) = said.backpressured_agent(&gateway.config.default_agent)
        && let Some((queue, congestion)) = gateway.congested.find_blocking_queue(&agent, said.user())
    {
        return Err(Problem::agent_congested(&queue, congestion));
    }
    if said.is_capped() {
        spending::check_caps(gateway, caller, said.user().as_str()).await?;
    }
    said.prepare(gateway, caller).await?;
    let user = said.user().clone();
    let event_id = event_id::<E>(&user, id);
    let envelope = Envelope::from_outside(event_id, Service::Gateway, Origin::User, Timestamp::now());
    let modality = said.modality();
    let entered_by = Some(caller.principal());
    let envelope = Envelope { traceparent, modality, entered_by, ..envelope.with_thread(said.thread()) };
    let wait = Duration::from_millis(gateway.config.publish_wait_ms);
    match gateway
        .bus
        .publish_with_retry(&OutgoingEvent::new(&E::ROUTE, &user, envelope, said.into_body(id)), wait)
        .await
    {
        Ok(written) => Ok((event_id, written)),
        // It may have been written all the same, or may yet be.
        Err(error @ BusError::Unavailable { .. }) => Err(Problem {
            detail: format!("nats did not confirm the {}; send it again with the {} {id}", E::KIND, E::ID),
            ..Problem::from(error)
        }),
        Err(error) => Err(error.into()),
    }
}
