//! Saying how an action ended: once, whoever else may say it too.

use std::time::Duration;

use kairo_core::{
    bus::{
        Bus, BusError,
        append::Outgoing,
        ledger::{Entered, Ledger},
    },
    envelope::{Envelope, Origin},
    event_json::invocation_id,
    ids::{self, Name},
    metrics::table::{IN_DOUBT, TOOL_CALLS},
    personal::Whose,
    subjects::{Service, TOOL_RESULT},
    vocabulary::ANSWERS,
};
use kairo_proto::v1::{self, Part, ToolResult};
use uuid::Uuid;

use crate::{
    attachments::Attachments,
    tool::{ToolError, ToolErrorKind},
    toolbox::{Outcome, too_large},
};

/// The end of one action, as it is reported.
pub struct Ended<'a> {
    pub action: Uuid,
    pub tool: &'a str,
    /// The user on whose behalf it ran; empty if none.
    pub user: &'a str,
    pub outcome: Outcome,
    /// True if calling it twice has the effect of calling it once.
    pub is_repeatable: bool,
    pub took: Duration,
}

/// Distinguishes the result of a call from what became known later.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
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
    pub async fn ended(&self, agent: &Name, since: u64, actions: &[Uuid]) -> Result<Vec<Uuid>, BusError> {
        Ok(self.ledger.entries(agent, since, actions).await?.into_keys().collect())
    }

    /// Returns the result of this action, if it has ended.
    pub async fn of(&self, agent: &Name, since: u64, action: Uuid) -> Result<Option<ToolResult>, BusError> {
        let record = self.ledger.record(agent, since, action).await?;
        Ok(record.and_then(|record| ToolResult::try_from(record.body).ok()))
    }

    /// Writes the result, unless the action has one; says whether it was written. `cause` is an event from which the action
    /// followed.
    pub async fn report(&self, agent: &Name, since: u64, cause: &Envelope, ended: Ended<'_>) -> Result<bool, BusError> {
        self.write_bounded(agent, since, cause, ended, When::InTime).await
    }

    /// Writes what came of an action after its result said `in_doubt`, unless that was written, or replicas of an older build read
    /// the log: their agents would not be told, and a new build that folds the same log would have told them.
    pub async fn settle(&self, agent: &Name, since: u64, cause: &Envelope, ended: Ended<'_>) -> Result<(), BusError> {
        if self.bus.epoch().await? < ANSWERS {
            tracing::warn!(%agent, action = %ended.action, "a late answer is not written before epoch {ANSWERS}");
            return Ok(());
        }
        self.write_bounded(agent, since, cause, ended, When::Late).await.map(drop)
    }

    async fn write_bounded(
        &self,
        agent: &Name,
        since: u64,
        cause: &Envelope,
        ended: Ended<'_>,
        when: When,
    ) -> Result<bool, BusError> {
        let Ended { action, tool, user, is_repeatable, took, .. } = ended;
        match self.write(agent, since, cause, ended, when).await {
            Err(BusError::TooLarge { size }) => {
                let error = match is_repeatable {
                    true => ToolError::too_large(format!("the result has {size} bytes; ask for less")),
                    false => too_large(size, self.bus.limits.max_body_bytes, "", false),
                };
                let outcome = Err(error).into();
                let ended = Ended { action, tool, user, outcome, is_repeatable, took };
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
        ended: Ended<'_>,
        when: When,
    ) -> Result<bool, BusError> {
        let (action, user, whose) = (ended.action, ended.user, Whose::user(ended.user));
        let (tool, took, error) =
            (ended.tool, ended.took, ended.outcome.result.as_ref().err().map(|error| error.kind.clone()));
        let id = ids::derived(
            action,
            match when {
                When::InTime => "result",
                When::Late => "late-result",
            },
        );
        let envelope = Envelope {
            causation_id: Some(invocation_id(action)),
            ..cause.follow(id, Service::ToolRunner, Origin::Tool, self.bus.now())
        };
        // Builds of before that epoch could not read the result.
        let parts = match ended.outcome.attachments.is_empty() || self.bus.epoch().await? < ANSWERS {
            true => Vec::new(),
            false => self.attachments.store(&ended.outcome.attachments, user).await,
        };
        let body = ToolResult { late: when == When::Late, ..result(self.bus.instance.as_str(), ended, parts) };
        let event = Outgoing::new(&TOOL_RESULT, agent, envelope, body).whose(whose);
        let entered = self.ledger.enter(agent, since, &event).await?;
        match (&entered, when) {
            (Entered::Written { .. }, When::InTime) => self.measure(agent, tool, took, error),
            (Entered::Written { .. }, When::Late) => {
                tracing::info!(%agent, %action, tool, "a late answer settles what was in doubt");
            }
            (Entered::Already(_), _) => {
                tracing::info!(%agent, %action, "the action has a result already, this one is dropped");
            }
        }
        Ok(matches!(entered, Entered::Written { .. }))
    }

    /// A name that is no tool's is the model's own, and there is no end of them.
    fn measure(&self, agent: &Name, tool: &str, took: Duration, error: Option<ToolErrorKind>) {
        let tool = if error == Some(ToolErrorKind::NotFound) { "" } else { tool };
        let error_type = error.as_ref().map_or("", ToolErrorKind::as_str);
        self.bus.metrics.took(&TOOL_CALLS, took, &[tool, error_type, agent.as_str()]);
        if error == Some(ToolErrorKind::InDoubt) {
            self.bus.metrics.count(&IN_DOUBT, 1.0, &[]);
        }
    }
}

fn result(runner: &str, ended: Ended<'_>, parts: Vec<Part>) -> ToolResult {
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
