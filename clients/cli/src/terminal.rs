//! The screen: how wide it is, and writing to it. Whatever is written, only this program steers the terminal: what others say has been
//! made printable where it is put into a line, and what was forgotten there goes no farther than here.

use std::{
    borrow::Cow,
    fmt::Display,
    io::{self, Write},
};

use console::{AnsiCodeIterator, Term, truncate_str};
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::event_lines::{EventLines, can_steer_terminal, printable};

/// The width of standard output; `None` if it is not a terminal, so that files and pipes get whole lines.
pub fn width() -> Option<usize> {
    let screen = Term::stdout();
    screen.size_checked().filter(|_| screen.is_term()).map(|(_, columns)| usize::from(columns))
}

/// Lines of events for this screen.
pub fn event_lines() -> EventLines {
    EventLines::new(width(), TimeZone::system())
}

/// Writes a line at once, so that whoever reads along misses nothing. `println!` would panic when the reader is gone.
pub fn line(text: impl AsRef<str>) -> io::Result<()> {
    piece(&format!("{}\n", text.as_ref()))
}

/// Writes a row of a table, cut to the width of the screen.
pub fn row(text: impl AsRef<str>) -> io::Result<()> {
    match width() {
        Some(width) => line(truncate_str(text.as_ref(), width, "…")),
        None => line(text),
    }
}

/// Writes text at once: to files and pipes as it is, to a terminal what cannot steer it.
pub fn piece(text: &str) -> io::Result<()> {
    let text = if Term::stdout().is_term() { Cow::Owned(harmless(text)) } else { Cow::Borrowed(text) };
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes a value as one line of JSON, in which what could steer a terminal is escaped: whoever reads it as JSON reads the same.
pub fn json(value: &impl Serialize) -> io::Result<()> {
    line(escape_json(&serde_json::to_string(value)?))
}

/// Says on standard error what is wrong, in words that others may have a part in. That nobody can read it is no reason to end.
pub fn complain(text: impl Display) {
    drop(writeln!(io::stderr(), "kairo: {}", printable(&text.to_string())));
}

/// The text without what could steer a terminal, but for colours, which this program gives it.
pub fn harmless(text: &str) -> String {
    let pieces = AnsiCodeIterator::new(text).map(|(piece, is_code)| match is_code {
        true if is_colour(piece) => piece.to_owned(),
        true => String::new(),
        false => printable(piece),
    });
    pieces.collect()
}

/// Returns true if an escape sequence only sets the look of the text after it (SGR).
fn is_colour(code: &str) -> bool {
    let numbers = code.strip_prefix("\u{1b}[").and_then(|code| code.strip_suffix('m'));
    numbers.is_some_and(|numbers| numbers.chars().all(|it| it.is_ascii_digit() || it == ';'))
}

/// JSON in which no character could steer a terminal. Such stand in strings alone: elsewhere JSON has none but line ends.
fn escape_json(json: &str) -> Cow<'_, str> {
    let steers = |c: char| can_steer_terminal(c) && !matches!(c, '\n' | '\r' | '\t');
    if !json.contains(steers) {
        return Cow::Borrowed(json);
    }
    let mut written = String::with_capacity(json.len());
    for c in json.chars() {
        match steers(c) {
            true => written.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => written.push(c),
        }
    }
    Cow::Owned(written)
}

/// A document of JSON on its way to standard output. Each piece that is written is whole characters, as those of `write!` are.
pub struct JsonOutput<W>(pub W);

impl<W: Write> Write for JsonOutput<W> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(piece) {
            Ok(text) => self.0.write_all(escape_json(text).as_bytes())?,
            Err(_) => self.0.write_all(piece)?,
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use console::style;
    use serde_json::{Value, json};

    use super::*;

    /// All that could steer a terminal, and sequences that do.
    fn steering() -> Vec<String> {
        let characters = (0..=0x9f).chain(0x202a..=0x202e).chain(0x2066..=0x2069).filter_map(char::from_u32);
        let alone = characters.filter(|&c| can_steer_terminal(c) && !matches!(c, '\n' | '\t' | '\r')).map(String::from);
        let sequences = [
            "\u{1b}[2J",
            "\u{9b}2J",
            "\u{1b}]52;c;eA==\u{7}",
            "\u{9d}0;t\u{9c}",
            "\u{1b}[5;1H",
            "\u{1b}P1\u{1b}\\",
            "\u{1b}c",
        ];
        alone.chain(sequences.map(str::to_owned)).collect()
    }

    #[test]
    fn json_is_what_it_was_and_steers_nothing() {
        assert!(steering().len() > 60);
        for text in steering() {
            let mut value = json!({ "a": [format!("ü{text}"), { "x": text }] });
            value[format!("a{text}b").as_str()] = json!(1);
            let written = escape_json(&value.to_string()).into_owned();
            assert!(!written.contains(can_steer_terminal), "{text:?}: {written:?}");
            assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), value, "{text:?}");
            let mut document = JsonOutput(Vec::new());
            write!(document, "{{\n  \"a\": {value}\n}}").unwrap();
            let document = String::from_utf8(document.0).unwrap();
            assert!(!document.contains(|c| can_steer_terminal(c) && c != '\n'), "{document:?}");
            assert_eq!(serde_json::from_str::<Value>(&document).unwrap(), json!({ "a": value }));
        }
    }

    #[test]
    fn a_terminal_gets_colours_and_no_other_sequence() {
        let coloured = style("fine").force_styling(true).green().to_string();
        assert_eq!(harmless(&format!("{coloured}\tand\n")), format!("{coloured}\tand\n"));
        for text in steering() {
            let shown = harmless(&format!("a{text}b"));
            assert!(!shown.contains(can_steer_terminal), "{text:?}: {shown:?}");
        }
    }
}
