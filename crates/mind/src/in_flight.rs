//! An agent's work in flight: actions without a result, processes in the background, and actions in doubt.
//!
//! All of it is built from the log, so it survives a restart of the agent.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use kairo_proto::v1::{ProcessExited, ProcessProgress, ProcessSpawned, ToolProgress};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::thread::cut_to;

/// Arguments shown of what is in flight, in bytes; the thread has them whole.
const ARGUMENT_BYTES: usize = 2_048;
/// Output shown of what is in flight, in bytes.
const TAIL_BYTES: usize = 2_048;
/// Longest part kept of a progress message, in bytes.
const MESSAGE_BYTES: usize = 512;
/// Processes remembered after their end, the oldest forgotten first.
const ENDED: usize = 64;
/// Actions in doubt that a human may still say something about, the oldest forgotten first.
const DOUBTS: usize = 256;

/// An action that has no result yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InFlightAction {
    pub turn: Uuid,
    pub thread_id: String,
    pub tool: String,
    pub arguments: String,
    pub since: Timestamp,
    /// Nothing about it stands in the log up to here.
    pub after: u64,
    /// True if the log says that the action was begun.
    pub begun: bool,
    /// The process it became.
    pub process: Option<StartedProcess>,
    pub progress: Option<ActionProgress>,
    pub cancel_requested: bool,
    /// Hooks on whose behalf it runs, which may be longer than the turn that began it.
    pub lineage: Vec<Uuid>,
    /// The agent that does it, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// When the other agent's answer is late, as RFC 3339; none where it never is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<String>,
}

/// A process that exists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartedProcess {
    pub process_id: Uuid,
    pub pid: u32,
}

/// The last reported progress of an action or a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionProgress {
    pub at: Timestamp,
    /// 0 to 1, where it said.
    pub fraction: Option<f64>,
    pub message: String,
    /// The end of its output.
    pub tail: String,
}

/// A process in the background, from `process.spawn`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackgroundProcess {
    pub action: Uuid,
    pub thread_id: String,
    pub started: StartedProcess,
    /// As the model wrote them.
    pub arguments: String,
    pub since: Timestamp,
    pub after: u64,
    pub progress: Option<ActionProgress>,
    pub cancel_requested: bool,
}

/// The processes in the background.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BackgroundProcesses {
    /// By process id.
    pub running: BTreeMap<Uuid, BackgroundProcess>,
    /// Those that ended lately.
    ended: VecDeque<EndedProcess>,
}

/// A process that is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct EndedProcess {
    process_id: Uuid,
    target: ActionTarget,
    user: String,
}

/// Another action that a call is about, and how far back in the log to look for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionTarget {
    pub action: Uuid,
    pub after: u64,
}

/// An action of which nobody knows whether it happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DoubtfulAction {
    pub action: Uuid,
    pub thread_id: String,
    pub tool: String,
    pub arguments: String,
    /// True if another agent asked for the action; that agent is told and has a doubt of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
    /// True if a human gave a verdict on it; a late answer may still contradict the verdict.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_verdict: bool,
}

/// Actions in doubt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DoubtfulActions(VecDeque<DoubtfulAction>);

impl InFlightAction {
    /// Builds the entry of an action that was just decided.
    pub fn from_decision(
        turn: Uuid,
        thread_id: &str,
        tool: &str,
        arguments: &str,
        since: Timestamp,
        after: u64,
    ) -> Self {
        Self {
            turn,
            thread_id: thread_id.to_owned(),
            tool: tool.to_owned(),
            arguments: cut_to(arguments, ARGUMENT_BYTES),
            since,
            after,
            begun: false,
            process: None,
            progress: None,
            cancel_requested: false,
            lineage: Vec::new(),
            asked: None,
            due: None,
        }
    }
}

impl StartedProcess {
    pub fn from_spawned(spawned: &ProcessSpawned) -> Option<Self> {
        Some(Self { process_id: Uuid::parse_str(&spawned.process_id).ok()?, pid: spawned.pid })
    }
}

impl ActionProgress {
    pub fn from_tool(at: Timestamp, progress: &ToolProgress) -> Self {
        let message = cut_to(&progress.message, MESSAGE_BYTES);
        Self { at, fraction: progress.fraction, message, tail: String::new() }
    }

    pub fn from_process(at: Timestamp, progress: &ProcessProgress) -> Self {
        let tail = &progress.tail;
        let end = tail.get(tail.ceil_char_boundary(tail.len().saturating_sub(TAIL_BYTES))..).unwrap_or_default();
        Self {
            at,
            fraction: progress.fraction,
            message: cut_to(&progress.message, MESSAGE_BYTES),
            tail: end.to_owned(),
        }
    }
}

impl BackgroundProcesses {
    /// Those of a user who is forgotten, and in their threads.
    pub(super) fn forget_user(&mut self, user: &str, threads: &BTreeSet<String>) {
        self.running.retain(|_, process| !threads.contains(&process.thread_id));
        self.ended.retain(|ended| ended.user != user);
    }

    /// A process that goes on by itself from now on.
    pub fn record_spawn(&mut self, spawned: &ProcessSpawned, of: &InFlightAction, since: Timestamp) {
        let (Some(started), Ok(action)) = (StartedProcess::from_spawned(spawned), Uuid::parse_str(&spawned.action_id))
        else {
            return;
        };
        let process = BackgroundProcess {
            action,
            thread_id: of.thread_id.clone(),
            arguments: of.arguments.clone(),
            since,
            after: of.after,
            progress: None,
            cancel_requested: of.cancel_requested,
            started,
        };
        self.running.insert(process.started.process_id, process);
    }

    /// A process of this user is over; what it was, if it ran in the background.
    pub fn record_exit(&mut self, exited: &ProcessExited, user: &str) -> Option<BackgroundProcess> {
        let process = self.running.remove(&Uuid::parse_str(&exited.process_id).ok()?)?;
        let process_id = process.started.process_id;
        let target = process.target();
        self.ended.push_back(EndedProcess { process_id, target, user: user.to_owned() });
        if self.ended.len() > ENDED {
            self.ended.pop_front();
        }
        Some(process)
    }

    /// Returns the earliest position in the log among the processes that ended lately.
    pub fn oldest_ended(&self) -> Option<u64> {
        self.ended.iter().map(|ended| ended.target.after).min()
    }

    /// Returns the user of the lately ended process that this action became.
    pub fn user_of_ended(&self, action: Uuid) -> Option<&str> {
        self.ended.iter().rev().find(|ended| ended.target.action == action).map(|ended| ended.user.as_str())
    }

    /// The action that became this process, running or lately ended.
    pub fn target(&self, process_id: Uuid) -> Option<ActionTarget> {
        let ended = || self.ended.iter().rev().find(|ended| ended.process_id == process_id).map(|ended| ended.target);
        self.running.get(&process_id).map(BackgroundProcess::target).or_else(ended)
    }
}

impl BackgroundProcess {
    pub fn target(&self) -> ActionTarget {
        ActionTarget { action: self.action, after: self.after }
    }
}

impl DoubtfulActions {
    /// Those in threads of somebody who is forgotten.
    pub(super) fn forget_threads(&mut self, threads: &BTreeSet<String>) {
        self.0.retain(|doubt| !threads.contains(&doubt.thread_id));
    }

    pub fn add(&mut self, doubt: DoubtfulAction) {
        self.0.push_back(doubt);
        if self.0.len() > DOUBTS {
            self.0.pop_front();
        }
    }

    pub fn get(&self, action: Uuid) -> Option<&DoubtfulAction> {
        self.0.iter().find(|doubt| doubt.action == action)
    }

    pub(super) fn threads_mut(&mut self) -> impl Iterator<Item = &mut String> {
        self.0.iter_mut().map(|doubt| &mut doubt.thread_id)
    }

    /// Notes that a human has a verdict on what nobody knew; the first one counts.
    pub fn record_verdict(&mut self, action: Uuid) -> Option<DoubtfulAction> {
        let doubt = self.0.iter_mut().find(|doubt| doubt.action == action && !doubt.has_verdict)?;
        doubt.has_verdict = true;
        Some(doubt.clone())
    }

    /// Takes out what a late answer settles.
    pub fn take_settled(&mut self, action: Uuid) -> Option<DoubtfulAction> {
        let at = self.0.iter().position(|doubt| doubt.action == action)?;
        self.0.remove(at)
    }
}
