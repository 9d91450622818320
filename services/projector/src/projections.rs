//! What each read model makes of a record. Pure: a record in, changed rows out.

mod actions;
mod agents;
mod conversations;
mod events;
mod processes;
mod threads;

use kairo_core::{
    event_json::{self, EventJson},
    record::Record,
};
use kairo_proto::Body;
use kairo_read_model::stored::{Key, Time};

use crate::changes::{Changes, Progress};

/// A record, with what several projections ask about it.
struct Fact<'r> {
    record: &'r Record,
    sequence: i64,
    at: Time,
    /// The third token of the subject.
    owner: Key,
    /// The agent it concerns, if any.
    agent: Option<Key>,
    /// Its events in seed 002's form.
    events: Vec<EventJson>,
}

impl<'r> Fact<'r> {
    fn of(record: &'r Record) -> Self {
        let mut tokens = record.subject.split('.').skip(1);
        let noun = tokens.next().unwrap_or_default();
        let owner: Key = tokens.next().unwrap_or_default().into();
        let agent = match noun {
            "user" => addressee(&record.body).and_then(Key::some),
            "system" => None,
            _ => Some(owner.clone()),
        };
        Self {
            record,
            sequence: number(record.sequence),
            at: Time(record.envelope.time),
            owner,
            agent,
            events: event_json::events(record),
        }
    }
}

/// The agent that a user addresses.
fn addressee(body: &Body) -> Option<&str> {
    match body {
        Body::UserMessage(message) => Some(&message.agent),
        Body::UserMessageUndelivered(message) => Some(&message.agent),
        Body::UserChoice(choice) => Some(&choice.agent),
        Body::UserApproval(approval) => Some(&approval.agent),
        Body::UserCommand(command) => Some(&command.agent),
        _ => None,
    }
}

/// A number as Postgres counts; neither sequences nor bytes reach what does not fit.
fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// How far something says it is. What is no fraction, Postgres would take, and clients could not read.
fn progress(at: Time, fraction: Option<f64>, message: &str) -> Progress {
    let fraction = fraction.filter(|fraction| (0.0..=1.0).contains(fraction));
    Progress { at, fraction, message: message.into() }
}

/// Adds what a record changes.
pub fn project(record: &Record, changes: &mut Changes) {
    let fact = Fact::of(record);
    agents::project(&fact, changes);
    threads::project(&fact, changes);
    conversations::project(&fact, changes);
    actions::project(&fact, changes);
    processes::project(&fact, changes);
    events::project(&fact, changes);
}

#[cfg(test)]
mod testing;
