//! Builds HTTP requests from tool arguments, each of which has its place in the URL, the headers or the body.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use url::Url;

use super::template::Template;

/// The part of a request that carries an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentPlace {
    /// The placeholder of this name.
    Path,
    /// A parameter of the query; of a list, one parameter for each value, or one for all with commas in between.
    Query {
        exploded: bool,
    },
    Header,
    /// A field of the JSON body.
    Field,
    /// It is the JSON body.
    Body,
}

/// The place of an argument in the request, and its name there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    pub place: ArgumentPlace,
    pub name: String,
}

/// A request with arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// In capitals.
    pub method: String,
    pub template: Template,
    /// Destinations by argument name.
    pub destinations: BTreeMap<String, Destination>,
    /// Place of all other arguments, which keep their own names.
    pub others: ArgumentPlace,
}

/// A request as it is sent.
#[derive(Debug, PartialEq, Eq)]
pub struct PreparedRequest {
    pub url: Url,
    pub headers: Vec<(String, String)>,
    pub body: Option<Value>,
}

impl Operation {
    /// Returns true for the methods that only read, `GET` and `HEAD`.
    pub fn is_reading(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD")
    }

    /// Builds the request from the arguments. A null counts as absent, except in a body.
    ///
    /// # Errors
    /// Names the invalid argument, followed by the reason.
    pub fn prepare(&self, arguments: Map<String, Value>) -> Result<PreparedRequest, String> {
        let mut texts = BTreeMap::new();
        let mut query = Vec::new();
        let mut headers = Vec::new();
        let mut fields = Map::new();
        let mut body = None;
        for (argument, value) in arguments {
            let (place, name) = self.destination(&argument);
            match place {
                ArgumentPlace::Field => drop(fields.insert(name, value)),
                ArgumentPlace::Body => body = Some(value),
                _ if value.is_null() => {}
                ArgumentPlace::Path => drop(texts.insert(name, texts_of(&argument, &value)?.join(","))),
                ArgumentPlace::Header => headers.push((name, texts_of(&argument, &value)?.join(","))),
                ArgumentPlace::Query { exploded: true } => {
                    query.extend(texts_of(&argument, &value)?.into_iter().map(|text| (name.clone(), text)));
                }
                ArgumentPlace::Query { exploded: false } => query.push((name, texts_of(&argument, &value)?.join(","))),
            }
        }
        let mut url = self.template.fill(&texts)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        if body.is_none() && self.sends_fields() {
            body = Some(Value::Object(fields));
        }
        Ok(PreparedRequest { url, headers, body })
    }

    fn destination(&self, argument: &str) -> (ArgumentPlace, String) {
        match self.destinations.get(argument) {
            Some(Destination { place, name }) => (place.clone(), name.clone()),
            None => (self.others.clone(), argument.to_owned()),
        }
    }

    fn sends_fields(&self) -> bool {
        let places = self.destinations.values().map(|destination| &destination.place);
        places.chain([&self.others]).any(|place| *place == ArgumentPlace::Field)
    }
}

/// One text, or those of a list; what has parts beyond that is told as JSON.
fn texts_of(argument: &str, value: &Value) -> Result<Vec<String>, String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let texts = match value {
        Value::Array(values) => values.iter().map(text).collect(),
        other => vec![text(other)],
    };
    match texts.iter().any(|text| text.contains('\0')) {
        true => Err(format!("/{argument}: must not have the character NUL in it")),
        false => Ok(texts),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn operation(
        method: &str,
        url: &str,
        destinations: &[(&str, ArgumentPlace, &str)],
        others: ArgumentPlace,
    ) -> Operation {
        let destination = |(argument, place, name): &(&str, ArgumentPlace, &str)| {
            ((*argument).to_owned(), Destination { place: place.clone(), name: (*name).to_owned() })
        };
        Operation {
            method: method.to_owned(),
            template: Template::parse(url).unwrap(),
            destinations: destinations.iter().map(destination).collect(),
            others,
        }
    }

    fn prepared(operation: &Operation, arguments: Value) -> Result<PreparedRequest, String> {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        operation.prepare(arguments)
    }

    #[test]
    fn each_argument_goes_to_its_place() {
        let place = [
            ("id", ArgumentPlace::Path, "id"),
            ("tags", ArgumentPlace::Query { exploded: true }, "tag"),
            ("sizes", ArgumentPlace::Query { exploded: false }, "size"),
            ("trace", ArgumentPlace::Header, "X-Trace"),
        ];
        let post = operation("POST", "https://h/a/{id}?k=v", &place, ArgumentPlace::Field);
        let arguments =
            json!({"id": "a b", "tags": ["x", "&y"], "sizes": [1, 2], "trace": true, "n": null, "m": {"o": 1}});
        let prepared = prepared(&post, arguments).unwrap();
        assert_eq!(prepared.url.as_str(), "https://h/a/a%20b?k=v&size=1%2C2&tag=x&tag=%26y");
        assert_eq!(prepared.headers, [("X-Trace".to_owned(), "true".to_owned())]);
        assert_eq!(prepared.body, Some(json!({"n": null, "m": {"o": 1}})));
    }

    #[test]
    fn what_reads_has_no_body_and_nulls_are_left_out() {
        let get = operation("GET", "https://h/a", &[], ArgumentPlace::Query { exploded: true });
        let prepared = prepared(&get, json!({"q": "é", "n": null})).unwrap();
        assert_eq!((prepared.url.as_str(), prepared.body), ("https://h/a?q=%C3%A9", None));
    }

    #[test]
    fn a_body_can_be_one_argument() {
        let put = operation(
            "PUT",
            "https://h/a",
            &[("body", ArgumentPlace::Body, "")],
            ArgumentPlace::Query { exploded: true },
        );
        assert_eq!(prepared(&put, json!({"body": [1]})).unwrap().body, Some(json!([1])));
        assert_eq!(prepared(&put, json!({})).unwrap().body, None);
    }

    #[test]
    fn what_an_address_cannot_do_without_is_missed() {
        let get = operation(
            "GET",
            "https://h/{id}",
            &[("id", ArgumentPlace::Path, "id")],
            ArgumentPlace::Query { exploded: true },
        );
        for arguments in [json!({}), json!({"id": null}), json!({"id": ""}), json!({"id": "a\0"})] {
            assert!(prepared(&get, arguments.clone()).unwrap_err().starts_with("/id: "), "{arguments}");
        }
    }
}
