//! Closes this process to other programs of the same user.
//!
//! Secrets reach a service in its environment and stand in its memory. Programs that agents have run, MCP servers and
//! whatever else shares the user could read both in `/proc`, or attach to it as a debugger does. The kernel keeps them
//! out of a process that it may not dump, except for those that may read everything anyway (`CAP_SYS_PTRACE`).
//!
//! A program that is started by `exec` is open again, so each binary closes itself, and does so before anything else.

use std::io;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// Closes this process: its environment, memory and open files. There is no core dump of it either.
///
/// # Errors
/// When the kernel refuses.
pub fn forbid_dumping() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Opens it again, for whoever debugs it.
///
/// # Errors
/// When the kernel refuses.
pub fn allow_dumping() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::Dumpable)?)
}
