//! Owned partitions: how what is stored about an owner reaches the one replica that deals with it.
//!
//! The log is divided into partitions ([`crate::partition`]). Each is owned by one replica of a service, which reads it
//! in order ([`tail`]) from where the last owner's [`checkpoint`] left it. Who owns what is decided by all replicas alike
//! ([`roster`], pure), from two buckets; [`member`] writes and reads them at each beat and runs what is owned. A [`lease`]
//! says whether a replica may still believe that it owns anything.
//!
//! Ownership saves work and keeps order. It is no fence: a replica that was frozen may go on for a moment while another
//! has taken over, and whatever must not happen twice needs a guard of its own.

pub mod checkpoint;
pub mod lease;
pub mod member;
mod owners;
pub mod replica_progress;
pub mod roster;
pub mod tail;

use std::time::Duration;

use crate::bus::{Bus, consume::backoff_delay};

/// The longest pause before the server is asked again: whoever owns a partition is not to wait long for its messages once
/// the server is back.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The pause after so many failures in a row.
fn retry_pause(bus: &Bus, failures: u64) -> Duration {
    backoff_delay(&bus.limits, failures).min(LONGEST_PAUSE)
}
