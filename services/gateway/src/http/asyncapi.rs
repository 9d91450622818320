//! `GET /asyncapi.yaml`: what goes over the WebSocket and through NATS, for machines and for those who generate clients.
//!
//! The WebSocket's part is written by hand and held to [`super::ws`] by tests; that of NATS is made from the table of
//! subjects.

use std::{fmt::Write, sync::LazyLock};

use axum::http::{HeaderName, HeaderValue, header};
use kairo_core::subjects::{DLQ_STREAM, EVENTS_STREAM, Emitter, Route, Store, TABLE};

use super::etag;

const TEMPLATE: &str = include_str!("../asyncapi.yaml");

/// As AsyncAPI registers it.
const TYPE: HeaderValue = HeaderValue::from_static("application/vnd.aai.asyncapi+yaml;version=3.0.0");

pub async fn get() -> ([(HeaderName, HeaderValue); 2], &'static str) {
    static DOCUMENT: LazyLock<(String, HeaderValue)> = LazyLock::new(|| {
        let document = document();
        let tag = etag::strong(document.as_bytes());
        (document, tag)
    });
    let (document, tag) = &*DOCUMENT;
    ([(header::CONTENT_TYPE, TYPE), (header::ETAG, tag.clone())], document)
}

fn document() -> String {
    TEMPLATE
        .replacen("VERSION", env!("CARGO_PKG_VERSION"), 1)
        .replacen("  # channels of NATS\n", &each(channel), 1)
        .replacen("  # operations of NATS\n", &each(operation), 1)
        .replacen("    # messages of NATS\n", &each(messages), 1)
}

/// A schema of the document, as it is written there, with its name.
pub fn schema(name: &str) -> Option<&'static str> {
    let (_, schemas) = TEMPLATE.split_once("\n  schemas:\n")?;
    let start = schemas.find(&format!("    {name}:\n"))?;
    let schema = schemas.get(start..)?;
    // The next name stands as far to the left.
    let lines = schema.split_inclusive('\n');
    let length = lines.clone().take(1).chain(lines.skip(1).take_while(|line| line.starts_with("     "))).map(str::len);
    schema.get(..length.sum())
}

fn each(part: impl Fn(&Route) -> String) -> String {
    TABLE.iter().map(part).collect()
}

/// What the third token of a subject stands for.
fn owner(route: &Route) -> &'static str {
    match route.noun {
        "user" => "user",
        "system" | "dlq" => "service",
        _ => "agent",
    }
}

fn channel(route: &Route) -> String {
    let Route { noun, verb, says, .. } = route;
    let owner = owner(route);
    let stored = match route.store {
        Store::Events => format!("Kept in {EVENTS_STREAM}."),
        Store::DeadLetters => format!("Kept in {DLQ_STREAM}."),
        Store::Live => "Never stored.".to_owned(),
    };
    let consumers: Vec<&str> = route.consumers.iter().map(|consumer| consumer.name()).collect();
    let consumers = match consumers.as_slice() {
        [] => String::new(),
        some => format!(" Delivered to {}.", some.join(", ")),
    };
    let description = quoted(&format!("{says}. {stored}{consumers}"));
    let mut text = format!(
        "  kairo.{noun}.{verb}:
    address: kairo.{noun}.{{{owner}}}.{verb}
    description: {description}
    servers:
      - $ref: '#/servers/nats'
    parameters:
      {owner}: {{ $ref: '#/components/parameters/{owner}' }}
    messages:
"
    );
    for type_name in route.types {
        let _ = writeln!(text, "      {type_name}: {{ $ref: '#/components/messages/{type_name}' }}");
    }
    text
}

fn operation(route: &Route) -> String {
    let Route { noun, verb, .. } = route;
    let emitter = match route.emitter {
        Emitter::Only(service) => service.name(),
        Emitter::Owner => "the service",
        Emitter::Timer => "JetStream, from a schedule",
    };
    let mut text = format!(
        "  emit.{noun}.{verb}:
    action: send
    channel: {{ $ref: '#/channels/kairo.{noun}.{verb}' }}
    summary: Emitted by {emitter}.
    messages:
"
    );
    for type_name in route.types {
        let _ = writeln!(text, "      - $ref: '#/channels/kairo.{noun}.{verb}/messages/{type_name}'");
    }
    text
}

fn messages(route: &Route) -> String {
    let summary = quoted(route.says);
    let message = |type_name| {
        format!(
            "    {type_name}:
      name: {type_name}
      summary: {summary}
      contentType: application/protobuf
      headers: {{ $ref: '#/components/schemas/CloudEvent' }}
      payload: {{ $ref: '#/components/schemas/Body' }}
"
        )
    };
    route.types.iter().map(message).collect()
}

/// A JSON string is one of YAML too.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests;
