//! The metrics every replica exports about itself.

use super::Readiness;
use crate::{
    bus::Bus,
    metrics::table::{DEAD_LETTERS_WRITTEN, NATS_CONNECTED, NATS_VIOLATIONS, READY, WRITES_STALLED},
};

pub(super) fn observe(bus: &Bus, readiness: &Readiness) {
    let metrics = &bus.metrics;
    metrics.init_counter(&DEAD_LETTERS_WRITTEN);
    let ready = readiness.clone();
    metrics.observe(&READY, move |say| say(f64::from(ready.is_ready()), &[]));
    let of = bus.clone();
    metrics.observe(&NATS_CONNECTED, move |say| say(f64::from(of.connection().up), &[]));
    let of = bus.clone();
    metrics.observe(&NATS_VIOLATIONS, move |say| say(of.violations().count as f64, &[]));
    let of = bus.writes.clone();
    metrics.observe(&WRITES_STALLED, move |say| say(f64::from(of.stall_reason().is_some()), &[]));
}
