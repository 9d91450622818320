//! Every event, by what it is looked for. What it says is made from the log's own bytes when it is asked for.

use kairo_read_model::sql_values::SqlKey;

use super::ProjectedRecord;
use crate::changes::{EventEntry, TableChanges};

pub fn project(fact: &ProjectedRecord, changes: &mut TableChanges) {
    changes.events.extend(fact.events.iter().map(|event| EventEntry {
        sequence: fact.sequence,
        position: i32::try_from(event.position).unwrap_or(i32::MAX),
        event_id: event.event_id,
        ts: fact.at,
        agent: fact.agent.clone(),
        thread_id: event.thread_id.as_deref().and_then(SqlKey::non_empty),
        correlation_id: event.correlation_id,
        type_name: event.type_name.into(),
    }));
}

#[cfg(test)]
mod tests {
    use super::super::testing::{decision, message, project_all, sample_event};

    #[test]
    fn a_decision_is_as_many_rows_as_it_holds_events() {
        let changes = project_all([decision(7, "bob", [sample_event("t", "think"), sample_event("t", "say")])]);
        let places: Vec<_> = changes.events.iter().map(|event| (event.sequence, event.position)).collect();
        assert_eq!(places, [(7, 0), (7, 1)]);
    }

    #[test]
    fn a_users_message_is_also_the_addressed_agents() {
        let changes = project_all([message(1, "ann", "bob"), message(2, "ann", "")]);
        let agents: Vec<_> = changes.events.iter().map(|event| event.agent.as_ref().map(|key| key.as_str())).collect();
        assert_eq!(agents, [Some("bob"), None]);
    }
}
