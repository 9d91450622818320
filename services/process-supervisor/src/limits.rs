//! The configured limits of one process. A request may ask for less, never for more.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The `[process_supervisor.limits]` of the configuration. Every value is a maximum; where a
/// request names none, the maximum applies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProcessLimits {
    /// Seconds from the start until a process is asked to end. Default 600.
    pub time_s: u64,
    /// Milliseconds between being asked to end and being killed. Default 2000.
    pub grace_ms: u64,
    /// Address space in bytes, of each process of a tree. Default 1 GiB.
    pub memory_bytes: u64,
    /// Processor seconds, of each process of a tree. Default 600.
    pub cpu_s: u64,
    /// Open files, of each process of a tree. Default 256.
    pub open_files: u64,
    /// Processes of the operating-system user as a whole. Default none: the inherited limit.
    pub processes: Option<u64>,
    /// Bytes of output that are passed on, over both streams; what comes after, progress too, is counted and thrown
    /// away. Default 16 MiB.
    pub output_bytes: u64,
    /// Bytes of input that a process has not read yet, beyond the 64 KiB its pipe holds; more are refused. Default
    /// 64 KiB.
    pub stdin_bytes: usize,
    /// Bytes of the end of each stream that the exit event keeps. Default 8 KiB.
    pub tail_bytes: usize,
    /// Arguments of one process. Default 256.
    pub arguments: usize,
    /// Bytes of all arguments together. Default 128 KiB.
    pub argument_bytes: usize,
    /// Processes that one supervisor runs at a time; more wait. Default 32.
    pub concurrent: usize,
    /// Processes of one agent that run at a time, over all supervisors; more are refused. Default 16.
    pub per_agent: usize,
}

impl Default for ProcessLimits {
    fn default() -> Self {
        Self {
            time_s: 600,
            grace_ms: 2_000,
            memory_bytes: 1 << 30,
            cpu_s: 600,
            open_files: 256,
            processes: None,
            output_bytes: 16 << 20,
            stdin_bytes: 64 << 10,
            tail_bytes: 8 << 10,
            arguments: 256,
            argument_bytes: 128 << 10,
            concurrent: 32,
            per_agent: 16,
        }
    }
}

impl ProcessLimits {
    /// Less address space than this starts no program.
    pub const MIN_MEMORY_BYTES: u64 = 16 << 20;
    /// Both tails go into one event, and from there as JSON, which may take six bytes for one,
    /// into another; no event may be larger than what consumers read (512 KiB).
    pub const MAX_TAIL_BYTES: u64 = 32 << 10;
    /// More output than this could not be held for a supervisor that is slow to read.
    pub const MAX_OUTPUT_BYTES: u64 = 64 << 20;
    /// As JSON, which may take six bytes for one, this fits into one command to a guard (1 MiB).
    pub const MAX_STDIN_BYTES: u64 = 128 << 10;
    /// A week: no process needs more, and sums of durations stay far from overflow.
    pub const MAX_TIME_S: u64 = 7 * 24 * 3600;

    /// Time from the start until a process is asked to end, in milliseconds.
    pub fn time_ms(&self) -> u64 {
        self.time_s.saturating_mul(1_000)
    }

    /// Time from being asked to end until being killed.
    pub fn grace(&self) -> Duration {
        Duration::from_millis(self.grace_ms)
    }

    /// Everything that is wrong with these limits, each named by its key.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut check = |key: &str, value: u64, min: u64, max: u64| {
            if !(min..=max).contains(&value) {
                problems.push(format!("limits.{key}: is {value}; choose a value from {min} to {max}"));
            }
        };
        check("time_s", self.time_s, 1, Self::MAX_TIME_S);
        check("grace_ms", self.grace_ms, 0, 600_000);
        check("memory_bytes", self.memory_bytes, Self::MIN_MEMORY_BYTES, 1 << 47);
        check("cpu_s", self.cpu_s, 1, Self::MAX_TIME_S);
        check("open_files", self.open_files, 8, 1 << 20);
        check("processes", self.processes.unwrap_or(1), 1, 1 << 22);
        check("output_bytes", self.output_bytes, 0, Self::MAX_OUTPUT_BYTES);
        check("stdin_bytes", self.stdin_bytes as u64, 1, Self::MAX_STDIN_BYTES);
        check("tail_bytes", self.tail_bytes as u64, 0, Self::MAX_TAIL_BYTES);
        check("arguments", self.arguments as u64, 0, 4096);
        check(
            "argument_bytes",
            self.argument_bytes as u64,
            0,
            128 << 10, // what Linux accepts as a single argument
        );
        check("concurrent", self.concurrent as u64, 1, 1024);
        check("per_agent", self.per_agent as u64, 1, 1024);
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{GuardCommand, MAX_LINE_BYTES};

    #[test]
    fn the_defaults_are_sound() {
        assert_eq!(ProcessLimits::default().problems(), Vec::<String>::new());
    }

    #[test]
    fn the_longest_input_fits_into_a_command() {
        let text = "\u{1}".repeat(ProcessLimits::MAX_STDIN_BYTES as usize);
        let command = serde_json::to_string(&GuardCommand::Write { text, close: true }).expect("JSON");
        assert!(command.len() <= MAX_LINE_BYTES, "{}", command.len());
    }

    #[test]
    fn keys_may_be_left_out_but_not_invented() {
        let limits: ProcessLimits = serde_json::from_str(r#"{"time_s": 5}"#).expect("partial");
        assert_eq!((limits.time_s, limits.concurrent), (5, 32));
        let error = serde_json::from_str::<ProcessLimits>(r#"{"time": 5}"#).expect_err("unknown key");
        assert!(error.to_string().contains("unknown field `time`"));
    }

    #[test]
    fn all_problems_are_named_at_once() {
        let stdin_bytes = 1 << 20;
        let limits = ProcessLimits {
            time_s: 0,
            memory_bytes: 1,
            concurrent: 0,
            per_agent: 0,
            stdin_bytes,
            ..ProcessLimits::default()
        };
        let problems = limits.problems().join("\n");
        for key in
            ["limits.time_s", "limits.memory_bytes", "limits.concurrent", "limits.per_agent", "limits.stdin_bytes"]
        {
            assert!(problems.contains(key), "{key} in {problems}");
        }
    }
}
