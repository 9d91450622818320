//! Keeping at it while the server is away: what was done at some cost is not thrown away for a moment's absence.

use std::{fmt::Display, time::Duration};

use tokio::time::Instant;

use super::{Bus, BusConfig, BusError, consume::backoff_delay};

/// The time and attempts left for a retried operation.
pub struct RetryDeadline<'l> {
    limits: &'l BusConfig,
    deadline: Instant,
    attempt: u64,
}

impl<'l> RetryDeadline<'l> {
    /// Patience for as long as `hold_ms` says, from now.
    pub fn new(limits: &'l BusConfig) -> Self {
        Self { limits, deadline: Instant::now() + Duration::from_millis(limits.hold_ms), attempt: 0 }
    }

    /// Waits before another try, or gives the error back when another one would not help or it is too late.
    pub async fn backoff_after(&mut self, error: BusError) -> Result<(), BusError> {
        if !matches!(error, BusError::Unavailable { .. }) || Instant::now() >= self.deadline {
            return Err(error);
        }
        self.attempt += 1;
        tracing::warn!(%error, attempt = self.attempt, "not written yet, trying again");
        tokio::time::sleep(backoff_delay(self.limits, self.attempt)).await;
        Ok(())
    }
}

impl Bus {
    /// Retries until it succeeds, however long that takes: the server may be away, or busy, for example while it counts
    /// messages for readers of a log of very many agents. Logs `not_yet` after each failed attempt.
    pub async fn retry_until_success<T, E: Display, F: Future<Output = Result<T, E>>>(
        &self,
        not_yet: &str,
        attempt: impl Fn() -> F,
    ) -> T {
        let mut failures = 0;
        loop {
            match attempt().await {
                Ok(done) => return done,
                Err(error) => {
                    failures += 1;
                    tracing::warn!(%error, attempt = failures, "{not_yet}");
                }
            }
            tokio::time::sleep(backoff_delay(&self.limits, failures)).await;
        }
    }
}
