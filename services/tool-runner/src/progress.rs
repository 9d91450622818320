//! Telling the log how far a call is.

use std::{convert::Infallible, time::Duration};

use kairo_core::{
    bus::{Bus, append::Outgoing},
    envelope::{Envelope, Origin},
    event_json::invocation_id,
    ids::{self, Name},
    personal::Whose,
    subjects::{Service, TOOL_PROGRESS},
};
use kairo_proto::v1::ToolProgress;
use tokio::{sync::watch, time::sleep};
use uuid::Uuid;

use crate::tool::Progress;

/// Between two events about one action.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest message that is passed on, in characters.
const MAX_MESSAGE_CHARS: usize = 200;

/// Which call it is about.
pub struct Telling<'c> {
    pub bus: &'c Bus,
    pub agent: &'c Name,
    /// An event of the action's chain.
    pub cause: &'c Envelope,
    pub action: Uuid,
    pub tool: &'c str,
    /// On whose behalf; empty where it is nobody's.
    pub user: &'c str,
    /// Where its words come from that nobody here wrote.
    pub outside: Vec<String>,
}

impl Telling<'_> {
    /// Tells what is newest and waits for the pause to pass, for as long as it is polled. What is reported meanwhile
    /// replaces what was reported before it. Progress that cannot be written is let go: the next replaces it.
    pub async fn tell(&self, mut reports: watch::Receiver<Option<Progress>>) -> Infallible {
        let mut number = 0;
        while reports.changed().await.is_ok() {
            let newest = reports.borrow_and_update().clone();
            let Some(event) = newest.and_then(|progress| self.event(number, progress)) else { continue };
            if let Err(error) = self.bus.publish(&event).await {
                tracing::debug!(action = %self.action, %error, "progress not written");
            }
            number += 1;
            sleep(PAUSE).await;
        }
        // Nobody reports any more, but the call has not ended.
        std::future::pending().await
    }

    fn event(&self, number: u64, progress: Progress) -> Option<Outgoing> {
        let body = body(self.action, self.tool, self.bus.instance.as_str(), progress)?;
        let body = ToolProgress { outside: self.outside.clone(), ..body };
        // Counted by each replica for itself: a call that is repeated reports again.
        let id = ids::derived(self.action, &format!("progress/{}/{number}", self.bus.instance));
        let envelope = Envelope {
            causation_id: Some(invocation_id(self.action)),
            ..self.cause.follow(id, Service::ToolRunner, Origin::Tool, self.bus.now())
        };
        Some(Outgoing::new(&TOOL_PROGRESS, self.agent, envelope, body).whose(Whose::user(self.user)))
    }
}

/// None for a report that says nothing.
fn body(action: Uuid, tool: &str, runner: &str, progress: Progress) -> Option<ToolProgress> {
    let message: String = progress.message.unwrap_or_default().chars().take(MAX_MESSAGE_CHARS).collect();
    (progress.fraction.is_some() || !message.is_empty()).then(|| ToolProgress {
        action_id: action.to_string(),
        tool: tool.to_owned(),
        runner: runner.to_owned(),
        fraction: progress.fraction,
        message,
        outside: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(fraction: Option<f64>, message: &str) -> Option<ToolProgress> {
        let message = (!message.is_empty()).then(|| message.to_owned());
        body(Uuid::nil(), "t", "r", Progress { fraction, message })
    }

    #[test]
    fn a_report_is_told_in_few_words_and_one_without_words_or_number_is_not() {
        assert_eq!(told(Some(0.5), "").unwrap().fraction, Some(0.5));
        assert_eq!(told(None, &"é".repeat(300)).unwrap().message.chars().count(), MAX_MESSAGE_CHARS);
        assert_eq!(told(None, ""), None);
    }
}
