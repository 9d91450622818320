//! One tool of an MCP server.

use futures::future::BoxFuture;
use kairo_core::outside;
use serde_json::Value;

use super::attachment_store::AttachmentStore;
use super::connection_source::ConnectionSource;
use super::conversion;
use super::failure::CallFailure;
use super::server_handle::McpServerHandle;
use crate::config::McpServerConfig;
use crate::tool::{Attachment, CallContext, CallResult, Tool, ToolError, ToolSpec};

/// Connections that one call is tried on. A second one only where nothing was begun on the
/// first, or where the tool can be repeated.
const MAX_TRIES: usize = 2;

pub struct McpTool {
    spec: ToolSpec,
    /// The server's own name for it.
    remote_name: String,
    /// True if the server is a child process, whose connection ends with it.
    over_stdio: bool,
    /// True if the server's content counts as the operator's own words.
    trusts_content: bool,
    reach: ConnectionSource,
    attachments: AttachmentStore,
}

impl McpTool {
    pub fn new(spec: ToolSpec, remote_name: String, config: &McpServerConfig, reach: ConnectionSource) -> Self {
        let over_stdio = config.command.is_some();
        let trusts_content = config.trust_content;
        Self { spec, remote_name, over_stdio, trusts_content, reach, attachments: AttachmentStore::default() }
    }

    async fn call_server(&self, server: &McpServerHandle, args: Value, ctx: &CallContext) -> CallResult {
        let Value::Object(arguments) = args else {
            return Err(ToolError::invalid_arguments("/: must be an object"));
        };
        let mut generation = 0;
        let mut tries = 0;
        loop {
            tries += 1;
            let connection = ctx
                .cancel
                .run_until_cancelled(server.wait_for_connection(generation))
                .await
                .unwrap_or_else(|| Err(ToolError::canceled("nothing was begun")))?;
            generation = connection.generation;
            let called = connection.call_tool(&self.remote_name, arguments.clone(), ctx);
            let failure = match called.await {
                Ok(result) => {
                    self.attachments.keep(&ctx.action_id, conversion::attachments_of(&result));
                    return conversion::call_result(result);
                }
                Err(failure) => failure,
            };
            let gone = matches!(failure, CallFailure::NotSent(_) | CallFailure::Lost(_));
            if gone || failure == CallFailure::Canceled {
                server.suspected.notify_one();
            }
            // Over HTTP a failed request says nothing about the connection, so that waiting for
            // the next one might be waiting for ever.
            let safe = self.spec.idempotent || matches!(failure, CallFailure::NotSent(_));
            if !(gone && safe && self.over_stdio && tries < MAX_TRIES) {
                return Err(failure.into_error(&server.name, self.spec.idempotent));
            }
        }
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn outside_sources(&self, _: &Value, _: &CallResult) -> Vec<String> {
        // Its failures and its progress are told in the server's words, too.
        let is_trusted = self.trusts_content;
        (!is_trusted)
            .then(|| outside::source_mark(outside::OutsideSource::Mcp, self.reach.server_name()))
            .into_iter()
            .collect()
    }

    fn call(&self, args: Value, ctx: CallContext) -> BoxFuture<'_, CallResult> {
        Box::pin(async move {
            let route = self.reach.find_route(&ctx).await?;
            if !self.is_repeatable() {
                ctx.exchange.request_late_answer();
            }
            let overdue = async {
                tokio::select! {
                    () = ctx.exchange.overdue().cancelled() => {}
                    () = ctx.cancel.cancelled() => {}
                }
                route.handle.suspected.notify_one();
                std::future::pending().await
            };
            tokio::select! {
                result = self.call_server(&route.handle, args, &ctx) => result,
                never = overdue => never,
            }
        })
    }

    fn take_attachments(&self, action_id: &str) -> Vec<Attachment> {
        self.attachments.take(action_id)
    }

    fn ready(&self) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(self.reach.wait_until_ready())
    }
}
