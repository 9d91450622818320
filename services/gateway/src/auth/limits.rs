//! How often a key may be used, and how often a machine may come without one.

use std::{net::IpAddr, num::NonZeroU32, time::Duration};

use governor::{
    DefaultKeyedRateLimiter, Quota, RateLimiter,
    clock::{Clock, DefaultClock},
};

use super::Caller;

/// Counters after which those that are full again are forgotten.
const MANY: usize = 10_000;

/// Whose requests are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Whose {
    Administrator,
    Key(String),
    /// Whoever an issuer knows as this.
    Bearer(String),
    /// Of whoever brings no key that is in force; of IPv6 the network, of which one machine has all.
    Peer(IpAddr),
    /// Of whoever asks for what is open to everybody: what somebody there does with keys does not count.
    Visitor(IpAddr),
}

impl Whose {
    /// None for somebody who may do anything on this machine in any case.
    pub fn of(caller: &Caller) -> Option<Self> {
        match caller {
            Caller::Anyone => None,
            Caller::Administrator => Some(Self::Administrator),
            Caller::Holder(held) => Some(Self::Key(held.key.key_id.clone())),
            Caller::Bearer(token) => Some(Self::Bearer(token.principal().id)),
        }
    }

    pub fn peer(address: IpAddr) -> Self {
        Self::Peer(machine(address))
    }

    pub fn visitor(address: IpAddr) -> Self {
        Self::Visitor(machine(address))
    }
}

fn machine(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            [a, b, c, d, 0, 0, 0, 0].into()
        }
        address => address,
    }
}

/// A bucket of requests for each of them, refilled evenly.
pub struct Limits {
    buckets: DefaultKeyedRateLimiter<Whose>,
    clock: DefaultClock,
}

impl Limits {
    pub fn new(per_second: u32, burst: u32) -> Self {
        // The configuration has neither at 0.
        let [per_second, burst] = [per_second, burst].map(|count| NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN));
        let quota = Quota::per_second(per_second).allow_burst(burst);
        Self { buckets: RateLimiter::keyed(quota), clock: DefaultClock::default() }
    }

    /// Counts a request; the error is the wait for the next that is allowed.
    pub fn count(&self, whose: Whose) -> Result<(), Duration> {
        if self.buckets.len() > MANY {
            self.buckets.retain_recent();
        }
        self.buckets.check_key(&whose).map_err(|until| until.wait_time_from(self.clock.now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_a_bucket_of_their_own() {
        let limits = Limits::new(1, 2);
        let key = |id: &str| Whose::Key(id.to_owned());
        assert_eq!([limits.count(key("a")), limits.count(key("a")), limits.count(key("b"))], [Ok(()); 3]);
        let wait = limits.count(key("a")).unwrap_err();
        assert!(wait > Duration::ZERO && wait <= Duration::from_secs(1), "{wait:?}");
    }

    #[test]
    fn one_machine_has_many_addresses_of_its_network() {
        let peer = |text: &str| Whose::peer(text.parse().unwrap());
        assert_eq!(peer("2001:db8::1"), peer("2001:db8::2"));
        assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
        assert_eq!(peer("::ffff:192.0.2.1"), peer("192.0.2.1"));
        assert_ne!(peer("192.0.2.1"), peer("192.0.2.2"));
    }
}
