//! `http.get`: reads a URL of an allowed host. Not offered unless hosts are configured.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use futures::future::BoxFuture;
use kairo_core::outside;
use reqwest::{Client, Response, header};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use url::Url;

use super::parse_args;
use crate::allow_list::AllowList;
use crate::config::HttpConfig;
use crate::tool::{CallContext, CallResult, Executor, Tool, ToolError, ToolSpec};
pub use crate::web::Hosts;
use crate::web::{self, IDEMPOTENCY_KEY};

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
struct HttpGetArgs {
    url: String,
}

impl HttpGet {
    /// Finds hosts as the machine does.
    ///
    /// # Errors
    /// When the TLS library cannot be set up.
    pub fn new(config: &HttpConfig, allowed: AllowList) -> Result<Self, reqwest::Error> {
        Self::with_hosts(config, allowed, Arc::new(web::SystemResolver))
    }

    /// Asks `hosts` for the addresses of a host.
    ///
    /// # Errors
    /// As [`HttpGet::new`].
    pub fn with_hosts(config: &HttpConfig, allowed: AllowList, hosts: Arc<dyn Hosts>) -> Result<Self, reqwest::Error> {
        let allowed = Arc::new(allowed);
        let client = web::client(&allowed, hosts)?;
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

    async fn get(&self, args: HttpGetArgs, key: &str) -> CallResult {
        let mut url = Url::parse(&args.url)
            .map_err(|error| ToolError::invalid_arguments(format!("/url: {error}; write an absolute http(s) url")))?;
        for _ in 0..=self.max_redirects {
            self.allowed.check(&url).map_err(ToolError::failed)?;
            let response = self.send_request(&url, key).await?;
            match web::redirect_target(&url, &response).map_err(ToolError::failed)? {
                Some(target) => url = target,
                None => return self.read_response(&url, response).await,
            }
        }
        Err(ToolError::failed(format!("more than {} redirects; read the target directly", self.max_redirects)))
    }

    async fn send_request(&self, url: &Url, key: &str) -> Result<Response, ToolError> {
        let response = self.client.get(url.clone()).header(IDEMPOTENCY_KEY, key).send().await;
        response.map_err(|error| ToolError::failed(web::explain(error)))
    }

    async fn read_response(&self, url: &Url, response: Response) -> CallResult {
        let status = response.status().as_u16();
        let headers = reported_headers(&response);
        let (body, truncated) = web::read_body(response, self.max_body_bytes).await.map_err(ToolError::failed)?;
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
}

impl Tool for HttpGet {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn outside_sources(&self, _: &Value, outcome: &CallResult) -> Vec<String> {
        // Where it was read in the end, behind all redirects. Failures are told in words of our own.
        let url = outcome.as_ref().ok().and_then(|page| page.get("url")?.as_str());
        url.map(|url| outside::source_mark(outside::OutsideSource::Web, url)).into_iter().collect()
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
