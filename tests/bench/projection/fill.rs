//! Filling a log with copies of what was recorded.

use std::collections::VecDeque;

use async_nats::jetstream::{context::PublishAckFuture, message::PublishMessage};
use kairo_core::record::RawMessage;
use serde::Serialize;

use kairo_tests::multiply::{Pattern, mix};

use kairo_local::Login;

use super::record::connect;
use crate::Outcome;

/// Publishes that may wait for their acknowledgement.
const IN_FLIGHT: usize = 1_000;

/// The contents of the log.
#[derive(Debug, Serialize)]
pub struct Mix {
    /// Copies of the recorded run, of which the last is cut off.
    pub copies: u32,
    /// Bytes of a message's payload and headers, on average.
    pub bytes: f64,
    /// Share of each type.
    pub types: Vec<(String, f64)>,
}

/// Writes so many messages: what services said of themselves once, and everything else again and again.
pub async fn fill(login: &Login, recorded: &[RawMessage], messages: u64) -> Outcome<Mix> {
    let bus = connect(login).await?;
    let patterns: Vec<Pattern> = recorded.iter().map(Pattern::of).collect();
    let mut waiting: VecDeque<PublishAckFuture> = VecDeque::new();
    let (mut written, mut bytes, mut copies) = (0, 0, 0);
    while written < messages {
        let own = patterns.iter().filter(|pattern| pattern.is_owned || copies == 0);
        for pattern in own.take(usize::try_from(messages - written)?) {
            let (subject, headers, payload) = pattern.copy(copies);
            bytes += payload.len()
                + headers.iter().flat_map(|(_, values)| values).map(|value| value.as_str().len()).sum::<usize>();
            let message = PublishMessage::build().headers(headers).payload(payload);
            waiting.push_back(bus.nats()?.jetstream.send_publish(bus.stored_subject(&subject), message).await?);
            if waiting.len() >= IN_FLIGHT
                && let Some(oldest) = waiting.pop_front()
            {
                oldest.await?;
            }
            written += 1;
        }
        copies += 1;
    }
    for last in waiting {
        last.await?;
    }
    let mix = mix(&patterns);
    let all: usize = mix.iter().map(|(_, count)| count).sum();
    let types = mix.into_iter().map(|(name, count)| (name, count as f64 / all.max(1) as f64)).collect();
    Ok(Mix { copies, bytes: bytes as f64 / written.max(1) as f64, types })
}
