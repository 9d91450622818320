//! Finds the pieces of an answer in its bytes: server-sent events, JSON line by line, or one whole JSON document.
//!
//! Crates that parse server-sent events keep to the standard, by which a body of lines of JSON, an event without a blank line
//! behind it or a byte that is no UTF-8 is nothing or an error. Endpoints send all of these.

use serde_json::Value;

use super::lenient_json;

/// Longest line or event, in bytes.
const LONGEST: usize = 8 * 1024 * 1024;
/// Bytes that may be read in vain, to see whether an event is whole that no blank line has ended.
const VAIN_BYTES: usize = 64 * 1024 * 1024;
/// Most bytes kept of text that is no data: it may say what is wrong.
const STRAY_BYTES: usize = 4096;
const BYTE_ORDER_MARK: char = '\u{feff}';

/// A piece of an answer.
#[derive(Debug, PartialEq)]
pub enum Frame {
    /// With the name of its event; empty where it has none.
    Json { value: Value, event: String },
    /// The end, in so many words.
    Done,
    /// It was meant to be JSON.
    Garbled(String),
}

/// A line or an event is longer than any may be.
#[derive(Debug, PartialEq)]
pub struct TooLong;

/// Takes in bytes, wherever they are cut.
#[derive(Debug, Default)]
pub struct Frames {
    /// Of a line that has not ended, or of a document that is read as a whole.
    held: Vec<u8>,
    is_document: bool,
    /// The last byte ended a line, and a line feed would be part of that end.
    after_return: bool,
    data: String,
    has_data: bool,
    event: String,
    vain_bytes: usize,
    stray: String,
}

impl Frames {
    /// The pieces that these bytes complete.
    ///
    /// # Errors
    /// If a line or an event is longer than any may be.
    pub fn read(&mut self, mut bytes: &[u8]) -> Result<Vec<Frame>, TooLong> {
        let mut frames = Vec::new();
        while !bytes.is_empty() && !self.is_document {
            if std::mem::take(&mut self.after_return)
                && let [b'\n', rest @ ..] = bytes
            {
                bytes = rest;
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.held.extend_from_slice(bytes);
                return if self.held.len() > LONGEST { Err(TooLong) } else { Ok(frames) };
            };
            let (line, rest) = bytes.split_at(end);
            self.after_return = rest.first() == Some(&b'\r');
            bytes = rest.get(1..).unwrap_or_default();
            self.held.extend_from_slice(line);
            if self.held.len() > LONGEST || self.data.len() > LONGEST {
                return Err(TooLong);
            }
            let line = std::mem::take(&mut self.held);
            self.line(&String::from_utf8_lossy(&line), &mut frames);
        }
        self.held.extend_from_slice(bytes);
        Ok(frames)
    }

    /// Returns the remaining pieces when no more comes.
    pub fn finish(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        let held = std::mem::take(&mut self.held);
        let held = String::from_utf8_lossy(&held);
        match self.is_document {
            true => self.document(&held, &mut frames),
            false if !held.is_empty() => self.read_last_line(&held, &mut frames),
            false => {}
        }
        self.dispatch(&mut frames);
        frames
    }

    fn read_last_line(&mut self, line: &str, frames: &mut Vec<Frame>) {
        self.line(line, frames);
        if std::mem::take(&mut self.is_document) {
            let held = std::mem::take(&mut self.held);
            self.document(&String::from_utf8_lossy(&held), frames);
        }
    }

    /// Returns the bytes that have arrived of a document that is read as a whole; 0 for events and lines.
    pub fn document_bytes(&self) -> u64 {
        if self.is_document { self.held.len() as u64 } else { 0 }
    }

    /// Text that was neither data nor anything else of the format.
    pub fn stray(&self) -> &str {
        &self.stray
    }

    fn line(&mut self, line: &str, frames: &mut Vec<Frame>) {
        if line.is_empty() {
            return self.dispatch(frames);
        }
        // A byte order mark may stand before the first.
        let line = line.trim_start_matches(|sign: char| sign.is_whitespace() || sign == BYTE_ORDER_MARK);
        if line.starts_with(['{', '[']) {
            self.dispatch(frames);
            return self.read_bare_json(line, frames);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field.trim() {
            "data" => self.add_data(value, frames),
            "event" => value.trim().clone_into(&mut self.event),
            // A comment.
            "" | "id" | "retry" => {}
            _ => self.keep_stray(line),
        }
    }

    /// JSON that is no field of an event: a line of its own, or the beginning of a document.
    fn read_bare_json(&mut self, line: &str, frames: &mut Vec<Frame>) {
        if line.trim() == "[DONE]" {
            return frames.push(Frame::Done);
        }
        match lenient_json::parse(line) {
            Some(value) => frames.push(Frame::Json { value, event: String::new() }),
            None => {
                self.is_document = true;
                self.held = line.as_bytes().to_vec();
                self.held.push(b'\n');
            }
        }
    }

    fn document(&mut self, text: &str, frames: &mut Vec<Frame>) {
        if let Some(value) = lenient_json::parse(text) {
            return frames.push(Frame::Json { value, event: String::new() });
        }
        // The first line may have been cut, and others behind it not.
        let lines: Option<Vec<Value>> =
            text.lines().filter(|line| !line.trim().is_empty()).map(lenient_json::parse).collect();
        match lines {
            Some(values) => frames.extend(values.into_iter().map(|value| Frame::Json { value, event: String::new() })),
            None => frames.push(Frame::Garbled(text.chars().take(STRAY_BYTES).collect())),
        }
    }

    fn add_data(&mut self, value: &str, frames: &mut Vec<Frame>) {
        if self.has_data && self.is_whole_event(value) {
            self.dispatch(frames);
        }
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push('\n');
        }
        self.data.push_str(value);
    }

    /// Returns true if the data up to now is one event, and this begins another: some servers leave out the blank line.
    fn is_whole_event(&mut self, next: &str) -> bool {
        let data = self.data.trim();
        let may_be = data.is_empty() || data == "[DONE]" || data.ends_with(['}', ']']) || !data.starts_with(['{', '[']);
        if !may_be || !next.trim_start().starts_with(['{', '[']) || self.vain_bytes > VAIN_BYTES {
            return false;
        }
        let is_whole = !data.starts_with(['{', '[']) || data == "[DONE]" || lenient_json::parse(data).is_some();
        if !is_whole {
            self.vain_bytes = self.vain_bytes.saturating_add(self.data.len());
        }
        is_whole
    }

    /// An event has ended.
    fn dispatch(&mut self, frames: &mut Vec<Frame>) {
        let data = std::mem::take(&mut self.data);
        let event = std::mem::take(&mut self.event);
        if !std::mem::take(&mut self.has_data) {
            return;
        }
        let text = data.trim();
        match text {
            "" => {}
            "[DONE]" | "[done]" | "DONE" => frames.push(Frame::Done),
            _ => match lenient_json::parse(text) {
                Some(value) => frames.push(Frame::Json { value, event }),
                None if text.starts_with(['{', '[', '"']) => {
                    frames.push(Frame::Garbled(text.chars().take(STRAY_BYTES).collect()))
                }
                None if event == "error" => frames.push(Frame::Json { value: Value::String(data), event }),
                None => self.keep_stray(text),
            },
        }
    }

    fn keep_stray(&mut self, line: &str) {
        let room = STRAY_BYTES.saturating_sub(self.stray.len());
        self.stray.push_str(line.get(..line.floor_char_boundary(room)).unwrap_or_default());
        self.stray.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn frames_of(bytes: &[u8], size: usize) -> Vec<Frame> {
        let mut frames = Frames::default();
        let mut all: Vec<Frame> = bytes.chunks(size).flat_map(|piece| frames.read(piece).unwrap()).collect();
        all.extend(frames.finish());
        all
    }

    #[test]
    fn pieces_are_found_however_they_are_written_and_cut() {
        let json = |value| Frame::Json { value, event: String::new() };
        let one = json(json!({ "a": 1 }));
        let two = json(json!({ "a": 2 }));
        let both = [one, two, Frame::Done];
        for text in [
            "data: {\"a\":1}\n\ndata: {\"a\":2}\n\ndata: [DONE]\n\n",
            "data:{\"a\":1}\r\n\r\ndata:{\"a\":2}\r\n\r\ndata:[DONE]\r\n\r\n",
            "data: {\"a\":1}\r\rdata: {\"a\":2}\r\rdata: [DONE]\r\r",
            "\u{feff}: ping\n\nid: 4\nretry: 9\ndata: {\"a\":1}\n\ndata:\n\ndata: null \n\ndata: {\"a\":2}\n\ndata: [DONE]",
            "data: {\"a\":1}\ndata: {\"a\":2}\ndata: [DONE]\n",
            "data: {\ndata: \"a\":1\ndata: }\n\ndata: {\"a\":2}\n\ndata: [DONE]\n",
            "{\"a\":1}\n{\"a\":2}\n[DONE]\n",
            "HTTP noise\ndata: {\"a\":1}\n\n{\"a\":2}\ndata: [DONE]",
        ] {
            for size in [1, 2, 3, 7, 1000] {
                let found: Vec<Frame> =
                    frames_of(text.as_bytes(), size).into_iter().filter(|frame| *frame != json(Value::Null)).collect();
                assert_eq!(found, both, "{text:?} by {size}");
            }
        }
    }

    #[test]
    fn a_document_is_read_as_a_whole_and_errors_are_told_apart() {
        let json = |value, event: &str| Frame::Json { value, event: event.to_owned() };
        assert_eq!(frames_of(b"{\n  \"a\": [\n 1 ]\n}\n", 3), [json(json!({ "a": [1] }), "")]);
        assert_eq!(frames_of(b": wait\n\n{\n\"a\":\r\n1}", 1), [json(json!({ "a": 1 }), "")]);
        assert_eq!(frames_of(b"data: {\"a\":\n\n", 5), [Frame::Garbled("{\"a\":".into())]);
        assert_eq!(frames_of(b"event: error\ndata: {\"a\":1}\n\n", 5), [json(json!({ "a": 1 }), "error")]);
        assert_eq!(frames_of(b"event: error\ndata: out of memory", 5), [json(json!("out of memory"), "error")]);
        assert_eq!(frames_of("data: \"caf\u{e9}\"\n\n".as_bytes(), 1), [json(json!("café"), "")]);
        assert_eq!(frames_of(b"data: \"caf\xe9\"\n\n", 1), [json(json!("caf\u{fffd}"), "")]);
        let mut frames = Frames::default();
        assert!(frames.read(b"<html>\n<title>Down</title>").unwrap().is_empty() && frames.finish().is_empty());
        assert_eq!(frames.stray(), "<html>\n<title>Down</title>\n");
        assert_eq!(Frames::default().read(&vec![b'x'; LONGEST + 1]), Err(TooLong));
    }
}
