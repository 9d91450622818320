//! Projects a record into each read model. Pure: a record in, changed rows out.

mod actions;
mod agents;
mod approvals;
mod chains;
mod conversations;
mod events;
mod importing;
mod inner_state;
mod memories;
mod offers;
mod processes;
mod tasks;
mod teams;
mod threads;
mod usage;

use kairo_core::{
    event_json::{self, EventHeading},
    record::Record,
};
use kairo_proto::{
    About, Body,
    about::User,
    v1::{AgentDecision, DecidedEvent, decided_event::Event},
};
use kairo_read_model::sql_values::{SqlJson, SqlKey, SqlText, Time};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use crate::changes::{ReportedProgress, TableChanges};

/// A record, with what several projections ask about it.
struct ProjectedRecord<'r> {
    record: &'r Record,
    sequence: i64,
    at: Time,
    /// The third token of the subject.
    owner: SqlKey,
    /// The agent it concerns, if any.
    agent: Option<SqlKey>,
    /// The headings of its events.
    events: Vec<EventHeading>,
}

impl<'r> ProjectedRecord<'r> {
    fn from_record(record: &'r Record) -> Self {
        let mut tokens = record.subject.split('.').skip(1);
        let noun = tokens.next().unwrap_or_default();
        let owner: SqlKey = tokens.next().unwrap_or_default().into();
        let agent = match noun {
            "user" => addressed_agent(&record.body).and_then(SqlKey::non_empty),
            "system" => None,
            _ => Some(owner.clone()),
        };
        Self {
            record,
            sequence: to_bigint(record.sequence),
            at: Time(record.envelope.time),
            owner,
            agent,
            events: event_json::headings(record),
        }
    }
}

/// The agent that a user addresses.
fn addressed_agent(body: &Body) -> Option<&str> {
    let About::User(said) = body.about() else { return None };
    Some(match said {
        User::Message(message) => &message.agent,
        User::Undelivered(message) => &message.agent,
        User::Switched(switched) => &switched.agent,
        User::Forget(_) | User::Forgotten(_) => return None,
        User::Choice(choice) => &choice.agent,
        User::Approval(approval) => &approval.agent,
        User::Command(command) => &command.agent,
    })
}

/// A number as Postgres counts; neither sequences nor bytes reach what does not fit.
fn to_bigint(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The events of a decision, with their positions.
fn decided_events<'f>(fact: &'f ProjectedRecord<'_>) -> impl Iterator<Item = (i32, &'f DecidedEvent, &'f Event)> {
    let events = AgentDecision::of(&fact.record.body).map_or(&[][..], |decision| &decision.events);
    (0..).zip(events).filter_map(|(position, event)| Some((position, event, event.event.as_ref()?)))
}

/// The turn that a decided event belongs to: the event of the message that began it.
fn turn_of(fact: &ProjectedRecord, event: &DecidedEvent) -> Uuid {
    Uuid::parse_str(&event.correlation_id).unwrap_or(fact.record.envelope.correlation_id)
}

/// Returns the fields of an event that have no column of their own, by the names of the contract: they are only
/// displayed.
fn definition_of(event: &impl Serialize, columns: &[&str]) -> SqlJson {
    let mut definition = serde_json::to_value(event).unwrap_or_default();
    if let Value::Object(fields) = &mut definition {
        fields.retain(|field, _| !columns.contains(&field.as_str()));
    }
    SqlJson::from_value(&definition)
}

/// None for an empty text.
fn non_empty_text(text: &str) -> Option<SqlText> {
    (!text.is_empty()).then(|| text.into())
}

/// Returns the user or key that entered it, as clients see it.
fn entered_by(fact: &ProjectedRecord) -> Option<SqlText> {
    fact.record.envelope.entered_by.as_ref().map(|by| by.to_string().as_str().into())
}

/// At most so many bytes of a text, saying so when it was cut.
fn truncate_text(text: &str, bytes: usize) -> SqlText {
    match text.get(..text.floor_char_boundary(bytes)) {
        Some(beginning) if beginning.len() < text.len() => format!("{beginning}…").as_str().into(),
        _ => text.into(),
    }
}

/// Builds a progress report. Fractions outside 0 to 1 are dropped: Postgres would accept them, but clients could not
/// read them.
fn progress_report(at: Time, fraction: Option<f64>, message: &str) -> ReportedProgress {
    let fraction = fraction.filter(|fraction| (0.0..=1.0).contains(fraction));
    ReportedProgress { at, fraction, message: message.into() }
}

/// Adds what a record changes.
pub fn project_record(record: &Record, changes: &mut TableChanges) {
    let fact = ProjectedRecord::from_record(record);
    agents::project(&fact, changes);
    teams::project(&fact, changes);
    threads::project(&fact, changes);
    conversations::project(&fact, changes);
    importing::project(&fact, changes);
    actions::project(&fact, changes);
    processes::project(&fact, changes);
    chains::project(&fact, changes);
    approvals::project(&fact, changes);
    offers::project(&fact, changes);
    tasks::project(&fact, changes);
    memories::project(&fact, changes);
    inner_state::project(&fact, changes);
    usage::project(&fact, changes);
    events::project(&fact, changes);
}

#[cfg(test)]
pub mod testing;
