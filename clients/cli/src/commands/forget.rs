//! `kairo forget`

use std::{process::ExitCode, time::Duration};

use clap::Args;
use kairo_core::ids::Name;
use kairo_proto::{
    v1::{ForgetUserResponse, GetForgettingResponse, HeldRow},
    words::ForgettingStep,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{GatewaySession, name};
use crate::{Error, table::table, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo forget --user ann --dry-run
  kairo forget --user ann

What was said to agents in the user's name goes, and all that agents made of it: their data key is destroyed, so
that nobody can read it in the log any more, nor in any copy of it; agents forget what they know of them; and the
read models are built anew without it. There is no way back. What is said in their name from then on is kept.

It takes privacy.master_key. What was said before there was one is not sealed, and stays in the log. What is shared
by several users, such as an answer of a model that was shown what is theirs, is gone for all of them; what an agent
told others, such as a mail that it sent, is theirs.

The command waits for the end; when it is interrupted, or a gateway dies, the order is carried out all the same.

Exit status: 0 if the user is forgotten, or for --dry-run, else 1.";

/// The interval at which the progress is polled.
const LOOK: Duration = Duration::from_millis(500);

/// Have a user forgotten, in the log and in everything that is made from it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ForgetArgs {
    /// The user
    #[arg(long, value_name = "NAME", value_parser = name)]
    user: Name,
    /// Only tell what there is of them
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(arguments: ForgetArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let ForgetArgs { user, dry_run } = arguments;
    let path = format!("v1/users/{user}/forget");
    let answer: Value = session.client.post(&path, &json!({ "dry_run": dry_run })).await?;
    if dry_run && session.json {
        terminal::json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let given: ForgetUserResponse = session.parse_answer(answer)?;
    if !session.json {
        format_held_data(&given).into_iter().try_for_each(terminal::line)?;
    }
    if dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    let mut last = (String::new(), String::new());
    loop {
        let answer: Value = session.client.get(&path, &[]).await?;
        let now: GetForgettingResponse = session.parse_answer(answer.clone())?;
        let is_done = now.step_word() == ForgettingStep::Done && now.order_id == given.order_id;
        if session.json && is_done {
            terminal::json(&answer)?;
        }
        if !session.json && last != (now.step.clone(), now.reason.clone()) {
            terminal::line(format_forgetting_step(&now))?;
        }
        if is_done {
            return Ok(ExitCode::SUCCESS);
        }
        last = (now.step, now.reason);
        sleep(LOOK).await;
    }
}

/// Returns a table of the data that agents hold of the user, and warns if it is not sealed.
fn format_held_data(given: &ForgetUserResponse) -> Vec<String> {
    let ForgetUserResponse { user, held, sealed, .. } = given;
    let mut lines = Vec::new();
    if held.is_empty() {
        lines.push(format!("no agent has anything of {user}"));
    } else {
        let heads = ["agent", "threads", "messages", "actions", "tasks", "memories", "state", "asked"];
        lines.extend(table(heads, held.iter().map(held_data_cells)));
    }
    if !sealed {
        lines.push("what users say is not sealed (privacy.master_key), so nobody can be forgotten".to_owned());
    }
    lines
}

fn held_data_cells(held: &HeldRow) -> [String; 8] {
    let HeldRow { agent, threads, messages, actions, tasks, memories, inner_state, asked } = held;
    let [threads, messages, actions, tasks, memories, inner_state, asked] =
        [threads, messages, actions, tasks, memories, inner_state, asked].map(ToString::to_string);
    [agent.clone(), threads, messages, actions, tasks, memories, inner_state, asked]
}

fn format_forgetting_step(now: &GetForgettingResponse) -> String {
    let agents = now.agents.len();
    let step = match now.step_word() {
        ForgettingStep::Asked => "asked for".to_owned(),
        ForgettingStep::Replaced => {
            "what is new is sealed with another key; waiting until every replica knows".to_owned()
        }
        ForgettingStep::Found => format!("{agents} agents have something of them"),
        ForgettingStep::Destroyed => "the data key is destroyed".to_owned(),
        ForgettingStep::Told => format!("{agents} agents are told; waiting until old snapshots are of no use"),
        ForgettingStep::Resealed => "old snapshots cannot be opened any more".to_owned(),
        ForgettingStep::Rebuilding => "the read models are built anew".to_owned(),
        ForgettingStep::Done => format!("{} is forgotten, by {agents} agents", now.user),
        ForgettingStep::Unknown(word) => word,
    };
    if now.reason.is_empty() { step } else { format!("{step}; for now it does not get any further: {}", now.reason) }
}
