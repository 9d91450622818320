//! Conversations: what users sent, what agents said, and what reached nobody.
//!
//! An agent's failure is no message of its own: the agent ends such a turn with words that tell of it, which are marked as that.

use kairo_core::{ids, media};
use kairo_proto::{
    About,
    about::{Agent, User},
    v1::{AgentMessage, DecidedEvent, Part, UserMessage, UserMessageUndelivered},
};
use kairo_read_model::stored::{Json, Key};
use serde_json::{Value, json};
use uuid::Uuid;

use super::Fact;
use crate::changes::{Changes, Delivery, Message, Role};

pub fn project(fact: &Fact, changes: &mut Changes) {
    match fact.record.body.about() {
        // What a chat program asks beside a conversation is in none.
        About::User(User::Message(message)) if is_aside(message) => {}
        About::User(User::Message(message)) => add(changes, fact.record.envelope.id, sent(fact, message)),
        About::User(User::Undelivered(undelivered)) => {
            add(changes, fact.record.envelope.id, refused(fact, undelivered))
        }
        About::Agent(Agent::Message(message)) => deliver(fact, message, changes),
        About::Decision(decision) => {
            for (event, position) in decision.events.iter().zip(0..) {
                let Some((id, message)) = said(fact, event, position) else { continue };
                add(changes, id, message);
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
fn add(changes: &mut Changes, event: Uuid, message: Message) {
    changes.messages.entry(event).or_insert(message);
}

fn sent(fact: &Fact, message: &UserMessage) -> Message {
    Message {
        role: Role::User,
        agent: fact.agent.clone(),
        // The subject is what was checked at the boundary.
        user: Some(fact.owner.clone()),
        thread_id: Key::some(&message.thread_id),
        message_id: Some(ids::message_id(&message.message_id, fact.record.envelope.id).as_str().into()),
        text: media::with_state(&message.text, &message.state).as_str().into(),
        parts: (!message.parts.is_empty()).then(|| Json::of(&message.parts.iter().map(part).collect::<Vec<_>>())),
        ..whole(fact)
    }
}

pub fn part(part: &Part) -> Value {
    json!({ "media_type": part.media_type, "digest": part.digest, "size": part.size, "name": part.name })
}

fn refused(fact: &Fact, undelivered: &UserMessageUndelivered) -> Message {
    Message {
        role: Role::Failure,
        agent: fact.agent.clone(),
        user: Some(fact.owner.clone()),
        message_id: Some(undelivered.message_id.as_str().into()),
        text: undelivered.reason.as_str().into(),
        last: true,
        ..whole(fact)
    }
}

/// The user's own event is what the delivery follows from.
fn deliver(fact: &Fact, message: &AgentMessage, changes: &mut Changes) {
    let Some(sent) = fact.record.envelope.causation_id else { return };
    changes.deliveries.entry(sent).or_insert_with(|| Delivery {
        sequence: fact.sequence,
        agent: fact.owner.clone(),
        thread_id: Key::some(&message.thread_id),
    });
}

fn said(fact: &Fact, event: &DecidedEvent, position: i32) -> Option<(Uuid, Message)> {
    // What is said to nobody, in a thread of work, is in no conversation.
    let say = event.say().filter(|say| !say.user.is_empty())?;
    let id = Uuid::parse_str(&event.event_id).ok()?;
    let message = Message {
        position,
        correlation_id: Uuid::parse_str(&event.correlation_id).unwrap_or(fact.record.envelope.correlation_id),
        // Words that tell of a failure are no answer.
        role: if say.failure.is_empty() { Role::Agent } else { Role::Failure },
        agent: fact.agent.clone(),
        user: Key::some(&say.user),
        thread_id: Key::some(&event.thread_id),
        message_id: Key::some(&say.message_id),
        text: say.text.as_str().into(),
        last: say.r#final,
        ending: Key::some(&say.ending),
        failure: Key::some(&say.failure),
        ..whole(fact)
    };
    Some((id, message))
}

/// A message that is the whole record.
pub fn whole(fact: &Fact) -> Message {
    let envelope = &fact.record.envelope;
    Message {
        sequence: fact.sequence,
        position: 0,
        ts: fact.at,
        correlation_id: envelope.correlation_id,
        role: Role::User,
        agent: None,
        user: None,
        thread_id: envelope.thread_id.as_deref().and_then(Key::some),
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
        super::testing::{decided, decision, message, projected, record},
        *,
    };

    #[test]
    fn a_conversation_is_what_was_sent_and_said() {
        let changes = projected([
            message(1, "ann", "bob"),
            decision(4, "bob", [decided("t", "think"), decided("t", "say"), decided("t", "call")]),
        ]);
        let mut said: Vec<_> = changes.messages.values().map(|m| (m.sequence, m.position, m.role, m.last)).collect();
        said.sort_by_key(|said| said.0);
        assert_eq!(said, [(1, 0, Role::User, false), (4, 1, Role::Agent, true)]);
    }

    #[test]
    fn images_and_audio_of_a_message_are_named_with_it() {
        let mut record = message(1, "ann", "bob");
        if let Body::UserMessage(message) = &mut record.body {
            let (media_type, digest) = ("image/png".to_owned(), "0f".repeat(32));
            message.parts = vec![Part { media_type, digest, size: 7, name: "a\0.png".to_owned() }];
        }
        let changes = projected([record]);
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
        let changes = projected([delivered(2, "bob"), delivered(3, "eve")]);
        let delivery = &changes.deliveries[&Uuid::from_u128(1)];
        assert_eq!((delivery.sequence, delivery.agent.as_str()), (2, "bob"));
    }

    #[test]
    fn who_sent_a_message_that_reached_nobody_learns_why() {
        let reason = "there is no agent named nobody";
        let body = UserMessageUndelivered { agent: "nobody".into(), reason: reason.into(), ..Default::default() };
        let changes = projected([record(2, "kairo.user.ann.undelivered", body)]);
        let message = changes.messages.values().next().unwrap();
        assert_eq!((message.role, &message.text, message.last), (Role::Failure, &reason.into(), true));
    }
}
