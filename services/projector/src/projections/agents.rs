//! Agents: the newest profile is in force.

use kairo_proto::Body;
use kairo_read_model::sql_values::SqlJson;

use super::ProjectedRecord;
use crate::changes::{AgentDefinition, TableChanges};

pub fn project(fact: &ProjectedRecord, changes: &mut TableChanges) {
    let Body::AgentDefined(defined) = &fact.record.body else { return };
    let Some(profile) = &defined.profile else { return };
    let agent = AgentDefinition { profile: SqlJson::from_value(profile), sequence: fact.sequence, defined_at: fact.at };
    changes.agents.insert(fact.owner.clone(), agent);
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::{AgentDefined, AgentProfile};

    use super::super::testing::{project_all, record};

    #[test]
    fn the_newest_profile_is_in_force() {
        let defined = |sequence, prompt: &str| {
            let profile = AgentProfile { agent: "bob".into(), prompt: prompt.into(), ..Default::default() };
            record(sequence, "kairo.agent.bob.defined", AgentDefined { profile: Some(profile), ..Default::default() })
        };
        let changes = project_all([defined(3, "old"), defined(5, "new")]);
        let agent = &changes.agents[&"bob".into()];
        assert_eq!(agent.sequence, 5);
        assert_eq!(agent.profile.as_str(), r#"{"agent":"bob","prompt":"new"}"#);
    }
}
