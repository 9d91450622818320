//! Offers: threads that an agent suggested to a user, who accepts or declines.

use kairo_proto::{
    Body, Decided,
    about::Thread,
    v1::{AgentChoice, DecidedEvent, ThreadSuggested},
};
use kairo_read_model::stored::Key;
use uuid::Uuid;

use super::{Fact, decided, definition, turn};
use crate::changes::{Changes, Choice, Offer, Settled};

/// Fields that are queried beside the offer's id.
const COLUMNS: [&str; 2] = ["user", "thread_id"];
const OPTIONS: [&str; 2] = ["accept", "decline"];

pub fn project(fact: &Fact, changes: &mut Changes) {
    if let Body::AgentChoice(choice) = &fact.record.body {
        choose(fact, choice, changes);
    }
    for (position, event, what) in decided(fact) {
        let Decided::Thread(what) = what.about() else { continue };
        match what {
            Thread::Suggested(suggested) => offer(fact, position, event, suggested, changes),
            Thread::Matched(_) => {
                let settled = || Settled { sequence: fact.sequence, at: fact.at };
                changes.settled.entry(turn(fact, event)).or_insert_with(settled);
            }
            Thread::Created(_) | Thread::Summarized(_) | Thread::Archived(_) => {}
            Thread::Completed(_) | Thread::Compacted(_) => {}
        }
    }
}

fn offer(fact: &Fact, position: i32, event: &DecidedEvent, suggested: &ThreadSuggested, changes: &mut Changes) {
    let Ok(offer_id) = Uuid::parse_str(&event.event_id) else { return };
    changes.offers.entry(offer_id).or_insert_with(|| Offer {
        sequence: fact.sequence,
        position,
        agent: fact.owner.clone(),
        user: suggested.user.as_str().into(),
        correlation_id: turn(fact, event),
        thread_id: Key::some(&suggested.thread_id),
        definition: definition(suggested, &COLUMNS),
        offered_at: fact.at,
    });
}

fn choose(fact: &Fact, choice: &AgentChoice, changes: &mut Changes) {
    let Ok(offer_id) = Uuid::parse_str(&choice.offer_id) else { return };
    if OPTIONS.contains(&choice.option.as_str()) {
        changes.choices.push(Choice {
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
        super::testing::{decided_as, decision, projected, record},
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
        let suggested = decided_as("t", "offer", Event::ThreadSuggested(suggested));
        let offer_id = suggested.event_id.clone();
        let choice = |sequence, option: &str| {
            let body = AgentChoice { offer_id: offer_id.clone(), option: option.into(), ..Default::default() };
            record(sequence, "kairo.agent.bob.choice", body)
        };
        let matched = Event::ThreadMatched(ThreadMatched { thread_id: "other".into(), ..Default::default() });
        let changes = projected([
            decision(3, "bob", [suggested.clone()]),
            choice(4, "perhaps"),
            choice(5, "accept"),
            decision(6, "bob", [decided_as("t", "matched", matched)]),
        ]);
        let id = Uuid::parse_str(&offer_id).unwrap();
        let offer = &changes.offers[&id];
        assert_eq!((&offer.thread_id, offer.definition.as_str()), (&Some("other".into()), r#"{"reason":"mail"}"#));
        assert_eq!((changes.choices.len(), changes.choices[0].sequence), (1, 5));
        assert_eq!(changes.settled[&changes.offers[&id].correlation_id].sequence, 6);
    }
}
