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

use crate::{PROJECTION, ReadError, ReadModel, Snapshot, queries::position::POSITION};

/// The channel on which every move is told: the projection, a space, and its position.
pub const POSITION_CHANNEL: &str = "kairo_position";

/// Silence after which the position is read.
const SILENCE: Duration = Duration::from_secs(1);
/// Longest time that reading it may take, connecting included; then the connection is made again.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pause before that.
const PAUSE: Duration = Duration::from_millis(100);

/// Why there is no answer that is as fresh as it was to be.
#[derive(Debug, thiserror::Error)]
pub enum NotFresh {
    /// The wait is over.
    #[error("the read model is at {position}, and {wanted} was asked for")]
    Behind { position: u64, wanted: u64 },
    #[error(transparent)]
    Unanswered(#[from] ReadError),
}

/// Tells of the moves of the position. Clones share their connection, which ends with the last of them.
#[derive(Clone)]
pub(crate) struct Moves {
    options: PgConnectOptions,
    told: Arc<OnceLock<watch::Receiver<u64>>>,
}

impl ReadModel {
    /// The read model once it takes account of the message of this sequence, which is waited for no longer than
    /// `limit`. Connecting and reading come on top.
    pub async fn at_least(&self, sequence: u64, limit: Duration) -> Result<Snapshot, NotFresh> {
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
            if timeout_at(deadline, reached(&mut moves, sequence)).await.is_err() {
                return Err(NotFresh::Behind { position, wanted: sequence });
            }
        }
    }
}

/// Waits for a move that leads there.
async fn reached(moves: &mut watch::Receiver<u64>, sequence: u64) {
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

impl Moves {
    pub(crate) fn new(options: PgConnectOptions) -> Self {
        Self { options: options.application_name("kairo-position"), told: Arc::default() }
    }

    fn subscribe(&self) -> watch::Receiver<u64> {
        let begin = || {
            let (tell, told) = watch::channel(0);
            tokio::spawn(listen(self.options.clone(), tell));
            told
        };
        self.told.get_or_init(begin).clone()
    }
}

impl fmt::Debug for Moves {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Moves").field("told", &self.told).finish_non_exhaustive()
    }
}

/// Tells of every move until nobody wants to know.
async fn listen(options: PgConnectOptions, tell: watch::Sender<u64>) {
    let listening = async {
        loop {
            let Err(error) = session(&options, &tell).await;
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
async fn session(options: &PgConnectOptions, tell: &watch::Sender<u64>) -> Result<Infallible, Error> {
    // A pool of its own, which keeps nothing of the connection before.
    let pool = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
    let mut listener = within(connected(pool.connect_lazy_with(options.clone()))).await?;
    loop {
        let position: i64 = within(query_scalar(POSITION).bind(PROJECTION).fetch_one(&mut listener)).await?;
        // Also where it is the same: nobody must wait for what was told before they listened.
        tell.send_replace(u64::try_from(position).unwrap_or(0));
        while let Ok(told) = timeout(SILENCE, listener.try_recv()).await {
            let told = told?.ok_or(Error::WorkerCrashed)?;
            if let Some(position) = read(told.payload()) {
                tell.send_replace(position);
            }
        }
    }
}

async fn connected(pool: PgPool) -> Result<PgListener, Error> {
    let mut listener = PgListener::connect_with(&pool).await?;
    // A connection that is lost ends the session, so that the position is read after listening again.
    listener.eager_reconnect(false);
    listener.listen(POSITION_CHANNEL).await?;
    Ok(listener)
}

async fn within<T>(asked: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    timeout(PATIENCE, asked).await.unwrap_or(Err(Error::PoolTimedOut))
}

/// The position that is told, if it is of this projection: while versions are mixed there are others.
fn read(told: &str) -> Option<u64> {
    let (projection, position) = told.split_once(' ')?;
    position.parse().ok().filter(|_| projection == PROJECTION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_moves_of_this_projection_count() {
        assert_eq!(read(&format!("{PROJECTION} 41")), Some(41));
        for other in
            ["read-model-0 41", "41", "", PROJECTION, &format!("{PROJECTION} -1"), &format!("{PROJECTION} 4 1")]
        {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[tokio::test]
    async fn a_move_back_does_not_count_as_reached() {
        let (tell, mut told) = watch::channel(9);
        told.mark_unchanged();
        let waiting = tokio::spawn(async move { reached(&mut told, 7).await });
        for position in [0, 6, 7] {
            tell.send_replace(position);
            tokio::task::yield_now().await;
        }
        waiting.await.unwrap();
    }
}
