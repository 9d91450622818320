//! The form in which nats-server takes back a stream, as of 2.15: `NATSARC1`, compressed. Sequences and times stand beside each
//! message. First the state of the stream, then its consumers, then its messages in order, then an entry that is all zeros.
//!
//! Source: `server/archive` and `server/stream_backup.go` of nats-server. What it compresses with, S2, also reads frames of
//! Snappy, which is what is written.

use std::io::{self, Write};

use serde_json::{Value, json};
use snap::write::FrameEncoder;

use crate::line::Line;

const MAGIC: &[u8] = b"NATSARC1";
/// Never, in Go.
const NEVER: &str = "0001-01-01T00:00:00Z";

/// The state of a stream when it was kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub first_sequence: u64,
    pub last_sequence: u64,
    pub messages: u64,
    /// Of bodies and headers.
    pub bytes: u64,
}

impl State {
    /// As the server reads it.
    pub fn json(self, consumers: usize) -> Value {
        // One that nothing was ever written to begins at its first message.
        let first = self.first_sequence.max(1);
        json!({
            "messages": self.messages, "bytes": self.bytes, "first_seq": first, "first_ts": NEVER,
            "last_seq": self.last_sequence, "last_ts": NEVER, "consumer_count": consumers,
        })
    }
}

/// Writes an archive.
pub struct Archive<W: Write>(FrameEncoder<W>);

impl<W: Write> Archive<W> {
    /// Begins with the state of the stream, and its consumers with what they are: name, and configuration and state.
    pub fn begin(to: W, state: State, consumers: &[(String, Value)]) -> io::Result<Self> {
        let mut archive = Self(FrameEncoder::new(to));
        archive.0.write_all(MAGIC)?;
        archive.json("state.json", &state.json(consumers.len()))?;
        for (name, consumer) in consumers {
            archive.json(&format!("consumers/{name}"), consumer)?;
        }
        Ok(archive)
    }

    pub fn message(&mut self, line: &Line) -> io::Result<()> {
        let time = i64::try_from(line.stored.as_nanosecond()).unwrap_or(i64::MAX);
        self.entry(&line.subject, time, line.sequence, &line.header_bytes(), &line.data)
    }

    /// Says that it is whole.
    pub fn end(mut self) -> io::Result<()> {
        self.entry("", 0, 0, &[], &[])?;
        self.0.flush()
    }

    fn json(&mut self, name: &str, value: &Value) -> io::Result<()> {
        self.entry(name, 0, 0, &[], &serde_json::to_vec(value)?)
    }

    fn entry(&mut self, name: &str, time: i64, sequence: u64, headers: &[u8], body: &[u8]) -> io::Result<()> {
        self.number(name.len() as u64)?;
        // Small negative numbers are small, too.
        self.number(((time << 1) ^ (time >> 63)) as u64)?;
        self.number(sequence)?;
        self.number(headers.len() as u64)?;
        self.number(body.len() as u64)?;
        self.0.write_all(name.as_bytes())?;
        self.0.write_all(headers)?;
        self.0.write_all(body)
    }

    /// Seven bits a byte, the lowest first.
    fn number(&mut self, mut number: u64) -> io::Result<()> {
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
        let state = State { first_sequence: 0, last_sequence: 300, messages: 1, bytes: 2 };
        let mut archive = Archive::begin(&mut written, state, &[]).unwrap();
        let line = Line {
            sequence: 300,
            stored: Timestamp::from_nanosecond(-1).unwrap(),
            subject: "a".to_owned(),
            headers: Vec::new(),
            data: b"hi".to_vec(),
        };
        archive.message(&line).unwrap();
        archive.end().unwrap();
        let mut read = Vec::new();
        snap::read::FrameDecoder::new(&written[..]).read_to_end(&mut read).unwrap();
        let json = serde_json::to_vec(&state.json(0)).unwrap();
        let head = [&b"NATSARC1"[..], &[10, 0, 0, 0], &[json.len() as u8 | 0x80, (json.len() >> 7) as u8]].concat();
        // -1 is 1 in zigzag, and 300 takes two bytes.
        let tail = [&b"state.json"[..], &json, &[1, 1, 0xac, 2, 0, 2], b"ahi", &[0; 5]].concat();
        assert_eq!(read, [head, tail].concat());
    }
}
