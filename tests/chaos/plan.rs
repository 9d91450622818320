//! The schedule of a run: a pure function of the seed.
//!
//! Faults are dealt like cards. A deck holds every kind of fault, is shuffled anew each time, and lasts [`DECK`]; so a
//! run of a minute has seen every kind, and ten minutes see more than three hundred kills. Messages come evenly, with
//! bursts.

mod recalls;
mod rollout;
mod trials;

use std::time::Duration;

use kairo_local::Service;
use kairo_model_sim::{Delay, Misbehaviour};
use serde::Serialize;

use super::{builds::Build, random::Random};

/// The duration of one deck of faults.
const DECK: Duration = Duration::from_secs(40);
/// Time between two messages or bursts, with a model that answers at once.
const PACE: Duration = Duration::from_millis(300);
/// Time added for a slower model, as a share of its average delay: a turn asks it about three times, and the twelve
/// agents have to keep up.
const PACE_SHARE: f64 = 0.4;
/// The number of messages of which one is a burst.
const BURST_EVERY: u64 = 12;
/// Messages of a burst.
const BURST: u64 = 6;
/// Of so many messages, one is sent twice with the same id.
const TWICE_EVERY: u64 = 8;
pub const AGENTS: u64 = 8;
/// Agents that plan, instead of calling tools themselves.
pub const PLANNERS: u64 = 4;
/// Teams: a lead and its worker each, at work beside their conversations.
pub const TEAMS: u64 = 2;
const USERS: u64 = 12;
/// Users whose messages to agents that plan may begin a thread of their own.
const ASKERS: u64 = 3;
/// The services that faults strike; the simulator stands for the world outside.
pub const SERVICES: [Service; 6] = [
    Service::Gateway,
    Service::Router,
    Service::AgentRuntime,
    Service::ToolRunner,
    Service::ProcessSupervisor,
    Service::Projector,
];

/// The settings of a run.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Time during which messages and faults come.
    pub time: Duration,
    pub seed: u64,
    /// Replicas of each service.
    pub replicas: usize,
    /// 1, or 3 that are a cluster.
    pub servers: usize,
    /// The delay of the model's answers.
    pub model_delay: Delay,
    /// The share of its answers that come in another form or fail, as those of real endpoints do.
    pub misbehaviour: Misbehaviour,
    pub course: Course,
    /// True if models may have been asked in other words than this build uses: another build asked, too.
    pub other_words: bool,
}

/// The course of a run: the faults that strike Kairo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Course {
    /// Everything is killed and frozen.
    #[default]
    Chaos,
    /// From all of an older build to all of the newer, back, and there again, one replica at a time; then the fleet is promoted.
    /// Nothing else is done to them.
    Walk,
    /// One replica of each service is of an older build, the others of the newer, and everything is struck as ever.
    SideBySide,
    /// Every replica is restarted in order, and then every server, while clients go to gateways that say they are ready.
    Restarts,
    /// Whichever server leads the log is killed, again and again.
    Leaders,
    /// One server after the other is cut off from the others, and reaches its clients all the while.
    Partition,
    /// One server after the other has no room on its disk.
    DiskFull,
    /// The log is at its limit for a while.
    LogFull,
}

impl Course {
    /// Returns true if two builds run in this course.
    pub fn has_older(self) -> bool {
        matches!(self, Self::Walk | Self::SideBySide)
    }
}

impl Settings {
    /// With one server, and a model that answers at once.
    pub fn new(time: Duration, seed: u64, replicas: usize) -> Self {
        let (servers, model_delay, course) = (1, Delay::default(), Course::default());
        let misbehaviour = Misbehaviour::default();
        Self { time, seed, replicas, servers, model_delay, misbehaviour, course, other_words: false }
    }

    /// When the fleet is to be promoted: beyond the end where it is not.
    pub fn promoted_at(&self) -> Duration {
        if self.course == Course::Walk { self.time * 2 / 3 } else { Duration::MAX }
    }

    fn pace(&self) -> Duration {
        PACE + self.model_delay.average().mul_f64(PACE_SHARE)
    }
}

/// The target of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    Replica(Service, usize),
    /// The only one; of several, the one that leads the log.
    Nats,
    Postgres,
    /// The store in nats-server: the log and the buckets.
    Store,
    /// The read model, which is built from the log.
    ReadModel,
    /// All replicas together.
    Fleet,
}

/// The blow of a fault to its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blow {
    /// kill -9, and started again after a while.
    Kill {
        down: Duration,
    },
    /// SIGSTOP, and SIGCONT after a while.
    Freeze {
        lasts: Duration,
    },
    /// SIGTERM, drained, and started again.
    Restart,
    /// SIGTERM, drained, and started again, while nobody else is.
    RestartInTurn,
    /// One of the servers moves its clients and leaders to the others, ends, and is started again.
    LameDuck {
        server: usize,
    },
    /// One of the servers hears nothing of the others for a while.
    CutOff {
        server: usize,
        lasts: Duration,
    },
    /// One of the servers has no room on its disk for a while.
    FillDisk {
        server: usize,
        lasts: Duration,
    },
    /// The log takes no more for a while.
    FillLog {
        lasts: Duration,
    },
    /// Ended, by -9 or else by SIGTERM, and started as another build.
    Replace {
        build: Build,
        killed: bool,
    },
    /// The epoch is raised, as soon as that is allowed.
    Promote,
    /// Wipes the record of partition owners.
    WipeOwnership,
    WipeSnapshots,
    /// Built anew beside the live one.
    Rebuild,
    /// Publishes this many messages of the log once more; `choice` says which.
    PublishAgain {
        messages: u64,
        choice: u64,
    },
}

/// A fault, so long after the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub at: Duration,
    pub target: Target,
    pub blow: Blow,
}

/// The task that a message gives its agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wish {
    /// Words, no tool.
    Chat,
    /// A tool without an effect.
    Clock,
    /// An effect under a key.
    Keyed,
    /// Two effects under keys, one after the other.
    Chain,
    /// Several tools at once.
    Several,
    /// A process that ends at once.
    Run,
    /// A process that runs for a few seconds.
    Work,
    /// A process that would run for long and is stopped for it.
    Hang,
    /// A process that goes on by itself, and ends.
    Spawn,
    /// A process that goes on by itself until it is told to stop.
    Stop,
    /// A process that is waited for until a user orders its end.
    Cancel,
    /// A chain: effects under keys and a process at once, then one that depends on them.
    Plan,
    /// A task that is due once, soon.
    Later,
    /// A task that is due again and again, until a user orders its end.
    Repeat,
    /// A hook on what happens in another system, and that it happens.
    Hook,
    /// A hook on mail, and a mail.
    Mail,
    /// An effect behind a step that its user must consent to.
    Consent,
    /// Words that may belong to another thread, which the user is asked.
    Ask,
    /// A queued task: an effect under a key and a process at once.
    Queue,
    /// A queued task of which a worker is to do a part: an effect under a key.
    Delegate,
    /// Effects of the MCP server over HTTP.
    Shop,
    /// Effects of the MCP server over stdio.
    Desk,
    /// Effects of the web API.
    Bank,
    /// Effects of the tool worker.
    Clerk,
    /// An effect of each of these, which a user orders to be stopped at once.
    Recall,
}

impl Wish {
    pub const ALL: [Self; 25] = [
        Self::Chat,
        Self::Clock,
        Self::Keyed,
        Self::Chain,
        Self::Several,
        Self::Run,
        Self::Work,
        Self::Hang,
        Self::Spawn,
        Self::Stop,
        Self::Cancel,
        Self::Plan,
        Self::Later,
        Self::Repeat,
        Self::Hook,
        Self::Mail,
        Self::Consent,
        Self::Ask,
        Self::Queue,
        Self::Delegate,
        Self::Shop,
        Self::Desk,
        Self::Bank,
        Self::Clerk,
        Self::Recall,
    ];

    /// The word that asks for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Clock => "clock",
            Self::Keyed => "keyed",
            Self::Chain => "chain",
            Self::Several => "several",
            Self::Run => "run",
            Self::Work => "work",
            Self::Hang => "hang",
            Self::Spawn => "spawn",
            Self::Stop => "stop",
            Self::Cancel => "cancel",
            Self::Plan => "plan",
            Self::Later => "later",
            Self::Repeat => "repeat",
            Self::Hook => "hook",
            Self::Mail => "mail",
            Self::Consent => "consent",
            Self::Ask => "ask",
            Self::Queue => "queue",
            Self::Delegate => "delegate",
            Self::Shop => "shop",
            Self::Desk => "desk",
            Self::Bank => "bank",
            Self::Clerk => "clerk",
            Self::Recall => "recall",
        }
    }

    /// Returns true for wishes to agents that plan.
    pub fn is_planned(self) -> bool {
        matches!(self, Self::Plan | Self::Later | Self::Repeat | Self::Hook | Self::Mail | Self::Consent | Self::Ask)
    }

    /// Returns true for wishes to teams.
    pub fn is_queued(self) -> bool {
        matches!(self, Self::Queue | Self::Delegate)
    }

    /// Returns true for wishes that call [peers](super::peers).
    pub fn is_of_peers(self) -> bool {
        matches!(self, Self::Shop | Self::Desk | Self::Bank | Self::Clerk | Self::Recall)
    }

    /// Returns true if something is said about the wish of its own accord, later, so that it needs a thread of its own:
    /// the simulator, which looks at the last message, would take that for somebody else's move.
    fn is_alone(self) -> bool {
        let is_told_later = matches!(self, Self::Spawn | Self::Stop | Self::Cancel) || self.is_of_peers();
        is_told_later || self.is_planned() && self != Self::Ask
    }
}

/// A message of a user, so long after the beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub at: Duration,
    pub id: String,
    pub user: String,
    pub agent: String,
    pub wish: Wish,
    /// Number of times it is sent, with the same id.
    pub copies: u64,
}

/// Everything that will happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// In the order of their time.
    pub faults: Vec<Fault>,
    pub messages: Vec<Message>,
}

impl Plan {
    pub fn new(settings: &Settings) -> Self {
        let faults = match settings.course {
            Course::Chaos | Course::SideBySide => faults(settings),
            Course::Walk => rollout::walk(settings),
            _ => trials::faults(settings),
        };
        let messages = recalls::among(messages(settings), &faults, settings);
        Self { faults, messages }
    }
}

/// The name of an agent that calls tools itself.
pub fn agent(number: u64) -> String {
    format!("agent-{number}")
}

/// The name of an agent that plans.
pub fn planner(number: u64) -> String {
    format!("planner-{number}")
}

/// The name of a team, and of the agent that leads it.
pub fn team(number: u64) -> String {
    format!("team-{number}")
}

/// A fault before it is known which replica it strikes and for how long.
#[derive(Clone, Copy)]
enum Card {
    Kill(Service),
    Freeze(Service),
    Restart(Service),
    KillAllServices,
    /// No replica of tool-runner is there, or goes on, for a while.
    NoRunner,
    Server(Target, Blow),
}

fn deck(random: &mut Random) -> Vec<Card> {
    let down = |random: &mut Random| Blow::Kill { down: millis(random, 0, 2_000) };
    let frozen = |random: &mut Random| Blow::Freeze { lasts: millis(random, 500, 3_000) };
    let mut cards = vec![
        Card::KillAllServices,
        Card::NoRunner,
        Card::Server(Target::Nats, down(random)),
        Card::Server(Target::Nats, frozen(random)),
        Card::Server(Target::Postgres, down(random)),
        Card::Server(Target::Postgres, frozen(random)),
        Card::Server(Target::Store, Blow::WipeOwnership),
        Card::Server(Target::Store, Blow::WipeSnapshots),
        Card::Server(Target::Store, again(random)),
        Card::Server(Target::Store, again(random)),
        Card::Server(Target::ReadModel, Blow::Rebuild),
        Card::Server(Target::ReadModel, Blow::Rebuild),
        Card::Restart(*SERVICES.get(random.index(SERVICES.len())).unwrap_or(&Service::Router)),
    ];
    for service in SERVICES {
        cards.extend([Card::Kill(service), Card::Kill(service), Card::Kill(service), Card::Freeze(service)]);
    }
    random.shuffle(&mut cards);
    cards
}

fn again(random: &mut Random) -> Blow {
    Blow::PublishAgain { messages: random.between(5, 20), choice: random.draw() }
}

fn millis(random: &mut Random, least: u64, most: u64) -> Duration {
    Duration::from_millis(random.between(least, most))
}

fn faults(settings: &Settings) -> Vec<Fault> {
    let mut random = Random::new(settings.seed, "faults");
    let mut faults = Vec::new();
    let mut begin = Duration::ZERO;
    while begin < settings.time {
        let cards = deck(&mut random);
        let slot = DECK / u32::try_from(cards.len()).unwrap_or(1);
        for (card, number) in cards.into_iter().zip(0..) {
            let at = begin + slot * number + slot * u32::try_from(random.below(100)).unwrap_or(0) / 100;
            faults.extend(strike(card, at, settings.replicas, &mut random));
        }
        begin += DECK;
    }
    faults.retain(|fault| fault.at < settings.time);
    faults
}

/// The faults that a card stands for.
fn strike(card: Card, at: Duration, replicas: usize, random: &mut Random) -> Vec<Fault> {
    let (targets, blow) = match card {
        Card::Server(target, blow) => (vec![target], blow),
        Card::Restart(service) => (vec![any(service, replicas, random)], Blow::Restart),
        Card::Kill(service) => (vec![any(service, replicas, random)], Blow::Kill { down: millis(random, 0, 3_000) }),
        Card::Freeze(service) => {
            (vec![any(service, replicas, random)], Blow::Freeze { lasts: millis(random, 500, 8_000) })
        }
        Card::NoRunner => {
            let all = (0..replicas).map(|index| Target::Replica(Service::ToolRunner, index));
            (all.collect(), no_runner(random))
        }
        Card::KillAllServices => {
            let all = |service| (0..replicas).map(move |index| Target::Replica(service, index));
            (SERVICES.into_iter().flat_map(all).collect(), Blow::Kill { down: millis(random, 0, 2_000) })
        }
    };
    targets.into_iter().map(|target| Fault { at, target, blow }).collect()
}

/// Killed or frozen.
fn no_runner(random: &mut Random) -> Blow {
    let lasts = millis(random, 4_000, 8_000);
    if random.below(2) == 0 { Blow::Kill { down: lasts } } else { Blow::Freeze { lasts } }
}

fn any(service: Service, replicas: usize, random: &mut Random) -> Target {
    Target::Replica(service, random.index(replicas))
}

fn messages(settings: &Settings) -> Vec<Message> {
    let mut random = Random::new(settings.seed, "messages");
    // Older builds keep what they promised of peers, which is less.
    let is_kept = |wish: &Wish| !(settings.course.has_older() && wish.is_of_peers());
    let wishes: Vec<Wish> = Wish::ALL.into_iter().filter(is_kept).collect();
    let mut messages = Vec::new();
    let mut at = Duration::ZERO;
    while at < settings.time {
        let burst = random.below(BURST_EVERY) == 0;
        let (agent, user) = (random.below(AGENTS), random.below(USERS));
        for _ in 0..if burst { BURST } else { 1 } {
            let id = format!("m{}", messages.len());
            let wish = wishes.get(random.index(wishes.len())).copied().unwrap_or(Wish::Chat);
            let user = match wish {
                Wish::Ask => format!("asker-{}", user % ASKERS),
                _ if wish.is_alone() => format!("user-of-{id}"),
                _ => format!("user-{user}"),
            };
            let agent = match wish {
                _ if wish.is_planned() => planner(agent % PLANNERS),
                _ if wish.is_queued() => team(agent % TEAMS),
                // What is told late is nothing that the last one's members could answer for.
                _ if wish.is_of_peers() => self::agent(agent % (AGENTS - 1)),
                _ => self::agent(agent),
            };
            let copies = if random.below(TWICE_EVERY) == 0 { 2 } else { 1 };
            messages.push(Message { at, id, user, agent, wish, copies });
        }
        at += settings.pace();
    }
    messages
}

#[cfg(test)]
mod tests;
