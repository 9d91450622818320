//! Putting an agent's question to whoever sits at the terminal, and sending the answer.

use std::io::{self, IsTerminal};

use kairo_core::ids::Name;
use kairo_proto::words::{OfferAnswer, Verdict};
use tokio::task::spawn_blocking;

use crate::{
    Error,
    client::{Client, NewApproval, NewChoice, Ordered},
    event_lines::printable,
    question::{About, Question},
    terminal,
};

/// Returns true if somebody at the terminal can be asked.
pub(super) fn is_possible() -> bool {
    io::stdin().is_terminal() && terminal::width().is_some()
}

/// Shows a question that cannot be asked here, and how to answer it.
pub(super) fn show(question: &Question) -> Result<(), Error> {
    let [yes, no] = question.commands();
    terminal::line(printable(&question.words()))?;
    terminal::line(format!("  yes: {yes}\n  no:  {no}"))?;
    Ok(())
}

/// Asks until the answer is yes or no; `None` when nothing more is typed.
pub(super) async fn ask(question: &Question) -> Result<Option<bool>, Error> {
    terminal::line(printable(&question.words()))?;
    loop {
        terminal::piece("[y/n] ")?;
        let Some(typed) = spawn_blocking(read_line).await.map_err(io::Error::other)?? else {
            terminal::line("")?;
            return Ok(None);
        };
        if let Some(answer) = meant(&typed) {
            return Ok(Some(answer));
        }
    }
}

/// Sends what the user says to it.
pub(super) async fn answer(client: &Client, user: &Name, question: &Question, yes: bool) -> Result<Ordered, Error> {
    let (user, agent) = (user.to_string(), question.agent.clone());
    Ok(match question.about {
        About::Thread { .. } => {
            let option = if yes { OfferAnswer::Accept } else { OfferAnswer::Decline }.text();
            client.post("v1/choices", &NewChoice { user, agent, offer_id: question.id.clone(), option }).await?
        }
        About::Consent { .. } => {
            let verdict = if yes { Verdict::Approved } else { Verdict::Rejected }.text();
            let action_id = question.id.clone();
            client.post("v1/approvals", &NewApproval { user, agent, action_id, verdict, note: None }).await?
        }
    })
}

/// A line of standard input without its end; `None` when there are no more.
pub(super) fn read_line() -> io::Result<Option<String>> {
    let mut line = String::new();
    let read = io::stdin().read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim_end().to_owned()))
}

/// Returns true for yes and false for no; `None` if the line says neither.
pub(super) fn meant(typed: &str) -> Option<bool> {
    match typed.trim().to_lowercase().as_str() {
        "y" | "yes" => Some(true),
        "n" | "no" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_yes_or_no_and_nothing_is_taken_for_either() {
        assert_eq!(["y", " YES "].map(meant), [Some(true); 2]);
        assert_eq!(["n", "No"].map(meant), [Some(false); 2]);
        assert_eq!(["", "maybe", "yn"].map(meant), [None; 3]);
    }
}
