//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Measures turns (message → tool → reply) beside the bare floor of the same messages without Kairo
#[derive(Debug, Parser)]
#[command(name = "scripts/bench", args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub other: Option<Other>,
    /// Turns of one measurement at 64 in flight; a quarter of them at one in flight
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(64..=1_000_000))]
    pub turns: u64,
    /// Number of times each measurement is made; the median counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub rounds: u64,
    /// Entries of a conversation that the model is shown
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=1_000))]
    pub history: u32,
    /// Only this one of the server's two ways to flush to the disk
    #[arg(long, value_enum)]
    pub sync: Option<Flushing>,
    /// Seal what users say and are told, as with privacy.master_key
    #[arg(long)]
    pub sealed: bool,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
    /// Say where each process spends its time, with perf
    #[arg(long)]
    pub profile: bool,
}

#[derive(Debug, Subcommand)]
pub enum Other {
    Projection(Projection),
    Cost(Cost),
    Fair(Fair),
    Replay(Replay),
    Wake(Wake),
    Acknowledge(Acknowledge),
    Team(Team),
    ThinkAlong(ThinkAlong),
    Console(Console),
    Scale(Scale),
}

/// Measures what it takes to show the console, beside an empty page
#[derive(Debug, Args)]
pub struct Console {
    /// Events a second while the river is shown
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(100..=20_000))]
    pub per_s: u64,
    /// For so many seconds
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub seconds: u64,
    /// Events of the thread that one jumps about in
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub events: u64,
    /// Print JSON instead of lines
    #[arg(long)]
    pub json: bool,
}

/// Measures what it takes a lead and its workers to do very many tasks
#[derive(Debug, Args)]
pub struct Team {
    /// Workers of the team
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=32))]
    pub workers: u64,
    /// Tasks that the lead delegates
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=20_000))]
    pub tasks: u64,
    /// Delay of the model, in milliseconds
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=60_000))]
    pub delay_ms: u64,
    /// Print JSON instead of lines
    #[arg(long)]
    pub json: bool,
}

/// Measures what it costs a user's wait that submodules think along
#[derive(Debug, Args)]
pub struct ThinkAlong {
    /// Submodules of the agent that has most; another has one, a third none
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(2..=8))]
    pub submodules: u64,
    /// Turns of each agent
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub turns: u64,
    /// Delay of the model, in milliseconds
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(0..=60_000))]
    pub delay_ms: u64,
    /// Print JSON instead of lines
    #[arg(long)]
    pub json: bool,
}

/// Measures how soon agents that are at work in the background acknowledge what they are told
#[derive(Debug, Args)]
pub struct Acknowledge {
    /// Agents, each of which is told one thing after the other
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub agents: u64,
    /// Messages to each of them while it is at work
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u64).range(1..=900))]
    pub messages: u64,
    /// Delay of the fast model, in milliseconds
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(0..=60_000))]
    pub fast_ms: u64,
    /// Delay of the heavy model, in milliseconds
    #[arg(long, default_value_t = 60_000, value_parser = clap::value_parser!(u64).range(0..=600_000))]
    pub heavy_ms: u64,
    /// Print JSON instead of lines
    #[arg(long)]
    pub json: bool,
}

/// Measures how fast the read model is made from the log, beside the bare floor of inserting the same bytes
#[derive(Debug, Args)]
pub struct Projection {
    /// Messages in the log
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
    pub messages: u64,
    /// Queries a second, at rest and while another generation is built
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub queries_per_s: u64,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
}

/// Makes the decisions of a short run of everything again, and fails if one comes out otherwise; measures how fast a long log is
#[derive(Debug, Args)]
pub struct Replay {
    /// Messages of the long log
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(100..=100_000_000))]
    pub messages: u64,
    /// Messages of each of its agents
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(100..=1_000_000))]
    pub agent_messages: u64,
    /// Turns of the agent whose log is replayed from a Kairo that runs
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub live_turns: u64,
    /// Number of times it is replayed while publishing is measured
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub live_replays: u64,
    /// Number of times the recorded run is digested
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub digests: u32,
    /// Print JSON instead of a line
    #[arg(long)]
    pub json: bool,
}

/// Measures what a decision costs in model requests and NATS messages, with several replicas, a kill and a join
#[derive(Debug, Args)]
pub struct Cost {
    /// Replicas of agent-runtime and of router
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [1, 2, 4], value_parser = clap::value_parser!(u8).range(1..=16))]
    pub replicas: Vec<u8>,
    /// Faults halfway through the replies
    #[arg(long, value_name = "FAULT,...", value_enum, value_delimiter = ',', default_values_t = Fault::ALL)]
    pub faults: Vec<Fault>,
    /// Delay of the model, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(0..=60_000))]
    pub delay_ms: u64,
    /// Agents that are sent a few messages each
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub agents: usize,
    /// Messages to each of these agents; 0 leaves them out
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub messages: usize,
    /// Messages to one agent, in cases of its own; 0 leaves it out
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub deep: usize,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// The fault halfway through the replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fault {
    None,
    /// kill -9 of one replica of several
    Kill,
    /// One more replica
    Join,
}

impl Fault {
    pub const ALL: [Self; 3] = [Self::None, Self::Kill, Self::Join];

    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Kill => "kill",
            Self::Join => "join",
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Measures how long agents wait for their replies while another one is flooded
#[derive(Debug, Args)]
pub struct Fair {
    /// Messages that the one agent is sent
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub flood: u64,
    /// Other agents, each with one message at a time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub agents: u64,
    /// Seconds that the others are measured alone, and at most while the one is flooded
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub seconds: u64,
    /// Seconds that others are measured alone, and as long beside a flood, for each of what else is shared; 0 leaves it out
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(0..=3_600))]
    pub share_seconds: u64,
    /// Replicas of agent-runtime and of router
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub replicas: u8,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Measures how long agents need that have been idle, among very many of them
#[derive(Debug, Args)]
pub struct Wake {
    /// Idle agents, each of which had a turn
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=9_999_999))]
    pub agents: u32,
    /// Number of agents that are woken, one after the other
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub wakes: u32,
    /// Number of agents that are written to around the moment at which a replica is killed
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub orphans: u32,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Measures how far it goes: decisions a second with more and more replicas, very many idle agents, and neighbours of a flooded one
#[derive(Debug, Args)]
pub struct Scale {
    /// Only these parts
    #[arg(long, value_name = "PART,...", value_enum, value_delimiter = ',', default_values_t = Part::ALL)]
    pub only: Vec<Part>,
    /// load: replicas of agent-runtime and of router
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [1, 2, 4, 8], value_parser = clap::value_parser!(u8).range(1..=64))]
    pub replicas: Vec<u8>,
    /// load: what the model takes, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub delay_ms: u64,
    /// load: model calls that one replica may have in flight (models.heavy.max_in_flight); few, so that replicas are at their
    /// limit before the machine is, and no more than decisions are made at once (agent_runtime.decisions_at_once)
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub in_flight: u32,
    /// load: agents for each call that all replicas together may have in flight, each with one message at a time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub agents_per_call: u32,
    /// load: seconds that are measured; neighbours: seconds alone, and at most while one is flooded
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub seconds: u64,
    /// idle: agents, each of which had a turn
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=9_999_999))]
    pub idle: u32,
    /// idle: how many of them are woken, one after the other
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub wakes: u32,
    /// idle: how many are written to around the moment at which a replica is killed
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub orphans: u32,
    /// neighbours: messages that the one agent is sent
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub flood: u64,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
}

/// The part of `scale` that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Decisions a second with more and more replicas
    Load,
    /// Very many idle agents
    Idle,
    /// Others than a flooded agent
    Neighbours,
}

impl Part {
    pub const ALL: [Self; 3] = [Self::Load, Self::Idle, Self::Neighbours];
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Load => "load",
            Self::Idle => "idle",
            Self::Neighbours => "neighbours",
        })
    }
}

/// When nats-server flushes what it stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Flushing {
    /// Every two minutes, the server's default
    Default,
    /// Before every acknowledgement
    Always,
}

impl Flushing {
    pub const ALL: [Self; 2] = [Self::Default, Self::Always];

    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "the server's default (every 2 min)",
            Self::Always => "sync_interval: always",
        }
    }
}
