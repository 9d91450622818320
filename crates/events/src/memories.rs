//! The memory that an event belongs to.
//!
//! Steps of one decision that waited for models at once derived the same id for what they wrote, up to builds of epoch 10. Each of
//! those events is a memory of its own: whoever reads them gives all but the first another id, the same everywhere.

use std::{borrow::Cow, collections::BTreeSet};

use kairo_proto::v1::{AgentDecision, DecidedEvent, MemoryAppended, decided_event::Event};
use uuid::Uuid;

use crate::ids;

/// Memories that one step of those builds made, at most.
const OF_STEP: usize = 100;

/// The events of a decision, with memories that share an id they were given by mistake told apart.
pub fn with_distinct_ids(decision: &AgentDecision) -> Cow<'_, [DecidedEvent]> {
    let events = &decision.events;
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let again: Vec<usize> = (0..)
        .zip(events)
        .filter_map(|(at, event)| Some((at, memory_of(event)?.memory_id.as_str())))
        .filter(|(_, id)| !seen.insert(id))
        .map(|(at, _)| at)
        .collect();
    if again.is_empty() {
        return Cow::Borrowed(events);
    }
    let input = Uuid::parse_str(&decision.input_id).unwrap_or_default();
    let shared = ids_of_steps(ids::derive(input, "decision"), events.len());
    let mut events = events.clone();
    for at in again {
        let Some(event) = events.get_mut(at) else { continue };
        let event_id = event.event_id.clone();
        let Some(Event::MemoryAppended(memory)) = &mut event.event else { continue };
        if let Some(id) = Uuid::parse_str(&memory.memory_id).ok().filter(|id| shared.contains(id)) {
            memory.memory_id = ids::derive(id, &event_id).to_string();
        }
    }
    Cow::Owned(events)
}

/// The ids that steps of a decision with so many events may have given to what they wrote.
fn ids_of_steps(decision: Uuid, events: usize) -> BTreeSet<Uuid> {
    let of_step = |step: Uuid| {
        let listed = (0..OF_STEP).map(move |at| ids::derive(step, &format!("memory/{at}")));
        listed.chain([ids::derive(step, "memory")])
    };
    (0..=events).flat_map(|at| of_step(ids::derive(decision, &format!("step/{at}")))).collect()
}

fn memory_of(event: &DecidedEvent) -> Option<&MemoryAppended> {
    let Some(Event::MemoryAppended(memory)) = &event.event else { return None };
    Some(memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INPUT: Uuid = Uuid::from_u128(7);

    fn event(number: usize, memory_id: Uuid) -> DecidedEvent {
        let memory = MemoryAppended { memory_id: memory_id.to_string(), ..Default::default() };
        DecidedEvent {
            event_id: ids::derive(INPUT, &number.to_string()).to_string(),
            event: Some(Event::MemoryAppended(memory)),
            ..Default::default()
        }
    }

    fn ids_in(events: &[DecidedEvent]) -> Vec<String> {
        events.iter().filter_map(memory_of).map(|memory| memory.memory_id.clone()).collect()
    }

    #[test]
    fn memories_of_steps_that_share_an_id_are_told_apart_and_nothing_else_is() {
        let step = ids::derive(ids::derive(INPUT, "decision"), "step/3");
        let appended = ids::derive(step, "memory");
        let listed = ids::derive(step, "memory/2");
        // A person is one memory, however often it is written.
        let person = ids::from_parts("memory", &["ann", "person", "sarah"]);
        let written = [appended, person, appended, listed, person, appended, listed];
        let events: Vec<_> = written.into_iter().enumerate().map(|(number, id)| event(number, id)).collect();
        let decision = AgentDecision { input_id: INPUT.to_string(), events, ..Default::default() };
        let told = with_distinct_ids(&decision);
        let ids = ids_in(&told);
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 6, "five of steps, and a person");
        assert_eq!((&ids[0], &ids[1], &ids[4]), (&appended.to_string(), &person.to_string(), &person.to_string()));
        assert_eq!(told, with_distinct_ids(&decision), "the same each time");
        let of_another = AgentDecision { input_id: Uuid::from_u128(8).to_string(), ..decision.clone() };
        assert_eq!(ids_in(&with_distinct_ids(&of_another))[2], appended.to_string());
        let first = AgentDecision { events: decision.events[..2].to_vec(), ..decision.clone() };
        assert!(matches!(with_distinct_ids(&first), Cow::Borrowed(_)));
    }
}
