//! Builds an answer from its pieces.

pub mod arguments;
pub mod call_ids;
pub mod calls;
pub mod ending;
pub mod growing_answer;
pub mod message;
pub mod passthrough_fields;
pub mod reasoning_details;
pub mod reasoning_splitter;
pub mod usage;
