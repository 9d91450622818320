//! Builds the events of this service about a process.

use kairo_core::ids;
use kairo_proto::v1::{ProcessCanceled, ProcessExited, ProcessProgress, ProcessSpawned, ProcessUsage};
use uuid::Uuid;

use crate::{
    action_plan::RequestedProcess,
    progress::OutputProgress,
    protocol::{Exit, ExitOutcome, Spec, Stream},
    tail::TextTail,
};

/// Longest reason in characters: one may quote what an agent wrote.
const MAX_REASON_CHARS: usize = 2_000;

/// Added to the reason when a process did not end by itself.
const HOW_FAR: &str = "how far it got is unknown: find out before running it again";

/// The origin of a stop that somebody requested, as opposed to the end of the supervisor.
const ON_REQUEST: &str = "on request";

/// The end of a process, or the reason why there was none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessEnding {
    /// It may not be run.
    Refused { reason: String },
    /// It never ran.
    SpawnFailed { reason: String },
    /// It was asked to end before its program ran.
    Withdrawn,
    /// It was killed with its supervisor or its guard.
    Lost { reason: String },
    /// Its guard saw how it ended.
    Seen {
        exit: Exit,
        tails: Tails,
        /// True if it was asked to end.
        on_request: bool,
    },
}

impl ProcessEnding {
    /// The end of a process that its agent has no room for.
    pub fn too_many(running: usize, limit: usize) -> Self {
        let reason = format!(
            "{running} processes of this agent run already, and no more than {limit} may (limits.per_agent); wait until \
             one has ended, or cancel one"
        );
        Self::Refused { reason }
    }

    /// The end of a process whose supervisor is gone.
    pub fn lost_with_supervisor(supervisor: &str) -> Self {
        Self::Lost { reason: format!("{supervisor} is gone, and the process it ran was killed with it; {HOW_FAR}") }
    }

    /// The end of a process of this supervisor that could not be written down in time.
    pub fn unrecorded_end() -> Self {
        Self::Lost { reason: format!("nats was away for so long that its end could not be recorded; {HOW_FAR}") }
    }

    /// The end of a process of this supervisor that lost its guard.
    pub fn lost_guard(why: &str) -> Self {
        Self::Lost { reason: format!("its guard was lost, and the process with it ({why}); {HOW_FAR}") }
    }
}

/// The ends of what a process wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tails {
    stdout: TextTail,
    stderr: TextTail,
}

impl Tails {
    /// Keeps at most `max_bytes` of each stream.
    pub fn new(max_bytes: usize) -> Self {
        Self { stdout: TextTail::new(max_bytes), stderr: TextTail::new(max_bytes) }
    }

    pub fn push(&mut self, stream: Stream, text: &str) {
        match stream {
            Stream::Stdout => self.stdout.push(text),
            Stream::Stderr => self.stderr.push(text),
        }
    }

    pub fn stdout(&self) -> &str {
        self.stdout.as_str()
    }

    pub fn stderr(&self) -> &str {
        self.stderr.as_str()
    }
}

/// The id of the event that says a process exists.
pub fn spawned_id(action: Uuid) -> Uuid {
    ids::derive(action, "spawned")
}

/// The id of the event that says how a process ended.
pub fn exited_id(action: Uuid) -> Uuid {
    ids::derive(action, "exited")
}

/// The id of the event that says a process was asked to end.
pub fn canceled_id(action: Uuid) -> Uuid {
    ids::derive(action, "canceled")
}

/// The id of what a process said of itself, counted from 0.
pub fn progress_id(action: Uuid, number: u64) -> Uuid {
    ids::derive(action, &format!("progress/{number}"))
}

pub fn spawned_body(
    asked: &RequestedProcess,
    decision_sequence: u64,
    supervisor: &str,
    pid: u32,
    spec: &Spec,
) -> ProcessSpawned {
    ProcessSpawned {
        process_id: ids::process_id(asked.action).to_string(),
        action_id: asked.action.to_string(),
        supervisor: supervisor.to_owned(),
        pid,
        program: spec.program.display().to_string(),
        arguments: spec.args.clone(),
        background: asked.is_background(),
        decision_sequence,
        tool: asked.tool.clone(),
        user: asked.user.clone(),
    }
}

pub fn progress_body(action: Uuid, supervisor: &str, progress: &OutputProgress, tail: &str) -> ProcessProgress {
    ProcessProgress {
        process_id: ids::process_id(action).to_string(),
        action_id: action.to_string(),
        supervisor: supervisor.to_owned(),
        fraction: progress.fraction,
        message: progress.message.clone(),
        tail: tail.to_owned(),
    }
}

pub fn canceled_body(action: Uuid, supervisor: &str, by: Uuid, grace_ms: u64) -> ProcessCanceled {
    ProcessCanceled {
        process_id: ids::process_id(action).to_string(),
        action_id: action.to_string(),
        supervisor: supervisor.to_owned(),
        by_action_id: by.to_string(),
        grace_ms,
    }
}

/// The end of a process that ran `program`, as far as it got that far.
pub fn exited_body(
    asked: &RequestedProcess,
    decision_sequence: u64,
    supervisor: &str,
    program: String,
    end: ProcessEnding,
) -> ProcessExited {
    let exited = ProcessExited {
        process_id: ids::process_id(asked.action).to_string(),
        action_id: asked.action.to_string(),
        supervisor: supervisor.to_owned(),
        decision_sequence,
        background: asked.is_background(),
        program,
        tool: asked.tool.clone(),
        user: asked.user.clone(),
        ..Default::default()
    };
    let unseen = |outcome: &str, reason| ProcessExited {
        outcome: outcome.to_owned(),
        reason: sanitize_reason(reason),
        usage: Some(ProcessUsage::default()),
        ..exited.clone()
    };
    match end {
        ProcessEnding::Refused { reason } => unseen("refused", reason),
        ProcessEnding::SpawnFailed { reason } => unseen("spawn_failed", reason),
        ProcessEnding::Lost { reason } => unseen("supervisor_lost", reason),
        ProcessEnding::Withdrawn => unseen("canceled", format!("it was stopped {ON_REQUEST} before its program ran")),
        ProcessEnding::Seen { exit, tails, on_request } => ProcessExited {
            outcome: exit.outcome.to_process_outcome().text(),
            code: match exit.outcome {
                ExitOutcome::Exited { code } => Some(code),
                _ => None,
            },
            signal: match exit.outcome {
                ExitOutcome::Signaled { signal } => Some(signal),
                _ => None,
            },
            reason: sanitize_reason(reason(&exit, on_request)),
            usage: Some(ProcessUsage {
                wall_ms: exit.usage.wall_ms,
                user_ms: exit.usage.user_ms,
                system_ms: exit.usage.system_ms,
                max_rss_bytes: exit.usage.max_rss_bytes,
            }),
            stdout_tail: tails.stdout.into_parts().0,
            stderr_tail: tails.stderr.into_parts().0,
            stdout_bytes: exit.output.stdout_bytes,
            stderr_bytes: exit.output.stderr_bytes,
            ..exited
        },
    }
}

fn reason(exit: &Exit, on_request: bool) -> String {
    let reason = match &exit.outcome {
        ExitOutcome::Exited { .. } | ExitOutcome::Signaled { .. } => String::new(),
        ExitOutcome::TimedOut => format!("it was stopped at its time limit; {HOW_FAR}"),
        ExitOutcome::Canceled if on_request => format!("it was stopped {ON_REQUEST}; {HOW_FAR}"),
        ExitOutcome::Canceled => format!("it was stopped because its supervisor was told to stop; {HOW_FAR}"),
        ExitOutcome::SpawnFailed { reason } => reason.clone(),
        ExitOutcome::SupervisorLost => format!("its supervisor was frozen for so long that it was killed; {HOW_FAR}"),
    };
    match exit.survivors {
        0 => reason,
        survivors => format!("{survivors} of its descendants hang in the kernel and are not dead yet; {reason}"),
    }
}

/// Of bounded length, and without NUL, which Postgres has not in text.
fn sanitize_reason(reason: String) -> String {
    let characters = reason.chars().take(MAX_REASON_CHARS);
    characters.map(|character| if character == '\0' { char::REPLACEMENT_CHARACTER } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{OutputTotals, ResourceUsage};

    fn requested_process(tool: &str) -> RequestedProcess {
        RequestedProcess {
            user: None,
            action: Uuid::from_u128(1),
            tool: tool.to_owned(),
            arguments: String::new(),
            thread_id: String::new(),
            others_after: 0,
        }
    }

    fn ended(end: ProcessEnding) -> ProcessExited {
        exited_body(&requested_process("process.spawn"), 5, "s-2", "/bin/a".to_owned(), end)
    }

    fn exited_process(outcome: ExitOutcome, on_request: bool) -> ProcessExited {
        let mut tails = Tails::new(3);
        tails.push(Stream::Stdout, "abcd");
        tails.push(Stream::Stderr, "e");
        let output = OutputTotals { stdout_bytes: 4, stderr_bytes: 1, discarded_bytes: 0 };
        let usage = ResourceUsage { wall_ms: 7, ..ResourceUsage::default() };
        ended(ProcessEnding::Seen { exit: Exit { outcome, usage, output, survivors: 0 }, tails, on_request })
    }

    #[test]
    fn an_end_that_was_seen_says_all_there_is_to_say() {
        let exited = exited_process(ExitOutcome::Exited { code: 3 }, false);
        assert_eq!((exited.outcome.as_str(), exited.code, exited.signal), ("exited", Some(3), None));
        assert_eq!((exited.stdout_tail.as_str(), exited.stderr_tail.as_str()), ("bcd", "e"));
        assert_eq!((exited.stdout_bytes, exited.stderr_bytes, exited.reason.as_str()), (4, 1, ""));
        assert_eq!(exited.usage.unwrap().wall_ms, 7);
        let signaled = exited_process(ExitOutcome::Signaled { signal: 9 }, false);
        assert_eq!((signaled.outcome.as_str(), signaled.code, signaled.signal), ("signaled", None, Some(9)));
    }

    #[test]
    fn an_end_says_what_it_is_the_end_of() {
        let exited = ended(ProcessEnding::Refused { reason: "no".to_owned() });
        assert_eq!((exited.background, exited.tool.as_str()), (true, "process.spawn"));
        assert_eq!((exited.decision_sequence, exited.program.as_str()), (5, "/bin/a"));
    }

    #[test]
    fn whatever_was_not_the_process_s_own_end_has_a_reason() {
        for outcome in [ExitOutcome::TimedOut, ExitOutcome::Canceled, ExitOutcome::SupervisorLost] {
            let exited = exited_process(outcome.clone(), false);
            assert_eq!(exited.outcome_word(), outcome.to_process_outcome());
            assert!(!exited.reason.is_empty(), "{outcome:?}");
        }
        let lost = ended(ProcessEnding::lost_with_supervisor("s-1"));
        assert_eq!((lost.outcome.as_str(), lost.supervisor.as_str()), ("supervisor_lost", "s-2"));
        assert!(lost.reason.starts_with("s-1 is gone"), "{}", lost.reason);
    }

    #[test]
    fn who_wanted_it_stopped_is_said() {
        let on_request = [exited_process(ExitOutcome::Canceled, true), ended(ProcessEnding::Withdrawn)];
        for exited in on_request {
            assert_eq!(exited.outcome, "canceled");
            assert!(exited.reason.contains(ON_REQUEST), "{}", exited.reason);
        }
        assert!(!exited_process(ExitOutcome::Canceled, false).reason.contains(ON_REQUEST));
        assert_eq!(exited_process(ExitOutcome::Exited { code: 0 }, true).reason, "", "it was faster");
    }

    #[test]
    fn a_reason_is_bounded_and_can_be_stored() {
        let refused = ended(ProcessEnding::Refused { reason: "a\0".repeat(MAX_REASON_CHARS) });
        assert_eq!(refused.reason.chars().count(), MAX_REASON_CHARS);
        assert!(refused.reason.starts_with("a\u{FFFD}a"));
    }
}
