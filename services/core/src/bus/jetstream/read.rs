//! Reads stored messages one by one, and the state of streams.

use async_nats::{
    StatusCode,
    jetstream::{
        ErrorCode,
        message::StreamMessage,
        response::Response,
        stream::{DirectGetError, DirectGetErrorKind, Info, RawMessageError, RawMessageErrorKind, Stream},
    },
};
use async_trait::async_trait;
use serde_json::{Value, json};

use super::{
    JetStream,
    batch::{BatchGet, NOTED_BY_READING},
};
use crate::{
    bus::port::{
        Asked, Cause, Message, Page, Pull, Settlement, Start, StoreError, StreamState, Streams, Tail, Written,
    },
    partition,
    record::{Raw, mark_copy, server_time},
    subjects::Consumer,
};

#[async_trait]
impl Streams for JetStream {
    async fn publish(&self, message: Message) -> Result<Written, StoreError> {
        self.store(message).await
    }

    async fn last(&self, stream: &str, subject: &str, asked: Asked) -> Result<Option<Raw>, StoreError> {
        let stream = self.stream(stream).await?;
        match asked {
            Asked::Any => directly(stream.direct_get_last_for_subject(subject).await),
            Asked::Leader => at_leader(stream.get_last_raw_message_by_subject(subject).await),
        }
    }

    async fn at(&self, stream: &str, sequence: u64, asked: Asked) -> Result<Option<Raw>, StoreError> {
        let stream = self.stream(stream).await?;
        match asked {
            Asked::Any => directly(stream.direct_get(sequence).await),
            Asked::Leader => at_leader(stream.get_raw_message(sequence).await),
        }
    }

    async fn next_at_leader(&self, stream: &str, filter: &str, after: u64) -> Result<Option<Raw>, StoreError> {
        let stream = self.stream(stream).await?;
        at_leader(stream.get_first_raw_message_by_subject(filter, after + 1).await)
    }

    async fn page(&self, stream: &str, filter: &str, after: u64, most: usize) -> Result<Page, StoreError> {
        self.batch_get(stream, &BatchGet::Page { batch: most, seq: after + 1, next_by_subj: filter }).await
    }

    async fn last_of_each(&self, stream: &str, filters: &[String]) -> Result<Vec<Raw>, StoreError> {
        let asked = BatchGet::LastOfEach { multi_last: filters };
        Ok(self.batch_get(stream, &asked).await?.messages)
    }

    async fn delete(&self, stream: &str, sequence: u64) -> Result<bool, StoreError> {
        // Its bytes need not be written over, which takes the server a while.
        self.remove(stream, sequence, true).await
    }

    async fn erase(&self, stream: &str, sequence: u64) -> Result<bool, StoreError> {
        self.remove(stream, sequence, false).await
    }

    async fn state(&self, stream: &str) -> Result<StreamState, StoreError> {
        let info = match self.jetstream.request(format!("STREAM.INFO.{stream}"), &json!({})).await {
            Ok(Response::Ok::<Info>(info)) => info,
            Ok(Response::Err { error }) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                return Err(StoreError::NoStream);
            }
            Ok(Response::Err { error }) => return Err(StoreError::Unavailable(error.into())),
            Err(error) => return Err(StoreError::Unavailable(error.into())),
        };
        Ok(StreamState {
            created: server_time(info.created.unix_timestamp_nanos()),
            metadata: info.config.metadata.into_iter().collect(),
            first_sequence: info.state.first_sequence,
            last_sequence: info.state.last_sequence,
        })
    }

    async fn tail(&self, stream: &str, filters: &[String], start: Start) -> Result<Box<dyn Tail>, StoreError> {
        self.open_tail(stream, filters, start).await
    }

    async fn pull(&self, consumer: Consumer) -> Result<Box<dyn Pull>, StoreError> {
        self.join(consumer).await
    }

    async fn settle(&self, receipt: &str, settlement: Settlement) -> Result<(), Cause> {
        self.acknowledge(receipt, settlement).await
    }

    async fn restore(&self, bucket: &str) -> Result<(), StoreError> {
        self.restore_bucket(bucket).await
    }
}

impl JetStream {
    async fn remove(&self, stream: &str, sequence: u64, no_erase: bool) -> Result<bool, StoreError> {
        let subject = format!("STREAM.MSG.DELETE.{stream}");
        let request = json!({ "seq": sequence, "no_erase": no_erase });
        match self.jetstream.request::<_, _, Response<Value>>(subject, &request).await {
            Ok(Response::Ok(_)) => Ok(true),
            Ok(Response::Err { error }) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                Err(StoreError::NoStream)
            }
            Ok(Response::Err { error }) => {
                tracing::debug!(%error, stream, sequence, "not deleted");
                Ok(false)
            }
            Err(error) => Err(StoreError::Unavailable(error.into())),
        }
    }

    /// Asks nothing of the server.
    pub(super) async fn stream(&self, name: &str) -> Result<Stream<()>, StoreError> {
        self.jetstream.get_stream_no_info(name).await.map_err(|error| StoreError::Unavailable(error.into()))
    }
}

fn directly(read: Result<StreamMessage, DirectGetError>) -> Result<Option<Raw>, StoreError> {
    let error = match read {
        Ok(message) => return Ok(Some(stored(message, NOTED_BY_READING))),
        Err(error) => error,
    };
    match error.kind() {
        DirectGetErrorKind::NotFound => Ok(None),
        DirectGetErrorKind::ErrorResponse(StatusCode::NO_RESPONDERS, _) => Err(StoreError::NoStream),
        _ => Err(StoreError::Unavailable(error.into())),
    }
}

fn at_leader(read: Result<StreamMessage, RawMessageError>) -> Result<Option<Raw>, StoreError> {
    let error = match read {
        Ok(message) => return Ok(Some(stored(message, 0))),
        Err(error) => error,
    };
    match error.kind() {
        RawMessageErrorKind::NoMessageFound => Ok(None),
        RawMessageErrorKind::JetStream(told) if told.error_code() == ErrorCode::STREAM_NOT_FOUND => {
            Err(StoreError::NoStream)
        }
        _ => Err(StoreError::Unavailable(error.into())),
    }
}

fn stored(message: StreamMessage, notes: usize) -> Raw {
    let (subject, partition) = partition::split(&message.subject);
    Raw {
        sequence: message.sequence,
        subject: subject.to_owned(),
        partition,
        headers: mark_copy(message.headers, notes),
        payload: message.payload,
        sealed: None,
        stored: server_time(message.time.unix_timestamp_nanos()),
    }
}
