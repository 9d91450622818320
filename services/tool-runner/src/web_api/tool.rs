//! A tool that is a request to a web API.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kairo_core::outside;
use reqwest::{Client, Method, Response, StatusCode, header};
use serde_json::{Value, json};
use tokio::time::sleep;
use url::Url;

use super::request::{Operation, Prepared};
use super::secrets::Headers;
use crate::allow_list::AllowList;
use crate::outcome::{Exchange, Missing, without_answer};
use crate::tool::{CallContext, CallResult, Tool, ToolError, ToolErrorKind, ToolSpec};
use crate::web::{self, IDEMPOTENCY_KEY};

/// Longest excerpt of a server's error message passed to the agent, in characters.
const MAX_FAILURE_CHARS: usize = 1_000;

/// Most attempts per call for a request with an idempotency key whose answer is lost.
const ATTEMPTS: usize = 3;
/// Pause between attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// A request that can be called, as it is configured.
pub struct Described {
    pub spec: ToolSpec,
    pub operation: Operation,
    pub headers: Headers,
    /// JSON Pointer to the part of an answer that is the result; empty for all of it.
    pub result: String,
    pub max_body_bytes: usize,
    /// True if the server's content counts as the operator's own words.
    pub trusts_content: bool,
}

/// Limits shared by all API tools.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Redirects followed within a host.
    pub redirects: usize,
}

/// The tool with its client.
pub struct ApiTool {
    described: Described,
    client: Client,
    allowed: Arc<AllowList>,
    limits: Limits,
}

impl ApiTool {
    pub fn new(described: Described, client: Client, allowed: Arc<AllowList>, limits: Limits) -> Self {
        Self { described, client, allowed, limits }
    }

    /// Sends the request, and once more under the same key where that is allowed and its answer was lost.
    async fn run(&self, args: Value, key: &str, exchange: &Exchange) -> CallResult {
        for _ in 1..self.attempts() {
            match self.attempt(args.clone(), key, exchange).await {
                Err(error) if error.kind == ToolErrorKind::InDoubt && !exchange.is_answered() => sleep(PAUSE).await,
                result => return result,
            }
        }
        self.attempt(args, key, exchange).await
    }

    /// Returns the number of attempts for a request whose answer is lost. Reads get one: the agent can call again.
    fn attempts(&self) -> usize {
        if self.described.spec.idempotent && !self.is_repeatable() { ATTEMPTS } else { 1 }
    }

    async fn attempt(&self, args: Value, key: &str, exchange: &Exchange) -> CallResult {
        let Value::Object(args) = args else { return Err(ToolError::invalid_arguments("/: must be an object")) };
        let prepared = self.described.operation.prepare(args).map_err(ToolError::invalid_arguments)?;
        let response = self.answer(&prepared, key, exchange).await?;
        let status = response.status();
        let read = web::read_body(response, self.described.max_body_bytes).await;
        let (body, truncated) = read.map_err(|reason| self.without(&Missing::Lost(reason)))?;
        if !is_unclear(status) {
            exchange.answer();
        }
        if !status.is_success() {
            let said: String = String::from_utf8_lossy(&body).chars().take(MAX_FAILURE_CHARS).collect();
            let what = format!("HTTP {}: {}", status.as_u16(), self.withheld(&said));
            return Err(match is_unclear(status) {
                true => self.without(&Missing::Lost(what)),
                false => ToolError::failed(what),
            });
        }
        if truncated {
            let why = format!(
                "the request was carried out, but its answer takes more than {} bytes",
                self.described.max_body_bytes
            );
            return Err(match self.is_repeatable() {
                true => ToolError::too_large(format!("{why}; ask for less")),
                false => self.unusable(&why, &body),
            });
        }
        self.result(status.as_u16(), body)
    }

    /// Sends the request and returns the final response. Only reads follow redirects, and only within the host: any
    /// other redirect would carry headers, or an effect, to a place that nobody configured.
    async fn answer(&self, prepared: &Prepared, key: &str, exchange: &Exchange) -> Result<Response, ToolError> {
        let mut url = prepared.url.clone();
        for _ in 0..=self.limits.redirects {
            self.allowed.check(&url).map_err(ToolError::failed)?;
            exchange.send();
            let response = self.send(prepared, &url, key).await?;
            let target = web::redirect_target(&url, &response).map_err(ToolError::failed)?;
            match target.filter(|target| self.described.operation.is_reading() && target.origin() == url.origin()) {
                Some(target) => url = target,
                None => return Ok(response),
            }
        }
        Err(ToolError::failed(format!("more than {} redirects", self.limits.redirects)))
    }

    async fn send(&self, prepared: &Prepared, url: &Url, key: &str) -> Result<Response, ToolError> {
        let method: Method = self.described.operation.method.parse().unwrap_or(Method::GET);
        let mut request = self.client.request(method, url.clone());
        for (name, value) in &prepared.headers {
            request = request.header(name, value);
        }
        if let Some(body) = &prepared.body {
            request = request.header(header::CONTENT_TYPE, "application/json").body(body.to_string());
        }
        if self.described.spec.idempotent {
            request = request.header(IDEMPOTENCY_KEY, key);
        }
        // Last, in the place of any of these: what the operator says is not for agents to change.
        let sent = request.headers(self.described.headers.map.clone()).send().await;
        sent.map_err(|error| match error.is_connect() || error.is_builder() {
            true => ToolError::failed(web::explain(error)),
            false => self.without(&Missing::Lost(web::explain(error))),
        })
    }

    /// Builds the error of a call whose request was sent but has no answer.
    fn without(&self, missing: &Missing) -> ToolError {
        without_answer(missing, self.is_repeatable(), true)
    }

    /// Builds the error of a call whose answer cannot be used.
    fn unusable(&self, why: &str, body: &[u8]) -> ToolError {
        self.without(&Missing::unusable(why, &self.withheld(&String::from_utf8_lossy(body))))
    }

    fn result(&self, status: u16, body: Vec<u8>) -> CallResult {
        if body.is_empty() && self.described.result.is_empty() {
            return Ok(json!({ "status": status }));
        }
        let value = match serde_json::from_slice(&body) {
            Ok(value) => value,
            Err(_) => Value::String(String::from_utf8_lossy(&body).into_owned()),
        };
        let part = value.pointer(&self.described.result).cloned();
        let nothing = || {
            let pointer = &self.described.result;
            self.unusable(&format!("the request was carried out, but its answer has nothing at {pointer}"), &body)
        };
        Ok(self.described.headers.withheld(part.ok_or_else(nothing)?))
    }

    fn withheld(&self, text: &str) -> String {
        self.described.headers.withheld_in(text)
    }
}

/// Returns true if the status leaves open whether the request was carried out: a proxy lost the server behind it or
/// timed out, or a redirect leads to the outcome.
fn is_unclear(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 502 | 504 | 520 | 524)
}

impl Tool for ApiTool {
    fn spec(&self) -> &ToolSpec {
        &self.described.spec
    }

    fn outside(&self, _: &Value, _: &CallResult) -> Vec<String> {
        // Its failures are told in the server's words, too.
        let origin = self.described.operation.template.origin();
        (!self.described.trusts_content).then(|| outside::mark(outside::Kind::Web, origin)).into_iter().collect()
    }

    fn is_repeatable(&self) -> bool {
        self.described.operation.is_reading()
    }

    /// A request that has left and cannot be repeated goes on when its call is stopped: hanging up would take nothing back,
    /// and its answer would never be known.
    fn call(&self, args: Value, ctx: CallContext) -> BoxFuture<'_, CallResult> {
        Box::pin(async move {
            let exchange = ctx.exchange.clone();
            exchange.hold_back();
            let mut running = std::pin::pin!(self.run(args, &ctx.action_id, &exchange));
            match ctx.cancel.run_until_cancelled(&mut running).await {
                Some(result) => result,
                None if self.is_repeatable() || !exchange.may_have_left() => {
                    Err(without_answer(&Missing::Canceled, self.is_repeatable(), exchange.may_have_left()))
                }
                None => running.await,
            }
        })
    }
}
