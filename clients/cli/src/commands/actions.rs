//! `kairo actions`

use std::process::ExitCode;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use kairo_core::ids::Name;
use kairo_proto::v1::{ActionRow, ListActionsResponse, ListApprovalsResponse};
use kairo_proto::words;

use super::{
    GatewaySession,
    id_prefix::{IdPrefix, short_id},
    name,
    orders::{OrderOptions, STATUS},
};
use crate::{
    Error,
    client::{NewApproval, NewCommand},
    durations,
    event_lines::printable,
    order::AwaitedEvent,
    rows,
    table::table,
    terminal,
};

const EXAMPLES: &str = "\
Examples:
  kairo actions --agent ops
  kairo actions resolve 1f0c2ab4 --did-not-happen --note 'the mail server has no such mail'
  kairo actions cancel 1f0c2ab4";

/// Actions that are listed at most, and looked through for one.
const LISTED: u32 = 1_000;

/// Show what agents have asked for that has no result yet, or is in doubt; resolve or cancel it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(super) struct ActionsArgs {
    #[command(subcommand)]
    command: Option<ActionsCommand>,
    /// Only of this agent
    #[arg(long, value_parser = name, value_name = "NAME")]
    agent: Option<Name>,
    /// All that are or were in doubt, and how they were resolved
    #[arg(long)]
    in_doubt: bool,
}

#[derive(Debug, Subcommand)]
enum ActionsCommand {
    /// Say whether an action in doubt happened, so that its agent can go on
    #[command(after_help = STATUS)]
    Resolve(ActionResolveArgs),
    /// Stop an action in flight
    #[command(after_help = STATUS)]
    Cancel(ActionCancelArgs),
}

#[derive(Debug, Args)]
struct ActionResolveArgs {
    #[command(flatten)]
    action: ActionSelector,
    #[command(flatten)]
    verdict: VerdictOptions,
    /// Note to the agent about it
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    manner: OrderOptions,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct VerdictOptions {
    /// It did happen
    #[arg(long)]
    happened: bool,
    /// It did not happen
    #[arg(long)]
    did_not_happen: bool,
}

#[derive(Debug, Args)]
struct ActionCancelArgs {
    #[command(flatten)]
    action: ActionSelector,
    #[command(flatten)]
    manner: OrderOptions,
}

#[derive(Debug, Args)]
struct ActionSelector {
    /// The action, or the first digits of its id
    #[arg(value_name = "ID")]
    id: IdPrefix,
    /// Agent of the action; only needed for one that kairo actions does not list
    #[arg(long, value_parser = name, value_name = "NAME")]
    agent: Option<Name>,
}

pub(super) async fn run(arguments: ActionsArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    match arguments.command {
        None => list_actions(arguments.agent, arguments.in_doubt, session).await,
        Some(ActionsCommand::Resolve(resolve)) => {
            let (agent, action_id) = find_action(&resolve.action, session).await?;
            let verdict =
                if resolve.verdict.happened { words::Verdict::Happened } else { words::Verdict::DidNotHappen }.text();
            let user = resolve.manner.user.to_string();
            let approval = NewApproval { user, agent, action_id, verdict, note: resolve.note, arguments: None };
            resolve.manner.post_and_wait("v1/approvals", &approval, &approval.agent, AwaitedEvent::Words, session).await
        }
        Some(ActionsCommand::Cancel(ActionCancelArgs { action, manner })) => {
            let (agent, action_id) = find_action(&action, session).await?;
            let user = manner.user.to_string();
            let command = words::OrderedCommand::Cancel.text();
            let action_id = Some(action_id);
            manner.send_command(&NewCommand { user, agent, command, action_id, ..NewCommand::default() }, session).await
        }
    }
}

async fn list_actions(agent: Option<Name>, in_doubt: bool, session: &GatewaySession) -> Result<ExitCode, Error> {
    let mut query = vec![("limit", LISTED.to_string())];
    query.extend(agent.map(|agent| ("agent", agent.to_string())));
    query.extend(in_doubt.then(|| ("in_doubt", true.to_string())));
    if let Some(ListActionsResponse { actions, .. }) = session.get_or_print_json("v1/actions", &query).await? {
        if actions.is_empty() && !in_doubt {
            terminal::line("no action is in flight or in doubt; see kairo processes for what runs in the background")?;
            return Ok(ExitCode::SUCCESS);
        }
        format_actions(&actions, Timestamp::now()).into_iter().try_for_each(terminal::row)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The action that is meant, and whose it is.
async fn find_action(chosen: &ActionSelector, session: &GatewaySession) -> Result<(String, String), Error> {
    if let (Some(agent), Some(id)) = (&chosen.agent, chosen.id.full_id()) {
        return Ok((agent.to_string(), id));
    }
    let mut query = vec![("limit", LISTED.to_string())];
    query.extend(chosen.agent.iter().map(|agent| ("agent", agent.to_string())));
    let ListActionsResponse { actions, .. } = session.client.get("v1/actions", &query).await?;
    query.push(("status", words::ConsentStatus::Waiting.text()));
    let ListApprovalsResponse { approvals, .. } = session.client.get("v1/approvals", &query).await?;
    let actions = actions.into_iter().map(|action| (action.agent, action.action_id));
    let known = actions.chain(approvals.into_iter().map(|waiting| (waiting.agent, waiting.action_id)));
    chosen.id.find_unique(known, |(_, id)| id.as_str(), "action", "kairo actions")
}

fn format_actions(actions: &[ActionRow], now: Timestamp) -> Vec<String> {
    let rows = actions.iter().map(|action| {
        [
            action.agent.clone(),
            printable(&action.tool),
            action_status(action).to_owned(),
            rows::format_elapsed(action.decided_at, None, now).unwrap_or_default(),
            action_progress(action),
            short_id(&action.action_id),
            printable(rows::text(action.arguments.as_ref())),
        ]
    });
    let mut lines = table(["agent", "tool", "status", "age", "progress", "action", "arguments"], rows);
    let open = actions
        .iter()
        .filter(|action| action.status == words::ActionStatus::InDoubt.as_str() && action.verdict.is_none());
    let open: Vec<String> = open.map(|action| short_id(&action.action_id)).collect();
    if !open.is_empty() {
        let advice = ["", "Nobody knows whether an action in doubt happened: its runner is gone. Find out, and say:"];
        lines.extend(advice.map(str::to_owned));
        lines.extend(
            open.iter().map(|id| format!("  kairo actions resolve {id} --happened|--did-not-happen [--note TEXT]")),
        );
    }
    lines
}

fn action_status(action: &ActionRow) -> &str {
    match (&action.verdict, action.cancel_requested_at) {
        (Some(verdict), _) => verdict,
        (None, Some(_)) if action.status != words::ActionStatus::InDoubt.as_str() => "stopping",
        _ => &action.status,
    }
}

fn action_progress(action: &ActionRow) -> String {
    if let Some(by) = &action.resolved_by {
        let entered = action.resolution_entered_by.as_ref().map(|who| format!(" ({who})")).unwrap_or_default();
        let note = action.resolution_note.as_deref().unwrap_or_default();
        return printable(format!("said {by}{entered} {note}").trim_end());
    }
    durations::format_progress(action.fraction, action.progress_message.as_deref().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn action(status: &str, more: Value) -> ActionRow {
        let mut action = json!({
            "action_id": "1f0c2ab4-0000-0000-0000-000000000001", "agent": "ops", "tool": "mail.send", "arguments": {"to": "a"},
            "status": status, "decided_at": "2026-01-01T00:00:00Z",
        });
        let fields = action.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        serde_json::from_value(action).unwrap()
    }

    #[test]
    fn an_action_shows_its_age_its_progress_and_what_can_be_done() {
        let now = "2026-01-01T00:02:05Z".parse().unwrap();
        let running = action("running", json!({"fraction": 0.42, "progress_message": "two\u{1b}of five"}));
        let doubt = action("in_doubt", json!({"cancel_requested_at": "2026-01-01T00:01:00Z"}));
        let resolved = action(
            "in_doubt",
            json!({"verdict": "happened", "resolved_by": "ann", "resolution_note": "seen",
                "resolution_entered_by": "api_key:k7"}),
        );
        let text = format_actions(&[running, doubt, resolved], now).join("\n");
        for part in [
            "mail.send  running   2m 5s  42% twoof five ",
            "mail.send  in_doubt  2m 5s",
            "mail.send  happened  2m 5s  said ann (api_key:k7) seen",
            "  kairo actions resolve 1f0c2ab4 --happened|--did-not-happen [--note TEXT]",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert_eq!(text.matches("kairo actions resolve").count(), 1);
    }

    #[test]
    fn what_was_asked_to_end_says_so() {
        assert_eq!(
            action_status(&action("running", json!({"cancel_requested_at": "2026-01-01T00:01:00Z"}))),
            "stopping"
        );
    }
}
