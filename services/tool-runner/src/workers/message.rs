//! Messages between tool-runner and workers: JSON, with unknown fields ignored.

use kairo_core::ids::Name;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tool::{ToolError, ToolErrorKind};

/// The version of the protocol.
pub const PROTOCOL: u32 = 1;
/// Longest text of a worker that becomes part of an error, in characters; longer ones are cut off.
const MAX_MESSAGE_CHARS: usize = 4_096;

/// Error kinds that a worker may report; all others are reserved to tool-runner.
const MAY_SAY: [ToolErrorKind; 6] = [
    ToolErrorKind::Failed,
    ToolErrorKind::InvalidArguments,
    ToolErrorKind::NotFound,
    ToolErrorKind::InDoubt,
    ToolErrorKind::TooLarge,
    ToolErrorKind::TimedOut,
];

/// A replica of a worker says what it offers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Announcement {
    pub protocol: u32,
    /// This replica, unlike every other's.
    pub instance: Name,
    /// When it was started, in milliseconds since 1970: of two that differ, the one that was started later holds.
    #[serde(default)]
    pub started_ms: u64,
    /// It is about to end and takes no more calls.
    #[serde(default)]
    pub leaving: bool,
    #[serde(default)]
    pub tools: Vec<AnnouncedTool>,
}

/// A tool as its worker describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnnouncedTool {
    /// Without the prefix: `[A-Za-z0-9_-]+`.
    pub name: String,
    pub description: String,
    pub schema: Value,
    /// Calling twice with the same action id has the effect of calling once.
    #[serde(default)]
    pub idempotent: bool,
    /// It changes nothing.
    #[serde(default)]
    pub read_only: bool,
    /// A human must consent to each call.
    #[serde(default)]
    pub needs_approval: bool,
}

/// The verdict of a tool-runner replica on an announcement.
#[derive(Debug, PartialEq, Serialize)]
pub struct AnnouncementVerdict {
    pub runner: String,
    /// Names as agents see them.
    pub accepted: Vec<String>,
    pub refused: Vec<RefusedTool>,
    /// The reason the announcement was refused as a whole, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Interval until the next announcement, in milliseconds.
    pub announce_ms: u64,
}

/// A tool that is not offered, by the worker's own name, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RefusedTool {
    pub tool: String,
    pub reason: String,
}

/// A call.
#[derive(Debug, Serialize)]
pub struct CallMessage<'c> {
    pub action_id: &'c str,
    /// The worker's own name for it.
    pub tool: &'c str,
    pub arguments: &'c Value,
    pub agent: &'c str,
    /// On whose behalf; null where that is not known.
    pub user: Option<&'c str>,
    pub thread_id: &'c str,
    /// The recorded time of the decision that asked for it: the same when it is called again.
    pub time: String,
    pub timeout_ms: u64,
    pub beat_ms: u64,
    pub max_result_bytes: usize,
}

/// An order to the worker that executes an action.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum WorkerOrder {
    /// Asks whether it knows the action: if so, it goes on reporting progress, or the end.
    Attach,
    Cancel,
    /// The end was received.
    Acknowledge,
}

/// The answer to a call, or to [`WorkerOrder::Attach`].
#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum WorkerAnswer {
    /// It is worked on, or was: what is said of the action says more.
    Accepted {
        /// The replica that has it.
        #[serde(default)]
        instance: String,
    },
    /// This replica has enough to do; nothing was begun.
    Busy,
    /// Nothing was begun, nor will be.
    Refused {
        #[serde(default)]
        message: String,
    },
}

/// A worker's report on an action.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum WorkerReport {
    /// It still works on it.
    Alive,
    Progress {
        fraction: Option<f64>,
        message: Option<String>,
    },
    /// It is done.
    Result {
        value: Value,
    },
    /// It failed.
    Error {
        #[serde(default)]
        kind: String,
        #[serde(default)]
        message: String,
    },
    /// It was stopped on request.
    Stopped,
}

/// The error that a worker ended a call with.
pub fn error(kind: &str, message: &str) -> ToolError {
    let message: String = message.chars().take(MAX_MESSAGE_CHARS).collect();
    let kind = ToolErrorKind::known(kind).filter(|kind| MAY_SAY.contains(kind));
    ToolError::new(kind.unwrap_or(ToolErrorKind::Failed), message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_later_versions_add_is_passed_over() {
        let said: WorkerReport = serde_json::from_value(json!({"type": "result", "value": null, "more": 1})).unwrap();
        assert_eq!(said, WorkerReport::Result { value: Value::Null });
        let said: WorkerReport = serde_json::from_value(json!({"type": "progress", "fraction": 0.5})).unwrap();
        assert_eq!(said, WorkerReport::Progress { fraction: Some(0.5), message: None });
        let answer: WorkerAnswer = serde_json::from_value(json!({"type": "accepted", "instance": "a"})).unwrap();
        assert_eq!(answer, WorkerAnswer::Accepted { instance: "a".to_owned() });
        assert!(serde_json::from_value::<WorkerReport>(json!({"type": "sings"})).is_err());
        assert!(serde_json::from_value::<Announcement>(json!({"protocol": 1, "instance": "A b"})).is_err());
    }

    #[test]
    fn kinds_of_errors_that_a_worker_may_say() {
        assert_eq!(error("not_found", "m").kind, ToolErrorKind::NotFound);
        assert_eq!(error("approval_required", "m").kind, ToolErrorKind::Failed, "that is not for a worker to say");
        assert_eq!(error("", &"é".repeat(9_000)).message.chars().count(), MAX_MESSAGE_CHARS);
    }
}
