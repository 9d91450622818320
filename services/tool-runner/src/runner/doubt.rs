//! Calls that are in doubt: what may still be heard of them is waited for, and written as a late result.

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Job, Runner};
use crate::{
    late::LateAnswer,
    outcome::{Missing, without_answer},
    plan::Asked,
    results::Ended,
    tool::ProgressReporter,
    toolbox::Outcome,
};

impl Runner {
    /// A call that a runner began which is gone: whoever carries it out may still say how it ends.
    pub(super) fn doubt(&self, job: &Job<'_>, asked: &Asked) -> Outcome {
        let missing = Missing::Lost("the runner that began this was lost before it could say how it ended".to_owned());
        let arguments = serde_json::from_str(&asked.arguments).unwrap_or_default();
        let context = self.context(job, asked, CancellationToken::new(), ProgressReporter::discard());
        let late = self.toolbox.rejoin(&asked.tool, arguments, context);
        Outcome { late, ..Err(without_answer(&missing, false, true)).into() }
    }

    /// Writes what a late answer says, if one comes, in the background: the decision is done with.
    pub(super) fn wait_for(&self, job: &Job<'_>, asked: &Asked, late: LateAnswer, started: Instant) {
        let (results, agent, since) = (self.results.clone(), job.agent.clone(), job.since);
        let (cause, asked) = (job.decision.envelope.clone(), asked.clone());
        self.bus.spawn(async move {
            let Some((result, outside)) = late.come().await else { return };
            let user = asked.user.as_deref().unwrap_or_default();
            let outcome = Outcome { outside, ..result.into() };
            let (action, tool, took) = (asked.action, asked.tool.as_str(), started.elapsed());
            let ended = Ended { action, tool, user, outcome, is_repeatable: false, took };
            if let Err(error) = results.settle(&agent, since, &cause, ended).await {
                tracing::error!(%agent, %action, %error, "a late answer could not be written, its call stays in doubt");
            }
        });
    }
}
