//! OpenAPI documents as sources of tools: each operation is one, named by its id behind the prefix that the operator gave.
//!
//! Pure functions read the document ([`document`], [`schema`]). Parts that cannot be offered are named in the log.

pub mod document;
pub mod schema;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::time::Duration;

use serde_json::Value;

use self::document::{DocumentedOperation, OperationSelection};
use super::config::OpenApiConfig;
use super::secrets::Headers;
use super::tool::ApiToolDefinition;
use crate::config::ToolsConfig;
use crate::tool::{Executor, ToolSpec};
use crate::tool_name;

/// The tools of all documents.
///
/// # Errors
/// Each document that cannot be read, after its key.
pub fn read_documents(config: &ToolsConfig) -> Result<Vec<ApiToolDefinition>, Vec<String>> {
    let mut tools = Vec::new();
    let mut mistakes = Vec::new();
    for (index, source) in config.tools.openapi.iter().enumerate() {
        match tools_of(source, config.call_timeout()) {
            Ok(found) => tools.extend(found),
            Err(mistake) => mistakes.push(format!("tools.openapi[{index}].{mistake}")),
        }
    }
    if mistakes.is_empty() { Ok(tools) } else { Err(mistakes) }
}

fn tools_of(source: &OpenApiConfig, call_timeout: Duration) -> Result<Vec<ApiToolDefinition>, String> {
    let document = load(source)?;
    let is_wanted = |id: &str| any_matches(&source.include, id) && !any_matches(&source.exclude, id);
    let given: BTreeSet<String> = source.headers.keys().map(|name| name.to_ascii_lowercase()).collect();
    let wanted =
        OperationSelection { base_url: source.base_url.as_deref(), is_wanted: &is_wanted, given_headers: &given };
    let mut found = document::read_operations(&document, &wanted)?;
    for left in &found.left_out {
        tracing::warn!(document = %source.name, operation = left.what, reason = left.reason, "not offered as a tool");
    }
    if found.operations.len() > source.max_tools {
        for left in found.operations.split_off(source.max_tools) {
            let reason = "tools.openapi.max_tools is reached";
            tracing::warn!(document = %source.name, operation = left.id, reason, "not offered as a tool");
        }
    }
    tracing::info!(document = %source.name, tools = found.operations.len(), "OpenAPI document read");
    found.operations.into_iter().map(|operation| to_definition(source, operation, call_timeout)).collect()
}

fn load(source: &OpenApiConfig) -> Result<Value, String> {
    let mut text = String::new();
    let path = source.document.display();
    let file = File::open(&source.document).map_err(|error| format!("document: {path} cannot be opened: {error}"))?;
    let read = file.take(source.max_document_bytes.saturating_add(1)).read_to_string(&mut text);
    let size = read.map_err(|error| format!("document: {path} cannot be read: {error}"))?;
    if u64::try_from(size).is_ok_and(|size| size > source.max_document_bytes) {
        return Err(format!("document: {path} is longer than max_document_bytes, {}", source.max_document_bytes));
    }
    let json = serde_json::from_str(&text);
    json.or_else(|_| serde_saphyr::from_str(&text))
        .map_err(|error| format!("document: {path}, expected an OpenAPI document in JSON or YAML: {error}"))
}

fn to_definition(
    source: &OpenApiConfig,
    documented: DocumentedOperation,
    call_timeout: Duration,
) -> Result<ApiToolDefinition, String> {
    let DocumentedOperation { id, description, schema, operation } = documented;
    Ok(ApiToolDefinition {
        spec: ToolSpec {
            name: tool_name::mcp_tool_name(&source.name, &id),
            description,
            schema,
            idempotent: operation.is_reading() || any_matches(&source.idempotent, &id),
            timeout: source.timeout_ms.map_or(call_timeout, Duration::from_millis),
            executor: Executor::ToolRunner,
            needs_approval: any_matches(&source.needs_approval, &id),
            needs_approval_with: Vec::new(),
            acts_outside: !operation.is_reading(),
            definition: None,
        },
        operation,
        headers: Headers::new(&source.headers)?,
        result: String::new(),
        max_body_bytes: source.max_body_bytes,
        trusts_content: source.trust_content,
    })
}

fn any_matches(patterns: &[String], id: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, id))
}

/// Returns true if the pattern matches the whole text; each `*` matches any characters.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((beginning, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(beginning) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some((_, behind)) = text.split_once(part) else { return false };
        text = behind;
    }
    text.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_characters() {
        for (pattern, text, covered) in [
            ("*", "", true),
            ("getPet", "getPet", true),
            ("getPet", "getPets", false),
            ("get*", "getPet", true),
            ("*Pet", "getPet", true),
            ("*Pet", "getPets", false),
            ("g*P*t", "getPet", true),
            ("g*t*t", "get", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, text), covered, "{pattern} {text}");
        }
    }
}
