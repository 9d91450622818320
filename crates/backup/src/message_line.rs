//! A stored message as a line of a backup's files: JSON, with all that the server keeps of it.

use std::io::Write;

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use kairo_core::{
    log_message, partition,
    record::{RawMessage, StoredMessageRef},
};
use kairo_proto::v1::LogMessage;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// The line before the headers of a message on the wire and in the server's files.
const HEADERS: &[u8] = b"NATS/1.0\r\n";
/// The header with a message's lifetime. The log copies it from timers and does not heed it; a server that is given it
/// back would.
pub const LIFETIME: &str = "Nats-TTL";

/// A message as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageLine {
    pub sequence: u64,
    /// When the server stored it, to the nanosecond.
    pub stored: Timestamp,
    /// The subject as it is stored, with its partition.
    pub subject: String,
    /// In alphabetical order of their names; values of one name in theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    #[serde(with = "as_base64")]
    pub data: Vec<u8>,
}

impl MessageLine {
    /// The message as it came from the stream.
    pub fn from_raw(raw: &RawMessage) -> Self {
        let subject = match raw.partition {
            Some(partition) => format!("{}.{partition}", raw.subject),
            None => raw.subject.clone(),
        };
        let values = raw
            .headers
            .iter()
            .flat_map(|(name, values)| values.iter().map(move |value| (name.to_string(), value.as_str().to_owned())));
        let mut headers: Vec<_> = values.collect();
        headers.sort_by(|(one, _), (other, _)| one.cmp(other));
        Self { sequence: raw.sequence, stored: raw.stored, subject, headers, data: raw.payload.to_vec() }
    }

    /// The first value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// The message of a log, as it is handed out.
    pub fn to_log_message(&self) -> LogMessage {
        let (subject, _) = partition::split_subject(&self.subject);
        let stored = StoredMessageRef { sequence: self.sequence, subject, payload: &self.data, at: self.stored };
        // Of several of one name the first counts.
        log_message::to_log_message(stored, self.headers.iter().rev().cloned())
    }

    /// The headers as the server keeps them; nothing where there are none.
    pub fn header_bytes(&self) -> Vec<u8> {
        if self.headers.is_empty() {
            return Vec::new();
        }
        let mut bytes = HEADERS.to_vec();
        for (name, value) in &self.headers {
            // Writing to memory does not fail.
            let _ = write!(bytes, "{name}: {value}\r\n");
        }
        bytes.extend(b"\r\n");
        bytes
    }

    /// Without the header that would have a server drop it.
    #[must_use]
    pub fn without_lifetime(mut self) -> Self {
        self.headers.retain(|(name, _)| name != LIFETIME);
        self
    }
}

mod as_base64 {
    use super::{Deserialize, Deserializer, Engine, Error, STANDARD, Serializer};

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        STANDARD.decode(text.as_bytes()).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> MessageLine {
        MessageLine {
            sequence: 7,
            stored: Timestamp::from_nanosecond(1_700_000_000_123_456_789).unwrap(),
            subject: "kairo.task.ann.due.3".to_owned(),
            headers: vec![
                ("Nats-Stream-Source".to_owned(), "KAIRO_TIMERS 7".to_owned()),
                (LIFETIME.to_owned(), "5s".to_owned()),
                ("X".to_owned(), "b".to_owned()),
                ("X".to_owned(), "a".to_owned()),
            ],
            data: vec![0, 255],
        }
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let text = serde_json::to_string(&line()).unwrap();
        assert_eq!(serde_json::from_str::<MessageLine>(&text).unwrap(), line());
        assert!(serde_json::from_str::<MessageLine>(&text.replace("AP8=", "AP8")).is_err(), "base64 that was cut");
    }

    #[test]
    fn what_is_the_servers_own_is_kept_but_for_a_lifetime_that_the_log_does_not_heed() {
        let for_good = line().without_lifetime();
        assert_eq!(for_good.header(LIFETIME), None);
        let bytes = String::from_utf8(for_good.header_bytes()).unwrap();
        assert_eq!(bytes, "NATS/1.0\r\nNats-Stream-Source: KAIRO_TIMERS 7\r\nX: b\r\nX: a\r\n\r\n");
        assert!(MessageLine { headers: Vec::new(), ..line() }.header_bytes().is_empty());
    }

    #[test]
    fn it_is_handed_out_without_its_partition_and_with_the_first_of_several_values() {
        let handed_out = line().to_log_message();
        assert_eq!((handed_out.sequence, handed_out.subject.as_str()), (7, "kairo.task.ann.due"));
        assert_eq!(handed_out.headers.into_iter().collect::<Vec<_>>(), [("X".to_owned(), "b".to_owned())]);
    }
}
