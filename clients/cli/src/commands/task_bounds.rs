//! Bounds of one queued task of an agent.

use clap::Args;

use crate::client::SessionBounds;

/// Bounds of one queued task, over all its sessions, of an agent in the background.
#[derive(Debug, Args)]
pub(super) struct TaskBoundOptions {
    /// Model calls that one queued task may take, in all its sessions together (default: any number)
    #[arg(long, value_name = "N")]
    task_calls: Option<u32>,
    /// Tokens that one queued task may take, input and output (default: any number)
    #[arg(long, value_name = "N")]
    task_tokens: Option<u64>,
    /// Most that one queued task may cost, in the currency of the prices (default: any amount)
    #[arg(long, value_name = "AMOUNT")]
    task_cost: Option<String>,
    /// Seconds for which one queued task may be worked on (default: any number)
    #[arg(long, value_name = "N")]
    task_seconds: Option<u32>,
}

impl TaskBoundOptions {
    pub(super) fn into_bounds(self) -> Option<SessionBounds> {
        let Self { task_calls: model_calls, task_tokens: tokens, task_cost: cost, task_seconds: seconds } = self;
        let bounds = SessionBounds { model_calls, tokens, cost, seconds };
        (bounds != SessionBounds::default()).then_some(bounds)
    }
}
