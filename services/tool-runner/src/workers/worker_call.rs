//! A call of a worker's tool: given to one replica, followed by its beats, given to another one where it was lost and that
//! does no harm.

use std::time::Duration;

use futures::StreamExt as _;
use kairo_core::bus::Bus;
use kairo_core::bus::port::{ConnectionStatus, LiveSubscription, NoAnswer};
use kairo_core::ids::Name;
use kairo_core::workers;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::config::WorkerLifecycleConfig;
use super::message::{self, CallMessage, WorkerAnswer, WorkerOrder, WorkerReport};
use crate::outcome::{MissingAnswer, missing_answer_error};
use crate::tool::{CallContext, CallResult, ProgressReport, ToolError, ToolErrorKind};

/// Calls the tools of one worker.
#[derive(Clone)]
pub struct Caller {
    pub bus: Bus,
    pub worker: Name,
    pub lifecycle: WorkerLifecycleConfig,
    pub max_result_bytes: usize,
}

/// A call that is being carried out.
pub struct WorkerCall<'c> {
    pub tool: &'c str,
    pub arguments: &'c Value,
    /// True if the call may be sent to the worker again under the same action id.
    pub is_idempotent: bool,
    /// True if an agent may call the tool again without harm.
    pub is_repeatable: bool,
    pub timeout: Duration,
    pub ctx: &'c CallContext,
    pub action: Uuid,
}

/// The outcome of an attempt to hand a call to a worker.
enum Attempt {
    Over(CallResult),
    /// Nothing was begun: no worker is there.
    Nobody,
    /// Nothing was begun: all workers are busy.
    Busy,
    /// It may have been begun, and its worker has gone silent.
    Lost(String),
}

impl Caller {
    /// Carries a call out, until it ends or the time that the caller grants it is up.
    pub async fn carry_out(&self, calling: &WorkerCall<'_>) -> CallResult {
        let exchange = &calling.ctx.exchange;
        exchange.mark_unsent();
        let mut lost: Option<String> = None;
        let mut attempts = 0;
        let mut waiting_since = None;
        loop {
            let attempt = self.try_replica(calling).await;
            if matches!(attempt, Attempt::Busy | Attempt::Nobody) && lost.is_none() {
                exchange.mark_unsent();
            }
            match attempt {
                Attempt::Over(result) => return result,
                Attempt::Busy => sleep(Duration::from_millis(self.lifecycle.busy_ms)).await,
                Attempt::Nobody => {
                    let since = *waiting_since.get_or_insert_with(Instant::now);
                    if since.elapsed() >= Duration::from_millis(self.lifecycle.wait_ms) {
                        return Err(self.absent_worker_error(calling, lost.as_deref()));
                    }
                    sleep(Duration::from_millis(self.lifecycle.busy_ms)).await;
                }
                Attempt::Lost(reason) => {
                    attempts += 1;
                    waiting_since = None;
                    if !calling.is_idempotent || attempts >= self.lifecycle.attempts {
                        return Err(missing_answer_error(
                            &MissingAnswer::Lost(self.loss(&reason)),
                            calling.is_repeatable,
                            true,
                        ));
                    }
                    tracing::warn!(worker = %self.worker, tool = calling.tool, reason, "call is given to a worker again");
                    lost = Some(reason);
                }
            }
            if calling.ctx.cancel.is_cancelled() {
                return Err(missing_answer_error(
                    &MissingAnswer::Canceled,
                    calling.is_repeatable,
                    exchange.may_have_left(),
                ));
            }
        }
    }

    /// Hears how a call ends that was given to a worker before, as soon as a replica is there that knows it. Ends when the
    /// call is stopped, at the latest.
    pub async fn rejoin(&self, calling: &WorkerCall<'_>) -> CallResult {
        let pause = Duration::from_millis(self.lifecycle.silence_ms);
        loop {
            let sayings = self.bus.subscribe(workers::report_subject(&self.worker, calling.action)).await;
            let known = self.ask(self.order_subject(calling), &WorkerOrder::Attach).await;
            if let (Ok(sayings), Ok(Some(WorkerAnswer::Accepted { instance }))) = (sayings, known)
                && let Attempt::Over(result) = self.follow(calling, sayings, instance).await
            {
                return result;
            }
            if calling.ctx.cancel.run_until_cancelled(sleep(pause)).await.is_none() {
                let missing = MissingAnswer::Lost(self.loss("none of its replicas knows the call"));
                return Err(missing_answer_error(&missing, calling.is_repeatable, true));
            }
        }
    }

    fn loss(&self, reason: &str) -> String {
        format!("the worker {} was lost during the call: {reason}", self.worker)
    }

    fn absent_worker_error(&self, calling: &WorkerCall<'_>, lost: Option<&str>) -> ToolError {
        match lost {
            None => ToolError::failed(format!(
                "the worker {} is not there; nothing was begun, try again later",
                self.worker
            )),
            Some(reason) => {
                let how = format!("{}, and none came in its place", self.loss(reason));
                missing_answer_error(&MissingAnswer::Lost(how), calling.is_repeatable, true)
            }
        }
    }

    async fn try_replica(&self, calling: &WorkerCall<'_>) -> Attempt {
        // Before anybody is asked, so that nothing is missed of what is said.
        let sayings = match self.bus.subscribe(workers::report_subject(&self.worker, calling.action)).await {
            Ok(sayings) => sayings,
            Err(error) => {
                tracing::warn!(worker = %self.worker, %error, "a worker cannot be listened to");
                return Attempt::Nobody;
            }
        };
        // Somebody may have it: another runner asked, and is gone.
        if calling.is_idempotent
            && let Ok(Some(WorkerAnswer::Accepted { instance })) =
                self.ask(self.order_subject(calling), &WorkerOrder::Attach).await
        {
            calling.ctx.exchange.mark_sent();
            return self.follow(calling, sayings, instance).await;
        }
        let call = self.build_call(calling);
        calling.ctx.exchange.mark_sent();
        match self.ask(workers::call_subject(&self.worker, calling.tool), &call).await {
            Ok(Some(WorkerAnswer::Accepted { instance })) => self.follow(calling, sayings, instance).await,
            Ok(Some(WorkerAnswer::Busy)) => Attempt::Busy,
            Ok(Some(WorkerAnswer::Refused { message })) => {
                calling.ctx.exchange.mark_answered();
                Attempt::Over(Err(message::error(ToolErrorKind::Failed.as_str(), &message)))
            }
            Err(NoAnswer::Nobody) => Attempt::Nobody,
            // The question or the answer got lost: if somebody has it, that is to be heard.
            Ok(None) | Err(NoAnswer::Silence | NoAnswer::Unavailable(_)) => {
                self.follow(calling, sayings, String::new()).await
            }
        }
    }

    fn build_call<'c>(&self, calling: &'c WorkerCall<'_>) -> CallMessage<'c> {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        CallMessage {
            action_id: &calling.ctx.action_id,
            tool: calling.tool,
            arguments: calling.arguments,
            agent: &calling.ctx.agent,
            user: calling.ctx.user.as_deref().filter(|user| !user.is_empty()),
            thread_id: &calling.ctx.thread_id,
            time: calling.ctx.now.to_string(),
            timeout_ms: milliseconds(calling.timeout),
            beat_ms: self.lifecycle.beat_ms,
            max_result_bytes: self.max_result_bytes,
        }
    }

    fn order_subject(&self, calling: &WorkerCall<'_>) -> String {
        workers::order_subject(&self.worker, calling.action)
    }

    /// None for an answer that cannot be read.
    async fn ask(&self, subject: String, question: &impl serde::Serialize) -> Result<Option<WorkerAnswer>, NoAnswer> {
        let patience = Duration::from_millis(self.lifecycle.accept_ms);
        let answer = self.bus.request(subject, json!(question).to_string(), patience).await?;
        Ok(serde_json::from_slice(&answer).ok())
    }

    async fn send_order(&self, calling: &WorkerCall<'_>, order: WorkerOrder) {
        let said = self.bus.send_live(&self.order_subject(calling), json!(order).to_string()).await;
        if let Err(error) = said {
            tracing::debug!(worker = %self.worker, %error, ?order, "a worker could not be told");
        }
    }

    /// Hears what is said of a call until it is over, or nothing is said any more. `instance` is the replica that has the
    /// call, where that is known.
    async fn follow(&self, calling: &WorkerCall<'_>, mut sayings: LiveSubscription, instance: String) -> Attempt {
        let silence = Duration::from_millis(self.lifecycle.silence_ms);
        let replica = if instance.is_empty() { "it".to_owned() } else { format!("its replica {instance}") };
        let mut connection = self.bus.connection();
        let mut told = false;
        loop {
            let heard = tokio::select! {
                biased;
                () = self.wait_for_stop(calling), if !told => {
                    told = true;
                    self.send_order(calling, WorkerOrder::Cancel).await;
                    continue;
                }
                heard = timeout(silence, sayings.next()) => heard,
            };
            let payload = match heard {
                Ok(Some(heard)) => heard.payload,
                Ok(None) => return Attempt::Lost("the connection closed".to_owned()),
                Err(_) => match was_cut_off(&mut connection, self.bus.connection()) {
                    true => continue,
                    false => return Attempt::Lost(format!("{replica} said nothing for {} ms", silence.as_millis())),
                },
            };
            let result = match payload.len() > self.lifecycle.max_message_bytes {
                true => Some(Err(self.too_large(calling, &payload))),
                false => serde_json::from_slice(&payload).ok().and_then(|saying| self.apply_report(calling, saying)),
            };
            if let Some(result) = result {
                calling.ctx.exchange.mark_answered();
                self.send_order(calling, WorkerOrder::Acknowledge).await;
                return Attempt::Over(result);
            }
        }
    }

    /// Returns when the worker is to stop: somebody wants it, or the time limit passed.
    async fn wait_for_stop(&self, calling: &WorkerCall<'_>) {
        tokio::select! {
            biased;
            () = calling.ctx.cancel.cancelled() => {}
            () = calling.ctx.exchange.overdue().cancelled() => {}
        }
    }

    fn too_large(&self, calling: &WorkerCall<'_>, payload: &[u8]) -> ToolError {
        let why = format!("the worker {} answered with {} bytes", self.worker, payload.len());
        match calling.is_repeatable {
            true => ToolError::too_large(why),
            false => {
                missing_answer_error(&MissingAnswer::unusable(why, &String::from_utf8_lossy(payload)), false, true)
            }
        }
    }

    /// Handles a worker's report; returns the result if it ends the call.
    fn apply_report(&self, calling: &WorkerCall<'_>, saying: WorkerReport) -> Option<CallResult> {
        match saying {
            WorkerReport::Alive => None,
            WorkerReport::Progress { fraction, message } => {
                let fraction =
                    fraction.filter(|fraction| fraction.is_finite()).map(|fraction| fraction.clamp(0.0, 1.0));
                calling.ctx.progress.report(ProgressReport { fraction, message });
                None
            }
            WorkerReport::Result { value } => Some(Ok(value)),
            WorkerReport::Error { kind, message } => {
                let error = message::error(&kind, &message);
                // It ran, and must not be called again for less.
                let ran = error.kind == ToolErrorKind::TooLarge && !calling.is_repeatable;
                Some(Err(match ran {
                    true => missing_answer_error(&MissingAnswer::unusable(error.message, ""), false, true),
                    false => error,
                }))
            }
            WorkerReport::Stopped => {
                Some(Err(ToolError::canceled(format!("the worker {} stopped it on request", self.worker))))
            }
        }
    }
}

/// Returns true if the connection was lost, so that silence proves nothing. Remembers the connection as it is now.
fn was_cut_off(before: &mut ConnectionStatus, now: ConnectionStatus) -> bool {
    let was_cut_off = !now.up || now.number != before.number;
    *before = now;
    was_cut_off
}
