//! Watching an agent: its events and what is said live, folded into a [`picture`](Picture) of what it does right now.
//!
//! Everything but the [`screen`](Screen) is pure, so that the same events give the same picture, whenever and however
//! often they are told.

mod action;
mod doing;
mod happening;
mod output;
mod picture;
mod process;
mod report;
mod screen;

pub use action::Action;
pub use happening::{Happening, Kind, Place, short};
pub use output::{Line, Output, Stream};
pub use picture::{News, Picture};
pub use process::{Ended, Process, Written, how, program_name};
pub use report::report;
pub use screen::Screen;
