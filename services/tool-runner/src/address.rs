//! Addresses: which belong to the public internet, and networks of those that do not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Azure answers its machines at this address of the public space, with secrets among the answers.
const AZURE_HOST: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// A network: all addresses with the same prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    bits: u128,
    /// Length of the prefix in bits, from the left.
    length: u32,
}

impl Network {
    /// Of `10.1.2.3`, `10.1.0.0/16`, `::1` or `fd00::/8`.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address.parse().ok()?, Some(length.parse().ok()?)),
            None => (text.parse().ok()?, None),
        };
        let all = if matches!(address, IpAddr::V4(_)) { 32 } else { 128 };
        let length: u32 = length.unwrap_or(all);
        (length <= all).then(|| Self { bits: bits(address), length: length + 128 - all })
    }

    /// An address of IPv4 is the same however it is written.
    pub fn holds(&self, address: IpAddr) -> bool {
        let differing = bits(address) ^ self.bits;
        differing.leading_zeros() >= self.length
    }
}

/// IPv4 as it is mapped into IPv6.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// Returns true if an address belongs to the public internet (IANA special-purpose registries).
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let shared = a == 100 && (64..128).contains(&b);
    let protocol = a == 192 && b == 0 && c == 0;
    let relay = a == 192 && b == 88 && c == 99;
    let benchmark = a == 198 && (b == 18 || b == 19);
    !(a == 0
        || a >= 240
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || shared
        || protocol
        || relay
        || benchmark
        || address == AZURE_HOST)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let embedded_v4 = match segments {
        // 64:ff9b::/96 and 2002::/16 lead to the IPv4 address inside them; ::ffff:0:0/96 is one.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some((high, low)),
        [0x2002, high, low, ..] => Some((high, low)),
        [0, 0, 0, 0, 0, 0xffff, high, low] => Some((high, low)),
        _ => None,
    };
    if let Some((high, low)) = embedded_v4 {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        return is_public_v4(Ipv4Addr::new(a, b, c, d));
    }
    let [first, second, ..] = segments;
    // 2000::/3 is all of the unicast space in use; documentation, Teredo and other special
    // blocks are the part of it below 2001:200::, 2001:db8::/32 and 3fff::/20.
    let special = first == 0x2001 && (second < 0x0200 || second == 0x0db8);
    let documentation = first == 0x3fff && second < 0x1000;
    (0x2000..0x4000).contains(&first) && !special && !documentation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks() {
        for (network, address, holds) in [
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3", "10.1.2.2", false),
            ("10.1.2.3", "::ffff:10.1.2.3", true),
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("0.0.0.0/0", "::1", false),
            ("fd00::/8", "fdff::1", true),
            ("fd00::/8", "fe80::1", false),
            ("::/0", "10.1.2.3", true),
            ("::1", "::1", true),
        ] {
            let network = Network::parse(network).unwrap();
            assert_eq!(network.holds(address.parse().unwrap()), holds, "{network:?} {address}");
        }
        for bad in ["", "intranet", "10.0.0.0/33", "::/129", "10.0.0.0/-1", "10.0.0.0/", "10.0.0", "[::1]"] {
            assert_eq!(Network::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn public_addresses() {
        for (address, public) in [
            ("8.8.8.8", true),
            ("0.0.0.0", false),
            ("100.64.0.1", false),
            ("169.254.169.254", false),
            ("172.16.0.1", false),
            ("192.0.2.1", false),
            ("198.18.0.1", false),
            ("168.63.129.16", false),
            ("192.0.0.192", false),
            ("100.100.100.200", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("2606:4700::1111", true),
            ("::", false),
            ("::1", false),
            ("fe80::1", false),
            ("fd00::1", false),
            ("fd00:ec2::254", false),
            ("::7f00:1", false),
            ("64:ff9b:1::7f00:1", false),
            ("::ffff:169.254.169.254", false),
            ("ff02::1", false),
            ("2001:db8::1", false),
            ("64:ff9b::7f00:1", false),
            ("64:ff9b::808:808", true),
            ("2002:7f00:1::", false),
            ("::ffff:8.8.8.8", true),
        ] {
            assert_eq!(is_public(address.parse().unwrap()), public, "{address}");
        }
    }
}
