//! The limits of a fork, and its usage against them.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use kairo_core::prices::MoneyAmount;
use serde::Serialize;
use tokio::time::{Instant, sleep_until};

use crate::config::GatewayConfig;

/// The limits of a fork; reaching `idle` or `bytes` ends it.
#[derive(Clone, Copy, Debug)]
pub struct ForkLimits {
    pub idle: Duration,
    pub messages: u32,
    pub bytes: usize,
    pub model_calls: u32,
    pub budget: MoneyAmount,
}

/// Amounts a fork has used, or may use at most.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct ForkUsage {
    pub messages: u32,
    pub bytes: usize,
    pub model_calls: u64,
    /// `None` if no model is asked, or one has no price.
    pub cost: Option<String>,
}

impl ForkLimits {
    pub fn from_config(config: &GatewayConfig) -> Self {
        Self {
            idle: Duration::from_millis(config.fork_idle_ms),
            messages: config.fork_messages,
            bytes: config.fork_bytes,
            model_calls: config.fork_model_calls,
            budget: config.fork_budget,
        }
    }

    /// Returns the limit with its configuration key, for the message sent once it is reached; so do the next three.
    pub fn describe_idle(&self) -> String {
        format!("{} ms (gateway.fork_idle_ms)", self.idle.as_millis())
    }

    pub fn describe_messages(&self) -> String {
        format!("{} messages (gateway.fork_messages)", self.messages)
    }

    pub fn describe_bytes(&self) -> String {
        format!("{} bytes (gateway.fork_bytes)", self.bytes)
    }

    pub fn describe_model_calls(&self) -> String {
        format!("{} calls of models (gateway.fork_model_calls)", self.model_calls)
    }
}

/// When somebody did something in a fork last.
#[derive(Clone, Debug)]
pub struct LastActivity(Arc<Mutex<(Instant, Timestamp)>>);

impl LastActivity {
    pub fn now() -> Self {
        Self(Arc::new(Mutex::new((Instant::now(), Timestamp::now()))))
    }

    pub fn touch(&self) {
        *self.lock_last() = (Instant::now(), Timestamp::now());
    }

    pub fn time(&self) -> Timestamp {
        self.lock_last().1
    }

    /// Waits until nobody has done anything for that long.
    pub async fn wait_for_idle(&self, long: Duration) {
        loop {
            let deadline = self.lock_last().0 + long;
            if deadline <= Instant::now() {
                return;
            }
            sleep_until(deadline).await;
        }
    }

    fn lock_last(&self) -> MutexGuard<'_, (Instant, Timestamp)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whoever_does_something_is_waited_for_again() {
        let spoken = LastActivity::now();
        let long = Duration::from_secs(10);
        advance(Duration::from_secs(9)).await;
        spoken.touch();
        advance(Duration::from_secs(9)).await;
        assert_eq!(spoken.wait_for_idle(long).now_or_never(), None);
        advance(Duration::from_secs(1)).await;
        assert_eq!(spoken.wait_for_idle(long).now_or_never(), Some(()));
    }
}
