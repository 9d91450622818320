//! The registrations of tasks that wait for something outside, in a bucket: see [`crate::hooks`].

use std::time::Duration;

use uuid::Uuid;

use super::{
    Bus, BusError,
    port::{Asked, Headers, Message, StoreError},
};
use crate::{
    hooks::Registration,
    ids::Name,
    record::Raw,
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
pub struct Change {
    pub task: TaskKey,
    /// None when it was forgotten or cannot be read.
    pub registration: Option<Registration>,
}

impl Bus {
    /// Adds to what is known of a task.
    pub async fn register(&self, agent: &Name, task: Uuid, said: &Registration) -> Result<(), BusError> {
        let subject = format!("$KV.{HOOKS_BUCKET}.{agent}.{task}");
        let mut last = 0;
        for _ in 0..TRIES {
            let (sequence, known) = self.registered_at_leader(&subject).await?;
            last = sequence;
            let merged = match known.clone() {
                Some(known) => known.and(said.clone()),
                None => said.clone(),
            };
            if known.as_ref() == Some(&merged) {
                return Ok(());
            }
            let payload = serde_json::to_vec(&merged).unwrap_or_default();
            let mut message = Message::new(subject.clone(), Headers::new(), payload).guarded(sequence);
            if merged.may_be_forgotten() {
                message = message.kept_for(KEPT);
            }
            match self.store(message).await {
                Ok(_) => return Ok(()),
                Err(StoreError::WrongLastSequence) => {}
                Err(error) => return Err(BusError::unavailable("registering a hook")(error)),
            }
        }
        Err(BusError::Conflict { expected: last })
    }

    /// Hands over every change of the bucket behind `after` in order, and returns the sequence of the last one. What had
    /// been written before the call is among them, whichever server answers.
    pub async fn registrations(&self, mut after: u64, mut each: impl FnMut(Change)) -> Result<u64, BusError> {
        let filter = format!("$KV.{HOOKS_BUCKET}.>");
        let failed = |error: StoreError| BusError::unavailable("reading hooks")(error);
        while let Some(next) = self.port.next_at_leader(HOOKS_STREAM, &filter, after).await.map_err(failed)? {
            let page = self.read_in(HOOKS_STREAM, &filter, after).await?;
            let Some(last) = page.messages.last().filter(|last| last.sequence >= next.sequence) else {
                let source = "the server has not seen it all yet".into();
                return Err(BusError::Unavailable { doing: "reading hooks", source });
            };
            after = last.sequence;
            page.messages.iter().filter_map(Change::read).for_each(&mut each);
        }
        Ok(after)
    }

    /// The last message on a subject of the bucket: its sequence (0 for none), and what it says.
    async fn registered_at_leader(&self, subject: &str) -> Result<(u64, Option<Registration>), BusError> {
        let last = self.port.last(HOOKS_STREAM, subject, Asked::Leader).await;
        let last = last.map_err(BusError::unavailable("reading a hook"))?;
        Ok(last.map_or((0, None), |last| (last.sequence, serde_json::from_slice(&last.payload).ok())))
    }
}

impl Change {
    /// Reads a message of the bucket.
    pub fn read(message: &Raw) -> Option<Self> {
        let mut tokens = message.subject.rsplit('.');
        let task = tokens.next()?.parse().ok()?;
        let agent = Name::parse(tokens.next()?).ok()?;
        Some(Self { task: (agent, task), registration: serde_json::from_slice(&message.payload).ok() })
    }
}
