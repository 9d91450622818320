//! Conversations: what users sent, what agents said, and what reached nobody.
//!
//! An agent's failure is no message of its own: the agent ends such a turn with words that tell of it, which are marked as that.

use kairo_core::{ids, media};
use kairo_proto::{
    About,
    about::{Agent, User},
    v1::{AgentMessage, DecidedEvent, Part, UserMessage, UserMessageUndelivered},
};
use kairo_read_model::sql_values::{SqlJson, SqlKey};
use serde_json::{Value, json};
use uuid::Uuid;

use super::ProjectedRecord;
use crate::changes::{ConversationMessage, MessageDelivery, SpeakerRole, TableChanges};

pub fn project(fact: &ProjectedRecord, changes: &mut TableChanges) {
    match fact.record.body.about() {
        // What a chat program asks beside a conversation is in none.
        About::User(User::Message(message)) if is_aside(message) => {}
        About::User(User::Message(message)) => {
            add_message(changes, fact.record.envelope.id, user_message(fact, message))
        }
        About::User(User::Undelivered(undelivered)) => {
            add_message(changes, fact.record.envelope.id, undelivered_message(fact, undelivered))
        }
        About::Agent(Agent::Message(message)) => project_delivery(fact, message, changes),
        About::Decision(decision) => {
            for (event, position) in decision.events.iter().zip(0..) {
                let Some((id, message)) = agent_message(fact, event, position) else { continue };
                add_message(changes, id, message);
            }
        }
        About::User(User::Switched(_) | User::Choice(_) | User::Approval(_) | User::Command(_)) => {}
        // Whoever builds the read model anew finds nothing of them.
        About::User(User::Forget(_) | User::Forgotten(_)) | About::Agent(Agent::Forgotten(_)) => {}
        About::Agent(Agent::Defined(_) | Agent::Choice(_) | Agent::Approval(_) | Agent::Command(_)) => {}
        // Conversations that were had elsewhere have a projection of their own.
        About::Agent(Agent::Request(_) | Agent::Answer(_) | Agent::Imported(_)) => {}
        About::Decided(_) | About::Outside(_) | About::Tool(_) | About::Process(_) => {}
        About::System(_) | About::Live(_) => {}
    }
}

fn is_aside(message: &UserMessage) -> bool {
    message.chat.as_ref().is_some_and(|chat| chat.is_aside)
}

/// The first telling counts.
fn add_message(changes: &mut TableChanges, event: Uuid, message: ConversationMessage) {
    changes.messages.entry(event).or_insert(message);
}

fn user_message(fact: &ProjectedRecord, message: &UserMessage) -> ConversationMessage {
    ConversationMessage {
        role: SpeakerRole::User,
        agent: fact.agent.clone(),
        // The subject is what was checked at the boundary.
        user: Some(fact.owner.clone()),
        thread_id: SqlKey::non_empty(&message.thread_id),
        message_id: Some(ids::message_id(&message.message_id, fact.record.envelope.id).as_str().into()),
        text: media::with_state(&message.text, &message.state).as_str().into(),
        parts: (!message.parts.is_empty())
            .then(|| SqlJson::from_value(&message.parts.iter().map(part_json).collect::<Vec<_>>())),
        ..base_message(fact)
    }
}

pub fn part_json(part: &Part) -> Value {
    json!({ "media_type": part.media_type, "digest": part.digest, "size": part.size, "name": part.name })
}

fn undelivered_message(fact: &ProjectedRecord, undelivered: &UserMessageUndelivered) -> ConversationMessage {
    ConversationMessage {
        role: SpeakerRole::Failure,
        agent: fact.agent.clone(),
        user: Some(fact.owner.clone()),
        message_id: Some(undelivered.message_id.as_str().into()),
        text: undelivered.reason.as_str().into(),
        last: true,
        ..base_message(fact)
    }
}

/// The user's own event is what the delivery follows from.
fn project_delivery(fact: &ProjectedRecord, message: &AgentMessage, changes: &mut TableChanges) {
    let Some(sent) = fact.record.envelope.causation_id else { return };
    changes.deliveries.entry(sent).or_insert_with(|| MessageDelivery {
        sequence: fact.sequence,
        agent: fact.owner.clone(),
        thread_id: SqlKey::non_empty(&message.thread_id),
    });
}

fn agent_message(fact: &ProjectedRecord, event: &DecidedEvent, position: i32) -> Option<(Uuid, ConversationMessage)> {
    // What is said to nobody, in a thread of work, is in no conversation.
    let say = event.say().filter(|say| !say.user.is_empty())?;
    let id = Uuid::parse_str(&event.event_id).ok()?;
    let message = ConversationMessage {
        position,
        correlation_id: Uuid::parse_str(&event.correlation_id).unwrap_or(fact.record.envelope.correlation_id),
        // Words that tell of a failure are no answer.
        role: if say.failure.is_empty() { SpeakerRole::Agent } else { SpeakerRole::Failure },
        agent: fact.agent.clone(),
        user: SqlKey::non_empty(&say.user),
        thread_id: SqlKey::non_empty(&event.thread_id),
        message_id: SqlKey::non_empty(&say.message_id),
        text: say.text.as_str().into(),
        last: say.r#final,
        ending: SqlKey::non_empty(&say.ending),
        failure: SqlKey::non_empty(&say.failure),
        ..base_message(fact)
    };
    Some((id, message))
}

/// A message that is the whole record.
pub fn base_message(fact: &ProjectedRecord) -> ConversationMessage {
    let envelope = &fact.record.envelope;
    ConversationMessage {
        sequence: fact.sequence,
        position: 0,
        ts: fact.at,
        correlation_id: envelope.correlation_id,
        role: SpeakerRole::User,
        agent: None,
        user: None,
        thread_id: envelope.thread_id.as_deref().and_then(SqlKey::non_empty),
        message_id: None,
        text: "".into(),
        parts: None,
        last: false,
        ending: None,
        failure: None,
    }
}

#[cfg(test)]
mod tests {
    use kairo_proto::{
        Body,
        v1::{AgentMessage, UserMessageUndelivered},
    };

    use super::{
        super::testing::{decision, message, project_all, record, sample_event},
        *,
    };

    #[test]
    fn a_conversation_is_what_was_sent_and_said() {
        let changes = project_all([
            message(1, "ann", "bob"),
            decision(4, "bob", [sample_event("t", "think"), sample_event("t", "say"), sample_event("t", "call")]),
        ]);
        let mut said: Vec<_> = changes.messages.values().map(|m| (m.sequence, m.position, m.role, m.last)).collect();
        said.sort_by_key(|said| said.0);
        assert_eq!(said, [(1, 0, SpeakerRole::User, false), (4, 1, SpeakerRole::Agent, true)]);
    }

    #[test]
    fn images_and_audio_of_a_message_are_named_with_it() {
        let mut record = message(1, "ann", "bob");
        if let Body::UserMessage(message) = &mut record.body {
            let media_type = "image/png".to_owned();
            let digest = "0f".repeat(32);
            message.parts = vec![Part { media_type, digest, size: 7, name: "a\0.png".to_owned() }];
        }
        let changes = project_all([record]);
        let parts = changes.messages.values().next().unwrap().parts.as_ref().unwrap().as_str();
        let digest = "0f".repeat(32);
        let expected = json!([{ "media_type": "image/png", "digest": digest, "size": 7, "name": "a\u{fffd}.png" }]);
        assert_eq!(serde_json::from_str::<Value>(parts).unwrap(), expected);
    }

    #[test]
    fn the_first_delivery_counts() {
        let delivered = |sequence, agent| {
            let message = AgentMessage { message_id: "m".into(), user: "ann".into(), ..Default::default() };
            let mut record = record(sequence, &format!("kairo.agent.{agent}.message"), message);
            record.envelope.causation_id = Some(Uuid::from_u128(1));
            record
        };
        let changes = project_all([delivered(2, "bob"), delivered(3, "eve")]);
        let delivery = &changes.deliveries[&Uuid::from_u128(1)];
        assert_eq!((delivery.sequence, delivery.agent.as_str()), (2, "bob"));
    }

    #[test]
    fn who_sent_a_message_that_reached_nobody_learns_why() {
        let reason = "there is no agent named nobody";
        let body = UserMessageUndelivered { agent: "nobody".into(), reason: reason.into(), ..Default::default() };
        let changes = project_all([record(2, "kairo.user.ann.undelivered", body)]);
        let message = changes.messages.values().next().unwrap();
        assert_eq!((message.role, &message.text, message.last), (SpeakerRole::Failure, &reason.into(), true));
    }
}
