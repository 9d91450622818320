//! `http.get`: reads a URL of an allowed host. Not offered unless hosts are configured.

use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use kairo_core::outside;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, Response, header, redirect};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use url::Url;

use super::parse_args;
use crate::allow_list::AllowList;
use crate::config::HttpConfig;
use crate::tool::{CallContext, CallResult, Executor, Tool, ToolError, ToolSpec};

/// The tool's name.
pub const NAME: &str = "http.get";

/// The headers of a response that say something about its content.
const REPORTED_HEADERS: [header::HeaderName; 9] = [
    header::CACHE_CONTROL,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::DATE,
    header::ETAG,
    header::LAST_MODIFIED,
    header::LOCATION,
    header::RETRY_AFTER,
];
/// Carries the action id, so that a server that does more than read does it once, however often a runner is lost and
/// another one asks again.
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Longest value of a header that is passed on, in characters.
const MAX_HEADER_CHARS: usize = 1024;

/// The tool with its client.
#[derive(Debug)]
pub struct HttpGet {
    spec: ToolSpec,
    client: Client,
    allowed: Arc<AllowList>,
    max_body_bytes: usize,
    max_redirects: usize,
}

#[derive(Deserialize)]
struct Args {
    url: String,
}

impl HttpGet {
    /// Finds hosts as the machine does.
    ///
    /// # Errors
    /// When the TLS library cannot be set up.
    pub fn new(config: &HttpConfig, allowed: AllowList) -> Result<Self, reqwest::Error> {
        Self::finding_hosts(config, allowed, Arc::new(System))
    }

    /// Asks `hosts` for the addresses of a host.
    ///
    /// # Errors
    /// As [`HttpGet::new`].
    pub fn finding_hosts(
        config: &HttpConfig,
        allowed: AllowList,
        hosts: Arc<dyn Hosts>,
    ) -> Result<Self, reqwest::Error> {
        let allowed = Arc::new(allowed);
        let client = Client::builder()
            .user_agent(concat!("kairo/", env!("CARGO_PKG_VERSION")))
            // Redirects are followed by hand, each checked; a proxy would resolve names itself,
            // past the check of addresses.
            .redirect(redirect::Policy::none())
            .no_proxy()
            .dns_resolver(Arc::new(CheckedResolver { hosts, allowed: Arc::clone(&allowed) }))
            .build()?;
        Ok(Self {
            spec: ToolSpec {
                name: NAME.to_owned(),
                description: format!(
                    "Reads a URL with HTTP GET. Only these hosts are allowed: {}. At most {} bytes of the body are returned.",
                    config.allow_hosts.join(", "),
                    config.max_body_bytes
                ),
                schema: schema(),
                idempotent: true,
                timeout: Duration::from_millis(config.timeout_ms),
                executor: Executor::ToolRunner,
                needs_approval: false,
                needs_approval_with: Vec::new(),
                acts_outside: false,
                definition: None,
            },
            client,
            allowed,
            max_body_bytes: config.max_body_bytes,
            max_redirects: config.max_redirects,
        })
    }

    async fn get(&self, args: Args, key: &str) -> CallResult {
        let mut url = Url::parse(&args.url)
            .map_err(|error| ToolError::invalid_arguments(format!("/url: {error}; write an absolute http(s) url")))?;
        for _ in 0..=self.max_redirects {
            self.allowed.check(&url).map_err(ToolError::failed)?;
            let response = self.send(&url, key).await?;
            match redirect_target(&url, &response)? {
                Some(target) => url = target,
                None => return self.read(&url, response).await,
            }
        }
        Err(ToolError::failed(format!("more than {} redirects; read the target directly", self.max_redirects)))
    }

    async fn send(&self, url: &Url, key: &str) -> Result<Response, ToolError> {
        let response = self.client.get(url.clone()).header(IDEMPOTENCY_KEY, key).send().await;
        response.map_err(|error| ToolError::failed(explain(error)))
    }

    async fn read(&self, url: &Url, response: Response) -> CallResult {
        let status = response.status().as_u16();
        let headers = reported_headers(&response);
        let (body, truncated) = self.read_body(response).await?;
        let (body, encoding) = encode_body(body, truncated);
        Ok(json!({
            "url": url.as_str(),
            "status": status,
            "headers": headers,
            "body": body,
            "encoding": encoding,
            "truncated": truncated,
        }))
    }

    /// Reads until the limit; what a server sends beyond it is never held in memory.
    async fn read_body(&self, response: Response) -> Result<(Vec<u8>, bool), ToolError> {
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| ToolError::failed(explain(error)))?;
            let room = self.max_body_bytes.saturating_sub(body.len());
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
}

impl Tool for HttpGet {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn outside(&self, _: &Value, outcome: &CallResult) -> Vec<String> {
        // Where it was read in the end, behind all redirects. Failures are told in words of our own.
        let url = outcome.as_ref().ok().and_then(|page| page.get("url")?.as_str());
        url.map(|url| outside::mark(outside::Kind::Web, url)).into_iter().collect()
    }

    fn call(&self, args: Value, ctx: CallContext) -> BoxFuture<'_, CallResult> {
        Box::pin(async move {
            let args = parse_args(args)?;
            ctx.cancel
                .run_until_cancelled(self.get(args, &ctx.action_id))
                .await
                .unwrap_or_else(|| Err(ToolError::canceled("the request was given up")))
        })
    }
}

fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["url"],
        "properties": {
            "url": {"type": "string", "description": "Absolute http or https URL", "maxLength": 4096},
        },
        "additionalProperties": false,
    })
}

/// Where a redirect leads, or that this is the answer.
fn redirect_target(url: &Url, response: &Response) -> Result<Option<Url>, ToolError> {
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
        .ok_or_else(|| ToolError::failed("the server redirects to something that is no url"))
}

fn reported_headers(response: &Response) -> Map<String, Value> {
    REPORTED_HEADERS
        .iter()
        .filter_map(|name| {
            let value = response.headers().get(name)?.to_str().ok()?;
            let value: String = value.chars().take(MAX_HEADER_CHARS).collect();
            Some((name.as_str().to_owned(), Value::from(value)))
        })
        .collect()
}

/// Text where the bytes are UTF-8, apart from a character that the limit cut in two; base64
/// otherwise.
fn encode_body(mut body: Vec<u8>, truncated: bool) -> (String, &'static str) {
    if truncated && let Err(error) = std::str::from_utf8(&body) {
        let cut_in_two = error.error_len().is_none();
        if cut_in_two {
            body.truncate(error.valid_up_to());
        }
    }
    match String::from_utf8(body) {
        Ok(text) => (text, "text"),
        Err(error) => (base64::engine::general_purpose::STANDARD.encode(error.as_bytes()), "base64"),
    }
}

/// The innermost cause says what happened; the outer ones only repeat the URL, which may hold a
/// secret.
fn explain(error: reqwest::Error) -> String {
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

/// What the machine is configured with: DNS, usually.
#[derive(Debug)]
struct System;

impl Hosts for System {
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
        let (hosts, allowed) = (Arc::clone(&self.hosts), Arc::clone(&self.allowed));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_text_where_they_can_be() {
        let euro = "1 €".as_bytes();
        assert_eq!(encode_body(euro.to_vec(), false), ("1 €".to_owned(), "text"));
        assert_eq!(encode_body(euro[..4].to_vec(), true), ("1 ".to_owned(), "text"));
        assert_eq!(encode_body(euro[..4].to_vec(), false).1, "base64");
        assert_eq!(encode_body(vec![0xff, 0x00], true), ("/wA=".to_owned(), "base64"));
        assert_eq!(encode_body(Vec::new(), false), (String::new(), "text"));
    }
}
