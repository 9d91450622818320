//! Whatever is killed, frozen, cut off or wiped: every message is answered once.
//!
//! A fault strikes at a moment that an event tells of (a token of an answer that is being written, a line that a
//! program writes, a delivery), never after a time. Every test ends with [`audit::passes`], which counts over the whole
//! log, and with [`crate::world::World::end`], which looks for processes that were left over.

pub mod audit;
mod chains;
mod frozen;
mod killed;
mod read_model;
mod rebuild;
mod servers;
mod tasks;
mod tools;
mod turn;
mod waiting;
mod wiped;
mod workpiece;
