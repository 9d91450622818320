//! Reads messages from other systems: CloudEvents with JSON data in binary or structured mode, or plain JSON. Pure.

use kairo_core::ids;
use serde_json::{Map, Value};
use uuid::Uuid;

/// Something that happened in another system.
#[derive(Clone, Debug, PartialEq)]
pub struct OutsideEvent {
    /// The id the sender chose, if that is a UUID; else derived from what the sender calls the event.
    pub id: Uuid,
    pub type_name: String,
    /// A JSON object.
    pub data: Value,
}

/// Reads a message. `header` finds a header by its lower-case name; `trigger` (`<source>.<verb>` of the subject) and
/// `sequence` fill in for the fields that plain JSON lacks.
///
/// # Errors
/// A description of the fault, for the dead letter.
pub fn parse_event<'h>(
    header: impl Fn(&str) -> Option<&'h str>,
    body: &[u8],
    trigger: &str,
    sequence: u64,
) -> Result<OutsideEvent, String> {
    let content_type = header("content-type").map(media_type);
    if content_type.as_deref().is_some_and(|media| media.starts_with("application/cloudevents")) {
        return match parse_json(body)? {
            Value::Object(event) => parse_structured(event),
            _ => Err("body: expected a CloudEvent as a JSON object".to_owned()),
        };
    }
    if ["ce-specversion", "ce-id", "ce-type", "ce-source"].iter().any(|name| header(name).is_some()) {
        let content_type = header("ce-datacontenttype").map(media_type).or(content_type);
        expect_json("ce-datacontenttype", content_type.as_deref())?;
        let attribute = |name: &str| header(&format!("ce-{name}")).map(str::to_owned);
        let data = if body.is_empty() { Value::Null } else { parse_json(body)? };
        return parse_attributes("header ce-", attribute, data);
    }
    expect_json("content-type", content_type.as_deref())?;
    match parse_json(body)? {
        Value::Object(event) if event.contains_key("specversion") => parse_structured(event),
        data => {
            let id = ids::from_parts("outside", &[&sequence.to_string()]);
            Ok(OutsideEvent { id, type_name: trigger.to_owned(), data: to_object(data) })
        }
    }
}

/// An event that is all in the body.
fn parse_structured(mut event: Map<String, Value>) -> Result<OutsideEvent, String> {
    if event.contains_key("data_base64") {
        return Err("data_base64: expected data, as JSON".to_owned());
    }
    let content_type = event.get("datacontenttype").and_then(Value::as_str).map(media_type);
    expect_json("datacontenttype", content_type.as_deref())?;
    let data = event.remove("data").unwrap_or_default();
    let attribute = |name: &str| event.get(name).and_then(Value::as_str).map(str::to_owned);
    parse_attributes("", attribute, data)
}

fn parse_attributes(
    prefix: &str,
    attribute: impl Fn(&str) -> Option<String>,
    data: Value,
) -> Result<OutsideEvent, String> {
    let required = |name: &str| {
        let value = attribute(name).filter(|value| !value.is_empty());
        value.ok_or_else(|| format!("{prefix}{name}: expected a text, found none"))
    };
    let version = required("specversion")?;
    if version != "1.0" {
        return Err(format!("{prefix}specversion: expected 1.0, found {:?}", shorten(&version)));
    }
    let id = required("id")?;
    let source = required("source")?;
    let type_name = required("type")?;
    let id = Uuid::parse_str(&id).unwrap_or_else(|_| ids::from_parts("outside", &[&source, &id]));
    Ok(OutsideEvent { id, type_name, data: to_object(data) })
}

fn parse_json(body: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(body).map_err(|error| format!("body: expected JSON: {error}"))
}

fn expect_json(name: &str, media: Option<&str>) -> Result<(), String> {
    match media {
        Some(media) if media != "application/json" && !media.ends_with("+json") => {
            Err(format!("{name}: expected application/json, found {:?}", shorten(media)))
        }
        _ => Ok(()),
    }
}

/// A content type without its parameters.
fn media_type(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Hooks refer to what happened by names, so anything else gets one.
fn to_object(data: Value) -> Value {
    match data {
        Value::Object(_) => data,
        Value::Null => Value::Object(Map::new()),
        other => Value::Object(Map::from_iter([("value".to_owned(), other)])),
    }
}

/// As much as a reason has room for.
fn shorten(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "018f2c7e-0000-7000-8000-000000000001";

    fn of(headers: &[(&'static str, &'static str)], body: &str) -> Result<OutsideEvent, String> {
        let header = |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        parse_event(header, body.as_bytes(), "github.push", 42)
    }

    const BINARY: [(&str, &str); 4] =
        [("ce-specversion", "1.0"), ("ce-id", "d-1"), ("ce-source", "/github"), ("ce-type", "com.github.push")];

    #[test]
    fn the_three_forms_say_the_same() {
        let body = r#"{"ref":"main"}"#;
        let binary = of(&BINARY, body).unwrap();
        assert_eq!((binary.type_name.as_str(), &binary.data), ("com.github.push", &json!({"ref": "main"})));
        let structured = json!({
            "specversion": "1.0", "id": "d-1", "source": "/github", "type": "com.github.push",
            "datacontenttype": "application/json; charset=utf-8", "data": { "ref": "main" },
        });
        let declared = [("content-type", "Application/CloudEvents+json; charset=utf-8")];
        assert_eq!(of(&declared, &structured.to_string()), Ok(binary.clone()));
        assert_eq!(of(&[], &structured.to_string()), Ok(binary));
        let plain = of(&[("content-type", "application/json")], body).unwrap();
        assert_eq!((plain.type_name.as_str(), plain.data), ("github.push", json!({"ref": "main"})));
        assert_eq!(plain.id, ids::from_parts("outside", &["42"]));
    }

    #[test]
    fn the_senders_id_is_kept_if_it_can_be() {
        let named = |id| [("ce-id", id), BINARY[0], BINARY[2], BINARY[3]];
        assert_eq!(of(&named(ID), "{}").unwrap().id.to_string(), ID);
        let other = of(&named("d-2"), "{}").unwrap().id;
        assert_ne!(of(&BINARY, "{}").unwrap().id, other);
        assert_eq!(of(&named("d-2"), "[]").unwrap().id, other);
    }

    #[test]
    fn what_is_no_object_becomes_one() {
        assert_eq!(of(&[], "[1,2]").unwrap().data, json!({"value": [1, 2]}));
        assert_eq!(of(&[], "\"up\"").unwrap().data, json!({"value": "up"}));
        assert_eq!(of(&BINARY, "").unwrap().data, json!({}));
        assert_eq!(of(&[], "null").unwrap().data, json!({}));
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_the_reason() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let event = |more: Value| {
            let mut event = json!({"specversion": "1.0", "id": "d-1", "source": "/s", "type": "t"});
            event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            event.to_string()
        };
        let cases = [
            (of(&[], ""), "body: expected JSON"),
            (of(&[], "{\"ref\":"), "body: expected JSON"),
            (of(&[], &deep), "body: expected JSON"),
            (of(&[("content-type", "text/plain")], "{}"), "content-type: expected application/json"),
            (of(&[("ce-datacontenttype", "image/png"), BINARY[1]], "{}"), "ce-datacontenttype: expected"),
            (of(&BINARY[..3], "{}"), "header ce-type: expected a text"),
            (of(&BINARY[1..], "{}"), "header ce-specversion: expected a text"),
            (of(&[("content-type", "application/cloudevents+json")], "[]"), "body: expected a CloudEvent"),
            (of(&[("content-type", "application/cloudevents-batch+json")], "[]"), "body: expected a CloudEvent"),
            (of(&[], &event(json!({"specversion": "0.3"}))), "specversion: expected 1.0, found \"0.3\""),
            (of(&[], &event(json!({"specversion": 1}))), "specversion: expected a text"),
            (of(&[], &event(json!({"id": ""}))), "id: expected a text"),
            (of(&[], &event(json!({"data_base64": "e30="}))), "data_base64: expected data"),
            (of(&[], &event(json!({"datacontenttype": "text/xml"}))), "datacontenttype: expected application/json"),
        ];
        for (outcome, reason) in cases {
            let found = outcome.unwrap_err();
            assert!(found.starts_with(reason), "{found} instead of {reason}");
        }
    }
}
