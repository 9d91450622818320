//! Looking things up in the log by direct gets, without a consumer.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_nats::{
    Client, Message, Subscriber,
    jetstream::{
        message::StreamMessage,
        stream::{DirectGetErrorKind, LastRawMessageErrorKind},
    },
};
use bytes::Bytes;
use futures::StreamExt;
use jiff::Timestamp;
use serde::Serialize;

use super::{Bus, BusError};
use crate::{
    record::{Raw, Record, server_time},
    subjects::EVENTS_STREAM,
};

/// A stretch of the log.
#[derive(Debug, Default)]
pub struct Page {
    pub messages: Vec<Raw>,
    /// Whether there is more behind the last message.
    pub more: bool,
}

/// Inboxes that answers to batch gets come to. Making one is more work for the server and the client than the read
/// itself, so they are kept and used again, each by one read at a time.
#[derive(Clone, Debug, Default)]
pub(super) struct Inboxes(Arc<Mutex<Vec<Inbox>>>);

#[derive(Debug)]
struct Inbox {
    subject: String,
    answers: Subscriber,
}

/// Most inboxes that are kept while nobody reads.
const SPARE_INBOXES: usize = 64;

impl Inboxes {
    async fn take(&self, client: &Client) -> Result<Inbox, async_nats::Error> {
        let spare = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(inbox) = spare {
            return Ok(inbox);
        }
        let subject = client.new_inbox();
        Ok(Inbox { answers: client.subscribe(subject.clone()).await?, subject })
    }

    /// Only after the last answer: a late one would be taken for an answer to the next read.
    fn keep(&self, inbox: Inbox) {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < SPARE_INBOXES {
            spare.push(inbox);
        }
    }
}

/// Most messages in one [`Page`].
pub const PAGE: usize = 256;

/// Statuses of direct gets.
const END_OF_BATCH: u16 = 204;
const NOTHING_THERE: u16 = 404;

impl Bus {
    /// The messages of `filter` (wildcards allowed) with a sequence above `after`, at most [`PAGE`], in one round trip.
    ///
    /// With several servers a follower may answer that has not seen the newest messages yet. Whoever knows of a
    /// message that should be there must look for it and ask again.
    pub async fn read(&self, filter: &str, after: u64) -> Result<Page, BusError> {
        self.read_in(EVENTS_STREAM, filter, after).await
    }

    /// Like [`Bus::read`], in any stream.
    pub(super) async fn read_in(&self, stream: &str, filter: &str, after: u64) -> Result<Page, BusError> {
        #[derive(Serialize)]
        struct BatchGet<'a> {
            batch: usize,
            seq: u64,
            next_by_subj: &'a str,
        }
        let request = BatchGet { batch: PAGE, seq: after + 1, next_by_subj: filter };
        let request = serde_json::to_vec(&request).unwrap_or_default();
        let failed = BusError::unavailable("reading the log");
        match self.batch_get(stream, request).await {
            Ok(page) => Ok(page),
            Err(error) => Err(failed(error)),
        }
    }

    async fn batch_get(&self, stream: &str, request: Vec<u8>) -> Result<Page, async_nats::Error> {
        let mut inbox = self.inboxes.take(&self.client).await?;
        let subject = format!("$JS.API.DIRECT.GET.{stream}");
        self.client.publish_with_reply(subject, inbox.subject.clone(), Bytes::from(request)).await?;
        let page = self.collect(&mut inbox.answers).await?;
        self.inboxes.keep(inbox);
        Ok(page)
    }

    async fn collect(&self, answers: &mut Subscriber) -> Result<Page, async_nats::Error> {
        let timeout = self.client.timeout().unwrap_or(Duration::from_secs(2));
        let mut page = Page::default();
        loop {
            let answer = tokio::time::timeout(timeout, answers.next()).await?;
            let answer = answer.ok_or("connection closed")?;
            match answer.status.map(|status| status.as_u16()) {
                None => page.messages.push(raw(answer).ok_or("an answer without sequence or subject")?),
                // End of the batch; what is pending lies behind it.
                Some(END_OF_BATCH) => {
                    page.more = number(&answer, "Nats-Num-Pending").unwrap_or(0) > 0;
                    return Ok(page);
                }
                Some(NOTHING_THERE) => return Ok(page),
                Some(status) => return Err(format!("direct get answered {status}").into()),
            }
        }
    }

    /// All messages of `filter` above `after`, handed over in order.
    pub async fn read_all(&self, filter: &str, mut after: u64, mut each: impl FnMut(Raw)) -> Result<(), BusError> {
        loop {
            let page = self.read(filter, after).await?;
            let Some(last) = page.messages.last() else { return Ok(()) };
            after = last.sequence;
            page.messages.into_iter().for_each(&mut each);
            if !page.more {
                return Ok(());
            }
        }
    }

    /// The last message of a subject.
    pub async fn last(&self, subject: &str) -> Result<Option<Raw>, BusError> {
        let stream = self.jetstream.get_stream_no_info(EVENTS_STREAM).await;
        let stream =
            stream.map_err(|error| BusError::Unavailable { doing: "reading the log", source: error.into() })?;
        match stream.direct_get_last_for_subject(subject).await {
            Ok(message) => Ok(Some(stored(message))),
            Err(error) if error.kind() == DirectGetErrorKind::NotFound => Ok(None),
            Err(error) => Err(BusError::Unavailable { doing: "reading the log", source: error.into() }),
        }
    }

    /// The record at `sequence`, which somebody has seen there. A server that is behind the others does not have it yet:
    /// asking again will do.
    pub async fn at(&self, sequence: u64) -> Result<Record, BusError> {
        let read = async {
            let stream = self.jetstream.get_stream_no_info(EVENTS_STREAM).await?;
            let raw = stored(stream.direct_get(sequence).await?);
            Ok::<_, async_nats::Error>(raw.read(self.limits.max_body_bytes)?)
        };
        read.await.map_err(|source| BusError::Unavailable { doing: "reading the log", source })
    }

    /// The sequence of the last message on a subject as the stream's leader has it, 0 for none. A direct get may be
    /// answered by a server that lags behind; this one is not, and costs the leader's attention.
    pub async fn last_at_leader(&self, subject: &str) -> Result<u64, BusError> {
        let stream = self.jetstream.get_stream_no_info(EVENTS_STREAM).await;
        let stream =
            stream.map_err(|error| BusError::Unavailable { doing: "reading the log", source: error.into() })?;
        match stream.get_last_raw_message_by_subject(subject).await {
            Ok(message) => Ok(message.sequence),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(0),
            Err(error) => Err(BusError::Unavailable { doing: "reading the log", source: error.into() }),
        }
    }
}

fn stored(message: StreamMessage) -> Raw {
    Raw {
        sequence: message.sequence,
        subject: message.subject.to_string(),
        headers: message.headers,
        payload: message.payload,
        stored: server_time(message.time.unix_timestamp_nanos()),
    }
}

fn raw(answer: Message) -> Option<Raw> {
    let stored = header(&answer, "Nats-Time-Stamp").and_then(|time| time.parse().ok());
    Some(Raw {
        sequence: number(&answer, "Nats-Sequence")?,
        subject: header(&answer, "Nats-Subject")?.to_owned(),
        stored: stored.unwrap_or(Timestamp::UNIX_EPOCH),
        headers: answer.headers.unwrap_or_default(),
        payload: answer.payload,
    })
}

fn header<'m>(message: &'m Message, name: &str) -> Option<&'m str> {
    message.headers.as_ref()?.get(name).map(|value| value.as_str())
}

fn number(message: &Message, name: &str) -> Option<u64> {
    header(message, name)?.parse().ok()
}
