//! An answer on the screen: shown while it is being written, and made whole when it is in the log.

use std::{future::pending, process::ExitCode};

use jiff::{Timestamp, tz::TimeZone};
use kairo_core::{event_json::EventJson, ids::Name};
use tokio::time::{Instant, timeout_at};

use super::{
    question_prompt,
    unsolicited_messages::{UnsolicitedMessage, UnsolicitedMessages},
};
use crate::{
    Error,
    client::{Client, ClientError},
    event_lines::{EventLines, printable},
    exchange::{Exchange, Update},
    terminal,
    turn::{self, Ending},
};

/// The settings for waiting for an answer.
pub(super) struct ReplyWait<'a> {
    /// The deadline; time a human takes to answer a question does not count.
    pub(super) deadline: Instant,
    /// True if the answer is shown as it is written, and questions are put to whoever sits at the terminal.
    pub(super) show: bool,
    /// The user who waits.
    pub(super) user: &'a Name,
    /// The messages the agent sends by itself meanwhile, if they are to be shown.
    pub(super) unasked: Option<&'a mut UnsolicitedMessages>,
}

/// Waits for the end of the turn, or a question that nobody here answers; `None` if neither has come by the deadline.
pub(super) async fn wait_for_ending(
    exchange: &mut Exchange,
    mut waiting: ReplyWait<'_>,
    client: &Client,
) -> Result<Option<Ending>, Error> {
    let mut screen = ReplyScreen { shown: String::new(), heard: String::new(), aside: waiting.unasked.is_some() };
    let ending = loop {
        let step = tokio::select! {
            step = timeout_at(waiting.deadline, exchange.next()) => step,
            aside = next_unsolicited(&mut waiting.unasked) => {
                screen.show_unsolicited(&aside?, &waiting)?;
                continue;
            }
        };
        // Not in time.
        let Ok(step) = step else { break None };
        match step? {
            Update::Token { text, first } if waiting.show => screen.show_token(&text, first)?,
            Update::Event if waiting.show => screen.show_event(exchange.events.last())?,
            Update::Token { .. } | Update::Event => {}
            Update::Asked(question) => {
                screen.end_line()?;
                let began = Instant::now();
                let answer = if waiting.show && question_prompt::can_prompt() {
                    question_prompt::prompt_yes_no(&question).await?
                } else {
                    None
                };
                let Some(yes) = answer else { break Some(Ending::Asked { question }) };
                question_prompt::send_answer(client, waiting.user, &question, yes).await?;
                waiting.deadline += began.elapsed();
            }
            Update::End(ending) => break Some(ending),
        }
    };
    if waiting.show {
        screen.show_ending(ending.as_ref(), exchange)?;
    }
    Ok(ending)
}

async fn next_unsolicited(unasked: &mut Option<&mut UnsolicitedMessages>) -> Result<UnsolicitedMessage, ClientError> {
    match unasked {
        Some(unasked) => unasked.next_message().await,
        None => pending().await,
    }
}

/// Shows every event of the exchange.
pub(super) fn print_events(exchange: &Exchange) -> Result<(), Error> {
    for line in EventLines::format_all(&exchange.events, terminal::width(), TimeZone::system()) {
        terminal::line(line)?;
    }
    Ok(())
}

/// The exit status of a command that waited for an answer.
pub(super) fn exit_status(ending: Option<&Ending>) -> ExitCode {
    ExitCode::from(match ending {
        Some(Ending::Replied { .. } | Ending::Asked { .. }) => 0,
        Some(Ending::Failed { .. } | Ending::Undelivered { .. }) => 2,
        None => 3,
    })
}

struct ReplyScreen {
    /// The text on the current line.
    shown: String,
    /// The text so far of the model that writes now; the part already on the line is not shown twice.
    heard: String,
    /// True if messages the agent sends by itself are shown aside, not as part of the exchange.
    aside: bool,
}

impl ReplyScreen {
    /// A model that is asked again begins anew, and so does the line where it says something else.
    fn show_token(&mut self, text: &str, first: bool) -> Result<(), Error> {
        if first {
            self.heard.clear();
        }
        self.heard.push_str(&printable(text));
        match text_to_append(&self.shown, &self.heard) {
            Some(more) => terminal::piece(more)?,
            None => {
                self.end_line()?;
                terminal::piece(&self.heard)?;
            }
        }
        if self.shown.len() < self.heard.len() {
            self.shown.clone_from(&self.heard);
        }
        Ok(())
    }

    /// Completes words said on the way. What the agent takes up by itself, later, is another matter.
    fn show_event(&mut self, event: Option<&EventJson>) -> Result<(), Error> {
        if let Some(asked) = event.and_then(super::mcp_question::from_event) {
            self.end_line()?;
            return super::mcp_question::format_question(&asked, Timestamp::now())
                .into_iter()
                .try_for_each(|line| Ok(terminal::line(line)?));
        }
        let on_the_way = |event: &&EventJson| {
            turn::is_say(event) && (!turn::is_unsolicited(event) || !self.aside && !event.is_final_reply())
        };
        match event.filter(on_the_way) {
            Some(event) => self.complete_text(event.text()),
            None => Ok(()),
        }
    }

    /// Shows what is not part of the answer, and under it again what stands of that.
    fn show_unsolicited(&self, aside: &UnsolicitedMessage, waiting: &ReplyWait<'_>) -> Result<(), Error> {
        if let Some(unasked) = &waiting.unasked {
            unasked.print_message(aside)?;
            terminal::piece(&self.shown)?;
        }
        Ok(())
    }

    /// Ends the current line, so that the next text starts on a new one.
    fn end_line(&mut self) -> Result<(), Error> {
        if !std::mem::take(&mut self.shown).is_empty() {
            terminal::line("")?;
        }
        Ok(())
    }

    /// Shows what is missing of these words: tokens are a preview, what was said is what the log says.
    fn complete_text(&mut self, words: &str) -> Result<(), Error> {
        let words = printable(words);
        let shown = std::mem::take(&mut self.shown);
        terminal::line(text_to_print(&shown, &words))?;
        Ok(())
    }

    fn show_ending(&mut self, ending: Option<&Ending>, exchange: &Exchange) -> Result<(), Error> {
        match ending {
            Some(Ending::Replied { reply }) => self.complete_text(reply)?,
            // The reply says why, and is no answer.
            Some(Ending::Failed { reply, .. }) => {
                self.end_line()?;
                eprintln!("kairo: the agent failed: {}", printable(reply));
            }
            Some(Ending::Undelivered { reason }) => eprintln!("kairo: not delivered: {}", printable(reason)),
            Some(Ending::Asked { question }) => question_prompt::print_question(question)?,
            None => eprintln!(
                "kairo: no reply in time; it may still come: kairo events --correlation {}",
                exchange.accepted.correlation_id
            ),
        }
        Ok(())
    }
}

/// Returns the text to append so that `heard` is on the line; `None` if the line has other text.
fn text_to_append<'h>(shown: &str, heard: &'h str) -> Option<&'h str> {
    if shown.starts_with(heard) { Some("") } else { heard.strip_prefix(shown) }
}

/// Returns the text to print so that the words are on the screen.
fn text_to_print(shown: &str, words: &str) -> String {
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
    fn what_a_second_try_says_again_is_shown_once() {
        for (shown, heard, added) in [
            ("", "Half", Some("Half")),
            ("Half an ans", "Ha", Some("")),
            ("Half an ans", "Half an answer", Some("wer")),
            ("Half an ans", "No", None),
        ] {
            assert_eq!(text_to_append(shown, heard), added, "{shown:?} {heard:?}");
        }
    }

    #[test]
    fn only_what_is_missing_is_added() {
        for (shown, words, added) in [
            ("", "It is noon.", "It is noon."),
            ("It is", "It is noon.", " noon."),
            ("It is noon.", "It is noon.", ""),
            ("\nIt is noon.\n", "It is noon.", ""),
            ("I gue", "It is noon.", "\nIt is noon."),
        ] {
            assert_eq!(text_to_print(shown, words), added, "{shown:?} {words:?}");
        }
    }
}
