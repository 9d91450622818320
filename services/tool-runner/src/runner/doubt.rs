//! Calls that are in doubt: what may still be heard of them is waited for, and written as a late result.

use std::time::Duration;

use kairo_core::bus::BusError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Job, Runner};
use crate::{
    late_answers::LateAnswer,
    outcome::{MissingAnswer, missing_answer_error},
    plan::{ActionRequest, ResolvedCall},
    results::ActionEnd,
    tool::{CallResult, ProgressReporter, ToolErrorKind},
    toolbox::CallOutcome,
};

impl Runner {
    /// A call that a runner began which is gone: whoever carries it out may still say how it ends.
    pub(super) fn leave_in_doubt(&self, job: &Job<'_>, asked: &ActionRequest) -> CallOutcome {
        let missing =
            MissingAnswer::Lost("the runner that began this was lost before it could say how it ended".to_owned());
        let arguments = serde_json::from_str(&asked.arguments).unwrap_or_default();
        let context = self.context(job, asked, CancellationToken::new(), ProgressReporter::discard());
        let late = self.toolbox.rejoin(&asked.tool, arguments, context);
        CallOutcome { late, ..Err(missing_answer_error(&missing, false, true)).into() }
    }

    /// Says how a call ended that was carried out here, where another replica took this one for lost meanwhile and said that it
    /// is in doubt.
    pub(super) async fn settle_doubt_of_others(
        &self,
        job: &Job<'_>,
        call: &ResolvedCall,
        result: CallResult,
        took: Duration,
    ) -> Result<(), BusError> {
        let is_in_doubt = |kind: Option<&str>| kind == Some(ToolErrorKind::InDoubt.as_str());
        if is_in_doubt(result.as_ref().err().map(|error| error.kind.as_str())) {
            return Ok(());
        }
        let action = call.request.action;
        let said = self.results.find_result(&job.agent, job.since, action).await?;
        let error = said.as_ref().and_then(|said| said.error.as_ref());
        if !is_in_doubt(error.map(|error| error.kind.as_str())) {
            return Ok(());
        }
        let tool = call.request.tool.as_str();
        let user = call.request.user.as_deref().unwrap_or_default();
        let ended = ActionEnd { action, tool, user, outcome: result.into(), is_repeatable: false, took };
        self.results.settle_doubt(&job.agent, job.since, &job.decision.envelope, ended).await
    }

    /// Writes what a late answer says, if one comes, in the background: the decision is done with.
    pub(super) fn wait_for_late_answer(
        &self,
        job: &Job<'_>,
        asked: &ActionRequest,
        late: LateAnswer,
        started: Instant,
    ) {
        let results = self.results.clone();
        let agent = job.agent.clone();
        let since = job.since;
        let cause = job.decision.envelope.clone();
        let asked = asked.clone();
        self.bus.spawn(async move {
            let Some((result, outside)) = late.wait_for_answer().await else { return };
            let user = asked.user.as_deref().unwrap_or_default();
            let outcome = CallOutcome { outside, ..result.into() };
            let action = asked.action;
            let tool = asked.tool.as_str();
            let took = started.elapsed();
            let ended = ActionEnd { action, tool, user, outcome, is_repeatable: false, took };
            if let Err(error) = results.settle_doubt(&agent, since, &cause, ended).await {
                tracing::error!(%agent, %action, %error, "a late answer could not be written, its call stays in doubt");
            }
        });
    }
}
