//! Times as messages hold them.

use jiff::Timestamp;

/// Converts a time to its form in messages.
pub fn message(time: Timestamp) -> prost_types::Timestamp {
    prost_types::Timestamp { seconds: time.as_second(), nanos: time.subsec_nanosecond() }
}

/// Reads a time from a message; `None` if it is beyond the calendar.
pub fn read(time: &prost_types::Timestamp) -> Option<Timestamp> {
    Timestamp::new(time.seconds, time.nanos).ok()
}
