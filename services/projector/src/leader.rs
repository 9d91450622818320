//! Leading: one session from connecting to whatever ends it.

use std::{convert::Infallible, sync::Once};

use kairo_core::{
    bus::{Bus, BusError},
    record::Raw,
    service::Readiness,
};
use kairo_read_model::{PostgresConfig, ReadError, migrate};
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use crate::{
    Config, ProjectorConfig,
    batch::Batch,
    reader::{Reader, ReaderError},
    session::{Position, Session, SessionError},
};

/// What ended a session. All of it is mended by another one, sooner or later.
#[derive(Debug, thiserror::Error)]
pub enum Interrupted {
    #[error(transparent)]
    Schema(#[from] ReadError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Reader(#[from] ReaderError),
    #[error(transparent)]
    Bus(#[from] BusError),
}

/// A replica: the leader, or standing by to become it.
pub struct Leader<'c> {
    bus: &'c Bus,
    projector: &'c ProjectorConfig,
    postgres: &'c PostgresConfig,
    readiness: &'c Readiness,
    shutdown: &'c CancellationToken,
    announced: Once,
}

impl<'c> Leader<'c> {
    pub fn new(bus: &'c Bus, config: &'c Config, readiness: &'c Readiness, shutdown: &'c CancellationToken) -> Self {
        Self {
            bus,
            projector: &config.projector,
            postgres: &config.postgres,
            readiness,
            shutdown,
            announced: Once::new(),
        }
    }

    /// Runs one session; `progress` tells whether it got as far as leading. Returns when told to stop, and may then be
    /// dropped anywhere: what was not committed is done again by whoever leads next.
    pub async fn run(&self, progress: &mut bool) -> Result<(), Interrupted> {
        tokio::select! {
            () = self.shutdown.cancelled() => Ok(()),
            interrupted = self.lead(progress) => interrupted.map(|never| match never {}),
        }
    }

    async fn lead(&self, progress: &mut bool) -> Result<Infallible, Interrupted> {
        migrate(self.postgres).await?;
        let mut session = Session::open(self.postgres, self.projector).await?;
        self.ready();
        while !session.lead().await? {
            tracing::debug!("standing by");
        }
        tracing::info!("leading");
        *progress = true;
        loop {
            self.follow(&mut session).await?;
            tracing::info!("the position was changed by somebody else, reading on from there");
        }
    }

    /// Standing by is as good as leading: a deployment may go on to the next replica.
    fn ready(&self) {
        self.announced.call_once(|| self.readiness.announce(""));
        self.readiness.set(true);
    }

    /// Projects the log as it grows, until the position is changed by somebody else.
    async fn follow(&self, session: &mut Session) -> Result<(), Interrupted> {
        let mut position = session.position().await?;
        let mut reader = Reader::open(self.bus, position.sequence, self.projector).await?;
        tracing::info!(sequence = position.sequence, "reading the log");
        let beat = self.projector.session_timeout() / 3;
        let mut beats = interval_at(Instant::now() + beat, beat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                messages = reader.next() => {
                    position = match self.write(session, position, &messages?).await {
                        Err(Interrupted::Session(SessionError::Moved)) => return Ok(()),
                        written => written?,
                    };
                }
                _ = beats.tick() => {
                    if session.position().await? != position {
                        return Ok(());
                    }
                    reader.check().await?;
                }
            }
        }
    }

    /// Writes a stretch of the log as a whole, or one by one if Postgres refuses something in it.
    async fn write(
        &self,
        session: &mut Session,
        mut position: Position,
        messages: &[Raw],
    ) -> Result<Position, Interrupted> {
        match self.commit(session, position, self.batch(messages)).await {
            Err(Interrupted::Session(SessionError::Refused(error))) => {
                tracing::warn!(%error, messages = messages.len(), "looking for what postgres refuses");
            }
            written => return written,
        }
        for message in messages {
            let alone = self.batch(std::slice::from_ref(message));
            position = match self.commit(session, position, alone).await {
                Err(Interrupted::Session(refused @ SessionError::Refused(_))) => {
                    self.set_aside(position, message, &refused.to_string()).await?;
                    let nothing = self.batch(std::slice::from_ref(message)).without_changes();
                    self.commit(session, position, nothing).await?
                }
                written => written?,
            };
        }
        Ok(position)
    }

    fn batch(&self, messages: &[Raw]) -> Batch {
        Batch::of(messages, self.bus.limits.max_body_bytes)
    }

    async fn commit(&self, session: &mut Session, from: Position, batch: Batch) -> Result<Position, Interrupted> {
        for (message, reason) in &batch.set_aside {
            self.set_aside(from, message, reason).await?;
        }
        let to = session.commit(&batch.changes, from, batch.last).await?;
        tracing::debug!(
            sequence = to.sequence,
            events = batch.changes.events.len(),
            skipped = batch.skipped,
            set_aside = batch.set_aside.len(),
            "projected"
        );
        Ok(to)
    }

    /// Writes a dead letter, before the position passes the message; on the way through a rebuild it is there already.
    async fn set_aside(&self, from: Position, message: &Raw, reason: &str) -> Result<(), BusError> {
        if message.sequence <= from.judged {
            return Ok(());
        }
        self.bus.dead_letter(self.bus.service.name(), message, reason).await
    }
}
