//! Being told to stop.

use std::{
    io,
    time::{Duration, Instant},
};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Some send the same signal twice, to a process and to its group (`timeout` does): within this time it is one.
const ONCE: Duration = Duration::from_secs(1);

/// Ctrl-C and SIGTERM. From the moment it exists, neither ends us by itself.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the next of them.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Waits for one that comes after we know that we are to stop, and so means at once.
    pub(crate) async fn wait_for_repeat(&mut self) {
        let known = Instant::now();
        loop {
            self.next().await;
            if known.elapsed() >= ONCE {
                return;
            }
        }
    }
}
