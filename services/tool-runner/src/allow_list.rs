//! The hosts that `http.get` may read, and the addresses to which a name may lead.
//!
//! A name on the list says nothing about the address behind it, and whoever answers for the name can change that at
//! any time: without the second check, a name pointing at 127.0.0.1 or at a cloud's metadata service would open the
//! inside. So addresses that are not public are listed as such, beside the host.

use std::net::IpAddr;

use url::{Host, Url};

use crate::address::{Network, is_public};

/// One entry of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
enum HostRule {
    /// Any public host.
    Any,
    /// Any public host below this domain.
    Below(String),
    /// This host; with a port, only there.
    Exactly { host: String, port: Option<u16> },
}

/// The hosts that may be read, and the addresses they may lead to besides public ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowList {
    hosts: Vec<HostRule>,
    private: Vec<Network>,
}

impl AllowList {
    /// Parses hosts, `example.com`, `example.com:8080`, `[::1]:80`, `*.example.com` and `*`; and networks, as
    /// [`Network::parse`] does.
    ///
    /// # Errors
    /// Every entry that is none of these, after the key it was given under.
    pub fn parse(allow_hosts: &[String], allow_private: &[String]) -> Result<Self, Vec<String>> {
        let mut mistakes = Vec::new();
        let mut list = Self::default();
        for entry in allow_hosts {
            match parse_rule(entry) {
                Some(rule) => list.hosts.push(rule),
                None => mistakes.push(format!(
                    "allow_hosts: {entry:?} is no host; write example.com, example.com:8080 or *.example.com"
                )),
            }
        }
        for entry in allow_private {
            match Network::parse(entry) {
                Some(network) => list.private.push(network),
                None => mistakes.push(format!(
                    "allow_private: {entry:?} is no address and no network; write 10.1.2.3, 10.1.0.0/16 or fd00::/8"
                )),
            }
        }
        if mistakes.is_empty() { Ok(list) } else { Err(mistakes) }
    }

    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Checks a URL before a connection is made: scheme, host and, if the host is an address,
    /// the address.
    ///
    /// # Errors
    /// Describes the problem without repeating credentials or the query.
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
        let by_name = self.lists_by_name(&name);
        let mut rules = self.hosts.iter().filter(|rule| rule.is_exact() == by_name);
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
    /// When the address is not public, unless it is listed as an exception and `host` is listed without `*`: else any
    /// name of strangers could be made to lead to the exception.
    pub fn check_address(&self, host: &str, address: IpAddr) -> Result<(), String> {
        if is_public(address) {
            return Ok(());
        }
        if !self.private.iter().any(|network| network.holds(address)) {
            return Err(format!(
                "{host} leads to an address that is not public; to allow that, list the address in http.allow_private"
            ));
        }
        if !self.lists_by_name(host) {
            return Err(format!(
                "{host} leads to an address that is not public, and such are reached only through hosts that \
                 http.allow_hosts lists without *"
            ));
        }
        Ok(())
    }

    fn lists_by_name(&self, host: &str) -> bool {
        self.hosts.iter().any(|rule| match rule {
            HostRule::Exactly { host: listed, .. } => listed == host,
            HostRule::Any | HostRule::Below(_) => false,
        })
    }
}

impl HostRule {
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

fn parse_rule(entry: &str) -> Option<HostRule> {
    if entry == "*" {
        return Some(HostRule::Any);
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
        (true, None) => Some(HostRule::Below(host)),
        (true, Some(_)) => None,
        (false, port) => Some(HostRule::Exactly { host, port }),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn list(hosts: &[&str], private: &[&str]) -> AllowList {
        let [hosts, private] = [hosts, private].map(|list| list.iter().map(|&e| e.to_owned()).collect::<Vec<_>>());
        AllowList::parse(&hosts, &private).unwrap()
    }

    fn allows(entries: &[&str], url: &str) -> bool {
        list(entries, &[]).check(&Url::parse(url).unwrap()).is_ok()
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
            ("8.8.8.8:9", "http://8.8.8.8:9/", true),
            ("8.8.8.8:9", "http://8.8.8.8/", false),
            ("[2606:4700::1111]", "http://[2606:4700::1111]:5/", true),
            ("127.0.0.1", "http://127.0.0.1/", false),
            ("[::1]", "http://[::1]/", false),
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
        let hosts = ["https://a/", "a b", "*.a:1", "a*", "", "u@a"].map(str::to_owned);
        let private = ["intranet", "10.0.0.0/33"].map(str::to_owned);
        let mistakes = AllowList::parse(&hosts, &private).unwrap_err();
        let of = |key| mistakes.iter().filter(|mistake| mistake.starts_with(key)).count();
        assert_eq!((of("allow_hosts: "), of("allow_private: ")), (6, 2), "{mistakes:?}");
    }

    #[test]
    fn what_leads_inside_is_listed_twice_the_host_by_its_name_and_the_address() {
        let [inside, beside, outside] = ["10.1.2.3", "10.1.2.4", "93.184.216.34"].map(|a| a.parse::<IpAddr>().unwrap());
        let list = list(&["*", "intranet"], &["10.1.2.3"]);
        assert!(list.check_address("example.com", outside).is_ok());
        assert!(list.check_address("intranet", inside).is_ok());
        let refused = |host, address| list.check_address(host, address).unwrap_err();
        assert!(refused("intranet", beside).contains("allow_private"), "listed by its name alone");
        assert!(refused("example.com", inside).contains("without *"), "any name could be made to lead there");
    }

    #[test]
    fn an_address_in_a_url_is_checked_like_one_behind_a_name() {
        let list = list(&["127.0.0.1", "[::ffff:127.0.0.1]"], &["127.0.0.0/8"]);
        for url in ["http://127.0.0.1/", "http://2130706433/", "http://0x7f.1/", "http://[::ffff:127.0.0.1]/"] {
            assert_eq!(list.check(&Url::parse(url).unwrap()), Ok(()), "{url}");
        }
    }
}
