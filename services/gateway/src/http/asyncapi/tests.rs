//! The document says what the code says.

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::Validator;
use kairo_core::{event_json::EventJson, subjects::TABLE};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{MESSAGES, build_document, openapi};
use crate::{
    config::GatewayConfig,
    http::{
        commands::{COMMANDS, TARGETS},
        ws::frames::{self, FROM_CLIENT, ServerFrame},
    },
};

fn parsed() -> Value {
    serde_saphyr::from_str(&build_document(&GatewayConfig::default())).unwrap()
}

/// The frames that the operation names, with their descriptions.
fn frames_of(document: &Value, operation: &str) -> BTreeMap<String, Value> {
    let named = document["operations"][operation]["messages"].as_array().unwrap();
    let names = named.iter().map(|message| {
        let pointer = message["$ref"].as_str().unwrap().strip_prefix('#').unwrap();
        let target = document.pointer(pointer).unwrap()["$ref"].as_str().unwrap().strip_prefix('#').unwrap();
        let message = document.pointer(target).unwrap();
        (message["name"].as_str().unwrap().to_owned(), message.clone())
    });
    names.collect()
}

fn properties(frame: &Value) -> BTreeSet<String> {
    frame["payload"]["properties"].as_object().unwrap().keys().cloned().collect()
}

/// The fields that the gateway knows of a frame, as it tells a client that names one it does not know.
fn known_fields(kind: &str) -> BTreeSet<String> {
    let frame = json!({ "type": kind, "no_such_field": 1 }).to_string();
    let (_, received) = frames::parse(frame.as_bytes(), &GatewayConfig::default());
    let problem = received.unwrap_err();
    let unknown = problem.errors.iter().find(|error| error.field == "no_such_field").unwrap();
    unknown.expected.strip_prefix("one of the fields ").unwrap().split(", ").map(str::to_owned).collect()
}

/// The fields without which the gateway does not take a frame.
fn required_fields(kind: &str) -> BTreeSet<String> {
    let (_, received) = frames::parse(json!({ "type": kind }).to_string().as_bytes(), &GatewayConfig::default());
    let errors = received.err().map(|problem| problem.errors).unwrap_or_default();
    errors.into_iter().map(|error| error.field).chain(["type".to_owned()]).collect()
}

#[test]
fn every_frame_of_a_client_is_described_with_the_fields_that_are_read() {
    let described = frames_of(&parsed(), "fromClient");
    assert_eq!(described.keys().map(String::as_str).collect::<BTreeSet<_>>(), BTreeSet::from(FROM_CLIENT));
    for (kind, frame) in &described {
        assert_eq!(properties(frame), known_fields(kind), "{kind}");
        let mut required: BTreeSet<String> = serde_json::from_value(frame["payload"]["required"].clone()).unwrap();
        if kind == "command" {
            // One of several, of which the first is named.
            required.insert("action_id".to_owned());
        }
        if kind == "message" {
            // Or parts.
            required.insert("text".to_owned());
        }
        assert_eq!(required, required_fields(kind), "{kind}");
    }
}

#[test]
fn every_example_of_a_clients_frame_is_taken() {
    for (kind, frame) in frames_of(&parsed(), "fromClient") {
        let examples = frame["examples"].as_array().unwrap();
        assert!(!examples.is_empty(), "{kind}");
        for example in examples {
            let text = example["payload"].to_string();
            let (_, received) = frames::parse(text.as_bytes(), &GatewayConfig::default());
            assert!(received.is_ok(), "{text}: {received:?}");
        }
    }
}

/// A frame of this kind, as the document has it.
fn validator(kind: &str) -> Validator {
    let schema = json!({
        "$ref": format!("#/components/messages/{kind}/payload"),
        "components": parsed()["components"],
    });
    jsonschema::validator_for(&schema).unwrap()
}

fn is_taken(frame: &Value) -> bool {
    frames::parse(frame.to_string().as_bytes(), &GatewayConfig::default()).1.is_ok()
}

#[test]
fn an_order_is_about_exactly_one_thing_that_it_knows() {
    let described = validator("command");
    let mut taken = 0;
    for word in COMMANDS.map(|(word, _)| word).into_iter().chain(["dance"]) {
        for targets in 0..1_usize << TARGETS.len() {
            let mut frame = json!({ "type": "command", "user": "ann", "agent": "cook", "command": word });
            for (bit, field) in TARGETS.into_iter().enumerate().filter(|(bit, _)| targets & (1 << bit) != 0) {
                let id = Uuid::from_u128(bit as u128).to_string();
                frame[field] = match field {
                    "thread_id" => json!("dinner"),
                    "team" => json!("cook"),
                    "submodule" if word == "remove" => json!({ "name": "critic" }),
                    "submodule" => json!({ "name": "critic", "prompt": "Find fault." }),
                    _ => json!(id),
                };
            }
            assert_eq!(described.is_valid(&frame), is_taken(&frame), "{frame}");
            taken += usize::from(is_taken(&frame));
        }
    }
    assert_eq!(taken, COMMANDS.map(|(_, targets)| targets.len()).into_iter().sum::<usize>());
}

#[test]
fn every_word_of_a_choice_is_taken_and_others_are_not() {
    let mut words = 0;
    for (kind, frame) in frames_of(&parsed(), "fromClient") {
        let described = validator(&kind);
        let example = frame["examples"][0]["payload"].clone();
        assert!(described.is_valid(&example), "{example}");
        for (field, described_field) in frame["payload"]["properties"].as_object().unwrap() {
            let Some(known) = described_field["enum"].as_array().filter(|_| kind != "command") else { continue };
            for word in known.iter().chain([&json!("somehow")]) {
                let mut frame = example.clone();
                frame[field] = word.clone();
                assert_eq!((described.is_valid(&frame), is_taken(&frame)), (word != "somehow", word != "somehow"));
                words += 1;
            }
        }
    }
    assert!(words >= 8, "{words}");
}

#[test]
fn every_frame_for_a_client_is_described_with_the_fields_that_are_written() {
    let document = parsed();
    let described = frames_of(&document, "toClient");
    let written = frames::samples();
    let kinds: BTreeSet<&str> = written.iter().map(|frame| frame["type"].as_str().unwrap()).collect();
    assert_eq!(described.keys().map(String::as_str).collect::<BTreeSet<_>>(), kinds);
    for frame in &written {
        let kind = frame["type"].as_str().unwrap();
        let keys: BTreeSet<String> = frame.as_object().unwrap().keys().cloned().collect();
        let properties = properties(&described[kind]);
        assert!(keys.is_subset(&properties), "{frame}: {properties:?}");
        let required: BTreeSet<String> =
            serde_json::from_value(described[kind]["payload"]["required"].clone()).unwrap();
        assert!(required.is_subset(&keys), "{frame}: {required:?}");
        assert!(!described[kind]["examples"].as_array().unwrap().is_empty(), "{kind}");
    }
}

#[test]
fn what_a_client_says_is_described_as_in_the_other_document() {
    let config = GatewayConfig { max_text_bytes: 4_001, max_parts: 41, ..GatewayConfig::default() };
    let frames: Value = serde_saphyr::from_str(&build_document(&config)).unwrap();
    let endpoints: Value = serde_json::from_str(&openapi::yaml_to_json(&openapi::build_document(&config))).unwrap();
    for (frame, message) in [
        ("message", "SendMessageRequest"),
        ("choice", "ChooseRequest"),
        ("approval", "ApproveRequest"),
        ("command", "OrderRequest"),
    ] {
        let mut described = frames["components"]["messages"][frame]["payload"].clone();
        let fields = described["properties"].as_object_mut().unwrap();
        assert_eq!(fields.remove("type"), Some(json!({ "const": frame })));
        assert!(fields.remove("ref").is_some());
        described["required"].as_array_mut().unwrap().retain(|field| field != "type");
        assert_eq!(described, endpoints["components"]["schemas"][message], "{frame}");
    }
    for message in MESSAGES {
        let schemas = [&frames, &endpoints].map(|document| &document["components"]["schemas"][message]);
        assert!(schemas[0].is_object() && schemas[0] == schemas[1], "{message}");
    }
    assert_eq!(frames["components"]["messages"]["message"]["payload"]["properties"]["text"]["maxLength"], 4_001);
}

#[test]
fn the_example_of_an_event_is_one() {
    let described = frames_of(&parsed(), "toClient");
    let example = &described["event"]["examples"][0]["payload"];
    let event: EventJson = serde_json::from_value(example["event"].clone()).unwrap();
    let shown = ServerFrame::from_watched("cook", crate::watch::WatchItem::Event(&event)).to_json();
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), *example);
    assert!(validator("event").is_valid(example));
}

#[test]
fn every_subject_has_a_channel_and_every_reference_leads_somewhere() {
    let document = parsed();
    for route in TABLE {
        let channel = &document["channels"][format!("kairo.{}.{}", route.noun, route.verb)];
        assert!(channel["address"].as_str().unwrap().starts_with(&format!("kairo.{}.{{", route.noun)), "{channel}");
        for type_name in route.types {
            assert_eq!(document["components"]["messages"][type_name]["name"], *type_name);
        }
    }
    assert_eq!(document["channels"].as_object().unwrap().len(), TABLE.len() + 1);
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 100);
    for reference in references {
        assert!(document.pointer(reference.strip_prefix('#').unwrap()).is_some(), "{reference}");
    }
}

fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| collect(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| collect(value, found)),
        _ => {}
    }
}
