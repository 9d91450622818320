//! Choosing TCP ports on 127.0.0.1.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::error::LocalError;

/// Below Linux's ephemeral range (32768 and up): a client that keeps dialling a stopped server in
/// that range can connect to itself and so take the port that the server needs again.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// Ports to try before giving up.
const ATTEMPTS: u16 = 200;

/// Ports that this process has chosen. Whoever starts a server there may have to start it again, and
/// nobody listens meanwhile: so the same port of UDP, which none of these servers needs, is held until
/// the process ends, and other processes that choose ports step over it.
static CHOSEN: Mutex<BTreeMap<u16, UdpSocket>> = Mutex::new(BTreeMap::new());

/// A port nobody listens on, and no other process chose here: `preferred`, or the next such one after
/// it; without a preference, one from 20000 to 31999, another on each call.
///
/// A stranger may still take it before it is used; a caller that must not fail tries again.
pub fn free_port(preferred: Option<u16>) -> Result<u16, LocalError> {
    let candidate: Box<dyn Fn(u16) -> u16> = match preferred {
        Some(port) => Box::new(move |step| port.saturating_add(step)),
        None => {
            let start = next_start();
            Box::new(move |step| FIRST + (start.wrapping_add(step)) % COUNT)
        }
    };
    (0..ATTEMPTS)
        .map(&candidate)
        .find(|port| is_free(*port) && claim_port(*port, preferred))
        .ok_or_else(|| LocalError::NoFreePort { first: candidate(0), last: candidate(ATTEMPTS - 1) })
}

/// Returns true if a server could listen on it now. A connection of the past (TIME_WAIT) is no obstacle.
pub(crate) fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Takes a port for this process and returns true if it is free to take: one that it already has, only if that is
/// preferred.
fn claim_port(port: u16, preferred: Option<u16>) -> bool {
    let mut chosen = CHOSEN.lock().unwrap_or_else(PoisonError::into_inner);
    if chosen.contains_key(&port) {
        return preferred == Some(port);
    }
    UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok_and(|held| chosen.insert(port, held).is_none())
}

/// Tests run as parallel processes: the process id spreads them out, the counter separates the
/// calls of one process.
fn next_start() -> u16 {
    static CALLS: AtomicU16 = AtomicU16::new(0);
    let of_process = (std::process::id() % u32::from(COUNT)) as u16;
    let of_call = CALLS.fetch_add(1, Ordering::Relaxed);
    of_process.wrapping_mul(7).wrapping_add(of_call)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_stepped_over() {
        let port = free_port(None).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        let next = free_port(Some(port)).unwrap();
        assert!(next > port, "{next} steps over {port}");
        drop(listener);
    }

    #[test]
    fn a_free_preferred_port_is_kept() {
        let port = free_port(None).unwrap();
        assert_eq!(free_port(Some(port)).unwrap(), port);
    }

    #[test]
    fn a_port_that_another_process_chose_is_stepped_over_while_nobody_listens() {
        let port = free_port(None).unwrap();
        let next = (port + 1..).find(|port| UdpSocket::bind((Ipv4Addr::LOCALHOST, *port)).is_ok()).unwrap();
        let _of_another = UdpSocket::bind((Ipv4Addr::LOCALHOST, next)).unwrap();
        assert!(is_free(next));
        assert!(free_port(Some(next)).unwrap() > next);
        assert_eq!(free_port(Some(port)).unwrap(), port, "one's own is given again");
    }

    #[test]
    fn a_chosen_port_lies_outside_the_ephemeral_range() {
        let port = free_port(None).unwrap();
        assert!((FIRST..FIRST + COUNT).contains(&port));
    }
}
