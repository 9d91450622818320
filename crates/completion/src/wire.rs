//! The bytes of an answer: events of a stream, lines of JSON, or one whole.

pub mod frames;
pub mod lenient_json;
pub mod surrogate_halves;
