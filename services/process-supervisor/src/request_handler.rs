//! Answers requests for the state of a process. In a log whose readers know no orders ([`crate::order_execution`]), commands to
//! a process arrive here too.

use std::{sync::Arc, time::Duration};

use kairo_core::{
    bus::{Bus, BusError, append::OutgoingEvent},
    envelope::{Envelope, Origin},
    ids::Name,
    subjects::{PROCESS_CANCELED, Service, control_of},
    vocabulary::ANSWERS,
};
use kairo_proto::v1::{self, ProcessAnswer, ProcessExited, ProcessRequest, ProcessState, process_request::Ask};
use kairo_proto::words::ProcessAnswered;
use prost::Message;
use serde::{Deserialize, de::value::StrDeserializer};
use uuid::Uuid;

use crate::{
    events::{self, canceled_id},
    ledgers::{LedgerTarget, Ledgers, RecordedProcess},
    protocol::Signal,
    registry::Registry,
    running_process::{ProcessOperationError, RunningProcess},
};

/// The longest time beyond the grace period until the end of a stopped process is in the log.
const RECORDING: Duration = Duration::from_secs(10);

/// The refusal of a request that should be an order.
const ORDERED: &str =
    "what is to be done to a process is an order in the log from epoch 10 on (kairo.tool.<agent>.order)";

/// The shared state for answering requests and carrying out orders ([`crate::order_execution`]).
pub struct RequestHandler {
    pub bus: Bus,
    pub registry: Arc<Registry>,
    pub ledgers: Arc<Ledgers>,
    /// Between asking a process to end and killing it, at most.
    pub grace: Duration,
}

/// The reason why a request is malformed.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum MalformedRequest {
    #[error("{field}: expected {expected}, found {found:?}")]
    Field { field: &'static str, expected: &'static str, found: String },
    #[error("nothing is asked: expected look, signal, write or stop")]
    Nothing,
}

/// The content of a request.
#[derive(Debug)]
enum RequestKind {
    Look,
    Signal(Uuid, Signal),
    Write(Uuid, v1::ProcessWrite),
    Stop(Uuid, v1::ProcessStop),
}

impl RequestKind {
    fn parse(request: &ProcessRequest) -> Result<Self, MalformedRequest> {
        let by = || parse_uuid("by_action_id", &request.by_action_id);
        Ok(match &request.ask {
            None => return Err(MalformedRequest::Nothing),
            Some(Ask::Look(_)) => Self::Look,
            Some(Ask::Signal(asked)) => Self::Signal(by()?, parse_signal(&asked.name)?),
            Some(Ask::Write(write)) => Self::Write(by()?, write.clone()),
            Some(Ask::Stop(stop)) => Self::Stop(by()?, *stop),
        })
    }
}

impl RequestHandler {
    pub async fn answer(&self, request: ProcessRequest) -> ProcessAnswer {
        match self.try_answer(&request).await {
            Ok(answer) => answer,
            Err(malformed) => refused_answer(&malformed.to_string()),
        }
    }

    async fn try_answer(&self, request: &ProcessRequest) -> Result<ProcessAnswer, MalformedRequest> {
        let agent = Name::parse(&request.agent)
            .map_err(|_| field("agent", "a name of characters a-z 0-9 _ -", &request.agent))?;
        let action = parse_uuid("action_id", &request.action_id)?;
        let wish = RequestKind::parse(request)?;
        if !matches!(wish, RequestKind::Look) && !self.accepts_commands().await {
            return Ok(refused_answer(ORDERED));
        }
        if let RequestKind::Stop(by, stop) = wish {
            let target = LedgerTarget { agent: &agent, action, after: request.after };
            let stopped = self.stop_anywhere(request, target, by, self.grace_within(stop.grace_ms)).await;
            return Ok(stopped.unwrap_or_else(|error| refused_answer(&format!("{error}; ask again in a moment"))));
        }
        let Some(process) = self.registry.find(&agent, action) else {
            return Ok(not_here_answer("this supervisor does not run it; the log says who does, or how it ended"));
        };
        let outcome = match wish {
            RequestKind::Signal(by, signal) => process.signal(by, signal).await,
            RequestKind::Write(by, write) => process.write(by, write.text, write.close).await,
            RequestKind::Look | RequestKind::Stop(..) => Ok(()),
        };
        Ok(answer_outcome(outcome, &process))
    }

    /// The grace period of a stop: `asked_ms` milliseconds, or with 0 as many as are configured, which it never exceeds.
    pub fn grace_within(&self, asked_ms: u64) -> Duration {
        match asked_ms {
            0 => self.grace,
            asked_ms => self.grace.min(Duration::from_millis(asked_ms)),
        }
    }

    /// Returns true if commands may arrive as requests, since not all readers know orders yet.
    async fn accepts_commands(&self) -> bool {
        self.bus.current_epoch().await.is_ok_and(|epoch| epoch < ANSWERS)
    }

    /// Sees to it that the process ends, or never begins, and that the log says so.
    async fn stop_anywhere(
        &self,
        request: &ProcessRequest,
        target: LedgerTarget<'_>,
        by: Uuid,
        grace: Duration,
    ) -> Result<ProcessAnswer, BusError> {
        if let Some(end) = self.ledgers.find_end(target).await? {
            return Ok(done_answer(ended_state(end)));
        }
        let begun = self.ledgers.find_spawned(target).await?;
        self.ledgers.record_cancel(target, &self.canceled_event(target, by, grace, begun.as_ref())).await?;
        // Whoever begins it from now on finds that out before its program runs; who did before is found here.
        let begun = match begun {
            Some(begun) => Some(begun),
            None => self.ledgers.find_spawned_for_sure(target).await?,
        };
        match begun.map(|begun| begun.spawned.supervisor) {
            None => Ok(not_begun_answer()),
            Some(supervisor) if supervisor == self.bus.instance.as_str() => self.stop_here(target, grace).await,
            Some(supervisor) => Ok(self.forward(&supervisor, request, grace).await),
        }
    }

    fn canceled_event(
        &self,
        target: LedgerTarget<'_>,
        by: Uuid,
        grace: Duration,
        begun: Option<&RecordedProcess>,
    ) -> OutgoingEvent {
        let id = canceled_id(target.action);
        let now = self.bus.now();
        let emitter = Service::ProcessSupervisor;
        let origin = Origin::System;
        let envelope = match begun {
            Some(begun) => begun.record.envelope.follow_up(id, emitter, origin, now),
            // Of a process that nobody began, only who asked is known.
            None => Envelope { correlation_id: by, ..Envelope::from_outside(id, emitter, origin, now) },
        };
        let envelope = Envelope { causation_id: Some(by), ..envelope };
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        let body = events::canceled_body(target.action, self.bus.instance.as_str(), by, grace_ms);
        OutgoingEvent::new(&PROCESS_CANCELED, target.agent, envelope, body)
    }

    async fn stop_here(&self, target: LedgerTarget<'_>, grace: Duration) -> Result<ProcessAnswer, BusError> {
        if let Some(process) = self.registry.find(target.agent, target.action) {
            process.cancel(grace).await;
            process.wait_until_over().await;
        }
        Ok(match self.ledgers.find_end(target).await? {
            Some(end) => done_answer(ended_state(end)),
            None => not_here_answer("it is over, but its end is not in the log yet; wait for it there"),
        })
    }

    /// Passes a stop on to the supervisor that has the process, and its answer back.
    async fn forward(&self, supervisor: &str, request: &ProcessRequest, grace: Duration) -> ProcessAnswer {
        let forwarded = self.bus.request(control_of(supervisor), request.encode_to_vec(), grace + RECORDING);
        match forwarded.await {
            Ok(answer) => ProcessAnswer::decode(answer).unwrap_or_else(|error| {
                not_here_answer(&format!("{supervisor} gave an answer that cannot be read: {error}"))
            }),
            Err(error) => not_here_answer(&format!(
                "{supervisor}, which had it, does not answer ({error}); if it is gone, so is the process, and its end \
                 will be in the log soon"
            )),
        }
    }
}

/// The answer after something was done to `process`, or not.
pub fn answer_outcome(outcome: Result<(), ProcessOperationError>, process: &RunningProcess) -> ProcessAnswer {
    match outcome {
        Ok(()) => done_answer(process.state()),
        Err(ProcessOperationError::Over) => not_here_answer("it has ended; its end is in the log"),
        Err(error) => refused_answer(&error.to_string()),
    }
}

fn ended_state(end: ProcessExited) -> ProcessState {
    ProcessState {
        process_id: end.process_id,
        running_ms: end.usage.map(|usage| usage.wall_ms).unwrap_or_default(),
        stdout_tail: end.stdout_tail,
        stderr_tail: end.stderr_tail,
        stdout_bytes: end.stdout_bytes,
        stderr_bytes: end.stderr_bytes,
        outcome: end.outcome,
        code: end.code,
        signal: end.signal,
        ..Default::default()
    }
}

fn done_answer(state: ProcessState) -> ProcessAnswer {
    ProcessAnswer { outcome: ProcessAnswered::Done.text(), reason: String::new(), state: Some(state) }
}

pub fn refused_answer(reason: &str) -> ProcessAnswer {
    ProcessAnswer { outcome: ProcessAnswered::Refused.text(), reason: reason.to_owned(), state: None }
}

pub fn not_here_answer(reason: &str) -> ProcessAnswer {
    ProcessAnswer { outcome: ProcessAnswered::NotHere.text(), reason: reason.to_owned(), state: None }
}

fn not_begun_answer() -> ProcessAnswer {
    let reason = "nobody had begun it, and now nobody will run it".to_owned();
    ProcessAnswer { outcome: ProcessAnswered::NotBegun.text(), reason, state: None }
}

fn field(field: &'static str, expected: &'static str, found: &str) -> MalformedRequest {
    MalformedRequest::Field { field, expected, found: found.chars().take(80).collect() }
}

pub fn parse_uuid(name: &'static str, text: &str) -> Result<Uuid, MalformedRequest> {
    Uuid::parse_str(text).map_err(|_| field(name, "a UUID", text))
}

pub fn parse_signal(name: &str) -> Result<Signal, MalformedRequest> {
    let read: Result<_, serde::de::value::Error> = Signal::deserialize(StrDeserializer::new(name));
    read.map_err(|_| field("signal.name", "HUP, INT, QUIT, USR1, USR2, TERM, KILL, STOP or CONT", name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_called_by_their_names() {
        for name in ["HUP", "INT", "QUIT", "USR1", "USR2", "TERM", "KILL", "STOP", "CONT"] {
            assert!(parse_signal(name).is_ok(), "{name}");
        }
        for name in ["", "term", "SIGTERM", "SEGV", "9"] {
            let reason = parse_signal(name).expect_err("no name of a signal").to_string();
            assert!(reason.contains("HUP") && reason.contains(name), "{reason}");
        }
    }

    #[test]
    fn what_was_found_is_quoted_in_part_only() {
        let reason = parse_uuid("action_id", &"x".repeat(1_000)).expect_err("no UUID").to_string();
        assert!(reason.starts_with("action_id: expected a UUID") && reason.len() < 200, "{reason}");
    }
}
