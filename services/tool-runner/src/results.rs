//! Saying how an action ended: once, whoever else may say it too.

use std::time::Duration;

use kairo_core::{
    bus::{
        Bus, BusError,
        append::OutgoingEvent,
        ledger::{Ledger, LedgerOutcome},
    },
    envelope::{Envelope, Origin},
    event_json::invocation_id,
    ids::{self, Name},
    metrics::table::{IN_DOUBT, TOOL_CALLS},
    personal::ContentOwners,
    subjects::{Service, TOOL_RESULT},
    vocabulary::ANSWERS,
};
use kairo_proto::v1::{self, Part, ToolResult};
use uuid::Uuid;

use crate::{
    attachments::Attachments,
    tool::{ToolError, ToolErrorKind},
    toolbox::{CallOutcome, too_large},
};

/// The end of one action, as it is reported.
pub struct ActionEnd<'a> {
    pub action: Uuid,
    pub tool: &'a str,
    /// The user on whose behalf it ran; empty if none.
    pub user: &'a str,
    pub outcome: CallOutcome,
    /// True if calling it twice has the effect of calling it once.
    pub is_repeatable: bool,
    pub took: Duration,
}

/// Distinguishes the result of a call from what became known later.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ResultTiming {
    InTime,
    Late,
}

/// The ledger of results.
pub struct Results {
    bus: Bus,
    attachments: Attachments,
    ledger: Ledger,
}

impl Results {
    pub fn new(bus: &Bus) -> Self {
        Self { bus: bus.clone(), attachments: Attachments::new(bus), ledger: Ledger::new(bus, &TOOL_RESULT) }
    }

    /// Returns those of the actions that have ended, as the log stands now. None can have ended before sequence
    /// `since`.
    pub async fn ended_actions(&self, agent: &Name, since: u64, actions: &[Uuid]) -> Result<Vec<Uuid>, BusError> {
        Ok(self.ledger.entries_about(agent, since, actions).await?.into_keys().collect())
    }

    /// Returns the result of this action, if it has ended.
    pub async fn find_result(&self, agent: &Name, since: u64, action: Uuid) -> Result<Option<ToolResult>, BusError> {
        let record = self.ledger.entry_record(agent, since, action).await?;
        Ok(record.and_then(|record| ToolResult::try_from(record.body).ok()))
    }

    /// Writes the result, unless the action has one; says whether it was written. `cause` is an event from which the action
    /// followed.
    pub async fn record_result(
        &self,
        agent: &Name,
        since: u64,
        cause: &Envelope,
        ended: ActionEnd<'_>,
    ) -> Result<bool, BusError> {
        self.write_bounded(agent, since, cause, ended, ResultTiming::InTime).await
    }

    /// Writes what came of an action after its result said `in_doubt`, unless that was written, or replicas of an older build read
    /// the log: their agents would not be told, and a new build that folds the same log would have told them.
    pub async fn settle_doubt(
        &self,
        agent: &Name,
        since: u64,
        cause: &Envelope,
        ended: ActionEnd<'_>,
    ) -> Result<(), BusError> {
        if self.bus.current_epoch().await? < ANSWERS {
            tracing::warn!(%agent, action = %ended.action, "a late answer is not written before epoch {ANSWERS}");
            return Ok(());
        }
        self.write_bounded(agent, since, cause, ended, ResultTiming::Late).await.map(drop)
    }

    async fn write_bounded(
        &self,
        agent: &Name,
        since: u64,
        cause: &Envelope,
        ended: ActionEnd<'_>,
        when: ResultTiming,
    ) -> Result<bool, BusError> {
        let ActionEnd { action, tool, user, is_repeatable, took, .. } = ended;
        match self.write(agent, since, cause, ended, when).await {
            Err(BusError::TooLarge { size }) => {
                let error = match is_repeatable {
                    true => ToolError::too_large(format!("the result has {size} bytes; ask for less")),
                    false => too_large(size, self.bus.limits.max_body_bytes, "", false),
                };
                let outcome = Err(error).into();
                let ended = ActionEnd { action, tool, user, outcome, is_repeatable, took };
                self.write(agent, since, cause, ended, when).await
            }
            outcome => outcome,
        }
    }

    async fn write(
        &self,
        agent: &Name,
        since: u64,
        cause: &Envelope,
        ended: ActionEnd<'_>,
        when: ResultTiming,
    ) -> Result<bool, BusError> {
        let action = ended.action;
        let user = ended.user;
        let whose = ContentOwners::of_user(ended.user);
        let tool = ended.tool;
        let took = ended.took;
        let error = ended.outcome.result.as_ref().err().map(|error| error.kind.clone());
        let id = ids::derive(
            action,
            match when {
                ResultTiming::InTime => "result",
                ResultTiming::Late => "late-result",
            },
        );
        let envelope = Envelope {
            causation_id: Some(invocation_id(action)),
            ..cause.follow_up(id, Service::ToolRunner, Origin::Tool, self.bus.now())
        };
        // Builds of before that epoch could not read the result.
        let parts = match ended.outcome.attachments.is_empty() || self.bus.current_epoch().await? < ANSWERS {
            true => Vec::new(),
            false => self.attachments.store(&ended.outcome.attachments, user).await,
        };
        let body =
            ToolResult { late: when == ResultTiming::Late, ..build_result(self.bus.instance.as_str(), ended, parts) };
        let event = OutgoingEvent::new(&TOOL_RESULT, agent, envelope, body).with_data_subject(whose);
        let entered = self.ledger.record_once(agent, since, &event).await?;
        match (&entered, when) {
            (LedgerOutcome::Written { .. }, ResultTiming::InTime) => self.measure(agent, tool, took, error),
            (LedgerOutcome::Written { .. }, ResultTiming::Late) => {
                tracing::info!(%agent, %action, tool, "a late answer settles what was in doubt");
            }
            (LedgerOutcome::Already(_), _) => {
                tracing::info!(%agent, %action, "the action has a result already, this one is dropped");
            }
        }
        Ok(matches!(entered, LedgerOutcome::Written { .. }))
    }

    /// A name that is no tool's is the model's own, and there is no end of them.
    fn measure(&self, agent: &Name, tool: &str, took: Duration, error: Option<ToolErrorKind>) {
        let tool = if error == Some(ToolErrorKind::NotFound) { "" } else { tool };
        let error_type = error.as_ref().map_or("", ToolErrorKind::as_str);
        self.bus.metrics.record_duration(&TOOL_CALLS, took, &[tool, error_type, agent.as_str()]);
        if error == Some(ToolErrorKind::InDoubt) {
            self.bus.metrics.count(&IN_DOUBT, 1.0, &[]);
        }
    }
}

fn build_result(runner: &str, ended: ActionEnd<'_>, parts: Vec<Part>) -> ToolResult {
    let (ok, result, error) = match ended.outcome.result {
        Ok(value) => (true, value.to_string(), None),
        Err(ToolError { kind, message }) => {
            (false, String::new(), Some(v1::ToolError { kind: kind.as_str().to_owned(), message }))
        }
    };
    ToolResult {
        action_id: ended.action.to_string(),
        tool: ended.tool.to_owned(),
        ok,
        result,
        error,
        duration_ms: u32::try_from(ended.took.as_millis()).unwrap_or(u32::MAX),
        runner: runner.to_owned(),
        outside: ended.outcome.outside,
        late: false,
        parts,
    }
}
