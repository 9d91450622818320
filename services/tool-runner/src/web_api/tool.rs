//! A tool that is a request to a web API.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kairo_core::outside;
use reqwest::{Client, Method, Response, StatusCode, header};
use serde_json::{Value, json};
use tokio::time::sleep;
use url::Url;

use super::request::{Operation, PreparedRequest};
use super::secrets::Headers;
use crate::allow_list::AllowList;
use crate::outcome::{Exchange, MissingAnswer, missing_answer_error};
use crate::tool::{CallContext, CallResult, Tool, ToolError, ToolErrorKind, ToolSpec};
use crate::web::{self, IDEMPOTENCY_KEY};

/// Longest excerpt of a server's error message passed to the agent, in characters.
const MAX_FAILURE_CHARS: usize = 1_000;

/// Most attempts per call for a request with an idempotency key whose answer is lost.
const ATTEMPTS: usize = 3;
/// Pause between attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// A request that can be called, as it is configured.
pub struct ApiToolDefinition {
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
pub struct ApiToolLimits {
    /// Redirects followed within a host.
    pub redirects: usize,
}

/// The tool with its client.
pub struct ApiTool {
    definition: ApiToolDefinition,
    client: Client,
    allowed: Arc<AllowList>,
    limits: ApiToolLimits,
}

impl ApiTool {
    pub fn new(described: ApiToolDefinition, client: Client, allowed: Arc<AllowList>, limits: ApiToolLimits) -> Self {
        Self { definition: described, client, allowed, limits }
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
        if self.definition.spec.idempotent && !self.is_repeatable() { ATTEMPTS } else { 1 }
    }

    async fn attempt(&self, args: Value, key: &str, exchange: &Exchange) -> CallResult {
        let Value::Object(args) = args else { return Err(ToolError::invalid_arguments("/: must be an object")) };
        let prepared = self.definition.operation.prepare(args).map_err(ToolError::invalid_arguments)?;
        let response = self.fetch_response(&prepared, key, exchange).await?;
        let status = response.status();
        let read = web::read_body(response, self.definition.max_body_bytes).await;
        let (body, truncated) = read.map_err(|reason| self.lost_answer_error(&MissingAnswer::Lost(reason)))?;
        if !is_unclear(status) {
            exchange.mark_answered();
        }
        if !status.is_success() {
            let said: String = String::from_utf8_lossy(&body).chars().take(MAX_FAILURE_CHARS).collect();
            let what = format!("HTTP {}: {}", status.as_u16(), self.redact_text(&said));
            return Err(match is_unclear(status) {
                true => self.lost_answer_error(&MissingAnswer::Lost(what)),
                false => ToolError::failed(what),
            });
        }
        if truncated {
            let why = format!(
                "the request was carried out, but its answer takes more than {} bytes",
                self.definition.max_body_bytes
            );
            return Err(match self.is_repeatable() {
                true => ToolError::too_large(format!("{why}; ask for less")),
                false => self.unusable_answer_error(&why, &body),
            });
        }
        self.result(status.as_u16(), body)
    }

    /// Sends the request and returns the final response. Only reads follow redirects, and only within the host: any
    /// other redirect would carry headers, or an effect, to a place that nobody configured.
    async fn fetch_response(
        &self,
        prepared: &PreparedRequest,
        key: &str,
        exchange: &Exchange,
    ) -> Result<Response, ToolError> {
        let mut url = prepared.url.clone();
        for _ in 0..=self.limits.redirects {
            self.allowed.check(&url).map_err(ToolError::failed)?;
            exchange.mark_sent();
            let response = self.send(prepared, &url, key).await?;
            let target = web::redirect_target(&url, &response).map_err(ToolError::failed)?;
            match target.filter(|target| self.definition.operation.is_reading() && target.origin() == url.origin()) {
                Some(target) => url = target,
                None => return Ok(response),
            }
        }
        Err(ToolError::failed(format!("more than {} redirects", self.limits.redirects)))
    }

    async fn send(&self, prepared: &PreparedRequest, url: &Url, key: &str) -> Result<Response, ToolError> {
        let method: Method = self.definition.operation.method.parse().unwrap_or(Method::GET);
        let mut request = self.client.request(method, url.clone());
        for (name, value) in &prepared.headers {
            request = request.header(name, value);
        }
        if let Some(body) = &prepared.body {
            request = request.header(header::CONTENT_TYPE, "application/json").body(body.to_string());
        }
        if self.definition.spec.idempotent {
            request = request.header(IDEMPOTENCY_KEY, key);
        }
        // Last, in the place of any of these: what the operator says is not for agents to change.
        let sent = request.headers(self.definition.headers.map.clone()).send().await;
        sent.map_err(|error| match error.is_connect() || error.is_builder() {
            true => ToolError::failed(web::explain(error)),
            false => self.lost_answer_error(&MissingAnswer::Lost(web::explain(error))),
        })
    }

    /// Builds the error of a call whose request was sent but has no answer.
    fn lost_answer_error(&self, missing: &MissingAnswer) -> ToolError {
        missing_answer_error(missing, self.is_repeatable(), true)
    }

    /// Builds the error of a call whose answer cannot be used.
    fn unusable_answer_error(&self, why: &str, body: &[u8]) -> ToolError {
        self.lost_answer_error(&MissingAnswer::unusable(why, &self.redact_text(&String::from_utf8_lossy(body))))
    }

    fn result(&self, status: u16, body: Vec<u8>) -> CallResult {
        if body.is_empty() && self.definition.result.is_empty() {
            return Ok(json!({ "status": status }));
        }
        let value = match serde_json::from_slice(&body) {
            Ok(value) => value,
            Err(_) => Value::String(String::from_utf8_lossy(&body).into_owned()),
        };
        let part = value.pointer(&self.definition.result).cloned();
        let nothing = || {
            let pointer = &self.definition.result;
            self.unusable_answer_error(
                &format!("the request was carried out, but its answer has nothing at {pointer}"),
                &body,
            )
        };
        Ok(self.definition.headers.redact_value(part.ok_or_else(nothing)?))
    }

    fn redact_text(&self, text: &str) -> String {
        self.definition.headers.redact_text(text)
    }
}

/// Returns true if the status leaves open whether the request was carried out: a proxy lost the server behind it or
/// timed out, or a redirect leads to the outcome.
fn is_unclear(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 502 | 504 | 520 | 524)
}

impl Tool for ApiTool {
    fn spec(&self) -> &ToolSpec {
        &self.definition.spec
    }

    fn outside_sources(&self, _: &Value, _: &CallResult) -> Vec<String> {
        // Its failures are told in the server's words, too.
        let origin = self.definition.operation.template.origin();
        (!self.definition.trusts_content)
            .then(|| outside::source_mark(outside::OutsideSource::Web, origin))
            .into_iter()
            .collect()
    }

    fn is_repeatable(&self) -> bool {
        self.definition.operation.is_reading()
    }

    /// A request that has left and cannot be repeated goes on when its call is stopped: hanging up would take nothing back,
    /// and its answer would never be known.
    fn call(&self, args: Value, ctx: CallContext) -> BoxFuture<'_, CallResult> {
        Box::pin(async move {
            let exchange = ctx.exchange.clone();
            exchange.mark_unsent();
            let mut running = std::pin::pin!(self.run(args, &ctx.action_id, &exchange));
            match ctx.cancel.run_until_cancelled(&mut running).await {
                Some(result) => result,
                None if self.is_repeatable() || !exchange.may_have_left() => {
                    Err(missing_answer_error(&MissingAnswer::Canceled, self.is_repeatable(), exchange.may_have_left()))
                }
                None => running.await,
            }
        })
    }
}
