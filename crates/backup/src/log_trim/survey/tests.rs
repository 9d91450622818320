use jiff::Timestamp;
use kairo_core::{
    envelope::{Envelope, Origin},
    subjects::Service,
};
use kairo_proto::{
    Body,
    v1::{
        AgentAction, AgentDecision, AgentDefined, AgentForgotten, AgentMessage, DecidedEvent, ToolCall, ToolResult,
        agent_action::Action, decided_event::Event,
    },
};

use super::*;
use crate::archive_reader;

fn line(sequence: u64, subject: &str, body: impl Into<Body>) -> MessageLine {
    let body = body.into();
    let id = Uuid::from_u128(u128::from(sequence));
    let envelope = Envelope::from_outside(id, Service::Gateway, Origin::System, Timestamp::UNIX_EPOCH);
    let envelope = Envelope { type_name: body.type_name().to_owned(), ..envelope };
    let headers = envelope.to_headers().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let subject = format!("kairo.{subject}.3");
    MessageLine { sequence, stored: Timestamp::UNIX_EPOCH, subject, headers, data: body.encode() }
}

fn calls(action: Uuid) -> AgentDecision {
    let event = Event::Action(AgentAction { action: Some(Action::ToolCall(ToolCall::default())) });
    let event = DecidedEvent { event_id: action.to_string(), event: Some(event), ..Default::default() };
    AgentDecision { events: vec![event], ..Default::default() }
}

fn carried(line: &MessageLine, sequence: u64, from: u64) -> MessageLine {
    MessageLine { sequence, headers: carried_headers(line, from), ..line.clone() }
}

fn of(cut: u64, lines: &[MessageLine]) -> Survey {
    let mut survey = Survey::new(cut);
    lines.iter().for_each(|line| survey.apply_line(line));
    survey
}

/// Returns the sequence of each message to carry, the sequence at which it stood first, and the guard.
fn to_carry(survey: &Survey) -> Vec<(u64, u64, u64)> {
    survey.messages_to_carry().into_iter().map(|(at, Carry { from, guard })| (at, from, guard)).collect()
}

#[test]
fn what_stands_last_up_to_the_cut_is_carried_and_what_is_said_again_behind_it_is_not() {
    let lines = [
        line(1, "agent.ann.defined", AgentDefined::default()),
        line(2, "agent.ann.defined", AgentDefined::default()),
        line(3, "agent.ann.message", AgentMessage::default()),
        line(4, "agent.ann.decision", AgentDecision::default()),
        line(6, "agent.ann.decision", AgentDecision::default()),
    ];
    assert_eq!(to_carry(&of(5, &lines)), [(2, 2, 2)]);
    assert_eq!(to_carry(&of(6, &lines)), [(2, 2, 2), (6, 6, 6)]);
}

#[test]
fn of_a_subject_that_is_read_whole_each_message_is_carried_once_however_often_it_is_begun() {
    let all = [1, 2, 3].map(|sequence| line(sequence, "agent.ann.forgotten", AgentForgotten::default()));
    let [one, two, _] = &all;
    let killed = [&all[..], &[carried(one, 8, 1), carried(two, 9, 2)]].concat();
    assert_eq!(to_carry(&of(3, &all)), [(1, 1, 3), (2, 2, 3), (3, 3, 3)]);
    assert_eq!(to_carry(&of(3, &killed)), [(3, 3, 9)]);
    assert_eq!(of(3, &killed).required_positions().0, &BTreeMap::from([(3, 9)]), "and agents are to know of them");
    // The next time it is the copies that go; they say where the first stood.
    assert_eq!(to_carry(&of(9, &killed)), [(3, 3, 9), (8, 1, 9), (9, 2, 9)]);
}

#[test]
fn what_is_carried_reads_as_nothing_and_stands_as_it_stood() {
    let defined = line(2, "agent.ann.defined", AgentDefined::default());
    let copy = carried(&carried(&defined, 8, 2), 20, 2);
    let raw = archive_reader::to_raw(&copy).unwrap();
    assert_eq!(raw.carried_from(), Some(2));
    assert!(raw.read_or_reject_newer(1_000).is_err());
    let standing = raw.without_carried_mark().read(1_000).unwrap();
    assert_eq!((standing.sequence, standing.envelope.id), (20, Uuid::from_u128(2)));
    assert_eq!(copy.header(READER_HEADER), Some(CARRYING.to_string().as_str()), "older builds leave it alone");
}

#[test]
fn a_call_that_has_not_ended_is_in_the_way_until_its_result_is_there() {
    let action = Uuid::from_u128(77);
    let mut lines = vec![line(4, "agent.ann.decision", calls(action))];
    assert_eq!(of(4, &lines).oldest_unfinished().map(|begun| begun.sequence), Some(4));
    assert_eq!(of(3, &lines).oldest_unfinished(), None, "it stays");
    lines.push(line(9, "tool.ann.result", ToolResult { action_id: action.to_string(), ..Default::default() }));
    assert_eq!(of(4, &lines).oldest_unfinished(), None);
    // A copy of the decision asks for nothing.
    lines.push(carried(&lines[0], 10, 4));
    assert_eq!(of(20, &lines).oldest_unfinished(), None);
    let ann = Name::parse("ann").unwrap();
    assert!(!of(4, &lines).has_decided_since(&ann) && of(3, &lines).has_decided_since(&ann));
}
