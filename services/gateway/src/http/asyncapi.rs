//! `GET /asyncapi.yaml`: the messages of the WebSocket and of NATS, for machines and for those who generate clients.
//!
//! Clients send the same fields in frames as to endpoints, so these are taken from the contract, as are the messages
//! that clients are shown. The rest of the WebSocket's part is written by hand and held to [`super::ws`] by tests; the
//! part of NATS is made from the table of subjects.

use std::fmt::Write;

use axum::routing::MethodRouter;
use kairo_core::subjects::{DLQ_STREAM, EVENTS_STREAM, Emitter, Route, Store, TABLE};

use super::{Gateway, openapi};
use crate::config::GatewayConfig;

const TEMPLATE: &str = include_str!("../asyncapi.yaml");

/// As AsyncAPI registers it.
const TYPE: &str = "application/vnd.aai.asyncapi+yaml;version=3.0.0";

/// The messages of the contract that frames hold.
const MESSAGES: [&str; 5] = ["GivenPart", "OrderedSubmodule", "Event", "EventMeta", "TurnStatus"];

/// A line in the place of what a client says in a frame; the message of the contract that has it follows.
const FIELDS: &str = "        # fields of ";
/// The additional property of every frame of a client.
const REFERENCE: &str = "          ref: { $ref: '#/components/schemas/Ref' }\n";

pub fn yaml_route(config: &GatewayConfig) -> MethodRouter<Gateway> {
    let config = config.clone();
    openapi::document_route(TYPE, move || build_document(&config))
}

fn build_document(config: &GatewayConfig) -> String {
    let messages: String = MESSAGES.into_iter().filter_map(openapi::contract_schema).collect();
    let document = insert_frame_schemas()
        .replacen("  # channels of NATS\n", &render_routes(render_channel), 1)
        .replacen("  # operations of NATS\n", &render_routes(render_operation), 1)
        .replacen("    # messages of NATS\n", &render_routes(render_messages), 1)
        .replacen("    # messages of the contract\n", &messages, 1);
    openapi::fill_in_limits(document, config)
}

/// The document with what clients say.
fn insert_frame_schemas() -> String {
    let mut text = String::new();
    let mut frame = "";
    for line in TEMPLATE.split_inclusive('\n') {
        frame = line.strip_prefix("      name: ").map_or(frame, str::trim_end);
        match line.strip_prefix(FIELDS) {
            Some(message) => {
                write_frame_schema(&mut text, frame, openapi::contract_schema(message.trim_end()).unwrap_or_default())
            }
            None => text.push_str(line),
        }
    }
    text
}

/// Writes the schema of a client's frame: the fields of a message, and the type of the frame.
fn write_frame_schema(text: &mut String, frame: &str, schema: &str) {
    for line in schema.split_inclusive('\n').skip(1) {
        match line.strip_prefix("      required: [") {
            Some(required) => text.push_str(&format!("        required: [type, {required}")),
            None => text.push_str(&format!("  {line}")),
        }
        if line == "      properties:\n" {
            text.push_str(&format!("          type: {{ const: {frame} }}\n{REFERENCE}"));
        }
    }
}

/// A schema of the document that the other one has, too, as it is written, with its name.
pub fn find_schema(name: &str) -> Option<&'static str> {
    let (_, schemas) = TEMPLATE.split_once("\n  schemas:\n")?;
    openapi::schema_block(schemas, name)
}

fn render_routes(part: impl Fn(&Route) -> String) -> String {
    TABLE.iter().map(part).collect()
}

/// Returns the kind of owner that the third token of a subject names.
fn owner_kind(route: &Route) -> &'static str {
    match route.noun {
        "user" => "user",
        "system" | "dlq" => "service",
        _ => "agent",
    }
}

fn render_channel(route: &Route) -> String {
    let Route { noun, verb, says, .. } = route;
    let owner = owner_kind(route);
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
    let description = quote_yaml(&format!("{says}. {stored}{consumers}"));
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

fn render_operation(route: &Route) -> String {
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

fn render_messages(route: &Route) -> String {
    let summary = quote_yaml(route.says);
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
fn quote_yaml(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests;
