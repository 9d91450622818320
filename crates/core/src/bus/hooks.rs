//! The registrations of tasks that wait for something outside, in a bucket: see [`crate::hooks`].

use std::time::Duration;

use uuid::Uuid;

use super::{
    Bus, BusError,
    port::{Headers, OutgoingMessage, ReadSource, StoreError},
};
use crate::{
    hooks::HookRegistration,
    ids::Name,
    record::RawMessage,
    subjects::{HOOKS_BUCKET, HOOKS_STREAM},
};

/// The time a registration that may be forgotten is kept, in case an earlier decision is handled after it: longer than
/// any decision is retried.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
/// Times a registration that somebody else changes, too, is tried before the decision is dealt with again.
const TRIES: usize = 8;

/// A task as its agent and its id.
pub type TaskKey = (Name, Uuid);

/// The state of one task in the bucket at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookChange {
    pub task: TaskKey,
    /// None when it was forgotten or cannot be read.
    pub registration: Option<HookRegistration>,
}

impl Bus {
    /// Adds to what is known of a task.
    pub async fn register_hook(&self, agent: &Name, task: Uuid, said: &HookRegistration) -> Result<(), BusError> {
        let subject = format!("$KV.{HOOKS_BUCKET}.{agent}.{task}");
        let mut last = 0;
        for _ in 0..TRIES {
            let (sequence, known) = self.hook_at_leader(&subject).await?;
            last = sequence;
            let merged = match known.clone() {
                Some(known) => known.merge(said.clone()),
                None => said.clone(),
            };
            if known.as_ref() == Some(&merged) {
                return Ok(());
            }
            let payload = serde_json::to_vec(&merged).unwrap_or_default();
            let mut message = OutgoingMessage::new(subject.clone(), Headers::new(), payload).with_guard(sequence);
            if merged.can_be_dropped() {
                message = message.with_lifetime(KEPT);
            }
            match self.store_message(message).await {
                Ok(_) => return Ok(()),
                Err(StoreError::WrongLastSequence) => {}
                Err(error) => return Err(BusError::unavailable("registering a hook")(error)),
            }
        }
        Err(BusError::Conflict { expected: last })
    }

    /// Hands over every change of the bucket behind `after` in order, and returns the sequence of the last one. What had
    /// been written before the call is among them, whichever server answers.
    pub async fn read_hook_changes(&self, mut after: u64, mut each: impl FnMut(HookChange)) -> Result<u64, BusError> {
        let filter = format!("$KV.{HOOKS_BUCKET}.>");
        let failed = |error: StoreError| BusError::unavailable("reading hooks")(error);
        while let Some(next) = self.port.next_at_leader(HOOKS_STREAM, &filter, after).await.map_err(failed)? {
            let page = self.read_page_in(HOOKS_STREAM, &filter, after).await?;
            let Some(last) = page.messages.last().filter(|last| last.sequence >= next.sequence) else {
                let source = "the server has not seen it all yet".into();
                return Err(BusError::Unavailable { doing: "reading hooks", source });
            };
            after = last.sequence;
            page.messages.iter().filter_map(HookChange::from_message).for_each(&mut each);
        }
        Ok(after)
    }

    /// The last message on a subject of the bucket: its sequence (0 for none), and what it says.
    async fn hook_at_leader(&self, subject: &str) -> Result<(u64, Option<HookRegistration>), BusError> {
        let last = self.port.last_message(HOOKS_STREAM, subject, ReadSource::Leader).await;
        let last = last.map_err(BusError::unavailable("reading a hook"))?;
        Ok(last.map_or((0, None), |last| (last.sequence, serde_json::from_slice(&last.payload).ok())))
    }
}

impl HookChange {
    /// Reads a message of the bucket.
    pub fn from_message(message: &RawMessage) -> Option<Self> {
        let mut tokens = message.subject.rsplit('.');
        let task = tokens.next()?.parse().ok()?;
        let agent = Name::parse(tokens.next()?).ok()?;
        Some(Self { task: (agent, task), registration: serde_json::from_slice(&message.payload).ok() })
    }
}
