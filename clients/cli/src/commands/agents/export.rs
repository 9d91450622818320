//! `kairo agents export`: agents and teams as a file that `kairo agents apply` takes.

use std::collections::BTreeMap;

use clap::Args;
use kairo_core::{ids::Name, profile_document};
use kairo_proto::v1::{AgentProfile, ListAgentsResponse};
use serde_json::{Map, Value, json};

use super::apply_document::ApplyDocument;
use crate::{
    Error,
    commands::{GatewaySession, name},
    terminal,
};

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// The agents and teams to print; without any, all of them
    #[arg(value_parser = name, value_name = "NAME")]
    names: Vec<Name>,
}

impl ExportArgs {
    pub(super) async fn run(self, session: &GatewaySession) -> Result<(), Error> {
        let answer: ListAgentsResponse = session.client.get("v1/agents", &[]).await?;
        let profiles: Vec<AgentProfile> = answer.agents.into_iter().filter_map(|row| row.profile).collect();
        if let Some(unknown) = self.names.iter().find(|name| !profiles.iter().any(|it| it.agent == name.as_str())) {
            return Err(Error::Usage(format!(
                "no agent or team {unknown} is known; kairo agents lists those there are"
            )));
        }
        let is_worker = |profile: &&AgentProfile| {
            !profile.lead.is_empty() && self.names.iter().any(|name| *name.as_str() == *profile.agent)
        };
        if let Some(worker) = profiles.iter().find(is_worker) {
            let AgentProfile { agent, lead, .. } = worker;
            return Err(Error::Usage(format!(
                "{agent} is an agent of the team {lead}: kairo agents export {lead} has it"
            )));
        }
        if let Some(hidden) = profiles.iter().find(|profile| profile.prompt.is_empty()) {
            return Err(Error::Usage(format!(
                "this key may not see the prompt of {}: use a key with the scope admin, see kairo keys create --help",
                hidden.agent
            )));
        }
        let is_wanted = |profile: &AgentProfile| {
            self.names.is_empty() || self.names.iter().any(|name| *name.as_str() == *profile.agent)
        };
        let document = to_document(profiles, is_wanted);
        match session.json {
            true => terminal::json(&document)?,
            false => terminal::piece(&to_yaml(&document)?)?,
        }
        Ok(())
    }
}

fn to_yaml(document: &ApplyDocument) -> Result<String, Error> {
    serde_saphyr::to_string(document).map_err(|error| Error::Advice(format!("cannot write YAML: {error}")))
}

/// Agents in no team as they are; agents of a team are parts of it.
fn to_document(profiles: Vec<AgentProfile>, is_wanted: impl Fn(&AgentProfile) -> bool) -> ApplyDocument {
    let by_name: BTreeMap<&str, &AgentProfile> = profiles.iter().map(|it| (it.agent.as_str(), it)).collect();
    let mut document = ApplyDocument::default();
    for profile in profiles.iter().filter(|profile| profile.lead.is_empty() && is_wanted(profile)) {
        match &profile.team {
            Some(_) => document.teams.push(to_team(profile, &by_name)),
            None => {
                let mut agent = Map::from_iter([("agent".to_owned(), json!(profile.agent))]);
                agent.extend(profile_document::fields(profile));
                document.agents.push(agent);
            }
        }
    }
    document
}

fn to_team(lead: &AgentProfile, by_name: &BTreeMap<&str, &AgentProfile>) -> Map<String, Value> {
    let mut fields = profile_document::fields(lead);
    let mut team = Map::from_iter([("team".to_owned(), json!(lead.agent))]);
    for of_team in ["owner", "mission"] {
        team.extend(fields.remove(of_team).map(|value| (of_team.to_owned(), value)));
    }
    let of_team = fields.remove("team").unwrap_or_default();
    for budget in ["tokens_per_day", "cost_per_day"] {
        team.extend(of_team.get(budget).map(|value| (budget.to_owned(), value.clone())));
    }
    // Every agent of a team works in the background.
    fields.remove("conduct");
    team.insert("lead".to_owned(), Value::Object(fields));
    let workers = lead.team.iter().flat_map(|team| &team.workers);
    let workers = workers.filter_map(|worker| by_name.get(worker.agent.as_str()));
    team.insert("workers".to_owned(), workers.map(|worker| to_worker(worker, &lead.agent)).collect());
    team
}

fn to_worker(worker: &AgentProfile, team: &str) -> Value {
    let name = worker.agent.strip_prefix(team).and_then(|rest| rest.strip_prefix('-')).unwrap_or(&worker.agent);
    let mut fields = profile_document::fields(worker);
    fields.remove("lead");
    fields.remove("conduct");
    let named = Map::from_iter([("name".to_owned(), json!(name))]);
    Value::Object(named.into_iter().chain(fields).collect())
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::{Team, TeamWorker};

    use super::*;

    #[test]
    fn a_team_is_one_entry_with_its_agents() {
        let agent = |name: &str| AgentProfile {
            agent: name.to_owned(),
            prompt: "Line one.\nLine two: \"quoted\".\n".to_owned(),
            ..AgentProfile::default()
        };
        let worker = TeamWorker { agent: "market-reader".to_owned(), description: String::new() };
        let team = Team { workers: vec![worker], tokens_per_day: 7, cost_per_day: String::new() };
        let lead = AgentProfile {
            team: Some(team),
            owner: "ann".to_owned(),
            mission: "Know.".to_owned(),
            conduct: "background".to_owned(),
            ..agent("market")
        };
        let reader =
            AgentProfile { lead: "market".to_owned(), conduct: "background".to_owned(), ..agent("market-reader") };
        let document = to_document(vec![agent("cook"), lead, reader], |_| true);
        let prompt = "Line one.\nLine two: \"quoted\".\n";
        let expected = json!({
            "agents": [{ "agent": "cook", "prompt": prompt }],
            "teams": [{
                "team": "market", "owner": "ann", "mission": "Know.", "tokens_per_day": 7,
                "lead": { "prompt": prompt }, "workers": [{ "name": "reader", "prompt": prompt }],
            }],
        });
        assert_eq!(serde_json::to_value(&document).unwrap(), expected);
        let yaml = to_yaml(&document).unwrap();
        assert_eq!(serde_saphyr::from_str::<ApplyDocument>(&yaml).unwrap(), document, "{yaml}");
    }
}
