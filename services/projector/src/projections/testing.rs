//! Records for the tests of projections.

use kairo_core::{
    envelope::{Envelope, Origin},
    ids,
    record::Record,
    subjects::Service,
};
use kairo_proto::{
    Body,
    v1::{
        AgentAction, AgentDecision, AgentThought, DecidedEvent, Say, ThreadCreated, ToolCall, UserMessage,
        agent_action::Action, decided_event::Event,
    },
};

use crate::changes::TableChanges;

pub fn project_all<const N: usize>(records: [Record; N]) -> TableChanges {
    let mut changes = TableChanges::default();
    records.iter().for_each(|record| super::project_record(record, &mut changes));
    changes
}

pub fn record(sequence: u64, subject: &str, body: impl Into<Body>) -> Record {
    let body = body.into();
    let id = ids::from_parts("record", &[&sequence.to_string()]);
    let time = "2026-11-21T10:00:00Z".parse().unwrap();
    let mut envelope = Envelope::from_outside(id, Service::Gateway, Origin::User, time);
    envelope.type_name = body.type_name().to_owned();
    Record { sequence, subject: subject.to_owned(), envelope, body }
}

pub fn message(sequence: u64, user: &str, agent: &str) -> Record {
    let body = UserMessage { message_id: format!("m-{sequence}"), agent: agent.into(), ..Default::default() };
    record(sequence, &format!("kairo.user.{user}.message"), body)
}

pub fn decision<const N: usize>(sequence: u64, agent: &str, events: [DecidedEvent; N]) -> Record {
    let body = AgentDecision { events: events.into(), ..Default::default() };
    record(sequence, &format!("kairo.agent.{agent}.decision"), body)
}

/// An event of a decision: `think`, `say`, `call` or `thread`. The same thread and kind give the same id.
pub fn sample_event(thread: &str, kind: &str) -> DecidedEvent {
    let act = |action| Event::Action(AgentAction { action: Some(action) });
    let event = match kind {
        "think" => Event::Thought(AgentThought { text: "hm".into(), ..Default::default() }),
        "say" => {
            act(Action::Say(Say { text: "hello".into(), user: "ann".into(), r#final: true, ..Default::default() }))
        }
        "call" => {
            act(Action::ToolCall(ToolCall { tool: "tools.now".into(), arguments: "{}".into(), ..Default::default() }))
        }
        "thread" => Event::ThreadCreated(ThreadCreated { thread_id: thread.into(), ..Default::default() }),
        other => panic!("no event of kind {other}"),
    };
    sample_event_with(thread, kind, event)
}

/// Any event of a decision; the same thread and kind give the same id.
pub fn sample_event_with(thread: &str, kind: &str, event: Event) -> DecidedEvent {
    DecidedEvent {
        event_id: ids::from_parts("event", &[thread, kind]).to_string(),
        thread_id: thread.to_owned(),
        correlation_id: ids::from_parts("turn", &[thread]).to_string(),
        event: Some(event),
        ..Default::default()
    }
}
