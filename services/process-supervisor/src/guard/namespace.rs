//! Process ids of a program's own (a PID namespace of Linux).
//!
//! In one of its own, a program sees and signals only what it has started: neither its guard nor the supervisor nor what
//! other agents run. And the kernel kills all that is in it when its first process dies, which it does with its guard,
//! whatever way that ends; nothing that the program does can prevent it.
//!
//! That first process is [`init`], which does nothing but take in what others leave behind, and not the program: Linux
//! keeps from the first process all signals that it has made no provision for, such as being asked to end. The program
//! is started after it by the guard, whose child it is as without a namespace, with an id that counts outside.
//!
//! Root may make one. Others may in a user namespace, where the machine allows that. It has a `/proc` of its own, too,
//! for a program that looked itself up in another would find somebody else.

use std::{
    fs, io,
    os::fd::AsFd,
    process::{Child, Stdio},
};

use kairo_core::process_protection;
use nix::{
    errno::Errno,
    mount::{MsFlags, mount},
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sched::{CloneFlags, unshare},
    sys::{
        prctl,
        signal::{SigSet, Signal},
        signalfd::{SfdFlags, SignalFd},
    },
    unistd::{getegid, geteuid},
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, configure_capability_in_ambient_set, set_capabilities,
};

use super::{
    own_binary::own_binary_command,
    privileges::{close_inherited, drop_capabilities},
    process_tree::{drain_signals, ignore_interruption, reap},
};

/// Beyond standard error.
const STANDARD_FILES: i32 = 2;

/// A namespace of processes, which ends when this is dropped.
pub(super) struct Namespace {
    /// Its standard input is never written to: it ends when nobody can any more.
    _init: Child,
}

impl Namespace {
    /// Makes one, in which all children that this process starts from now on are. It must have no threads.
    ///
    /// # Errors
    /// When the machine does not allow it.
    pub(super) fn enter() -> io::Result<Self> {
        match unshare(CloneFlags::CLONE_NEWPID) {
            Err(Errno::EPERM) => enter_user_namespace()?,
            entered => entered?,
        }
        keep_over_exec(CapabilitySet::SYS_ADMIN)?;
        let init = own_binary_command("init").stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        Ok(Self { _init: init })
    }
}

/// Makes the namespace in one of users, in which this process may do what root may, to what is in there.
fn enter_user_namespace() -> io::Result<()> {
    let user = geteuid();
    let group = getegid();
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWPID)?;
    // These files are root's for as long as this process is closed.
    process_protection::allow_dumping()?;
    let mapped = fs::write("/proc/self/setgroups", "deny")
        .and_then(|()| fs::write("/proc/self/uid_map", format!("{user} {user} 1")))
        .and_then(|()| fs::write("/proc/self/gid_map", format!("{group} {group} 1")));
    process_protection::forbid_dumping()?;
    mapped
}

/// `exec` takes from all but root what is not kept so. The launcher needs it for [`mount_own_proc`], and gives it up.
fn keep_over_exec(capability: CapabilitySet) -> io::Result<()> {
    let held = capabilities(None)?;
    set_capabilities(None, CapabilitySets { inheritable: held.inheritable | capability, ..held })?;
    Ok(configure_capability_in_ambient_set(capability, true)?)
}

/// Puts a `/proc` of this process' own namespace in the place of the machine's, for itself and what it starts.
///
/// # Errors
/// When the machine does not allow it.
pub(super) fn mount_own_proc() -> nix::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    // What is mounted and unmounted on the machine is so in here as well, and never the other way round.
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_SLAVE, None::<&str>)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>)
}

/// Leaves the machine's network for one that has nobody else in it, and no way out, for this process and what it starts.
///
/// # Errors
/// When the machine does not allow it.
pub(super) fn unshare_network() -> nix::Result<()> {
    unshare(CloneFlags::CLONE_NEWNET)
}

/// The first process of a namespace: takes in what has died and whose parent has, until its standard input ends.
///
/// # Errors
/// When the kernel refuses what that needs.
pub fn init() -> io::Result<()> {
    close_inherited(STANDARD_FILES)?;
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    drop_capabilities()?;
    let deaths: SigSet = [Signal::SIGCHLD].into_iter().collect();
    deaths.thread_block()?;
    let deaths = SignalFd::with_flags(&deaths, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
    let guard = io::stdin();
    loop {
        drain_signals(&deaths);
        reap();
        let mut news = [PollFd::new(guard.as_fd(), PollFlags::POLLIN), PollFd::new(deaths.as_fd(), PollFlags::POLLIN)];
        poll(&mut news, PollTimeout::NONE).or_else(ignore_interruption)?;
        if news.first().and_then(PollFd::any).unwrap_or(true) {
            return Ok(());
        }
    }
}

/// Tries to make a namespace, and has a program in it check that it could go on.
///
/// # Errors
/// When it cannot.
pub fn probe() -> io::Result<()> {
    let _namespace = Namespace::enter()?;
    match own_binary_command("probe-inside").stdin(Stdio::null()).status()?.success() {
        true => Ok(()),
        false => Err(io::Error::other("it cannot have a /proc of its own")),
    }
}

/// Runs the program's part of [`probe`].
///
/// # Errors
/// When it cannot go on.
pub fn probe_inside() -> io::Result<()> {
    Ok(mount_own_proc()?)
}

/// Tries to make a network that nobody else is in as well.
///
/// # Errors
/// When it cannot.
pub fn probe_network() -> io::Result<()> {
    let _namespace = Namespace::enter()?;
    match own_binary_command("probe-network-inside").stdin(Stdio::null()).status()?.success() {
        true => Ok(()),
        false => Err(io::Error::other("it cannot have a network of its own")),
    }
}

/// Runs the program's part of [`probe_network`].
///
/// # Errors
/// When it cannot go on.
pub fn probe_network_inside() -> io::Result<()> {
    Ok(unshare_network()?)
}
