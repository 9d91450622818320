//! An answer on the screen: shown while it is being written, and made whole when it is in the log.

use std::process::ExitCode;

use jiff::tz::TimeZone;
use kairo_core::event_json::EventJson;
use tokio::time::{Instant, timeout_at};

use crate::{
    Error,
    chain::{Chain, printable},
    exchange::{Exchange, Step},
    terminal,
    turn::{self, Ending},
};

/// Waits for the end of the turn, `None` if it has not come by the deadline. Shows on the way what is said, if `show`.
pub(super) async fn wait(exchange: &mut Exchange, deadline: Instant, show: bool) -> Result<Option<Ending>, Error> {
    let mut screen = Screen::default();
    let ended = timeout_at(deadline, async {
        loop {
            match exchange.next().await? {
                Step::Token { text, first } if show => screen.token(&text, first)?,
                Step::Event if show => screen.event(exchange.events.last())?,
                Step::Token { .. } | Step::Event => {}
                Step::End(ending) => return Ok::<_, Error>(ending),
            }
        }
    });
    let ending = ended.await.ok().transpose()?;
    if show {
        screen.end(ending.as_ref(), exchange)?;
    }
    Ok(ending)
}

/// Shows every event of the exchange.
pub(super) fn chain(exchange: &Exchange) -> Result<(), Error> {
    for line in Chain::lines(&exchange.events, terminal::width(), TimeZone::system()) {
        terminal::line(line)?;
    }
    Ok(())
}

/// The exit status of a command that waited for an answer.
pub(super) fn status(ending: Option<&Ending>) -> ExitCode {
    ExitCode::from(match ending {
        Some(Ending::Replied { .. }) => 0,
        Some(Ending::Failed { .. } | Ending::Undelivered { .. }) => 2,
        None => 3,
    })
}

/// What stands on the current line of the screen.
#[derive(Default)]
struct Screen(String);

impl Screen {
    /// A model that is asked again begins anew, and so does the line.
    fn token(&mut self, text: &str, first: bool) -> Result<(), Error> {
        if first && !self.0.is_empty() {
            self.0.clear();
            terminal::line("")?;
        }
        let text = printable(text);
        terminal::piece(&text)?;
        self.0.push_str(&text);
        Ok(())
    }

    /// Completes words said on the way; what the agent says by itself is another matter.
    fn event(&mut self, event: Option<&EventJson>) -> Result<(), Error> {
        match event.filter(|event| turn::is_say(event) && !turn::is_unasked(event)) {
            Some(event) => self.words(event.text()),
            None => Ok(()),
        }
    }

    /// Shows what is missing of these words: tokens are a preview, what was said is what the log says.
    fn words(&mut self, words: &str) -> Result<(), Error> {
        let words = printable(words);
        let shown = std::mem::take(&mut self.0);
        terminal::line(missing(&shown, &words))?;
        Ok(())
    }

    fn end(&mut self, ending: Option<&Ending>, exchange: &Exchange) -> Result<(), Error> {
        match ending {
            Some(Ending::Replied { reply }) => self.words(reply)?,
            Some(Ending::Failed { reply, reason }) => {
                self.words(reply)?;
                eprintln!("kairo: the agent failed: {}", printable(reason));
            }
            Some(Ending::Undelivered { reason }) => eprintln!("kairo: not delivered: {}", printable(reason)),
            None => eprintln!(
                "kairo: no reply in time; it may still come: kairo events --correlation {}",
                exchange.accepted.correlation_id
            ),
        }
        Ok(())
    }
}

/// What has to follow what is shown, so that the words stand there.
fn missing(shown: &str, words: &str) -> String {
    match words.strip_prefix(shown) {
        Some(rest) => rest.to_owned(),
        // Whitespace around the words is not said.
        None if shown.trim() == words.trim() => String::new(),
        None => format!("\n{words}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_added() {
        for (shown, words, added) in [
            ("", "It is noon.", "It is noon."),
            ("It is", "It is noon.", " noon."),
            ("It is noon.", "It is noon.", ""),
            ("\nIt is noon.\n", "It is noon.", ""),
            ("I gue", "It is noon.", "\nIt is noon."),
        ] {
            assert_eq!(missing(shown, words), added, "{shown:?} {words:?}");
        }
    }
}
