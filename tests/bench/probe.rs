//! The readings before and after a measurement: CPU time, messages over connections, the intake of streams.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use async_nats::jetstream;
use kairo_core::subjects::EVENTS_STREAM;
use kairo_tests::login;
use sqlx::{Connection, PgConnection};

use crate::{
    Outcome, cpu, floor,
    machine::Machine,
    monitor::{Stored, Traffic, buckets, stored, traffic},
};

/// The benchmark's own process, in which the floor runs as well.
pub const CLIENT: &str = "bench client";
/// The interval at which the projector's position is polled while it has not read everything.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// The longest time until the projector has read everything.
const SETTLED_WITHIN: Duration = Duration::from_secs(3_600);

/// The timeout for a server that has much to do.
const SERVER_TIMEOUT: Duration = Duration::from_secs(60);

/// Access to all that is read.
pub struct Probe {
    processes: Vec<(&'static str, u32)>,
    monitor: String,
    http: reqwest::Client,
    pub jetstream: jetstream::Context,
    postgres: PgConnection,
}

/// Counters at one moment, or how far they moved between two.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Seconds, by process.
    pub cpu: BTreeMap<&'static str, f64>,
    /// By process.
    pub traffic: BTreeMap<&'static str, Traffic>,
    pub log: Stored,
    pub floor: Stored,
    /// Bytes of Kairo's database, indexes included.
    pub tables: u64,
    /// Writes, by bucket.
    pub buckets: BTreeMap<String, u64>,
}

impl Probe {
    pub async fn open(machine: &Machine) -> Outcome<Self> {
        let client = login::options(&machine.nats.operator()).name("probe").connect(machine.nats.url()).await?;
        let mut processes = machine.processes();
        processes.push((CLIENT, std::process::id()));
        let mut jetstream = jetstream::new(client);
        jetstream.set_timeout(SERVER_TIMEOUT);
        Ok(Self {
            processes,
            monitor: machine.nats.monitor_url().unwrap_or_default(),
            http: reqwest::Client::builder().no_proxy().build()?,
            jetstream,
            postgres: PgConnection::connect(&machine.database).await?,
        })
    }

    /// The names of all processes, each once, the benchmark's own last.
    pub fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<&'static str> = self.processes.iter().map(|(name, _)| *name).collect();
        names.dedup();
        names
    }

    /// Waits until the projector has taken in the whole log: what it does belongs to the turns that made it.
    pub async fn settled(&mut self) -> Outcome<()> {
        let end = i64::try_from(stored(&self.jetstream, EVENTS_STREAM).await?.messages)?;
        let position = "SELECT coalesce(min(sequence), 0) FROM positions JOIN generations USING (generation) \
                        WHERE projection = 'read-model' AND state = 'live'";
        let deadline = Instant::now() + SETTLED_WITHIN;
        while sqlx::query_scalar::<_, i64>(position).fetch_one(&mut self.postgres).await? < end {
            if Instant::now() > deadline {
                return Err(format!("the read model is not at {end} within {SETTLED_WITHIN:?}").into());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    pub async fn read(&mut self) -> Outcome<Reading> {
        let mut cpu = cpu::seconds(&self.processes)?;
        // The servers and services are children of this process, but not its work.
        let others: f64 = cpu.iter().filter(|(name, _)| **name != CLIENT).map(|(_, seconds)| seconds).sum();
        cpu.entry(CLIENT).and_modify(|seconds| *seconds -= others);
        let tables = "SELECT pg_database_size(current_database())";
        let tables: i64 = sqlx::query_scalar(tables).fetch_one(&mut self.postgres).await?;
        Ok(Reading {
            cpu,
            traffic: self.by_process(&traffic(&self.http, &self.monitor).await?),
            log: stored(&self.jetstream, EVENTS_STREAM).await?,
            // Not there until Kairo has warmed up.
            floor: stored(&self.jetstream, floor::STREAM).await.unwrap_or_default(),
            tables: u64::try_from(tables)?,
            buckets: buckets(&self.jetstream).await?,
        })
    }

    /// Connections are named after their process.
    fn by_process(&self, connections: &BTreeMap<String, Traffic>) -> BTreeMap<&'static str, Traffic> {
        let mut all: BTreeMap<&'static str, Traffic> = BTreeMap::new();
        for (connection, traffic) in connections {
            let process = self.processes.iter().find(|(process, _)| connection.starts_with(process));
            let name = match process {
                Some((name, _)) => *name,
                None if connection.starts_with("floor") => CLIENT,
                None => continue,
            };
            let sum = all.entry(name).or_default();
            sum.received += traffic.received;
            sum.sent += traffic.sent;
        }
        all
    }
}

impl Reading {
    /// Returns the change of the counters since `before`.
    pub fn since(mut self, before: &Self) -> Self {
        for (name, seconds) in &mut self.cpu {
            *seconds -= before.cpu.get(name).copied().unwrap_or_default();
        }
        for (name, traffic) in &mut self.traffic {
            let before = before.traffic.get(name).copied().unwrap_or_default();
            traffic.received = traffic.received.saturating_sub(before.received);
            traffic.sent = traffic.sent.saturating_sub(before.sent);
        }
        self.log = self.log.since(before.log);
        self.floor = self.floor.since(before.floor);
        self.tables = self.tables.saturating_sub(before.tables);
        for (name, writes) in &mut self.buckets {
            *writes = writes.saturating_sub(before.buckets.get(name).copied().unwrap_or_default());
        }
        self
    }

    /// Adds how far they moved another time.
    pub fn add(&mut self, more: &Self) {
        for (name, seconds) in &more.cpu {
            *self.cpu.entry(name).or_default() += seconds;
        }
        for (name, traffic) in &more.traffic {
            let sum = self.traffic.entry(name).or_default();
            sum.received += traffic.received;
            sum.sent += traffic.sent;
        }
        self.log = self.log.plus(more.log);
        self.floor = self.floor.plus(more.floor);
        self.tables += more.tables;
        for (name, writes) in &more.buckets {
            *self.buckets.entry(name.clone()).or_default() += writes;
        }
    }
}
