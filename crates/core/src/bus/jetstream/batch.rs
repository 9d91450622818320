//! Reading many messages in one round trip.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_nats::{Client, Message, StatusCode, Subscriber};
use bytes::Bytes;
use futures::StreamExt;
use jiff::Timestamp;
use serde::Serialize;

use super::JetStream;
use crate::{
    bus::port::{Cause, MessagePage, StoreError},
    partition,
    record::{RawMessage, mark_copy},
};

/// Inboxes that answers to batch gets come to. Making one is more work for the server and the client than the read
/// itself, so they are kept and used again, each by one read at a time.
#[derive(Clone, Debug, Default)]
pub(super) struct InboxPool(Arc<Mutex<Vec<BatchInbox>>>);

#[derive(Debug)]
struct BatchInbox {
    subject: String,
    answers: Subscriber,
}

/// Most inboxes that are kept while nobody reads.
const SPARE_INBOXES: usize = 64;
/// Statuses of direct gets.
const END_OF_BATCH: u16 = 204;
const NOTHING_THERE: u16 = 404;
/// The number of stream headers the server itself adds to the answer of a direct read.
pub(super) const NOTED_BY_READING: usize = 1;

impl InboxPool {
    async fn acquire(&self, client: &Client) -> Result<BatchInbox, Cause> {
        let spare = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(inbox) = spare {
            return Ok(inbox);
        }
        let subject = client.new_inbox();
        Ok(BatchInbox { answers: client.subscribe(subject.clone()).await?, subject })
    }

    /// Only after the last answer: a late one would be taken for an answer to the next read.
    fn release(&self, inbox: BatchInbox) {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < SPARE_INBOXES {
            spare.push(inbox);
        }
    }
}

/// The request of a batch get.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum BatchGet<'a> {
    Page { batch: usize, seq: u64, next_by_subj: &'a str },
    LastOfEach { multi_last: &'a [String] },
}

impl JetStream {
    pub(super) async fn batch_get(&self, stream: &str, asked: &BatchGet<'_>) -> Result<MessagePage, StoreError> {
        let request = serde_json::to_vec(asked).map_err(|error| StoreError::Unavailable(error.into()))?;
        let mut inbox = self.inboxes.acquire(&self.client).await.map_err(StoreError::Unavailable)?;
        let subject = format!("$JS.API.DIRECT.GET.{stream}");
        let asked = self.client.publish_with_reply(subject, inbox.subject.clone(), Bytes::from(request)).await;
        asked.map_err(|error| StoreError::Unavailable(error.into()))?;
        let page = self.collect_page(&mut inbox.answers).await?;
        self.inboxes.release(inbox);
        Ok(page)
    }

    async fn collect_page(&self, answers: &mut Subscriber) -> Result<MessagePage, StoreError> {
        let timeout = self.client.timeout().unwrap_or(Duration::from_secs(2));
        let failed = |cause: Cause| StoreError::Unavailable(cause);
        let mut page = MessagePage::default();
        loop {
            let answer = tokio::time::timeout(timeout, answers.next()).await.map_err(|error| failed(error.into()))?;
            let answer = answer.ok_or_else(|| failed("connection closed".into()))?;
            match answer.status {
                None => {
                    let raw =
                        answer_to_raw(answer).ok_or_else(|| failed("an answer without sequence or subject".into()))?;
                    page.messages.push(raw);
                }
                Some(StatusCode::NO_RESPONDERS) => return Err(StoreError::NoStream),
                // End of the batch; what is pending lies behind it.
                Some(status) if status.as_u16() == END_OF_BATCH => {
                    page.more = header_number(&answer, "Nats-Num-Pending").unwrap_or(0) > 0;
                    return Ok(page);
                }
                Some(status) if status.as_u16() == NOTHING_THERE => return Ok(page),
                Some(status) => return Err(failed(format!("direct get answered {status}").into())),
            }
        }
    }
}

fn answer_to_raw(answer: Message) -> Option<RawMessage> {
    // Of a stored copy the server notes twice where it stands, the second time as it reads.
    let stored = header_value(&answer, "Nats-Time-Stamp").and_then(|time| time.parse().ok());
    let (subject, partition) = partition::split_subject(header_value(&answer, "Nats-Subject")?);
    Some(RawMessage {
        sequence: header_number(&answer, "Nats-Sequence")?,
        subject: subject.to_owned(),
        partition,
        stored: stored.unwrap_or(Timestamp::UNIX_EPOCH),
        headers: mark_copy(answer.headers.unwrap_or_default(), NOTED_BY_READING),
        payload: answer.payload,
        sealed: None,
    })
}

fn header_value<'m>(message: &'m Message, name: &str) -> Option<&'m str> {
    message.headers.as_ref()?.get_last(name).map(|value| value.as_str())
}

fn header_number(message: &Message, name: &str) -> Option<u64> {
    header_value(message, name)?.parse().ok()
}
