//! Telling on standard error what is being done.

use std::{
    fmt::Display,
    io::{self, Write},
    time::{Duration, Instant},
};

use console::style;
use indicatif::{ProgressBar, ProgressStyle};

use crate::{Error, terminal};

/// Does one step of several, with a spinner while it lasts (on a terminal) and a line once it is done.
pub(crate) async fn step<T, E: Into<Error>>(
    what: &str,
    work: impl Future<Output = Result<T, E>>,
    done: impl FnOnce(&T) -> String,
) -> Result<T, Error> {
    let started = Instant::now();
    let spinner = ProgressBar::new_spinner().with_message(what.to_owned());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
        spinner.set_style(style);
    }
    spinner.enable_steady_tick(Duration::from_millis(100));
    let outcome = work.await.map_err(Into::into);
    spinner.finish_and_clear();
    let seconds = started.elapsed().as_secs_f32();
    match &outcome {
        Ok(value) => {
            let mark = style("✔").for_stderr().green();
            let more = done(value);
            say(format!("{mark} {what:<20} {more}{}{seconds:.1} s", if more.is_empty() { "" } else { "  " }));
        }
        Err(_) => say(format!("{} {what}", style("✘").for_stderr().red())),
    }
    outcome
}

/// One line. That nobody can read it is no reason to end.
pub(crate) fn say(text: impl Display) {
    let _ = writeln!(io::stderr(), "{}", terminal::harmless(&text.to_string()));
}
