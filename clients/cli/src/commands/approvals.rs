//! `kairo approvals`

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use kairo_core::ids::Name;
use kairo_proto::v1::ListApprovalsResponse;
use kairo_proto::words::ConsentStatus;

use super::{GatewaySession, id_prefix::short_id, name};
use crate::{Error, event_lines::printable, rows, steps::one_line, table::table, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo approvals --agent default
  kairo approvals --user ann --status rejected";

/// Show the calls that humans were asked about, newest first, and what they said
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ApprovalsArgs {
    /// Only of this agent
    #[arg(long, value_parser = name, value_name = "NAME")]
    agent: Option<Name>,
    /// Only those that this user was asked about
    #[arg(long, value_parser = name, value_name = "NAME")]
    user: Option<Name>,
    /// Only approvals with this status
    #[arg(long, value_enum, default_value = "all")]
    status: ApprovalStatusFilter,
    /// At most so many
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: u32,
    /// Those before this place, as the end of a page says
    #[arg(long, value_name = "SEQUENCE")]
    before: Option<u64>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ApprovalStatusFilter {
    Waiting,
    Approved,
    Rejected,
    /// Those whose chain ended without an answer
    Withdrawn,
    /// Those that nobody answered in time
    Expired,
    All,
}

impl ApprovalStatusFilter {
    fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => ConsentStatus::Waiting.known_word(),
            Self::Approved => ConsentStatus::Approved.known_word(),
            Self::Rejected => ConsentStatus::Rejected.known_word(),
            Self::Withdrawn => ConsentStatus::Withdrawn.known_word(),
            Self::Expired => ConsentStatus::Expired.known_word(),
            Self::All => "all",
        }
    }
}

pub(super) async fn run(arguments: ApprovalsArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let ApprovalsArgs { agent, user, status, limit, before } = arguments;
    let mut query = vec![("status", status.as_str().to_owned()), ("limit", limit.to_string())];
    query.extend(agent.map(|agent| ("agent", agent.to_string())));
    query.extend(user.map(|user| ("user", user.to_string())));
    query.extend(before.map(|before| ("before", before.to_string())));
    if let Some(answer) = session.get_or_print_json("v1/approvals", &query).await? {
        format_approvals(&answer).into_iter().try_for_each(terminal::row)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn format_approvals(answer: &ListApprovalsResponse) -> Vec<String> {
    let rows = answer.approvals.iter().map(|approval| {
        let said = [approval.decided_by.as_deref(), approval.note.as_deref().filter(|note| !note.is_empty())];
        [
            rows::time(approval.requested_at).map(|time| time.to_string()).unwrap_or_default(),
            approval.agent.clone(),
            approval.user.clone(),
            printable(&approval.tool),
            approval.status.clone(),
            one_line(&said.into_iter().flatten().collect::<Vec<_>>().join(": ")),
            printable(approval.entered_by.as_deref().unwrap_or_default()),
            short_id(&approval.action_id),
            one_line(&approval.outside.join(" ")),
            one_line(rows::text(approval.arguments.as_ref())),
        ]
    });
    let mut lines = table(
        ["asked", "agent", "user", "tool", "status", "by", "entered by", "action", "has seen", "arguments"],
        rows,
    );
    lines.extend(answer.next_before.map(|next| format!("more: --before {next}")));
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_approval_says_who_said_what() {
        let answer: ListApprovalsResponse = serde_json::from_value(json!({
            "approvals": [{
                "action_id": "1f0c2ab4-0000-0000-0000-000000000001", "agent": "ops", "user": "ann", "tool": "email.send",
                "arguments": {"to": "x"}, "requested_at": "2026-01-01T00:00:00Z", "status": "rejected",
                "decided_by": "ann", "note": "not\nnow", "entered_by": "api_key:k7", "outside": ["mcp:all"],
            }],
            "next_before": 7,
        }))
        .unwrap();
        let text = format_approvals(&answer).join("\n");
        for part in
            ["email.send  rejected  ann: not now  api_key:k7  1f0c2ab4  mcp:all   {\"to\":\"x\"}", "more: --before 7"]
        {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }
}
