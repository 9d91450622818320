//! Groups requests, streams and transfers by holder, and limits the request rate of each.
//!
//! A key, or the bearer of a token, has a share of everything; if it stands for many users, each user whom a request
//! names has a share of that share (`kairo_core::sharing`). A caller on this machine who needs no key counts as the
//! user they name.

use std::{
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use kairo_core::sharing::{QuotaHolder, permit_pool::Permit, rate::SharedRateLimiter};

use super::Caller;
use crate::{problem::Problem, state::Gateway};

/// In the place of a user whom a body may name that was not read yet. No user has this name.
pub const UNREAD: &str = "?";

/// Returns the holder a caller's requests count for. A caller on this machine without a key is grouped by the user they
/// name.
pub fn holder_for_caller(caller: &Caller, user: Option<&str>) -> QuotaHolder {
    let of_many = |group: String| match caller.user() {
        Some(_) => QuotaHolder::for_group(group),
        None => QuotaHolder::for_group(group).with_member(user),
    };
    match caller {
        Caller::Loopback(_) => QuotaHolder::for_group(format!("local {}", user.unwrap_or_default())),
        Caller::Administrator => of_many("administrator".to_owned()),
        Caller::Holder(held) => of_many(format!("key {}", held.key.key_id)),
        Caller::Bearer(token) => of_many(format!("bearer {}", token.principal().id)),
    }
}

/// Returns the holder for an address without a valid key: for IPv6 its /64 network, since one machine has all of it.
pub fn holder_for_peer(address: IpAddr) -> QuotaHolder {
    QuotaHolder::for_group(format!("peer {}", machine_address(address)))
}

/// Returns the holder for an address that asks for public content, counted apart from its requests with keys.
pub fn holder_for_visitor(address: IpAddr) -> QuotaHolder {
    QuotaHolder::for_group(format!("visitor {}", machine_address(address)))
}

fn machine_address(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            [a, b, c, d, 0, 0, 0, 0].into()
        }
        address => address,
    }
}

/// The request limit of each key, in requests per second, of which each user has a share.
pub struct RequestRates(SharedRateLimiter);

impl RequestRates {
    pub fn new(per_second: u32, burst: u32) -> Self {
        Self(SharedRateLimiter::new(per_second, burst))
    }

    /// Counts a request; the error is the wait for the next that is allowed.
    pub fn count_request(&self, holder: &QuotaHolder) -> Result<(), Duration> {
        self.0.count_request(holder, Instant::now())
    }

    /// Counts a request of a caller and the user they speak for. A caller on this machine who needs no key is not
    /// counted.
    pub fn count_caller(&self, caller: &Caller, user: Option<&str>) -> Result<(), Problem> {
        match caller {
            Caller::Loopback(_) => Ok(()),
            caller => self.count_request(&holder_for_caller(caller, user)).map_err(Problem::too_many_requests),
        }
    }

    /// Counts what was counted for one user of a key as another's.
    fn reassign_count(&self, caller: &Caller, from: &str, to: Option<&str>) -> Result<(), Problem> {
        let from = holder_for_caller(caller, Some(from));
        let to = holder_for_caller(caller, to);
        match caller {
            Caller::Loopback(_) => Ok(()),
            _ => self.0.transfer_request(&from, &to, Instant::now()).map_err(Problem::too_many_requests),
        }
    }
}

/// A request that is dealt with. Where its body may say whom it speaks for, it is counted as somebody's who is not known yet, and as
/// theirs when that was read.
#[derive(Clone)]
pub struct InFlightRequest(Arc<InFlightState>);

struct InFlightState {
    gateway: Gateway,
    caller: Caller,
    is_named: AtomicBool,
    /// Until it was answered.
    permit: Mutex<Option<Permit>>,
}

impl InFlightRequest {
    pub fn new(gateway: &Gateway, caller: &Caller, is_named: bool, permit: Permit) -> Self {
        let gateway = gateway.clone();
        let caller = caller.clone();
        let permit = Mutex::new(Some(permit));
        Self(Arc::new(InFlightState { gateway, caller, is_named: is_named.into(), permit }))
    }

    /// Counts it as this user's, if it was somebody's who was not known.
    ///
    /// # Errors
    /// When they have used their share.
    pub fn attribute_to(&self, user: Option<&str>) -> Result<(), Problem> {
        let InFlightState { gateway, caller, is_named, .. } = &*self.0;
        if is_named.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        gateway.limits.reassign_count(caller, UNREAD, user)?;
        match self.lock_permit().as_mut() {
            Some(permit) => {
                permit.transfer_to(&holder_for_caller(caller, user)).map_err(Gateway::request_permit_problem)
            }
            None => Ok(()),
        }
    }

    /// It was answered.
    pub fn release_permit(&self) {
        drop(self.lock_permit().take());
    }

    fn lock_permit(&self) -> MutexGuard<'_, Option<Permit>> {
        self.0.permit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_a_bucket_of_their_own() {
        let limits = RequestRates::new(1, 2);
        let key = QuotaHolder::for_group;
        assert_eq!(
            [limits.count_request(&key("a")), limits.count_request(&key("a")), limits.count_request(&key("b"))],
            [Ok(()); 3]
        );
        let wait = limits.count_request(&key("a")).unwrap_err();
        assert!(wait > Duration::ZERO && wait <= Duration::from_secs(1), "{wait:?}");
    }

    #[test]
    fn one_machine_has_many_addresses_of_its_network() {
        let peer = |text: &str| holder_for_peer(text.parse().unwrap());
        assert_eq!(peer("2001:db8::1"), peer("2001:db8::2"));
        assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
        assert_eq!(peer("::ffff:192.0.2.1"), peer("192.0.2.1"));
        assert_ne!(peer("192.0.2.1"), peer("192.0.2.2"));
    }
}
