//! The configuration of tool workers.

use std::collections::BTreeSet;

use kairo_core::ids::Name;
use serde::{Deserialize, Serialize};

use crate::web_api::config::prefix_mistake;

/// A worker that may offer tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkerConfig {
    /// Name in the worker's announcements and subjects: `[a-z0-9_-]`.
    pub name: String,
    /// First segment of its tools' names. Default its name.
    pub prefix: String,
    /// Tools, by the worker's own names, that may be called again with the same action id even though the worker does
    /// not say so. Default none.
    pub idempotent: Vec<String>,
    /// Tools, by the worker's own names, whose calls each need a human's consent, besides those the worker itself marks
    /// so. Default none.
    pub needs_approval: Vec<String>,
    /// True if the worker's own word is enough that a tool is idempotent or only reads. Default true.
    pub trust_hints: bool,
    /// True if the worker's content counts as the operator's own words; otherwise it is content from outside.
    /// Default false.
    pub trust_content: bool,
    /// Digests of definitions, as `kairo status` shows them, that may be offered although they changed since the first
    /// offer; `*` for any. Default none.
    pub accept: Vec<String>,
    /// Time limit of its calls, in milliseconds. Default that of all tools.
    pub call_timeout_ms: Option<u64>,
    /// Maximum number of tools it may offer. Default 64.
    pub max_tools: usize,
}

/// The settings for exchanging messages with all workers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkerLifecycleConfig {
    /// Interval at which a worker announces itself and its tools, in milliseconds; one silent for three intervals
    /// counts as gone. Default 5 000.
    pub announce_ms: u64,
    /// Longest wait of tool-runner for its workers when it starts, in milliseconds. Default 2 000.
    pub start_wait_ms: u64,
    /// Longest wait of a call for a worker that is absent, in milliseconds. Default 10 000.
    pub wait_ms: u64,
    /// Longest time a present worker may take to accept a call, in milliseconds. Default 2 000.
    pub accept_ms: u64,
    /// Interval at which a worker reports that it still works on a call, in milliseconds. Default 2 000.
    pub beat_ms: u64,
    /// Longest silence of a worker about a call before it counts as lost, in milliseconds. Default 10 000.
    pub silence_ms: u64,
    /// Pause before a call is offered again to workers that were all busy, in milliseconds. Default 500.
    pub busy_ms: u64,
    /// Times that a call of an idempotent tool is given to a worker, if workers are lost. Default 3.
    pub attempts: u32,
    /// Largest message of a worker, in bytes. Default 524 288.
    pub max_message_bytes: usize,
    /// Replicas of one worker that are known at once. Default 64.
    pub max_replicas: usize,
}

impl Default for WorkerConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            prefix: String::new(),
            idempotent: Vec::new(),
            needs_approval: Vec::new(),
            trust_hints: true,
            trust_content: false,
            accept: Vec::new(),
            call_timeout_ms: None,
            max_tools: 64,
        }
    }
}

impl Default for WorkerLifecycleConfig {
    fn default() -> Self {
        Self {
            announce_ms: 5_000,
            start_wait_ms: 2_000,
            wait_ms: 10_000,
            accept_ms: 2_000,
            beat_ms: 2_000,
            silence_ms: 10_000,
            busy_ms: 500,
            attempts: 3,
            max_message_bytes: 512 * 1024,
            max_replicas: 64,
        }
    }
}

impl WorkerConfig {
    /// First segment of its tools' names.
    pub fn prefix(&self) -> &str {
        if self.prefix.is_empty() { &self.name } else { &self.prefix }
    }

    fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        if Name::parse(&self.name).is_err() {
            mistakes.push(format!("name: {:?}, expected 1 to 64 of the characters a-z 0-9 _ -", self.name));
        }
        mistakes.extend(prefix_mistake("prefix", self.prefix()));
        if self.call_timeout_ms == Some(0) {
            mistakes.push("call_timeout_ms: must be at least 1".to_owned());
        }
        if self.max_tools == 0 {
            mistakes.push("max_tools: must be at least 1".to_owned());
        }
        mistakes
    }
}

impl WorkerLifecycleConfig {
    /// Every mistake, each after its key.
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        for (key, value) in [
            ("announce_ms", self.announce_ms),
            ("accept_ms", self.accept_ms),
            ("beat_ms", self.beat_ms),
            ("busy_ms", self.busy_ms),
            ("attempts", u64::from(self.attempts)),
            ("max_message_bytes", u64::try_from(self.max_message_bytes).unwrap_or(u64::MAX)),
            ("max_replicas", u64::try_from(self.max_replicas).unwrap_or(u64::MAX)),
        ] {
            if value == 0 {
                mistakes.push(format!("{key}: must be at least 1"));
            }
        }
        if self.silence_ms < self.beat_ms.saturating_mul(2) {
            mistakes.push("silence_ms: expected at least twice beat_ms, as one beat may get lost".to_owned());
        }
        mistakes
    }
}

/// Every mistake in the list of workers, each after its index and key.
pub fn mistakes(workers: &[WorkerConfig]) -> Vec<String> {
    let mut mistakes = Vec::new();
    let mut names = BTreeSet::new();
    for (index, worker) in workers.iter().enumerate() {
        mistakes.extend(worker.mistakes().iter().map(|mistake| format!("workers[{index}].{mistake}")));
        if !names.insert(&worker.name) {
            mistakes.push(format!("workers[{index}].name: {:?} is taken already", worker.name));
        }
    }
    mistakes
}
