//! Reads the operations of an OpenAPI document, each with a JSON Schema of its arguments and their places in the
//! request.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::schema::{Schemas, follow_references};
use crate::web_api::config::METHODS;
use crate::web_api::request::{ArgumentPlace, Destination, Operation};
use crate::web_api::template::Template;

/// Longest description of an operation, in characters.
const MAX_DESCRIPTION_CHARS: usize = 2_000;
/// The argument that is the body.
const BODY: &str = "body";
/// Headers that the specification does not take for parameters.
const NO_PARAMETERS: [&str; 3] = ["accept", "authorization", "content-type"];

/// Selects the operations to read from a document.
pub struct OperationSelection<'w> {
    /// Base URL that replaces the servers of the document.
    pub base_url: Option<&'w str>,
    /// Returns true if the operation with this id is to be offered.
    pub is_wanted: &'w dyn Fn(&str) -> bool,
    /// Names of headers sent with every request, in lower case.
    pub given_headers: &'w BTreeSet<String>,
}

/// An operation that can be a tool.
#[derive(Debug)]
pub struct DocumentedOperation {
    pub id: String,
    pub description: String,
    pub schema: Value,
    pub operation: Operation,
}

/// A part of the document that is not offered, with the reason.
#[derive(Debug, PartialEq, Eq)]
pub struct LeftOut {
    pub what: String,
    pub reason: String,
}

/// The operations read from a document, and the parts left out.
#[derive(Debug, Default)]
pub struct DocumentContents {
    pub operations: Vec<DocumentedOperation>,
    pub left_out: Vec<LeftOut>,
}

/// Reads the selected operations.
///
/// # Errors
/// When it is no document of OpenAPI 3, after the key that names it.
pub fn read_operations(document: &Value, wanted: &OperationSelection<'_>) -> Result<DocumentContents, String> {
    let version = document.get("openapi").and_then(Value::as_str).unwrap_or_default();
    if !version.starts_with("3.") {
        return Err("document: expected openapi: 3.0 or 3.1 in it".to_owned());
    }
    let none = Map::new();
    let paths = document.get("paths").map_or(Some(&none), Value::as_object);
    let mut found = DocumentContents::default();
    for (path, item) in paths.ok_or("document: expected paths as an object")? {
        let item = match follow_references(document, item) {
            Ok(item) => item,
            Err(reason) => {
                found.left_out.push(LeftOut { what: path.clone(), reason });
                continue;
            }
        };
        for method in METHODS.into_iter().chain(["OPTIONS", "TRACE"]) {
            if let Some(operation) = item.get(method.to_ascii_lowercase()) {
                read(&LocatedOperation { document, item, path, method, operation }, wanted, &mut found);
            }
        }
    }
    Ok(found)
}

/// An operation with its place in the document: path item, path and method.
struct LocatedOperation<'d> {
    document: &'d Value,
    item: &'d Value,
    path: &'d str,
    method: &'static str,
    operation: &'d Value,
}

fn read(at: &LocatedOperation<'_>, wanted: &OperationSelection<'_>, found: &mut DocumentContents) {
    let Some(id) = at.operation.get("operationId").and_then(Value::as_str).filter(|id| !id.is_empty()) else {
        let what = format!("{} {}", at.method, at.path);
        found.left_out.push(LeftOut { what, reason: "it has no operationId".to_owned() });
        return;
    };
    if !(wanted.is_wanted)(id) {
        return;
    }
    match build_operation(at, id, wanted, &mut found.left_out) {
        Ok(documented) => found.operations.push(documented),
        Err(reason) => found.left_out.push(LeftOut { what: id.to_owned(), reason }),
    }
}

fn build_operation(
    at: &LocatedOperation<'_>,
    id: &str,
    wanted: &OperationSelection<'_>,
    left_out: &mut Vec<LeftOut>,
) -> Result<DocumentedOperation, String> {
    if !METHODS.contains(&at.method) {
        return Err(format!("tools have no method {}", at.method));
    }
    let mut arguments = Arguments::new(at.document);
    for parameter in parameters(at)? {
        if let Err(reason) = arguments.add_parameter(parameter, wanted) {
            let name = text_field(parameter, "name");
            if is_required(parameter) {
                return Err(format!("its parameter {name}: {reason}"));
            }
            left_out.push(LeftOut { what: format!("{id}, its parameter {name}"), reason });
        }
    }
    if let Some(body) = at.operation.get("requestBody") {
        let body = follow_references(at.document, body)?;
        match arguments.add_body(body) {
            Err(reason) if is_required(body) => return Err(format!("its body: {reason}")),
            Err(reason) => left_out.push(LeftOut { what: format!("{id}, its body"), reason }),
            Ok(()) => {}
        }
    }
    let template = Template::parse(&format!("{}{}", base_url(at, wanted)?.trim_end_matches('/'), at.path))
        .map_err(|mistake| format!("its address: {mistake}"))?;
    let filled = arguments.names_in(&ArgumentPlace::Path);
    if let Some(open) = template.placeholders().find(|name| !filled.contains(*name)) {
        return Err(format!("the part {open} of its path is no parameter"));
    }
    Ok(DocumentedOperation {
        id: id.to_owned(),
        description: description(at.operation, id),
        schema: arguments.schema(),
        operation: Operation {
            method: at.method.to_owned(),
            template,
            destinations: arguments.destinations,
            // Nothing goes there: the schema takes no others.
            others: ArgumentPlace::Query { exploded: true },
        },
    })
}

fn text_field<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn is_required(value: &Value) -> bool {
    value.get("required") == Some(&Value::Bool(true))
}

/// Those of the path, and in their places those of the operation.
fn parameters<'d>(at: &LocatedOperation<'d>) -> Result<Vec<&'d Value>, String> {
    let mut all: BTreeMap<(&str, &str), &Value> = BTreeMap::new();
    for list in [at.item, at.operation].into_iter().filter_map(|of| of.get("parameters")) {
        for parameter in list.as_array().into_iter().flatten() {
            let parameter = follow_references(at.document, parameter)?;
            all.insert((text_field(parameter, "in"), text_field(parameter, "name")), parameter);
        }
    }
    Ok(all.into_values().collect())
}

/// The address before the path: that of the configuration, or of the innermost server.
fn base_url(at: &LocatedOperation<'_>, wanted: &OperationSelection<'_>) -> Result<String, String> {
    if let Some(base) = wanted.base_url {
        return Ok(base.to_owned());
    }
    let servers = [at.operation, at.item, at.document].into_iter().find_map(|of| of.get("servers")?.get(0));
    let server = servers.ok_or("the document names no server; give base_url")?;
    let variables = server.get("variables").and_then(Value::as_object);
    let mut url = text_field(server, "url").to_owned();
    for (name, variable) in variables.into_iter().flatten() {
        url = url.replace(&format!("{{{name}}}"), text_field(variable, "default"));
    }
    match url.starts_with("http://") || url.starts_with("https://") {
        true => Ok(url),
        false => Err("the document's server is no absolute address; give base_url".to_owned()),
    }
}

fn description(operation: &Value, id: &str) -> String {
    let summary = text_field(operation, "summary").trim();
    let more = text_field(operation, "description").trim();
    let words = match (summary.is_empty(), more.is_empty()) {
        (true, true) => id.to_owned(),
        (false, true) => summary.to_owned(),
        (true, false) => more.to_owned(),
        (false, false) => format!("{summary}\n{more}"),
    };
    words.chars().take(MAX_DESCRIPTION_CHARS).collect()
}

/// The arguments of one tool as they are gathered.
struct Arguments<'d> {
    document: &'d Value,
    schemas: Schemas<'d>,
    properties: Map<String, Value>,
    required: Vec<String>,
    destinations: BTreeMap<String, Destination>,
}

impl<'d> Arguments<'d> {
    fn new(document: &'d Value) -> Self {
        let schemas = Schemas::new(document);
        Self { document, schemas, properties: Map::new(), required: Vec::new(), destinations: BTreeMap::new() }
    }

    fn add_parameter(&mut self, parameter: &'d Value, wanted: &OperationSelection<'_>) -> Result<(), String> {
        let name = text_field(parameter, "name");
        let location = text_field(parameter, "in");
        let lower = name.to_ascii_lowercase();
        if location == "header" && (NO_PARAMETERS.contains(&lower.as_str()) || wanted.given_headers.contains(&lower)) {
            return Ok(());
        }
        let place = parameter_place(parameter, location)?;
        let written = parameter.get("schema").ok_or("it has no schema")?;
        let is_object = text_field(follow_references(self.document, written)?, "type") == "object";
        if is_object {
            return Err("it is an object, which has no place there".to_owned());
        }
        let mut schema = self.schemas.resolved(written)?;
        if let (Some(said), Value::Object(schema)) = (parameter.get("description"), &mut schema) {
            schema.entry("description").or_insert_with(|| said.clone());
        }
        let is_needed = place == ArgumentPlace::Path || is_required(parameter);
        self.add(name, location, schema, is_needed, place)
    }

    fn add_body(&mut self, body: &'d Value) -> Result<(), String> {
        let content = body.get("content").and_then(Value::as_object);
        let is_json = |kind: &str| kind.split(';').next().is_some_and(|kind| kind.trim() == "application/json");
        let json = content.into_iter().flatten().find(|(kind, _)| is_json(kind)).map(|(_, media)| media);
        let json = json.ok_or("it is not application/json")?;
        let schema = match json.get("schema") {
            Some(schema) => self.schemas.resolved(schema)?,
            None => json!({}),
        };
        self.add(BODY, BODY, schema, is_required(body), ArgumentPlace::Body)
    }

    /// An argument is called as it is there, or after its place where another one is called that already.
    fn add(
        &mut self,
        name: &str,
        location: &str,
        schema: Value,
        required: bool,
        place: ArgumentPlace,
    ) -> Result<(), String> {
        let mut argument = name.to_owned();
        if self.properties.contains_key(&argument) {
            argument = format!("{location}_{name}");
        }
        if name.is_empty() || self.properties.contains_key(&argument) {
            return Err("its name is empty or taken already".to_owned());
        }
        if required {
            self.required.push(argument.clone());
        }
        self.properties.insert(argument.clone(), schema);
        self.destinations.insert(argument, Destination { place, name: name.to_owned() });
        Ok(())
    }

    fn names_in(&self, place: &ArgumentPlace) -> BTreeSet<String> {
        let there = self.destinations.values().filter(|destination| destination.place == *place);
        there.map(|destination| destination.name.clone()).collect()
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": self.properties,
            "required": self.required,
            "additionalProperties": false,
        })
    }
}

fn parameter_place(parameter: &Value, location: &str) -> Result<ArgumentPlace, String> {
    let style = parameter.get("style").and_then(Value::as_str);
    let exploded = parameter.get("explode").and_then(Value::as_bool);
    match (location, style) {
        ("path", None | Some("simple")) => Ok(ArgumentPlace::Path),
        ("header", None | Some("simple")) => Ok(ArgumentPlace::Header),
        ("query", None | Some("form")) => Ok(ArgumentPlace::Query { exploded: exploded.unwrap_or(true) }),
        ("path" | "header" | "query", Some(style)) => Err(format!("its style {style} is not supported")),
        _ => Err(format!("parameters in {location:?} are not supported")),
    }
}

#[cfg(test)]
mod tests;
