//! The limit that trims the log, which it has for a moment, and the limits that it has again.

use std::time::Duration;

use async_nats::jetstream::stream::PeerInfo;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{JetStream, provision::failed};
use crate::{
    bus::{
        BusError,
        provision::{
            Done, Part,
            wanted::{limited, unlimited},
        },
    },
    subjects::EVENTS_STREAM,
};

const LOOKING_AT_COPIES: &str = "looking at the copies of the log";
/// Between two times that a server is asked which may have yet to lead, or to hear of something.
const ASK_AGAIN: Duration = Duration::from_millis(200);
/// Within which servers hear of each other: they say that they are there every second.
const HEARD_WITHIN: Duration = Duration::from_secs(5);

impl JetStream {
    /// Removes all but the newest `left` messages of the log, with a limit set for a moment; `carried` is the sequence
    /// up to which every message that must survive was carried forward. A process killed in between leaves the limit
    /// with a note to lift it: [`JetStream::put_back`]. Lifting it is retried until the deadline, as another server may
    /// come to lead the log in between.
    ///
    /// # Errors
    /// Returns an error if the server does not answer, or refuses the limit; and as [`JetStream::put_back`].
    pub async fn trim_log(&self, carried: u64, left: u64, deadline: Instant) -> Result<(), BusError> {
        let part = Part::Stream(EVENTS_STREAM.to_owned());
        self.put_back_until(deadline).await?;
        let Some(there) = self.raw_config(EVENTS_STREAM).await.map_err(failed(&part))? else { return Ok(()) };
        let limited = limited(&there, carried, left);
        let refused = |why| BusError::Refused(format!("{part} cannot be trimmed: {why}"));
        let limited = self.update(EVENTS_STREAM, &limited).await;
        // Also where no answer came: it may have it all the same.
        self.put_back_until(deadline).await?;
        limited.map_err(failed(&part))?.map_err(refused)?;
        self.all_have_heard().await
    }

    /// Until it succeeds: another server may have yet to lead.
    async fn put_back_until(&self, deadline: Instant) -> Result<(), BusError> {
        while let Err(error) = self.give_back().await {
            if Instant::now() >= deadline {
                return Err(error);
            }
            sleep(ASK_AGAIN).await;
        }
        Ok(())
    }

    /// Restores the limits the log had before it was trimmed, if the process that trimmed it was killed.
    ///
    /// # Errors
    /// Returns an error if the server does not answer, or refuses the limits; and [`BusError::Refused`] if they are
    /// restored, but one of several servers has not heard of it.
    pub async fn put_back(&self) -> Result<Option<(Part, Done)>, BusError> {
        let done = self.give_back().await?;
        if done.is_some() {
            self.all_have_heard().await?;
        }
        Ok(done)
    }

    async fn give_back(&self) -> Result<Option<(Part, Done)>, BusError> {
        let part = Part::Stream(EVENTS_STREAM.to_owned());
        let there = self.raw_config(EVENTS_STREAM).await.map_err(failed(&part))?;
        let Some(before) = there.and_then(|there| unlimited(&there)) else { return Ok(None) };
        let refused = |why| BusError::Refused(format!("{part} cannot be given its limits again: {why}"));
        self.update(EVENTS_STREAM, &before).await.map_err(failed(&part))?.map_err(refused)?;
        Ok(Some((part, Done::Mended)))
    }

    /// Each server with a copy keeps to a limit by itself. One that comes back when the others have theirs again first takes the limit,
    /// for as long as it has not heard of the rest, and may lose by it what is in no archive.
    async fn all_have_heard(&self) -> Result<(), BusError> {
        let since = Instant::now();
        loop {
            let away = self.copies_away(since.elapsed()).await?;
            if away.is_empty() {
                return Ok(());
            }
            if since.elapsed() > HEARD_WITHIN {
                return Err(BusError::Refused(format!(
                    "the log has its limits again, but {} was away, and would remove more than the others did when it comes back: \
                     start it with an empty folder for its data, and it copies theirs",
                    away.join(", ")
                )));
            }
            sleep(ASK_AGAIN).await;
        }
    }

    /// Returns the servers with a copy of the log that are offline, lag behind the leader, or have been silent to it
    /// for longer than `silent`.
    ///
    /// # Errors
    /// Returns an error if the server does not answer.
    pub async fn copies_away(&self, silent: Duration) -> Result<Vec<String>, BusError> {
        let log = self.info(EVENTS_STREAM).await.map_err(BusError::unavailable(LOOKING_AT_COPIES))?;
        let copies = log.and_then(|mut log| log.pointer_mut("/cluster/replicas").map(Value::take));
        let copies: Option<Vec<PeerInfo>> =
            copies.map(serde_json::from_value).transpose().map_err(BusError::unavailable(LOOKING_AT_COPIES))?;
        let is_away = |copy: &&PeerInfo| copy.offline || !copy.current || copy.active > silent;
        Ok(copies.iter().flatten().filter(is_away).map(|copy| copy.name.clone()).collect())
    }
}
