//! The last lines that a process wrote, put together from live pieces. Pure.

use std::{collections::VecDeque, mem};

use console::strip_ansi_codes;
use serde::{Serialize, Serializer};

use crate::event_lines::printable;

/// Lines kept of one process.
const LINES: usize = 20;
/// Characters kept of a line; a longer one is cut there.
const COLUMNS: usize = 1_000;
/// Bytes after which a line is taken for one, though its end has not come.
const UNFINISHED: usize = 8 * 1_024;
/// Stands for pieces that were lost.
const GAP: &str = "…";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputStream {
    Stdout,
    Stderr,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OutputLine {
    pub stream: OutputStream,
    pub text: String,
}

/// The last lines of a process's output, and the lines it has not finished.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessOutput {
    /// The piece that comes next; none as long as none has come.
    next: Option<u64>,
    lines: VecDeque<OutputLine>,
    stdout: String,
    stderr: String,
}

impl ProcessOutput {
    /// Returns true once a live piece has arrived.
    pub fn is_live(&self) -> bool {
        self.next.is_some()
    }

    /// Takes in a live piece, and returns the lines that it finished. One that was told before changes nothing.
    pub fn push_piece(&mut self, sequence: u64, stream: OutputStream, text: &str) -> Vec<OutputLine> {
        let expected = self.next.unwrap_or(sequence);
        if sequence < expected {
            return Vec::new();
        }
        let mut finished = Vec::new();
        match self.next {
            // The last lines that it said it had written are among what comes now.
            None => self.lines.clear(),
            Some(next) if sequence > next => {
                finished.extend(self.finish());
                finished.push(OutputLine { stream, text: GAP.to_owned() });
            }
            Some(_) => {}
        }
        self.next = Some(sequence.saturating_add(1));
        let unfinished = self.unfinished_line(stream);
        unfinished.push_str(text);
        while let Some((line, rest)) = unfinished.split_once('\n') {
            let line = OutputLine { stream, text: clean(line) };
            *unfinished = rest.to_owned();
            finished.push(line);
        }
        if unfinished.len() > UNFINISHED {
            finished.push(OutputLine { stream, text: clean(&mem::take(unfinished)) });
        }
        finished.iter().cloned().for_each(|line| self.push_line(line));
        finished
    }

    /// Replaces the lines with a reported tail of the output; ignored after the first live piece, which says more.
    pub fn replace_tail(&mut self, tail: &str) {
        if self.next.is_none() {
            self.lines.clear();
            tail.lines()
                .for_each(|line| self.push_line(OutputLine { stream: OutputStream::Stdout, text: clean(line) }));
        }
    }

    /// The end of what it wrote, now that it has ended. Returns the lines that were shown to nobody yet.
    pub fn end(&mut self, stdout: &str, stderr: &str) -> Vec<OutputLine> {
        let rest = self.finish();
        self.lines.clear();
        for (stream, tail) in [(OutputStream::Stdout, stdout), (OutputStream::Stderr, stderr)] {
            let lines: Vec<&str> = tail.lines().collect();
            let newest = lines.iter().rev().take(LINES / 2).rev();
            newest.for_each(|line| self.push_line(OutputLine { stream, text: clean(line) }));
        }
        rest
    }

    /// The last lines, those included whose end has not come.
    pub fn lines(&self) -> Vec<OutputLine> {
        let unfinished = [(OutputStream::Stdout, &self.stdout), (OutputStream::Stderr, &self.stderr)];
        let unfinished = unfinished.into_iter().filter(|(_, text)| !text.is_empty());
        let unfinished = unfinished.map(|(stream, text)| OutputLine { stream, text: clean(text) });
        self.lines.iter().cloned().chain(unfinished).collect()
    }

    fn finish(&mut self) -> Vec<OutputLine> {
        let unfinished =
            [(OutputStream::Stdout, mem::take(&mut self.stdout)), (OutputStream::Stderr, mem::take(&mut self.stderr))];
        let unfinished = unfinished.into_iter().filter(|(_, text)| !text.is_empty());
        unfinished.map(|(stream, text)| OutputLine { stream, text: clean(&text) }).collect()
    }

    fn unfinished_line(&mut self, stream: OutputStream) -> &mut String {
        match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        }
    }

    fn push_line(&mut self, line: OutputLine) {
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }
}

impl Serialize for ProcessOutput {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.lines().serialize(serializer)
    }
}

/// A line of output, with a mark that tells which stream it is from.
pub fn format_output_line(line: &OutputLine) -> String {
    match line.stream {
        OutputStream::Stdout => format!("| {}", line.text),
        OutputStream::Stderr => format!("! {}", line.text),
    }
}

/// A line as it may be shown: what it became after all carriage returns, without colours, and without what could steer
/// the terminal.
fn clean(line: &str) -> String {
    let line = line.trim_end_matches('\r');
    let line = line.rsplit('\r').next().unwrap_or_default();
    printable(&strip_ansi_codes(line)).replace('\t', "    ").chars().take(COLUMNS).collect()
}

#[cfg(test)]
mod tests {
    use super::{
        OutputStream::{Stderr, Stdout},
        *,
    };

    fn texts(lines: &[OutputLine]) -> Vec<&str> {
        lines.iter().map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn pieces_become_lines_of_their_stream() {
        let mut output = ProcessOutput::default();
        assert_eq!(texts(&output.push_piece(0, Stdout, "one\ntw")), ["one"]);
        assert_eq!(output.push_piece(1, Stderr, "oh\n"), [OutputLine { stream: Stderr, text: "oh".into() }]);
        assert_eq!(texts(&output.lines()), ["one", "oh", "tw"]);
        assert_eq!(texts(&output.push_piece(2, Stdout, "o\n")), ["two"]);
        assert_eq!(texts(&output.lines()), ["one", "oh", "two"]);
    }

    #[test]
    fn pieces_told_again_change_nothing_and_lost_ones_leave_a_gap() {
        let mut output = ProcessOutput::default();
        output.push_piece(3, Stdout, "three\n");
        output.push_piece(4, Stdout, "four\n");
        let before = output.clone();
        assert!(
            output.push_piece(3, Stdout, "three\n").is_empty() && output.push_piece(4, Stdout, "four\n").is_empty()
        );
        assert_eq!(output, before);
        assert_eq!(texts(&output.push_piece(9, Stdout, "nine\n")), ["…", "nine"]);
    }

    #[test]
    fn live_pieces_say_more_than_a_tail_and_the_end_more_than_both() {
        let mut output = ProcessOutput::default();
        output.replace_tail("early\nlater\n");
        assert_eq!(texts(&output.lines()), ["early", "later"]);
        output.push_piece(7, Stdout, "live\nun");
        output.replace_tail("early\nlater\nlive\n");
        assert_eq!(texts(&output.lines()), ["live", "un"]);
        assert_eq!(texts(&output.end("live\nunfinished", "oh")), ["un"]);
        assert_eq!(texts(&output.lines()), ["live", "unfinished", "oh"]);
    }

    #[test]
    fn neither_many_lines_nor_one_endless_line_are_kept_whole() {
        let mut output = ProcessOutput::default();
        output.push_piece(0, Stdout, &"line\n".repeat(100));
        assert_eq!(output.lines().len(), LINES);
        let endless = output.push_piece(1, Stderr, &"x".repeat(10_000));
        assert_eq!(endless[0].text.len(), COLUMNS);
        output.end(&"a\n".repeat(100), &"b\n".repeat(100));
        assert_eq!(output.lines().iter().filter(|line| line.stream == Stderr).count(), LINES / 2);
    }

    #[test]
    fn no_line_steers_the_terminal() {
        assert_eq!(clean("10%\r 50%\r\u{1b}[32m100%\u{1b}[0m\u{7}\r"), "100%");
        assert_eq!(clean("\u{1b}]0;title\u{7}a\tb\u{9b}2J"), "a    b");
    }
}
