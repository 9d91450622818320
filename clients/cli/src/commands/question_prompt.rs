//! Putting an agent's question to whoever sits at the terminal, and sending the answer.

use std::io::{self, IsTerminal};

use kairo_core::ids::Name;
use kairo_proto::words::{OfferAnswer, Verdict};
use tokio::task::spawn_blocking;

use crate::{
    Error,
    client::{AcceptedOrder, Client, NewApproval, NewChoice},
    event_lines::printable,
    question::{AgentQuestion, QuestionSubject},
    terminal,
};

/// Returns true if somebody at the terminal can be asked.
pub(super) fn can_prompt() -> bool {
    io::stdin().is_terminal() && terminal::width().is_some()
}

/// Shows a question that cannot be asked here, and how to answer it.
pub(super) fn print_question(question: &AgentQuestion) -> Result<(), Error> {
    let [yes, no] = question.commands();
    terminal::line(printable(&question.words()))?;
    terminal::line(format!("  yes: {yes}\n  no:  {no}"))?;
    Ok(())
}

/// Asks until the answer is yes or no; `None` when nothing more is typed.
pub(super) async fn prompt_yes_no(question: &AgentQuestion) -> Result<Option<bool>, Error> {
    terminal::line(printable(&question.words()))?;
    loop {
        terminal::piece("[y/n] ")?;
        let Some(typed) = spawn_blocking(read_line).await.map_err(io::Error::other)?? else {
            terminal::line("")?;
            return Ok(None);
        };
        if let Some(answer) = parse_yes_no(&typed) {
            return Ok(Some(answer));
        }
    }
}

/// Sends what the user says to it.
pub(super) async fn send_answer(
    client: &Client,
    user: &Name,
    question: &AgentQuestion,
    yes: bool,
) -> Result<AcceptedOrder, Error> {
    let user = user.to_string();
    let agent = question.agent.clone();
    Ok(match question.about {
        QuestionSubject::Thread { .. } => {
            let option = if yes { OfferAnswer::Accept } else { OfferAnswer::Decline }.text();
            client.post("v1/choices", &NewChoice { user, agent, offer_id: question.id.clone(), option }).await?
        }
        QuestionSubject::Consent { .. } => {
            let verdict = if yes { Verdict::Approved } else { Verdict::Rejected }.text();
            let action_id = question.id.clone();
            client
                .post("v1/approvals", &NewApproval { user, agent, action_id, verdict, note: None, arguments: None })
                .await?
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
pub(super) fn parse_yes_no(typed: &str) -> Option<bool> {
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
        assert_eq!(["y", " YES "].map(parse_yes_no), [Some(true); 2]);
        assert_eq!(["n", "No"].map(parse_yes_no), [Some(false); 2]);
        assert_eq!(["", "maybe", "yn"].map(parse_yes_no), [None; 3]);
    }
}
