//! Reading the resources of a server: results name them in links, which are of no use to who cannot follow them.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::BoxFuture;
use kairo_core::outside;
use rmcp::model::{ClientRequest, ReadResourceRequest, ReadResourceRequestParams, ResourceContents, ServerResult};
use serde_json::{Value, json};

use super::attachment_store::AttachmentStore;
use super::connection_source::ConnectionSource;
use super::conversion;
use super::failure::{CallFailure, classify_error};
use super::reader::{UnreadableAnswer, shorten_text};
use crate::attachments::MAX_ATTACHMENTS;
use crate::config::McpServerConfig;
use crate::tool::{Attachment, CallContext, CallResult, Executor, Tool, ToolError, ToolSpec};

/// The name of the tool behind that of its server.
pub const NAME: &str = "resource_read";
/// Longest text of a resource, in characters; the rest is cut off.
const MAX_TEXT_CHARS: usize = 100_000;
/// Longest URI, in characters.
const MAX_URI_CHARS: usize = 2_000;
/// Connections that one reading is tried on.
const MAX_TRIES: usize = 2;

/// The tool that reads the resources of one server.
pub struct ResourceRead {
    spec: ToolSpec,
    trusts_content: bool,
    max_chars: usize,
    reach: ConnectionSource,
    attachments: AttachmentStore,
}

impl ResourceRead {
    /// `max_result_bytes` is the size of the largest result of any tool.
    pub fn new(config: &McpServerConfig, timeout: Duration, max_result_bytes: usize, reach: ConnectionSource) -> Self {
        let spec = ToolSpec {
            name: format!("{}.{NAME}", config.name),
            description: format!(
                "Reads a resource of {} by its URI, as results name it: [resource URI type: name].",
                config.name
            ),
            schema: json!({
                "type": "object",
                "properties": { "uri": { "type": "string", "maxLength": MAX_URI_CHARS, "description": "The URI." } },
                "required": ["uri"],
                "additionalProperties": false,
            }),
            idempotent: true,
            timeout: config.call_timeout_ms.map_or(timeout, Duration::from_millis),
            executor: Executor::ToolRunner,
            needs_approval: false,
            needs_approval_with: Vec::new(),
            // Reading changes nothing, by the server's own word.
            acts_outside: !config.trust_hints,
            definition: None,
        };
        // A character takes at most six bytes of JSON.
        let max_chars = MAX_TEXT_CHARS.min(max_result_bytes / 6);
        Self { spec, trusts_content: config.trust_content, max_chars, reach, attachments: AttachmentStore::default() }
    }

    async fn read_resource(&self, args: &Value, ctx: &CallContext) -> CallResult {
        let uri = args.get("uri").and_then(Value::as_str).unwrap_or_default();
        let route = self.reach.find_route(ctx).await?;
        let server = &route.handle;
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
            let params = ReadResourceRequestParams::new(uri);
            let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
            let failure = match connection.send_request(request, ctx).await.and_then(contents_of) {
                Ok(contents) => {
                    self.attachments.keep(&ctx.action_id, attachments_of(&contents));
                    return Ok(Value::String(self.limited_text(&contents)));
                }
                Err(failure) => failure,
            };
            let is_gone = matches!(failure, CallFailure::NotSent(_) | CallFailure::Lost(_));
            if is_gone || failure == CallFailure::Canceled {
                server.suspected.notify_one();
            }
            if !is_gone || tries >= MAX_TRIES {
                return Err(failure.into_error(&server.name, self.spec.idempotent));
            }
        }
    }

    fn limited_text(&self, contents: &[ResourceContents]) -> String {
        let text = match contents {
            [ResourceContents::TextResourceContents { text, .. }] => text.clone(),
            contents => contents.iter().map(contents_text).collect::<Vec<_>>().join("\n"),
        };
        let length = text.chars().count();
        match length > self.max_chars {
            true => {
                format!("{}\n[cut off: {} of {length} characters]", shorten_text(&text, self.max_chars), self.max_chars)
            }
            false => text,
        }
    }
}

fn contents_of(answer: Result<ServerResult, rmcp::ServiceError>) -> Result<Vec<ResourceContents>, CallFailure> {
    match answer {
        Ok(ServerResult::ReadResourceResult(result)) => Ok(result.contents),
        Ok(ServerResult::InputRequiredResult(_)) => {
            Err(CallFailure::Refused(ToolError::failed("the server asks for more input, which agents cannot give")))
        }
        Ok(_) => Err(CallFailure::Unreadable(UnreadableAnswer::new("with something other than a resource", ""))),
        Err(error) => Err(classify_error(&error)),
    }
}

fn attachments_of(contents: &[ResourceContents]) -> Vec<Attachment> {
    let blobs = contents.iter().filter_map(|contents| match contents {
        ResourceContents::BlobResourceContents { blob, .. } => conversion::decode_attachment(blob),
        _ => None,
    });
    blobs.take(MAX_ATTACHMENTS).collect()
}

/// Text as it is, also where it comes as bytes; of anything else what it is.
fn contents_text(contents: &ResourceContents) -> String {
    if let ResourceContents::BlobResourceContents { uri, mime_type: Some(kind), blob, .. } = contents
        && is_text_type(kind)
        && let Ok(bytes) = STANDARD.decode(blob)
    {
        return format!("[resource {uri}]\n{}", String::from_utf8_lossy(&bytes));
    }
    conversion::resource_text(contents)
}

fn is_text_type(mime_type: &str) -> bool {
    let kind = mime_type.split(';').next().unwrap_or_default().trim();
    let is_structured = kind.ends_with("+json") || kind.ends_with("+xml");
    kind.starts_with("text/")
        || is_structured
        || matches!(kind, "application/json" | "application/xml" | "application/yaml")
}

impl Tool for ResourceRead {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn outside_sources(&self, _: &Value, _: &CallResult) -> Vec<String> {
        (!self.trusts_content)
            .then(|| outside::source_mark(outside::OutsideSource::Mcp, self.reach.server_name()))
            .into_iter()
            .collect()
    }

    fn call(&self, args: Value, ctx: CallContext) -> BoxFuture<'_, CallResult> {
        Box::pin(async move { self.read_resource(&args, &ctx).await })
    }

    fn take_attachments(&self, action_id: &str) -> Vec<Attachment> {
        self.attachments.take(action_id)
    }

    fn ready(&self) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(self.reach.wait_until_ready())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_as_text_and_the_rest_in_words() {
        let text = |contents: Value| contents_text(&serde_json::from_value(contents).unwrap());
        assert_eq!(text(json!({"uri": "a://b", "text": "x"})), "[resource a://b]\nx");
        assert_eq!(
            text(json!({"uri": "a://b", "blob": "eA==", "mimeType": "text/plain; charset=utf-8"})),
            "[resource a://b]\nx"
        );
        let image = text(json!({"uri": "a://b", "blob": "AAAA", "mimeType": "image/png"}));
        assert_eq!(image, "[resource a://b image/png, about 3 bytes]");
    }
}
