//! The bytes of an answer: events of a stream, lines of JSON, or one whole.

pub mod frames;
pub mod halves;
pub mod json;
