//! Offers: threads that an agent suggested to a user, who accepts or declines.

use kairo_proto::{
    Body, Decided,
    about::Thread,
    v1::{AgentChoice, DecidedEvent, ThreadSuggested},
};
use kairo_read_model::sql_values::SqlKey;
use uuid::Uuid;

use super::{ProjectedRecord, decided_events, definition_of, turn_of};
use crate::changes::{OfferChoice, OfferCreation, OfferSettlement, TableChanges};

/// Fields that are queried beside the offer's id.
const COLUMNS: [&str; 2] = ["user", "thread_id"];
const OPTIONS: [&str; 2] = ["accept", "decline"];

pub fn project(fact: &ProjectedRecord, changes: &mut TableChanges) {
    if let Body::AgentChoice(choice) = &fact.record.body {
        project_choice(fact, choice, changes);
    }
    for (position, event, what) in decided_events(fact) {
        let Decided::Thread(what) = what.about() else { continue };
        match what {
            Thread::Suggested(suggested) => project_offer(fact, position, event, suggested, changes),
            Thread::Matched(_) => {
                let settled = || OfferSettlement { sequence: fact.sequence, at: fact.at };
                changes.settled.entry(turn_of(fact, event)).or_insert_with(settled);
            }
            Thread::Created(_) | Thread::Summarized(_) | Thread::Archived(_) => {}
            Thread::Completed(_) | Thread::Compacted(_) => {}
        }
    }
}

fn project_offer(
    fact: &ProjectedRecord,
    position: i32,
    event: &DecidedEvent,
    suggested: &ThreadSuggested,
    changes: &mut TableChanges,
) {
    let Ok(offer_id) = Uuid::parse_str(&event.event_id) else { return };
    changes.offers.entry(offer_id).or_insert_with(|| OfferCreation {
        sequence: fact.sequence,
        position,
        agent: fact.owner.clone(),
        user: suggested.user.as_str().into(),
        correlation_id: turn_of(fact, event),
        thread_id: SqlKey::non_empty(&suggested.thread_id),
        definition: definition_of(suggested, &COLUMNS),
        offered_at: fact.at,
    });
}

fn project_choice(fact: &ProjectedRecord, choice: &AgentChoice, changes: &mut TableChanges) {
    let Ok(offer_id) = Uuid::parse_str(&choice.offer_id) else { return };
    if OPTIONS.contains(&choice.option.as_str()) {
        changes.choices.push(OfferChoice {
            sequence: fact.sequence,
            offer_id,
            agent: fact.owner.clone(),
            user: choice.user.as_str().into(),
            option: choice.option.as_str().into(),
            at: fact.at,
        });
    }
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::{ThreadMatched, decided_event::Event};

    use super::{
        super::testing::{decision, project_all, record, sample_event_with},
        *,
    };

    #[test]
    fn an_offer_is_made_and_chosen_from_and_the_message_is_placed() {
        let suggested = ThreadSuggested {
            user: "ann".into(),
            thread_id: "other".into(),
            reason: "mail".into(),
            ..Default::default()
        };
        let suggested = sample_event_with("t", "offer", Event::ThreadSuggested(suggested));
        let offer_id = suggested.event_id.clone();
        let choice = |sequence, option: &str| {
            let body = AgentChoice { offer_id: offer_id.clone(), option: option.into(), ..Default::default() };
            record(sequence, "kairo.agent.bob.choice", body)
        };
        let matched = Event::ThreadMatched(ThreadMatched { thread_id: "other".into(), ..Default::default() });
        let changes = project_all([
            decision(3, "bob", [suggested.clone()]),
            choice(4, "perhaps"),
            choice(5, "accept"),
            decision(6, "bob", [sample_event_with("t", "matched", matched)]),
        ]);
        let id = Uuid::parse_str(&offer_id).unwrap();
        let offer = &changes.offers[&id];
        assert_eq!((&offer.thread_id, offer.definition.as_str()), (&Some("other".into()), r#"{"reason":"mail"}"#));
        assert_eq!((changes.choices.len(), changes.choices[0].sequence), (1, 5));
        assert_eq!(changes.settled[&changes.offers[&id].correlation_id].sequence, 6);
    }
}
