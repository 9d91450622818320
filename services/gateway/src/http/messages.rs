//! `POST /v1/messages`: a user's words enter the log.
//!
//! One acknowledged publish, and nothing else, when the gateway chose the message id. When the client did, it may be
//! asking again: within the log's duplicate window the log itself answers as it did the first time, before that the
//! read model knows. What both miss the agent still drops, since it remembers the messages it has seen.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use jiff::Timestamp;
use kairo_core::{
    bus::{BusError, append::Outgoing},
    envelope::{Envelope, Origin},
    ids::{self, Name},
    subjects::{Service, USER_MESSAGE},
};
use kairo_proto::v1::UserMessage;
use serde::Serialize;
use uuid::Uuid;

use super::{Gateway, body::JsonBody, query, span::traceparent};
use crate::{
    config::GatewayConfig,
    fields::{CLIENT_ID, Fields, NAME, at_most, client_id, name, text},
    problem::Problem,
};

/// The answer: the message is in the log.
#[derive(Debug, Serialize)]
pub struct Accepted {
    message_id: String,
    event_id: Uuid,
    sequence: u64,
    /// The turn that the message begins: what it leads to carries this id.
    correlation_id: Uuid,
}

pub async fn post(
    State(gateway): State<Gateway>,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<(StatusCode, Json<Accepted>), Problem> {
    let message = read(&body, &gateway.config)?;
    let (message_id, known) = match &message.message_id {
        Some(chosen) => (chosen.clone(), known(&gateway, &message.user, chosen).await),
        None => (ids::entering().to_string(), None),
    };
    let (event_id, sequence) = match known {
        Some(known) => known,
        None => publish(&gateway, &headers, &message, &message_id).await?,
    };
    Ok((StatusCode::ACCEPTED, Json(Accepted { message_id, event_id, sequence, correlation_id: event_id })))
}

/// Where the message stands in the log, if the read model has it. That it cannot say stops no message.
async fn known(gateway: &Gateway, user: &Name, message_id: &str) -> Option<(Uuid, u64)> {
    let known = gateway.read_model.message(user.as_str(), message_id);
    query::at_once(gateway, known).await.flatten().map(|known| (known.event_id, known.sequence))
}

async fn publish(
    gateway: &Gateway,
    headers: &HeaderMap,
    message: &NewMessage,
    message_id: &str,
) -> Result<(Uuid, u64), Problem> {
    let event_id = ids::named("message", &[message.user.as_str(), message_id]);
    let envelope = Envelope::entering(event_id, Service::Gateway, Origin::User, Timestamp::now());
    let thread_id = message.thread_id.as_ref().map(Name::to_string).unwrap_or_default();
    let envelope = Envelope { traceparent: traceparent(headers), ..envelope.in_thread(&thread_id) };
    let body = UserMessage {
        message_id: message_id.to_owned(),
        user: message.user.to_string(),
        agent: message.agent.as_ref().map(Name::to_string).unwrap_or_default(),
        text: message.text.clone(),
        thread_id,
    };
    match gateway.bus.publish(&Outgoing::new(&USER_MESSAGE, &message.user, envelope, body)).await {
        Ok(written) => Ok((event_id, written.sequence)),
        // It may have been written all the same, or may yet be.
        Err(error @ BusError::Unavailable { .. }) => Err(Problem {
            detail: format!("nats did not confirm the message; send it again with the message_id {message_id}"),
            ..Problem::from(error)
        }),
        Err(error) => Err(error.into()),
    }
}

#[derive(Debug, PartialEq, Eq)]
struct NewMessage {
    user: Name,
    agent: Option<Name>,
    text: String,
    message_id: Option<String>,
    thread_id: Option<Name>,
}

fn read(body: &[u8], limits: &GatewayConfig) -> Result<NewMessage, Problem> {
    let mut fields = Fields::from_json(body)?;
    let user = fields.required("user", NAME, text(name));
    let agent = fields.optional("agent", NAME, text(name));
    let longest = limits.max_text_bytes;
    let words = fields.required("text", format!("text of 1 to {longest} bytes"), text(at_most(longest)));
    let message_id = fields.optional("message_id", CLIENT_ID, text(client_id));
    let thread_id = fields.optional("thread_id", NAME, text(name));
    fields.complete(|| Some(NewMessage { user: user?, agent, text: words?, message_id, thread_id }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong_fields(body: &str) -> Vec<String> {
        let problem = read(body.as_bytes(), &GatewayConfig::default()).unwrap_err();
        problem.errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn a_message_needs_a_user_and_words() {
        let message =
            read(r#"{"user": "ann", "text": "größe \u0000 🦀"}"#.as_bytes(), &GatewayConfig::default()).unwrap();
        assert_eq!((message.user.as_str(), message.text.as_str()), ("ann", "größe \0 🦀"));
        assert_eq!((message.agent, message.message_id, message.thread_id), (None, None, None));
        assert_eq!(wrong_fields("{}"), ["user", "text"]);
    }

    #[test]
    fn everything_wrong_is_named() {
        let body =
            r#"{"user": "Ann", "agent": "a.b", "text": "", "message_id": "a b", "thread_id": 7, "mood": "good"}"#;
        assert_eq!(wrong_fields(body), ["user", "agent", "text", "message_id", "thread_id", "mood"]);
    }

    #[test]
    fn the_limit_counts_bytes() {
        let limits = GatewayConfig { max_text_bytes: 4, ..Default::default() };
        let body = |text: &str| format!(r#"{{"user": "ann", "text": "{text}"}}"#);
        assert!(read(body("üü").as_bytes(), &limits).is_ok());
        assert!(read(body("üüü").as_bytes(), &limits).is_err());
    }
}
