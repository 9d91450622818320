//! The message types, and the encoding of their bodies.

use prost::Message;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{
    json,
    v1::{self, decided_event::Event},
};

/// The encoding of a message's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentType {
    /// The encoding that Kairo's own services write.
    Protobuf,
    /// proto3's JSON mapping, accepted from outsiders.
    Json,
    /// A [`v1::SealedBody`], whose personal values are sealed. Without the keys, these are empty.
    Sealed,
}

impl ContentType {
    pub const PROTOBUF: &'static str = "application/protobuf";
    pub const JSON: &'static str = "application/json";
    pub const SEALED: &'static str = "application/vnd.kairo.sealed";

    /// Reads a `datacontenttype`; parameters such as `charset` are allowed. `None` for anything but the known ones.
    pub fn parse(text: &str) -> Option<Self> {
        match text.split(';').next().map(str::trim) {
            Some(Self::PROTOBUF) => Some(Self::Protobuf),
            Some(Self::JSON) => Some(Self::Json),
            Some(Self::SEALED) => Some(Self::Sealed),
            _ => None,
        }
    }
}

/// The reason why a body could not be read. The text goes into dead letters.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// The type is unknown; a newer service may know it, and mere readers skip the message.
    #[error("type {0:?} is unknown to this version")]
    UnknownType(String),
    #[error("body is not a {type_name}: {reason}")]
    Malformed { type_name: &'static str, reason: String },
}

macro_rules! bodies {
    ($($message:ident = $type_name:literal),* $(,)?) => {
        /// A message that has a type of its own.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Body {
            $($message(v1::$message)),*
        }

        $(impl From<v1::$message> for Body {
            fn from(message: v1::$message) -> Self {
                Body::$message(message)
            }
        }

        impl TryFrom<Body> for v1::$message {
            type Error = Body;

            fn try_from(body: Body) -> Result<Self, Body> {
                if let Body::$message(message) = body { Ok(message) } else { Err(body) }
            }
        }

        impl v1::$message {
            /// The type that names it, with its version.
            pub const TYPE: &'static str = $type_name;

            /// Returns the message, if the body is one of this type.
            pub fn of(body: &Body) -> Option<&Self> {
                if let Body::$message(message) = body { Some(message) } else { None }
            }
        })*

        /// The types, to be matched when only their names are known.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Type {
            $($message),*
        }

        impl Type {
            /// Parses the name of a type; `None` for one that this version does not know.
            pub fn parse(type_name: &str) -> Option<Self> {
                match type_name {
                    $($type_name => Some(Type::$message),)*
                    _ => None,
                }
            }
        }

        impl Body {
            /// Every type there is.
            pub const TYPES: &'static [&'static str] = &[$($type_name),*];

            /// The type, with its version.
            pub fn type_name(&self) -> &'static str {
                match self {
                    $(Body::$message(_) => $type_name),*
                }
            }

            /// The protobuf bytes.
            pub fn encode(&self) -> Vec<u8> {
                match self {
                    $(Body::$message(message) => message.encode_to_vec()),*
                }
            }

            /// Returns the number of protobuf bytes.
            pub fn encoded_len(&self) -> usize {
                match self {
                    $(Body::$message(message) => message.encoded_len()),*
                }
            }

            /// The body in proto3's JSON mapping, with the names of the protos.
            pub fn to_json(&self) -> serde_json::Value {
                match self {
                    $(Body::$message(message) => serde_json::to_value(message)),*
                }
                .unwrap_or_default()
            }

            /// Reads JSON written by hand: a field that the type named does not have is an error.
            ///
            /// # Errors
            /// Names the field, or what was expected in it.
            pub fn read_strictly(type_name: &str, bytes: &[u8]) -> Result<Self, Unreadable> {
                match type_name {
                    $($type_name => json::read_strictly::<v1::$message>(bytes)
                        .map(Body::$message)
                        .map_err(|reason| Unreadable::Malformed { type_name: $type_name, reason }),)*
                    unknown => Err(Unreadable::UnknownType(unknown.chars().take(100).collect())),
                }
            }

            /// Reads a body of the type named. Unknown fields are ignored.
            pub fn decode(type_name: &str, content: ContentType, bytes: &[u8]) -> Result<Self, Unreadable> {
                match type_name {
                    $($type_name => read::<v1::$message>($type_name, content, bytes).map(Body::$message),)*
                    unknown => Err(Unreadable::UnknownType(unknown.chars().take(100).collect())),
                }
            }
        }
    };
}

macro_rules! decided {
    ($($event:ident($message:ident)),* $(,)?) => {
        impl From<v1::decided_event::Event> for Body {
            fn from(event: v1::decided_event::Event) -> Self {
                match event {
                    $(v1::decided_event::Event::$event(message) => Body::$message(message)),*
                }
            }
        }

        impl v1::decided_event::Event {
            /// The type, with its version.
            pub fn type_name(&self) -> &'static str {
                match self {
                    $(v1::decided_event::Event::$event(_) => v1::$message::TYPE),*
                }
            }
        }
    };
}

/// The messages whose JSON is proto3's mapping.
macro_rules! mapped {
    ($($message:ident),* $(,)?) => {
        $(impl Serialize for v1::$message {
            fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                json::serialize(self, out)
            }
        }

        impl<'de> Deserialize<'de> for v1::$message {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                json::deserialize(from)
            }
        })*
    };
}

macro_rules! groups {
    ($($(#[$doc:meta])* $group:ident { $($variant:ident($message:ident),)* })*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum $group<'m> {
            $($variant(&'m v1::$message)),*
        })*
    };
}

include!("generated/types.rs");

fn read<M>(type_name: &'static str, content: ContentType, bytes: &[u8]) -> Result<M, Unreadable>
where
    M: Message + Default + serde::de::DeserializeOwned,
{
    match content {
        ContentType::Protobuf => M::decode(bytes).map_err(|error| error.to_string()),
        ContentType::Json => serde_json::from_slice(bytes).map_err(|error| error.to_string()),
        ContentType::Sealed => v1::SealedBody::decode(bytes)
            .and_then(|sealed| M::decode(sealed.open.as_slice()))
            .map_err(|error| error.to_string()),
    }
    .map_err(|reason| Unreadable::Malformed { type_name, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protobuf_and_json_say_the_same() {
        let body =
            Body::from(v1::ToolResult { action_id: "a".into(), ok: true, result: "{}".into(), ..Default::default() });
        let json = serde_json::to_vec(&body.to_json()).unwrap();
        let name = body.type_name();
        assert_eq!(Body::decode(name, ContentType::Protobuf, &body.encode()), Ok(body.clone()));
        assert_eq!(Body::decode(name, ContentType::Json, &json), Ok(body));
    }

    #[test]
    fn a_field_of_a_later_version_is_passed_over() {
        let mut bytes = Body::from(v1::AgentThought { text: "hm".into(), ..Default::default() }).encode();
        bytes.extend([0xfa, 0x3f, 1, 7]); // field 1023, length-delimited, one byte
        let read = Body::decode("kairo.agent.thought.v1", ContentType::Protobuf, &bytes);
        assert_eq!(read, Ok(v1::AgentThought { text: "hm".into(), ..Default::default() }.into()));
        let json = br#"{"text": "hm", "mood": "curious"}"#;
        let read = Body::decode("kairo.agent.thought.v1", ContentType::Json, json);
        assert_eq!(read, Ok(v1::AgentThought { text: "hm".into(), ..Default::default() }.into()));
    }

    #[test]
    fn a_field_that_is_misspelt_is_a_mistake_where_somebody_wrote_it() {
        let read = |json: &[u8]| Body::read_strictly("kairo.agent.thought.v1", json);
        assert_eq!(read(br#"{"text": "hm"}"#), Ok(v1::AgentThought { text: "hm".into(), ..Default::default() }.into()));
        for (json, named) in [(&br#"{"txet": "hm"}"#[..], "txet"), (br#"{"text": 7}"#, "7"), (b"{} {}", "trailing")] {
            let Err(Unreadable::Malformed { reason, .. }) = read(json) else { panic!("{named}") };
            assert!(reason.contains(named), "{reason}");
        }
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let unknown = Body::decode("kairo.agent.dreamt.v1", ContentType::Protobuf, b"");
        assert_eq!(unknown, Err(Unreadable::UnknownType("kairo.agent.dreamt.v1".into())));
        let garbage = Body::decode("kairo.user.message.v1", ContentType::Protobuf, &[0xff; 9]);
        assert!(matches!(garbage, Err(Unreadable::Malformed { .. })));
    }
}
