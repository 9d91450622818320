//! What is said live: pieces of answers and of processes' output, worth nothing once the events are there.

use async_nats::Message;
use futures::{Stream, StreamExt, stream::SelectAll};
use jiff::Timestamp;
use kairo_core::{
    bus::{Bus, BusError},
    ids::Name,
    record::{Raw, Record},
    subjects::{LIVE_OUTPUT, LIVE_TOKEN},
};

/// What is said from now on about one agent or all. Whoever listens must keep up: nothing waits here for long.
pub async fn pieces(
    bus: &Bus,
    agent: Option<&Name>,
) -> Result<impl Stream<Item = Record> + Send + Unpin + use<>, BusError> {
    let mut sources = SelectAll::new();
    for route in [LIVE_TOKEN, LIVE_OUTPUT] {
        let subject = agent.map_or_else(|| route.filter(), |agent| route.of(agent));
        let source = bus.client.subscribe(subject).await;
        sources.push(
            source
                .map_err(|error| BusError::Unavailable { doing: "listening to what is live", source: error.into() })?,
        );
    }
    let max_body = bus.limits.max_body_bytes;
    Ok(sources.filter_map(move |message| std::future::ready(raw(message).read(max_body).ok())))
}

fn raw(message: Message) -> Raw {
    Raw {
        sequence: 0,
        subject: message.subject.to_string(),
        headers: message.headers.unwrap_or_default(),
        payload: message.payload,
        stored: Timestamp::UNIX_EPOCH,
    }
}
