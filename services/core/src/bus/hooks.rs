//! The registrations of tasks that wait for something outside, in a bucket: see [`crate::hooks`].

use std::time::Duration;

use async_nats::jetstream::{
    context::PublishErrorKind, message::PublishMessage, response::Response, stream::LastRawMessageErrorKind,
};
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::{Bus, BusError};
use crate::{hooks::Registration, ids::Name, record::Raw, subjects::HOOKS_BUCKET};

/// How long a registration that may be forgotten is kept, in case that an earlier decision is dealt with after it: longer
/// than any decision is tried again.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
/// Times a registration that somebody else changes, too, is tried before the decision is dealt with again.
const TRIES: usize = 8;

/// A task as its agent and its id.
pub type TaskKey = (Name, Uuid);

/// What the bucket said of one task at one time.
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
            let mut message = PublishMessage::build()
                .payload(serde_json::to_vec(&merged).unwrap_or_default().into())
                .expected_last_subject_sequence(sequence);
            if merged.may_be_forgotten() {
                message = message.ttl(KEPT);
            }
            let sent = async { self.jetstream.send_publish(subject.clone(), message).await?.await };
            match sent.await {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => {}
                Err(error) => return Err(BusError::Unavailable { doing: "registering a hook", source: error.into() }),
            }
        }
        Err(BusError::Conflict { expected: last })
    }

    /// Hands over every change of the bucket behind `after` in order, and returns the sequence of the last one. What had
    /// been written before the call is among them, whichever server answers.
    pub async fn registrations(&self, mut after: u64, mut each: impl FnMut(Change)) -> Result<u64, BusError> {
        let filter = format!("$KV.{HOOKS_BUCKET}.>");
        while let Some(next) = self.next_at_leader(&filter, after).await? {
            let page = self.read_in(&stream(), &filter, after).await?;
            let Some(last) = page.messages.last().filter(|last| last.sequence >= next) else {
                let source = "the server has not seen it all yet".into();
                return Err(BusError::Unavailable { doing: "reading hooks", source });
            };
            after = last.sequence;
            page.messages.iter().filter_map(change).for_each(&mut each);
        }
        Ok(after)
    }

    /// The sequence of the first message behind `after`, as the leader has it.
    async fn next_at_leader(&self, filter: &str, after: u64) -> Result<Option<u64>, BusError> {
        #[derive(Deserialize)]
        struct Found {
            message: Message,
        }
        #[derive(Deserialize)]
        struct Message {
            seq: u64,
        }
        let request = json!({ "seq": after + 1, "next_by_subj": filter });
        let subject = format!("STREAM.MSG.GET.{}", stream());
        let failed = BusError::unavailable("reading hooks");
        match self.jetstream.request::<_, _, Response<Found>>(subject, &request).await {
            Ok(Response::Ok(found)) => Ok(Some(found.message.seq)),
            Ok(Response::Err { error }) if error.code() == 404 => Ok(None),
            Ok(Response::Err { error }) => Err(failed(error.into())),
            Err(error) => Err(failed(error.into())),
        }
    }

    /// The last message on a subject of the bucket: its sequence (0 for none), and what it says.
    async fn registered_at_leader(&self, subject: &str) -> Result<(u64, Option<Registration>), BusError> {
        let failed = BusError::unavailable("reading a hook");
        let stream = match self.jetstream.get_stream_no_info(stream()).await {
            Ok(stream) => stream,
            Err(error) => return Err(failed(error.into())),
        };
        match stream.get_last_raw_message_by_subject(subject).await {
            Ok(message) => Ok((message.sequence, serde_json::from_slice(&message.payload).ok())),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok((0, None)),
            Err(error) => Err(failed(error.into())),
        }
    }
}

/// The stream behind the bucket.
fn stream() -> String {
    format!("KV_{HOOKS_BUCKET}")
}

fn change(message: &Raw) -> Option<Change> {
    let mut tokens = message.subject.rsplit('.');
    let task = tokens.next()?.parse().ok()?;
    let agent = Name::parse(tokens.next()?).ok()?;
    Some(Change { task: (agent, task), registration: serde_json::from_slice(&message.payload).ok() })
}
