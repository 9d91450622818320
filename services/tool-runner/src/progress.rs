//! Telling the log how far a call is.

use std::{
    convert::Infallible,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use kairo_core::{
    bus::{Bus, append::OutgoingEvent},
    envelope::{Envelope, Origin},
    event_json::invocation_id,
    ids::{self, Name},
    personal::ContentOwners,
    subjects::{Service, TOOL_PROGRESS},
};
use kairo_proto::v1::ToolProgress;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};
use uuid::Uuid;

use crate::tool::{ProgressReport, QuestionChange};

/// Between two events about one action.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest message that is passed on, in characters.
const MAX_MESSAGE_CHARS: usize = 200;

/// The call whose progress is reported.
pub struct ProgressPublisher<'c> {
    pub bus: &'c Bus,
    pub agent: &'c Name,
    /// An event of the action's chain.
    pub cause: &'c Envelope,
    pub action: Uuid,
    pub tool: &'c str,
    /// The user on whose behalf it runs; empty if none.
    pub user: &'c str,
    /// Outside sources of the messages.
    pub outside: Vec<String>,
    /// Number of progress events written for the call.
    pub number: AtomicU64,
}

impl ProgressPublisher<'_> {
    /// Tells what is newest and waits for the pause to pass, for as long as it is polled. What is reported meanwhile
    /// replaces what was reported before it. Progress that cannot be written is let go: the next replaces it.
    pub async fn publish_reports(
        &self,
        mut reports: watch::Receiver<Option<ProgressReport>>,
        questions: &mut mpsc::Receiver<QuestionChange>,
    ) -> Infallible {
        let mut next = Instant::now();
        let mut is_reported = false;
        loop {
            // Questions are told at once, each of them.
            let body = tokio::select! {
                biased;
                Some(change) = questions.recv() => Some(of_question(self.empty_body(), change)),
                Ok(()) = reports.changed(), if !is_reported => {
                    is_reported = true;
                    continue;
                }
                () = sleep_until(next), if is_reported => {
                    is_reported = false;
                    next = Instant::now() + PAUSE;
                    let newest = reports.borrow_and_update().clone();
                    newest.and_then(|progress| with_progress(self.empty_body(), progress))
                }
                // Nobody reports any more, but the call has not ended.
                else => std::future::pending().await,
            };
            if let Some(body) = body {
                self.publish(body).await;
            }
        }
    }

    /// Tells what became of questions and was not told before the call ended.
    pub async fn publish_remaining(&self, questions: &mut mpsc::Receiver<QuestionChange>) {
        while let Ok(change) = questions.try_recv() {
            self.publish(of_question(self.empty_body(), change)).await;
        }
    }

    async fn publish(&self, body: ToolProgress) {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = self.bus.publish(&self.event(number, body)).await {
            tracing::debug!(action = %self.action, %error, "progress not written");
        }
    }

    fn empty_body(&self) -> ToolProgress {
        ToolProgress {
            action_id: self.action.to_string(),
            tool: self.tool.to_owned(),
            runner: self.bus.instance.to_string(),
            outside: self.outside.clone(),
            ..Default::default()
        }
    }

    fn event(&self, number: u64, body: ToolProgress) -> OutgoingEvent {
        // Counted by each replica for itself: a call that is repeated reports again.
        let id = ids::derive(self.action, &format!("progress/{}/{number}", self.bus.instance));
        let envelope = Envelope {
            causation_id: Some(invocation_id(self.action)),
            ..self.cause.follow_up(id, Service::ToolRunner, Origin::Tool, self.bus.now())
        };
        OutgoingEvent::new(&TOOL_PROGRESS, self.agent, envelope, body)
            .with_data_subject(ContentOwners::of_user(self.user))
    }
}

/// None for a report that says nothing.
fn with_progress(body: ToolProgress, progress: ProgressReport) -> Option<ToolProgress> {
    let message: String = progress.message.unwrap_or_default().chars().take(MAX_MESSAGE_CHARS).collect();
    let is_anything = progress.fraction.is_some() || !message.is_empty();
    is_anything.then_some(ToolProgress { fraction: progress.fraction, message, ..body })
}

fn of_question(body: ToolProgress, change: QuestionChange) -> ToolProgress {
    match change {
        QuestionChange::Asked { words, question } => {
            let message = words.chars().take(MAX_MESSAGE_CHARS).collect();
            ToolProgress { message, question: Some(*question), ..body }
        }
        QuestionChange::Ended(end) => {
            let message = format!("the question was answered: {}", end.action);
            ToolProgress { message, question_ended: Some(end), ..body }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(fraction: Option<f64>, message: &str) -> Option<ToolProgress> {
        let message = (!message.is_empty()).then(|| message.to_owned());
        with_progress(ToolProgress::default(), ProgressReport { fraction, message })
    }

    #[test]
    fn a_report_is_told_in_few_words_and_one_without_words_or_number_is_not() {
        assert_eq!(told(Some(0.5), "").unwrap().fraction, Some(0.5));
        assert_eq!(told(None, &"é".repeat(300)).unwrap().message.chars().count(), MAX_MESSAGE_CHARS);
        assert_eq!(told(None, ""), None);
    }
}
