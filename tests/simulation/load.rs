//! What comes from outside in a run: the agents there are, and what users say to them.

use std::collections::VecDeque;

use jiff::Timestamp;
use kairo_core::{
    bus::append::Outgoing,
    envelope::{Envelope, Origin},
    ids::{self, Name},
    record::Record,
    subjects::{AGENT_DEFINED, Service, USER_APPROVAL, USER_COMMAND, USER_MESSAGE},
};
use kairo_proto::{
    Body,
    v1::{AgentDefined, AgentProfile, UserApproval, UserCommand, UserMessage},
};
use uuid::Uuid;

use crate::{
    audit::{decision, tool_calls},
    chance::Chance,
    world::World,
};

pub const AGENTS: [&str; 2] = ["cook", "coach"];
const USERS: [&str; 2] = ["ann", "bob"];

/// Something a user is about to say.
pub enum Said {
    Message(UserMessage),
    /// A verdict or an order about some action there is by then; the number tells them apart.
    Verdict(usize),
    Order(usize),
}

/// Defines the agents, with one or another policy for messages that come while they decide.
pub fn define(world: &mut World, chance: &mut Chance) {
    for agent in AGENTS {
        let interjection = ["order", "order", "join", "restart"][chance.below(4)].to_owned();
        let profile = AgentProfile { agent: agent.to_owned(), interjection, ..Default::default() };
        let body = AgentDefined { profile: Some(profile) };
        let now = world.now();
        let envelope = entering("profile", &[agent], now);
        world.log.publish(&Outgoing::new(&AGENT_DEFINED, &name(agent), envelope, body), now);
    }
}

/// What users say in a run, some of it twice.
pub fn drawn(chance: &mut Chance) -> VecDeque<Said> {
    let mut said = VecDeque::new();
    for number in 0..1 + chance.below(3) {
        let message = message(number, chance);
        if chance.permille(100) {
            said.push_back(Said::Message(message.clone()));
        }
        said.push_back(Said::Message(message));
        if chance.permille(150) {
            said.push_back(Said::Verdict(number));
        }
        if chance.permille(500) {
            said.push_back(Said::Order(number));
        }
    }
    said
}

fn message(number: usize, chance: &mut Chance) -> UserMessage {
    let agent = if chance.permille(50) { "nobody" } else { AGENTS[chance.below(AGENTS.len())] };
    let (agent, text) = match chance.permille(300) {
        true if agent != "nobody" => (String::new(), format!("@{agent} question {number}")),
        _ => (agent.to_owned(), format!("question {number}")),
    };
    let user = USERS[chance.below(USERS.len())].to_owned();
    let thread_id = if chance.permille(300) { format!("t-{}", chance.below(2)) } else { String::new() };
    UserMessage { message_id: format!("m-{number}"), user, agent, text, thread_id }
}

/// What the gateway publishes of it.
pub fn say(world: &mut World, said: Said) {
    let now = world.now();
    let event = match said {
        Said::Message(message) => {
            world.note(&message.user, || format!("says {:?}", message.text));
            let envelope = entering("message", &[&message.user, &message.message_id], now);
            Outgoing::new(&USER_MESSAGE, &name(&message.user.clone()), envelope, message)
        }
        Said::Verdict(number) => {
            let (agent, action_id) = some_action(world);
            let id = format!("v-{number}");
            let verdict = ["happened", "did_not_happen"][number % 2].to_owned();
            world.note(USERS[0], || format!("says of {action_id}: {verdict}"));
            let envelope = entering("approval", &[USERS[0], &id], now);
            let user = USERS[0].to_owned();
            let approval = UserApproval { approval_id: id, user, agent, action_id, verdict, note: String::new() };
            Outgoing::new(&USER_APPROVAL, &name(USERS[0]), envelope, approval)
        }
        Said::Order(number) => {
            let (agent, action_id) = some_action(world);
            let id = format!("c-{number}");
            world.note(USERS[0], || format!("orders the end of {action_id}"));
            let envelope = entering("command", &[USERS[0], &id], now);
            let (user, command) = (USERS[0].to_owned(), "cancel".to_owned());
            let order = UserCommand { command_id: id, user, agent, command, action_id, process_id: String::new() };
            Outgoing::new(&USER_COMMAND, &name(USERS[0]), envelope, order)
        }
    };
    world.log.publish(&event, now);
}

/// Whether there is something to say it about.
pub fn is_timely(world: &World, said: &Said) -> bool {
    matches!(said, Said::Message(_)) || actions(world).any(|(_, action)| !has_ended(world, &action))
}

/// An action and its agent, mostly one that is in flight; made up when there is none.
fn some_action(world: &World) -> (String, String) {
    let all: Vec<_> = actions(world).collect();
    let in_flight: Vec<_> = all.iter().filter(|(_, action)| !has_ended(world, action)).cloned().collect();
    let choice = if in_flight.is_empty() { all } else { in_flight };
    match choice.len() {
        0 => (AGENTS[0].to_owned(), Uuid::nil().to_string()),
        count => choice[world.chance.borrow_mut().below(count)].clone(),
    }
}

/// Every action there is, behind its agent.
fn actions(world: &World) -> impl Iterator<Item = (String, String)> + '_ {
    let decisions = world.log.records.iter().filter_map(|it| Some((it.subject.split('.').nth(2)?, decision(it)?)));
    decisions.flat_map(|(agent, decision)| tool_calls(decision).map(move |(action, _)| (agent.to_owned(), action)))
}

fn has_ended(world: &World, action: &str) -> bool {
    let of = |record: &Record| matches!(&record.body, Body::ToolResult(result) if result.action_id == action);
    world.log.records.iter().any(of)
}

fn entering(kind: &str, parts: &[&str], now: Timestamp) -> Envelope {
    Envelope::entering(ids::named(kind, parts), Service::Gateway, Origin::User, now)
}

pub fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}
