//! Translates what MCP servers say: a tool into a [`ToolSpec`], a result into a [`CallResult`].

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kairo_core::{ids, media};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents, Tool as McpToolInfo};
use serde_json::Value;

use crate::attachments::{MAX_ATTACHMENTS, MAX_BYTES};
use crate::canonical_json::canonical_json;
use crate::config::McpServerConfig;
use crate::tool::{Attachment, CallResult, Definer, Definition, Executor, ToolError, ToolSpec};
use crate::tool_name;

/// Stands for kinds of content that later versions of the protocol may add.
const UNKNOWN_CONTENT: &str = "[content of a kind that is not understood]";

/// Builds the catalogue entry of a server's tool.
pub fn tool_spec(server: &McpServerConfig, tool: &McpToolInfo, call_timeout: Duration) -> ToolSpec {
    let hints = tool.annotations.as_ref().filter(|_| server.trust_hints);
    // A tool that changes nothing can be repeated; the specification asks for `idempotentHint`
    // only of those that change something.
    let repeatable =
        hints.is_some_and(|hints| hints.idempotent_hint == Some(true) || hints.read_only_hint == Some(true));
    let configured = server.idempotent.iter().any(|name| *name == tool.name);
    let description = tool.description.as_deref().or(tool.title.as_deref());
    ToolSpec {
        name: tool_name::mcp_tool_name(&server.name, &tool.name),
        description: description.unwrap_or(&tool.name).to_owned(),
        schema: Value::Object(tool.input_schema.as_ref().clone()),
        idempotent: repeatable || configured,
        timeout: server.call_timeout_ms.map_or(call_timeout, Duration::from_millis),
        executor: Executor::ToolRunner,
        // A hint that asks for more care is believed of everybody.
        needs_approval: tool.annotations.as_ref().is_some_and(|hints| hints.destructive_hint == Some(true)),
        needs_approval_with: Vec::new(),
        acts_outside: hints.is_none_or(|hints| hints.read_only_hint != Some(true)),
        definition: Some(tool_definition(server, tool)),
    }
}

/// The digest is of all that models and people are told, and of what the server says of its effects.
fn tool_definition(server: &McpServerConfig, tool: &McpToolInfo) -> Definition {
    let said = serde_json::to_value(tool).unwrap_or_default();
    let digest = ids::from_parts("tool", &[&canonical_json(&said)]).to_string();
    let is_accepted = server.accept.contains(&digest);
    Definition { digest, is_accepted, definer: Definer::McpServer }
}

/// The value of a finished call: structured content where the server gives it, else its text,
/// read as JSON where it is an object or an array, so that later steps can refer to its parts.
///
/// # Errors
/// `failed` with the server's words when it says that the tool failed.
pub fn call_result(result: CallToolResult) -> CallResult {
    let texts = || {
        let texts: Vec<String> = result.content.iter().map(block_text).collect();
        texts.join("\n")
    };
    if result.is_error == Some(true) {
        let mut message = texts();
        if message.is_empty() {
            message = match &result.structured_content {
                Some(content) => content.to_string(),
                None => "the tool failed and did not say why".to_owned(),
            };
        }
        return Err(ToolError::failed(message));
    }
    if let Some(content) = result.structured_content {
        return Ok(content);
    }
    let text = texts();
    Ok(match serde_json::from_str(&text) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => value,
        Ok(_) | Err(_) => Value::String(text),
    })
}

/// The images and audio of a result that models may be shown, as far as they are what they are said to be.
pub fn attachments_of(result: &CallToolResult) -> Vec<Attachment> {
    let data = result.content.iter().filter_map(|block| match block {
        ContentBlock::Image(image) => Some(&image.data),
        ContentBlock::Audio(audio) => Some(&audio.data),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::BlobResourceContents { blob, .. } => Some(blob),
            _ => None,
        },
        _ => None,
    });
    data.filter_map(|base64| decode_attachment(base64)).take(MAX_ATTACHMENTS).collect()
}

/// Decodes an attachment and detects its type from the bytes; none if models are not shown that type, or it is too
/// large.
pub fn decode_attachment(base64: &str) -> Option<Attachment> {
    // Four characters hold three bytes.
    if base64.len() / 4 > MAX_BYTES / 3 {
        return None;
    }
    let bytes = STANDARD.decode(base64.trim()).ok()?;
    media::sniff_type(&bytes).map(|media_type| Attachment { media_type, bytes })
}

/// Text as it is; of everything else what it is, since models are given text.
fn block_text(content: &ContentBlock) -> String {
    match content {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => binary_summary("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => binary_summary("audio", &audio.mime_type, &audio.data),
        ContentBlock::Resource(embedded) => resource_text(&embedded.resource),
        ContentBlock::ResourceLink(link) => {
            let kind = link.mime_type.as_deref().unwrap_or("of unknown type");
            format!("[resource {} {kind}: {}]", link.uri, link.name)
        }
        _ => UNKNOWN_CONTENT.to_owned(),
    }
}

/// Text as it is, under its URI; of anything else what it is.
pub fn resource_text(contents: &ResourceContents) -> String {
    match contents {
        ResourceContents::TextResourceContents { uri, text, .. } => {
            format!("[resource {uri}]\n{text}")
        }
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let kind = mime_type.as_deref().unwrap_or("of unknown type");
            binary_summary(&format!("resource {uri}"), kind, blob)
        }
        _ => UNKNOWN_CONTENT.to_owned(),
    }
}

fn binary_summary(what: &str, mime_type: &str, base64: &str) -> String {
    // Four characters of base64 hold three bytes.
    format!("[{what} {mime_type}, about {} bytes]", base64.len() / 4 * 3)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::ToolErrorKind;

    fn result(value: Value) -> CallResult {
        call_result(serde_json::from_value(value).unwrap())
    }

    fn spec(config: Value, tool: Value) -> ToolSpec {
        tool_spec(
            &serde_json::from_value(config).unwrap(),
            &serde_json::from_value(tool).unwrap(),
            Duration::from_secs(60),
        )
    }

    #[test]
    fn structured_content_goes_first() {
        let value = result(json!({
            "content": [{"type": "text", "text": "{\"a\": 1}"}],
            "structuredContent": {"b": 2},
        }));
        assert_eq!(value, Ok(json!({"b": 2})));
    }

    #[test]
    fn text_is_joined_and_json_text_is_read() {
        let text = |texts: &[&str]| {
            let blocks: Vec<Value> = texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
            result(json!({"content": blocks})).unwrap()
        };
        assert_eq!(text(&["one", "two"]), json!("one\ntwo"));
        assert_eq!(text(&["{\"a\": [1]}"]), json!({"a": [1]}));
        assert_eq!(text(&["42"]), json!("42"));
        assert_eq!(text(&[]), json!(""));
    }

    #[test]
    fn what_is_not_text_is_described() {
        let value = result(json!({"content": [
            {"type": "text", "text": "see:"},
            {"type": "image", "data": "AAAAAAAA", "mimeType": "image/png"},
            {"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain"},
            {"type": "resource", "resource": {"uri": "demo://b", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "demo://c", "blob": "AAAA"}},
        ]}));
        let expected = "see:\n[image image/png, about 6 bytes]\n[resource file:///a text/plain: a]\n\
                        [resource demo://b]\ninside\n[resource demo://c of unknown type, about 3 bytes]";
        assert_eq!(value, Ok(json!(expected)));
    }

    #[test]
    fn images_and_audio_are_attached_as_what_their_bytes_are() {
        let png = STANDARD.encode(b"\x89PNG\r\n\x1a\n....");
        let result: CallToolResult = serde_json::from_value(json!({"content": [
            {"type": "image", "data": png, "mimeType": "image/jpeg"},
            {"type": "resource", "resource": {"uri": "a://b", "blob": png}},
            {"type": "image", "data": "no base64!", "mimeType": "image/png"},
            {"type": "audio", "data": STANDARD.encode("no audio"), "mimeType": "audio/wav"},
            {"type": "image", "data": "A".repeat(MAX_BYTES * 2), "mimeType": "image/png"},
        ]}))
        .unwrap();
        let kinds: Vec<&str> = attachments_of(&result).iter().map(|attachment| attachment.media_type).collect();
        assert_eq!(kinds, ["image/png", "image/png"]);
    }

    #[test]
    fn an_error_is_failed_in_the_servers_words() {
        let error = result(json!({"content": [{"type": "text", "text": "no such city"}], "isError": true}));
        assert_eq!(error, Err(ToolError::failed("no such city")));
        let silent = result(json!({"content": [], "isError": true})).unwrap_err();
        assert_eq!(silent.kind, ToolErrorKind::Failed);
    }

    #[test]
    fn repeatable_by_hint_or_by_configuration() {
        let config = json!({"name": "s", "command": "x", "idempotent": ["set"]});
        for (tool, idempotent) in [
            (json!({"name": "plain"}), false),
            (json!({"name": "set"}), true),
            (json!({"name": "a", "annotations": {"idempotentHint": true}}), true),
            (json!({"name": "b", "annotations": {"readOnlyHint": true}}), true),
            (json!({"name": "c", "annotations": {"readOnlyHint": false}}), false),
        ] {
            let mut tool = tool;
            tool["inputSchema"] = json!({"type": "object"});
            let shown = tool.to_string();
            assert_eq!(spec(config.clone(), tool).idempotent, idempotent, "{shown}");
        }
    }

    #[test]
    fn hints_of_a_server_that_is_not_trusted_count_for_nothing() {
        let config = json!({"name": "s", "trust_hints": false, "idempotent": ["listed"]});
        let tool = |name| {
            let hints = json!({"idempotentHint": true, "readOnlyHint": true});
            json!({"name": name, "inputSchema": {"type": "object"}, "annotations": hints})
        };
        assert!(!spec(config.clone(), tool("hinted")).idempotent);
        assert!(spec(config, tool("listed")).idempotent);
    }

    #[test]
    fn names_timeouts_and_missing_descriptions() {
        let tool = json!({"name": "getThing", "inputSchema": {"type": "object"}});
        let own = spec(json!({"name": "s", "call_timeout_ms": 5}), tool.clone());
        assert_eq!(own.name, "s.getThing");
        assert_eq!(own.description, "getThing");
        assert_eq!(own.timeout, Duration::from_millis(5));
        assert_eq!(spec(json!({"name": "s"}), tool).timeout, Duration::from_secs(60));
    }
}
