//! Things that only events tell of, by the beginning of their id.

use std::collections::BTreeMap;

use clap::Args;
use kairo_core::{event_json::EventJson, ids::Name};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{GatewaySession, id_prefix::IdPrefix, name, status};
use crate::{Error, client::EventFilter};

/// Events that are looked through, the newest.
const LOOKED_THROUGH: u64 = 1_000;

/// One that is meant.
#[derive(Debug, Args)]
pub(super) struct RecentEventSelector {
    /// Its id, or the first digits if it was told of lately
    #[arg(value_name = "ID")]
    id: IdPrefix,
    /// The agent it concerns; only needed for one of long ago
    #[arg(long, value_parser = name, value_name = "NAME")]
    agent: Option<Name>,
}

impl RecentEventSelector {
    /// The agent and the id of the one that is meant. `id` reads the id of such a thing off an event that tells of one;
    /// `what` they are is for people.
    pub(super) async fn find_by_event(
        &self,
        id: impl Fn(&EventJson) -> Option<Uuid>,
        what: &str,
        session: &GatewaySession,
    ) -> Result<(String, String), Error> {
        if let (Some(agent), Some(id)) = (&self.agent, self.id.full_id()) {
            return Ok((agent.to_string(), id));
        }
        let find = |events: &[EventJson]| {
            let told_of = agents_by_id(events, &id).into_iter().map(|(id, agent)| (id.to_string(), agent));
            self.id.find_unique(told_of, |(id, _)| id.as_str(), what, "kairo events")
        };
        let (id, agent) = self.find_in_newest_events(find, session).await??;
        Ok((agent, id))
    }

    /// Returns the result of `find` on the newest events. If it finds nothing they are read again once the read model has
    /// caught up with the log: the request that somebody answers may be a moment old.
    ///
    /// # Errors
    /// If the events cannot be read. The inner error is that of `find`.
    async fn find_in_newest_events<T>(
        &self,
        find: impl Fn(&[EventJson]) -> Result<T, Error>,
        session: &GatewaySession,
    ) -> Result<Result<T, Error>, Error> {
        let filter = EventFilter { agent: self.agent.clone(), latest: Some(LOOKED_THROUGH), ..EventFilter::default() };
        if let Ok(found) = find(&session.client.events(&filter).await?.events) {
            return Ok(Ok(found));
        }
        let end = status::end_of_log(session).await?;
        let up_to_date = session.client.clone().with_at_least(Some(end));
        Ok(find(&up_to_date.events(&filter).await?.events))
    }
}

/// A request of an agent to a user.
pub(super) struct UserRequest {
    pub(super) agent: String,
    pub(super) id: String,
    /// The user who was asked; `None` if that was long ago.
    pub(super) user: Option<String>,
    /// The arguments of the call that it is about, if it is about one.
    pub(super) arguments: Map<String, Value>,
}

impl RecentEventSelector {
    /// The request that is meant, of events of this type; `what` they are is for people.
    pub(super) async fn find_request(
        &self,
        type_name: &str,
        what: &str,
        session: &GatewaySession,
    ) -> Result<UserRequest, Error> {
        let find = |events: &[EventJson]| {
            self.id.find_unique(
                distinct_requests(events, type_name),
                |request| request.id.as_str(),
                what,
                "kairo inbox",
            )
        };
        match (self.find_in_newest_events(find, session).await?, &self.agent, self.id.full_id()) {
            (Err(_), Some(agent), Some(id)) => {
                Ok(UserRequest { agent: agent.to_string(), id, user: None, arguments: Map::new() })
            }
            (found, ..) => found,
        }
    }
}

/// Each request once, however many events tell of it.
fn distinct_requests(events: &[EventJson], type_name: &str) -> Vec<UserRequest> {
    let user = |event: &EventJson| event.payload.get("user").and_then(Value::as_str).map(str::to_owned);
    let arguments = |event: &EventJson| {
        let text = event.payload.get("arguments").and_then(Value::as_str).unwrap_or_default();
        serde_json::from_str(text).unwrap_or_default()
    };
    let of_type = events.iter().filter(|event| event.type_name == type_name);
    let by_id: BTreeMap<Uuid, &EventJson> = of_type.map(|event| (event.event_id, event)).collect();
    let request = |(id, event): (Uuid, &EventJson)| UserRequest {
        agent: event_agent(event),
        id: id.to_string(),
        user: user(event),
        arguments: arguments(event),
    };
    by_id.into_iter().map(request).collect()
}

/// The agent that an event concerns.
fn event_agent(event: &EventJson) -> String {
    event.subject.split('.').nth(2).unwrap_or_default().to_owned()
}

/// Each thing once, with the agent it concerns, however many events tell of it.
fn agents_by_id(events: &[EventJson], id: impl Fn(&EventJson) -> Option<Uuid>) -> BTreeMap<Uuid, String> {
    events.iter().filter_map(|event| Some((id(event)?, event_agent(event)))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_several_events_tell_of_is_one_thing() {
        let event = |id: u128, type_name: &str| -> EventJson {
            serde_json::from_value(json!({
                "event_id": Uuid::from_u128(id), "ts": "2026-01-01T00:00:00Z", "source": "internal", "modality": "text",
                "payload": {}, "meta": {"tags": []}, "type": type_name, "sequence": 1, "position": 0,
                "subject": "kairo.agent.cook.decision", "correlation_id": Uuid::nil(), "causation_id": null,
                "thread_id": null,
            }))
            .unwrap()
        };
        let events = [event(7, "a"), event(7, "a"), event(8, "b"), event(9, "a")];
        let found = agents_by_id(&events, |event| (event.type_name == "a").then_some(event.event_id));
        let expected = [7, 9].map(|id| (Uuid::from_u128(id), "cook".to_owned()));
        assert_eq!(found, BTreeMap::from(expected));
    }
}
