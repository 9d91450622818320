//! An answer that is written out byte by byte: for what no well-formed answer can be made into. Pure.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::json::set_field;
use crate::wire::response::{Frame, WireAnswer};

/// Bytes of an answer that is written out, in all.
const LONGEST: usize = 16 * 1024 * 1024;

/// An answer as the scenario writes it, its templates rendered.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct RawReply {
    /// Default 200.
    pub status: Option<u16>,
    /// Default `text/event-stream` with chunks, `application/json` for a body that is JSON, else `text/plain`.
    pub content_type: Option<String>,
    pub headers: BTreeMap<String, String>,
    /// A text that is sent as it is, or anything else as JSON. Excludes `chunks`.
    pub body: Option<Value>,
    pub chunks: Vec<Chunk>,
    /// The line ending within chunks. Default a newline.
    pub line_end: Option<String>,
    /// True if each byte is written by itself.
    pub split: bool,
}

/// A piece of a stream.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged)]
pub enum Chunk {
    Known(FixedChunk),
    Written(Box<WrittenChunk>),
}

/// A piece that is the same in every stream.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum FixedChunk {
    /// A chunk without choices that tells 10 and 5 tokens.
    Usage,
    /// The line that ends a stream.
    Done,
    /// The connection breaks.
    Cut,
    /// Nothing more comes until the client leaves.
    Stall,
}

/// A piece that is written out: of `text`, `hex` and `json` one, or else a chunk of what the other keys say.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct WrittenChunk {
    /// Bytes as they are.
    pub text: Option<String>,
    /// Bytes in hexadecimal digits.
    pub hex: Option<String>,
    /// Any JSON as the data of an event.
    pub json: Option<Value>,
    /// Words of the answer.
    pub say: Option<String>,
    /// Calls: `index`, `id`, `name`, `arguments`, each as it is or absent; other keys stand beside `function`.
    pub calls: Option<Vec<Map<String, Value>>>,
    /// Other fields of the delta.
    pub delta: Map<String, Value>,
    pub finish: Option<String>,
    /// Other fields of the chunk.
    pub with: Map<String, Value>,
    /// So often. Default once.
    pub repeat: Option<usize>,
    /// Before it, in milliseconds.
    pub wait_ms: Option<u64>,
}

impl RawReply {
    /// Reads what a scenario says.
    ///
    /// # Errors
    /// If it is wrong: the mistake in it.
    pub fn parse(value: Value) -> Result<Self, String> {
        let reply: Self = serde_json::from_value(value).map_err(|error| error.to_string())?;
        if reply.body.is_some() && !reply.chunks.is_empty() {
            return Err("give it a body or chunks, not both".to_owned());
        }
        if !(200..=599).contains(&reply.status.unwrap_or(200)) {
            return Err("status: must be 200 to 599".to_owned());
        }
        reply.frames().map(|_| reply)
    }

    /// Returns the bytes to send.
    ///
    /// # Errors
    /// If digits are no bytes, or it is too long.
    pub fn to_wire_answer(&self) -> Result<WireAnswer, String> {
        let usual = match &self.body {
            None => "text/event-stream",
            Some(Value::String(_)) => "text/plain",
            Some(_) => "application/json",
        };
        Ok(WireAnswer {
            status: self.status.unwrap_or(200),
            content_type: self.content_type.clone().unwrap_or_else(|| usual.to_owned()),
            headers: self.headers.clone().into_iter().collect(),
            frames: self.frames()?,
            is_apart: true,
        })
    }

    fn frames(&self) -> Result<Vec<Frame>, String> {
        let frames = match &self.body {
            Some(Value::String(text)) => vec![Frame::Data(Bytes::from(text.clone()))],
            Some(body) => vec![Frame::Data(Bytes::from(body.to_string()))],
            None => self.pieces()?,
        };
        Ok(if self.split { frames.into_iter().flat_map(single_bytes).collect() } else { frames })
    }

    fn pieces(&self) -> Result<Vec<Frame>, String> {
        let line_end = self.line_end.as_deref().unwrap_or("\n");
        let mut frames = Vec::new();
        let mut length = 0;
        for chunk in &self.chunks {
            let (piece, times) = match chunk {
                Chunk::Known(known) => (known.frame(line_end), 1),
                Chunk::Written(written) => {
                    frames.extend(written.wait_ms.map(Frame::Wait));
                    (Frame::Data(written.bytes(line_end)?), written.repeat.unwrap_or(1))
                }
            };
            let size = if let Frame::Data(data) = &piece { data.len() } else { 1 };
            length += size.saturating_mul(times);
            if length > LONGEST {
                return Err(format!("chunks: more than {LONGEST} bytes"));
            }
            frames.extend(std::iter::repeat_n(piece, times));
        }
        Ok(frames)
    }
}

impl FixedChunk {
    fn frame(self, line_end: &str) -> Frame {
        let usage = json!({ "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 });
        match self {
            Self::Usage => {
                Frame::Data(event(&chunk(json!([]), &Map::from_iter([("usage".to_owned(), usage)])), line_end))
            }
            Self::Done => Frame::Data(Bytes::from(format!("data: [DONE]{line_end}{line_end}"))),
            Self::Cut => Frame::Cut,
            Self::Stall => Frame::Stall,
        }
    }
}

impl WrittenChunk {
    fn bytes(&self, line_end: &str) -> Result<Bytes, String> {
        if let Some(text) = &self.text {
            return Ok(Bytes::from(text.clone()));
        }
        if let Some(digits) = &self.hex {
            return from_hex(digits).ok_or_else(|| format!("hex: {digits:.20} is not pairs of hexadecimal digits"));
        }
        if let Some(json) = &self.json {
            return Ok(event(json, line_end));
        }
        let mut delta = self.delta.clone();
        delta.extend(self.say.as_ref().map(|words| ("content".to_owned(), json!(words))));
        delta.extend(self.calls.as_ref().map(|calls| ("tool_calls".to_owned(), calls.iter().map(call).collect())));
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": self.finish });
        Ok(event(&chunk(json!([choice]), &self.with), line_end))
    }
}

fn call(given: &Map<String, Value>) -> Value {
    let (function, beside): (Map<_, _>, Map<_, _>) =
        given.clone().into_iter().partition(|(key, _)| key == "name" || key == "arguments");
    let mut call = json!({ "type": "function", "function": function });
    beside.into_iter().for_each(|(key, value)| set_field(&mut call, &key, value));
    call
}

fn chunk(choices: Value, more: &Map<String, Value>) -> Value {
    let mut chunk = json!({ "id": "chatcmpl-sim", "object": "chat.completion.chunk", "created": 1, "model": "sim" });
    set_field(&mut chunk, "choices", choices);
    more.clone().into_iter().for_each(|(key, value)| set_field(&mut chunk, &key, value));
    chunk
}

/// Data of an event, on one line.
pub(crate) fn event(json: &Value, line_end: &str) -> Bytes {
    Bytes::from(format!("data: {json}{line_end}{line_end}"))
}

fn from_hex(digits: &str) -> Option<Bytes> {
    let digits = digits.as_bytes();
    let pairs = digits.chunks(2).map(|pair| match pair {
        [_, _] => u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok(),
        _ => None,
    });
    pairs.collect::<Option<Vec<u8>>>().map(Bytes::from)
}

/// Each byte in a frame of its own.
pub(crate) fn single_bytes(frame: Frame) -> Vec<Frame> {
    match frame {
        Frame::Data(data) => (0..data.len()).map(|at| Frame::Data(data.slice(at..=at))).collect(),
        other => vec![other],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(yaml: &str) -> Result<String, String> {
        let value: Value = serde_saphyr::from_str(yaml).map_err(|error| error.to_string())?;
        let frames = RawReply::parse(value)?.to_wire_answer()?.frames;
        let data = frames.iter().filter_map(|frame| match frame {
            Frame::Data(data) => Some(data.as_ref()),
            _ => None,
        });
        Ok(String::from_utf8_lossy(&data.collect::<Vec<_>>().concat()).into_owned())
    }

    #[test]
    fn what_is_written_out_is_sent() {
        let told = text(
            "chunks: [{ say: a }, { calls: [{ id: c, name: t, arguments: '{}', x: 1 }] }, { finish: stop }, done]",
        );
        let told = told.expect("it is read");
        let events: Vec<&str> = told.split_terminator("\n\n").collect();
        assert_eq!(events.len(), 4);
        assert!(events[0].contains(r#""delta":{"content":"a"}"#), "{told}");
        assert!(
            events[1].contains(r#""function":{"arguments":"{}","name":"t"},"id":"c","type":"function","x":1"#),
            "{told}"
        );
        assert!(events[2].contains(r#""finish_reason":"stop""#), "{told}");
        assert_eq!(events[3], "data: [DONE]");
        assert_eq!(text("{ line_end: \"\\r\\n\", chunks: [done] }"), Ok("data: [DONE]\r\n\r\n".to_owned()));
        assert_eq!(text("{ status: 500, body: away }"), Ok("away".to_owned()));
        assert_eq!(text("body: [1]"), Ok("[1]".to_owned()));
        assert_eq!(text("{ chunks: [{ hex: '6869', repeat: 2 }] }"), Ok("hihi".to_owned()));
    }

    #[test]
    fn mistakes_are_told() {
        for wrong in
            ["status: 99", "{ body: a, chunks: [done] }", "chunks: [{ hex: abc }]", "chunks: [never]", "staus: 1"]
        {
            assert!(text(wrong).is_err(), "{wrong}");
        }
        assert!(text("chunks: [{ say: abcdefgh, repeat: 1000000 }]").is_err());
    }

    #[test]
    fn bytes_can_come_one_by_one() {
        let reply = RawReply { body: Some(json!("ab")), split: true, ..RawReply::default() };
        assert_eq!(reply.to_wire_answer().expect("it is sent").frames.len(), 2);
    }
}
