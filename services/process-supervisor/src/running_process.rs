//! A process that runs here: what is known of it, and what can be done to it.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kairo_core::{
    envelope::Envelope,
    ids::{Name, process_id},
    watch,
};
use kairo_proto::v1::ProcessState;
use tokio::time::Instant;
use uuid::Uuid;

use crate::{
    guarded_process::{GuardedError, InputError, ProcessControl},
    live_output::LivePublisher,
    output_account::OutputAccount,
    protocol::Signal,
    request_dedup::RequestDedup,
};

/// One process, from the moment that it waits at its gate until its end is in the log.
pub struct RunningProcess {
    pub agent: Name,
    pub action: Uuid,
    /// The event that says it exists, from which all it does follows.
    pub cause: Envelope,
    /// The publisher of its output while it runs, if any.
    pub live: Option<LivePublisher>,
    control: ProcessControl,
    phase: watch::Sender<Phase>,
    account: Mutex<OutputAccount>,
    dedup: Mutex<RequestDedup>,
    canceled: AtomicBool,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    AtGate,
    Running { since: Instant },
    Over,
}

/// The reason why an operation on a process failed.
#[derive(Debug, thiserror::Error)]
pub enum ProcessOperationError {
    #[error("the process has ended")]
    Over,
    #[error(transparent)]
    Guarded(#[from] GuardedError),
    #[error(transparent)]
    Input(#[from] InputError),
}

impl RunningProcess {
    pub fn new(
        agent: &Name,
        action: Uuid,
        cause: Envelope,
        live: Option<LivePublisher>,
        control: ProcessControl,
        tail_bytes: usize,
    ) -> Self {
        Self {
            agent: agent.clone(),
            action,
            cause,
            live,
            control,
            phase: watch::Sender::new(Phase::AtGate),
            account: Mutex::new(OutputAccount::new(tail_bytes)),
            dedup: Mutex::default(),
            canceled: AtomicBool::new(false),
        }
    }

    /// Returns the account of its output.
    pub fn account(&self) -> MutexGuard<'_, OutputAccount> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks its gate as open.
    pub fn mark_running(&self) {
        self.phase.send_replace(Phase::Running { since: Instant::now() });
    }

    /// Marks it as over: nothing of it is left, and its end is in the log, unless that could not be written.
    pub fn mark_over(&self) {
        self.phase.send_replace(Phase::Over);
    }

    /// Returns when it is over.
    pub async fn wait_until_over(&self) {
        // It cannot fail: the sender is our own.
        let _ = self.phase.subscribe().wait_for(|phase| matches!(phase, Phase::Over)).await;
    }

    /// For how long it has been running.
    pub fn running_time(&self) -> Duration {
        match *self.phase.borrow() {
            Phase::Running { since } => since.elapsed(),
            Phase::AtGate | Phase::Over => Duration::ZERO,
        }
    }

    /// Asks it to end, and has it killed when `grace` is over. At its gate it ends there.
    pub async fn cancel(&self, grace: Duration) {
        self.canceled.store(true, Ordering::Relaxed);
        // A guard that is gone has killed already.
        self.control.cancel(grace).await.ok();
    }

    /// Returns true if it was asked to end.
    pub fn is_canceled(&self) -> bool {
        self.canceled.load(Ordering::Relaxed)
    }

    /// Sends it a signal, once for each `request`.
    pub async fn signal(&self, request: Uuid, signal: Signal) -> Result<(), ProcessOperationError> {
        self.run_once(request, self.control.signal(signal)).await
    }

    /// Writes to its standard input, once for each `request`.
    pub async fn write(&self, request: Uuid, text: String, close: bool) -> Result<(), ProcessOperationError> {
        self.run_once(request, self.control.write(text, close)).await
    }

    async fn run_once<E: Into<ProcessOperationError>>(
        &self,
        request: Uuid,
        doing: impl Future<Output = Result<(), E>>,
    ) -> Result<(), ProcessOperationError> {
        // At the gate there is no program yet that it could reach.
        let begun = self.phase.subscribe().wait_for(|phase| !matches!(phase, Phase::AtGate)).await;
        if !matches!(begun, Ok(Phase::Running { .. })) {
            return Err(ProcessOperationError::Over);
        }
        if !self.lock_dedup().try_begin(request) {
            return Ok(());
        }
        let done = doing.await;
        if done.is_err() {
            self.lock_dedup().forget(request);
        }
        done.map_err(E::into)
    }

    fn lock_dedup(&self) -> MutexGuard<'_, RequestDedup> {
        self.dedup.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns its current state.
    pub fn state(&self) -> ProcessState {
        let account = self.account();
        let written = account.written_totals();
        ProcessState {
            process_id: process_id(self.action).to_string(),
            running_ms: u64::try_from(self.running_time().as_millis()).unwrap_or(u64::MAX),
            fraction: account.progress().and_then(|progress| progress.fraction),
            message: account.progress().map(|progress| progress.message.clone()).unwrap_or_default(),
            stdout_tail: account.tails().stdout().to_owned(),
            stderr_tail: account.tails().stderr().to_owned(),
            stdout_bytes: written.stdout_bytes,
            stderr_bytes: written.stderr_bytes,
            ..Default::default()
        }
    }
}
