//! The clock of leases. It is the same for a supervisor and its guards, and goes on while the machine sleeps and while
//! processes are stopped: how long nobody gave a sign of life is what counts, not how much of that time they ran.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::sys::signal::{SigEvent, SigevNotify, Signal};
use nix::sys::time::TimeSpec;
use nix::sys::timer::Timer;
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
///
/// A process that is stopped (SIGSTOP) at that time polls nothing, so the kernel also sends this process a signal that
/// makes it go on. A process that was not stopped ignores it.
pub struct Alarm {
    readable: TimerFd,
    going_on: Timer,
}

impl Alarm {
    pub fn new() -> nix::Result<Self> {
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        let go_on = SigEvent::new(SigevNotify::SigevSignal { signal: Signal::SIGCONT, si_value: 0 });
        Ok(Self {
            readable: TimerFd::new(timerfd::ClockId::CLOCK_BOOTTIME, flags)?,
            going_on: Timer::new(ClockId::CLOCK_BOOTTIME, go_on)?,
        })
    }

    /// Instead of any time set before.
    pub fn set(&mut self, at: Duration) -> nix::Result<()> {
        // A time of zero would turn it off.
        let at = Expiration::OneShot(TimeSpec::from_duration(at.max(Duration::from_nanos(1))));
        self.readable.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
        self.going_on.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME)
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.readable.as_fd()
    }
}
