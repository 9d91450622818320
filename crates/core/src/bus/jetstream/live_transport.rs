//! Live messages, by core NATS.

use std::{sync::atomic::Ordering, time::Duration};

use async_nats::{Request, RequestErrorKind, connection::State, header::NATS_STREAM};
use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, future::ready};

use super::JetStream;
use crate::bus::{
    port::{Cause, ConnectionStatus, Headers, LiveMessage, LiveSubscription, LiveTransport, NoAnswer},
    violations::ViolationCount,
};

#[async_trait]
impl LiveTransport for JetStream {
    async fn send_live(&self, subject: String, headers: Headers, payload: Bytes) -> Result<(), Cause> {
        // A message with an empty list of headers costs the server more than one without any.
        match headers.is_empty() {
            true => self.client.publish(subject, payload).await?,
            false => self.client.publish_with_headers(subject, headers, payload).await?,
        }
        Ok(())
    }

    async fn subscribe(&self, subject: String, group: Option<&str>) -> Result<LiveSubscription, Cause> {
        let subscriber = match group {
            Some(group) => self.client.queue_subscribe(subject, group.to_owned()).await?,
            None => self.client.subscribe(subject).await?,
        };
        let heard = subscriber.filter_map(|message| ready(to_live_message(message)));
        Ok(heard.boxed())
    }

    async fn request(&self, subject: String, payload: Bytes, patience: Duration) -> Result<Bytes, NoAnswer> {
        let request = Request::new().payload(payload).timeout(Some(patience));
        match self.client.send_request(subject, request).await {
            Ok(answer) => Ok(answer.payload),
            Err(error) => Err(match error.kind() {
                RequestErrorKind::NoResponders => NoAnswer::Nobody,
                RequestErrorKind::TimedOut => NoAnswer::Silence,
                _ => NoAnswer::Unavailable(error.into()),
            }),
        }
    }

    fn connection(&self) -> ConnectionStatus {
        let up = self.client.connection_state() == State::Connected;
        ConnectionStatus { up, number: self.client.statistics().connects.load(Ordering::Relaxed) }
    }

    fn violations(&self) -> ViolationCount {
        self.violations.current_count()
    }

    async fn close(&self) {
        if let Err(error) = self.client.flush().await {
            tracing::warn!(%error, "last words may not have reached nats");
        }
        if let Err(error) = self.client.drain().await {
            tracing::debug!(%error, "nats was closed already");
        }
    }
}

/// Reads a message; `None` if the server copied a stored message here, which nobody sent: see [`kairo_events::copies`].
fn to_live_message(message: async_nats::Message) -> Option<LiveMessage> {
    let headers = message.headers.unwrap_or_default();
    headers.get(NATS_STREAM).is_none().then(|| LiveMessage {
        subject: message.subject.to_string(),
        reply: message.reply.map(|reply| reply.to_string()),
        headers,
        payload: message.payload,
    })
}
