//! The clock of leases. It is the same for a supervisor and its guards, and goes on while the machine sleeps and while
//! processes are stopped: how long nobody gave a sign of life is what counts, not how much of that time they ran.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{self, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockId, clock_gettime};

/// Time since the machine was started.
///
/// A kernel without this clock (before Linux 2.6.39) runs none of this, so the error cannot occur; a clock that stood
/// still would make every lease last for ever, so it would end them all instead.
pub fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::MAX, Duration::from)
}

/// Something to poll that becomes readable at a time of this clock; at once when the machine wakes after it.
pub struct Alarm(TimerFd);

impl Alarm {
    pub fn new() -> nix::Result<Self> {
        TimerFd::new(timerfd::ClockId::CLOCK_BOOTTIME, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK).map(Self)
    }

    /// Instead of any time set before.
    pub fn set(&self, at: Duration) -> nix::Result<()> {
        // A time of zero would turn it off.
        let at = TimeSpec::from_duration(at.max(Duration::from_nanos(1)));
        self.0.set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
