//! Inner state: every change of a key, and how it is now.

use jiff::Timestamp;
use kairo_proto::{
    Decided,
    about::State,
    v1::{DecidedEvent, StateDeleted, StateWritten},
};
use kairo_read_model::sql_values::{SqlKey, SqlText, Time};
use uuid::Uuid;

use super::{ProjectedRecord, decided_events, definition_of};
use crate::changes::{InnerStateWrite, TableChanges};

/// Fields that have a column.
const COLUMNS: [&str; 4] = ["key", "content", "user", "updated_at"];

pub fn project(fact: &ProjectedRecord, changes: &mut TableChanges) {
    let Some(agent) = &fact.agent else { return };
    for (position, event, said) in decided_events(fact) {
        let Decided::State(said) = said.about() else { continue };
        let Some(change) = state_change(fact, agent, position, event, said) else { continue };
        let place = (change.agent.clone(), change.user.clone(), change.key.clone());
        // The same event told again is nothing new.
        if changes.inner_state.get(&place).is_none_or(|before| before.event_id != change.event_id) {
            changes.inner_state.insert(place, change.clone());
        }
        changes.inner_state_changes.entry(change.event_id).or_insert(change);
    }
}

fn state_change(
    fact: &ProjectedRecord,
    agent: &SqlKey,
    position: i32,
    event: &DecidedEvent,
    said: State<'_>,
) -> Option<InnerStateWrite> {
    let (key, user, content, updated_at, definition) = match said {
        State::Written(it @ StateWritten { key, user, content, updated_at, .. }) => {
            (key, user, content.as_str(), updated_at, definition_of(it, &COLUMNS))
        }
        State::Deleted(it @ StateDeleted { key, user, updated_at }) => {
            (key, user, "", updated_at, definition_of(it, &COLUMNS))
        }
    };
    Some(InnerStateWrite {
        event_id: Uuid::parse_str(&event.event_id).ok()?,
        sequence: fact.sequence,
        position,
        agent: agent.clone(),
        user: user.as_str().into(),
        key: SqlKey::non_empty(key)?,
        content: SqlText::from(content),
        deleted: matches!(said, State::Deleted(_)),
        updated_at: updated_at.parse().ok().filter(|at| *at >= Timestamp::UNIX_EPOCH).map_or(fact.at, Time),
        thread_id: SqlKey::non_empty(&event.thread_id),
        definition,
    })
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::decided_event::Event;

    use super::*;
    use crate::projections::testing::{decision, project_all, sample_event_with};

    fn written(user: &str, content: &str) -> Event {
        Event::StateWritten(StateWritten {
            key: "k".into(),
            user: user.into(),
            content: content.into(),
            related_keys: vec!["l".into()],
            updated_at: "2026-11-21T10:00:00Z".into(),
            ..Default::default()
        })
    }

    fn deleted(user: &str) -> Event {
        Event::StateDeleted(StateDeleted { key: "k".into(), user: user.into(), ..Default::default() })
    }

    #[test]
    fn a_key_is_as_it_was_last_written_and_its_history_is_whole() {
        let changes = project_all([
            decision(
                3,
                "bob",
                [
                    sample_event_with("t", "one", written("ann", "first")),
                    sample_event_with("t", "two", written("", "all")),
                ],
            ),
            decision(4, "bob", [sample_event_with("t", "three", written("ann", "second"))]),
            decision(5, "bob", [sample_event_with("t", "three", written("ann", "told again"))]),
            decision(6, "bob", [sample_event_with("t", "four", deleted(""))]),
        ]);
        let now = |user: &str| {
            let change = &changes.inner_state[&("bob".into(), user.into(), "k".into())];
            (change.sequence, change.content.as_str().to_owned(), change.deleted)
        };
        assert_eq!((now("ann"), now("")), ((4, "second".to_owned(), false), (6, String::new(), true)));
        let mut history: Vec<_> = changes.inner_state_changes.values().map(|it| (it.sequence, it.position)).collect();
        history.sort_unstable();
        assert_eq!(history, [(3, 0), (3, 1), (4, 0), (6, 0)]);
        let first = changes.inner_state_changes.values().find(|it| it.content.as_str() == "first").unwrap();
        assert_eq!(first.definition.as_str(), r#"{"related_keys":["l"]}"#);
        assert_eq!(first.updated_at.0, "2026-11-21T10:00:00Z".parse().unwrap());
    }
}
