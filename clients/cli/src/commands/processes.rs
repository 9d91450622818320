//! `kairo processes`

use std::process::ExitCode;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use kairo_core::ids::Name;
use kairo_proto::v1::{ListProcessesResponse, ProcessRow};
use kairo_proto::words::{ActionStatus, OrderedCommand};

use super::{
    GatewaySession,
    id_prefix::{IdPrefix, short_id},
    name,
    orders::{OrderOptions, STATUS},
};
use crate::{
    Error,
    client::NewCommand,
    durations,
    event_lines::{in_one_line, printable},
    rows,
    table::table,
    terminal,
    watch::program_name,
};

const EXAMPLES: &str = "\
Examples:
  kairo processes
  kairo processes --agent ops --all
  kairo processes cancel 1f0c2ab4";

/// Processes that are listed at most, and looked through for one.
const LISTED: u32 = 1_000;

/// Show the processes that agents run, or stop one
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(super) struct ProcessesArgs {
    #[command(subcommand)]
    command: Option<ProcessesCommand>,
    /// Only of this agent
    #[arg(long, value_parser = name, value_name = "NAME")]
    agent: Option<Name>,
    /// Those that have ended, too
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Subcommand)]
enum ProcessesCommand {
    /// Ask a process to end, and kill it if it does not
    #[command(after_help = STATUS)]
    Cancel(ProcessCancelArgs),
}

#[derive(Debug, Args)]
struct ProcessCancelArgs {
    /// The process, or the first digits of its id
    #[arg(value_name = "ID")]
    id: IdPrefix,
    /// Agent of the process; only needed for one that kairo processes does not list
    #[arg(long, value_parser = name, value_name = "NAME")]
    agent: Option<Name>,
    #[command(flatten)]
    manner: OrderOptions,
}

pub(super) async fn run(arguments: ProcessesArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    match arguments.command {
        None => list_processes(arguments.agent, arguments.all, session).await,
        Some(ProcessesCommand::Cancel(ProcessCancelArgs { id, agent, manner })) => {
            let (agent, process) = find_process(&id, agent, session).await?;
            let user = manner.user.to_string();
            let command = OrderedCommand::Cancel.text();
            let process_id = Some(process);
            manner
                .send_command(&NewCommand { user, agent, command, process_id, ..NewCommand::default() }, session)
                .await
        }
    }
}

async fn list_processes(agent: Option<Name>, all: bool, session: &GatewaySession) -> Result<ExitCode, Error> {
    let mut query = vec![("limit", LISTED.to_string())];
    query.extend(agent.map(|agent| ("agent", agent.to_string())));
    query.extend((!all).then(|| ("running", true.to_string())));
    if let Some(ListProcessesResponse { processes, .. }) = session.get_or_print_json("v1/processes", &query).await? {
        if processes.is_empty() && !all {
            terminal::line("no process runs; see kairo processes --all for those that have ended")?;
            return Ok(ExitCode::SUCCESS);
        }
        format_processes(&processes, Timestamp::now()).into_iter().try_for_each(terminal::row)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The process that is meant, and whose it is.
async fn find_process(id: &IdPrefix, agent: Option<Name>, session: &GatewaySession) -> Result<(String, String), Error> {
    if let (Some(agent), Some(id)) = (&agent, id.full_id()) {
        return Ok((agent.to_string(), id));
    }
    let mut query = vec![("running", true.to_string()), ("limit", LISTED.to_string())];
    query.extend(agent.map(|agent| ("agent", agent.to_string())));
    let ListProcessesResponse { processes, .. } = session.client.get("v1/processes", &query).await?;
    let process = id.find_unique(processes, |process| &process.process_id, "running process", "kairo processes")?;
    Ok((process.agent, process.process_id))
}

fn format_processes(processes: &[ProcessRow], now: Timestamp) -> Vec<String> {
    let rows = processes.iter().map(|process| {
        [
            process.agent.clone(),
            printable(program_name(process.program.as_deref().unwrap_or_default())),
            process_state(process),
            rows::format_elapsed(process.started_at, process.ended_at, now).unwrap_or_default(),
            durations::format_progress(process.fraction, process.progress_message.as_deref().unwrap_or_default()),
            short_id(&process.process_id),
            in_one_line(&format_arguments(process)),
        ]
    });
    table(["agent", "program", "state", "time", "progress", "process", "arguments"], rows)
}

/// Returns the arguments of the program; JSON other than a list of strings is shown as it is.
fn format_arguments(process: &ProcessRow) -> String {
    let Some(json) = &process.arguments else { return String::new() };
    serde_json::from_str::<Vec<String>>(&json.text).map_or_else(|_| json.text.clone(), |words| words.join(" "))
}

fn process_state(process: &ProcessRow) -> String {
    match (&process.outcome, process.code, process.signal) {
        (None, ..) if process.cancel_requested_at.is_some() => "stopping".to_owned(),
        (None, ..) => ActionStatus::Running.text(),
        (Some(outcome), Some(code), _) => format!("{outcome} {code}"),
        (Some(outcome), None, Some(signal)) => format!("{outcome} by {signal}"),
        (Some(outcome), None, None) => outcome.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_process_runs_is_stopped_or_has_ended_somehow() {
        let process = |more: Value| -> ProcessRow {
            let mut process = json!({
                "process_id": "1f0c2ab4-0000-0000-0000-000000000001", "agent": "ops", "program": "/bin/tar",
                "arguments": ["-x", "a\nb"], "started_at": "2026-01-01T00:00:00Z",
            });
            process.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::from_value(process).unwrap()
        };
        let processes = [
            process(json!({"fraction": 0.5})),
            process(json!({"cancel_requested_at": "2026-01-01T00:00:03Z"})),
            process(json!({"ended_at": "2026-01-01T00:00:09Z", "outcome": "exited", "code": 3})),
            process(json!({"ended_at": "2026-01-01T00:00:09Z", "outcome": "signaled", "signal": 9})),
        ];
        let text = format_processes(&processes, "2026-01-01T00:01:05Z".parse().unwrap()).join("\n");
        for part in [
            "tar      running        1m 5s  50%       1f0c2ab4  -x a b",
            "tar      stopping       1m 5s",
            "tar      exited 3       9s",
            "tar      signaled by 9  9s",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }
}
