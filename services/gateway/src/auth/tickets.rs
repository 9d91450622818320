//! Tickets: what stands for a key where a browser cannot send one. `EventSource` and `WebSocket` send no headers of a
//! page's own, and a key in a URL would stand in every log on its way.
//!
//! A ticket is 256 random bits, good for one request within `gateway.ticket_ttl_ms`. It is kept in a bucket as its
//! SHA-256, and used under the guard of its revision, so that of two uses, at whatever gateways, one succeeds.
//!
//! An `EventSource` that loses its connection comes back by itself, with the same URL. So a ticket that was used for an
//! event stream stays good for that stream alone: the same path and query, and a `Last-Event-ID`, until
//! `gateway.ticket_reconnect_ms` after the connection before was last known to be there. Whoever comes back takes the
//! stream over: the gateway that has the connection before notices when it next says that it is there, and ends it.

use std::time::Duration;

use async_nats::jetstream::{context::PublishErrorKind, message::PublishMessage};
use jiff::Timestamp;
use kairo_core::{
    bus::{Bus, BusError},
    signing::{EntrySigner, SignedContent},
    subjects::TICKETS_BUCKET,
};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::{
    oidc::claims::BearerToken,
    secret::{self, SecretHash},
};
use crate::{config::GatewayConfig, problem::Problem};

/// Number of renewals by a stream within the time it has to reconnect.
const SIGNS_OF_LIFE: u32 = 3;
/// Times that a ticket is looked at anew when somebody else changed it.
const TRIES: usize = 4;

/// The identity behind a ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TicketIdentity {
    Anyone,
    /// The holder of the administrator's key with this fingerprint.
    Administrator(String),
    /// The holder of the key with this id.
    Key(String),
    /// The bearer of this token, until it expires.
    Bearer(BearerToken),
}

/// The purpose a ticket is presented for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TicketUse {
    /// One connection, and no other afterwards.
    Once,
    /// An event stream: a digest of its URL without the ticket, and whether it comes back with a `Last-Event-ID`.
    Stream { url: String, comes_back: bool },
}

impl TicketUse {
    pub fn for_stream(path: &str, query: Option<&str>, comes_back: bool) -> Self {
        Self::Stream { url: SecretHash::of(&format!("{path}?{}", query.unwrap_or_default())).to_hex(), comes_back }
    }
}

/// A ticket as stored in the bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredTicket {
    stands_for: TicketIdentity,
    expires_at: Timestamp,
    /// The stream it was used for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stream: Option<String>,
}

impl StoredTicket {
    /// Returns true if the ticket has not expired and may be used for this. Once used, it is good only for its own
    /// stream to reconnect.
    fn is_good_for(&self, used: &TicketUse, now: Timestamp) -> bool {
        let is_for_it = match (&self.stream, used) {
            (None, _) => true,
            (Some(before), TicketUse::Stream { url, comes_back: true }) => before == url,
            (Some(_), _) => false,
        };
        now < self.expires_at && is_for_it
    }
}

/// Makes tickets, and takes them.
#[derive(Clone)]
pub struct TicketStore {
    bus: Bus,
    signatures: EntrySigner,
    lifetime: Duration,
    reconnect: Duration,
}

/// A ticket that was taken.
pub struct RedeemedTicket {
    pub stands_for: TicketIdentity,
    /// The hold that keeps the ticket good, if it was taken for a stream.
    pub stay: Option<TicketHold>,
}

/// A stream's hold on its ticket.
#[derive(Clone)]
pub struct TicketHold {
    tickets: TicketStore,
    hash: String,
    revision: u64,
    stored: StoredTicket,
}

impl TicketStore {
    pub fn new(bus: &Bus, config: &GatewayConfig, signatures: &EntrySigner) -> Self {
        let [lifetime, reconnect] = [config.ticket_ttl_ms, config.ticket_reconnect_ms].map(Duration::from_millis);
        Self { bus: bus.clone(), signatures: signatures.clone(), lifetime, reconnect }
    }

    /// Makes one: its text, and when it is no longer good.
    pub async fn issue(&self, stands_for: TicketIdentity) -> Result<(String, Timestamp), Problem> {
        let ticket = secret::generate_ticket().map_err(|error| Problem::internal(&error))?;
        let expires_at = Timestamp::now() + self.lifetime;
        let stored = StoredTicket { stands_for, expires_at, stream: None };
        self.write_ticket(&SecretHash::of(&ticket).to_hex(), Some(&stored), 0, self.lifetime).await?;
        Ok((ticket, expires_at))
    }

    /// Takes a ticket; none when it is not good for this, of which the reason is not told.
    pub async fn redeem(
        &self,
        ticket: &str,
        used: &TicketUse,
        now: Timestamp,
    ) -> Result<Option<RedeemedTicket>, BusError> {
        if !secret::is_ticket(ticket) {
            return Ok(None);
        }
        let hash = SecretHash::of(ticket).to_hex();
        for _ in 0..TRIES {
            match self.try_redeem(&hash, used, now).await {
                // Somebody else was quicker: another use, or only the connection before that said that it is there.
                Err(BusError::Conflict { .. }) => {}
                taken => return taken,
            }
        }
        Ok(None)
    }

    async fn try_redeem(
        &self,
        hash: &str,
        used: &TicketUse,
        now: Timestamp,
    ) -> Result<Option<RedeemedTicket>, BusError> {
        let Some((revision, stored)) = self.read_ticket(hash).await? else { return Ok(None) };
        if !stored.is_good_for(used, now) {
            return Ok(None);
        }
        let stands_for = stored.stands_for.clone();
        let stay = match used {
            TicketUse::Once => {
                self.write_ticket(hash, None, revision, self.lifetime).await?;
                None
            }
            TicketUse::Stream { url, .. } => {
                let stay = TicketHold { tickets: self.clone(), hash: hash.to_owned(), revision, stored };
                Some(stay.renew(Some(url.clone()), now).await?)
            }
        };
        Ok(Some(RedeemedTicket { stands_for, stay }))
    }

    /// As the stream's leader has it: a replica may not have heard of it yet.
    async fn read_ticket(&self, hash: &str) -> Result<Option<(u64, StoredTicket)>, BusError> {
        let (revision, entry) = self.bus.read_value_with_revision(TICKETS_BUCKET, hash).await?;
        // One that was used up says nothing, and neither does one that no gateway has made.
        let stored = entry.map(|entry| self.signatures.decode_entry(TICKETS_BUCKET, hash, &entry.value));
        Ok(match stored {
            Some(SignedContent::Written(stored)) => Some((revision, stored)),
            _ => None,
        })
    }

    /// Writes it, or deletes it, if nobody did since this revision. What nobody looks at any more the server forgets.
    async fn write_ticket(
        &self,
        hash: &str,
        stored: Option<&StoredTicket>,
        after: u64,
        kept: Duration,
    ) -> Result<u64, BusError> {
        // Whole seconds, and not forgotten before it says so itself.
        let mut message =
            PublishMessage::build().expected_last_subject_sequence(after).ttl(Duration::from_secs(kept.as_secs() + 2));
        message = match stored {
            Some(stored) => {
                message.payload(self.signatures.encode_entry(TICKETS_BUCKET, hash, stored).unwrap_or_default().into())
            }
            None => message.header("KV-Operation", "DEL"),
        };
        let jetstream = &self.bus.nats()?.jetstream;
        let sent = async { jetstream.send_publish(ticket_subject(hash), message).await?.await };
        sent.await.map(|written| written.sequence).map_err(|error| match error.kind() {
            PublishErrorKind::WrongLastSequence => BusError::Conflict { expected: after },
            _ => BusError::Unavailable { doing: "keeping a ticket", source: error.into() },
        })
    }
}

impl TicketHold {
    async fn renew(mut self, stream: Option<String>, now: Timestamp) -> Result<Self, BusError> {
        let reconnect = self.tickets.reconnect;
        let stored = StoredTicket { expires_at: now + reconnect, stream, ..self.stored };
        self.revision = self.tickets.write_ticket(&self.hash, Some(&stored), self.revision, reconnect).await?;
        self.stored = stored;
        Ok(self)
    }

    /// Keeps the ticket good for the stream that was opened with it. Ends when another has taken the stream over.
    pub async fn keep_renewing(mut self) {
        loop {
            sleep(self.tickets.reconnect / SIGNS_OF_LIFE).await;
            let stream = self.stored.stream.clone();
            match self.clone().renew(stream, Timestamp::now()).await {
                Ok(renewed) => self = renewed,
                Err(BusError::Conflict { .. }) => return,
                Err(error) => tracing::debug!(%error, "a ticket could not be renewed, trying again"),
            }
        }
    }
}

fn ticket_subject(hash: &str) -> String {
    format!("$KV.{TICKETS_BUCKET}.{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_good_for_one_use_and_for_coming_back_to_the_same_stream() {
        let now: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        let stream = |query: &str, comes_back| TicketUse::for_stream("/v1/events/stream", Some(query), comes_back);
        let of = |used: Option<&TicketUse>| StoredTicket {
            stands_for: TicketIdentity::Anyone,
            expires_at: now + Duration::from_secs(30),
            stream: used
                .and_then(|used| if let TicketUse::Stream { url, .. } = used { Some(url.clone()) } else { None }),
        };
        let fresh = of(None);
        for used in [TicketUse::Once, stream("agent=a", false), stream("agent=a", true)] {
            assert!(fresh.is_good_for(&used, now), "{used:?}");
            assert!(!fresh.is_good_for(&used, fresh.expires_at), "{used:?}");
        }
        let used = of(Some(&stream("agent=a", false)));
        assert!(used.is_good_for(&stream("agent=a", true), now));
        assert!(!used.is_good_for(&stream("agent=a", true), used.expires_at));
        for other in [TicketUse::Once, stream("agent=a", false), stream("agent=b", true), stream("", true)] {
            assert!(!used.is_good_for(&other, now), "{other:?}");
        }
    }
}
