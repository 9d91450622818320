//! The rows of answers that are no messages of the contract are described as they are: every field, with what it can hold.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kairo_core::log_message::LogMessage;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{super::usage, tests::parsed};

/// A value of a field: with all that there may be, or with nothing that there need not be.
trait Sample {
    fn sample(full: bool) -> Self;
}

macro_rules! samples {
    ($($type:ty: $value:expr),* $(,)?) => {
        $(impl Sample for $type {
            fn sample(_: bool) -> Self {
                $value
            }
        })*
    };
}

samples! {
    String: "word".to_owned(),
    Value: json!({ "any": [1, null] }),
    Uuid: Uuid::from_u128(7),
    Time: Time(Timestamp::UNIX_EPOCH),
    bool: true,
    u32: 7,
    u64: 7,
    i32: -7,
    i64: 7,
    f64: 0.5,
}

/// Base64, and headers of which none is certain to be there.
impl Sample for LogMessage {
    fn sample(_: bool) -> Self {
        let headers = BTreeMap::from([("ce-id".to_owned(), "word".to_owned())]);
        let (subject, stored, data) = ("kairo.agent.a.message".to_owned(), Timestamp::UNIX_EPOCH, "AA==".to_owned());
        Self { sequence: 7, subject, stored, headers, data }
    }
}

impl<T: Sample> Sample for Option<T> {
    fn sample(full: bool) -> Self {
        full.then(|| T::sample(full))
    }
}

impl<T: Sample> Sample for Vec<T> {
    fn sample(full: bool) -> Self {
        full.then(|| T::sample(full)).into_iter().collect()
    }
}

/// Samples of a row by its fields, none of which can be forgotten; some hold words of their own.
macro_rules! rows {
    ($($row:path { $($field:ident),* $(; $($own:ident: $word:expr),*)? })*) => {
        $(impl Sample for $row {
            fn sample(full: bool) -> Self {
                $row { $($field: Sample::sample(full),)* $($($own: $word.into()),*)? }
            }
        })*
    };
}

rows! {
    usage::Usage { day, agent, user, thread_id, model, sum }
}

impl Sample for usage::Sum {
    fn sample(full: bool) -> Self {
        let sum = Self::default();
        Self { cost: sum.cost.filter(|_| full), ..sum }
    }
}

/// The fields that a schema describes, and those that must be there, of all that it consists of.
fn described(document: &Value, schema: &Value) -> [BTreeSet<String>; 2] {
    if let Some(reference) = schema["$ref"].as_str() {
        return described(document, document.pointer(reference.trim_start_matches('#')).unwrap());
    }
    let words =
        |list: &Value| list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    let mut properties: BTreeSet<String> =
        schema["properties"].as_object().into_iter().flat_map(|fields| fields.keys().cloned()).collect();
    let mut required: BTreeSet<String> = words(&schema["required"]);
    for part in schema["allOf"].as_array().into_iter().flatten() {
        let [more, needed] = described(document, part);
        properties.extend(more);
        required.extend(needed);
    }
    [properties, required]
}

fn is_as_described<T: Sample + Serialize>(name: &'static str) -> &'static str {
    let document = parsed();
    let reference = json!({ "$ref": format!("#/components/schemas/{name}"), "components": document["components"] });
    let schema = jsonschema::draft202012::new(&reference).unwrap();
    let rows = [true, false].map(|full| serde_json::to_value(T::sample(full)).unwrap());
    for row in &rows {
        let wrong: Vec<String> =
            schema.iter_errors(row).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(wrong.is_empty(), "{name}: {wrong:?} in {row}");
    }
    let [full, bare] = rows.map(|row| row.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>());
    let [properties, required] = described(&document, &document["components"]["schemas"][name]);
    assert_eq!(full, properties, "{name}");
    assert_eq!(bare, required, "{name}");
    name
}

#[test]
fn rows_have_the_fields_that_are_described_and_no_others() {
    let mut compared = BTreeSet::from([
        is_as_described::<LogMessage>("LogMessage"),
        is_as_described::<usage::Usage>("UsageRow"),
        is_as_described::<usage::Sum>("UsageSum"),
    ]);
    // What the services, the store of objects, the search and the registry of generations answer.
    compared.extend(["StoredObject"]);
    compared.extend(["ProjectionName", "Requested", "Projection", "UnknownType", "Generation", "Digests"]);
    let rows = include_str!("../../openapi/rows.yaml").lines();
    let names = rows.filter_map(|line| line.strip_prefix("    ")?.strip_suffix(':'));
    let missed: Vec<&str> = names.filter(|name| !name.starts_with(' ') && !compared.contains(name)).collect();
    assert!(missed.is_empty(), "nothing holds these to what is answered: {missed:?}");
}
