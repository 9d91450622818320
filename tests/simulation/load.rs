//! The input of a run from outside: the agents, the messages of users, and events elsewhere.

use std::{collections::VecDeque, time::Duration};

use jiff::Timestamp;
use kairo_core::{
    bus::{
        append::OutgoingEvent,
        port::{Headers, OutgoingMessage},
    },
    envelope::{Envelope, Origin},
    ids::{self, Name},
    subjects::{AGENT_DEFINED, EMAIL_RECEIVED, Service, USER_MESSAGE},
    vocabulary::{BACKGROUND, COMPOSITES, INNER_STATE, REFLECTION, SUBMODULES, TEAMS},
};
use kairo_proto::v1::{
    AgentDefined, AgentProfile, EmailReceived, Member, Perception, SessionBounds, Submodule, Team, TeamWorker,
    UserMessage,
};

use tokio::time::sleep;

use crate::{
    chance::Chance,
    model::KEYED,
    orders,
    world::{Shared, World},
};

pub const AGENTS: [&str; 2] = ["cook", "coach"];
pub const USERS: [&str; 2] = ["ann", "bob"];

/// Most messages of users in a run.
const MESSAGES: usize = 5;

/// Times it is looked whether there is something to say it about.
const TRIES: usize = 4;

/// Something that is about to be said, or to happen.
pub enum Said {
    Message(Box<UserMessage>),
    /// A verdict or an order about some action there is by then; the number tells them apart.
    Verdict(usize),
    Order(usize),
    /// A choice, or consent.
    Reply(usize),
    Mail(usize),
    /// An event of another system.
    Outside(usize),
}

/// Builds an input from its number.
type Saying = fn(usize) -> Said;

/// Defines the agents: some call tools themselves, some plan; with one or another policy for messages that come while
/// they decide; and some work in the background, in sessions that may be bounded.
pub fn define(world: &mut World, chance: &mut Chance) {
    let has_team = world.epoch >= TEAMS && chance.permille(300);
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
        // Older replicas would misunderstand it.
        if world.epoch >= BACKGROUND && chance.permille(350) {
            profile.conduct = "background".to_owned();
        }
        if has_team {
            join_team(&mut profile, chance);
        }
        if world.epoch >= REFLECTION && profile.conduct == "background" && chance.permille(150) {
            let model_calls = 2 + u32::try_from(chance.below(6)).unwrap_or_default();
            profile.session = Some(SessionBounds { model_calls, ..Default::default() });
        }
        if world.epoch >= REFLECTION && chance.permille(250) {
            profile.guesses_goal = chance.permille(500);
            profile.max_reflections = u32::try_from(chance.below(3)).unwrap_or_default();
        }
        if world.epoch >= COMPOSITES {
            compose(&mut profile, chance);
        }
        if world.epoch >= SUBMODULES && chance.permille(300) {
            profile.submodules = voices(chance);
            profile.history_cutoff = if chance.permille(300) { 5 } else { 0 };
        }
        if world.epoch >= INNER_STATE {
            profile.inner_state = chance.permille(250);
            profile.summary_after =
                if chance.permille(250) { 1 + u32::try_from(chance.below(3)).unwrap_or(0) } else { 0 };
        }
        let body = AgentDefined { profile: Some(profile), ..Default::default() };
        let envelope = entering("profile", &[agent], world.now());
        world.enter(&OutgoingEvent::new(&AGENT_DEFINED, &name(agent), envelope, body));
    }
}

/// The last agent may be composed of the others; and any may look around before it thinks.
fn compose(profile: &mut AgentProfile, chance: &mut Chance) {
    let [others @ .., whole] = AGENTS;
    if profile.agent == whole && chance.permille(400) {
        let member =
            |agent: &str| Member { agent: agent.to_owned(), tools: vec!["*".to_owned()], ..Default::default() };
        profile.members = others.map(member).into();
        profile.tools = vec!["action.cancel".to_owned(), "task.*".to_owned()];
    }
    if chance.permille(150) {
        let perception = Perception { tool: KEYED.to_owned(), arguments: r#"{"n":1}"#.to_owned() };
        profile.environment = vec![perception; 1 + chance.below(2)];
    }
}

/// One to three submodules; what they say, and whether they say it in time, the model decides.
fn voices(chance: &mut Chance) -> Vec<Submodule> {
    let voice = |at: usize, chance: &mut Chance| Submodule {
        name: format!("voice-{at}"),
        prompt: "You think along.".to_owned(),
        tier: ["heavy", "fast", "light"][chance.below(3)].to_owned(),
        deadline_ms: [100, 1_000, 10_000][chance.below(3)],
        wants_decisions: chance.permille(500),
        ..Submodule::default()
    };
    (0..=chance.below(3)).map(|at| voice(at, chance)).collect()
}

/// The first agent leads the others.
fn join_team(profile: &mut AgentProfile, chance: &mut Chance) {
    let [lead, workers @ ..] = AGENTS;
    if profile.agent != lead {
        profile.lead = lead.to_owned();
        return;
    }
    let worker = |agent: &str| TeamWorker { agent: agent.to_owned(), description: "counts".to_owned() };
    let tokens_per_day = if chance.permille(300) { 200 } else { 0 };
    let team = Team { workers: workers.map(worker).into(), tokens_per_day, ..Default::default() };
    let (conduct, mission, owner) = ("background".to_owned(), "count".to_owned(), USERS[0].to_owned());
    let own = profile.clone();
    *profile = AgentProfile { conduct, mission, owner, next_run_after: 1_800, team: Some(team), ..own };
}

/// Draws the inputs of a run, some of them twice.
pub fn drawn(chance: &mut Chance) -> VecDeque<Said> {
    let mut said = VecDeque::new();
    for number in 0..1 + chance.below(MESSAGES) {
        let message = message(number, chance);
        if chance.permille(100) {
            said.push_back(Said::Message(Box::new(message.clone())));
        }
        said.push_back(Said::Message(Box::new(message)));
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

/// Says all of it in that time, what is about something once that is there, if it comes to be.
pub async fn speak(world: &Shared, said: VecDeque<Said>, within: Duration) {
    let pause = within / (said.len() as u32 + 1);
    for what in said {
        for _ in 0..TRIES {
            let pause = {
                let world = world.lock().unwrap();
                pause.mul_f64(world.below(200) as f64 / 100.0)
            };
            sleep(pause).await;
            if is_timely(&world.lock().unwrap(), &what) {
                break;
            }
        }
        let mut world = world.lock().unwrap();
        if is_timely(&world, &what) {
            say(&mut world, what);
        }
    }
}

/// Publishes an input as the gateway, another system or tool-runner does.
fn say(world: &mut World, said: Said) {
    let now = world.now();
    match said {
        Said::Message(message) => {
            world.note(&message.user, || format!("says {:?}", message.text));
            let envelope = entering("message", &[&message.user, &message.message_id], now);
            let event = OutgoingEvent::new(&USER_MESSAGE, &name(&message.user.clone()), envelope, *message);
            world.enter(&event);
        }
        Said::Verdict(number) => {
            let verdict = orders::verdict(world, number);
            publish(world, verdict);
        }
        Said::Order(number) => {
            let order = orders::order(world, number);
            publish(world, order);
        }
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
            happen(world, &OutgoingEvent::new(&EMAIL_RECEIVED, &name(&agent), envelope, mail));
        }
        Said::Outside(number) => {
            world.note("github", || format!("says that something was pushed: {number}"));
            let data = format!(r#"{{"n":{}}}"#, 40 * number);
            let id = format!("push-{number}");
            let mut headers = Headers::new();
            let envelope =
                [("ce-specversion", "1.0"), ("ce-id", &id), ("ce-source", "github"), ("ce-type", "github.push")];
            envelope.into_iter().for_each(|(name, value)| headers.insert(name, value));
            let said = OutgoingMessage::new("kairo.system.github.push", headers, data);
            world.enter_as(said.clone());
            // Outsiders say things twice, and their id tells.
            if world.permille(200) {
                world.enter_as(said);
            }
        }
    }
}

pub fn publish(world: &mut World, event: OutgoingEvent) {
    world.enter(&event);
}

/// Something happens outside, and sometimes it is said twice: its id tells.
fn happen(world: &mut World, event: &OutgoingEvent) {
    let first = world.enter(event);
    if world.permille(200) {
        world.copy(first);
    }
}

/// Returns true if there is something that the input can be about.
fn is_timely(world: &World, said: &Said) -> bool {
    match said {
        Said::Message(_) | Said::Mail(_) | Said::Outside(_) => true,
        Said::Verdict(_) => orders::acts(world),
        Said::Order(number) => orders::acts(world) || number % 2 == 0 && orders::plans(world),
        Said::Reply(_) => orders::asks(world),
    }
}

fn some_agent(world: &mut World) -> String {
    AGENTS[world.below(AGENTS.len())].to_owned()
}

pub fn entering(kind: &str, parts: &[&str], now: Timestamp) -> Envelope {
    Envelope::from_outside(ids::from_parts(kind, parts), Service::Gateway, Origin::User, now)
}

pub fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}
