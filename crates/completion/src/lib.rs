//! One reader for whatever a model endpoint answers: bytes in, one typed completion or error out. Pure: no IO, no clock, no
//! chance. Endpoints differ in what they add, leave out and get wrong; what they mean is read wherever that is certain.
//!
//! * [`AnswerReader`]: takes the bytes of an answer as they arrive, a stream or a whole, and gives the completion
//! * `wire`: events and lines of a stream, and JSON that is not quite JSON
//! * `answer`: what the pieces of an answer add up to: words, reasoning, calls, usage, the end
//! * `written`: calls that a model has written into its words, since its server has no parser for them
//! * [`error`]: what an endpoint says instead of an answer: its [kind](error::ErrorKind), how long to wait, what is refused
//! * [`OfferedTools`]: the tools that a model was offered, by the names it knows them by

mod answer;
pub mod error;
mod offered_tools;
mod reader;
#[cfg(test)]
mod tests;
mod wire;
mod written_calls;

pub use self::{
    answer::{growing_answer::ReadProgress, reasoning_splitter::AddedText},
    offered_tools::OfferedTools,
    reader::{AnswerReader, ReaderSettings, StreamEnd},
};
