//! Asking a replica whether it still works on an action, before it is given up for lost.
//!
//! A redelivery usually means that a replica died. It can also mean that the server was away for a while and missed
//! the signs of life. A replica that is gone has no connection, so the question is answered at once.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::StreamExt;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Bus, BusError, contact::Contact};

/// How long a replica that is connected may take to answer; one that takes longer is frozen and counts as gone.
const PATIENCE: Duration = Duration::from_millis(500);

/// The actions this replica works on.
#[derive(Clone)]
pub struct Holding {
    contact: Contact,
    actions: Arc<Mutex<HashSet<Uuid>>>,
}

/// An action being worked on; dropping it says that it is no more.
pub struct Held {
    holding: Holding,
    action: Uuid,
}

impl Holding {
    /// Answers others until `shutdown`.
    pub async fn answering(bus: &Bus, shutdown: CancellationToken) -> Result<Self, BusError> {
        let holding = Self { contact: Contact::new(bus), actions: Arc::default() };
        let questions = bus.client.subscribe(subject(bus.instance.as_str())).await;
        let mut questions =
            questions.map_err(|error| BusError::Unavailable { doing: "subscribing", source: error.into() })?;
        let (client, mine) = (bus.client.clone(), holding.clone());
        tokio::spawn(async move {
            loop {
                let question = tokio::select! {
                    () = shutdown.cancelled() => return,
                    question = questions.next() => question,
                };
                let Some(question) = question else { return };
                let held = Uuid::from_slice(&question.payload).is_ok_and(|action| mine.has(action));
                if let Some(reply) = question.reply {
                    let _ = client.publish(reply, if held { "yes" } else { "no" }.into()).await;
                }
            }
        });
        Ok(holding)
    }

    pub fn hold(&self, action: Uuid) -> Held {
        self.actions.lock().unwrap_or_else(PoisonError::into_inner).insert(action);
        Held { holding: self.clone(), action }
    }

    /// Whether the replica named `instance` works on `action`, or may do so without being able to answer yet.
    pub async fn is_held(&self, bus: &Bus, instance: &str, action: Uuid) -> bool {
        if instance == bus.instance.as_str() {
            return self.has(action);
        }
        if self.contact.is_young() {
            return true;
        }
        let question = bus.client.request(subject(instance), action.as_bytes().to_vec().into());
        match tokio::time::timeout(PATIENCE, question).await {
            Ok(Ok(answer)) => answer.payload.as_ref() == b"yes",
            Ok(Err(_)) | Err(_) => false,
        }
    }

    fn has(&self, action: Uuid) -> bool {
        self.actions.lock().unwrap_or_else(PoisonError::into_inner).contains(&action)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.holding.actions.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.action);
    }
}

fn subject(instance: &str) -> String {
    format!("kairo.live.{instance}.holding")
}
