//! Every event, as it is shown.

use kairo_read_model::stored::{Json, Key, Time};

use super::Fact;
use crate::changes::{Changes, Event};

pub fn project(fact: &Fact, changes: &mut Changes) {
    changes.events.extend(fact.events.iter().map(|event| Event {
        sequence: fact.sequence,
        position: i32::try_from(event.position).unwrap_or(i32::MAX),
        event_id: event.event_id,
        ts: Time(event.ts),
        owner: fact.owner.clone(),
        agent: fact.agent.clone(),
        thread_id: event.thread_id.as_deref().and_then(Key::some),
        correlation_id: event.correlation_id,
        causation_id: event.causation_id,
        type_name: event.type_name.as_str().into(),
        source: event.source.as_str().into(),
        subject: event.subject.as_str().into(),
        event: Json::of(event),
    }));
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::UserMessage;

    use super::super::testing::{decided, decision, message, projected, record};

    #[test]
    fn a_decision_is_as_many_rows_as_it_holds_events() {
        let changes = projected([decision(7, "bob", [decided("t", "think"), decided("t", "say")])]);
        let places: Vec<_> = changes.events.iter().map(|event| (event.sequence, event.position)).collect();
        assert_eq!(places, [(7, 0), (7, 1)]);
    }

    #[test]
    fn a_users_message_is_also_the_addressed_agents() {
        let changes = projected([message(1, "ann", "bob"), message(2, "ann", "")]);
        let agents: Vec<_> = changes.events.iter().map(|event| event.agent.as_ref().map(|key| key.as_str())).collect();
        assert_eq!(agents, [Some("bob"), None]);
        assert!(changes.events.iter().all(|event| event.owner.as_str() == "ann"));
    }

    #[test]
    fn a_nul_does_not_reach_the_database() {
        let text = UserMessage { text: "a\0b".into(), ..Default::default() };
        let changes = projected([record(1, "kairo.user.ann.message", text)]);
        assert!(changes.events[0].event.as_str().contains("a\u{fffd}b"));
        assert!(!changes.events[0].event.as_str().contains("\\u0000"));
    }
}
