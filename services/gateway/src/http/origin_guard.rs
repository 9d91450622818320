//! Keeping web pages out. On this machine nobody is asked who they are, so a page open in a browser on it must not be
//! able to speak for its user: neither across sites, but for those that the operator named (`gateway.cors_origins`), nor
//! by giving this address a name of its own (DNS rebinding).

use axum::{
    extract::{Request, State},
    http::{HeaderMap, header, uri::Authority},
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::Gateway;
use crate::problem::Problem;

/// Turns away what a web page of another site sent.
pub async fn reject_foreign_pages(State(gateway): State<Gateway>, request: Request, next: Next) -> Response {
    let authority = request.uri().authority().map(Authority::as_str);
    match refusal_reason(authority, request.headers(), &gateway.config.allowed_hosts, &gateway.config.cors_origins) {
        Some(reason) => Problem::forbidden(reason).into_response(),
        None => next.run(request).await,
    }
}

/// Returns the reason to refuse these headers, if any. `authority` is the host as HTTP/2 names it. `names` are those
/// that the gateway may be called by, besides its address, and `sites` the origins of pages that are let in.
fn refusal_reason(
    authority: Option<&str>,
    headers: &HeaderMap,
    names: &[String],
    sites: &[String],
) -> Option<&'static str> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let host = authority.or_else(|| text(header::HOST));
    if host.is_some_and(|host| !is_allowed_host(host, names)) {
        return Some("call the gateway by its address, localhost, or a name that gateway.allowed_hosts lists");
    }
    let origin = text(header::ORIGIN)?;
    if sites.iter().any(|site| site == origin) {
        return None;
    }
    let site = origin.split_once("://").map(|(_, site)| site);
    (site.is_none() || site != host).then_some("web pages of other sites may not use the gateway")
}

/// Returns true if a host, with or without a port, is an address or one of the names.
fn is_allowed_host(host: &str, names: &[String]) -> bool {
    let port = |text: &str| text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    if let Some((address, rest)) = host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        return address.parse::<std::net::Ipv6Addr>().is_ok() && port(rest);
    }
    let name = host.split(':').next().unwrap_or_default();
    let rest = host.strip_prefix(name).unwrap_or_default();
    let listed = || names.iter().any(|listed| name.eq_ignore_ascii_case(listed));
    let is_own = name.eq_ignore_ascii_case("localhost") || name.parse::<std::net::Ipv4Addr>().is_ok() || listed();
    is_own && port(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(host: &str, origin: Option<&str>, names: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        let sites = ["https://app.example".to_owned()];
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let refused = refusal_reason(None, &headers, &names, &sites).is_some();
        // HTTP/2 names the host elsewhere, and that is what counts.
        let host = headers.insert(header::HOST, "127.0.0.1".parse().unwrap());
        let host = host.as_ref().map(|host| host.to_str().unwrap());
        assert_eq!(refusal_reason(host, &headers, &names, &sites).is_some(), refused);
        refused
    }

    #[test]
    fn only_an_address_or_a_name_that_is_listed_will_do() {
        let names = ["kairo.example"];
        for host in ["127.0.0.1:7420", "localhost", "LocalHost:7420", "[::1]:7420", "[::1]"] {
            assert!(!refused(host, None, &[]) && !refused(host, None, &names), "{host}");
        }
        for host in ["evil.example:7420", "localhost.evil.example", "127.0.0.1.evil.example", "[::1].x", "", "a@::1"] {
            assert!(refused(host, None, &[]) && refused(host, None, &names), "{host}");
        }
        for host in ["kairo.example", "Kairo.Example:443"] {
            assert!(refused(host, None, &[]) && !refused(host, None, &names), "{host}");
        }
        for host in ["x.kairo.example", "kairo.example.x", "kairo.example:x", "kairo.example."] {
            assert!(refused(host, None, &names), "{host}");
        }
    }

    #[test]
    fn a_page_may_only_call_where_it_came_from() {
        for names in [&[][..], &["kairo.example"]] {
            assert!(!refused("127.0.0.1:7420", Some("http://127.0.0.1:7420"), names));
            for origin in ["http://127.0.0.1:7421", "https://evil.example", "null", ""] {
                assert!(refused("127.0.0.1:7420", Some(origin), names), "{origin}");
            }
            assert!(!refused("127.0.0.1:7420", Some("https://app.example"), names));
            assert!(refused("127.0.0.1:7420", Some("http://app.example"), names));
        }
        assert!(!refused("kairo.example", Some("https://kairo.example"), &["kairo.example"]));
    }
}
