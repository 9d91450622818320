//! Waiting until the read model has taken a message in.
//!
//! projector tells of every move on a channel of Postgres. One connection listens for all that wait; it is made when
//! the first one does. Since what is told while nobody listens is lost, the position is also read: when the connection
//! is made, made again, and when it was silent for a while.

use std::{
    convert::Infallible,
    fmt,
    future::pending,
    sync::{Arc, OnceLock},
    time::Duration,
};

use sqlx::{
    Error, PgPool,
    postgres::{PgConnectOptions, PgListener, PgPoolOptions},
    query_scalar,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout, timeout_at},
};

use crate::{Projection, ReadError, ReadModel, ReadSnapshot, generations::POSITION};

/// The channel on which every move of any position is told.
pub const POSITION_CHANNEL: &str = "kairo_position";

/// Silence after which the position is read.
const SILENCE: Duration = Duration::from_secs(1);
/// Longest time that reading it may take, connecting included; then the connection is made again.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pause before that.
const PAUSE: Duration = Duration::from_millis(100);

/// The reason for which no answer is as fresh as it was to be.
#[derive(Debug, thiserror::Error)]
pub enum NotFresh {
    /// The wait is over.
    #[error("the read model is at {position}, and {wanted} was asked for")]
    Behind { position: u64, wanted: u64 },
    #[error(transparent)]
    Unanswered(#[from] ReadError),
}

/// Tells of the moves of a projection's position. Clones share their connection, which ends with the last of them.
#[derive(Clone)]
pub(crate) struct PositionWatch {
    options: PgConnectOptions,
    projection: Projection,
    told: Arc<OnceLock<watch::Receiver<u64>>>,
}

impl ReadModel {
    /// The read model once it takes account of the message of this sequence, which is waited for no longer than
    /// `limit`. Connecting and reading come on top.
    pub async fn snapshot_at_least(&self, sequence: u64, limit: Duration) -> Result<ReadSnapshot, NotFresh> {
        let deadline = Instant::now() + limit;
        let mut moves = self.moves.subscribe();
        loop {
            // What is told from here on may be of after the snapshot.
            moves.mark_unchanged();
            let snapshot = self.snapshot().await?;
            let position = snapshot.position();
            if position >= sequence {
                return Ok(snapshot);
            }
            drop(snapshot);
            if !reaches_before(&mut moves, sequence, deadline).await {
                return Err(NotFresh::Behind { position, wanted: sequence });
            }
        }
    }
}

/// Returns true if a move reaches the sequence before the deadline.
pub(crate) async fn reaches_before(moves: &mut watch::Receiver<u64>, sequence: u64, deadline: Instant) -> bool {
    timeout_at(deadline, wait_for_position(moves, sequence)).await.is_ok()
}

/// Waits for a move that leads there.
async fn wait_for_position(moves: &mut watch::Receiver<u64>, sequence: u64) {
    loop {
        if moves.changed().await.is_err() {
            // Nobody listens any more, which happens at the very end.
            return pending().await;
        }
        if *moves.borrow_and_update() >= sequence {
            return;
        }
    }
}

impl PositionWatch {
    pub(crate) fn new(options: PgConnectOptions, projection: Projection) -> Self {
        Self { options: options.application_name("kairo-position"), projection, told: Arc::default() }
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        let begin = || {
            let (tell, told) = watch::channel(0);
            tokio::spawn(listen_for_moves(self.options.clone(), self.projection, tell));
            told
        };
        self.told.get_or_init(begin).clone()
    }
}

impl fmt::Debug for PositionWatch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Moves").field("told", &self.told).finish_non_exhaustive()
    }
}

/// Tells of every move until nobody wants to know.
async fn listen_for_moves(options: PgConnectOptions, projection: Projection, tell: watch::Sender<u64>) {
    let listening = async {
        loop {
            let Err(error) = run_listen_session(&options, projection, &tell).await;
            tracing::debug!(%error, "listening to the position was interrupted");
            sleep(PAUSE).await;
        }
    };
    tokio::select! {
        () = tell.closed() => {}
        () = listening => {}
    }
}

/// One connection's life.
async fn run_listen_session(
    options: &PgConnectOptions,
    projection: Projection,
    tell: &watch::Sender<u64>,
) -> Result<Infallible, Error> {
    // A pool of its own, which keeps nothing of the connection before.
    let pool = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
    let mut listener = with_timeout(connect_listener(pool.connect_lazy_with(options.clone()))).await?;
    loop {
        let position = query_scalar(POSITION).bind(projection.name).bind(projection.version);
        let position: i64 = with_timeout(position.fetch_one(&mut listener)).await?;
        // Also where it is the same: nobody must wait for what was told before they listened.
        tell.send_replace(u64::try_from(position).unwrap_or(0));
        // A move that is told of leads further than it says where another partition moved at the same time, so the
        // position is read each time.
        if let Ok(told) = timeout(SILENCE, listener.try_recv()).await {
            told?.ok_or(Error::WorkerCrashed)?;
        }
        while listener.next_buffered().is_some() {}
    }
}

async fn connect_listener(pool: PgPool) -> Result<PgListener, Error> {
    let mut listener = PgListener::connect_with(&pool).await?;
    // A connection that is lost ends the session, so that the position is read after listening again.
    listener.eager_reconnect(false);
    listener.listen(POSITION_CHANNEL).await?;
    Ok(listener)
}

async fn with_timeout<T>(asked: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    timeout(PATIENCE, asked).await.unwrap_or(Err(Error::PoolTimedOut))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_move_back_does_not_count_as_reached() {
        let (tell, mut told) = watch::channel(9);
        told.mark_unchanged();
        let waiting = tokio::spawn(async move { wait_for_position(&mut told, 7).await });
        for position in [0, 6, 7] {
            tell.send_replace(position);
            tokio::task::yield_now().await;
        }
        waiting.await.unwrap();
    }
}
