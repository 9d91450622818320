//! The HTTP client of tools: it connects only where an [`AllowList`] lets it, whatever a name leads to.

use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, Response, header, redirect};
use url::Url;

use crate::allow_list::AllowList;

/// Carries the action id, so that a server that does more than read does it once, however often a runner is lost and
/// another one asks again.
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Time limit for a connection to be made, so that an address where nobody is ends as "nothing was sent" before the
/// time limit of a call passes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Follows no redirects: whoever sends requests does, and checks each.
///
/// # Errors
/// When the TLS library cannot be set up.
pub(crate) fn client(allowed: &Arc<AllowList>, hosts: Arc<dyn Hosts>) -> Result<Client, reqwest::Error> {
    Client::builder()
        .user_agent(concat!("kairo/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        // A proxy would resolve names itself, past the check of addresses.
        .no_proxy()
        .dns_resolver(Arc::new(CheckedResolver { hosts, allowed: Arc::clone(allowed) }))
        .build()
}

/// Reads at most so many bytes, and says whether there was more; what a server sends beyond that is never held in memory.
pub(crate) async fn read_body(response: Response, most: usize) -> Result<(Vec<u8>, bool), String> {
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(explain)?;
        let room = most.saturating_sub(body.len());
        match chunk.get(..room) {
            Some(head) if head.len() < chunk.len() => {
                body.extend_from_slice(head);
                return Ok((body, true));
            }
            Some(_) | None => body.extend_from_slice(&chunk),
        }
    }
    Ok((body, false))
}

/// Returns the target of a redirect; none if the response is the answer.
pub(crate) fn redirect_target(url: &Url, response: &Response) -> Result<Option<Url>, String> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(header::LOCATION) else {
        return Ok(None);
    };
    location
        .to_str()
        .ok()
        .and_then(|location| url.join(location).ok())
        .map(Some)
        .ok_or_else(|| "the server redirects to something that is no url".to_owned())
}

/// The innermost cause says what happened; the outer ones only repeat the URL, which may hold a
/// secret.
pub(crate) fn explain(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    format!("the request failed: {cause}")
}

/// Knows the addresses of hosts.
pub trait Hosts: Debug + Send + Sync {
    /// All addresses that connections to `host` may go to.
    fn find<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The resolver that the machine is configured with, usually DNS.
#[derive(Debug)]
pub(crate) struct SystemResolver;

impl Hosts for SystemResolver {
    fn find<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, 0)).await?.map(|found| found.ip()).collect()) })
    }
}

/// Resolves names and refuses the addresses they must not lead to. Done here, on the very
/// addresses that are connected to, a name cannot change its mind between check and use.
#[derive(Debug)]
struct CheckedResolver {
    hosts: Arc<dyn Hosts>,
    allowed: Arc<AllowList>,
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let hosts = Arc::clone(&self.hosts);
        let allowed = Arc::clone(&self.allowed);
        Box::pin(async move {
            let host = name.as_str().trim_end_matches('.').to_ascii_lowercase();
            let mut usable: Vec<SocketAddr> = Vec::new();
            let mut refusal = format!("{host} has no address");
            for address in hosts.find(&host).await? {
                match allowed.check_address(&host, address) {
                    // Port 0: reqwest puts in the port of the URL.
                    Ok(()) => usable.push((address, 0).into()),
                    Err(reason) => refusal = reason,
                }
            }
            if usable.is_empty() {
                return Err(refusal.into());
            }
            Ok(Box::new(usable.into_iter()) as Addrs)
        })
    }
}
