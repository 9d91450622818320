//! Answers that come after their calls have a result: they are waited for within bounds, and settle what was in doubt.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use kairo_core::{
    outside,
    sharing::{
        QuotaHolder,
        permit_pool::{Permit, PermitPool},
    },
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::outcome::Exchange;
use crate::tool::{CallResult, Tool, ToolErrorKind};
use crate::toolbox::bounded;

/// Limits on waiting for late answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LateAnswersConfig {
    /// Longest wait for an answer after its call's result said `in_doubt`, in milliseconds; 0 for none. Default 600
    /// 000.
    pub wait_ms: u64,
    /// Answers that one replica waits for at once, of which each user has a share; further calls stay in doubt. Default 256.
    pub most: usize,
}

impl Default for LateAnswersConfig {
    fn default() -> Self {
        Self { wait_ms: 600_000, most: 256 }
    }
}

/// The places for calls that wait for late answers.
#[derive(Debug)]
pub struct LateAnswers {
    patience: Duration,
    places: PermitPool,
}

/// A call that goes on after its result.
pub struct OngoingCall {
    pub call: BoxFuture<'static, CallResult>,
    /// Has the call end when nobody waits any more.
    pub stop: CancellationToken,
    pub exchange: Exchange,
    /// The holder whose share of the awaited answers this call takes.
    pub holder: QuotaHolder,
    pub tool: Arc<dyn Tool>,
    pub arguments: Value,
}

/// An answer that may still come.
pub struct LateAnswer {
    running: OngoingCall,
    patience: Duration,
    grace: Duration,
    max_result_bytes: usize,
    _place: Permit,
}

impl LateAnswers {
    pub fn new(config: &LateAnswersConfig) -> Self {
        Self { patience: Duration::from_millis(config.wait_ms), places: PermitPool::with_capacity(config.most) }
    }

    /// Keeps a call going for its answer, which may take so many bytes; when nobody waits any more, the call has `grace` to
    /// say how it ended. None where no answer is waited for, or too many are.
    pub fn expect_answer(&self, running: OngoingCall, grace: Duration, max_result_bytes: usize) -> Option<LateAnswer> {
        let patience = self.patience;
        if patience.is_zero() {
            return None;
        }
        let Ok(place) = self.places.try_acquire(&running.holder) else {
            let tool = &running.tool.spec().name;
            tracing::warn!(
                tool,
                "its late answer is not waited for: as many are as its user may have of late_answers.most"
            );
            return None;
        };
        Some(LateAnswer { running, patience, grace, max_result_bytes, _place: place })
    }
}

impl LateAnswer {
    /// Waits for the answer and returns it with the outside sources of its content. None if no answer came in time, or
    /// one that says as little as before.
    pub async fn wait_for_answer(self) -> Option<(CallResult, Vec<String>)> {
        let OngoingCall { mut call, stop, exchange, tool, arguments, .. } = self.running;
        let answer = match tokio::time::timeout(self.patience, &mut call).await {
            Ok(answer) => answer,
            Err(_) => {
                // A tool that can tell its peer to stop does so now. What it says of itself then is no answer.
                stop.cancel();
                let last = tokio::time::timeout(self.grace, call).await.ok()?;
                if last.is_err() && !exchange.is_answered() {
                    return None;
                }
                last
            }
        };
        let answer = bounded(answer, self.max_result_bytes, tool.is_repeatable());
        if matches!(&answer, Err(error) if error.kind == ToolErrorKind::InDoubt) {
            return None;
        }
        let outside = outside::limit_marks(tool.outside_sources(&arguments, &answer).iter().map(String::as_str));
        Some((answer, outside))
    }
}
