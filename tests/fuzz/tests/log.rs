//! Fuzzes the readers of the log, and of texts from models and other systems.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use jiff::Timestamp;
use kairo_events::{
    envelope::{Envelope, Origin},
    event_json,
    record::Record,
    schema as schemas,
    subjects::Service,
};
use kairo_fuzz::Corpus;
use kairo_mind::{
    chain::{format, references},
    conditions, schema,
};
use kairo_proto::{Body, ContentType};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// Whatever can be read is written and read again, and shown to people.
fn read_as_every_type(content: ContentType, bytes: &[u8]) {
    for type_name in Body::TYPES {
        let Ok(body) = Body::decode(type_name, content, bytes) else { continue };
        let written = body.encode();
        let again = Body::decode(type_name, ContentType::Protobuf, &written).unwrap();
        // By their bytes: what is not a number does not equal itself.
        assert_eq!(again.encode(), written, "{type_name}");
        body.to_json();
        let envelope = Envelope::from_outside(Uuid::nil(), Service::Gateway, Origin::System, Timestamp::UNIX_EPOCH);
        let envelope = Envelope { type_name: (*type_name).to_owned(), ..envelope };
        let record = Record { sequence: 1, subject: "kairo.agent.ann.decision".to_owned(), envelope, body };
        for event in event_json::events(&record) {
            event.text();
        }
        event_json::headings(&record);
    }
}

#[test]
fn fuzz_the_event_codec() {
    Corpus::golden("events", ".bin").fuzz(|bytes| read_as_every_type(ContentType::Protobuf, bytes));
}

#[test]
fn fuzz_the_json_form() {
    Corpus::golden("json", ".json").fuzz(|bytes| read_as_every_type(ContentType::Json, bytes));
}

#[test]
fn fuzz_the_format_of_chains() {
    Corpus::named("chains").fuzz_text(|text| {
        if let Ok(steps) = format::parse(text, 100) {
            assert_eq!(format::from_json(&format::to_json(&steps), 100).unwrap(), steps);
        }
    });
}

#[test]
fn fuzz_the_references_in_parameters() {
    let result = json!({ "date": "2026-03-26", "events": [{ "title": "{tools.now.result}" }] });
    let outcomes = [
        references::StepOutcome { event: "tools.now", result: Some(&result) },
        references::StepOutcome { event: "calendar.check", result: Some(&result) },
        references::StepOutcome { event: "tools.now", result: None },
    ];
    let event = json!({ "sender": "ann", "count": 3 });
    let scope = references::ReferenceScope {
        outcomes: &outcomes,
        thread_id: "t-1",
        analysis: "a",
        summary: "s",
        event: &event,
    };
    Corpus::named("references").fuzz_text(|text| {
        let params = params(text);
        if let Ok(filled) = references::fill(&params, &scope) {
            assert_eq!(filled.keys().collect::<Vec<_>>(), params.keys().collect::<Vec<_>>());
        }
        let _ = references::find_all(&params, &|event| event == "tools.now");
    });
}

/// An object as it is, and anything else as one parameter.
fn params(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_else(|_| Map::from_iter([("text".to_owned(), json!(text))]))
}

#[test]
fn fuzz_conditions() {
    let event = json!({ "sender": "ann", "count": 3, "tags": ["a", "b"], "deep": { "er": null } });
    Corpus::named("conditions").fuzz_text(|text| {
        assert_eq!(conditions::judge(text, &event), conditions::judge(text, &event));
    });
}

#[test]
fn fuzz_the_schemas_of_tools() {
    let params = params(r#"{"url": "https://example.com", "count": 3, "list": [1, "2", {}], "none": null}"#);
    Corpus::named("schemas").fuzz_text(|text| {
        let mistakes = schema::mistakes(text, &params);
        assert!(mistakes.len() <= 10);
        if let Ok(schema) = serde_json::from_str(text) {
            let _ = schemas::measure(&schema);
        }
    });
}
