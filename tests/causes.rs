//! Following events back to what they follow from. In the form in which clients see them, the cause of each event is an event
//! that they can get, and whoever goes on from cause to cause comes to an input.

use std::collections::{BTreeMap, BTreeSet};

use kairo_core::{
    event_json::{EventJson, events},
    record::Record,
    subjects::TASK_TRIGGERED,
};
use kairo_proto::v1;
use uuid::Uuid;

/// The types that enter from outside or exist from the beginning, and so have no cause.
const INPUTS: &[&str] = &[
    v1::UserMessage::TYPE,
    v1::UserChoice::TYPE,
    v1::UserApproval::TYPE,
    v1::UserCommand::TYPE,
    v1::UserForget::TYPE,
    v1::AgentDefined::TYPE,
    v1::AgentImported::TYPE,
    v1::TaskDue::TYPE,
    v1::TaskTriggered::TYPE,
    v1::EmailReceived::TYPE,
    v1::ToolCatalogue::TYPE,
    v1::ProcessCapabilities::TYPE,
    v1::DecisionBasis::TYPE,
    v1::Epoch::TYPE,
    v1::DeadLetter::TYPE,
    v1::DeadLetterRetry::TYPE,
];

/// Every event whose cause no client can get, and every one that does not lead back to an input.
pub fn gaps(records: &[Record]) -> Vec<String> {
    let all: Vec<EventJson> = records.iter().flat_map(events).collect();
    let mut known: BTreeMap<Uuid, &EventJson> = BTreeMap::new();
    for event in &all {
        known.entry(event.event_id).or_insert(event);
    }
    all.iter().filter_map(|event| gap(event, &known)).collect()
}

fn gap(event: &EventJson, known: &BTreeMap<Uuid, &EventJson>) -> Option<String> {
    let told = |event: &EventJson| format!("{} {}.{}", event.type_name, event.sequence, event.position);
    let (mut at, mut seen) = (event, BTreeSet::new());
    loop {
        if !seen.insert(at.event_id) {
            return Some(format!("{} follows from itself, by {}", told(event), told(at)));
        }
        // What another system said has the id that it chose, and need not be an event of Kairo's.
        let cause = at.causation_id.filter(|_| !at.subject.ends_with(TASK_TRIGGERED.verb));
        let Some(cause) = cause else {
            let is_input = INPUTS.contains(&at.type_name.as_str());
            return (!is_input).then(|| format!("{} leads back to {}, which is no input", told(event), told(at)));
        };
        match known.get(&cause) {
            Some(next) => at = next,
            None => return Some(format!("the cause of {} is {cause}, which is no event ({})", told(at), told(event))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_and_a_circle_are_found() {
        let event = |id: u128, cause: Option<u128>, type_name: &str| -> EventJson {
            serde_json::from_value(serde_json::json!({
                "event_id": Uuid::from_u128(id), "ts": "2026-01-01T00:00:00Z", "source": "internal", "modality": "text",
                "payload": {}, "meta": { "tags": [] }, "type": type_name, "sequence": id, "position": 0,
                "subject": "kairo.agent.bob.decision", "correlation_id": Uuid::nil(),
                "causation_id": cause.map(Uuid::from_u128), "thread_id": null,
            }))
            .unwrap()
        };
        let events = [
            event(1, None, v1::UserMessage::TYPE),
            event(2, Some(1), v1::AgentMessage::TYPE),
            event(3, Some(9), v1::AgentAction::TYPE),
            event(4, None, v1::AgentAction::TYPE),
            event(5, Some(5), v1::AgentAction::TYPE),
        ];
        let known = events.iter().map(|event| (event.event_id, event)).collect();
        let found: Vec<bool> = events.iter().map(|event| gap(event, &known).is_some()).collect();
        assert_eq!(found, [false, false, true, true, true]);
    }
}
