//! One run: a private Kairo, and the same measurements of it and of the floor, round after round.

use std::time::Duration;

use kairo_cli::local::Service;

use crate::{
    Outcome,
    arguments::{Arguments, Flushing},
    floor, kairo,
    load::{Lane, all_at_once, one_at_a_time, percentile},
    machine::Machine,
    probe::{Probe, Reading},
    profile,
    report::Report,
};

/// Agents, and so turns in flight.
pub const AGENTS: usize = 64;
/// Turns at one in flight, as a share of those at 64.
const ALONE: u64 = 4;

/// What was measured of Kairo, or of the floor.
#[derive(Default)]
pub struct Side {
    /// Of each round, at one in flight.
    pub p50: Vec<Duration>,
    pub p99: Vec<Duration>,
    /// Turns per second of each round, at 64 in flight.
    pub rates: Vec<f64>,
    /// What all rounds used.
    pub alone: Usage,
    pub together: Usage,
}

/// What so many turns used.
#[derive(Default)]
pub struct Usage {
    pub turns: u64,
    pub counted: Reading,
}

/// Starts everything, measures, and stops it again.
pub async fn measure(sync: Flushing, arguments: &Arguments) -> Outcome<Report> {
    progress(&format!("starting a private Kairo, flushing by {}", sync.name()));
    let machine = Machine::start(sync).await?;
    let mut probe = Probe::open(&machine).await?;
    let (kairo, floor) = measured(&machine, &mut probe, arguments).await?;
    let names = probe.names();
    drop(probe);
    machine.stop().await?;
    Ok(Report::new(sync, arguments, &names, &kairo, &floor))
}

async fn measured(machine: &Machine, probe: &mut Probe, arguments: &Arguments) -> Outcome<(Side, Side)> {
    let gateway = machine.stack.url(Service::Gateway).unwrap_or_default();
    let mut turns = kairo::lanes(gateway, AGENTS, arguments.history).await?;
    progress("warming up");
    // Until every conversation is as long as it gets: a turn adds three entries.
    let warm_up = AGENTS as u64 * (u64::from(arguments.history) / 3 + 2);
    all_at_once(&mut turns, warm_up.max(arguments.turns / 2)).await?;
    one_at_a_time(&mut turns, 1).await?;
    probe.settled().await?;
    let patterns = floor::patterns(&probe.jetstream).await?;
    let mut bare = floor::lanes(&machine.nats.url(), &patterns, AGENTS).await?;
    all_at_once(&mut bare, warm_up).await?;
    let (mut kairo, mut floor) = (Side::default(), Side::default());
    for round in 1..=arguments.rounds {
        progress(&format!("round {round} of {}", arguments.rounds));
        floor.round(&mut bare, arguments.turns, probe).await?;
        kairo.round(&mut turns, arguments.turns, probe).await?;
    }
    if arguments.profile {
        profile::show(machine, &mut turns).await?;
    }
    Ok((kairo, floor))
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
        let took = all_at_once(lanes, turns).await?;
        probe.settled().await?;
        self.together.add(turns, probe.read().await?.since(&before));
        self.rates.push(turns as f64 / took.as_secs_f64());
        Ok(())
    }
}

impl Usage {
    fn add(&mut self, turns: u64, counted: Reading) {
        self.turns += turns;
        self.counted.add(&counted);
    }
}

/// To the terminal only: standard output is for results.
fn progress(what: &str) {
    eprintln!("bench: {what}");
}
