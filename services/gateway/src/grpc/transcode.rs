//! A message of a gRPC client in the form that the endpoint takes which answers it. Pure.
//!
//! The fields of a request are named as those of its endpoint are. What is not given is not sent, so that what an
//! endpoint assumes then holds for gRPC, too.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::{Map, Value};
use url::form_urlencoded;

/// The characters to percent-encode in a path: all except those of names and ids.
const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');
/// Stands for a part of a path that was not given, and is no name and no id.
const NOTHING: &str = " ";

/// The fields that are given.
pub fn request_fields(message: &impl Serialize) -> Result<Map<String, Value>, serde_json::Error> {
    serde_json::to_value(message).map(|value| match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    })
}

/// The path, with the fields that the route names taken out and filled in.
pub fn fill_path(route: &str, fields: &mut Map<String, Value>) -> String {
    let mut path = String::new();
    for part in route.split('/').skip(1) {
        path.push('/');
        match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
            Some(field) => {
                let given = fields.remove(field).map(|value| value_text(&value)).unwrap_or_else(|| NOTHING.to_owned());
                path.extend(utf8_percent_encode(&given, IN_PATH));
            }
            None => path.push_str(part),
        }
    }
    path
}

/// The fields as a URL's query; with its question mark if there are any.
pub fn to_query(fields: &Map<String, Value>) -> String {
    if fields.is_empty() {
        return String::new();
    }
    let mut pairs = form_urlencoded::Serializer::new(String::new());
    for (field, value) in fields {
        pairs.append_pair(field, &value_text(value));
    }
    format!("?{}", pairs.finish())
}

fn value_text(value: &Value) -> String {
    match value {
        Value::String(words) => words.clone(),
        Value::Array(several) => several.iter().map(value_text).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::{GetConversationRequest, GetTaskRequest, GetUsageRequest, ListProcessesRequest, Place};

    use super::*;

    #[test]
    fn what_is_given_becomes_path_and_query() {
        let after = Some(Place { sequence: 7, position: Some(1) });
        let request = GetConversationRequest {
            agent: "a_b-c".to_owned(),
            user: "an&n".to_owned(),
            after,
            limit: 5,
            at_least: u64::MAX,
            wait_ms: Some(0),
            ..Default::default()
        };
        let mut fields = request_fields(&request).unwrap();
        assert_eq!(fill_path("/v1/conversations/{agent}", &mut fields), "/v1/conversations/a_b-c");
        let expected = "?after=7.1&at_least=18446744073709551615&limit=5&user=an%26n&wait_ms=0";
        assert_eq!(to_query(&fields), expected);
    }

    #[test]
    fn what_is_not_given_is_not_sent() {
        let mut none = request_fields(&ListProcessesRequest::default()).unwrap();
        assert_eq!((fill_path("/v1/processes", &mut none).as_str(), to_query(&none).as_str()), ("/v1/processes", ""));
        let ended = ListProcessesRequest { running: Some(false), ..Default::default() };
        assert_eq!(to_query(&request_fields(&ended).unwrap()), "?running=false");
        let by = GetUsageRequest { by: vec!["day".to_owned(), "model".to_owned()], ..Default::default() };
        assert_eq!(to_query(&request_fields(&by).unwrap()), "?by=day%2Cmodel");
    }

    #[test]
    fn a_path_cannot_be_led_astray() {
        for (id, path_of) in [("", "%20"), ("../keys", "%2E%2E%2Fkeys"), ("a?b#c", "a%3Fb%23c")] {
            let mut fields = request_fields(&GetTaskRequest { task_id: id.to_owned(), ..Default::default() }).unwrap();
            assert_eq!(fill_path("/v1/tasks/{task_id}", &mut fields), format!("/v1/tasks/{path_of}"));
            assert!(fields.is_empty());
        }
    }
}
