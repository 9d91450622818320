//! Drops what a process must not inherit from its guard: open files, and the capabilities of root.

use std::io;
use std::os::fd::RawFd;

use rustix::thread::{CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities};

/// Closes what this process was handed beyond the files up to `last`: whatever the supervisor was itself started with is
/// none of the program's business. Nothing here has opened a file yet.
pub(super) fn close_inherited(last: RawFd) -> io::Result<()> {
    let open: Vec<RawFd> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > last)
        .collect();
    for fd in open {
        // The listing's own file is closed already.
        nix::unistd::close(fd).ok();
    }
    Ok(())
}

/// Drops the capabilities of root, such as inspecting every process and bypassing file permissions. A program of a
/// supervisor that runs as root keeps only that user's id: without new privileges, `exec` gives none back.
pub(super) fn drop_capabilities() -> io::Result<()> {
    let none = CapabilitySet::empty();
    clear_ambient_capability_set()?;
    Ok(set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?)
}
