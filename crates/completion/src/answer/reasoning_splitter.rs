//! Telling reasoning from words while they arrive: some models write `<think>…</think>` into their answer. Pure.
//!
//! A block that begins a line is reasoning at once, and to the end if it is never closed. One that begins within a line may
//! be a mere mention: nothing is shown until its end comes, and if that never does, it is words. In code nothing is a block.

use kairo_proto::{CONTEXT_CLOSE, CONTEXT_OPEN};

/// The tags around blocks of reasoning. Small models repeat what the runtime told them, with its markers: nobody is to
/// read that as an answer.
const TAGS: [Tag; 3] = [
    Tag { open: "<think>", close: "</think>" },
    Tag { open: "<thinking>", close: "</thinking>" },
    Tag { open: CONTEXT_OPEN, close: CONTEXT_CLOSE },
];

#[derive(Clone, Copy, Debug, PartialEq)]
struct Tag {
    open: &'static str,
    close: &'static str,
}

/// Text that a piece of an answer added, for whoever watches.
#[derive(Debug, Default, PartialEq)]
pub struct AddedText {
    pub text: String,
    pub reasoning: String,
}

/// Splits an answer that arrives in pieces, wherever they are cut.
#[derive(Debug)]
pub struct Splitter {
    /// The block that is open, and whether it is certain that it is one.
    thinking: Option<(Tag, bool)>,
    code: Code,
    /// Nothing but blanks stand before it in its line.
    begins_line: bool,
    /// The last character that was said.
    last: Option<char>,
    /// The last character that was thought, and whether a block has ended since.
    last_thought: Option<char>,
    between: bool,
    /// True while blanks are left out: those around reasoning.
    skips_blanks: bool,
    /// Text that may yet become a tag, or the beginning or end of code.
    held: String,
}

/// The code that words are within.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Code {
    #[default]
    None,
    /// Until so many backticks, or the end of the line.
    Inline(usize),
    /// Until a line of so many backticks or tildes; the line that opens it may turn out to be inline code.
    Fenced { mark: char, length: usize, opening: bool },
}

/// The next step in splitting an answer.
enum SplitStep {
    /// The number of bytes that are words.
    Say(usize),
    /// The number of bytes to leave out.
    Skip(usize),
    Open(Tag),
    /// That cannot be told yet.
    Wait,
}

impl Splitter {
    /// `thinks_first`: the answer begins within a block that the prompt has opened.
    pub fn new(thinks_first: bool) -> Self {
        let [tag, ..] = TAGS;
        Self {
            thinking: thinks_first.then_some((tag, true)),
            code: Code::None,
            begins_line: true,
            last: None,
            last_thought: None,
            between: false,
            skips_blanks: false,
            held: String::new(),
        }
    }

    /// Takes in the next piece.
    pub fn push(&mut self, piece: &str) -> AddedText {
        self.held.push_str(piece);
        self.split(false)
    }

    /// Returns the text that was held back, when no more comes.
    pub fn finish(mut self) -> AddedText {
        let mut added = self.split(true);
        match self.thinking {
            Some((_, true)) => added.reasoning.push_str(&self.held),
            Some((tag, false)) => added.text.extend([tag.open, &self.held]),
            None => added.text.push_str(&self.held),
        }
        added
    }

    fn split(&mut self, over: bool) -> AddedText {
        let mut added = AddedText::default();
        let held = std::mem::take(&mut self.held);
        let mut rest = held.as_str();
        while !rest.is_empty() {
            let before = rest;
            rest = match self.thinking {
                Some((tag, certain)) => self.take_reasoning(tag, certain, rest, &mut added.reasoning),
                None => self.take_words(rest, over, &mut added.text),
            };
            if rest.len() == before.len() {
                break;
            }
        }
        self.held = rest.to_owned();
        added
    }

    /// Takes reasoning from the beginning of the rest, and returns what remains.
    fn take_reasoning<'r>(&mut self, tag: Tag, certain: bool, rest: &'r str, reasoning: &mut String) -> &'r str {
        if let Some((thought, behind)) = rest.split_once(tag.close) {
            self.push_reasoning(thought, reasoning);
            (self.thinking, self.between) = (None, true);
            self.begins_line = certain;
            self.skips_blanks = self.last.is_none_or(char::is_whitespace);
            return behind;
        }
        let shown = if certain { rest.len() - partial_close_length(rest, tag.close) } else { 0 };
        let (thought, behind) = rest.split_at_checked(shown).unwrap_or(("", rest));
        self.push_reasoning(thought, reasoning);
        behind
    }

    /// Each block begins a line.
    fn push_reasoning(&mut self, thought: &str, reasoning: &mut String) {
        let Some(last) = thought.chars().next_back() else { return };
        if std::mem::take(&mut self.between) && self.last_thought.is_some_and(|last| last != '\n') {
            reasoning.push('\n');
        }
        reasoning.push_str(thought);
        self.last_thought = Some(last);
    }

    /// Takes words from the beginning of the rest, and returns what remains.
    fn take_words<'r>(&mut self, rest: &'r str, over: bool, text: &mut String) -> &'r str {
        let (said, length) = match self.next_step(rest, over) {
            SplitStep::Wait => return rest,
            SplitStep::Open(tag) => {
                self.thinking = Some((tag, self.begins_line));
                (false, tag.open.len())
            }
            SplitStep::Say(length) => (true, length),
            SplitStep::Skip(length) => (false, length),
        };
        let (words, behind) = rest.split_at_checked(length).unwrap_or((rest, ""));
        if said {
            self.skips_blanks = false;
            self.last = words.chars().next_back();
            text.push_str(words);
        } else if words.contains('\n') {
            self.begins_line = true;
        }
        behind
    }

    fn next_step(&mut self, rest: &str, over: bool) -> SplitStep {
        let blanks = rest.len() - rest.trim_start().len();
        if self.skips_blanks && blanks > 0 {
            return SplitStep::Skip(blanks);
        }
        // Blanks before the first word are words, unless it is reasoning that follows.
        if self.last.is_none() && blanks > 0 {
            return match tag_at_start(rest.trim_start(), over) {
                Some(SplitStep::Open(_)) => SplitStep::Skip(blanks),
                Some(next) => next,
                None if blanks == rest.len() && !over => SplitStep::Wait,
                None => self.plain(rest),
            };
        }
        match rest.chars().next() {
            Some(mark @ ('`' | '~')) => self.mark(mark, rest, over),
            Some('<') if self.code == Code::None => tag_at_start(rest, over).unwrap_or_else(|| self.plain(rest)),
            _ => self.plain(rest),
        }
    }

    /// Words up to the next character that may mean something else.
    fn plain(&mut self, rest: &str) -> SplitStep {
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let behind = rest.get(first..).unwrap_or_default();
        let newline = rest.starts_with('\n');
        let length = if newline { 1 } else { first + behind.find(['`', '~', '<', '\n']).unwrap_or(behind.len()) };
        let words = rest.get(..length).unwrap_or(rest);
        self.begins_line = newline || self.begins_line && words.trim().is_empty();
        if newline {
            self.code = match self.code {
                Code::Fenced { mark, length, .. } => Code::Fenced { mark, length, opening: false },
                Code::None | Code::Inline(_) => Code::None,
            };
        }
        SplitStep::Say(length)
    }

    /// A run of backticks or tildes, which may begin or end code.
    fn mark(&mut self, mark: char, rest: &str, over: bool) -> SplitStep {
        let run = rest.chars().take_while(|next| *next == mark).count();
        let Some(behind) = rest.get(run..).and_then(|behind| behind.chars().next().or(over.then_some('\n'))) else {
            return SplitStep::Wait;
        };
        self.code = match self.code {
            Code::Fenced { mark: of, length, opening } if of == mark && run >= length => {
                let ends = opening || self.begins_line && behind.is_whitespace();
                if ends { Code::None } else { self.code }
            }
            Code::None if self.begins_line && run >= 3 => Code::Fenced { mark, length: run, opening: true },
            Code::None if mark == '`' => Code::Inline(run),
            Code::Inline(length) if mark == '`' && length == run => Code::None,
            code => code,
        };
        self.begins_line = false;
        SplitStep::Say(run)
    }
}

/// Returns the tag at the beginning of a text, or that it may become one.
fn tag_at_start(text: &str, over: bool) -> Option<SplitStep> {
    if let Some(tag) = TAGS.iter().find(|tag| text.starts_with(tag.open)) {
        return Some(SplitStep::Open(*tag));
    }
    let may_become = !over && !text.is_empty() && TAGS.iter().any(|tag| tag.open.starts_with(text));
    may_become.then_some(SplitStep::Wait)
}

/// Length of the end of a text that may be the beginning of the closing tag.
fn partial_close_length(text: &str, close: &str) -> usize {
    (1..close.len()).rev().find(|length| text.ends_with(close.get(..*length).unwrap_or(close))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits a text that arrives in pieces of so many characters.
    fn split_from(mut splitter: Splitter, text: &str, size: usize) -> (String, String) {
        let characters: Vec<char> = text.chars().collect();
        let pieces = characters.chunks(size).map(|piece| piece.iter().collect::<String>());
        let mut all: Vec<AddedText> = pieces.map(|piece| splitter.push(&piece)).collect();
        all.push(splitter.finish());
        let mut reasoning = String::new();
        let mut said = String::new();
        for added in all {
            reasoning.push_str(&added.reasoning);
            said.push_str(&added.text);
        }
        (reasoning, said)
    }

    fn assert_split(cases: &[(&str, &str, &str)]) {
        for (text, reasoning, said) in cases {
            for size in 1..=text.len().max(1) {
                let split = split_from(Splitter::new(false), text, size);
                assert_eq!(split, ((*reasoning).to_owned(), (*said).to_owned()), "{text:?} by {size}");
            }
        }
    }

    #[test]
    fn reasoning_is_told_from_words_wherever_the_pieces_are_cut() {
        assert_split(&[
            ("Hello", "", "Hello"),
            ("", "", ""),
            (" ", "", " "),
            (" \n Hello", "", " \n Hello"),
            ("<think>hm</think>\n\nHello", "hm", "Hello"),
            ("<thinking>hm</think></thinking>Hello", "hm</think>", "Hello"),
            (" \n<think>a < b </thin k> größer</think>Hello <think>", "a < b </thin k> größer", "Hello <think>"),
            ("<think>cut off</th", "cut off</th", ""),
            ("<thinker>", "", "<thinker>"),
            ("<th", "", "<th"),
            ("<think></think>", "", ""),
            ("a < b <b>c</b>", "", "a < b <b>c</b>"),
        ]);
    }

    #[test]
    fn there_may_be_several_blocks_and_they_may_stand_within_the_words() {
        assert_split(&[
            ("<think>a\n</think>\n<think>b</think>\nHello", "a\nb", "Hello"),
            ("One.\n\n<think>hm</think>\n\nTwo.", "hm", "One.\n\nTwo."),
            ("One.\n<think>and no end", "and no end", "One.\n"),
            ("One <think>hm</think> two", "hm", "One two"),
            ("One<think>hm</think> two", "hm", "One two"),
            ("The tag <think> opens it.\nAnd so on.", "", "The tag <think> opens it.\nAnd so on."),
        ]);
    }

    #[test]
    fn what_the_runtime_told_is_no_part_of_an_answer() {
        assert_split(&[
            ("<kairo:context>\nnow 9:00\n</kairo:context>\n\nHello", "\nnow 9:00\n", "Hello"),
            ("Hello\n\n<kairo:context>\nnow 9:00\n</kairo:context>", "\nnow 9:00\n", "Hello\n\n"),
            ("a <kairo:contexts> b", "", "a <kairo:contexts> b"),
        ]);
    }

    #[test]
    fn in_code_nothing_is_reasoning() {
        let fenced = "So:\n```xml\n<think>hm</think>\n```\nDone.";
        let tildes = "~~~~\n<think>a\n~~~\n```\n<think>b\n~~~~\n";
        let one_line = "```<think>``` it is\n";
        assert_split(&[
            ("`<think>` opens it, `</think>` ends it.", "", "`<think>` opens it, `</think>` ends it."),
            ("``a ` <think>`` b", "", "``a ` <think>`` b"),
            (fenced, "", fenced),
            (&format!("{fenced}\n<think>hm</think>"), "hm", &format!("{fenced}\n")),
            (&format!("{tildes}<think>hm</think>Yes"), "hm", &format!("{tildes}Yes")),
            (&format!("{one_line}<think>hm</think>Yes"), "hm", &format!("{one_line}Yes")),
            // A backtick that nothing answers ends with its line.
            ("It`s so.\n<think>hm</think>Yes", "hm", "It`s so.\nYes"),
            ("```\n<think>never closed", "", "```\n<think>never closed"),
        ]);
    }

    #[test]
    fn an_answer_may_begin_within_a_block_that_the_prompt_has_opened() {
        for size in 1..30 {
            let split = split_from(Splitter::new(true), "hm\n</think>\n\nHello `</think>`", size);
            assert_eq!(split, ("hm\n".to_owned(), "Hello `</think>`".to_owned()), "by {size}");
        }
    }

    #[test]
    fn words_are_not_held_back_longer_than_needed() {
        let mut splitter = Splitter::new(false);
        assert_eq!(splitter.push("<th"), AddedText::default());
        assert_eq!(splitter.push("ink>so <"), AddedText { reasoning: "so ".into(), ..Default::default() });
        assert_eq!(splitter.push("b"), AddedText { reasoning: "<b".into(), ..Default::default() });
        assert_eq!(splitter.push("</think>\n"), AddedText::default());
        assert_eq!(splitter.push("Yes"), AddedText { text: "Yes".into(), ..Default::default() });
        assert_eq!(splitter.push(" <"), AddedText { text: " ".into(), ..Default::default() });
        assert_eq!(splitter.push("3"), AddedText { text: "<3".into(), ..Default::default() });
    }
}
