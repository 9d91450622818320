//! Tracks the activity of a connection, to find out when it has been silent for too long.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, sleep_until},
};

/// The activity of a connection so far.
#[derive(Debug)]
pub struct ConnectionActivity(Mutex<ActivityState>);

#[derive(Debug)]
struct ActivityState {
    /// True once the first request has begun.
    begun: bool,
    /// Requests that are being dealt with: their answers have not begun.
    dealt_with: usize,
    /// When the client came.
    came: Instant,
    /// When it was last answered, or last took something of an answer.
    last: Instant,
}

impl Default for ConnectionActivity {
    fn default() -> Self {
        let now = Instant::now();
        Self(Mutex::new(ActivityState { begun: false, dealt_with: 0, came: now, last: now }))
    }
}

/// A request is being dealt with until it is dropped.
pub struct ActiveRequest(Arc<ConnectionActivity>);

impl ConnectionActivity {
    fn lock_state(&self) -> MutexGuard<'_, ActivityState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn begin_request(self: &Arc<Self>) -> ActiveRequest {
        let mut seen = self.lock_state();
        seen.begun = true;
        seen.dealt_with += 1;
        ActiveRequest(self.clone())
    }

    /// Waits until nothing has gone on for that long: `first` before the first request, `idle` afterwards.
    pub async fn wait_for_silence(&self, first: Duration, idle: Duration) {
        while let Some(at) = self.silence_deadline(first, idle) {
            sleep_until(at).await;
        }
    }

    /// When it will have been silent for long enough, as things stand; none when it has been.
    fn silence_deadline(&self, first: Duration, idle: Duration) -> Option<Instant> {
        let seen = self.lock_state();
        let now = Instant::now();
        let at = match (seen.dealt_with, seen.begun) {
            (0, false) => seen.came + first,
            (0, true) => seen.last + idle,
            // It is looked at again when the request could have been over for so long.
            (1.., _) => now + idle,
        };
        (at > now).then_some(at)
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut seen = self.0.lock_state();
        seen.dealt_with -= 1;
        seen.last = Instant::now();
    }
}

/// A connection of which it is noted when its client took something.
pub struct MonitoredStream<S> {
    stream: S,
    activity: Arc<ConnectionActivity>,
}

impl<S> MonitoredStream<S> {
    pub fn new(stream: S, activity: Arc<ConnectionActivity>) -> Self {
        Self { stream, activity }
    }

    fn record_write(&self, written: &Poll<io::Result<usize>>) {
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.activity.lock_state().last = Instant::now();
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MonitoredStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MonitoredStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.record_write(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.record_write(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_secs(10);
    const IDLE: Duration = Duration::from_secs(75);

    #[tokio::test(start_paused = true)]
    async fn silence_is_counted_from_what_went_on_last() {
        let activity = Arc::new(ConnectionActivity::default());
        let began = Instant::now();
        activity.wait_for_silence(FIRST, IDLE).await;
        assert_eq!(began.elapsed(), FIRST);

        let activity = Arc::new(ConnectionActivity::default());
        let began = Instant::now();
        let request = activity.begin_request();
        let dealing = async {
            tokio::time::sleep(10 * IDLE).await;
            drop(request);
        };
        tokio::join!(activity.wait_for_silence(FIRST, IDLE), dealing);
        assert_eq!(began.elapsed(), 11 * IDLE);
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_a_client_takes_is_activity() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};

        let (client, server) = tokio::io::duplex(64);
        let activity = Arc::new(ConnectionActivity::default());
        let mut server = MonitoredStream::new(server, activity.clone());
        let (mut from_server, mut to_server) = tokio::io::split(client);
        drop(activity.begin_request());
        let began = Instant::now();
        tokio::time::sleep(IDLE / 2).await;
        server.write_all(b"answer").await.unwrap();
        from_server.read_exact(&mut [0; 6]).await.unwrap();
        tokio::time::sleep(IDLE / 2).await;
        to_server.write_all(b"G").await.unwrap();
        server.read_exact(&mut [0; 1]).await.unwrap();
        activity.wait_for_silence(FIRST, IDLE).await;
        assert_eq!(began.elapsed(), IDLE / 2 + IDLE);
    }
}
