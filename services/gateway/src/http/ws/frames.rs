//! The frames of a WebSocket: JSON objects that say with `type` what they are. What each of them holds is described for
//! clients in `asyncapi.yaml`; tests hold the two together. Pure.

use kairo_core::event_json::EventJson;
use kairo_proto::v1;
use serde::Serialize;
use serde_json::Value;

use crate::{
    config::GatewayConfig,
    fields::{CLIENT_ID, Fields, NAME, UUID, client_id, flag, name, one_of, parsed, text},
    http::{
        answer::Told,
        approvals::Approval,
        choices::Choice,
        commands::Command,
        ingest::{Accepted, Ingest},
        messages::Message,
    },
    place::{PLACE, Place},
    problem::Problem,
    watch::{Filter, Shown, Wish},
};

/// The types of frames that clients may send.
pub const FROM_CLIENT: [&str; 7] = ["subscribe", "unsubscribe", "message", "choice", "approval", "command", "ping"];

/// A frame of a client, read and checked.
#[derive(Debug)]
pub enum Received {
    Subscribe(Wish),
    Unsubscribe,
    Message(Message),
    Choice(Choice),
    Approval(Approval),
    Command(Command),
    Ping,
}

impl Received {
    /// The user whom a frame speaks for.
    pub fn user(&self) -> Option<&str> {
        match self {
            Self::Message(message) => Some(message.user().as_str()),
            Self::Choice(choice) => Some(choice.user().as_str()),
            Self::Approval(approval) => Some(approval.user().as_str()),
            Self::Command(command) => Some(command.user().as_str()),
            Self::Subscribe(_) | Self::Unsubscribe | Self::Ping => None,
        }
    }
}

/// The client's own id for the subject of a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct About {
    /// A subscription.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Something that the client said.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

/// Reads a frame. What it is about is known even of most that are wrong.
pub fn read(frame: &[u8], limits: &GatewayConfig) -> (About, Result<Received, Problem>) {
    let mut fields = match Fields::from_json(frame) {
        Ok(fields) => fields,
        Err(problem) => return (About::default(), Err(problem)),
    };
    let expected = format!("one of {}", FROM_CLIENT.join(", "));
    let kind = fields.required("type", expected, text(one_of(&FROM_CLIENT)));
    let mut about = About::default();
    match kind {
        Some("subscribe" | "unsubscribe") => about.id = fields.required("id", CLIENT_ID, text(client_id)),
        Some("message" | "choice" | "approval" | "command") => {
            about.reference = fields.optional("ref", CLIENT_ID, text(client_id));
        }
        Some(_) => {}
        None => {
            about.id = fields.optional("id", CLIENT_ID, text(client_id));
            about.reference = fields.optional("ref", CLIENT_ID, text(client_id));
        }
    }
    let received = match kind {
        Some("subscribe") => wish(fields).map(Received::Subscribe),
        Some("unsubscribe") => fields.complete(|| Some(Received::Unsubscribe)),
        Some("message") => Message::read(fields, limits).map(Received::Message),
        Some("choice") => Choice::read(fields, limits).map(Received::Choice),
        Some("approval") => Approval::read(fields, limits).map(Received::Approval),
        Some("command") => Command::read(fields, limits).map(Received::Command),
        Some(_) => fields.complete(|| Some(Received::Ping)),
        None => Err(fields.refuse()),
    };
    (about, received)
}

fn wish(mut fields: Fields<Value>) -> Result<Wish, Problem> {
    let agent = fields.optional("agent", NAME, text(name));
    let thread = fields.optional("thread", NAME, text(name));
    let correlation = fields.optional("correlation", UUID, text(parsed));
    let after = fields.optional("after", format!("text: {PLACE}"), text(parsed));
    let live = fields.optional("live", "true or false", flag);
    let turn_status = fields.optional("turn_status", "true or false", flag);
    let filter = Filter { agent, thread, correlation };
    let (live, turn_status) = (live.unwrap_or_default(), turn_status.unwrap_or_default());
    fields.complete(|| Some(Wish { filter, after, live, turn_status }))
}

/// A frame for the client.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Sent<'a> {
    /// The first frame of a connection.
    Hello {
        version: &'static str,
        max_frame_bytes: usize,
        max_text_bytes: usize,
        max_subscriptions: usize,
        heartbeat_ms: u64,
    },
    Subscribed {
        id: &'a str,
        from: String,
    },
    Unsubscribed {
        id: &'a str,
    },
    Event {
        id: &'a str,
        place: String,
        event: &'a EventJson,
    },
    #[serde(rename = "turn.status")]
    TurnStatus {
        id: &'a str,
        change: Told<&'a v1::TurnStatus>,
    },
    Live {
        id: &'a str,
        name: &'static str,
        data: Value,
    },
    Accepted {
        #[serde(flatten)]
        about: &'a About,
        #[serde(flatten)]
        accepted: &'a Accepted,
    },
    Error {
        #[serde(flatten)]
        about: &'a About,
        problem: &'a Problem,
    },
    Pong,
    /// The last frame of a connection.
    Closing {
        reason: &'a str,
    },
}

impl<'a> Sent<'a> {
    pub fn hello(limits: &GatewayConfig) -> Self {
        Self::Hello {
            version: env!("CARGO_PKG_VERSION"),
            max_frame_bytes: limits.max_body_bytes,
            max_text_bytes: limits.max_text_bytes,
            max_subscriptions: limits.ws_subscriptions,
            heartbeat_ms: limits.heartbeat_ms,
        }
    }

    /// Builds the frame for an item of a subscription.
    pub fn shown(id: &'a str, shown: Shown<'a>) -> Self {
        match shown {
            Shown::Start(place) => Self::Subscribed { id, from: place.to_string() },
            Shown::Event(event) => Self::Event { id, place: Place::of(event).to_string(), event },
            Shown::TurnStatus(change) => Self::TurnStatus { id, change: Told(change) },
            Shown::Live(name, data) => Self::Live { id, name, data },
        }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
#[cfg(test)]
mod tests;

#[cfg(test)]
pub use tests::samples;
