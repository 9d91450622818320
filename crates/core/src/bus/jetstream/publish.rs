//! Storing a message, and why that fails.

use std::{error::Error as _, time::Duration};

use async_nats::jetstream::{
    self, ErrorCode,
    context::{PublishError, PublishErrorKind},
    message::PublishMessage,
};

use super::JetStream;
use crate::bus::port::{OutgoingMessage, StoreAck, StoreError};

impl JetStream {
    pub(super) async fn publish_message(&self, message: OutgoingMessage) -> Result<StoreAck, StoreError> {
        let OutgoingMessage { subject, headers, payload, guard, id, lifetime } = message;
        let mut outgoing = PublishMessage::build().headers(headers).payload(payload);
        if let Some(last) = guard {
            outgoing = outgoing.expected_last_subject_sequence(last);
        }
        if let Some(id) = id {
            outgoing = outgoing.message_id(id);
        }
        if let Some(lifetime) = lifetime {
            outgoing = outgoing.ttl(lifetime.max(Duration::from_secs(1)));
        }
        let stored = async { self.jetstream.send_publish(subject, outgoing).await?.await };
        let stored = stored.await.map_err(to_store_error);
        self.note_quorum_request(!matches!(stored, Err(StoreError::NoStream | StoreError::Unavailable(_)))).await;
        let ack = stored?;
        Ok(StoreAck { sequence: ack.sequence, duplicate: ack.duplicate })
    }
}

fn to_store_error(error: PublishError) -> StoreError {
    match error.kind() {
        PublishErrorKind::WrongLastSequence => StoreError::WrongLastSequence,
        PublishErrorKind::MaxPayloadExceeded => StoreError::TooLarge,
        PublishErrorKind::StreamNotFound => StoreError::NoStream,
        _ => match error.source().and_then(|source| source.downcast_ref::<jetstream::Error>()).map(store_error_by_code)
        {
            Some(Some(known)) => known,
            _ => StoreError::Unavailable(error.into()),
        },
    }
}

/// Maps the server's error code to a [`StoreError`], if the code makes a difference.
fn store_error_by_code(error: &jetstream::Error) -> Option<StoreError> {
    match error.error_code() {
        ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT | ErrorCode::STREAM_DUPLICATE_MESSAGE_CONFLICT => {
            Some(StoreError::InProcess)
        }
        ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM => Some(StoreError::TooLarge),
        ErrorCode::INSUFFICIENT_RESOURCES
        | ErrorCode::STORAGE_RESOURCES_EXCEEDED
        | ErrorCode::MEMORY_RESOURCES_EXCEEDED => Some(StoreError::Full(error.to_string())),
        // Also said of a store that fails in other ways.
        ErrorCode::STREAM_STORE_FAILED if error.to_string().contains("maximum") => {
            Some(StoreError::Full(error.to_string()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classify_error(code: u64, description: &str) -> Option<StoreError> {
        let error = serde_json::json!({ "code": 503, "err_code": code, "description": description });
        store_error_by_code(&serde_json::from_value(error).unwrap())
    }

    #[test]
    fn what_makes_a_difference_is_known_by_its_code() {
        assert!(matches!(classify_error(10_164, "wrong last sequence"), Some(StoreError::InProcess)));
        assert!(matches!(classify_error(10_158, "duplicate message id is in process"), Some(StoreError::InProcess)));
        assert!(matches!(classify_error(10_054, "message size exceeds maximum allowed"), Some(StoreError::TooLarge)));
        assert!(matches!(classify_error(10_077, "maximum messages exceeded"), Some(StoreError::Full(_))));
        assert!(classify_error(10_077, "store is closed").is_none());
    }
}
