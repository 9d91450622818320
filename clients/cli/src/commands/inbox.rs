//! `kairo inbox`

use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;
use kairo_core::ids::Name;
use kairo_proto::v1::{ApprovalRow, BriefingRow, GetInboxResponse, OfferRow};
use kairo_proto::words::OfferAction;

use super::{GatewaySession, mcp_question, name};
use crate::{
    Error, durations,
    question::{AgentQuestion, QuestionSubject},
    rows,
    steps::one_line,
    terminal,
};

/// Show what waits for your answer, suggested threads and calls that need your consent, and what you were told unasked
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  kairo inbox --user ann")]
pub(super) struct InboxArgs {
    /// User whose answer is awaited
    #[arg(long, default_value = "you", value_parser = name, value_name = "NAME")]
    user: Name,
}

pub(super) async fn run(arguments: InboxArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let query = [("user", arguments.user.to_string())];
    if let Some(inbox) = session.get_or_print_json("v1/inbox", &query).await? {
        format_inbox(inbox, Timestamp::now()).into_iter().try_for_each(terminal::line)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn format_inbox(inbox: GetInboxResponse, now: Timestamp) -> Vec<String> {
    let offers = inbox.offers.into_iter().map(|offer| {
        let said = offer.message.as_deref().map(|message| format!("You said: {}", one_line(message)));
        (rows::time(offer.offered_at), said, AgentQuestion::from(offer))
    });
    let consents = inbox.approvals.into_iter();
    let consents = consents.map(|approval| {
        let left = rows::time(approval.expires_at)
            .map(|at| format!("It counts as rejected in {}.", durations::format_between(now, at)));
        (rows::time(approval.requested_at), left, AgentQuestion::from(approval))
    });
    let mut asked: Vec<_> = offers.chain(consents).collect();
    asked.sort_by_key(|(at, ..)| *at);
    let told = inbox.briefings.iter().flat_map(|briefing| format_briefing(briefing, now));
    // Calls wait for these.
    let urgent: Vec<_> = inbox.questions.iter().flat_map(|asked| mcp_question::format_question(asked, now)).collect();
    if asked.is_empty() && urgent.is_empty() {
        return ["nothing waits for an answer".to_owned()].into_iter().chain(told).collect();
    }
    let lines = |(at, said, question): (Option<Timestamp>, Option<String>, AgentQuestion)| {
        let [yes, no] = question.commands();
        let ago = at.map(|at| format!(", {} ago", durations::format_between(at, now))).unwrap_or_default();
        let mut lines = vec![format!("{}{ago}", question.agent)];
        lines.extend(said.map(|said| format!("  {said}")));
        lines.push(format!("  {}", one_line(&question.words())));
        lines.extend([format!("  yes: {yes}"), format!("  no:  {no}")]);
        lines
    };
    urgent.into_iter().chain(asked.into_iter().flat_map(lines)).chain(told).collect()
}

/// Returns the lines of a briefing that an agent gave unasked, with its reason.
fn format_briefing(briefing: &BriefingRow, now: Timestamp) -> Vec<String> {
    let ago =
        rows::format_elapsed(briefing.briefed_at, None, now).map(|ago| format!(", {ago} ago")).unwrap_or_default();
    let said = one_line(&briefing.summary);
    let why = one_line(&briefing.reason);
    vec![format!("{}{ago}", briefing.agent), format!("  {said}"), format!("  told because: {why}")]
}

impl From<OfferRow> for AgentQuestion {
    fn from(offer: OfferRow) -> Self {
        let about = QuestionSubject::Thread {
            new: offer.action_word() == OfferAction::SuggestNew,
            thread_id: offer.thread_id.unwrap_or_default(),
            current_thread_id: offer.current_thread_id.unwrap_or_default(),
            reason: offer.reason,
            summary: offer.summary,
        };
        Self { id: offer.offer_id, agent: offer.agent, about }
    }
}

impl From<ApprovalRow> for AgentQuestion {
    fn from(approval: ApprovalRow) -> Self {
        let arguments = rows::text(approval.arguments.as_ref()).to_owned();
        let about = QuestionSubject::Consent { tool: approval.tool, arguments, outside: approval.outside };
        Self { id: approval.action_id, agent: approval.agent, about }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn what_waits_is_asked_oldest_first_with_how_to_answer() {
        let inbox: GetInboxResponse = serde_json::from_value(json!({
            "offers": [{
                "offer_id": Uuid::from_u128(1), "agent": "bob", "action": "suggest_switch", "message": "Did John\nreply?",
                "thread_id": "mail", "current_thread_id": null, "reason": "mail", "summary": "Mail from John",
                "offered_at": "2026-01-01T00:01:00Z",
            }],
            "approvals": [{
                "action_id": Uuid::from_u128(2), "agent": "eve", "tool": "email.send", "arguments": {"to": "x"},
                "requested_at": "2026-01-01T00:00:00Z",
            }],
            "briefings": [{
                "event_id": Uuid::from_u128(3), "agent": "market", "told": true, "summary": "Prices fell.",
                "reason": "it is news", "briefed_at": "2026-01-01T00:01:00Z",
            }],
        }))
        .unwrap();
        let text = format_inbox(inbox, "2026-01-01T00:01:05Z".parse().unwrap()).join("\n");
        let parts = [
            "eve, 1m 5s ago\n  The agent eve asks for consent to call email.send {\"to\":\"x\"}. May it?\n  yes: kairo approve",
            "bob, 5s ago\n  You said: Did John reply?\n  This seems to belong to another thread, Mail from John (mail).",
            "market, 5s ago\n  Prices fell.\n  told because: it is news",
            &format!("no:  kairo choose {} decline --agent bob", Uuid::from_u128(1)),
        ];
        for part in parts {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert_eq!(format_inbox(GetInboxResponse::default(), Timestamp::now()), ["nothing waits for an answer"]);
    }
}
