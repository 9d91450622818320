//! One run: a private Kairo, and the same measurements of it and of the floor, round after round.

use std::time::Duration;

use kairo_local::Service;

use crate::{
    Outcome, agents,
    arguments::{Arguments, Flushing},
    floor, kairo,
    load::{Lane, Together, all_at_once, one_at_a_time, percentile},
    machine::Machine,
    probe::{Probe, Reading},
    profile,
    report::Report,
};

/// Agents, and so turns in flight.
pub const AGENTS: usize = 64;
/// Turns at one in flight, as a share of those at 64.
const ALONE: u64 = 4;

/// The measurements of an entrance, or of the floor.
#[derive(Default)]
pub struct Side {
    /// Of each round, at one in flight.
    pub p50: Vec<Duration>,
    pub p99: Vec<Duration>,
    /// Of each round, at 64 in flight.
    pub rates: Vec<f64>,
    pub p50_together: Vec<Duration>,
    pub p99_together: Vec<Duration>,
    /// The usage of all rounds.
    pub alone: Usage,
    pub together: Usage,
}

/// The resources that a number of turns used.
#[derive(Default)]
pub struct Usage {
    pub turns: u64,
    pub counted: Reading,
}

/// Both entrances and the floor.
#[derive(Default)]
pub struct Sides {
    pub messages: Side,
    pub chat: Side,
    pub floor: Side,
}

/// Starts everything, measures, and stops it again.
pub async fn measure(sync: Flushing, arguments: &Arguments) -> Outcome<Report> {
    progress(&format!("starting a private Kairo, flushing by {}", sync.name()));
    let machine = Machine::start(sync, arguments.sealed).await?;
    let mut probe = Probe::open(&machine).await?;
    let sides = measured(&machine, &mut probe, arguments).await?;
    let names = probe.names();
    drop(probe);
    machine.stop().await?;
    Ok(Report::new(sync, arguments, &names, &sides))
}

async fn measured(machine: &Machine, probe: &mut Probe, arguments: &Arguments) -> Outcome<Sides> {
    let gateway = machine.stack.url(Service::Gateway).unwrap_or_default();
    let names = (0..AGENTS).map(|number| format!("bench-{number}"));
    let (agents, replies) = agents::define(gateway, names, arguments.history).await?;
    let (mut messages, mut chats) = kairo::lanes(agents);
    progress("warming up");
    let listening = replies.listen().await?;
    // Until every conversation is as long as it gets: a turn adds three entries.
    let warm_up = AGENTS as u64 * (u64::from(arguments.history) / 3 + 2);
    all_at_once(&mut messages, warm_up.max(arguments.turns / 2)).await?;
    one_at_a_time(&mut messages, 1).await?;
    drop(listening);
    probe.settled().await?;
    let patterns = floor::patterns(&probe.jetstream).await?;
    let mut bare = floor::lanes(&machine.nats.operator(), &patterns, AGENTS).await?;
    all_at_once(&mut bare, warm_up).await?;
    all_at_once(&mut chats, warm_up.max(arguments.turns / 2)).await?;
    probe.settled().await?;
    let mut sides = Sides::default();
    for round in 1..=arguments.rounds {
        progress(&format!("round {round} of {}", arguments.rounds));
        sides.floor.round(&mut bare, arguments.turns, probe).await?;
        // Not open while chats are measured, who do without.
        let listening = replies.listen().await?;
        sides.messages.round(&mut messages, arguments.turns, probe).await?;
        drop(listening);
        sides.chat.round(&mut chats, arguments.turns, probe).await?;
    }
    if arguments.profile {
        eprintln!("\nover /v1/messages");
        let listening = replies.listen().await?;
        profile::show(machine, &mut messages).await?;
        drop(listening);
        eprintln!("\nover /v1/chat/completions");
        profile::show(machine, &mut chats).await?;
    }
    Ok(sides)
}

impl Side {
    async fn round<L: Lane>(&mut self, lanes: &mut Vec<L>, turns: u64, probe: &mut Probe) -> Outcome<()> {
        let before = probe.read().await?;
        let latencies = one_at_a_time(lanes, turns / ALONE).await?;
        probe.settled().await?;
        self.alone.add(latencies.len() as u64, probe.read().await?.since(&before));
        self.p50.push(percentile(&latencies, 0.5));
        self.p99.push(percentile(&latencies, 0.99));

        let before = probe.read().await?;
        let Together { took, latencies } = all_at_once(lanes, turns).await?;
        probe.settled().await?;
        self.together.add(turns, probe.read().await?.since(&before));
        self.rates.push(turns as f64 / took.as_secs_f64());
        self.p50_together.push(percentile(&latencies, 0.5));
        self.p99_together.push(percentile(&latencies, 0.99));
        Ok(())
    }
}

impl Usage {
    fn add(&mut self, turns: u64, counted: Reading) {
        self.turns += turns;
        self.counted.add(&counted);
    }

    pub fn per_turn(&self, count: u64) -> f64 {
        count as f64 / self.turns.max(1) as f64
    }

    pub fn per_1000_turns(&self, seconds: f64) -> f64 {
        seconds * 1000.0 / self.turns.max(1) as f64
    }
}

/// To the terminal only: standard output is for results.
pub fn progress(what: &str) {
    eprintln!("bench: {what}");
}
