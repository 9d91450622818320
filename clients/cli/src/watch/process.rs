//! A process, running or ended. Pure.

use std::fmt;

use jiff::Timestamp;
use kairo_core::event_json::EventJson;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::{
    happening::{field, id, short_id},
    output::{OutputLine, ProcessOutput, format_output_line},
};

/// A process.
#[derive(Clone, Debug, Serialize)]
pub struct AgentProcess {
    pub process_id: Uuid,
    pub action_id: Option<Uuid>,
    pub program: String,
    pub arguments: Vec<String>,
    pub pid: u64,
    pub background: bool,
    pub started_at: Timestamp,
    pub fraction: Option<f64>,
    pub message: String,
    pub cancel_requested: bool,
    /// The last lines.
    pub output: ProcessOutput,
    pub ended: Option<ProcessEnd>,
}

/// The end of a process: its outcome, its exit code or signal, and the reason.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessEnd {
    pub at: Timestamp,
    pub outcome: String,
    pub code: Option<i64>,
    pub signal: Option<i64>,
    pub reason: String,
}

/// A line that a process wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessLine {
    pub process_id: Uuid,
    #[serde(flatten)]
    pub line: OutputLine,
}

impl fmt::Display for ProcessLine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", short_id(&self.process_id.to_string()), format_output_line(&self.line))
    }
}

/// A program by its name alone.
pub fn program_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Describes the end of a process in words, such as `exited with code 3`.
pub fn describe_end(outcome: &str, code: Option<i64>, signal: Option<i64>, reason: &str) -> String {
    match (code, signal) {
        (Some(code), _) => format!("{outcome} with code {code}"),
        (None, Some(signal)) => format!("{outcome} by signal {signal}"),
        (None, None) if reason.is_empty() => outcome.to_owned(),
        (None, None) => format!("{outcome}: {reason}"),
    }
}

impl AgentProcess {
    /// A process as the first event about it tells.
    pub(super) fn from_event(event: &EventJson) -> Option<Self> {
        let payload = &event.payload;
        let arguments = payload.get("arguments").and_then(Value::as_array);
        let arguments = arguments.into_iter().flatten().filter_map(Value::as_str);
        Some(Self {
            process_id: id(payload, "process_id")?,
            action_id: id(payload, "action_id"),
            program: field(payload, "program").to_owned(),
            arguments: arguments.map(str::to_owned).collect(),
            pid: payload.get("pid").and_then(Value::as_u64).unwrap_or_default(),
            background: payload.get("background").and_then(Value::as_bool).unwrap_or_default(),
            started_at: event.ts,
            fraction: None,
            message: String::new(),
            cancel_requested: false,
            output: ProcessOutput::default(),
            ended: None,
        })
    }

    /// Takes in how far it says it is.
    pub(super) fn advance(&mut self, payload: &Value) {
        self.fraction = payload.get("fraction").and_then(Value::as_f64);
        self.message = field(payload, "message").to_owned();
        self.output.replace_tail(field(payload, "tail"));
    }

    /// Takes in how it ended, and returns the lines that were shown to nobody yet.
    pub(super) fn end(&mut self, event: &EventJson) -> Vec<OutputLine> {
        let payload = &event.payload;
        let number = |name| payload.get(name).and_then(Value::as_i64);
        self.ended = Some(ProcessEnd {
            at: event.ts,
            outcome: field(payload, "outcome").to_owned(),
            code: number("code"),
            signal: number("signal"),
            reason: field(payload, "reason").to_owned(),
        });
        self.output.end(field(payload, "stdout_tail"), field(payload, "stderr_tail"))
    }
}
