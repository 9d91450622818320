//! The tools that need no server of their own.

mod calendar;
pub mod date_calc;
mod document;
pub mod http_get;
pub mod mail;
pub mod memory;
pub mod now;
#[cfg(test)]
mod reference;
mod team;
pub mod web_search;
pub mod workspace;

use jiff::tz::TimeZone;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::tool::ToolError;

/// Reads arguments that were checked against the schema; what is still wrong is the caller's.
pub(crate) fn parse_args<T: DeserializeOwned>(args: Value) -> Result<T, ToolError> {
    serde_json::from_value(args).map_err(|error| ToolError::invalid_arguments(error.to_string()))
}

/// An IANA time zone by name, from the system or, where it has none, from the copy built in.
fn time_zone(name: &str) -> Result<TimeZone, ToolError> {
    TimeZone::get(name).map_err(|_| {
        ToolError::invalid_arguments(format!(
            "/time_zone: {name:?} is no IANA time zone; write one such as Europe/Berlin or UTC"
        ))
    })
}
