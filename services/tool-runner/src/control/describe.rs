//! Describes processes and actions to agents: pure.

use kairo_proto::v1::{ProcessExited, ProcessSpawned, ProcessState, ToolResult};
use kairo_proto::words::{ProcessOutcome, StepState, ToolErrorKind};
use serde_json::{Value, json};
use uuid::Uuid;

/// A process that runs, as its supervisor sees it.
pub fn running(process: &ProcessSpawned, state: &ProcessState) -> Value {
    let mut told = json!({
        "running_ms": state.running_ms,
        "percent": state.fraction.map(|fraction| (fraction * 1000.0).round() / 10.0),
        "message": non_empty(&state.message),
        "stdout": state.stdout_tail,
        "stderr": state.stderr_tail,
        "stdout_bytes": state.stdout_bytes,
        "stderr_bytes": state.stderr_bytes,
    });
    merge_fields(&mut told, running_summary(process));
    without_nulls(told)
}

/// A process that runs as far as the log knows.
pub fn running_summary(process: &ProcessSpawned) -> Value {
    json!({
        "process_id": process.process_id,
        "program": process.program,
        "arguments": process.arguments,
        "pid": process.pid,
        "status": StepState::Running.as_str(),
    })
}

/// A process that has ended.
pub fn ended(exited: &ProcessExited) -> Value {
    let mut told = ended_summary(exited);
    merge_fields(
        &mut told,
        json!({
            "stdout": exited.stdout_tail,
            "stderr": exited.stderr_tail,
            "stdout_bytes": exited.stdout_bytes,
            "stderr_bytes": exited.stderr_bytes,
        }),
    );
    told
}

/// A process that has ended, in short.
pub fn ended_summary(exited: &ProcessExited) -> Value {
    without_nulls(json!({
        "process_id": exited.process_id,
        "program": non_empty(&exited.program),
        "status": "ended",
        "outcome": exited.outcome,
        "code": exited.code,
        "signal": exited.signal,
        "reason": non_empty(&exited.reason),
        "ran_ms": exited.usage.as_ref().map(|usage| usage.wall_ms),
    }))
}

/// Describes the end of a process in words.
pub fn end_in_words(exited: &ProcessExited) -> String {
    match (exited.outcome_word(), exited.code, exited.signal) {
        (ProcessOutcome::Exited, Some(code), _) => format!("exited with code {code}"),
        (ProcessOutcome::Signaled, _, Some(signal)) => format!("ended by signal {signal}"),
        (outcome, ..) if exited.reason.is_empty() => outcome.text(),
        (outcome, ..) => format!("{outcome}: {}", exited.reason),
    }
}

/// Describes the end of an action that was to be canceled. `before`: it had ended by the time anybody looked.
pub fn action(action: Uuid, result: &ToolResult, before: bool) -> Value {
    let error = result.error.as_ref();
    let status = match error.map(|error| error.kind_word()) {
        _ if before => "ended already",
        Some(kind @ (ToolErrorKind::Canceled | ToolErrorKind::InDoubt)) => kind.known_word(),
        _ => "ended before it could be stopped",
    };
    without_nulls(json!({
        "action_id": action,
        "tool": result.tool,
        "status": status,
        "ok": result.ok,
        "error": error.map(|error| json!({ "kind": error.kind, "message": error.message })),
    }))
}

fn non_empty(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn merge_fields(told: &mut Value, more: Value) {
    if let (Some(told), Value::Object(more)) = (told.as_object_mut(), more) {
        told.extend(more);
    }
}

/// Removes nulls, so that unknown values are not mentioned.
fn without_nulls(mut told: Value) -> Value {
    if let Some(told) = told.as_object_mut() {
        told.retain(|_, value| !value.is_null());
    }
    told
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1;

    use super::*;

    #[test]
    fn a_running_process_is_described_by_what_is_known_of_it() {
        let process =
            ProcessSpawned { process_id: "p".into(), program: "/bin/sh".into(), pid: 7, ..Default::default() };
        let state = ProcessState { fraction: Some(0.4251), stdout_tail: "so far".into(), ..Default::default() };
        let told = running(&process, &state);
        assert_eq!((&told["status"], &told["percent"], &told["pid"]), (&json!("running"), &json!(42.5), &json!(7)));
        assert_eq!((&told["stdout"], told.get("message")), (&json!("so far"), None));
    }

    #[test]
    fn an_end_is_told_in_words() {
        let ended = |outcome: &str| ProcessExited { outcome: outcome.into(), ..Default::default() };
        assert_eq!(end_in_words(&ProcessExited { code: Some(3), ..ended("exited") }), "exited with code 3");
        assert_eq!(end_in_words(&ProcessExited { signal: Some(9), ..ended("signaled") }), "ended by signal 9");
        assert_eq!(
            end_in_words(&ProcessExited { reason: "on request".into(), ..ended("canceled") }),
            "canceled: on request"
        );
        assert_eq!(end_in_words(&ended("supervisor_lost")), "supervisor_lost");
    }

    #[test]
    fn a_canceled_action_says_whether_the_cancel_did_it() {
        let failed = |kind: &str| ToolResult {
            error: Some(v1::ToolError { kind: kind.into(), message: String::new() }),
            ..Default::default()
        };
        let status = |result: &ToolResult, before| action(Uuid::nil(), result, before)["status"].clone();
        assert_eq!(status(&failed("canceled"), false), "canceled");
        assert_eq!(status(&failed("in_doubt"), false), "in_doubt");
        assert_eq!(status(&ToolResult { ok: true, ..Default::default() }, false), "ended before it could be stopped");
        assert_eq!(status(&failed("canceled"), true), "ended already");
    }
}
