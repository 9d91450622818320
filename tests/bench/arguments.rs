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
    /// How often each measurement is made; the median counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub rounds: u64,
    /// Entries of a conversation that the model is shown
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=1_000))]
    pub history: u32,
    /// Only this one of the server's two ways to flush to the disk
    #[arg(long, value_enum)]
    pub sync: Option<Flushing>,
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
