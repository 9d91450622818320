//! Filters the system calls that a program may make, as far as the kernel can (seccomp).
//!
//! Landlock checks TCP connections that are made the usual way. The filter refuses ways around it: other families and
//! protocols of sockets, such as multipath TCP, and data that is sent with the request to connect. It also refuses
//! calls that give a program power over the kernel and that no agent needs: user namespaces, io_uring, which a filter
//! does not see into, and keyrings.

use std::{
    collections::BTreeMap,
    env::consts::ARCH,
    net::{Ipv4Addr, SocketAddrV4},
    num::NonZeroU32,
};

use nix::{
    errno::Errno,
    libc,
    sched::{CloneFlags, unshare},
};
use rustix::net::{AddressFamily, Protocol, SendFlags, SocketType, sendto, socket};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen as Width, SeccompCmpOp as Op,
    SeccompCondition as Condition, SeccompFilter, SeccompRule as Rule, TargetArch, apply_filter, sock_filter,
};

use crate::protocol::Sockets;

/// Refused whatever the arguments are.
const REFUSED: [i64; 10] = [
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
];

/// The part of a socket's type that is no flag.
const TYPE: u64 = 0xf;

/// From here on x86-64 numbers the calls of its x32 programs, which a filter takes for others.
const X32: u32 = 0x4000_0000;

/// The reason why a program's system calls could not be restricted.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    #[error("the filter could not be made: {0}")]
    Make(#[from] BackendError),
    #[error("the kernel did not take the filter: {0}")]
    Take(#[from] seccompiler::Error),
    /// The filter is there, and this got through.
    #[error("{0} is not refused")]
    Through(&'static str),
}

/// Restricts this process, and all that come from it, for good. Its architecture's own programs alone go on running: those of a 32-bit
/// one are killed.
///
/// # Errors
/// When the kernel does not filter system calls.
pub(super) fn restrict(sockets: Sockets) -> Result<(), FilterError> {
    // A library that is told that there is no such call takes the older one, whose flags a filter can see.
    apply_filter(&build_filter([(libc::SYS_clone3, Vec::new())].into(), Errno::ENOSYS)?)?;
    Ok(apply_filter(&build_filter(rules(sockets)?, Errno::EACCES)?)?)
}

/// Restricts this process, and tries what is refused.
///
/// # Errors
/// When anything of it gets through, or the kernel does not filter system calls.
pub fn probe() -> Result<(), FilterError> {
    restrict(Sockets::Ports)?;
    let multipath = NonZeroU32::new(libc::IPPROTO_MPTCP as u32).map(Protocol::from_raw);
    let opened = |family, kind, protocol| socket(family, kind, protocol).err();
    let nowhere = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9);
    let at_once = SendFlags::from_bits_retain(libc::MSG_FASTOPEN as u32);
    let sent = socket(AddressFamily::INET, SocketType::STREAM, None)
        .and_then(|socket| sendto(&socket, b"x", at_once, &nowhere).map(drop))
        .err();
    let tried = [
        ("multipath TCP", opened(AddressFamily::INET, SocketType::STREAM, multipath)),
        ("multipath TCP over IPv6", opened(AddressFamily::INET6, SocketType::STREAM, multipath)),
        ("a raw socket", opened(AddressFamily::INET, SocketType::RAW, None)),
        ("sending with the request to connect", sent),
        ("a user namespace", unshare(CloneFlags::CLONE_NEWUSER).err().map(|error| error as i32).map(to_rustix_errno)),
    ];
    restrict(Sockets::None)?;
    let without = [("TCP", opened(AddressFamily::INET, SocketType::STREAM, None))];
    match tried.into_iter().chain(without).find(|(_, refused)| *refused != Some(rustix::io::Errno::ACCESS)) {
        Some((what, _)) => Err(FilterError::Through(what)),
        None => Ok(()),
    }
}

fn to_rustix_errno(error: i32) -> rustix::io::Errno {
    rustix::io::Errno::from_raw_os_error(error)
}

/// Builds a filter that fails these calls with `error` and allows all others.
fn build_filter(refused: BTreeMap<i64, Vec<Rule>>, error: Errno) -> Result<BpfProgram, BackendError> {
    let errno = |error: Errno| SeccompAction::Errno(error as u32);
    let filter = SeccompFilter::new(refused, SeccompAction::Allow, errno(error), TargetArch::try_from(ARCH)?)?;
    let program = BpfProgram::try_from(filter)?;
    Ok(if cfg!(target_arch = "x86_64") { without_x32().into_iter().chain(program).collect() } else { program })
}

/// Builds the instructions that fail every x32 call as if it did not exist.
fn without_x32() -> [sock_filter; 3] {
    let instruction = |code: u32, jf, k| sock_filter { code: code as u16, jt: 0, jf, k };
    [
        // The number of the call comes first in what a filter sees.
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 1, X32),
        instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | Errno::ENOSYS as u32),
    ]
}

fn rules(sockets: Sockets) -> Result<BTreeMap<i64, Vec<Rule>>, BackendError> {
    let new_user = || has_flag(0, CloneFlags::CLONE_NEWUSER.bits() as u64);
    let mut rules: BTreeMap<i64, Vec<Rule>> = REFUSED.into_iter().map(|call| (call, Vec::new())).collect();
    rules.insert(libc::SYS_unshare, vec![Rule::new(vec![new_user()?])?]);
    rules.insert(libc::SYS_clone, vec![Rule::new(vec![new_user()?])?]);
    let opened = match sockets {
        Sockets::Any => return Ok(rules),
        Sockets::Ports => port_socket_rules()?,
        Sockets::None => vec![Rule::new(is_none_of(0, &[libc::AF_UNIX])?)?],
    };
    rules.insert(libc::SYS_socket, opened);
    // With the flag, sending connects.
    for (call, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
        rules.insert(call, vec![Rule::new(vec![has_flag(flags, libc::MSG_FASTOPEN as u64)?])?]);
    }
    Ok(rules)
}

/// Sockets of the machine, of TCP, whose ports Landlock restricts, and of UDP, and no others.
fn port_socket_rules() -> Result<Vec<Rule>, BackendError> {
    let is_type = |kind: i32| Condition::new(1, Width::Dword, Op::MaskedEq(TYPE), kind as u64);
    let of_machine = || is_none_of(0, &[libc::AF_UNIX]);
    let of_another_protocol = |kind, protocol| -> Result<Rule, BackendError> {
        let mut conditions = of_machine()?;
        conditions.push(is_type(kind)?);
        conditions.extend(is_none_of(2, &[0, protocol])?);
        Rule::new(conditions)
    };
    let mut rules = vec![
        Rule::new(is_none_of(0, &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6])?)?,
        of_another_protocol(libc::SOCK_STREAM, libc::IPPROTO_TCP)?,
        of_another_protocol(libc::SOCK_DGRAM, libc::IPPROTO_UDP)?,
    ];
    let known = [libc::SOCK_STREAM, libc::SOCK_DGRAM];
    for kind in (0..=TYPE as i32).filter(|kind| !known.contains(kind)) {
        let mut conditions = of_machine()?;
        conditions.push(is_type(kind)?);
        rules.push(Rule::new(conditions)?);
    }
    Ok(rules)
}

/// That an argument has this flag.
fn has_flag(argument: u8, flag: u64) -> Result<Condition, BackendError> {
    Condition::new(argument, Width::Dword, Op::MaskedEq(flag), flag)
}

/// That an argument is none of these.
fn is_none_of(argument: u8, values: &[i32]) -> Result<Vec<Condition>, BackendError> {
    values.iter().map(|value| Condition::new(argument, Width::Dword, Op::Ne, *value as u64)).collect()
}
