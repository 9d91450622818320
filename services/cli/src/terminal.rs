//! The screen: how wide it is, and writing to it.

use std::io::{self, Write};

use console::{Term, truncate_str};
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::event_lines::EventLines;

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

/// Writes text as it is, at once.
pub fn piece(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes a value as one line of JSON.
pub fn json(value: &impl Serialize) -> io::Result<()> {
    line(serde_json::to_string(value)?)
}
