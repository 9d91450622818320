//! The rows of answers that are no messages of the contract are described as they are.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kairo_core::log_message::LogMessage;
use serde_json::json;

use super::tests::parsed;

#[test]
fn a_message_of_the_log_has_the_fields_that_are_described_and_no_others() {
    let headers = BTreeMap::from([("ce-id".to_owned(), "word".to_owned())]);
    let (subject, stored, data) = ("kairo.agent.a.message".to_owned(), Timestamp::UNIX_EPOCH, "AA==".to_owned());
    let message = serde_json::to_value(LogMessage { sequence: 7, subject, stored, headers, data }).unwrap();
    let document = parsed();
    let schema = json!({ "$ref": "#/components/schemas/LogMessage", "components": document["components"] });
    let schema = jsonschema::draft202012::new(&schema).unwrap();
    let wrong: Vec<String> = schema.iter_errors(&message).map(|error| error.to_string()).collect();
    assert!(wrong.is_empty(), "{wrong:?} in {message}");
    let fields: BTreeSet<&String> = message.as_object().unwrap().keys().collect();
    let described = document["components"]["schemas"]["LogMessage"]["properties"].as_object().unwrap();
    assert_eq!(fields, described.keys().collect());
}
