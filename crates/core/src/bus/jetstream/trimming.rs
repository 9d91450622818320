//! The limit that trims the log, which it has for a moment, and the limits that it has again.

use std::time::Duration;

use async_nats::jetstream::stream::PeerInfo;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{JetStream, provision::provisioning_error};
use crate::{
    bus::{
        BusError,
        provision::{
            JetStreamResource, ProvisionChange,
            topology::{config_with_trim_limit, config_without_trim_limit},
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
    /// with a note to lift it: [`JetStream::restore_limits`]. Lifting it is retried until the deadline, as another server may
    /// come to lead the log in between.
    ///
    /// # Errors
    /// Returns an error if the server does not answer, or refuses the limit; and as [`JetStream::restore_limits`].
    pub async fn trim_log(&self, carried: u64, left: u64, deadline: Instant) -> Result<(), BusError> {
        let part = JetStreamResource::Stream(EVENTS_STREAM.to_owned());
        self.restore_limits_until(deadline).await?;
        let Some(there) = self.raw_stream_config(EVENTS_STREAM).await.map_err(provisioning_error(&part))? else {
            return Ok(());
        };
        let limited = config_with_trim_limit(&there, carried, left);
        let refused = |why| BusError::Refused(format!("{part} cannot be trimmed: {why}"));
        let limited = self.update_stream(EVENTS_STREAM, &limited).await;
        // Also where no answer came: it may have it all the same.
        self.restore_limits_until(deadline).await?;
        limited.map_err(provisioning_error(&part))?.map_err(refused)?;
        self.await_limit_propagation().await
    }

    /// Until it succeeds: another server may have yet to lead.
    async fn restore_limits_until(&self, deadline: Instant) -> Result<(), BusError> {
        while let Err(error) = self.try_restore_limits().await {
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
    pub async fn restore_limits(&self) -> Result<Option<(JetStreamResource, ProvisionChange)>, BusError> {
        let done = self.try_restore_limits().await?;
        if done.is_some() {
            self.await_limit_propagation().await?;
        }
        Ok(done)
    }

    async fn try_restore_limits(&self) -> Result<Option<(JetStreamResource, ProvisionChange)>, BusError> {
        let part = JetStreamResource::Stream(EVENTS_STREAM.to_owned());
        let there = self.raw_stream_config(EVENTS_STREAM).await.map_err(provisioning_error(&part))?;
        let Some(before) = there.and_then(|there| config_without_trim_limit(&there)) else { return Ok(None) };
        let refused = |why| BusError::Refused(format!("{part} cannot be given its limits again: {why}"));
        self.update_stream(EVENTS_STREAM, &before).await.map_err(provisioning_error(&part))?.map_err(refused)?;
        Ok(Some((part, ProvisionChange::Mended)))
    }

    /// Each server with a copy keeps to a limit by itself. One that comes back when the others have theirs again first takes the limit,
    /// for as long as it has not heard of the rest, and may lose by it what is in no archive.
    async fn await_limit_propagation(&self) -> Result<(), BusError> {
        let since = Instant::now();
        loop {
            let away = self.lagging_copies(since.elapsed()).await?;
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
    pub async fn lagging_copies(&self, silent: Duration) -> Result<Vec<String>, BusError> {
        let log = self.raw_stream_info(EVENTS_STREAM).await.map_err(BusError::unavailable(LOOKING_AT_COPIES))?;
        let copies = log.and_then(|mut log| log.pointer_mut("/cluster/replicas").map(Value::take));
        let copies: Option<Vec<PeerInfo>> =
            copies.map(serde_json::from_value).transpose().map_err(BusError::unavailable(LOOKING_AT_COPIES))?;
        let is_away = |copy: &&PeerInfo| copy.offline || !copy.current || copy.active > silent;
        Ok(copies.iter().flatten().filter(is_away).map(|copy| copy.name.clone()).collect())
    }
}
