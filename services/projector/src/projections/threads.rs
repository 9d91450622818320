//! Threads: begun by an event, and as young as the last event in them.

use kairo_proto::{
    Body,
    v1::{ThreadCreated, decided_event},
};
use kairo_read_model::stored::Key;

use super::Fact;
use crate::changes::{Changes, Thread, Touch};

pub fn project(fact: &Fact, changes: &mut Changes) {
    let Some(agent) = &fact.agent else { return };
    if let Body::AgentDecision(decision) = &fact.record.body {
        for event in &decision.events {
            let Some(decided_event::Event::ThreadCreated(created)) = &event.event else { continue };
            let Some(thread) = Key::some(&created.thread_id) else { continue };
            changes.threads.entry((agent.clone(), thread)).or_insert_with(|| begun(fact, created));
        }
    }
    for thread in fact.events.iter().filter_map(|event| event.thread_id.as_deref().and_then(Key::some)) {
        changes.touched.insert((agent.clone(), thread), Touch { sequence: fact.sequence, at: fact.at });
    }
}

fn begun(fact: &Fact, created: &ThreadCreated) -> Thread {
    Thread {
        sequence: fact.sequence,
        user: created.user.as_str().into(),
        kind: created.kind.as_str().into(),
        title: created.title.as_str().into(),
        created_at: fact.at,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{decided, decision, projected};

    #[test]
    fn a_thread_begins_once_and_ages_with_its_events() {
        let changes = projected([
            decision(3, "bob", [decided("t", "thread")]),
            decision(4, "bob", [decided("t", "thread"), decided("t", "say")]),
            decision(5, "eve", [decided("t", "say")]),
        ]);
        assert_eq!(changes.threads.len(), 1);
        assert_eq!(changes.threads[&("bob".into(), "t".into())].sequence, 3);
        assert_eq!(changes.touched[&("bob".into(), "t".into())].sequence, 4);
        assert_eq!(changes.touched[&("eve".into(), "t".into())].sequence, 5);
    }
}
