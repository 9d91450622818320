//! Following a subject: for as long as something has not come ([`Bus::wait_for_record`]), or its newest message, such as a catalogue in
//! force ([`NewestRecord`]).

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    Bus, BusError,
    consume::backoff_delay,
    port::{Cause, TailStart},
};
use crate::record::Record;

impl Bus {
    /// The first record of `filter` above sequence `after` that `pick` wants, once there is one: each is handed to it, in order. What
    /// cannot be read is passed over. It has no limit; while the server is away it tries again, after longer and longer pauses.
    pub async fn wait_for_record<T>(
        &self,
        filter: &str,
        mut after: u64,
        mut pick: impl FnMut(&Record) -> Option<T>,
    ) -> T {
        let mut failures = 0;
        loop {
            match self.pick_from_tail(filter, &mut after, &mut failures, &mut pick).await {
                Ok(found) => return found,
                Err(error) => tracing::debug!(filter, %error, "following broke off"),
            }
            failures += 1;
            tokio::time::sleep(backoff_delay(&self.limits, failures)).await;
        }
    }

    /// Only what is stored is handed over: what was refused a place in the log may be heard on its subject all the same.
    async fn pick_from_tail<T>(
        &self,
        filter: &str,
        after: &mut u64,
        failures: &mut u64,
        pick: &mut impl FnMut(&Record) -> Option<T>,
    ) -> Result<T, Cause> {
        let mut tail = self.tail_subject(filter, TailStart::After(*after)).await?;
        loop {
            for raw in tail.next_batch().await? {
                (*after, *failures) = (raw.sequence, 0);
                if let Some(found) = raw.read(self.limits.max_body_bytes).ok().and_then(|record| pick(&record)) {
                    return Ok(found);
                }
            }
        }
    }
}

/// The newest readable message of a subject.
pub struct NewestRecord {
    bus: Bus,
    subject: String,
    seen: watch::Sender<Option<Record>>,
}

impl NewestRecord {
    /// Follows `subject` until `shutdown`.
    pub fn follow(bus: &Bus, subject: String, shutdown: CancellationToken) -> Self {
        let seen = watch::Sender::new(None);
        let following = Self { bus: bus.clone(), subject: subject.clone(), seen: seen.clone() };
        bus.spawn(async move { _ = shutdown.run_until_cancelled(following.tail_with_retry()).await });
        Self { bus: bus.clone(), subject, seen }
    }

    /// Returns the message seen last. Costs a round trip only until the first one is seen.
    pub async fn current(&self) -> Result<Option<Record>, BusError> {
        if let Some(record) = self.seen.borrow().clone() {
            return Ok(Some(record));
        }
        self.read_newest().await
    }

    /// Reads the newest message from the log, which may be ahead of the one seen last. Costs a round trip.
    pub async fn read_newest(&self) -> Result<Option<Record>, BusError> {
        let limit = self.bus.limits.max_body_bytes;
        let Some(last) = self.bus.last_message(&self.subject).await? else { return Ok(None) };
        if let Ok(record) = last.read(limit) {
            return Ok(Some(record));
        }
        // Something unreadable stands behind it.
        let mut newest = None;
        self.bus
            .read_all(&self.subject, 0, |raw| newest = raw.without_carried_mark().read(limit).ok().or(newest.take()))
            .await?;
        Ok(newest)
    }

    /// Changes, as they are seen.
    pub fn changes(&self) -> watch::Receiver<Option<Record>> {
        self.seen.subscribe()
    }

    async fn tail_with_retry(&self) {
        let mut failures = 0;
        loop {
            if let Err(error) = self.tail_newest().await {
                tracing::debug!(subject = self.subject, %error, "following broke off");
            }
            failures += 1;
            tokio::time::sleep(backoff_delay(&self.bus.limits, failures)).await;
        }
    }

    async fn tail_newest(&self) -> Result<(), Cause> {
        let mut tail = self.bus.tail_subject(&self.subject, TailStart::LastOfEach).await?;
        loop {
            for raw in tail.next_batch().await? {
                match raw.without_carried_mark().read(self.bus.limits.max_body_bytes) {
                    Ok(record) => _ = self.seen.send_replace(Some(record)),
                    Err(error) => tracing::warn!(subject = self.subject, %error, "passed over"),
                }
            }
        }
    }
}
