//! An answer that is shown while it grows, such that all pieces together are exactly what is committed. Pure.
//!
//! The output of a model is shown as it comes, as long as it can be what will be committed. It may turn out otherwise:
//! pieces are lost, a model call is retried, a replica dies. Then nothing more is shown until the log has the agent's
//! answer, and the missing rest is added. If the text shown is not the beginning of the answer, the stream has to fail.

use std::collections::{HashSet, VecDeque};

use uuid::Uuid;

/// The separator between what is said on the way and what is said next.
pub const BETWEEN: &str = "\n\n";
/// Model calls that write at once whose pieces are kept, and what is kept of one, in bytes. The rest is shown when it is
/// committed.
const MAX_CALLS: usize = 4;
const MAX_TEXT: usize = 256 * 1024;

#[derive(Debug, Default)]
pub struct StreamedAnswer {
    /// The text shown so far.
    shown: String,
    /// The text committed so far.
    committed: String,
    /// Inputs that were decided on: later pieces of these calls are ignored.
    decided: HashSet<Uuid>,
    /// In the order they began.
    calls: VecDeque<CallOutput>,
}

/// The pieces of a pending decision that arrived so far.
#[derive(Debug)]
struct CallOutput {
    input: Uuid,
    text: String,
    /// The next piece that is due.
    due: u32,
    /// True if a piece is missing, or the model was called again: the rest shows when it is committed.
    broken: bool,
}

/// A piece of what a model writes.
#[derive(Clone, Copy, Debug)]
pub struct OutputPiece<'a> {
    /// The input that is being decided on.
    pub input: Uuid,
    /// Counted from 0 within the model call.
    pub index: u32,
    pub text: &'a str,
}

/// The error if the text shown is not the beginning of the committed text.
#[derive(Debug, PartialEq, Eq)]
pub struct TextMismatch;

impl StreamedAnswer {
    /// Takes a piece in, and returns what can be shown now.
    pub fn add_piece(&mut self, piece: OutputPiece<'_>) -> Option<String> {
        if self.decided.contains(&piece.input) {
            return None;
        }
        if !self.calls.iter().any(|call| call.input == piece.input) {
            if self.calls.len() == MAX_CALLS {
                return None;
            }
            self.calls.push_back(CallOutput { input: piece.input, text: String::new(), due: 0, broken: false });
        }
        self.calls.iter_mut().find(|call| call.input == piece.input)?.append_piece(piece);
        self.show_live_text()
    }

    /// The input was decided on. `committed` is all the agent said so far.
    pub fn commit(&mut self, input: Uuid, committed: &[String]) -> Option<String> {
        self.decided.insert(input);
        self.calls.retain(|call| call.input != input);
        self.committed = committed.join(BETWEEN);
        let mut more = self.show_more(&self.committed.clone()).unwrap_or_default();
        more.extend(self.show_live_text());
        (!more.is_empty()).then_some(more)
    }

    pub fn has_shown_nothing(&self) -> bool {
        self.shown.is_empty()
    }

    /// It is over: returns what is missing of the answer.
    pub fn remaining_text(&mut self, answer: &str) -> Result<Option<String>, TextMismatch> {
        match answer.strip_prefix(&self.shown) {
            Some("") => Ok(None),
            Some(more) => Ok(Some(more.to_owned())),
            None => Err(TextMismatch),
        }
    }

    /// Shows what the first of the calls wrote so far.
    fn show_live_text(&mut self) -> Option<String> {
        let text = self.calls.front()?.certain_words()?;
        let between = if self.committed.is_empty() { "" } else { BETWEEN };
        let text = format!("{}{between}{text}", self.committed);
        self.show_more(&text)
    }

    fn show_more(&mut self, text: &str) -> Option<String> {
        let more = text.strip_prefix(&self.shown).filter(|more| !more.is_empty())?.to_owned();
        self.shown.push_str(&more);
        Some(more)
    }
}

impl CallOutput {
    fn append_piece(&mut self, piece: OutputPiece<'_>) {
        self.broken |= piece.index != self.due || self.text.len() + piece.text.len() > MAX_TEXT;
        if !self.broken {
            self.due += 1;
            self.text.push_str(piece.text);
        }
    }

    /// Returns the words that will be said, as far as they are certain: they have no space around them, and text that
    /// looks like JSON, bare or fenced, is for the mind.
    fn certain_words(&self) -> Option<&str> {
        let words = self.text.trim();
        (!words.is_empty() && !words.starts_with(['{', '[', '`'])).then_some(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streamed_texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    struct Client {
        growing: StreamedAnswer,
        got: String,
    }

    impl Client {
        fn new() -> Self {
            Self { growing: StreamedAnswer::default(), got: String::new() }
        }

        /// The pieces of a call, from an index on.
        fn hear(&mut self, input: u128, from: u32, texts: &[&str]) -> &str {
            for (index, text) in (from..).zip(texts) {
                let input = Uuid::from_u128(input);
                self.got.extend(self.growing.add_piece(OutputPiece { input, index, text }));
            }
            &self.got
        }

        fn commit(&mut self, input: u128, committed: &[&str]) -> &str {
            self.got.extend(self.growing.commit(Uuid::from_u128(input), &streamed_texts(committed)));
            &self.got
        }

        fn end(mut self, answer: &[&str]) -> Result<String, TextMismatch> {
            self.got.extend(self.growing.remaining_text(&answer.join(BETWEEN))?);
            Ok(self.got)
        }
    }

    #[test]
    fn what_is_written_is_shown_as_it_comes() {
        let mut client = Client::new();
        assert_eq!(client.hear(1, 0, &[" Hel", "lo ", "\n", "you"]), "Hello \nyou");
        assert_eq!(client.hear(1, 4, &["  \n"]), "Hello \nyou");
        assert_eq!(client.end(&["Hello \nyou"]).unwrap(), "Hello \nyou");
    }

    #[test]
    fn words_on_the_way_are_a_paragraph() {
        let mut client = Client::new();
        client.hear(1, 0, &["Let me", " see."]);
        assert_eq!(client.commit(1, &["Let me see."]), "Let me see.");
        assert_eq!(client.hear(2, 0, &["It", " is"]), "Let me see.\n\nIt is");
        assert_eq!(client.end(&["Let me see.", "It is 7."]).unwrap(), "Let me see.\n\nIt is 7.");
    }

    #[test]
    fn pieces_that_are_late_early_lost_or_repeated_do_no_harm() {
        // The log was faster.
        let mut client = Client::new();
        client.commit(1, &["Let me see."]);
        assert_eq!(client.hear(1, 0, &["Let me", " see."]), "Let me see.");
        assert_eq!(client.hear(2, 0, &["It"]), "Let me see.\n\nIt");
        // The log was slower.
        let mut client = Client::new();
        client.hear(1, 0, &["Let me"]);
        assert_eq!(client.hear(2, 0, &["It", " is"]), "Let me");
        assert_eq!(client.commit(1, &["Let me see."]), "Let me see.\n\nIt is");
        // One is lost.
        let mut client = Client::new();
        client.hear(1, 0, &["a", "b"]);
        assert_eq!(client.hear(1, 3, &["d", "e"]), "ab");
        assert_eq!(client.end(&["abcde"]).unwrap(), "abcde");
        // The model was asked again, and said the same.
        let mut client = Client::new();
        client.hear(1, 0, &["a", "b"]);
        assert_eq!(client.hear(1, 0, &["a", "b", "c"]), "ab");
        assert_eq!(client.end(&["abcd"]).unwrap(), "abcd");
    }

    #[test]
    fn what_was_shown_and_not_committed_is_a_failure() {
        let mut client = Client::new();
        client.hear(1, 0, &["The answer"]);
        client.hear(1, 0, &["My answer"]);
        assert_eq!(client.end(&["My answer"]), Err(TextMismatch));
    }

    #[test]
    fn json_is_not_shown_until_it_is_words() {
        let mut client = Client::new();
        assert_eq!(client.hear(1, 0, &["```json\n", "{}"]), "");
        assert_eq!(client.end(&["hello"]).unwrap(), "hello");
        assert_eq!(Client::new().end(&[]).unwrap(), "");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut client = Client::new();
        for input in 0..100 {
            client.hear(input, 0, &["x"]);
        }
        assert_eq!(client.growing.calls.len(), MAX_CALLS);
        let piece = "y".repeat(1_024);
        client.hear(0, 1, &vec![piece.as_str(); 1_000]);
        assert!(client.got.len() <= MAX_TEXT);
        assert_eq!(client.end(&[&format!("x{}", piece.repeat(1_000))]).unwrap().len(), 1 + 1_024_000);
    }
}
