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
pub struct Place {
    pub sequence: u64,
    /// The event within its message; [`Place::WHOLE`] for all of them.
    pub position: u32,
}

/// The description of a place in error responses.
pub const PLACE: &str = "a sequence, or the place of an event: <sequence>.<position>";

impl Place {
    const WHOLE: u32 = u32::MAX;

    pub fn whole(sequence: u64) -> Self {
        Self { sequence, position: Self::WHOLE }
    }

    pub fn of(event: &EventJson) -> Self {
        Self { sequence: event.sequence, position: event.position }
    }

    /// Returns true if the place is the end of a whole message, not one event of it.
    pub fn is_whole(self) -> bool {
        self.position == Self::WHOLE
    }

    /// Returns the sequence of the last message whose events all lie at or before this place.
    pub fn complete(self) -> u64 {
        if self.is_whole() { self.sequence } else { self.sequence.saturating_sub(1) }
    }
}

/// Converts a place to its contract type.
impl From<Place> for v1::Place {
    fn from(place: Place) -> Self {
        Self { sequence: place.sequence, position: (!place.is_whole()).then_some(place.position) }
    }
}

impl FromStr for Place {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('.') {
            None => Ok(Self::whole(text.parse()?)),
            Some((sequence, position)) => Ok(Self { sequence: sequence.parse()?, position: position.parse()? }),
        }
    }
}

impl Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.sequence)?;
        if self.is_whole() { Ok(()) } else { write!(out, ".{}", self.position) }
    }
}

impl From<Place> for kairo_read_model::Place {
    fn from(place: Place) -> Self {
        (place.sequence, place.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_what_was_seen() {
        let place = |text: &str| text.parse::<Place>().unwrap();
        assert!(place("7.0") < place("7.1") && place("7.1") < place("7") && place("7") < place("8.0"));
        assert_eq!((place("7.1").complete(), place("7").complete(), place("0").complete()), (6, 7, 0));
        for text in ["7", "7.1", "0"] {
            assert_eq!(place(text).to_string(), text);
        }
        for bad in ["", "x", "7.", ".1", "-1", "1.2.3"] {
            assert!(bad.parse::<Place>().is_err(), "{bad}");
        }
    }
}
