//! Conversations that were had elsewhere: threads and messages of the agent from here on. Each is told once, whatever becomes of
//! it later, so that the same document again changes nothing.

use jiff::Timestamp;
use kairo_proto::{
    Body,
    v1::{AgentImported, ImportedMessage},
    words::{MessageRole, ThreadKind},
};
use kairo_read_model::sql_values::{SqlJson, SqlKey, Time};
use uuid::Uuid;

use super::{ProjectedRecord, conversations};
use crate::changes::{ConversationMessage, MessageDelivery, SpeakerRole, TableChanges, ThreadCreation};

pub fn project(fact: &ProjectedRecord, changes: &mut TableChanges) {
    let Body::AgentImported(imported) = &fact.record.body else { return };
    for named in &imported.threads {
        let Some(thread) = SqlKey::non_empty(&named.thread_id) else { continue };
        let begun = || ThreadCreation {
            sequence: fact.sequence,
            user: imported.user.as_str().into(),
            kind: ThreadKind::Topic.known_word().into(),
            title: named.title.as_str().into(),
            summary: named.summary.as_str().into(),
            created_at: fact.at,
        };
        changes.threads.entry((fact.owner.clone(), thread)).or_insert_with(begun);
    }
    for (message, position) in imported.messages.iter().zip(0..) {
        let Ok(id) = Uuid::parse_str(&message.message_id) else { continue };
        let Some(said) = imported_message(fact, imported, message, position) else { continue };
        let agent = fact.owner.clone();
        let thread_id = said.thread_id.clone();
        changes.messages.entry(id).or_insert(said);
        // It is in its thread from here on.
        changes.deliveries.entry(id).or_insert(MessageDelivery { sequence: fact.sequence, agent, thread_id });
    }
}

fn imported_message(
    fact: &ProjectedRecord,
    imported: &AgentImported,
    message: &ImportedMessage,
    position: i32,
) -> Option<ConversationMessage> {
    let role = match message.role_word() {
        MessageRole::User => SpeakerRole::User,
        MessageRole::Agent => SpeakerRole::Agent,
        MessageRole::Failure | MessageRole::Unknown(_) => return None,
    };
    Some(ConversationMessage {
        position,
        // When it was said, where that is known.
        ts: message.time.parse::<Timestamp>().map_or(fact.at, Time),
        role,
        agent: Some(fact.owner.clone()),
        user: SqlKey::non_empty(&imported.user),
        thread_id: SqlKey::non_empty(&message.thread_id),
        text: message.text.as_str().into(),
        parts: (!message.parts.is_empty())
            .then(|| SqlJson::from_value(&message.parts.iter().map(conversations::part_json).collect::<Vec<_>>())),
        last: role == SpeakerRole::Agent,
        ..conversations::base_message(fact)
    })
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::ImportedThread;

    use super::{
        super::testing::{project_all, record},
        *,
    };

    fn dinner(sequence: u64) -> kairo_core::record::Record {
        let message = |id: u128, role: &str, time: &str| ImportedMessage {
            message_id: Uuid::from_u128(id).to_string(),
            thread_id: "t".into(),
            role: role.into(),
            text: role.into(),
            time: time.into(),
            ..Default::default()
        };
        let thread = ImportedThread { thread_id: "t".into(), title: "Dinner".into(), summary: "food".into() };
        let messages =
            vec![message(1, "user", "2020-01-01T10:00:00Z"), message(2, "agent", ""), message(3, "cook", "")];
        let body = AgentImported { user: "ann".into(), threads: vec![thread], messages, ..Default::default() };
        record(sequence, "kairo.agent.bob.imported", body)
    }

    #[test]
    fn what_was_said_elsewhere_is_a_thread_with_its_messages() {
        let changes = project_all([dinner(5)]);
        let thread = &changes.threads[&("bob".into(), "t".into())];
        assert_eq!((thread.title.as_str(), thread.summary.as_str(), thread.kind.as_str()), ("Dinner", "food", "topic"));
        let mut said: Vec<_> = changes.messages.values().collect();
        said.sort_by_key(|message| message.position);
        let told: Vec<_> = said.iter().map(|it| (it.sequence, it.position, it.role, it.ts.0.to_string())).collect();
        let then = "2020-01-01T10:00:00Z".to_owned();
        let now = "2026-11-21T10:00:00Z".to_owned();
        assert_eq!(told, [(5, 0, SpeakerRole::User, then), (5, 1, SpeakerRole::Agent, now)]);
        assert!(said.iter().all(|it| it.user == Some("ann".into()) && it.thread_id == Some("t".into())));
        assert_eq!(changes.deliveries.len(), 2);
        assert!(changes.touched.is_empty() && changes.described.is_empty());
    }

    #[test]
    fn the_same_again_changes_nothing() {
        let once = project_all([dinner(5)]);
        let twice = project_all([dinner(5), dinner(9)]);
        assert_eq!((once.messages, once.threads, once.deliveries), (twice.messages, twice.threads, twice.deliveries));
    }
}
