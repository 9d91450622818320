//! Everything outside of the actors: the log, what is kept beside it, the tools' effects and the processes.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::{Rc, Weak},
    task::Waker,
};

use jiff::Timestamp;
use kairo_core::{hooks::Registration, ids::Name};
use kairo_proto::Body;
use uuid::Uuid;

use crate::{chance::Chance, effects::Timer, faults::Faults, flaw::Flaw, log::MemoryLog, supervisor::Supervisor};

pub type Shared = Rc<RefCell<World>>;

pub struct World {
    pub seed: u64,
    pub log: MemoryLog,
    /// Claims on agents: who, answering which doorbell, the last decision known; with their revisions.
    pub claims: BTreeMap<Name, (Claim, u64)>,
    pub revision: u64,
    /// The newest snapshot of each agent.
    pub snapshots: BTreeMap<Name, Vec<u8>>,
    /// Every snapshot there ever was.
    pub snapshots_ever: Vec<(Name, Vec<u8>)>,
    pub replicas: Vec<Condition>,
    /// Whom supervisors and runners ask to stop a process.
    pub supervisors: Vec<Weak<Supervisor>>,
    /// Effects of tools, by action: how often the tool was called.
    pub called: BTreeMap<Uuid, u32>,
    pub processes: Vec<Process>,
    /// Timers that are set, by task and occurrence.
    pub timers: BTreeMap<(Uuid, u64), Timer>,
    /// Tasks that wait for something outside, or may.
    pub registrations: BTreeMap<Uuid, (Name, Registration)>,
    pub faults: Faults,
    pub flaw: Option<Flaw>,
    /// What must never be seen, and was.
    pub violations: Vec<String>,
    pub chance: Rc<RefCell<Chance>>,
    pub clock: u64,
    /// Seconds that have passed without anything being done.
    pub ahead: u64,
    pub trace: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claim {
    pub owner: Option<Name>,
    pub doorbell: u64,
    pub decided: u64,
}

/// One replica, as others see it.
pub struct Condition {
    pub instance: Name,
    pub alive: bool,
    pub frozen: bool,
    /// What it answers for, and whether it was told to stop that.
    pub held: BTreeMap<Uuid, Rc<Cell<bool>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// It exists, and its program does not run.
    AtTheGate,
    Running,
    /// It ended by itself.
    Ended,
    /// It was asked to end.
    Stopped,
    /// Killed by its guard: its supervisor is gone, or let go of it.
    Killed,
}

pub struct Process {
    pub action: Uuid,
    pub replica: usize,
    pub state: ProcessState,
    /// Whether its program ever ran.
    pub ran: bool,
    pub waiting: Option<Waker>,
}

impl World {
    pub fn new(seed: u64, faults: Faults, flaw: Option<Flaw>, trace: bool) -> Self {
        Self {
            seed,
            log: MemoryLog::default(),
            claims: BTreeMap::new(),
            revision: 0,
            snapshots: BTreeMap::new(),
            snapshots_ever: Vec::new(),
            replicas: Vec::new(),
            supervisors: Vec::new(),
            called: BTreeMap::new(),
            processes: Vec::new(),
            timers: BTreeMap::new(),
            registrations: BTreeMap::new(),
            faults,
            flaw,
            violations: Vec::new(),
            chance: Rc::new(RefCell::new(Chance::new(seed))),
            clock: 0,
            ahead: 0,
            trace,
        }
    }

    /// The time: each step takes a second.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + (self.clock + self.ahead) as i64).expect("a time")
    }

    pub fn strikes(&self, rate: u64) -> bool {
        self.chance.borrow_mut().permille(rate)
    }

    pub fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    pub fn note(&self, who: &str, what: impl FnOnce() -> String) {
        if self.trace {
            eprintln!("{:>6} {who:<24} {}", self.clock, what());
        }
    }

    pub fn violation(&mut self, what: String) {
        self.note("VIOLATION", || what.clone());
        self.violations.push(what);
    }

    /// A tool does what it is there for.
    pub fn effect(&mut self, who: &str, action: Uuid) {
        self.note(who, || format!("EFFECT of {action}"));
        let begun = |body: &Body| match body {
            Body::ToolInvoke(invoke) => invoke.actions.iter().any(|begun| begun.action_id == action.to_string()),
            _ => false,
        };
        if !self.log.records.iter().any(|record| begun(&record.body)) {
            self.violation(format!("an effect of {action}, which the ledger does not know as begun"));
        }
        *self.called.entry(action).or_default() += 1;
    }

    pub fn prepare(&mut self, action: Uuid, replica: usize) -> usize {
        self.processes.push(Process { action, replica, state: ProcessState::AtTheGate, ran: false, waiting: None });
        self.processes.len() - 1
    }

    /// Lets the program run, if its guard still waits for that.
    pub fn open(&mut self, who: &str, process: usize) {
        let Process { action, state, .. } = self.processes[process];
        if state != ProcessState::AtTheGate {
            return;
        }
        self.note(who, || format!("RUNS the process of {action}"));
        let spawned = |body: &Body| matches!(body, Body::ProcessSpawned(it) if it.action_id == action.to_string());
        if !self.log.records.iter().any(|record| spawned(&record.body)) {
            self.violation(format!("the process of {action} runs and the log does not know it"));
        }
        let process = &mut self.processes[process];
        (process.state, process.ran) = (ProcessState::Running, true);
    }

    /// Whether a replica is there and answers.
    pub fn answers(&self, replica: usize) -> bool {
        self.replicas[replica].alive && !self.replicas[replica].frozen
    }

    /// A process is over, unless it was before.
    pub fn over(&mut self, process: usize, state: ProcessState) {
        let process = &mut self.processes[process];
        if matches!(process.state, ProcessState::AtTheGate | ProcessState::Running) {
            process.state = state;
            process.waiting.take().into_iter().for_each(Waker::wake);
        }
    }

    /// The guards of a replica's processes kill them: it is dead, or gave no sign of life for the length of the lease.
    pub fn lease_over(&mut self, replica: usize) {
        for process in 0..self.processes.len() {
            if self.processes[process].replica == replica {
                self.over(process, ProcessState::Killed);
            }
        }
    }
}
