//! Asking a replica whether it still works on an action, before it is given up for lost.
//!
//! A redelivery usually means that a replica died. It can also mean that the server was away for a while and missed
//! the signs of life. A replica that is gone has no connection, so the question is answered at once.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::StreamExt;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Bus, BusError, connection_monitor::ConnectionMonitor, port::NoAnswer};
use crate::vocabulary::ANSWERS;

/// The time a connected replica may take to answer.
const PATIENCE: Duration = Duration::from_millis(500);
/// Attempts to ask a replica that does not answer: a question or an answer may get lost, and a machine may be busy. A
/// replica silent in all of them is frozen and counts as gone.
const TRIES: usize = 3;

/// The actions this replica works on.
#[derive(Clone)]
pub struct ActionLiveness {
    contact: ConnectionMonitor,
    actions: Arc<Mutex<HashMap<Uuid, CancellationToken>>>,
}

/// An action being worked on; dropping it says that it is no more.
pub struct ActionHold {
    liveness: ActionLiveness,
    action: Uuid,
    stop: CancellationToken,
}

/// A question to a replica about an action.
#[derive(Clone, Copy)]
enum LivenessQuestion {
    /// Asks if the replica works on it.
    Held,
    /// Asks the replica to stop working on it, in a log whose readers know no orders.
    Stop,
}

impl ActionLiveness {
    /// Answers others until `shutdown`.
    pub async fn start_answering(bus: &Bus, shutdown: CancellationToken) -> Result<Self, BusError> {
        let liveness = Self { contact: ConnectionMonitor::new(bus), actions: Arc::default() };
        let mut questions = bus.subscribe(liveness_subject(bus.instance.as_str(), "*")).await?;
        let answering = bus.clone();
        let mine = liveness.clone();
        bus.spawn(async move {
            while let Some(Some(question)) = shutdown.run_until_cancelled(questions.next()).await {
                let stop = question.subject.ends_with(LivenessQuestion::Stop.token());
                if stop && answering.current_epoch().await.is_ok_and(|epoch| epoch >= ANSWERS) {
                    tracing::warn!(
                        "a request to stop an action is passed over: from epoch {ANSWERS} on it is an order in the log"
                    );
                    continue;
                }
                let held = Uuid::from_slice(&question.payload).is_ok_and(|action| mine.answer_locally(action, stop));
                if let Some(reply) = question.reply {
                    let _ = answering.send_live(&reply, if held { "yes" } else { "no" }).await;
                }
            }
        });
        Ok(liveness)
    }

    pub fn hold(&self, action: Uuid) -> ActionHold {
        let stop = CancellationToken::new();
        self.actions.lock().unwrap_or_else(PoisonError::into_inner).insert(action, stop.clone());
        ActionHold { liveness: self.clone(), action, stop }
    }

    /// Returns true if the replica named `instance` works on `action`, or may do so without being able to answer yet.
    pub async fn is_held(&self, bus: &Bus, instance: &str, action: Uuid) -> bool {
        if instance == bus.instance.as_str() {
            return self.answer_locally(action, false);
        }
        if self.contact.is_young() {
            return true;
        }
        for _ in 0..TRIES {
            match self.ask_replica(bus, instance, action, LivenessQuestion::Held).await {
                Ok(held) => return held,
                Err(NoAnswer::Nobody) => return false,
                Err(NoAnswer::Silence) => {}
                // Who is cut off knows nothing of others.
                Err(NoAnswer::Unavailable(_)) => return true,
            }
        }
        false
    }

    /// Stops `action` if this replica works on it; whether it does. How the action ends is still for its result to say.
    pub fn stop_here(&self, action: Uuid) -> bool {
        self.answer_locally(action, true)
    }

    /// Asks the replica named `instance` to stop working on `action`; whether it was told. How the action ends is still for that
    /// replica to say. For logs below epoch 10, whose readers know no orders ([`super::orders`]).
    pub async fn request_stop(&self, bus: &Bus, instance: &str, action: Uuid) -> bool {
        match instance == bus.instance.as_str() {
            true => self.answer_locally(action, true),
            false => self.ask_replica(bus, instance, action, LivenessQuestion::Stop).await.unwrap_or(false),
        }
    }

    async fn ask_replica(
        &self,
        bus: &Bus,
        instance: &str,
        action: Uuid,
        question: LivenessQuestion,
    ) -> Result<bool, NoAnswer> {
        let answer =
            bus.request(liveness_subject(instance, question.token()), action.as_bytes().to_vec(), PATIENCE).await?;
        Ok(answer.as_ref() == b"yes")
    }

    fn answer_locally(&self, action: Uuid, stop: bool) -> bool {
        let actions = self.actions.lock().unwrap_or_else(PoisonError::into_inner);
        let held = actions.get(&action);
        if let Some(token) = held.filter(|_| stop) {
            token.cancel();
        }
        held.is_some()
    }
}

impl ActionHold {
    /// Cancelled when somebody asks for the work to stop.
    pub fn stop_token(&self) -> CancellationToken {
        self.stop.clone()
    }
}

impl LivenessQuestion {
    fn token(self) -> &'static str {
        match self {
            LivenessQuestion::Held => "held",
            LivenessQuestion::Stop => "stop",
        }
    }
}

impl Drop for ActionHold {
    fn drop(&mut self) {
        self.liveness.actions.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.action);
    }
}

/// Replicas of all builds that work together know it by this name.
fn liveness_subject(instance: &str, question: &str) -> String {
    format!("kairo.live.{instance}.holding.{question}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A question under another name would find no responder, and the asker would give up actions still worked on.
    #[test]
    fn replicas_of_other_builds_are_asked_by_the_same_name() {
        let asked = [LivenessQuestion::Held, LivenessQuestion::Stop]
            .map(|question| liveness_subject("tool-runner-1", question.token()));
        assert_eq!(asked, ["kairo.live.tool-runner-1.holding.held", "kairo.live.tool-runner-1.holding.stop"]);
    }
}
