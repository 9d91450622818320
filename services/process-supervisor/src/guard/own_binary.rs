//! The running binary, which plays several parts: see `main.rs`.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// The running binary, even when a new version has taken its place in the file system.
const SELF_EXE: &str = "/proc/self/exe";

/// This binary, to play another part.
pub(super) fn own_binary_command(part: &str) -> Command {
    let mut command = Command::new(SELF_EXE);
    // Nothing of our environment is handed on: there is none that anybody needs.
    command.arg0(env!("CARGO_PKG_NAME")).arg(part).env_clear();
    command
}
