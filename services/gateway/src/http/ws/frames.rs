//! The frames of a WebSocket: JSON objects that say with `type` what they are. What each of them holds is described for
//! clients in `asyncapi.yaml`; tests hold the two together. Pure.

use kairo_core::event_json::EventJson;
use kairo_proto::v1;
use serde::Serialize;
use serde_json::Value;

use crate::{
    config::GatewayConfig,
    fields::{
        CLIENT_ID, NAME, RequestFields, UUID, json_bool, json_text, one_of, parse_client_id, parse_name, parse_text,
    },
    http::{
        approval_verdicts::ApprovalInput,
        choices::ChoiceInput,
        commands::CommandInput,
        ingest::{AcceptedInput, UserInput},
        messages::MessageInput,
        sorted_json::SortedJson,
    },
    log_position::{LogPosition, PLACE},
    problem::Problem,
    watch::{WatchFilter, WatchItem, WatchRequest},
};

/// The types of frames that clients may send.
pub const FROM_CLIENT: [&str; 7] = ["subscribe", "unsubscribe", "message", "choice", "approval", "command", "ping"];

/// A frame of a client, read and checked.
#[derive(Debug)]
pub enum ClientFrame {
    Subscribe(WatchRequest),
    Unsubscribe,
    Message(MessageInput),
    Choice(ChoiceInput),
    Approval(ApprovalInput),
    Command(CommandInput),
    Ping,
}

impl ClientFrame {
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
pub struct FrameReference {
    /// A subscription.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Something that the client said.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

/// Reads a frame. What it is about is known even of most that are wrong.
pub fn parse(frame: &[u8], limits: &GatewayConfig) -> (FrameReference, Result<ClientFrame, Problem>) {
    let mut fields = match RequestFields::from_json(frame) {
        Ok(fields) => fields,
        Err(problem) => return (FrameReference::default(), Err(problem)),
    };
    let expected = format!("one of {}", FROM_CLIENT.join(", "));
    let kind = fields.required("type", expected, json_text(one_of(&FROM_CLIENT)));
    let mut about = FrameReference::default();
    match kind {
        Some("subscribe" | "unsubscribe") => about.id = fields.required("id", CLIENT_ID, json_text(parse_client_id)),
        Some("message" | "choice" | "approval" | "command") => {
            about.reference = fields.optional("ref", CLIENT_ID, json_text(parse_client_id));
        }
        Some(_) => {}
        None => {
            about.id = fields.optional("id", CLIENT_ID, json_text(parse_client_id));
            about.reference = fields.optional("ref", CLIENT_ID, json_text(parse_client_id));
        }
    }
    let received = match kind {
        Some("subscribe") => parse_wish(fields).map(ClientFrame::Subscribe),
        Some("unsubscribe") => fields.complete(|| Some(ClientFrame::Unsubscribe)),
        Some("message") => MessageInput::from_fields(fields, limits).map(ClientFrame::Message),
        Some("choice") => ChoiceInput::from_fields(fields, limits).map(ClientFrame::Choice),
        Some("approval") => ApprovalInput::from_fields(fields, limits).map(ClientFrame::Approval),
        Some("command") => CommandInput::from_fields(fields, limits).map(ClientFrame::Command),
        Some(_) => fields.complete(|| Some(ClientFrame::Ping)),
        None => Err(fields.into_problem()),
    };
    (about, received)
}

fn parse_wish(mut fields: RequestFields<Value>) -> Result<WatchRequest, Problem> {
    let agent = fields.optional("agent", NAME, json_text(parse_name));
    let thread = fields.optional("thread", NAME, json_text(parse_name));
    let correlation = fields.optional("correlation", UUID, json_text(parse_text));
    let after = fields.optional("after", format!("text: {PLACE}"), json_text(parse_text));
    let live = fields.optional("live", "true or false", json_bool);
    let turn_status = fields.optional("turn_status", "true or false", json_bool);
    let filter = WatchFilter { agent, thread, correlation };
    let live = live.unwrap_or_default();
    let turn_status = turn_status.unwrap_or_default();
    fields.complete(|| Some(WatchRequest { filter, after, live, turn_status }))
}

/// A frame for the client.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerFrame<'a> {
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
        change: SortedJson<&'a v1::TurnStatus>,
    },
    Live {
        id: &'a str,
        name: &'static str,
        data: Value,
    },
    Accepted {
        #[serde(flatten)]
        about: &'a FrameReference,
        #[serde(flatten)]
        accepted: &'a AcceptedInput,
    },
    Error {
        #[serde(flatten)]
        about: &'a FrameReference,
        problem: &'a Problem,
    },
    Pong,
    /// The last frame of a connection.
    Closing {
        reason: &'a str,
    },
}

impl<'a> ServerFrame<'a> {
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
    pub fn from_watched(id: &'a str, shown: WatchItem<'a>) -> Self {
        match shown {
            WatchItem::Start(place) => Self::Subscribed { id, from: place.to_string() },
            WatchItem::Event(event) => Self::Event { id, place: LogPosition::of_event(event).to_string(), event },
            WatchItem::TurnStatus(change) => Self::TurnStatus { id, change: SortedJson(change) },
            WatchItem::Live(name, data) => Self::Live { id, name, data },
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
