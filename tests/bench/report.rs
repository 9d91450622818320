//! The results, as tables for people and as JSON.

use std::{collections::BTreeMap, fmt, time::Duration};

use serde::Serialize;

use crate::{
    arguments::{Arguments, Flushing},
    load::percentile,
    monitor::{Stored, Traffic},
    probe::{CLIENT, Reading},
    rounds::{Side, Sides, Usage},
};

/// One run.
#[derive(Debug, Serialize)]
pub struct Report {
    sync: Flushing,
    turns: u64,
    rounds: u64,
    history: u32,
    /// Over `/v1/messages`, with one event stream.
    messages: Figures,
    /// Over `/v1/chat/completions`, streamed.
    chat: Figures,
    floor: Figures,
    processes: Vec<Process>,
}

/// Medians over the rounds, and averages of what was used.
#[derive(Debug, Serialize)]
struct Figures {
    latency_p50_ms: f64,
    latency_p99_ms: f64,
    turns_per_second: f64,
    latency_p50_ms_together: f64,
    latency_p99_ms_together: f64,
    stored_messages_per_turn: f64,
    stored_bytes_per_turn: f64,
    tables_bytes_per_turn: f64,
    /// By bucket.
    bucket_writes_per_turn: BTreeMap<String, f64>,
    /// At 64 in flight, without the benchmark's own process and the simulator; of the floor, that of nats-server alone.
    cpu_seconds_per_1000_turns: f64,
}

/// One process, by entrance.
#[derive(Debug, Serialize)]
struct Process {
    name: &'static str,
    messages: Used,
    chat: Used,
}

#[derive(Debug, Default, Serialize)]
struct Used {
    cpu_seconds_per_1000_turns: f64,
    cpu_seconds_per_1000_turns_alone: f64,
    /// To nats-server and from it.
    nats_messages_sent_per_turn: f64,
    nats_messages_received_per_turn: f64,
}

/// The targets of the results.
const LATENCY_RATIO: f64 = 3.0;
const THROUGHPUT_RATIO: f64 = 1.0 / 3.0;
const STORED_MESSAGES: f64 = 6.0;
const CPU_SECONDS: f64 = 1.0;
const BYTES: f64 = 8_192.0;
/// Stands for the world outside.
const SIMULATOR: &str = "kairo-model-sim";

impl Report {
    pub fn new(sync: Flushing, arguments: &Arguments, names: &[&'static str], sides: &Sides) -> Self {
        Self {
            sync,
            turns: arguments.turns,
            rounds: arguments.rounds,
            history: arguments.history,
            messages: Figures::of(&sides.messages, |counted| counted.log),
            chat: Figures::of(&sides.chat, |counted| counted.log),
            floor: Figures::of(&sides.floor, |counted| counted.floor),
            processes: names.iter().map(|name| Process::of(name, sides)).collect(),
        }
    }
}

impl Figures {
    fn of(side: &Side, stored: impl Fn(&Reading) -> Stored) -> Self {
        let usage = &side.together;
        let cpu = usage.counted.cpu.iter().filter(|(name, _)| is_counted(name)).map(|(_, seconds)| seconds);
        let Stored { messages, bytes } = stored(&usage.counted);
        let writes = usage.counted.buckets.iter().filter(|(_, writes)| **writes > 0);
        Self {
            latency_p50_ms: median(&side.p50, milliseconds),
            latency_p99_ms: median(&side.p99, milliseconds),
            turns_per_second: median(&side.rates, |rate| rate),
            latency_p50_ms_together: median(&side.p50_together, milliseconds),
            latency_p99_ms_together: median(&side.p99_together, milliseconds),
            stored_messages_per_turn: usage.per_turn(messages),
            stored_bytes_per_turn: usage.per_turn(bytes),
            tables_bytes_per_turn: usage.per_turn(usage.counted.tables),
            bucket_writes_per_turn: writes.map(|(name, writes)| (name.clone(), usage.per_turn(*writes))).collect(),
            cpu_seconds_per_1000_turns: usage.per_1000_turns(cpu.sum()),
        }
    }
}

/// Returns true if a process is part of Kairo or one of its servers.
fn is_counted(name: &str) -> bool {
    name != CLIENT && name != SIMULATOR
}

impl Process {
    fn of(name: &'static str, sides: &Sides) -> Self {
        Self { name, messages: Used::of(name, &sides.messages), chat: Used::of(name, &sides.chat) }
    }
}

impl Used {
    fn of(name: &str, side: &Side) -> Self {
        let cpu = |usage: &Usage| usage.per_1000_turns(usage.counted.cpu.get(name).copied().unwrap_or_default());
        let Traffic { received, sent } = side.together.counted.traffic.get(name).copied().unwrap_or_default();
        Self {
            cpu_seconds_per_1000_turns: cpu(&side.together),
            cpu_seconds_per_1000_turns_alone: cpu(&side.alone),
            // What a process sends, the server receives.
            nats_messages_sent_per_turn: side.together.per_turn(received),
            nats_messages_received_per_turn: side.together.per_turn(sent),
        }
    }

    fn plus(self, more: &Self) -> Self {
        Self {
            cpu_seconds_per_1000_turns: self.cpu_seconds_per_1000_turns + more.cpu_seconds_per_1000_turns,
            cpu_seconds_per_1000_turns_alone: self.cpu_seconds_per_1000_turns_alone
                + more.cpu_seconds_per_1000_turns_alone,
            nats_messages_sent_per_turn: self.nats_messages_sent_per_turn + more.nats_messages_sent_per_turn,
            nats_messages_received_per_turn: self.nats_messages_received_per_turn
                + more.nats_messages_received_per_turn,
        }
    }
}

pub fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn median<T: Copy + PartialOrd + Default>(rounds: &[T], as_number: impl Fn(T) -> f64) -> f64 {
    let mut sorted = rounds.to_vec();
    sorted.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    as_number(percentile(&sorted, 0.5))
}

/// A row of the table: its name, digits behind the point, what is aimed at, and the figure.
type Row = (&'static str, usize, String, fn(&Figures) -> f64);

fn rows() -> Vec<Row> {
    vec![
        ("latency at one in flight, p50 ms", 2, format!("<= {LATENCY_RATIO} x"), |it| it.latency_p50_ms),
        ("latency at one in flight, p99 ms", 2, String::new(), |it| it.latency_p99_ms),
        ("turns per second, 64 in flight", 0, format!(">= {THROUGHPUT_RATIO:.2} x"), |it| it.turns_per_second),
        ("latency at 64 in flight, p50 ms", 1, String::new(), |it| it.latency_p50_ms_together),
        ("latency at 64 in flight, p99 ms", 1, String::new(), |it| it.latency_p99_ms_together),
        ("CPU seconds per 1 000 turns", 2, format!("<= {CPU_SECONDS}"), |it| it.cpu_seconds_per_1000_turns),
        ("stored messages a turn", 2, STORED_MESSAGES.to_string(), |it| it.stored_messages_per_turn),
        ("bytes in the log a turn", 0, format!("<= {BYTES}"), |it| it.stored_bytes_per_turn),
        ("bytes in Postgres a turn", 0, format!("<= {BYTES}"), |it| it.tables_bytes_per_turn),
    ]
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\nflushing: {}; medians of {} rounds of {} turns at 64 in flight and a quarter of them at one\n",
            self.sync.name(),
            self.rounds,
            self.turns
        )?;
        writeln!(
            f,
            "{:34}{:>10}{:>8}{:>10}{:>8}{:>10}{:>10}",
            "", "messages", "ratio", "chat", "ratio", "floor", "aim"
        )?;
        for (name, digits, aim, figure) in rows() {
            let (messages, chat, floor) = (figure(&self.messages), figure(&self.chat), figure(&self.floor));
            let ratio = |value: f64| if floor > 0.0 { format!("{:.2}", value / floor) } else { String::new() };
            writeln!(
                f,
                "{name:34}{messages:>10.digits$}{:>8}{chat:>10.digits$}{:>8}{floor:>10.digits$}{aim:>10}",
                ratio(messages),
                ratio(chat)
            )?;
        }
        for (entrance, figures) in [("messages", &self.messages), ("chat", &self.chat)] {
            let writes = figures.bucket_writes_per_turn.iter().map(|(bucket, writes)| format!("{writes:.3} {bucket}"));
            writeln!(f, "writes to buckets a turn, {entrance}: {}", writes.collect::<Vec<_>>().join(", "))?;
        }
        self.write_processes(f)
    }
}

impl Report {
    fn write_processes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{:28}{:>38}{:>38}", "", "over /v1/messages", "over /v1/chat/completions")?;
        write!(f, "{:28}", "")?;
        for _ in 0..2 {
            write!(f, "{:>20}{:>18}", "CPU s per 1 000", "NATS messages")?;
        }
        write!(f, "\n{:28}", "")?;
        for _ in 0..2 {
            write!(f, "{:>12}{:>8}{:>9}{:>9}", "64", "one", "sent", "received")?;
        }
        writeln!(f)?;
        for process in &self.processes {
            write_used(f, process.name, [&process.messages, &process.chat])?;
        }
        let counted = || self.processes.iter().filter(|process| is_counted(process.name));
        let messages = counted().fold(Used::default(), |sum, process| sum.plus(&process.messages));
        let chat = counted().fold(Used::default(), |sum, process| sum.plus(&process.chat));
        write_used(f, "without client and model", [&messages, &chat])
    }
}

fn write_used(f: &mut fmt::Formatter<'_>, name: &str, entrances: [&Used; 2]) -> fmt::Result {
    write!(f, "{name:28}")?;
    for used in entrances {
        write!(
            f,
            "{:>12.3}{:>8.3}{:>9.1}{:>9.1}",
            used.cpu_seconds_per_1000_turns,
            used.cpu_seconds_per_1000_turns_alone,
            used.nats_messages_sent_per_turn,
            used.nats_messages_received_per_turn
        )?;
    }
    writeln!(f)
}
