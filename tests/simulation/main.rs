//! Deterministic simulation: the pure cores of router, agent-runtime, tool-runner and process-supervisor in one
//! thread, over a log in memory. Chance, from a seed, chooses who takes the next step and what goes wrong before it:
//! a replica dies, or stands still and goes on later as a zombie, a request or an answer is lost, a server lags behind,
//! a delivery comes twice or out of order, a message is copied past every guard. After a while nothing goes wrong any
//! more; then everything must come to rest within a bounded number of steps, and the [`invariants`] must hold.
//!
//! ```text
//! cargo nextest run -p kairo-tests --test simulation              # all of it
//! KAIRO_SEEDS=100000 cargo nextest run -p kairo-tests --test simulation   # more of it
//! KAIRO_SEED=4711 KAIRO_TRACE=1 cargo test -p kairo-tests --test simulation -- --nocapture one_seed
//! ```
//!
//! **Real** are `mind/` (fold, deliberation, chains, tasks, requests, answers, snapshots), the three `plan.rs`, `address.rs`
//! and `inputs.rs`, how registrations of hooks are merged,
//! the envelope, the bodies and their bytes, the ids, the table of subjects, and the locks of `slots.rs`.
//!
//! **Mirrored**, by hand and line by line, are the shells around them, since they speak to a server: `append` with its
//! look at the last message after an error, `append_patiently` ([`replica`]), the ledger with its window ([`ledger`]),
//! claims ([`claims`]), `consume` with its conflicts ([`actor`]), `holding` and its two questions ([`replica`]); of
//! agent-runtime the doorbell, claim, restart, commit, catch-up and snapshot protocol ([`runtime`], [`memory`]), and the
//! effects of decisions with the timers and registrations of `kairo_core::bus` ([`effects`]); of
//! tool-runner entering, holding, doing, reporting, what becomes of processes, and `action.cancel` ([`runner`],
//! [`results`], [`cancel`]); of process-supervisor the gate, the three ledgers, the end, and stopping on request
//! ([`supervisor`], [`requests`]). A change to one of these there is a change here.
//!
//! Three things are simpler than there. A supervisor that is asked to stop a process works within the step of whoever
//! asks, so it does not die in the middle of it; it does stand still. Waiting for a result is looking for it a few
//! times. And `append` takes another's message for its own only if the envelope is the same, too, and the ledger
//! forgets nothing while it is looked into: see the flaws of these names.
//!
//! **Made up** are the models ([`script`]: plans, chains, choices of threads, verdicts on conditions, and nonsense), what
//! users say and choose ([`load`], [`orders`]), mails and events of other systems, which the router and tool-runner would
//! tell agents of, and the server's timers, which go off late, in any order, twice, or although they were taken back. When
//! everything is at rest, users answer what is still open and time passes, so that what is planned for later comes about.
//!
//! **Left out** are clocks: how long an ack wait, a lease or a delay is. That a process is dead before anybody says so
//! is taken for granted where `lease.rs` argues it; everything else holds whatever the times. Also left out: the other
//! tools for processes, limits and admission, progress, live output, orderly shutdowns, a replica that alone is cut off
//! from the server, bodies that are too large or cannot be read, projector and gateway, a directory of agents that lags
//! behind, and the end of the window of duplicates.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a simulation that cannot go on has failed"
)]

mod actor;
mod blows;
mod cancel;
mod chance;
mod claims;
mod effects;
mod faults;
mod flaw;
mod invariants;
mod ledger;
mod load;
mod log;
mod memory;
mod model;
mod orders;
mod replica;
mod requests;
mod results;
mod router;
mod runner;
mod runtime;
mod scheduler;
mod script;
mod steps;
mod supervisor;
mod world;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use kairo_tests::audit;

use crate::{flaw::Flaw, scheduler::Simulation};

/// Runs, each of its own seed, unless `KAIRO_SEEDS` says otherwise.
const SEEDS: u64 = 1_000;
/// Of so many runs one is repeated, to see that it is the same again.
const REPEATED: u64 = 50;

/// What a run came to.
struct Outcome {
    mistakes: Vec<String>,
    /// The messages of its log, as they would lie in the stream.
    log: Vec<Vec<u8>>,
}

/// Says which seed it was, whatever becomes of the run.
struct Running(u64);

impl Drop for Running {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}", replay(self.0));
        }
    }
}

fn run(seed: u64, flaw: Option<Flaw>, trace: bool) -> Outcome {
    let _running = Running(seed);
    let mut simulation = Simulation::new(seed, flaw, trace);
    simulation.run();
    let mistakes = invariants::mistakes(&simulation);
    let log = simulation.world.borrow().log.bytes();
    Outcome { mistakes, log }
}

fn replay(seed: u64) -> String {
    format!(
        "replay: KAIRO_SEED={seed} KAIRO_TRACE=1 cargo test -p kairo-tests --test simulation -- --nocapture one_seed"
    )
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The first seed of all for which `wrong` says something, and what it says.
fn first_wrong(seeds: u64, wrong: impl Fn(u64) -> Option<String> + Sync) -> Option<(u64, String)> {
    let next = AtomicU64::new(0);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                return None;
            }
            if let Some(wrong) = wrong(seed) {
                // The others finish what they have begun, and nobody begins anything.
                next.store(seeds, Ordering::Relaxed);
                return Some((seed, wrong));
            }
        }
    };
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads.into_iter().filter_map(|thread| thread.join().expect("a thread that did not panic")).min()
    })
}

#[test]
fn whatever_goes_wrong_nothing_is_lost_and_nothing_done_twice() {
    let wrong = first_wrong(number("KAIRO_SEEDS").unwrap_or(SEEDS), |seed| {
        let outcome = run(seed, None, false);
        (!outcome.mistakes.is_empty()).then(|| outcome.mistakes.join("\n"))
    });
    if let Some((seed, mistakes)) = wrong {
        panic!("seed {seed}:\n{mistakes}\n{}", replay(seed));
    }
}

#[test]
fn a_seed_gives_the_same_log_to_the_byte() {
    let wrong = first_wrong(SEEDS / REPEATED, |number| {
        let seed = number * REPEATED;
        (run(seed, None, false).log != run(seed, None, false).log).then(|| replay(seed))
    });
    assert_eq!(wrong, None);
}

/// Replays one seed, for whoever looks into it.
#[test]
fn one_seed() {
    let seed = number("KAIRO_SEED").unwrap_or(0);
    let outcome = run(seed, None, number("KAIRO_TRACE").is_some());
    assert!(outcome.mistakes.is_empty(), "seed {seed}:\n{}", outcome.mistakes.join("\n"));
}

#[test]
fn every_flaw_is_found() {
    for flaw in Flaw::ALL {
        // Some want a rare meeting of faults; the search ends with the first seed that has it.
        let seeds = 10 * SEEDS;
        let found = first_wrong(seeds, |seed| run(seed, Some(flaw), false).mistakes.into_iter().next());
        let (seed, mistake) = found.unwrap_or_else(|| panic!("{flaw:?} was not found by {seeds} seeds"));
        println!("{flaw:?} was found by seed {seed}: {mistake}");
    }
}
