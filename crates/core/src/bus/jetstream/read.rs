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
        Cause, ConsumerPull, MessagePage, OutgoingMessage, ReadSource, Settlement, StoreAck, StoreError, StreamState,
        StreamStore, StreamTail, TailStart,
    },
    partition,
    record::{RawMessage, mark_copy, server_time},
    subjects::Consumer,
};

#[async_trait]
impl StreamStore for JetStream {
    async fn publish(&self, message: OutgoingMessage) -> Result<StoreAck, StoreError> {
        self.publish_message(message).await
    }

    async fn last_message(
        &self,
        stream: &str,
        subject: &str,
        asked: ReadSource,
    ) -> Result<Option<RawMessage>, StoreError> {
        let stream = self.stream_handle(stream).await?;
        match asked {
            ReadSource::Any => direct_get_result(stream.direct_get_last_for_subject(subject).await),
            ReadSource::Leader => leader_get_result(stream.get_last_raw_message_by_subject(subject).await),
        }
    }

    async fn message_at(
        &self,
        stream: &str,
        sequence: u64,
        asked: ReadSource,
    ) -> Result<Option<RawMessage>, StoreError> {
        let stream = self.stream_handle(stream).await?;
        match asked {
            ReadSource::Any => direct_get_result(stream.direct_get(sequence).await),
            ReadSource::Leader => leader_get_result(stream.get_raw_message(sequence).await),
        }
    }

    async fn next_at_leader(&self, stream: &str, filter: &str, after: u64) -> Result<Option<RawMessage>, StoreError> {
        let stream = self.stream_handle(stream).await?;
        leader_get_result(stream.get_first_raw_message_by_subject(filter, after + 1).await)
    }

    async fn read_page(&self, stream: &str, filter: &str, after: u64, most: usize) -> Result<MessagePage, StoreError> {
        self.batch_get(stream, &BatchGet::Page { batch: most, seq: after + 1, next_by_subj: filter }).await
    }

    async fn last_of_each(&self, stream: &str, filters: &[String]) -> Result<Vec<RawMessage>, StoreError> {
        let asked = BatchGet::LastOfEach { multi_last: filters };
        Ok(self.batch_get(stream, &asked).await?.messages)
    }

    async fn delete_message(&self, stream: &str, sequence: u64) -> Result<bool, StoreError> {
        // Its bytes need not be written over, which takes the server a while.
        self.request_deletion(stream, sequence, true).await
    }

    async fn erase_message(&self, stream: &str, sequence: u64) -> Result<bool, StoreError> {
        self.request_deletion(stream, sequence, false).await
    }

    async fn stream_state(&self, stream: &str) -> Result<StreamState, StoreError> {
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

    async fn tail_stream(
        &self,
        stream: &str,
        filters: &[String],
        start: TailStart,
    ) -> Result<Box<dyn StreamTail>, StoreError> {
        self.open_tail(stream, filters, start).await
    }

    async fn open_pull(&self, consumer: Consumer) -> Result<Box<dyn ConsumerPull>, StoreError> {
        self.open_durable_pull(consumer).await
    }

    async fn settle(&self, receipt: &str, settlement: Settlement) -> Result<(), Cause> {
        self.publish_ack(receipt, settlement).await
    }

    async fn restore_bucket(&self, bucket: &str) -> Result<(), StoreError> {
        self.ensure_memory_bucket(bucket).await
    }
}

impl JetStream {
    async fn request_deletion(&self, stream: &str, sequence: u64, no_erase: bool) -> Result<bool, StoreError> {
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
    pub(super) async fn stream_handle(&self, name: &str) -> Result<Stream<()>, StoreError> {
        self.jetstream.get_stream_no_info(name).await.map_err(|error| StoreError::Unavailable(error.into()))
    }
}

fn direct_get_result(read: Result<StreamMessage, DirectGetError>) -> Result<Option<RawMessage>, StoreError> {
    let error = match read {
        Ok(message) => return Ok(Some(stored_to_raw(message, NOTED_BY_READING))),
        Err(error) => error,
    };
    match error.kind() {
        DirectGetErrorKind::NotFound => Ok(None),
        DirectGetErrorKind::ErrorResponse(StatusCode::NO_RESPONDERS, _) => Err(StoreError::NoStream),
        _ => Err(StoreError::Unavailable(error.into())),
    }
}

fn leader_get_result(read: Result<StreamMessage, RawMessageError>) -> Result<Option<RawMessage>, StoreError> {
    let error = match read {
        Ok(message) => return Ok(Some(stored_to_raw(message, 0))),
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

fn stored_to_raw(message: StreamMessage, notes: usize) -> RawMessage {
    let (subject, partition) = partition::split_subject(&message.subject);
    RawMessage {
        sequence: message.sequence,
        subject: subject.to_owned(),
        partition,
        headers: mark_copy(message.headers, notes),
        payload: message.payload,
        sealed: None,
        stored: server_time(message.time.unix_timestamp_nanos()),
    }
}
