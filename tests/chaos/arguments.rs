//! The command line.

use std::{path::PathBuf, time::Duration};

use clap::Parser;
use kairo_model_sim::{Delay, Misbehaviour};
use kairo_tests::chaos::{
    Outcome,
    builds::Builds,
    plan::{Course, Settings},
};

/// Kills everything Kairo is made of while it works, and counts what came of it
#[derive(Debug, Parser)]
#[command(name = "scripts/chaos")]
pub struct Arguments {
    /// Seconds during which messages and faults come; finishing and counting takes up to a few minutes more
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Chooses messages and faults
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Replicas of each service
    #[arg(long, value_name = "R", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=16))]
    replicas: u8,
    /// nats-servers: 1, or 3 that are a cluster, of which whichever leads the log is struck
    #[arg(long, value_name = "N", default_value = "1", value_parser = ["1", "3"])]
    servers: String,
    /// Milliseconds the model takes for an answer: a number, or a range from which each is drawn
    #[arg(long, value_name = "MS|LEAST-MOST", default_value_t = Delay::default())]
    model_delay: Delay,
    /// The share of the model's answers that come in another form or fail, such as 0.2: what Kairo must survive by itself
    #[arg(long, value_name = "SHARE", default_value_t = Misbehaviour::default())]
    misbehave: Misbehaviour,
    /// The folder of an older build of all services and of `kairo`: every replica is replaced by one of this build, back and
    /// there again, one at a time, and the fleet is promoted
    #[arg(long, value_name = "DIR")]
    older: Option<PathBuf>,
    /// Instead, one replica of each service is of the older build all the while, and everything is killed as ever
    #[arg(long, requires = "older")]
    side_by_side: bool,
    /// The older build may ask models in other words than this one would, as long as the decision is the same
    #[arg(long, requires = "older")]
    other_words: bool,
    /// One thing alone that befalls it: `restarts` of every replica and then every server in order, the log's leader killed every
    /// 30 s (`leaders`), each server cut off from the others (`partition`), each server's disk full (`disk-full`, as root), the log
    /// at its limit (`log-full`)
    #[arg(long, value_name = "WHAT", conflicts_with = "older", value_parser = ["restarts", "leaders", "partition", "disk-full", "log-full"])]
    only: Option<String>,
    /// Keep faults, log and services' logs even when all is well
    #[arg(long)]
    pub keep: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

impl Arguments {
    pub fn builds(&self) -> Outcome<Builds> {
        match &self.older {
            None => Builds::this(),
            Some(older) => Builds::with_older(older.clone()),
        }
    }

    pub fn settings(&self) -> Settings {
        Settings {
            servers: if self.servers == "3" { 3 } else { 1 },
            model_delay: self.model_delay,
            misbehaviour: self.misbehave,
            course: self.course(),
            other_words: self.other_words,
            ..Settings::new(Duration::from_secs(self.seconds), self.seed, usize::from(self.replicas))
        }
    }

    fn course(&self) -> Course {
        match (self.only.as_deref(), &self.older, self.side_by_side) {
            (Some("restarts"), ..) => Course::Restarts,
            (Some("leaders"), ..) => Course::Leaders,
            (Some("partition"), ..) => Course::Partition,
            (Some("disk-full"), ..) => Course::DiskFull,
            (Some(_), ..) => Course::LogFull,
            (None, None, _) => Course::Chaos,
            (None, Some(_), false) => Course::Walk,
            (None, Some(_), true) => Course::SideBySide,
        }
    }
}
