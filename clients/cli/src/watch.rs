//! Watching an agent: its events and what is said live, folded into a [`picture`](Picture) of what it does right now.
//!
//! Everything but the [`screen`](Screen) is pure, so that the same events give the same picture, whenever and however
//! often they are told.

mod action;
mod happening;
mod in_flight;
mod output;
mod picture;
mod process;
mod report;
mod screen;

pub use action::Action;
pub use happening::{EventPosition, Happening, HappeningKind, short_id};
pub use output::{OutputLine, OutputStream, ProcessOutput};
pub use picture::{News, Picture};
pub use process::{AgentProcess, ProcessEnd, ProcessLine, describe_end, program_name};
pub use report::report;
pub use screen::Screen;
