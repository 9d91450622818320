//! Durable consumers of the log, each shared by the replicas of a service.

use std::time::Duration;

use async_nats::jetstream::{AckKind, consumer::pull};
use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;

use super::JetStream;
use crate::{
    bus::port::{Cause, ConsumerPull, PulledMessage, Settlement, StoreError},
    record::RawMessage,
    subjects::Consumer,
};

/// The time a pull stays open at the server, and its heartbeat.
const PULL_EXPIRES: Duration = Duration::from_secs(30);
const PULL_HEARTBEAT: Duration = Duration::from_secs(5);

struct DurablePull {
    messages: pull::Stream,
}

impl JetStream {
    pub(super) async fn open_durable_pull(&self, consumer: Consumer) -> Result<Box<dyn ConsumerPull>, StoreError> {
        let durable = self.find_usable_consumer(consumer).await?;
        let messages = durable
            .stream()
            .max_messages_per_batch(self.limits.pull_batch)
            .expires(PULL_EXPIRES)
            .heartbeat(PULL_HEARTBEAT)
            .messages();
        let messages = messages.await.map_err(|error| StoreError::Unavailable(error.into()))?;
        Ok(Box::new(DurablePull { messages }))
    }

    pub(super) async fn publish_ack(&self, receipt: &str, settlement: Settlement) -> Result<(), Cause> {
        let kind = match settlement {
            Settlement::Done => AckKind::Ack,
            Settlement::Again(delay) => AckKind::Nak(Some(delay).filter(|delay| !delay.is_zero())),
            Settlement::GivenUp => AckKind::Term,
            Settlement::InProgress => AckKind::Progress,
        };
        Ok(self.client.publish(receipt.to_owned(), Bytes::from(kind)).await?)
    }
}

#[async_trait]
impl ConsumerPull for DurablePull {
    async fn next_delivery(&mut self) -> Option<Result<PulledMessage, Cause>> {
        loop {
            let mut message = match self.messages.next().await? {
                Ok(message) => message,
                Err(error) => return Some(Err(error.into())),
            };
            let receipt = message.reply.as_ref().map(|reply| reply.to_string()).unwrap_or_default();
            match RawMessage::from_delivery(&mut message) {
                Ok((raw, info)) => {
                    let attempt = u64::try_from(info.delivered).unwrap_or(1);
                    return Some(Ok(PulledMessage { raw, attempt, receipt }));
                }
                Err(error) => tracing::error!(subject = %message.subject, %error, "not a delivery of jetstream"),
            }
        }
    }
}
