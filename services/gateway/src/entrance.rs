//! The entrance for other systems. They publish on `kairo.system.<source>.<verb>` in a NATS account of their own. Each
//! message is a request to the gateways, one of which checks it, writes it to the log and answers as JetStream would.
//!
//! The entrance has a connection of its own, since the client library closes a connection that receives a malformed
//! header: its sender delays other systems for a moment, and nothing else. A message that the client library cannot
//! read never enters a stream, where it would break the connection of every reader that reaches it.

use futures::StreamExt;
use kairo_core::{
    bus::{
        Bus, BusError,
        port::{Headers, LiveMessage, StoreError},
    },
    sharing::{
        QuotaHolder,
        permit_pool::{Permit, PermitPool},
    },
    subjects::{self, ENTRANCE, EVENTS_STREAM, Service},
};
use serde_json::{Value, json};

use crate::{config::Config, state::Gateway};

/// The most messages written at once; others wait, in the order of their sources' shares.
const WRITTEN_AT_ONCE: usize = 64;
/// The bytes that one place of [`BacklogSpace`] stands for.
const PLACE_BYTES: usize = 4 * 1024;
/// Places for messages that wait or are written: 32 MiB. Beyond that messages are refused and must be published again.
const PLACES: usize = 8 * 1024;
/// The most headers of one message; [`MAX_HEADER_BYTES`] is the limit on their size.
const MAX_HEADERS: usize = 64;
const MAX_HEADER_BYTES: usize = 16 * 1024;
/// Prefixes of headers with a meaning to NATS or Kairo, which are dropped from messages of other systems.
const RESERVED: [&str; 2] = ["Nats-", "Kairo-"];
const MESSAGE_ID: &str = "Nats-Msg-Id";
/// Codes of refusals, with their meaning in HTTP.
const INVALID: u16 = 400;
const BUSY: u16 = 429;
const UNAVAILABLE: u16 = 503;

/// The reason that a message is not written, as reported to its publisher.
#[derive(Debug, PartialEq, Eq)]
struct EntranceRefusal {
    code: u16,
    description: String,
}

/// Writes what other systems publish to the log, until the gateway stops.
pub async fn run(gateway: Gateway, entrance: Bus) {
    let room = BacklogSpace(PermitPool::with_capacity(PLACES));
    let writers = PermitPool::with_capacity(WRITTEN_AT_ONCE);
    let listening = async {
        let subscribe = || entrance.subscribe_shared(ENTRANCE);
        let mut heard = entrance.retry_until_success("other systems cannot be heard yet", subscribe).await;
        while let Some(heard) = heard.next().await {
            let source = source_holder(&heard.subject);
            let held = match room.reserve_space(&source, message_size(&heard)) {
                Ok(held) => held,
                Err(refusal) => {
                    reply_to_publisher(&entrance, &heard, Err(refusal)).await;
                    continue;
                }
            };
            let gateway = gateway.clone();
            let entrance = entrance.clone();
            let writers = writers.clone();
            tokio::spawn(async move {
                let _permit = writers.acquire(&source).await;
                let written = store_message(&gateway.bus, &heard).await;
                reply_to_publisher(&entrance, &heard, written).await;
                drop(held);
            });
        }
    };
    gateway.shutdown.run_until_cancelled(listening).await;
    entrance.close().await;
}

/// Room for messages that were received and not written yet; every source has a share.
struct BacklogSpace(PermitPool);

impl BacklogSpace {
    fn reserve_space(&self, source: &QuotaHolder, bytes: usize) -> Result<Vec<Permit>, EntranceRefusal> {
        let needed = 1 + bytes / PLACE_BYTES;
        let places: Result<Vec<Permit>, _> = (0..needed).map(|_| self.0.try_acquire(source)).collect();
        places.map_err(|_| {
            let description = "as much of this source waits to be written as may: publish it again".to_owned();
            EntranceRefusal { code: BUSY, description }
        })
    }
}

/// Returns the size of a message in bytes, including its headers, which may be as long as the rest.
fn message_size(heard: &LiveMessage) -> usize {
    let lengths = heard.headers.iter().flat_map(|(name, values)| {
        let name: &str = name.as_ref();
        values.iter().map(|value| name.len() + value.as_str().len())
    });
    heard.payload.len() + lengths.sum::<usize>()
}

fn source_holder(subject: &str) -> QuotaHolder {
    QuotaHolder::for_group(subject.split('.').nth(2).unwrap_or_default())
}

/// Writes a message to the log and returns its sequence, and true if it was written before.
async fn store_message(bus: &Bus, heard: &LiveMessage) -> Result<(u64, bool), EntranceRefusal> {
    let invalid = |description| EntranceRefusal { code: INVALID, description };
    let subject = log_subject(&heard.subject).map_err(invalid)?;
    let most = bus.limits.max_body_bytes;
    if heard.payload.len() > most {
        let size = heard.payload.len();
        return Err(invalid(format!("body: expected at most {most} bytes (bus.max_body_bytes), found {size}")));
    }
    let headers = filter_headers(&heard.headers).map_err(invalid)?;
    // An id of its own space: another system may not say first what Kairo has yet to say.
    let id = heard.headers.get(MESSAGE_ID).map(|id| format!("{subject} {id}"));
    let written = bus.store_foreign_event(&subject, headers, heard.payload.clone(), id).await;
    written.map(|written| (written.sequence, written.duplicate)).map_err(|error| match error {
        StoreError::TooLarge => invalid("body: it is larger than the server takes".to_owned()),
        error => EntranceRefusal { code: UNAVAILABLE, description: error.to_string() },
    })
}

/// Returns the subject of the message in the log.
fn log_subject(entered: &str) -> Result<String, String> {
    let subject = subjects::from_entrance(entered).unwrap_or_default();
    let source = subject.split('.').nth(2).unwrap_or_default();
    let is_own = Service::ALL.iter().any(|service| service.name() == source) || subjects::is_announcement(&subject);
    match subjects::trigger_of(&subject) {
        Some(_) if !is_own => Ok(subject),
        Some(_) => Err(format!("subject: {subject} is for Kairo itself: choose another source or verb")),
        None => Err("subject: expected kairo.system.<source>.<verb>, both of 1 to 64 of a-z 0-9 _ -".to_owned()),
    }
}

/// Returns the headers to write to the log, without reserved ones; an error if they exceed the limits.
fn filter_headers(sent: &Headers) -> Result<Headers, String> {
    let mut kept = Headers::new();
    let mut count = 0;
    let mut bytes = 0;
    for (name, values) in sent.iter() {
        let text: &str = name.as_ref();
        if RESERVED
            .iter()
            .any(|reserved| text.get(..reserved.len()).is_some_and(|it| it.eq_ignore_ascii_case(reserved)))
        {
            continue;
        }
        for value in values {
            count += 1;
            bytes += text.len() + value.as_str().len();
            kept.append(name.clone(), value.clone());
        }
    }
    match count <= MAX_HEADERS && bytes <= MAX_HEADER_BYTES {
        true => Ok(kept),
        false => Err(format!(
            "headers: expected at most {MAX_HEADERS} with {MAX_HEADER_BYTES} bytes, found {count} with {bytes}"
        )),
    }
}

/// Sends the acknowledgement or refusal to the publisher, if it waits for one.
async fn reply_to_publisher(entrance: &Bus, heard: &LiveMessage, written: Result<(u64, bool), EntranceRefusal>) {
    if let Err(EntranceRefusal { code, description }) = &written {
        tracing::info!(subject = heard.subject, code, description, "refused what another system published");
    }
    let Some(reply) = &heard.reply else { return };
    if let Err(error) = entrance.send_live(reply, build_ack(written).to_string()).await {
        tracing::debug!(%error, "another system was not answered");
    }
}

/// Builds the acknowledgement in JetStream's format.
fn build_ack(written: Result<(u64, bool), EntranceRefusal>) -> Value {
    match written {
        Ok((sequence, false)) => json!({ "stream": EVENTS_STREAM, "seq": sequence }),
        Ok((sequence, true)) => json!({ "stream": EVENTS_STREAM, "seq": sequence, "duplicate": true }),
        Err(EntranceRefusal { code, description }) => {
            json!({ "error": { "code": code, "err_code": code, "description": description }, "stream": "", "seq": 0 })
        }
    }
}

/// Opens the connection of the entrance.
pub async fn connect(bus: &Bus, config: &Config) -> Result<Bus, BusError> {
    Bus::connect(Service::Gateway, bus.instance.clone(), &config.nats, &config.bus).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_no_word_of_kairo_is_let_in() {
        assert_eq!(log_subject("kairo.entrance.github.push").as_deref(), Ok("kairo.system.github.push"));
        for refused in ["router.push", "github.catalogue", "GitHub.push", "a.b.c", "a", ""] {
            assert!(log_subject(&format!("kairo.entrance.{refused}")).is_err(), "{refused}");
        }
    }

    #[test]
    fn reserved_headers_are_left_out_and_the_rest_is_bounded() {
        let mut sent = Headers::new();
        for (name, value) in [("ce-id", "1"), ("nats-ttl", "1s"), ("Nats-Stream", "X"), ("KAIRO-Copy-Of", "X")] {
            sent.insert(name, value);
        }
        let kept = filter_headers(&sent).unwrap();
        assert_eq!((kept.len(), kept.get("ce-id").map(|id| id.as_str())), (1, Some("1")));
        (0..MAX_HEADERS).for_each(|number| sent.append("x", number.to_string()));
        assert!(filter_headers(&sent).unwrap_err().contains("at most 64"));
    }

    #[test]
    fn one_source_leaves_room_for_others() {
        let room = BacklogSpace(PermitPool::with_capacity(100));
        let [flood, other] = ["kairo.entrance.flood.x", "kairo.entrance.other.x"].map(source_holder);
        let held: Vec<_> = (0..200).map_while(|_| room.reserve_space(&flood, 0).ok()).collect();
        assert!((75..100).contains(&held.len()), "{}", held.len());
        assert_eq!(room.reserve_space(&flood, 0).unwrap_err().code, BUSY);
        assert_eq!(room.reserve_space(&other, 3 * PLACE_BYTES).unwrap().len(), 4);
        drop(held);
        assert!(room.reserve_space(&flood, 50 * PLACE_BYTES).is_ok());
        let mut headers = Headers::new();
        headers.insert("x", "y".repeat(3 * PLACE_BYTES));
        let heard = LiveMessage { subject: String::new(), reply: None, headers, payload: vec![0; 10].into() };
        assert_eq!(message_size(&heard), 3 * PLACE_BYTES + 11);
    }

    #[test]
    fn a_refusal_is_an_error_to_a_client_of_jetstream() {
        use async_nats::jetstream::{publish::PublishAck, response::Response};
        let read = |answer: Value| serde_json::from_value::<Response<PublishAck>>(answer).unwrap();
        assert!(matches!(read(build_ack(Ok((7, true)))), Response::Ok(ack) if ack.sequence == 7 && ack.duplicate));
        let refusal = EntranceRefusal { code: BUSY, description: "later".to_owned() };
        assert!(matches!(read(build_ack(Err(refusal))), Response::Err { error } if error.code() == 429));
    }
}
