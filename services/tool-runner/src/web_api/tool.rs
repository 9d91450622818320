//! A tool that is a request to a web API.

use std::sync::Arc;

use futures::future::BoxFuture;
use kairo_core::outside;
use reqwest::{Client, Method, Response, header};
use serde_json::{Value, json};
use url::Url;

use super::request::{Operation, Prepared};
use super::secrets::Headers;
use crate::allow_list::AllowList;
use crate::tool::{CallContext, CallResult, Tool, ToolError, ToolSpec};
use crate::web::{self, IDEMPOTENCY_KEY};

/// How much of what a server says of a failure is told, in characters.
const MAX_FAILURE_CHARS: usize = 1_000;

/// A request that can be called, as it is configured.
pub struct Described {
    pub spec: ToolSpec,
    pub operation: Operation,
    pub headers: Headers,
    /// JSON Pointer to the part of an answer that is the result; empty for all of it.
    pub result: String,
    pub max_body_bytes: usize,
    /// Whether what the server says counts as the operator's own words.
    pub trusts_content: bool,
}

/// Bounds that hold for all of them.
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

    async fn run(&self, args: Value, key: &str) -> CallResult {
        let Value::Object(args) = args else { return Err(ToolError::invalid_arguments("/: must be an object")) };
        let prepared = self.described.operation.prepare(args).map_err(ToolError::invalid_arguments)?;
        let response = self.answer(&prepared, key).await?;
        let status = response.status();
        let (body, truncated) =
            web::read_body(response, self.described.max_body_bytes).await.map_err(|reason| self.broken_off(&reason))?;
        if !status.is_success() {
            let said: String = String::from_utf8_lossy(&body).chars().take(MAX_FAILURE_CHARS).collect();
            return Err(ToolError::failed(format!("HTTP {}: {}", status.as_u16(), self.withheld(&said))));
        }
        if truncated {
            return Err(ToolError::too_large(format!(
                "the request was carried out, but its answer takes more than {} bytes; ask for less",
                self.described.max_body_bytes
            )));
        }
        self.result(status.as_u16(), body)
    }

    /// What the server answers in the end. What only reads follows redirects on its host, and nothing follows others: they
    /// would carry headers, or an effect, to somewhere nobody configured.
    async fn answer(&self, prepared: &Prepared, key: &str) -> Result<Response, ToolError> {
        let mut url = prepared.url.clone();
        for _ in 0..=self.limits.redirects {
            self.allowed.check(&url).map_err(ToolError::failed)?;
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
            false => self.broken_off(&web::explain(error)),
        })
    }

    /// How a call ended whose request went out, and whose answer did not come in.
    fn broken_off(&self, reason: &str) -> ToolError {
        match self.described.spec.idempotent || self.described.operation.is_reading() {
            true => ToolError::failed(format!("{reason}; it can be called again")),
            false => ToolError::in_doubt(format!(
                "{reason}; the request was sent, so check whether it had its effect before calling again"
            )),
        }
    }

    fn result(&self, status: u16, body: Vec<u8>) -> CallResult {
        if body.is_empty() && self.described.result.is_empty() {
            return Ok(json!({ "status": status }));
        }
        let value = serde_json::from_slice(&body)
            .or_else(|_| String::from_utf8(body).map(Value::String))
            .map_err(|_| ToolError::failed("the request was carried out, but its answer is neither JSON nor text"))?;
        let part = value.pointer(&self.described.result).cloned().ok_or_else(|| {
            ToolError::failed(format!(
                "the request was carried out, but its answer has nothing at {}",
                self.described.result
            ))
        })?;
        Ok(self.described.headers.withheld(part))
    }

    fn withheld(&self, text: &str) -> String {
        self.described.headers.withheld_in(text)
    }
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

    fn call(&self, args: Value, ctx: CallContext) -> BoxFuture<'_, CallResult> {
        Box::pin(async move {
            ctx.cancel.run_until_cancelled(self.run(args, &ctx.action_id)).await.unwrap_or_else(|| {
                Err(ToolError::canceled("the request was given up; what it did until then stays done"))
            })
        })
    }
}
