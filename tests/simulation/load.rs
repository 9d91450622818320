//! What comes from outside in a run: the agents there are, what users say to them, and what happens elsewhere.

use std::collections::VecDeque;

use jiff::Timestamp;
use kairo_core::{
    bus::append::Outgoing,
    envelope::{Envelope, Origin},
    ids::{self, Name},
    subjects::{AGENT_DEFINED, EMAIL_RECEIVED, Service, TASK_TRIGGERED, USER_MESSAGE},
};
use kairo_proto::v1::{AgentDefined, AgentProfile, EmailReceived, TaskTriggered, UserMessage};

use crate::{chance::Chance, orders, world::World};

pub const AGENTS: [&str; 2] = ["cook", "coach"];
pub const USERS: [&str; 2] = ["ann", "bob"];

/// Most messages of users in a run.
const MESSAGES: usize = 5;

/// Something that is about to be said, or to happen.
pub enum Said {
    Message(UserMessage),
    /// A verdict or an order about some action there is by then; the number tells them apart.
    Verdict(usize),
    Order(usize),
    /// A choice, or consent.
    Reply(usize),
    Mail(usize),
    /// An event of another system.
    Outside(usize),
}

/// Defines the agents: some call tools themselves, some plan; with one or another policy for messages that come while
/// they decide.
/// What is said, by its number.
type Saying = fn(usize) -> Said;

pub fn define(world: &mut World, chance: &mut Chance) {
    for agent in AGENTS {
        let interjection = ["order", "order", "join", "restart"][chance.below(4)].to_owned();
        let mut profile = AgentProfile { agent: agent.to_owned(), interjection, ..Default::default() };
        if chance.permille(550) {
            profile.planning = "chain".to_owned();
        }
        if chance.permille(550) {
            profile.threads = "topics".to_owned();
        }
        if chance.permille(150) {
            profile.day_ends_at = "08:01".to_owned();
        }
        let body = AgentDefined { profile: Some(profile) };
        let now = world.now();
        let envelope = entering("profile", &[agent], now);
        world.log.publish(&Outgoing::new(&AGENT_DEFINED, &name(agent), envelope, body), now);
    }
}

/// What is said and happens in a run, some of it twice.
pub fn drawn(chance: &mut Chance) -> VecDeque<Said> {
    let mut said = VecDeque::new();
    for number in 0..1 + chance.below(MESSAGES) {
        let message = message(number, chance);
        if chance.permille(100) {
            said.push_back(Said::Message(message.clone()));
        }
        said.push_back(Said::Message(message));
        let rates: [(u64, Saying); 5] =
            [(150, Said::Verdict), (500, Said::Order), (400, Said::Reply), (350, Said::Mail), (350, Said::Outside)];
        for (rate, what) in rates {
            if chance.permille(rate) {
                said.push_back(what(number));
            }
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
    let user = if chance.permille(700) { USERS[0] } else { USERS[1] }.to_owned();
    let thread_id = if chance.permille(200) { format!("t-{}", chance.below(2)) } else { String::new() };
    UserMessage { message_id: format!("m-{number}"), user, agent, text, thread_id, ..Default::default() }
}

/// What the gateway, the router or tool-runner publishes of it.
pub fn say(world: &mut World, said: Said) {
    let now = world.now();
    match said {
        Said::Message(message) => {
            world.note(&message.user, || format!("says {:?}", message.text));
            let envelope = entering("message", &[&message.user, &message.message_id], now);
            let event = Outgoing::new(&USER_MESSAGE, &name(&message.user.clone()), envelope, message);
            world.log.publish(&event, now);
        }
        Said::Verdict(number) => publish(world, orders::verdict(world, number)),
        Said::Order(number) => publish(world, orders::order(world, number)),
        Said::Reply(number) => {
            if let Some(reply) = orders::reply(world, number) {
                publish(world, reply);
            }
        }
        Said::Mail(number) => {
            let agent = some_agent(world);
            let envelope = entering("mail", &[&agent, &number.to_string()], now);
            let subject = if number == 0 { "a bill" } else { "hello" }.to_owned();
            let (email_id, sender) = (format!("e-{number}"), "carl@example.org".to_owned());
            let mail = EmailReceived { email_id, sender, subject, ..Default::default() };
            happen(world, &Outgoing::new(&EMAIL_RECEIVED, &name(&agent), envelope, mail));
        }
        Said::Outside(number) => {
            let agent = some_agent(world);
            let envelope = entering("outside", &[&agent, &number.to_string()], now);
            let trigger = "github.push".to_owned();
            let data = format!(r#"{{"n":{}}}"#, 40 * number);
            let triggered = TaskTriggered { trigger, event_id: number.to_string(), data, ..Default::default() };
            happen(world, &Outgoing::new(&TASK_TRIGGERED, &name(&agent), envelope, triggered));
        }
    }
}

pub fn publish(world: &mut World, event: Outgoing) {
    let now = world.now();
    world.log.publish(&event, now);
}

/// Something happens outside, and sometimes it is said twice: its id tells.
fn happen(world: &mut World, event: &Outgoing) {
    let now = world.now();
    world.log.write(event, now);
    if world.strikes(200) {
        let copy = world.log.write(event, now);
        world.log.copies.insert(copy);
    }
}

/// Whether there is something to say it about.
pub fn is_timely(world: &World, said: &Said) -> bool {
    match said {
        Said::Message(_) | Said::Mail(_) | Said::Outside(_) => true,
        Said::Verdict(_) => orders::acts(world),
        Said::Order(number) => orders::acts(world) || number % 2 == 0 && orders::plans(world),
        Said::Reply(_) => orders::asks(world),
    }
}

fn some_agent(world: &World) -> String {
    AGENTS[world.chance.borrow_mut().below(AGENTS.len())].to_owned()
}

pub fn entering(kind: &str, parts: &[&str], now: Timestamp) -> Envelope {
    Envelope::entering(ids::named(kind, parts), Service::Gateway, Origin::User, now)
}

pub fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}
