//! Times as messages hold them.

use jiff::Timestamp;

/// A time as a message holds it.
pub fn message(time: Timestamp) -> prost_types::Timestamp {
    prost_types::Timestamp { seconds: time.as_second(), nanos: time.subsec_nanosecond() }
}

/// The time that a message holds; none where that is beyond the calendar.
pub fn read(time: &prost_types::Timestamp) -> Option<Timestamp> {
    Timestamp::new(time.seconds, time.nanos).ok()
}
