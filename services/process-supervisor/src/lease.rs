//! The lease of guarded processes.
//!
//! A process must be dead before another replica may record it as `supervisor_lost`. Others do so when its invoke is
//! redelivered, which is two thirds of the ack wait after the last sign of life at the earliest, *and* nobody answers
//! for the process ([`kairo_core::bus::liveness`]). A supervisor that died has closed the pipes to its guards, and they
//! have killed at once. One that is frozen gives no beats; its guards kill when the lease is over, which is half the
//! ack wait: before the two thirds. So the lease is about this process being alive and nothing else, and beats come
//! from a plain timer that a frozen process cannot run.
//!
//! Supervisor, guard and program may all stand still. If they were stopped by signals, the kernel wakes the guard at the end
//! of the lease, so that it kills in time all the same. If the machine sleeps nobody kills in time. Each beat says
//! when it was made, by a clock that goes on meanwhile ([`crate::clock`]), and a lease that had lapsed is not renewed. So
//! the first thing that a guard does when it is back is to kill, whatever the supervisor has said since it is back; and
//! the end that the supervisor then finds in the ledger stands.
//!
//! They do not depend on nats. A supervisor without a connection cannot know whether the server is away for everybody,
//! in which case nobody can record anything, or only for itself; and a server that restarts must not kill work of
//! hours. Two things are left to be dealt with:
//!
//! * When the server comes back, invokes are redelivered at once, perhaps to a replica that is connected again before
//!   the one that has the process. So nobody is given up for lost by a replica whose own connection is younger than
//!   the ack wait ([`ConnectionMonitor::is_young`]); everybody alive is back by then.
//! * A supervisor that alone was cut off for longer than the ack wait is given up for lost while its process lives.
//!   When it is back it looks for that, and then kills the process ([`ConnectionMonitor::reconnections`]). Until then the record
//!   says more than is true in one point: not that the process is dead, but that nobody will hear from it. What rests
//!   on it holds all the same: the process is never run twice, and its action is in doubt.

use std::{sync::Arc, time::Duration};

use kairo_core::bus::{Bus, BusConfig, connection_monitor::ConnectionMonitor};
use tokio::time::MissedTickBehavior;
use tokio_util::task::AbortOnDropHandle;

use crate::guarded_process::GuardFleet;

/// Returns the longest time that a guard waits for a beat, in milliseconds.
pub fn lease_ms(limits: &BusConfig) -> u64 {
    limits.ack_wait_ms / 2
}

/// Keeps the lease of all processes for as long as it is not dropped.
pub struct Lease {
    _beating: AbortOnDropHandle<()>,
}

impl Lease {
    /// Gives `guards` four beats in each lease.
    pub fn start(bus: &Bus, guards: Arc<GuardFleet>, contact: ConnectionMonitor) -> Self {
        let mut clock = tokio::time::interval(Duration::from_millis((lease_ms(&bus.limits) / 4).max(1)));
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let beating = bus.spawn(async move {
            loop {
                clock.tick().await;
                guards.send_heartbeat();
                contact.refresh();
            }
        });
        Self { _beating: AbortOnDropHandle::new(beating) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frozen_supervisor_s_processes_are_dead_before_anybody_may_say_so() {
        for ack_wait_ms in [300, 5_000, 600_000] {
            let limits = BusConfig { ack_wait_ms, ..BusConfig::default() };
            assert!(lease_ms(&limits) < ack_wait_ms * 2 / 3);
        }
    }
}
