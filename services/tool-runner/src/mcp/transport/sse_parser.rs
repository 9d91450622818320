//! Splits a stream of server-sent events into events, pure. Source: the HTML Standard, "Interpreting an event stream".

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SseEvent {
    pub kind: Option<String>,
    pub id: Option<String>,
    /// Wait before the stream is opened again, in milliseconds.
    pub retry: Option<u64>,
    pub data: Option<Vec<u8>>,
}

/// An event is longer than it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {0} bytes")]
pub struct EventTooLong(pub usize);

/// Keeps what has come of the event that is not complete.
#[derive(Debug)]
pub struct SseParser {
    /// Longest event in bytes.
    max_bytes: usize,
    line: Vec<u8>,
    event: SseEvent,
    bytes: usize,
    follows_return: bool,
}

impl SseParser {
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, line: Vec::new(), event: SseEvent::default(), bytes: 0, follows_return: false }
    }

    /// Takes the next piece, and gives the events that are complete.
    ///
    /// # Errors
    /// When one is too long: the stream is of no use any more.
    pub fn parse_piece(&mut self, piece: &[u8]) -> Result<Vec<SseEvent>, EventTooLong> {
        let mut events = Vec::new();
        for byte in piece {
            let follows_return = std::mem::replace(&mut self.follows_return, *byte == b'\r');
            match byte {
                b'\n' if follows_return => {}
                b'\r' | b'\n' => events.extend(self.end_line()),
                byte => {
                    self.line.push(*byte);
                    self.bytes += 1;
                    if self.bytes > self.max_bytes {
                        return Err(EventTooLong(self.max_bytes));
                    }
                }
            }
        }
        Ok(events)
    }

    /// The event that the end of the stream completes: many servers leave out the empty line.
    pub fn finish(&mut self) -> Option<SseEvent> {
        let ended = self.end_line();
        ended.or_else(|| self.end_event())
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line);
        if line.is_empty() {
            return self.end_event();
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at_checked(colon)?;
        let value = value.get(1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let text = || String::from_utf8_lossy(value).into_owned();
        match name {
            b"event" => self.event.kind = Some(text()),
            b"id" => self.event.id = Some(text()).filter(|id| !id.contains('\0')),
            b"retry" => self.event.retry = text().trim().parse().ok(),
            b"data" => match &mut self.event.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.event.data = Some(value.to_vec()),
            },
            // A comment takes no room.
            b"" => self.bytes -= line.len().min(self.bytes),
            _ => {}
        }
        None
    }

    fn end_event(&mut self) -> Option<SseEvent> {
        self.bytes = 0;
        Some(std::mem::take(&mut self.event)).filter(|event| *event != SseEvent::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(stream: &[u8], size: usize) -> Vec<SseEvent> {
        let mut reader = SseParser::new(100);
        let mut events: Vec<SseEvent> =
            stream.chunks(size).flat_map(|piece| reader.parse_piece(piece).unwrap()).collect();
        events.extend(reader.finish());
        events
    }

    fn data(text: &str) -> SseEvent {
        SseEvent { data: Some(text.into()), ..SseEvent::default() }
    }

    #[test]
    fn events_are_the_same_however_the_stream_is_cut() {
        let message = SseEvent { kind: Some("message".into()), id: Some("7".into()), ..data("{}") };
        let retry = SseEvent { retry: Some(50), id: Some(String::new()), ..SseEvent::default() };
        for (stream, expected) in [
            (&b": ping\n\nevent: message\nid: 7\ndata: {}\n\n"[..], vec![message]),
            (b"\xef\xbb\xbfdata:a\r\n\r\ndata: b\rdata:c\r\rdata\n\n", vec![data("a"), data("b\nc"), data("")]),
            (b"retry: 50\nid\n\nretry: x\nunknown: y\n\n", vec![retry]),
            (b"data: without an end", vec![data("without an end")]),
            (b"\n\n\n", vec![]),
        ] {
            for size in [1, 3, 1000] {
                assert_eq!(events(stream, size), expected, "{}", String::from_utf8_lossy(stream));
            }
        }
    }

    #[test]
    fn an_event_is_bounded_and_comments_are_not_counted() {
        let mut reader = SseParser::new(20);
        assert_eq!(reader.parse_piece(&b": 0123456789\n".repeat(50)), Ok(vec![]));
        assert_eq!(reader.parse_piece(b"data: 0123\n\ndata: 0123\n\n").map(|events| events.len()), Ok(2));
        assert_eq!(reader.parse_piece(b"data: 0123\ndata: 0123456\n"), Err(EventTooLong(20)));
    }
}
