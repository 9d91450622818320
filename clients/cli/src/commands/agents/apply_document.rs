//! The YAML document of `kairo agents apply`: agents and teams as a list each, and the tools that they need.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::read_file_or_stdin;
use crate::Error;

/// The field that names a file with a prompt, which may stand wherever `prompt` may.
const PROMPT_FILE: &str = "prompt_file";

/// Agents as of `POST /v1/agents`, teams as of `POST /v1/teams`.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ApplyDocument {
    /// The names of tools that must exist before anything is applied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<Map<String, Value>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub teams: Vec<Map<String, Value>>,
}

impl ApplyDocument {
    /// Reads a document, with the prompts of the files that it names. They are found beside it.
    pub(super) fn load(file: &Path) -> Result<Self, Error> {
        let text = read_file_or_stdin(file)?;
        let folder = file.parent().unwrap_or(Path::new(""));
        Self::parse(&text, |prompt| read_file_or_stdin(&folder.join(prompt)))
            .map_err(|error| Error::Usage(format!("{}: {error}", file.display())))
    }

    fn parse(text: &str, read_prompt: impl Fn(&str) -> Result<String, Error>) -> Result<Self, String> {
        let mut document: Self = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        for (at, agent) in document.agents.iter_mut().enumerate() {
            insert_prompt(agent, &format!("agents[{at}]"), &read_prompt)?;
        }
        for (at, team) in document.teams.iter_mut().enumerate() {
            if let Some(lead) = team.get_mut("lead").and_then(Value::as_object_mut) {
                insert_prompt(lead, &format!("teams[{at}].lead"), &read_prompt)?;
            }
            let workers = team.get_mut("workers").and_then(Value::as_array_mut).into_iter().flatten();
            for (number, worker) in workers.filter_map(Value::as_object_mut).enumerate() {
                insert_prompt(worker, &format!("teams[{at}].workers[{number}]"), &read_prompt)?;
            }
        }
        document.sort_by_members();
        Ok(document)
    }

    /// Puts each agent behind those of the document that it is composed of. Agents in a circle keep their order: the
    /// gateway refuses them, unless they exist.
    fn sort_by_members(&mut self) {
        let mut waiting = std::mem::take(&mut self.agents);
        while !waiting.is_empty() {
            let needs_another = |agent: &Map<String, Value>| {
                let others = waiting.iter().filter(|other| other.get("agent") != agent.get("agent"));
                let members: Vec<_> = member_names(agent).collect();
                others.filter_map(|other| agent_name(other)).any(|other| members.contains(&other))
            };
            let next = waiting.iter().position(|agent| !needs_another(agent)).unwrap_or_default();
            self.agents.push(waiting.remove(next));
        }
    }
}

/// The name of an agent, if it has one.
pub(super) fn agent_name(agent: &Map<String, Value>) -> Option<&str> {
    agent.get("agent").and_then(Value::as_str)
}

fn member_names(agent: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let members = agent.get("members").and_then(Value::as_array).into_iter().flatten();
    members.filter_map(|member| member.get("agent").and_then(Value::as_str))
}

fn insert_prompt(
    fields: &mut Map<String, Value>,
    place: &str,
    read_prompt: impl Fn(&str) -> Result<String, Error>,
) -> Result<(), String> {
    let Some(file) = fields.remove(PROMPT_FILE) else { return Ok(()) };
    let Some(file) = file.as_str() else {
        return Err(format!("{place}.{PROMPT_FILE}: the name of a file is expected"));
    };
    let prompt = read_prompt(file).map_err(|error| format!("{place}.{PROMPT_FILE}: {error}"))?;
    match fields.insert("prompt".to_owned(), Value::String(prompt)) {
        Some(_) => Err(format!("{place}: prompt and {PROMPT_FILE} exclude each other")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ApplyDocument, String> {
        ApplyDocument::parse(text, |file| match file {
            "gone.md" => Err(Error::Advice("it is gone".to_owned())),
            file => Ok(format!("of {file}")),
        })
    }

    #[test]
    fn prompts_come_from_files_beside_the_document() {
        let document = parse(
            "agents:\n- agent: cook\n  prompt_file: cook.md\nteams:\n- team: market\n  lead: {prompt_file: lead.md}\n  \
             workers: [{name: reader, prompt: Read.}, {name: writer, prompt_file: writer.md}]\n",
        )
        .unwrap();
        assert_eq!(document.agents[0]["prompt"], "of cook.md");
        assert_eq!(document.teams[0]["lead"]["prompt"], "of lead.md");
        assert_eq!(document.teams[0]["workers"][1]["prompt"], "of writer.md");
        for (wrong, expected) in [
            ("agents: [{agent: a, prompt_file: gone.md}]", "agents[0].prompt_file: it is gone"),
            ("agents: [{agent: a, prompt_file: 7}]", "agents[0].prompt_file: the name of a file is expected"),
            (
                "agents: [{agent: a, prompt: x, prompt_file: a.md}]",
                "agents[0]: prompt and prompt_file exclude each other",
            ),
        ] {
            assert_eq!(parse(wrong).unwrap_err(), expected);
        }
        assert!(parse("agent: []").unwrap_err().contains("agent"), "an unknown section is named");
    }

    #[test]
    fn members_come_before_the_agents_that_are_composed_of_them() {
        let order = |text: &str| {
            let document = parse(text).unwrap();
            document.agents.iter().map(|agent| agent_name(agent).unwrap().to_owned()).collect::<Vec<_>>().join(" ")
        };
        let text = "agents:\n- {agent: a, members: [{agent: b}, {agent: elsewhere}]}\n- {agent: c}\n- {agent: b, members: [{agent: c}]}\n";
        assert_eq!(order(text), "c b a");
        let circle =
            "agents:\n- {agent: a, members: [{agent: b}]}\n- {agent: b, members: [{agent: a}]}\n- {agent: c}\n";
        assert_eq!(order(circle), "c a b");
    }
}
