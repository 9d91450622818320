//! Writes what a user says to the log, over any transport: one acknowledged publish, and nothing else, when the gateway
//! chose the id. When the client chose it, the request may be a retry: see [`Ingest::known`].

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
        append::{Outgoing, Written},
    },
    envelope::{Envelope, FORGOTTEN, Modality, Origin},
    ids::{self, Name},
    sharing::Holder,
    subjects::{Route, Service},
};
use kairo_proto::Body;
use kairo_read_model::EventsQuery;
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;
use uuid::Uuid;

use super::{Gateway, body::JsonBody, query, span::traceparent};
use crate::{
    auth::{Caller, Scope},
    caps::spending,
    config::GatewayConfig,
    fields::Fields,
    ownership::{self, About},
    problem::Problem,
};

/// A kind of thing that a user can say.
pub trait Ingest: Clone + Sized + Send + Sync {
    /// The name of this kind, from which event ids are derived.
    const KIND: &'static str;
    /// The field in which the client may choose an id; the same id is the same thing, however often it is said.
    const ID: &'static str;
    const ROUTE: Route;

    /// Reads what a client sent. Fields that were read before count as known.
    fn read(fields: Fields<Value>, limits: &GatewayConfig) -> Result<Self, Problem>;

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
    fn about(&self) -> Option<About> {
        None
    }

    /// The agent that may be too busy to take it; none for what is always taken.
    fn waits_for(&self, _default_agent: &str) -> Option<Name> {
        None
    }

    /// Returns true if it makes agents think, so that spending caps apply to it.
    fn is_capped(&self) -> bool {
        false
    }

    /// Returns the scope that a key needs to say it.
    fn demands(&self) -> Scope {
        Scope::Write
    }

    /// Refuses a caller who may not say such a thing.
    fn permit(&self, caller: &Caller) -> Result<(), Problem> {
        caller.require(self.demands())
    }

    /// Returns the modality of its content beside words.
    fn modality(&self) -> Modality {
        Modality::Text
    }

    /// Before it is written, and only then: what it brings along is put where it belongs.
    fn prepare(&mut self, _gateway: &Gateway, _caller: &Caller) -> impl Future<Output = Result<(), Problem>> + Send {
        std::future::ready(Ok(()))
    }

    fn body(self, id: &str) -> Body;

    /// Returns true if the event in the log under this id says the same.
    fn is_the_same_as(&self, stored: &Body, id: &str) -> bool {
        self.clone().body(id) == *stored
    }

    /// Returns its event id and position in the log, if they are known without the log, which drops duplicates within
    /// its duplicate window. The read model knows older input; if it cannot answer, the request goes on.
    fn known(&self, gateway: &Gateway, id: &str) -> impl Future<Output = Option<(Uuid, u64)>> + Send {
        let event_id = event_id::<Self>(self.user(), id);
        async move { Some((event_id, sequence_of(gateway, self.user(), event_id).await?)) }
    }
}

/// Returns the position in the log of the event that entered with this id, as far as the read model knows.
async fn sequence_of(gateway: &Gateway, user: &Name, event_id: Uuid) -> Option<u64> {
    let query = EventsQuery { correlation: Some(event_id), limit: 1, ..EventsQuery::default() };
    let model = gateway.read_model.for_holder(Holder::user(user.as_str()));
    let events = async { model.snapshot().await?.events(&query).await };
    let first = query::at_once(gateway, events).await?.into_iter().next()?;
    (first.event_id == event_id).then_some(first.sequence)
}

/// The answer: it is in the log.
#[derive(Debug)]
pub struct Accepted {
    id_field: &'static str,
    id: String,
    pub event_id: Uuid,
    pub sequence: u64,
    /// It had been said before.
    pub is_known: bool,
}

#[cfg(test)]
impl Accepted {
    pub fn sample(id_field: &'static str) -> Self {
        Self { id_field, id: "x-1".to_owned(), event_id: Uuid::nil(), sequence: 7, is_known: false }
    }
}

impl Serialize for Accepted {
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
pub async fn post<E: Ingest>(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<(StatusCode, Json<Accepted>), Problem> {
    let said = E::read(Fields::from_json(&body)?, &gateway.config)?;
    let accepted = enter(&gateway, &caller, traceparent(&headers), said).await?;
    Ok((StatusCode::ACCEPTED, Json(accepted)))
}

/// Writes it, if the caller may say it.
pub async fn enter<E: Ingest>(
    gateway: &Gateway,
    caller: &Caller,
    traceparent: Option<String>,
    said: E,
) -> Result<Accepted, Problem> {
    said.permit(caller)?;
    caller.act_as_user(Some(said.user().as_str()))?;
    caller.act_on_agent(said.agent().map(Name::as_str))?;
    if let (Some(user), Some(agent), Some(about)) = (caller.user(), said.agent(), said.about()) {
        ownership::hold(gateway, user, agent.as_str(), &about).await?;
    }
    let (id, known) = match said.id() {
        Some(chosen) => (chosen.to_owned(), said.known(gateway, chosen).await),
        None => (ids::entering().to_string(), None),
    };
    let (event_id, Written { sequence, duplicate: is_known }) = match known {
        Some((event_id, sequence)) => (event_id, Written { sequence, duplicate: true }),
        None => publish(gateway, caller, traceparent, said.clone(), &id).await?,
    };
    if is_known {
        hold_to_first(gateway, &said, &id, sequence).await?;
    }
    Ok(Accepted { id_field: E::ID, id, event_id, sequence, is_known })
}

/// Refuses what is said under an id under which something else was said before, at this sequence. What is gone from the log, or
/// of a user who was forgotten, cannot be compared.
async fn hold_to_first<E: Ingest>(gateway: &Gateway, said: &E, id: &str, sequence: u64) -> Result<(), Problem> {
    let Some(raw) = gateway.bus.message_at(sequence).await? else { return Ok(()) };
    let is_forgotten = raw.header(FORGOTTEN).is_some();
    let Ok(stored) = raw.read(gateway.bus.limits.max_body_bytes) else { return Ok(()) };
    match is_forgotten || said.is_the_same_as(&stored.body, id) {
        true => Ok(()),
        false => Err(Problem::another_body(E::KIND, E::ID, id, sequence)),
    }
}

/// The id of the event that says it, which is also the correlation id of all that comes of it.
pub fn event_id<E: Ingest>(user: &Name, id: &str) -> Uuid {
    ids::named(E::KIND, &[user.as_str(), id])
}

async fn publish<E: Ingest>(
    gateway: &Gateway,
    caller: &Caller,
    traceparent: Option<String>,
    mut said: E,
    id: &str,
) -> Result<(Uuid, Written), Problem> {
    // What is in the log is always dealt with, so what has no room has to be refused here.
    if let Some(agent) = said.waits_for(&gateway.config.default_agent)
        && let Some((queue, congestion)) = gateway.congested.before(&agent, said.user())
    {
        return Err(Problem::congested(&queue, congestion));
    }
    if said.is_capped() {
        spending::admit(gateway, caller, said.user().as_str()).await?;
    }
    said.prepare(gateway, caller).await?;
    let user = said.user().clone();
    let event_id = event_id::<E>(&user, id);
    let envelope = Envelope::entering(event_id, Service::Gateway, Origin::User, Timestamp::now());
    let (modality, entered_by) = (said.modality(), Some(caller.principal()));
    let envelope = Envelope { traceparent, modality, entered_by, ..envelope.in_thread(said.thread()) };
    let wait = Duration::from_millis(gateway.config.publish_wait_ms);
    match gateway.bus.publish_within(&Outgoing::new(&E::ROUTE, &user, envelope, said.body(id)), wait).await {
        Ok(written) => Ok((event_id, written)),
        // It may have been written all the same, or may yet be.
        Err(error @ BusError::Unavailable { .. }) => Err(Problem {
            detail: format!("nats did not confirm the {}; send it again with the {} {id}", E::KIND, E::ID),
            ..Problem::from(error)
        }),
        Err(error) => Err(error.into()),
    }
}
