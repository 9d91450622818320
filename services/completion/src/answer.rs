//! Builds an answer from its pieces.

pub mod arguments;
pub mod calls;
pub mod details;
pub mod ending;
pub mod growing;
pub mod ids;
pub mod message;
pub mod passed_back;
pub mod thinking;
pub mod usage;
