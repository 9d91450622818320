//! The form in which nats-server takes back a stream, as of 2.15: `NATSARC1`, compressed. Sequences and times stand beside each
//! message. First the state of the stream, then its consumers, then its messages in order, then an entry that is all zeros.
//!
//! Source: `server/archive` and `server/stream_backup.go` of nats-server. What it compresses with, S2, also reads frames of
//! Snappy, which is what is written.

use std::io::{self, Write};

use serde_json::{Value, json};
use snap::write::FrameEncoder;

use crate::message_line::MessageLine;

const MAGIC: &[u8] = b"NATSARC1";
/// Never, in Go.
const NEVER: &str = "0001-01-01T00:00:00Z";

/// The state of a stream when it was kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamArchiveState {
    pub first_sequence: u64,
    pub last_sequence: u64,
    pub messages: u64,
    /// Of bodies and headers.
    pub bytes: u64,
}

impl StreamArchiveState {
    /// As the server reads it.
    pub fn to_json(self, consumers: usize) -> Value {
        // One that nothing was ever written to begins at its first message.
        let first = self.first_sequence.max(1);
        json!({
            "messages": self.messages, "bytes": self.bytes, "first_seq": first, "first_ts": NEVER,
            "last_seq": self.last_sequence, "last_ts": NEVER, "consumer_count": consumers,
        })
    }
}

/// Writes an archive.
pub struct StreamArchiveWriter<W: Write>(FrameEncoder<W>);

impl<W: Write> StreamArchiveWriter<W> {
    /// Begins with the state of the stream, and its consumers with what they are: name, and configuration and state.
    pub fn begin(to: W, state: StreamArchiveState, consumers: &[(String, Value)]) -> io::Result<Self> {
        let mut archive = Self(FrameEncoder::new(to));
        archive.0.write_all(MAGIC)?;
        archive.write_json("state.json", &state.to_json(consumers.len()))?;
        for (name, consumer) in consumers {
            archive.write_json(&format!("consumers/{name}"), consumer)?;
        }
        Ok(archive)
    }

    pub fn write_message(&mut self, line: &MessageLine) -> io::Result<()> {
        let time = i64::try_from(line.stored.as_nanosecond()).unwrap_or(i64::MAX);
        self.write_entry(&line.subject, time, line.sequence, &line.header_bytes(), &line.data)
    }

    /// Says that it is whole.
    pub fn finish(mut self) -> io::Result<()> {
        self.write_entry("", 0, 0, &[], &[])?;
        self.0.flush()
    }

    fn write_json(&mut self, name: &str, value: &Value) -> io::Result<()> {
        self.write_entry(name, 0, 0, &[], &serde_json::to_vec(value)?)
    }

    fn write_entry(&mut self, name: &str, time: i64, sequence: u64, headers: &[u8], body: &[u8]) -> io::Result<()> {
        self.write_varint(name.len() as u64)?;
        // Small negative numbers are small, too.
        self.write_varint(((time << 1) ^ (time >> 63)) as u64)?;
        self.write_varint(sequence)?;
        self.write_varint(headers.len() as u64)?;
        self.write_varint(body.len() as u64)?;
        self.0.write_all(name.as_bytes())?;
        self.0.write_all(headers)?;
        self.0.write_all(body)
    }

    /// Seven bits a byte, the lowest first.
    fn write_varint(&mut self, mut number: u64) -> io::Result<()> {
        while number >= 0x80 {
            self.0.write_all(&[(number & 0x7f) as u8 | 0x80])?;
            number >>= 7;
        }
        self.0.write_all(&[number as u8])
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use jiff::Timestamp;

    use super::*;

    #[test]
    fn it_is_what_the_server_reads() {
        let mut written = Vec::new();
        let state = StreamArchiveState { first_sequence: 0, last_sequence: 300, messages: 1, bytes: 2 };
        let mut archive = StreamArchiveWriter::begin(&mut written, state, &[]).unwrap();
        let line = MessageLine {
            sequence: 300,
            stored: Timestamp::from_nanosecond(-1).unwrap(),
            subject: "a".to_owned(),
            headers: Vec::new(),
            data: b"hi".to_vec(),
        };
        archive.write_message(&line).unwrap();
        archive.finish().unwrap();
        let mut read = Vec::new();
        snap::read::FrameDecoder::new(&written[..]).read_to_end(&mut read).unwrap();
        let json = serde_json::to_vec(&state.to_json(0)).unwrap();
        let head = [&b"NATSARC1"[..], &[10, 0, 0, 0], &[json.len() as u8 | 0x80, (json.len() >> 7) as u8]].concat();
        // -1 is 1 in zigzag, and 300 takes two bytes.
        let tail = [&b"state.json"[..], &json, &[1, 1, 0xac, 2, 0, 2], b"ahi", &[0; 5]].concat();
        assert_eq!(read, [head, tail].concat());
    }
}
