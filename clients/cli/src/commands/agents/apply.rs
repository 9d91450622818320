//! `kairo agents apply`: agents and teams become what a file says.

use std::{collections::BTreeSet, fmt, path::PathBuf};

use clap::Args;
use kairo_proto::v1::{AgentChanges, CreateTeamResponse, DefineAgentResponse, ListToolsResponse, ProfileChange};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    apply_document::{ApplyDocument, agent_name},
    change_lines::format_changes,
};
use crate::{
    Error,
    client::{ClientError, Problem},
    commands::GatewaySession,
    terminal,
};

pub(super) const EXAMPLES: &str = "\
The file lists `agents` and `teams`, with the fields that `kairo agents export` prints, and the `tools` that must exist.
`prompt_file` may stand in place of `prompt`: the path of a file, relative to this one. Agents that the file does not
name are left alone. Everything is checked before anything is written.

Examples:
  kairo agents apply -f agents.yaml --dry-run
  kairo agents export | kairo agents apply -f -";

#[derive(Debug, Args)]
pub(super) struct ApplyArgs {
    /// The file; - reads standard input
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// Show the differences, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// An agent or a team of the file.
struct Resource<'a> {
    kind: &'static str,
    name: String,
    path: &'static str,
    fields: &'a Map<String, Value>,
}

/// The effect on one of them.
#[derive(Debug, Serialize)]
struct Effect {
    kind: &'static str,
    name: String,
    is_new: bool,
    agents: Vec<AgentChanges>,
    warnings: Vec<String>,
}

impl ApplyArgs {
    pub(super) async fn run(self, session: &GatewaySession) -> Result<(), Error> {
        let document = ApplyDocument::load(&self.file)?;
        let resources = list_resources(&document);
        self.check(&document, &resources, session).await?;
        let mut effects = Vec::with_capacity(resources.len());
        for resource in &resources {
            let dry_run = self.dry_run;
            effects.push(match resource.submit(dry_run, session).await {
                Err(Error::Client(ClientError::Refused { problem, .. }))
                    if dry_run && lacks_only_members_of(&problem, &document) =>
                {
                    resource.new_composition()
                }
                effect => effect?,
            });
            if !session.json {
                print_effect(effects.last(), dry_run)?;
            }
        }
        match session.json {
            true => terminal::json(&effects)?,
            false => terminal::line(Summary { effects: &effects, dry_run: self.dry_run }.to_string())?,
        }
        Ok(())
    }

    /// Has everything checked before anything is written, and tells all that is wrong.
    async fn check(
        &self,
        document: &ApplyDocument,
        resources: &[Resource<'_>],
        session: &GatewaySession,
    ) -> Result<(), Error> {
        let mut wrong = 0_usize;
        for tool in unknown_tools(&document.tools, session).await? {
            terminal::complain(format!("tools: there is no tool {tool}; kairo tools lists those there are"));
            wrong += 1;
        }
        for resource in resources {
            match resource.submit(true, session).await {
                Ok(_) => {}
                Err(Error::Client(ClientError::Refused { problem, .. })) => {
                    if !lacks_only_members_of(&problem, document) {
                        terminal::complain(format!("{} {}: {problem}", resource.kind, resource.name));
                        wrong += 1;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        match wrong {
            0 => Ok(()),
            wrong => Err(Error::Usage(format!(
                "{}: nothing was applied: correct the errors above ({wrong}) and apply it again",
                self.file.display()
            ))),
        }
    }
}

fn list_resources(document: &ApplyDocument) -> Vec<Resource<'_>> {
    let named = |fields: &Map<String, Value>, field: &str| {
        fields.get(field).and_then(Value::as_str).unwrap_or("without a name").to_owned()
    };
    let agents = document.agents.iter().map(|fields| Resource {
        kind: "agent",
        name: named(fields, "agent"),
        path: "v1/agents",
        fields,
    });
    let teams = document.teams.iter().map(|fields| Resource {
        kind: "team",
        name: named(fields, "team"),
        path: "v1/teams",
        fields,
    });
    agents.chain(teams).collect()
}

async fn unknown_tools(wanted: &[String], session: &GatewaySession) -> Result<Vec<String>, Error> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let answer: ListToolsResponse = session.client.get("v1/tools", &[]).await?;
    let known: BTreeSet<&str> = answer.tools.iter().map(|tool| tool.name.as_str()).collect();
    Ok(wanted.iter().filter(|tool| !known.contains(tool.as_str())).cloned().collect())
}

/// Returns true if nothing is wrong with an agent but that members of it do not exist yet, which the document defines.
fn lacks_only_members_of(problem: &Problem, document: &ApplyDocument) -> bool {
    let is_defined = |name: &str| document.agents.iter().filter_map(agent_name).any(|agent| agent == name);
    let is_missing_member = |field: &str| field.starts_with("members[") && field.ends_with("].agent");
    let is_resolved = |error: &crate::client::WrongField| {
        is_missing_member(&error.field) && error.found.as_deref().is_some_and(is_defined)
    };
    !problem.errors.is_empty() && problem.errors.iter().all(is_resolved)
}

impl Resource<'_> {
    async fn submit(&self, dry_run: bool, session: &GatewaySession) -> Result<Effect, Error> {
        let mut fields = self.fields.clone();
        fields.insert("dry_run".to_owned(), Value::Bool(dry_run));
        let answer: Value = session.client.post(self.path, &fields).await?;
        let (agents, warnings) = match self.kind {
            "team" => {
                let CreateTeamResponse { changes, warnings, .. } = session.parse_answer(answer)?;
                (changes, warnings)
            }
            _ => {
                let DefineAgentResponse { agent, changes, warnings, .. } = session.parse_answer(answer)?;
                let is_new = changes.iter().any(is_first_prompt);
                (vec![AgentChanges { agent, is_new, changes }], warnings)
            }
        };
        let is_new = agents.iter().any(|changed| changed.agent == self.name && changed.is_new);
        Ok(Effect { kind: self.kind, name: self.name.clone(), is_new, agents, warnings })
    }

    /// The effect on an agent whose members do not exist yet.
    fn new_composition(&self) -> Effect {
        let warning = "its members do not exist yet; apply creates them first and then checks them".to_owned();
        Effect { kind: self.kind, name: self.name.clone(), is_new: true, agents: Vec::new(), warnings: vec![warning] }
    }
}

/// Every profile has a prompt, so one that had none before is new.
fn is_first_prompt(change: &ProfileChange) -> bool {
    change.field == "prompt" && change.before.is_none()
}

impl Effect {
    fn is_unchanged(&self) -> bool {
        !self.is_new && self.agents.iter().all(|agent| agent.changes.is_empty())
    }
}

fn print_effect(effect: Option<&Effect>, dry_run: bool) -> Result<(), Error> {
    let Some(effect) = effect else { return Ok(()) };
    let done = match (effect.is_new, effect.is_unchanged(), dry_run) {
        (true, _, false) => "created",
        (true, _, true) => "to create",
        (false, true, _) => "unchanged",
        (false, false, false) => "changed",
        (false, false, true) => "to change",
    };
    terminal::line(format!("{} {}: {done}", effect.kind, effect.name))?;
    for AgentChanges { agent, changes, .. } in &effect.agents {
        if *agent != effect.name && !changes.is_empty() {
            terminal::line(format!("  {agent}:"))?;
        }
        format_changes(changes).into_iter().try_for_each(terminal::line)?;
    }
    effect
        .warnings
        .iter()
        .for_each(|warning| terminal::complain(format!("{} {}: {warning}", effect.kind, effect.name)));
    Ok(())
}

/// The last line of the command.
struct Summary<'a> {
    effects: &'a [Effect],
    dry_run: bool,
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let created = self.effects.iter().filter(|effect| effect.is_new).count();
        let unchanged = self.effects.iter().filter(|effect| effect.is_unchanged()).count();
        let changed = self.effects.len() - created - unchanged;
        match self.dry_run {
            true => {
                write!(
                    out,
                    "{created} to create, {changed} to change, {unchanged} unchanged (dry run, nothing was written)"
                )
            }
            false => write!(out, "{created} created, {changed} changed, {unchanged} unchanged"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_that_the_file_defines_may_be_missing_in_a_dry_run() {
        let agents = vec![json!({ "agent": "cook" }).as_object().cloned().unwrap()];
        let document = ApplyDocument { agents, ..ApplyDocument::default() };
        let problem = |errors: Value| serde_json::from_value::<Problem>(json!({ "errors": errors })).unwrap();
        let missing = json!({ "field": "members[0].agent", "found": "cook" });
        assert!(lacks_only_members_of(&problem(json!([missing])), &document));
        for wrong in [
            json!([]),
            json!([{ "field": "members[0].agent", "found": "waiter" }]),
            json!([{ "field": "members[0].tools", "found": "cook" }]),
            json!([missing, { "field": "prompt" }]),
        ] {
            assert!(!lacks_only_members_of(&problem(wrong.clone()), &document), "{wrong}");
        }
    }

    #[test]
    fn the_summary_counts_each_effect_once() {
        let effect = |is_new, changes: Vec<ProfileChange>| {
            let agents = vec![AgentChanges { agent: "a".to_owned(), is_new, changes }];
            Effect { kind: "agent", name: "a".to_owned(), is_new, agents, warnings: Vec::new() }
        };
        let effects = [
            effect(true, vec![ProfileChange::default()]),
            effect(false, vec![ProfileChange::default()]),
            effect(false, Vec::new()),
        ];
        let shown = |dry_run| Summary { effects: &effects, dry_run }.to_string();
        assert_eq!(shown(false), "1 created, 1 changed, 1 unchanged");
        assert_eq!(shown(true), "1 to create, 1 to change, 1 unchanged (dry run, nothing was written)");
    }
}
