//! OpenTelemetry's conventions for the attributes of spans: their names, their types, and which are required.
//! From the registries semantic-conventions 1.38 (http, server, messaging) and semantic-conventions-genai 0.1.0.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};

/// Attributes of a span, with their types.
pub type Attributes = BTreeMap<String, &'static str>;

const TEXT: &str = "string";
const NUMBER: &str = "int";

/// Attributes that Kairo sets whose type the conventions say.
const TYPES: [(&str, &str); 23] = [
    ("error.type", TEXT),
    ("gen_ai.agent.id", TEXT),
    ("gen_ai.agent.name", TEXT),
    ("gen_ai.conversation.id", TEXT),
    ("gen_ai.operation.name", TEXT),
    ("gen_ai.output.type", TEXT),
    ("gen_ai.provider.name", TEXT),
    ("gen_ai.request.model", TEXT),
    ("gen_ai.response.model", TEXT),
    ("gen_ai.tool.call.id", TEXT),
    ("gen_ai.tool.name", TEXT),
    ("gen_ai.tool.type", TEXT),
    ("gen_ai.usage.cache_read.input_tokens", NUMBER),
    ("gen_ai.usage.input_tokens", NUMBER),
    ("gen_ai.usage.output_tokens", NUMBER),
    ("http.request.method", TEXT),
    ("http.response.status_code", NUMBER),
    ("http.route", TEXT),
    ("messaging.destination.name", TEXT),
    ("messaging.message.id", TEXT),
    ("messaging.system", TEXT),
    ("server.address", TEXT),
    ("server.port", NUMBER),
];
/// Attributes of the namespaces that the conventions own.
const NAMESPACES: [&str; 5] = ["gen_ai.", "http.", "messaging.", "server.", "error."];
const OWN_NUMBER: &str = "kairo.sequence";

/// The attributes required of the spans of a turn with a tool, by operation.
const NEEDED: [(&str, &[&str]); 3] = [
    ("invoke_agent", &["gen_ai.agent.id", "gen_ai.agent.name", "gen_ai.conversation.id", "gen_ai.provider.name"]),
    (
        "chat",
        &[
            "gen_ai.conversation.id",
            "gen_ai.provider.name",
            "gen_ai.request.model",
            "gen_ai.response.model",
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.output_tokens",
            "server.address",
            "server.port",
        ],
    ),
    (
        "execute_tool",
        &["gen_ai.agent.id", "gen_ai.conversation.id", "gen_ai.tool.call.id", "gen_ai.tool.name", "gen_ai.tool.type"],
    ),
];

pub fn attributes(of_span: &[KeyValue]) -> Attributes {
    let kind = |value: &Value| match value {
        Value::StringValue(_) => TEXT,
        Value::IntValue(_) => NUMBER,
        Value::BoolValue(_) => "boolean",
        Value::DoubleValue(_) => "double",
        _ => "other",
    };
    let typed = |attribute: &KeyValue| Some((attribute.key.clone(), kind(attribute.value.as_ref()?.value.as_ref()?)));
    of_span.iter().filter_map(typed).collect()
}

/// Returns the mistakes in the attributes of a span of this name.
pub fn mistakes(name: &str, attributes: &Attributes) -> Vec<String> {
    let mut found = Vec::new();
    for (attribute, kind) in attributes {
        let known = TYPES.iter().find(|(known, _)| known == attribute).map(|(_, kind)| *kind);
        let expected = known.or((attribute == OWN_NUMBER).then_some(NUMBER));
        match expected {
            Some(expected) if expected != *kind => {
                found.push(format!("{name}: {attribute} is a {kind}, not {expected}"))
            }
            None if NAMESPACES.iter().any(|namespace| attribute.starts_with(namespace)) => {
                found.push(format!("{name}: {attribute} is no attribute of the conventions"));
            }
            _ => {}
        }
    }
    let operation = name.split(' ').next().unwrap_or_default();
    let needed = NEEDED.iter().filter(|(of, _)| *of == operation).flat_map(|(_, needed)| *needed);
    let missing = needed.filter(|attribute| !attributes.contains_key(**attribute));
    found.extend(missing.map(|attribute| format!("{name}: {attribute} is missing")));
    found
}
