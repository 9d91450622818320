//! What came out, as tables for people and as JSON.

use std::{fmt, time::Duration};

use serde::Serialize;

use crate::{
    arguments::{Arguments, Flushing},
    load::percentile,
    monitor::Traffic,
    probe::CLIENT,
    rounds::{Side, Usage},
};

/// One run.
#[derive(Debug, Serialize)]
pub struct Report {
    sync: Flushing,
    turns: u64,
    rounds: u64,
    history: u32,
    kairo: Figures,
    floor: Figures,
    processes: Vec<Process>,
}

/// Medians over the rounds, and averages of what was used.
#[derive(Debug, Serialize)]
struct Figures {
    latency_p50_ms: f64,
    latency_p99_ms: f64,
    turns_per_second: f64,
    stored_messages_per_turn: f64,
    stored_bytes_per_turn: f64,
    snapshots_per_turn: f64,
    claim_writes_per_turn: f64,
    /// At 64 in flight, without the benchmark's own process; of the floor, that of nats-server alone.
    cpu_seconds_per_1000_turns: f64,
}

#[derive(Debug, Serialize)]
struct Process {
    name: &'static str,
    cpu_seconds_per_1000_turns: f64,
    cpu_seconds_per_1000_turns_alone: f64,
    /// To nats-server and from it.
    messages_sent_per_turn: f64,
    messages_received_per_turn: f64,
}

/// What is aimed at.
const LATENCY_RATIO: f64 = 3.0;
const THROUGHPUT_RATIO: f64 = 1.0 / 3.0;
const STORED_MESSAGES: f64 = 6.0;
const CPU_SECONDS: f64 = 1.0;

impl Report {
    pub fn new(sync: Flushing, arguments: &Arguments, names: &[&'static str], kairo: &Side, floor: &Side) -> Self {
        Self {
            sync,
            turns: arguments.turns,
            rounds: arguments.rounds,
            history: arguments.history,
            kairo: Figures::of(kairo),
            floor: Figures { stored_messages_per_turn: floor_messages(floor), ..Figures::of(floor) }.stored_by(floor),
            processes: names.iter().map(|name| Process::of(name, kairo)).collect(),
        }
    }
}

fn floor_messages(side: &Side) -> f64 {
    side.together.per_turn(side.together.counted.floor.messages)
}

impl Figures {
    fn of(side: &Side) -> Self {
        let usage = &side.together;
        let cpu = usage.counted.cpu.iter().filter(|(name, _)| **name != CLIENT).map(|(_, seconds)| seconds);
        Self {
            latency_p50_ms: median(&side.p50, milliseconds),
            latency_p99_ms: median(&side.p99, milliseconds),
            turns_per_second: median(&side.rates, |rate| rate),
            stored_messages_per_turn: usage.per_turn(usage.counted.log.messages),
            stored_bytes_per_turn: usage.per_turn(usage.counted.log.bytes),
            snapshots_per_turn: usage.per_turn(usage.counted.snapshots),
            claim_writes_per_turn: usage.per_turn(usage.counted.claims),
            cpu_seconds_per_1000_turns: usage.per_1000_turns(cpu.sum()),
        }
    }

    fn stored_by(self, floor: &Side) -> Self {
        Self { stored_bytes_per_turn: floor.together.per_turn(floor.together.counted.floor.bytes), ..self }
    }
}

impl Process {
    fn of(name: &'static str, kairo: &Side) -> Self {
        let cpu = |usage: &Usage| usage.per_1000_turns(usage.counted.cpu.get(name).copied().unwrap_or_default());
        let Traffic { received, sent } = kairo.together.counted.traffic.get(name).copied().unwrap_or_default();
        Self {
            name,
            cpu_seconds_per_1000_turns: cpu(&kairo.together),
            cpu_seconds_per_1000_turns_alone: cpu(&kairo.alone),
            // What a process sends, the server receives.
            messages_sent_per_turn: kairo.together.per_turn(received),
            messages_received_per_turn: kairo.together.per_turn(sent),
        }
    }
}

impl Usage {
    fn per_turn(&self, count: u64) -> f64 {
        count as f64 / self.turns.max(1) as f64
    }

    fn per_1000_turns(&self, seconds: f64) -> f64 {
        seconds * 1000.0 / self.turns.max(1) as f64
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn median<T: Copy + PartialOrd + Default>(rounds: &[T], as_number: impl Fn(T) -> f64) -> f64 {
    let mut sorted = rounds.to_vec();
    sorted.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    as_number(percentile(&sorted, 0.5))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kairo, floor, .. } = self;
        writeln!(
            f,
            "\nflushing: {}; medians of {} rounds of {} turns at 64 in flight and a quarter of them at one\n",
            self.sync.name(),
            self.rounds,
            self.turns
        )?;
        writeln!(f, "{:38}{:>10}{:>10}{:>9}{:>11}", "", "Kairo", "floor", "ratio", "aim")?;
        let ratio = |f: &mut fmt::Formatter<'_>, name: &str, kairo: f64, floor: f64, digits: usize, aim: &str| {
            writeln!(f, "{name:38}{kairo:>10.digits$}{floor:>10.digits$}{:>9.2}{aim:>11}", kairo / floor)
        };
        let latency_aim = format!("<= {LATENCY_RATIO}");
        ratio(f, "latency at one in flight, p50 ms", kairo.latency_p50_ms, floor.latency_p50_ms, 2, &latency_aim)?;
        ratio(f, "latency at one in flight, p99 ms", kairo.latency_p99_ms, floor.latency_p99_ms, 2, "")?;
        let rate_aim = format!(">= {THROUGHPUT_RATIO:.2}");
        ratio(f, "turns per second, 64 in flight", kairo.turns_per_second, floor.turns_per_second, 0, &rate_aim)?;
        let (cpu, bare_cpu) = (kairo.cpu_seconds_per_1000_turns, floor.cpu_seconds_per_1000_turns);
        ratio(f, "CPU seconds per 1 000 turns", cpu, bare_cpu, 2, &format!("< {CPU_SECONDS}"))?;
        let (stored, bare) = (kairo.stored_messages_per_turn, floor.stored_messages_per_turn);
        ratio(f, "stored messages a turn", stored, bare, 2, &STORED_MESSAGES.to_string())?;
        ratio(f, "bytes in the log a turn", kairo.stored_bytes_per_turn, floor.stored_bytes_per_turn, 0, "")?;
        writeln!(
            f,
            "beside the log a turn writes {:.2} claims (memory) and {:.3} snapshots",
            kairo.claim_writes_per_turn, kairo.snapshots_per_turn
        )?;
        self.write_processes(f)
    }
}

impl Report {
    fn write_processes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{:26}{:>27}{:>27}", "", "CPU s per 1 000 turns", "NATS messages a turn")?;
        writeln!(f, "{:26}{:>14}{:>13}{:>14}{:>13}", "", "64 in flight", "one", "sent", "received")?;
        for process in &self.processes {
            writeln!(
                f,
                "{:26}{:>14.3}{:>13.3}{:>14.1}{:>13.1}",
                process.name,
                process.cpu_seconds_per_1000_turns,
                process.cpu_seconds_per_1000_turns_alone,
                process.messages_sent_per_turn,
                process.messages_received_per_turn
            )?;
        }
        let counted = || self.processes.iter().filter(|process| process.name != CLIENT);
        writeln!(
            f,
            "{:26}{:>14.3}{:>13.3}{:>14.1}{:>13.1}",
            "sum without the client",
            counted().map(|process| process.cpu_seconds_per_1000_turns).sum::<f64>(),
            counted().map(|process| process.cpu_seconds_per_1000_turns_alone).sum::<f64>(),
            counted().map(|process| process.messages_sent_per_turn).sum::<f64>(),
            counted().map(|process| process.messages_received_per_turn).sum::<f64>()
        )
    }
}
