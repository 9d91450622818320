//! The envelope: CloudEvents 1.0 in the NATS binding's binary mode.
//!
//! Every attribute is a lower-case `ce-` header, `ce-datacontenttype` too, values percent-encoded as the binding says
//! (<https://github.com/cloudevents/spec/blob/main/cloudevents/bindings/nats-protocol-binding.md>). So the envelope
//! is read without touching the body.

use std::{borrow::Cow, collections::BTreeSet};

use jiff::Timestamp;
use kairo_proto::ContentType;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use uuid::Uuid;

use crate::{personal::ContentOwners, principal::Principal, subjects::Service};

/// The kind of sender of an event, seed 002's `source`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    User,
    Tool,
    System,
    Internal,
}

/// The kind of an event's payload, seed 002's `modality`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modality {
    Text,
    Image,
    Audio,
    State,
}

macro_rules! words {
    ($kind:ident { $($variant:ident = $word:literal),* }) => {
        impl $kind {
            pub fn as_str(self) -> &'static str {
                match self { $($kind::$variant => $word),* }
            }

            fn parse(text: &str) -> Option<Self> {
                match text { $($word => Some($kind::$variant),)* _ => None }
            }
        }
    };
}

words!(Origin { User = "user", Tool = "tool", System = "system", Internal = "internal" });
words!(Modality { Text = "text", Image = "image", Audio = "audio", State = "state" });

/// Everything an event says about itself apart from its body.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    pub id: Uuid,
    /// The publisher, `/kairo/<service>` for our own.
    pub source: String,
    pub type_name: String,
    /// When it was published. For an event derived from another it is not part of any decision.
    pub time: Timestamp,
    /// The owner, as in the third token of the subject.
    pub subject: Option<String>,
    pub content: ContentType,
    /// The id of the event that entered from outside, shared by everything that follows from it.
    pub correlation_id: Uuid,
    /// The event this one follows from; none where something enters.
    pub causation_id: Option<Uuid>,
    pub thread_id: Option<String>,
    pub origin: Origin,
    pub modality: Modality,
    pub tags: Vec<String>,
    /// W3C trace context.
    pub traceparent: Option<String>,
    /// The principal that entered it, for what the gateway writes for somebody and the router delivers.
    pub entered_by: Option<Principal>,
    /// The owners of its content, where that is sealed.
    pub owners: ContentOwners,
    /// The users whose content in it can no longer be read.
    pub forgotten: BTreeSet<String>,
}

/// A header that is missing or is not what it should be. The text goes into dead letters.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
#[error("header {header}: expected {expected}, found {found}")]
pub struct BadHeader {
    pub header: &'static str,
    pub expected: &'static str,
    pub found: String,
}

impl Envelope {
    /// The envelope of something that enters from outside: nothing caused it.
    pub fn from_outside(id: Uuid, emitter: Service, origin: Origin, time: Timestamp) -> Self {
        Self {
            id,
            source: format!("/kairo/{}", emitter.name()),
            type_name: String::new(),
            time,
            subject: None,
            content: ContentType::Protobuf,
            correlation_id: id,
            causation_id: None,
            thread_id: None,
            origin,
            modality: Modality::Text,
            tags: Vec::new(),
            traceparent: None,
            entered_by: None,
            owners: ContentOwners::Nobody,
            forgotten: BTreeSet::new(),
        }
    }

    /// The envelope of what follows from this event: same correlation, same thread. Whoever entered the event did not enter what
    /// follows from it.
    pub fn follow_up(&self, id: Uuid, emitter: Service, origin: Origin, time: Timestamp) -> Self {
        Self {
            correlation_id: self.correlation_id,
            causation_id: Some(self.id),
            thread_id: self.thread_id.clone(),
            traceparent: self.traceparent.clone(),
            ..Self::from_outside(id, emitter, origin, time)
        }
    }

    pub fn with_thread(mut self, thread_id: &str) -> Self {
        self.thread_id = (!thread_id.is_empty()).then(|| thread_id.to_owned());
        self
    }

    /// The headers, in a fixed order.
    pub fn to_headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = vec![
            (SPECVERSION, "1.0".to_owned()),
            (ID, self.id.to_string()),
            (SOURCE, percent_encode(&self.source)),
            (TYPE, percent_encode(&self.type_name)),
            (TIME, self.time.to_string()),
            (
                CONTENT_TYPE,
                match self.content {
                    ContentType::Protobuf => ContentType::PROTOBUF.to_owned(),
                    ContentType::Json => ContentType::JSON.to_owned(),
                    ContentType::Sealed => ContentType::SEALED.to_owned(),
                },
            ),
            (CORRELATION, self.correlation_id.to_string()),
            (ORIGIN, self.origin.as_str().to_owned()),
            (MODALITY, self.modality.as_str().to_owned()),
        ];
        let optional = [
            (SUBJECT, self.subject.clone()),
            (CAUSATION, self.causation_id.map(|id| id.to_string())),
            (THREAD, self.thread_id.clone()),
            (TAGS, (!self.tags.is_empty()).then(|| self.tags.join(","))),
            (AUTH_TYPE, self.entered_by.as_ref().map(|by| by.kind.clone())),
            (AUTH_ID, self.entered_by.as_ref().map(|by| by.id.clone()).filter(|id| !id.is_empty())),
        ];
        headers.extend(optional.into_iter().filter_map(|(name, value)| Some((name, percent_encode(&value?)))));
        headers.extend(self.traceparent.clone().map(|value| (TRACEPARENT, value)));
        headers
    }

    /// Reads the headers. Required are id, source, type, time and specversion; the rest has CloudEvents' or Kairo's
    /// defaults, so that an outsider's plain CloudEvent is welcome.
    pub fn from_headers<'h>(get: impl Fn(&'static str) -> Option<&'h str>) -> Result<Self, BadHeader> {
        let required = |header, expected| {
            let text = get(header).ok_or_else(|| bad_header(header, expected, "nothing"))?;
            percent_decode(text).ok_or_else(|| bad_header(header, expected, text))
        };
        let version = required(SPECVERSION, "1.0")?;
        if version != "1.0" {
            return Err(bad_header(SPECVERSION, "1.0", &version));
        }
        let id = parse_uuid(ID, &required(ID, "a UUID")?)?;
        let time = required(TIME, "an RFC 3339 time")?;
        let content = get(CONTENT_TYPE).unwrap_or(ContentType::JSON);
        let whose = get(WHOSE).map(ContentOwners::from_header).unwrap_or_default();
        Ok(Self {
            id,
            source: required(SOURCE, "a URI reference")?.into_owned(),
            type_name: required(TYPE, "a type such as kairo.user.message.v1")?.into_owned(),
            time: time.parse().map_err(|_| bad_header(TIME, "an RFC 3339 time", &time))?,
            subject: parse_optional(SUBJECT, get(SUBJECT), decode_owned)?,
            content: ContentType::parse(content)
                .ok_or_else(|| bad_header(CONTENT_TYPE, "application/protobuf or application/json", content))?,
            correlation_id: get(CORRELATION).map_or(Ok(id), |text| parse_uuid(CORRELATION, text))?,
            causation_id: get(CAUSATION).map(|text| parse_uuid(CAUSATION, text)).transpose()?,
            thread_id: parse_optional(THREAD, get(THREAD), decode_owned)?,
            origin: parse_optional(ORIGIN, get(ORIGIN), Origin::parse)?.unwrap_or(Origin::System),
            modality: parse_optional(MODALITY, get(MODALITY), Modality::parse)?.unwrap_or(Modality::Text),
            tags: parse_optional(TAGS, get(TAGS), decode_owned)?
                .map(|tags| tags.split(',').map(str::to_owned).collect())
                .unwrap_or_default(),
            traceparent: get(TRACEPARENT).map(str::to_owned),
            entered_by: read_principal(&get)?,
            forgotten: forgotten_owners(&whose, content, get(FORGOTTEN)),
            owners: whose,
        })
    }
}

/// Of whom nothing can be read: those that whoever opened it says or, where nobody has opened it, all.
fn forgotten_owners(whose: &ContentOwners, content: &str, said: Option<&str>) -> BTreeSet<String> {
    match said {
        Some(users) => users.split(',').map(str::to_owned).collect(),
        None if content == ContentType::SEALED => whose.all_owners().into_iter().map(str::to_owned).collect(),
        None => BTreeSet::new(),
    }
}

fn read_principal<'h>(get: impl Fn(&'static str) -> Option<&'h str>) -> Result<Option<Principal>, BadHeader> {
    let Some(kind) = parse_optional(AUTH_TYPE, get(AUTH_TYPE), decode_owned)? else { return Ok(None) };
    let id = parse_optional(AUTH_ID, get(AUTH_ID), decode_owned)?.unwrap_or_default();
    Ok(Some(Principal { kind, id }))
}

/// The event's id and its correlation id, of headers that are otherwise not read.
pub fn read_ids<'h>(get: impl Fn(&'static str) -> Option<&'h str>) -> Option<(Uuid, Uuid)> {
    let id = Uuid::parse_str(get(ID)?).ok()?;
    Some((id, get(CORRELATION).map_or(Some(id), |text| Uuid::parse_str(text).ok())?))
}

const SPECVERSION: &str = "ce-specversion";
const ID: &str = "ce-id";
const SOURCE: &str = "ce-source";
pub const TYPE: &str = "ce-type";
const TIME: &str = "ce-time";
const SUBJECT: &str = "ce-subject";
/// The encoding of the body.
pub const CONTENT_TYPE: &str = "ce-datacontenttype";
const CORRELATION: &str = "ce-correlationid";
const CAUSATION: &str = "ce-causationid";
/// The ids of the events that the message holds, where it holds several.
pub const HELD: &str = "ce-events";
/// The owners of its parts, where they are sealed.
pub const WHOSE: &str = "ce-whose";
/// The users whose content can no longer be read, in a message that was opened. It is never stored.
pub const FORGOTTEN: &str = "ce-forgotten";
const THREAD: &str = "ce-threadid";
const ORIGIN: &str = "ce-origin";
const MODALITY: &str = "ce-modality";
const TAGS: &str = "ce-tags";
const AUTH_TYPE: &str = "ce-authtype";
const AUTH_ID: &str = "ce-authid";
const TRACEPARENT: &str = "traceparent";

/// The characters that the binding wants encoded: space, double quote, percent, and all outside printable ASCII.
const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%');

fn percent_encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

fn percent_decode(text: &str) -> Option<Cow<'_, str>> {
    percent_decode_str(text).decode_utf8().ok()
}

fn decode_owned(text: &str) -> Option<String> {
    percent_decode(text).map(Cow::into_owned)
}

fn parse_uuid(header: &'static str, text: &str) -> Result<Uuid, BadHeader> {
    Uuid::parse_str(text).map_err(|_| bad_header(header, "a UUID", text))
}

fn parse_optional<T>(
    header: &'static str,
    text: Option<&str>,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, BadHeader> {
    text.map(|text| parse(text).ok_or_else(|| bad_header(header, expected_form(header), text))).transpose()
}

fn expected_form(header: &'static str) -> &'static str {
    match header {
        ORIGIN => "user, tool, system or internal",
        MODALITY => "text, image, audio or state",
        _ => "percent-encoded UTF-8",
    }
}

fn bad_header(header: &'static str, expected: &'static str, found: &str) -> BadHeader {
    BadHeader { header, expected, found: found.chars().take(80).collect() }
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1;

    use super::*;

    fn full() -> Envelope {
        let entered = Envelope::from_outside(
            Uuid::from_u128(1),
            Service::Gateway,
            Origin::User,
            "2026-11-21T10:00:00Z".parse().unwrap(),
        );
        Envelope {
            type_name: v1::AgentMessage::TYPE.into(),
            subject: Some("größe 100%".into()),
            tags: vec!["a".into(), "b".into()],
            traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
            entered_by: Some(Principal::api_key("größe k7")),
            ..entered.with_thread("t-1").follow_up(
                Uuid::from_u128(2),
                Service::Router,
                Origin::User,
                "2026-11-21T10:00:01Z".parse().unwrap(),
            )
        }
    }

    fn read(headers: &[(&'static str, String)]) -> Result<Envelope, BadHeader> {
        Envelope::from_headers(|name| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str()))
    }

    #[test]
    fn headers_round_trip_and_are_ascii() {
        let headers = full().to_headers();
        assert!(headers.iter().all(|(_, value)| value.bytes().all(|byte| byte.is_ascii_graphic())));
        assert_eq!(read(&headers).unwrap(), full());
    }

    #[test]
    fn what_follows_was_not_entered_by_anybody() {
        let id = Uuid::from_u128(3);
        let time = "2026-11-21T10:00:02Z".parse().unwrap();
        assert_eq!(full().follow_up(id, Service::AgentRuntime, Origin::Internal, time).entered_by, None);
    }

    #[test]
    fn an_outsiders_plain_cloudevent_is_welcome() {
        let headers = full().to_headers();
        let plain: Vec<_> =
            headers.into_iter().filter(|(name, _)| [SPECVERSION, ID, SOURCE, TYPE, TIME].contains(name)).collect();
        let envelope = read(&plain).unwrap();
        assert_eq!((envelope.content, envelope.correlation_id), (ContentType::Json, envelope.id));
    }

    #[test]
    fn a_bad_header_is_named() {
        let cases = [(ID, "7"), (TIME, "noon"), (ORIGIN, "moon"), (CONTENT_TYPE, "text/plain"), (SPECVERSION, "0.3")];
        for (header, value) in cases {
            let mut headers = full().to_headers();
            headers.retain(|(name, _)| *name != header);
            headers.push((header, value.into()));
            let error = read(&headers).unwrap_err();
            assert_eq!((error.header, error.found.as_str()), (header, value));
        }
        assert_eq!(read(&[]).unwrap_err().header, SPECVERSION);
    }
}
