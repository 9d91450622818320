//! `GET /openapi.json` and `/openapi.yaml`: the HTTP interface, for machines and for those who generate clients.
//!
//! The rpcs are described by what is generated from the protos (`src/openapi/generated`); the few other endpoints are
//! described by hand (`src/openapi/`). Tests hold both to the routes and the readers. Put in by code are the limits of this gateway's
//! configuration, who may use what ([`super::access`]), the answers that many endpoints have in common, and the schemas
//! that [`super::asyncapi`] has too.

use std::{
    fmt::Write,
    sync::{Arc, LazyLock},
};

use axum::{
    http::{HeaderValue, Method, header},
    routing::{MethodRouter, get},
};
use bytes::Bytes;

use super::{
    Gateway,
    access::{KeyRequirement, endpoint_access},
    asyncapi, etag, openai,
};
use crate::config::GatewayConfig;

/// The parts, in their order; [`SHARED_SCHEMAS`] come last.
const PARTS: [&str; 9] = [
    include_str!("../openapi/head.yaml"),
    include_str!("../openapi/generated/paths.yaml"),
    include_str!("../openapi/objects.yaml"),
    include_str!("../openapi/openai.yaml"),
    include_str!("../openapi/replay.yaml"),
    include_str!("../openapi/service.yaml"),
    include_str!("../openapi/shared.yaml"),
    include_str!("../openapi/schemas.yaml"),
    MESSAGES,
];

/// The messages of the contract.
const MESSAGES: &str = include_str!("../openapi/generated/schemas.yaml");

/// Schemas that are written by hand and part of both documents.
const SHARED_SCHEMAS: [&str; 6] = ["Name", "ClientId", "Uuid", "Place", "Json", "Problem"];

type ResponseRefs = &'static [(u16, &'static str)];

/// Marks in the parts, and the answers that replace them, which many endpoints have in common.
const MARKS: [(&str, ResponseRefs); 3] = [
    (
        "# and what is wrong with something said",
        &[(400, "Invalid"), (413, "TooLarge"), (415, "UnsupportedMediaType"), (503, "Unavailable")],
    ),
    ("# and of every query", &[(500, "Internal"), (503, "Unavailable")]),
    ("# and of every endpoint", &[]),
];
/// Answers of every endpoint, which follow those.
const OF_ALL: ResponseRefs = &[(403, "Forbidden"), (405, "MethodNotAllowed")];
/// Answers of those endpoints that want to know who asks.
const OF_KEYS: ResponseRefs = &[(401, "Unauthorized"), (429, "TooManyRequests")];
/// Fields with which a query says how fresh its answer is to be, and which one it has already.
const FRESHNESS: (&str, [&str; 4]) =
    ("# and how fresh the answer is to be", ["atLeast", "waitMs", "kairoAtLeast", "ifNoneMatch"]);
/// The head of such a query's answer, as it is written and as it is.
const HEAD: (&str, &str) = (
    "headers: { Kairo-Position: { $ref: '#/components/headers/KairoPosition' } }",
    "headers: { Kairo-Position: { $ref: '#/components/headers/KairoPosition' }, ETag: { $ref: '#/components/headers/ETag' } }",
);
/// Additional answers of such a query.
const OF_FRESH: ResponseRefs = &[(304, "NotModified")];

/// The document as YAML, in which it is written.
pub fn yaml_route(config: &GatewayConfig) -> MethodRouter<Gateway> {
    let config = config.clone();
    document_route("application/yaml", move || build_document(&config))
}

/// The document as JSON, which every tool reads.
pub fn json_route(config: &GatewayConfig) -> MethodRouter<Gateway> {
    let config = config.clone();
    document_route("application/json", move || yaml_to_json(&build_document(&config)))
}

/// A document that is made when it is asked for first: that is seldom, and a gateway is to be up at once.
pub fn document_route(
    content_type: &'static str,
    document: impl FnOnce() -> String + Send + 'static,
) -> MethodRouter<Gateway> {
    let made = Arc::new(LazyLock::new(move || {
        let document = Bytes::from(document());
        let content_type = HeaderValue::from_static(content_type);
        ([(header::CONTENT_TYPE, content_type), (header::ETAG, etag::strong(&document))], document)
    }));
    get(move || async move { LazyLock::force(&made).clone() })
}

/// The schema of a message of the contract, as it is written, with its name.
pub fn contract_schema(message: &str) -> Option<&'static str> {
    schema_block(MESSAGES, message)
}

/// One of some schemas, with its name.
pub fn schema_block(schemas: &'static str, name: &str) -> Option<&'static str> {
    let head = format!("    {name}:");
    let begins = |at: &usize| schemas.get(..*at).is_some_and(|before| before.is_empty() || before.ends_with('\n'));
    let start = schemas.match_indices(&head).map(|(at, _)| at).find(begins)?;
    let schema = schemas.get(start..)?;
    // The next name stands as far to the left.
    let lines = schema.split_inclusive('\n');
    let length = lines.clone().take(1).chain(lines.skip(1).take_while(|line| line.starts_with("     "))).map(str::len);
    schema.get(..length.sum())
}

pub fn yaml_to_json(document: &str) -> String {
    // A test reads all of it, so there is nothing to go wrong.
    serde_saphyr::from_str::<serde_json::Value>(document).unwrap_or_default().to_string()
}

pub fn build_document(config: &GatewayConfig) -> String {
    let shared = SHARED_SCHEMAS.into_iter().filter_map(asyncapi::find_schema);
    let mut text = String::new();
    let mut path = "";
    let mut needs = KeyRequirement::Nothing;
    let mut fresh = false;
    for line in PARTS.into_iter().chain(shared).flat_map(str::lines) {
        let mark = line.trim_start();
        if let Some(named) = line.strip_prefix("  /").and_then(|_| mark.strip_suffix(':')) {
            path = named;
        }
        if let Some((_, answers)) = MARKS.iter().find(|(name, _)| *name == mark) {
            let of_keys = if needs == KeyRequirement::Nothing { &[] } else { OF_KEYS };
            let form = if openai::is_chat_path(path) { "Chat" } else { "" };
            let of_fresh = if fresh { OF_FRESH } else { &[] };
            for (status, name) in answers.iter().chain(OF_ALL).chain(of_keys).chain(of_fresh) {
                push_line(
                    &mut text,
                    format_args!("        '{status}': {{ $ref: '#/components/responses/{form}{name}' }}"),
                );
            }
        } else if mark == HEAD.0 {
            push_line(&mut text, format_args!("{}", line.replace(HEAD.0, HEAD.1)));
        } else if mark == FRESHNESS.0 {
            fresh = true;
            for name in FRESHNESS.1 {
                push_line(&mut text, format_args!("        - $ref: '#/components/parameters/{name}'"));
            }
        } else {
            push_line(&mut text, format_args!("{line}"));
        }
        if let Some(method) = operation_method(line) {
            (needs, fresh) = (endpoint_access(&method, path).needs, false);
            push_line(
                &mut text,
                format_args!("      security: {}", security_requirement(needs, config.requires_key())),
            );
        }
    }
    fill_in_limits(text, config)
}

/// The method whose operation begins with this line.
fn operation_method(line: &str) -> Option<Method> {
    match line {
        "    get:" => Some(Method::GET),
        "    post:" => Some(Method::POST),
        "    patch:" => Some(Method::PATCH),
        "    delete:" => Some(Method::DELETE),
        _ => None,
    }
}

/// Returns the security of an endpoint: a key that allows it, or, where no key is required, anybody.
fn security_requirement(needs: KeyRequirement, required: bool) -> String {
    let scope = match needs {
        KeyRequirement::Nothing => return "[]".to_owned(),
        KeyRequirement::Key => String::new(),
        KeyRequirement::Scope(scope) => scope.name().to_owned(),
        KeyRequirement::Both(one, other) => format!("{}, {}", one.name(), other.name()),
    };
    let anybody = if required { "" } else { ", {}" };
    format!("[{{ apiKey: [{scope}] }}{anybody}]")
}

fn push_line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}

/// Limits are those of this gateway.
pub fn fill_in_limits(mut text: String, config: &GatewayConfig) -> String {
    let values = [
        ("<version>", env!("CARGO_PKG_VERSION").to_owned()),
        ("<max_text_bytes>", config.max_text_bytes.to_string()),
        ("<max_part_bytes>", config.max_part_bytes.to_string()),
        ("<max_replay_bytes>", config.max_replay_bytes.to_string()),
        ("<max_state_bytes>", config.max_state_bytes.to_string()),
        ("<max_parts>", config.max_parts.to_string()),
        ("<max_prompt_bytes>", config.max_prompt_bytes.to_string()),
        ("<max_body_bytes>", config.max_body_bytes.to_string()),
        ("<default_limit>", config.default_limit.to_string()),
        ("<max_limit>", config.max_limit.to_string()),
        ("<max_streams>", config.max_streams.to_string()),
        ("<heartbeat_ms>", config.heartbeat_ms.to_string()),
        ("<status_wait_ms>", config.status_wait_ms.to_string()),
        ("<digest_timeout_ms>", config.digest_timeout_ms.to_string()),
        ("<freshness_wait_ms>", config.freshness_wait_ms.to_string()),
        ("<openai_wait_ms>", config.openai_wait_ms.to_string()),
        ("<ticket_ttl_ms>", config.ticket_ttl_ms.to_string()),
        ("<ticket_reconnect_ms>", config.ticket_reconnect_ms.to_string()),
        ("<rate_per_s>", config.rate_per_s.to_string()),
    ];
    for (place, value) in values {
        text = text.replace(place, &value);
    }
    text
}

#[cfg(test)]
mod tests;
