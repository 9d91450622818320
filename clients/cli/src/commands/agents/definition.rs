//! `kairo agents define`, `set` and `rollback`: an agent gets a new profile.

use clap::Args;
use kairo_core::ids::Name;
use kairo_proto::v1::DefineAgentResponse;
use serde_json::{Map, Value, json};

use super::{change_lines::format_changes, profile_options::ProfileOptions};
use crate::{
    Error,
    commands::{GatewaySession, name},
    terminal,
};

#[derive(Debug, Args)]
pub(super) struct AgentDefineArgs {
    /// The agent
    #[arg(long, value_parser = name, value_name = "NAME")]
    agent: Name,
    #[command(flatten)]
    profile: ProfileOptions,
    #[command(flatten)]
    options: DefinitionOptions,
}

#[derive(Debug, Args)]
pub(super) struct AgentSetArgs {
    /// The agent
    #[arg(value_parser = name, value_name = "NAME")]
    agent: Name,
    #[command(flatten)]
    profile: ProfileOptions,
    /// A field of the profile to set to its default, as `kairo agents show` names it; can be repeated
    #[arg(long, value_name = "FIELD")]
    reset: Vec<String>,
    #[command(flatten)]
    options: DefinitionOptions,
}

#[derive(Debug, Args)]
pub(super) struct AgentRollbackArgs {
    /// The agent
    #[arg(value_parser = name, value_name = "NAME")]
    agent: Name,
    /// The version to return to: its position in the log or its name, as `kairo agents history` shows them
    #[arg(long, value_name = "VERSION")]
    to: String,
    /// Show the difference, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
struct DefinitionOptions {
    /// A name for this version of the agent, by which `kairo agents rollback` returns to it
    #[arg(long, value_name = "NAME")]
    version_name: Option<String>,
    /// Check the profile and show the difference, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl AgentDefineArgs {
    pub(super) async fn run(self, session: &GatewaySession) -> Result<(), Error> {
        let mut fields = self.profile.with_default_tools().into_fields()?;
        if !fields.contains_key("prompt") {
            let advice = "a new profile needs a prompt: give --prompt or --prompt-file, or change single fields with kairo agents set";
            return Err(Error::Usage(advice.to_owned()));
        }
        fields.insert("agent".to_owned(), json!(self.agent.as_str()));
        fields.extend(self.options.version_name.map(|version| ("version".to_owned(), json!(version))));
        fields.insert("dry_run".to_owned(), json!(self.options.dry_run));
        let answer = session.client.post("v1/agents", &fields).await?;
        print_answer(answer, &format!("{} is defined", self.agent), self.options.dry_run, session)?;
        if !session.json && !self.options.dry_run {
            terminal::line(format!("talk to it: kairo send --agent {} --wait …", self.agent))?;
        }
        Ok(())
    }
}

impl AgentSetArgs {
    pub(super) async fn run(self, session: &GatewaySession) -> Result<(), Error> {
        let mut fields = self.profile.into_fields()?;
        for field in self.reset {
            if fields.insert(field.clone(), Value::Null).is_some() {
                return Err(Error::Usage(format!("{field} is both set and reset: leave one of the two out")));
            }
        }
        if fields.is_empty() && self.options.version_name.is_none() {
            let advice = "nothing is set: give an option for each field to change, see kairo agents set --help";
            return Err(Error::Usage(advice.to_owned()));
        }
        let mut query = vec![("dry_run", self.options.dry_run.to_string())];
        query.extend(self.options.version_name.map(|version| ("version", version)));
        let answer = session.client.patch(&format!("v1/agents/{}", self.agent), &query, &fields).await?;
        print_answer(answer, &format!("{} is changed", self.agent), self.options.dry_run, session)
    }
}

impl AgentRollbackArgs {
    pub(super) async fn run(self, session: &GatewaySession) -> Result<(), Error> {
        let version = match self.to.parse::<u64>() {
            Ok(sequence) => ("sequence".to_owned(), json!(sequence)),
            Err(_) => ("version".to_owned(), json!(self.to)),
        };
        let body = Map::from_iter([version, ("dry_run".to_owned(), json!(self.dry_run))]);
        let answer = session.client.post(&format!("v1/agents/{}/rollback", self.agent), &body).await?;
        print_answer(answer, &format!("{} is back at version {}", self.agent, self.to), self.dry_run, session)
    }
}

fn print_answer(answer: Value, done: &str, dry_run: bool, session: &GatewaySession) -> Result<(), Error> {
    if session.json {
        terminal::json(&answer)?;
        return Ok(());
    }
    let DefineAgentResponse { changes, warnings, agent, .. } = session.parse_answer(answer)?;
    warnings.iter().for_each(terminal::complain);
    match (changes.is_empty(), dry_run) {
        (true, _) => terminal::line(format!("no field of {agent} differs"))?,
        (false, true) => terminal::line(format!("dry run, nothing was written; {agent} would change in:"))?,
        (false, false) => terminal::line(format!("{done}; changes:"))?,
    }
    format_changes(&changes).into_iter().try_for_each(terminal::line)?;
    Ok(())
}
