//! Captures the output of a process: decoded to text, put in one order over both streams, and bounded.

use crate::protocol::{Output, OutputTotals, Stream};

/// Turns bytes into text piece by piece, holding back a character that is not whole yet.
#[derive(Debug, Default)]
struct Decoder {
    /// The beginning of a character: at most 3 bytes.
    partial: Vec<u8>,
}

impl Decoder {
    fn push(&mut self, bytes: &[u8]) -> String {
        let mut input = std::mem::take(&mut self.partial);
        input.extend_from_slice(bytes);
        let mut text = String::with_capacity(input.len());
        let mut chunks = input.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            if chunks.peek().is_none() && is_incomplete_character(invalid) {
                self.partial = invalid.to_vec();
            } else if !invalid.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        // Postgres has no NUL in text, and this text ends up there.
        if text.contains('\0') {
            text = text.replace('\0', "\u{FFFD}");
        }
        text
    }

    /// The end of the stream: what was held back will never be whole.
    fn finish(&mut self) -> String {
        match std::mem::take(&mut self.partial).is_empty() {
            true => String::new(),
            false => char::REPLACEMENT_CHARACTER.to_string(),
        }
    }
}

/// Returns true if more bytes could still make this a character.
fn is_incomplete_character(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// Both streams of one process.
#[derive(Debug)]
pub struct Capture {
    /// Bytes that may still be kept.
    room: u64,
    next_seq: u64,
    stdout: Decoder,
    stderr: Decoder,
    totals: OutputTotals,
}

impl Capture {
    /// Keeps `limit_bytes` over both streams.
    pub fn new(limit_bytes: u64) -> Self {
        Self {
            room: limit_bytes,
            next_seq: 0,
            stdout: Decoder::default(),
            stderr: Decoder::default(),
            totals: OutputTotals::default(),
        }
    }

    /// Takes what was read from `stream`. `None` when there is nothing to pass on (yet).
    pub fn push_bytes(&mut self, stream: Stream, bytes: &[u8]) -> Option<Output> {
        let read = bytes.len() as u64;
        let kept = read.min(self.room);
        self.room -= kept;
        self.totals.discarded_bytes += read - kept;
        *self.total(stream) += read;
        let kept = bytes.get(..usize::try_from(kept).unwrap_or(usize::MAX))?;
        let text = self.decoder(stream).push(kept);
        self.frame(stream, text)
    }

    /// The end of `stream`.
    pub fn finish(&mut self, stream: Stream) -> Option<Output> {
        let rest = self.decoder(stream).finish();
        // After a cut the missing half of a character is our doing, not the process's.
        match self.totals.discarded_bytes {
            0 => self.frame(stream, rest),
            _ => None,
        }
    }

    pub fn totals(&self) -> OutputTotals {
        self.totals
    }

    fn frame(&mut self, stream: Stream, text: String) -> Option<Output> {
        if text.is_empty() {
            return None;
        }
        let seq = self.next_seq;
        self.next_seq += 1;
        Some(Output { stream, seq, text })
    }

    fn decoder(&mut self, stream: Stream) -> &mut Decoder {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }

    fn total(&mut self, stream: Stream) -> &mut u64 {
        match stream {
            Stream::Stdout => &mut self.totals.stdout_bytes,
            Stream::Stderr => &mut self.totals.stderr_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(frame: Option<Output>) -> String {
        frame.map(|frame| frame.text).unwrap_or_default()
    }

    #[test]
    fn text_is_the_same_however_it_is_cut() {
        let written = "aß€🦀z".as_bytes();
        for cut in 0..=written.len() {
            let mut capture = Capture::new(1_000);
            let (head, tail) = written.split_at(cut);
            let read = text(capture.push_bytes(Stream::Stdout, head))
                + &text(capture.push_bytes(Stream::Stdout, tail))
                + &text(capture.finish(Stream::Stdout));
            assert_eq!(read, "aß€🦀z", "cut at {cut}");
        }
    }

    #[test]
    fn a_half_character_of_one_stream_does_not_meet_the_other() {
        let head = "€".as_bytes()[..1].to_vec();
        let tail = "€".as_bytes()[1..].to_vec();
        let mut capture = Capture::new(1_000);
        assert_eq!(capture.push_bytes(Stream::Stdout, &head), None);
        assert_eq!(text(capture.push_bytes(Stream::Stderr, b"x")), "x");
        assert_eq!(text(capture.push_bytes(Stream::Stdout, &tail)), "€");
    }

    #[test]
    fn binary_becomes_replacement_characters_and_never_nul() {
        let mut capture = Capture::new(1_000);
        assert_eq!(text(capture.push_bytes(Stream::Stdout, b"a\xff\0b\xe2")), "a\u{FFFD}\u{FFFD}b");
        assert_eq!(text(capture.finish(Stream::Stdout)), "\u{FFFD}");
    }

    #[test]
    fn frames_are_numbered_over_both_streams() {
        let mut capture = Capture::new(1_000);
        let numbers: Vec<u64> = [Stream::Stdout, Stream::Stderr, Stream::Stdout]
            .into_iter()
            .filter_map(|stream| capture.push_bytes(stream, b"x"))
            .map(|frame| frame.seq)
            .collect();
        assert_eq!(numbers, [0, 1, 2]);
    }

    #[test]
    fn what_exceeds_the_limit_is_counted_and_thrown_away() {
        let mut capture = Capture::new(5);
        assert_eq!(text(capture.push_bytes(Stream::Stdout, b"abc")), "abc");
        assert_eq!(text(capture.push_bytes(Stream::Stderr, "d€".as_bytes())), "d");
        assert_eq!(capture.push_bytes(Stream::Stdout, b"more"), None);
        assert_eq!(capture.finish(Stream::Stderr), None, "cut by the limit");
        assert_eq!(capture.totals(), OutputTotals { stdout_bytes: 7, stderr_bytes: 4, discarded_bytes: 6 });
    }
}
