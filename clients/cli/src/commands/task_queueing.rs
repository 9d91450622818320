//! `kairo tasks add`

use std::{
    collections::BTreeMap,
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::Args;
use kairo_core::ids::Name;
use kairo_proto::{
    v1::{AwaitTaskResponse, QueueTaskResponse, TaskRow},
    words::TaskStatus,
};
use serde_json::Value;

use super::{GatewaySession, duration, name};
use crate::{Error, event_lines::printable, terminal};

pub(super) const EXAMPLES: &str = "\
Examples:
  kairo tasks add --agent scout 'Find out what the harbour fees are.'
  kairo tasks add --agent scout --wait --timeout 10m 'Find out what the harbour fees are.'
  kairo tasks add --agent scout --request-id nightly-7 'Look for news.'    # repeated, it is still one task

Exit status:
  0  it is queued or, with --wait, completed
  2  the task ended without being completed
  3  the task did not end in time; see kairo tasks show ID";

/// The longest wait of one request, below that of an answer.
const ONE_WAIT: Duration = Duration::from_secs(20);

#[derive(Debug, Args)]
pub(super) struct TaskAddArgs {
    /// The work to do; the agent is given nothing else, so the text must say everything
    #[arg(value_name = "TEXT")]
    text: String,
    /// The agent
    #[arg(long, value_parser = name, value_name = "NAME")]
    agent: Name,
    /// User whose task it is, and who is told what comes of it
    #[arg(long, default_value = "you", value_parser = name, value_name = "NAME")]
    user: Name,
    /// A title for lists; without it, taken from the text
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Id of this request, chosen by you: repeating the command with it adds no second task
    #[arg(long, value_name = "ID")]
    request_id: Option<String>,
    /// Wait for the result, and print it
    #[arg(long)]
    wait: bool,
    /// Longest wait for the result
    #[arg(long, default_value = "10m", value_parser = duration, value_name = "TIME", requires = "wait")]
    timeout: Duration,
}

impl TaskAddArgs {
    pub(super) async fn run(self, session: &GatewaySession) -> Result<ExitCode, Error> {
        let given = [("user", self.user.to_string()), ("agent", self.agent.to_string()), ("text", self.text)];
        let optional = [("title", self.title), ("request_id", self.request_id)];
        let optional = optional.into_iter().filter_map(|(field, value)| Some((field, value?)));
        let task: BTreeMap<&str, String> = given.into_iter().chain(optional).collect();
        let answer: Value = session.client.post("v1/tasks", &task).await?;
        if !self.wait && session.json {
            terminal::json(&answer)?;
            return Ok(ExitCode::SUCCESS);
        }
        let QueueTaskResponse { task_id, .. } = session.parse_answer(answer)?;
        if !self.wait {
            terminal::line(format!("task {task_id} was submitted; follow it with kairo tasks show {task_id}"))?;
            return Ok(ExitCode::SUCCESS);
        }
        let Some(task) = await_task(&task_id, self.timeout, session).await? else {
            terminal::complain(format!(
                "task {task_id} did not end in time; follow it with kairo tasks show {task_id}"
            ));
            return Ok(ExitCode::from(3));
        };
        match session.json {
            true => terminal::json(&task)?,
            false => terminal::line(format_result(&task))?,
        }
        let is_completed = TaskStatus::from(task.status.as_str()) == TaskStatus::Completed;
        Ok(if is_completed { ExitCode::SUCCESS } else { ExitCode::from(2) })
    }
}

/// Waits for the end of a task; none if it is not over in time.
async fn await_task(id: &str, limit: Duration, session: &GatewaySession) -> Result<Option<TaskRow>, Error> {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let query = [("timeout_ms", left.min(ONE_WAIT).as_millis().to_string())];
        let answer: AwaitTaskResponse = session.client.get(&format!("v1/tasks/{id}/result"), &query).await?;
        if answer.is_over {
            return Ok(answer.task);
        }
        if left.is_zero() {
            return Ok(None);
        }
    }
}

fn format_result(task: &TaskRow) -> String {
    match (task.result.as_deref(), task.reason.as_deref()) {
        (Some(result), _) if !result.is_empty() => printable(result),
        (_, Some(reason)) if !reason.is_empty() => format!("{}: {}", task.status, printable(reason)),
        _ => task.status.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_shown_in_its_words() {
        let row = |result: &str, reason: &str| TaskRow {
            status: "failed".to_owned(),
            result: Some(result.to_owned()),
            reason: Some(reason.to_owned()),
            ..TaskRow::default()
        };
        assert_eq!(
            format_result(&row("It is \u{1b}[2Jnoon.", "")),
            format_result(&row("It is \u{1b}[2Jnoon.", "late"))
        );
        assert!(!format_result(&row("It is \u{1b}[2Jnoon.", "")).contains('\u{1b}'));
        assert_eq!(format_result(&row("", "no bridge")), "failed: no bridge");
        assert_eq!(format_result(&row("", "")), "failed");
    }
}
