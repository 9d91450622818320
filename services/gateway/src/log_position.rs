//! A place in the log, as clients name it. Pure.

use std::{
    fmt::{self, Display},
    num::ParseIntError,
    str::FromStr,
};

use kairo_core::event_json::EventJson;
use kairo_proto::v1;

/// Everything up to and including an event: `<sequence>.<position>`, or `<sequence>` for a message and all its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPosition {
    pub sequence: u64,
    /// The event within its message; [`LogPosition::WHOLE`] for all of them.
    pub position: u32,
}

/// The description of a place in error responses.
pub const PLACE: &str = "a sequence, or the place of an event: <sequence>.<position>";

impl LogPosition {
    const WHOLE: u32 = u32::MAX;

    pub fn whole_message(sequence: u64) -> Self {
        Self { sequence, position: Self::WHOLE }
    }

    pub fn of_event(event: &EventJson) -> Self {
        Self { sequence: event.sequence, position: event.position }
    }

    /// Returns true if the place is the end of a whole message, not one event of it.
    pub fn is_whole_message(self) -> bool {
        self.position == Self::WHOLE
    }

    /// Returns the sequence of the last message whose events all lie at or before this place.
    pub fn complete_sequence(self) -> u64 {
        if self.is_whole_message() { self.sequence } else { self.sequence.saturating_sub(1) }
    }
}

/// Converts a place to its contract type.
impl From<LogPosition> for v1::Place {
    fn from(place: LogPosition) -> Self {
        Self { sequence: place.sequence, position: (!place.is_whole_message()).then_some(place.position) }
    }
}

impl FromStr for LogPosition {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('.') {
            None => Ok(Self::whole_message(text.parse()?)),
            Some((sequence, position)) => Ok(Self { sequence: sequence.parse()?, position: position.parse()? }),
        }
    }
}

impl Display for LogPosition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.sequence)?;
        if self.is_whole_message() { Ok(()) } else { write!(out, ".{}", self.position) }
    }
}

impl From<LogPosition> for kairo_read_model::RowPosition {
    fn from(place: LogPosition) -> Self {
        (place.sequence, place.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_what_was_seen() {
        let place = |text: &str| text.parse::<LogPosition>().unwrap();
        assert!(place("7.0") < place("7.1") && place("7.1") < place("7") && place("7") < place("8.0"));
        assert_eq!(
            (place("7.1").complete_sequence(), place("7").complete_sequence(), place("0").complete_sequence()),
            (6, 7, 0)
        );
        for text in ["7", "7.1", "0"] {
            assert_eq!(place(text).to_string(), text);
        }
        for bad in ["", "x", "7.", ".1", "-1", "1.2.3"] {
            assert!(bad.parse::<LogPosition>().is_err(), "{bad}");
        }
    }
}
