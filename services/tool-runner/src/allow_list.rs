//! Which hosts `http.get` may read, and which addresses a name may lead to.
//!
//! A name on the list says nothing about the address behind it: without the second check, a
//! public name pointing at 127.0.0.1 or at a cloud's metadata service would open the inside.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// One entry of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Rule {
    /// Any public host.
    Any,
    /// Any public host below this domain.
    Below(String),
    /// This host, wherever it leads; with a port, only there.
    Exactly { host: String, port: Option<u16> },
}

/// The hosts that may be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowList(Vec<Rule>);

impl AllowList {
    /// Parses `example.com`, `example.com:8080`, `[::1]:80`, `*.example.com` and `*`.
    ///
    /// # Errors
    /// Every entry that is none of these.
    pub fn parse(entries: &[String]) -> Result<Self, Vec<String>> {
        let (rules, errors): (Vec<_>, Vec<_>) = entries
            .iter()
            .map(|entry| {
                parse_rule(entry).ok_or_else(|| {
                    format!("{entry:?} is no host; write example.com, example.com:8080 or *.example.com")
                })
            })
            .partition(Result::is_ok);
        if errors.is_empty() {
            Ok(Self(rules.into_iter().flatten().collect()))
        } else {
            Err(errors.into_iter().filter_map(Result::err).collect())
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks a URL before a connection is made: scheme, host and, if the host is an address,
    /// the address.
    ///
    /// # Errors
    /// What is wrong with it, without repeating credentials or the query.
    pub fn check(&self, url: &Url) -> Result<(), String> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("{}: only http and https are read", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("a url with a user name or password is not read".to_owned());
        }
        let host = url.host().ok_or("the url has no host")?;
        let name = host_name(&host);
        let port = url.port_or_known_default();
        // A host listed by name is reached only as listed: `*` beside `intranet:8080` must not
        // open the other ports of a host that may lead inside.
        let by_name = self.lists(&name);
        let mut rules = self.0.iter().filter(|rule| rule.is_exact() == by_name);
        if !rules.any(|rule| rule.covers(&name, port)) {
            return Err(format!("the host {name} is not allowed; add it to http.allow_hosts of the tool-runner"));
        }
        match host {
            Host::Ipv4(address) => self.check_address(&name, address.into()),
            Host::Ipv6(address) => self.check_address(&name, address.into()),
            Host::Domain(_) => Ok(()),
        }
    }

    /// Checks an address that `host` resolved to.
    ///
    /// # Errors
    /// When the address is not public and `host` is not listed by name.
    pub fn check_address(&self, host: &str, address: IpAddr) -> Result<(), String> {
        if self.lists(host) || is_public(address) {
            Ok(())
        } else {
            Err(format!(
                "{host} leads to an address that is not public; list it by name in http.allow_hosts to allow that"
            ))
        }
    }

    fn lists(&self, host: &str) -> bool {
        self.0.iter().any(|rule| match rule {
            Rule::Exactly { host: listed, .. } => listed == host,
            Rule::Any | Rule::Below(_) => false,
        })
    }
}

impl Rule {
    fn is_exact(&self) -> bool {
        matches!(self, Self::Exactly { .. })
    }

    fn covers(&self, host: &str, port: Option<u16>) -> bool {
        match self {
            Self::Any => true,
            Self::Below(domain) => {
                host.strip_suffix(domain.as_str()).is_some_and(|rest| rest.ends_with('.') && rest.len() > 1)
            }
            Self::Exactly { host: listed, port: only } => listed == host && (only.is_none() || *only == port),
        }
    }
}

fn parse_rule(entry: &str) -> Option<Rule> {
    if entry == "*" {
        return Some(Rule::Any);
    }
    let (below, rest) = match entry.strip_prefix("*.") {
        Some(rest) => (true, rest),
        None => (false, entry),
    };
    if rest.contains(['*', '/', '@', '?', '#', '\\']) || rest.trim() != rest {
        return None;
    }
    // The parser of URLs normalises upper case, IDNs and odd spellings of addresses, so that
    // what is compared later was spelled by the same rules.
    let url = Url::parse(&format!("http://{rest}/")).ok()?;
    let host = host_name(&url.host()?);
    let explicit_port = rest.rsplit_once(':').filter(|_| !rest.ends_with(']'));
    let port = explicit_port.and(url.port_or_known_default());
    match (below, port) {
        (true, None) => Some(Rule::Below(host)),
        (true, Some(_)) => None,
        (false, port) => Some(Rule::Exactly { host, port }),
    }
}

/// Without the brackets of an IPv6 address and the final dot of an absolute name.
fn host_name(host: &Host<&str>) -> String {
    match host {
        Host::Domain(name) => name.trim_end_matches('.').to_ascii_lowercase(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => address.to_string(),
    }
}

/// Whether an address belongs to the public internet (IANA special-purpose registries).
fn is_public(address: IpAddr) -> bool {
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
        || benchmark)
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

    fn list(entries: &[&str]) -> AllowList {
        let entries: Vec<String> = entries.iter().map(|e| (*e).to_owned()).collect();
        AllowList::parse(&entries).unwrap()
    }

    fn allows(entries: &[&str], url: &str) -> bool {
        list(entries).check(&Url::parse(url).unwrap()).is_ok()
    }

    #[test]
    fn hosts() {
        for (entry, url, allowed) in [
            ("example.com", "https://example.com/a?b", true),
            ("example.com", "https://EXAMPLE.com./", true),
            ("Example.COM", "http://example.com:8080/", true),
            ("example.com", "https://www.example.com/", false),
            ("example.com", "https://example.com.evil.net/", false),
            ("example.com", "https://example.com@evil.net/", false),
            ("example.com", "https://user:pw@example.com/", false),
            ("example.com", "ftp://example.com/", false),
            ("example.com:8080", "http://example.com:8080/", true),
            ("example.com:8080", "http://example.com/", false),
            ("example.com:80", "http://example.com/", true),
            ("*.example.com", "https://a.example.com/", true),
            ("*.example.com", "https://a.b.example.com/", true),
            ("*.example.com", "https://example.com/", false),
            ("*.example.com", "https://badexample.com/", false),
            ("*", "https://example.com/", true),
            ("*", "http://127.0.0.1/", false),
            ("*", "http://2130706433/", false),
            ("*", "http://[::1]/", false),
            ("*", "http://[::ffff:10.0.0.1]/", false),
            ("127.0.0.1:9", "http://127.0.0.1:9/", true),
            ("127.0.0.1:9", "http://127.0.0.1/", false),
            ("[::1]", "http://[::1]:5/", true),
        ] {
            assert_eq!(allows(&[entry], url), allowed, "{entry} {url}");
        }
        assert!(!allows(&[], "https://example.com/"));
    }

    #[test]
    fn a_host_listed_by_name_is_reached_only_as_listed() {
        assert!(!allows(&["*", "intranet:8080"], "http://intranet/"));
        assert!(allows(&["*", "intranet:8080"], "http://intranet:8080/"));
        assert!(allows(&["*", "intranet:8080"], "http://example.com/"));
    }

    #[test]
    fn mistakes_are_all_told() {
        let entries = ["https://a/", "a b", "*.a:1", "a*", "", "u@a"].map(str::to_owned);
        assert_eq!(AllowList::parse(&entries).unwrap_err().len(), 6);
    }

    #[test]
    fn only_a_host_listed_by_name_may_lead_inside() {
        let inside: IpAddr = "10.1.2.3".parse().unwrap();
        let outside: IpAddr = "93.184.216.34".parse().unwrap();
        let any = list(&["*", "intranet"]);
        assert!(any.check_address("example.com", outside).is_ok());
        assert!(any.check_address("example.com", inside).is_err());
        assert!(any.check_address("intranet", inside).is_ok());
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
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("2606:4700::1111", true),
            ("::", false),
            ("::1", false),
            ("fe80::1", false),
            ("fd00::1", false),
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
