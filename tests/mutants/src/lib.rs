//! Mutation tests of replay: deliberate changes to the mind and to the texts that models read, each of which a replay
//! of the logs of Kairo's examples has to find. As one compiled build holds all of them, each behind a switch ("mutant
//! schemata", Untch, Offutt and Harrold 1993), the sources of the mind know nothing of it.
//!
//! * [`source`]: the files there are, and places in them
//! * [`candidates`]: what can be changed; `logic` in what the mind decides, `texts` in what models read
//! * [`wrapping`]: a file with a switch at each of its candidates
//! * [`schemata`]: the folder that is built of wrapped files
//! * [`choosing`]: which mutants are tried, the same each time
//! * [`running`]: what came of each; [`report`] what came of all

pub mod candidates;
pub mod choosing;
mod logic;
pub mod report;
pub mod running;
pub mod schemata;
pub mod source;
mod texts;
mod walk;
mod wording;
pub mod wrapping;

/// The result of a step; errors are texts for whoever runs it at a terminal.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;
