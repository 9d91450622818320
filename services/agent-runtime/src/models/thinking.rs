//! Telling reasoning from words while they arrive: some models write `<think>…</think>` before their answer. Pure.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// What a piece of an answer added, for whoever watches.
#[derive(Debug, Default, PartialEq)]
pub struct Added {
    pub text: String,
    pub reasoning: String,
}

/// Splits an answer that arrives in pieces, wherever they are cut.
#[derive(Debug, Default)]
pub struct Splitter {
    phase: Phase,
    /// What may yet become a tag.
    held: String,
}

#[derive(Debug, Default)]
enum Phase {
    #[default]
    Beginning,
    Thinking,
    /// Between the reasoning and the first word.
    Between,
    Saying,
}

impl Splitter {
    /// Takes in the next piece.
    pub fn take(&mut self, piece: &str) -> Added {
        self.held.push_str(piece);
        let mut added = Added::default();
        if let Phase::Beginning = self.phase {
            let begun = self.held.trim_start();
            if let Some(rest) = begun.strip_prefix(OPEN) {
                (self.held, self.phase) = (rest.to_owned(), Phase::Thinking);
            } else if !OPEN.starts_with(begun) {
                self.phase = Phase::Saying;
            }
        }
        if let Phase::Thinking = self.phase {
            match self.held.split_once(CLOSE) {
                Some((thought, rest)) => {
                    added.reasoning = thought.to_owned();
                    (self.held, self.phase) = (rest.to_owned(), Phase::Between);
                }
                None => {
                    let held = self.held.split_off(self.held.len() - tail(&self.held));
                    added.reasoning = std::mem::replace(&mut self.held, held);
                }
            }
        }
        if let Phase::Between = self.phase {
            self.held = self.held.trim_start().to_owned();
            if !self.held.is_empty() {
                self.phase = Phase::Saying;
            }
        }
        if let Phase::Saying = self.phase {
            added.text = std::mem::take(&mut self.held);
        }
        added
    }

    /// What was held back, when no more comes.
    pub fn finish(self) -> Added {
        match self.phase {
            Phase::Thinking => Added { reasoning: self.held, ..Default::default() },
            Phase::Beginning | Phase::Between | Phase::Saying => Added { text: self.held, ..Default::default() },
        }
    }
}

/// Length of the end of a text that may be the beginning of the closing tag.
fn tail(text: &str) -> usize {
    (1..CLOSE.len()).rev().find(|length| text.ends_with(CLOSE.get(..*length).unwrap_or(CLOSE))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits a text that arrives in pieces of so many characters.
    fn split(text: &str, size: usize) -> (String, String) {
        let mut splitter = Splitter::default();
        let characters: Vec<char> = text.chars().collect();
        let pieces = characters.chunks(size).map(|piece| piece.iter().collect::<String>());
        let mut all: Vec<Added> = pieces.map(|piece| splitter.take(&piece)).collect();
        all.push(splitter.finish());
        let (mut reasoning, mut said) = (String::new(), String::new());
        for added in all {
            reasoning.push_str(&added.reasoning);
            said.push_str(&added.text);
        }
        (reasoning, said)
    }

    #[test]
    fn reasoning_is_told_from_words_wherever_the_pieces_are_cut() {
        let cases = [
            ("Hello", "", "Hello"),
            ("", "", ""),
            ("<think>hm</think>\n\nHello", "hm", "Hello"),
            (" \n<think>a < b </thin k> größer</think>Hello <think>", "a < b </thin k> größer", "Hello <think>"),
            ("<think>cut off</th", "cut off</th", ""),
            ("<thinker>", "", "<thinker>"),
            ("<th", "", "<th"),
            ("<think></think>", "", ""),
        ];
        for (text, reasoning, said) in cases {
            for size in 1..=text.len().max(1) {
                assert_eq!(split(text, size), (reasoning.to_owned(), said.to_owned()), "{text:?} by {size}");
            }
        }
    }

    #[test]
    fn words_are_not_held_back_longer_than_needed() {
        let mut splitter = Splitter::default();
        assert_eq!(splitter.take("<th"), Added::default());
        assert_eq!(splitter.take("ink>so <"), Added { reasoning: "so ".into(), ..Default::default() });
        assert_eq!(splitter.take("b"), Added { reasoning: "<b".into(), ..Default::default() });
        assert_eq!(splitter.take("</think>\n"), Added::default());
        assert_eq!(splitter.take("Yes"), Added { text: "Yes".into(), ..Default::default() });
    }
}
