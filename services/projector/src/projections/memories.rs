//! Memories: as they were last written, and all that they said before.

use jiff::civil::Date;
use kairo_core::memories::with_distinct_ids;
use kairo_proto::v1::{AgentDecision, DecidedEvent, MemoryAppended, decided_event::Event};
use kairo_read_model::sql_values::SqlKey;
use uuid::Uuid;

use super::{ProjectedRecord, definition_of};
use crate::changes::{MemoryContent, MemoryVersion, TableChanges};

/// Fields that are queried or searched beside the memory's id.
const COLUMNS: [&str; 7] = ["memory_id", "kind", "subject", "content", "day", "user", "lacks_keywords"];
/// Subject and keywords that a memory is found by when a word is misspelt, in bytes.
const NAMED_BYTES: usize = 8 * 1024;
/// Of the content of a memory whose keywords are not found yet, so much stands for them, in bytes.
const OWN_BYTES: usize = 1024;

pub fn project(fact: &ProjectedRecord, changes: &mut TableChanges) {
    let Some(agent) = &fact.agent else { return };
    let Some(decision) = AgentDecision::of(&fact.record.body) else { return };
    for (position, event) in (0..).zip(with_distinct_ids(decision).iter()) {
        let Some(Event::MemoryAppended(appended)) = &event.event else { continue };
        let Ok(id) = Uuid::parse_str(&appended.memory_id) else { continue };
        let memory = memory_content(fact, position, event, appended);
        let version = MemoryVersion { agent: agent.clone(), memory_id: id, memory: memory.clone() };
        changes.memory_versions.entry(memory.event_id).or_insert(version);
        let key = (agent.clone(), id);
        // The same event told again is nothing new.
        if changes.memories.get(&key).is_none_or(|before| before.event_id != memory.event_id) {
            changes.memories.insert(key, memory);
        }
    }
}

fn leading_content(content: &str) -> &str {
    content.get(..content.floor_char_boundary(OWN_BYTES)).unwrap_or_default()
}

fn memory_content(
    fact: &ProjectedRecord,
    position: i32,
    event: &DecidedEvent,
    appended: &MemoryAppended,
) -> MemoryContent {
    // Until its keywords are found, its own words stand for them.
    let own = if appended.lacks_keywords { leading_content(&appended.content) } else { "" };
    let keywords = appended.keywords.iter().map(String::as_str);
    let named = [appended.subject.as_str()].into_iter().chain(keywords).chain((!own.is_empty()).then_some(own));
    let named = named.collect::<Vec<_>>().join(" ");
    let named = named.get(..named.floor_char_boundary(NAMED_BYTES)).unwrap_or_default();
    MemoryContent {
        event_id: Uuid::parse_str(&event.event_id).unwrap_or_default(),
        sequence: fact.sequence,
        position,
        updated_at: fact.at,
        thread_id: SqlKey::non_empty(&event.thread_id),
        user: SqlKey::non_empty(&appended.user),
        kind: appended.kind.as_str().into(),
        subject: appended.subject.as_str().into(),
        content: appended.content.as_str().into(),
        // Years of four digits only, which Postgres reads the same way.
        day: appended.day.parse::<Date>().ok().filter(|day| day.year() > 0).map(|day| day.to_string()),
        definition: definition_of(appended, &COLUMNS),
        named: named.into(),
    }
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::SealedSecret;
    use serde_json::Value;

    use super::*;
    use crate::projections::testing::{decision, project_all, sample_event_with};

    fn appended(content: &str, day: &str) -> Event {
        Event::MemoryAppended(MemoryAppended {
            memory_id: Uuid::from_u128(1).to_string(),
            kind: "person".into(),
            subject: "Sarah".into(),
            content: content.into(),
            keywords: vec!["launch".into(), "a\0b".into()],
            day: day.into(),
            secrets: vec![SealedSecret { name: "pin".into(), sealed: vec![1, 2, 3] }],
            ..Default::default()
        })
    }

    #[test]
    fn a_memory_says_what_it_was_last_told() {
        let changes = project_all([
            decision(3, "bob", [sample_event_with("t", "one", appended("likes tea", "2026-11-20"))]),
            decision(4, "bob", [sample_event_with("t", "two", appended("likes coffee", "2026-11-21"))]),
            decision(5, "bob", [sample_event_with("t", "two", appended("told again", "2026-11-21"))]),
            decision(6, "eve", [sample_event_with("t", "one", appended("of another agent", "no day"))]),
        ]);
        assert_eq!(changes.memories.len(), 2);
        let memory = &changes.memories[&("bob".into(), Uuid::from_u128(1))];
        assert_eq!((memory.sequence, memory.day.as_deref()), (4, Some("2026-11-21")));
        assert_eq!((memory.content.clone(), memory.named.clone()), ("likes coffee".into(), "Sarah launch a\0b".into()));
        let definition = r#"{"keywords":["launch","a\ufffdb"],"secrets":[{"name":"pin","sealed":"AQID"}]}"#;
        assert_eq!(
            serde_json::from_str::<Value>(memory.definition.as_str()).unwrap(),
            serde_json::from_str::<Value>(definition).unwrap()
        );
        assert_eq!(changes.memories[&("eve".into(), Uuid::from_u128(1))].day, None);
    }

    #[test]
    fn what_has_no_id_is_no_memory() {
        let nameless = Event::MemoryAppended(MemoryAppended { memory_id: "x".into(), ..Default::default() });
        assert!(project_all([decision(3, "bob", [sample_event_with("t", "one", nameless)])]).memories.is_empty());
    }
}
