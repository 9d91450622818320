//! The configuration of tools that are requests to web APIs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use kairo_core::config::Secret;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::request::{ArgumentPlace, Destination, Operation};
use super::secrets::Headers;
use super::template::Template;
use super::tool::ApiToolDefinition;
use crate::tool::{Executor, ToolSpec};
use crate::tool_name;

/// Methods that tools may use.
pub const METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

/// A tool that is one request to a web API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpToolConfig {
    /// Name of the tool, such as `shop.order`.
    pub name: String,
    /// Description of the tool, for the model that chooses it.
    pub description: String,
    /// JSON Schema of its arguments. Default an object of any kind.
    pub schema: Value,
    /// `GET`, `HEAD`, `POST`, `PUT`, `PATCH` or `DELETE`. Default `GET`.
    pub method: String,
    /// Address, with arguments as placeholders in its path: `https://api.example.com/orders/{order_id}`.
    pub url: String,
    /// Place of arguments that are not in the path: `query` or `body`, as JSON. Default `body` for POST, PUT and PATCH,
    /// and `query` for the others.
    pub arguments: Option<DefaultArgumentPlace>,
    /// Arguments that go into the query although the others go into the body. Default none.
    pub query: Vec<String>,
    /// Headers sent with every request; `env:NAME` takes the value from the runner's environment, `file:PATH` from a
    /// file. Default none.
    pub headers: BTreeMap<String, Secret>,
    /// JSON Pointer to the part of an answer that is the result, such as `/data/items`. Default empty, for the whole
    /// answer.
    pub result: String,
    /// True if calling twice with the same `Idempotency-Key` has the effect of calling once: the action id is then sent
    /// as the key, and the call is repeated if a runner was lost. Default true for GET and HEAD, false for the others.
    pub idempotent: Option<bool>,
    /// True if a human must consent to each call. Default false.
    pub needs_approval: bool,
    /// True if the server's content counts as the operator's own words; otherwise it is content from outside.
    /// Default false.
    pub trust_content: bool,
    /// Time limit of a call, in milliseconds. Default that of all tools.
    pub timeout_ms: Option<u64>,
    /// Largest answer, in bytes. Default 131 072.
    pub max_body_bytes: usize,
}

/// The place of arguments in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DefaultArgumentPlace {
    Query,
    Body,
}

/// The operations of an OpenAPI document as tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OpenApiConfig {
    /// First segment of the tools' names, before the ids of the operations: `[a-z0-9_-]`, at most 32 characters.
    pub name: String,
    /// File with the document, OpenAPI 3.0 or 3.1, in JSON or YAML.
    pub document: PathBuf,
    /// Address in place of the document's first server. Default none.
    pub base_url: Option<String>,
    /// Headers sent with every request, as for a single tool. Parameters of these names are not asked of agents.
    /// Default none.
    pub headers: BTreeMap<String, Secret>,
    /// Ids of operations that become tools; `*` stands for any characters. Default `*`.
    pub include: Vec<String>,
    /// Ids of operations to leave out although they are included. Default none.
    pub exclude: Vec<String>,
    /// Ids of operations that are idempotent, besides those with GET and HEAD; as for a single tool. Default none.
    pub idempotent: Vec<String>,
    /// Ids of operations whose calls each need a human's consent. Default none.
    pub needs_approval: Vec<String>,
    /// As for a single tool. Default false.
    pub trust_content: bool,
    /// Time limit of a call, in milliseconds. Default that of all tools.
    pub timeout_ms: Option<u64>,
    /// Largest answer, in bytes. Default 131 072.
    pub max_body_bytes: usize,
    /// Largest document, in bytes. Default 4 194 304.
    pub max_document_bytes: u64,
    /// Most operations that become tools; those that come later in the document are left out. Default 64.
    pub max_tools: usize,
}

impl Default for HttpToolConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            description: String::new(),
            schema: json!({ "type": "object" }),
            method: "GET".to_owned(),
            url: String::new(),
            arguments: None,
            query: Vec::new(),
            headers: BTreeMap::new(),
            result: String::new(),
            idempotent: None,
            needs_approval: false,
            trust_content: false,
            timeout_ms: None,
            max_body_bytes: 128 * 1024,
        }
    }
}

impl Default for OpenApiConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            document: PathBuf::new(),
            base_url: None,
            headers: BTreeMap::new(),
            include: vec!["*".to_owned()],
            exclude: Vec::new(),
            idempotent: Vec::new(),
            needs_approval: Vec::new(),
            trust_content: false,
            timeout_ms: None,
            max_body_bytes: 128 * 1024,
            max_document_bytes: 4 * 1024 * 1024,
            max_tools: 64,
        }
    }
}

impl HttpToolConfig {
    /// Every mistake, each after its key.
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        if !tool_name::is_valid(&self.name) {
            mistakes.push(format!(
                "name: {:?}, expected a name such as shop.order, [a-z0-9_-]+(.[A-Za-z0-9_-]+)*",
                self.name
            ));
        }
        mistakes.extend(namespace_mistake(self.name.split('.').next().unwrap_or_default()));
        if self.description.trim().is_empty() {
            mistakes.push("description: expected words that tell a model what the tool does".to_owned());
        }
        if !METHODS.contains(&self.method.as_str()) {
            mistakes.push(format!("method: {:?}, expected one of {}", self.method, METHODS.join(", ")));
        }
        mistakes.extend(self.schema_mistake());
        match Template::parse(&self.url) {
            Ok(template) => mistakes.extend(self.argument_mistakes(&template)),
            Err(mistake) => mistakes.push(format!("url: {mistake}")),
        }
        if !self.result.is_empty() && !self.result.starts_with('/') {
            mistakes.push(format!("result: {:?}, expected a JSON Pointer such as /data/items", self.result));
        }
        mistakes.extend(Headers::new(&self.headers).err());
        mistakes.extend(zero_mistakes(self.timeout_ms, self.max_body_bytes));
        mistakes
    }

    fn schema_mistake(&self) -> Option<String> {
        if self.schema.get("type") != Some(&Value::from("object")) {
            return Some("schema: expected a JSON Schema with type = \"object\"".to_owned());
        }
        let built = jsonschema::options().offline().build(&self.schema);
        built.err().map(|error| format!("schema: expected a JSON Schema that can be used: {error}"))
    }

    fn argument_mistakes(&self, template: &Template) -> Vec<String> {
        let required: BTreeSet<&str> = self
            .schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let missing = template.placeholders().filter(|name| !required.contains(name));
        let mut mistakes: Vec<String> =
            missing.map(|name| format!("schema: expected {name:?} under required, as it is part of url")).collect();
        if let Some(twice) = self.query.iter().find(|name| template.placeholders().any(|other| other == *name)) {
            mistakes.push(format!("query: {twice:?} is part of url already"));
        }
        if matches!(self.method.as_str(), "GET" | "HEAD") && self.arguments == Some(DefaultArgumentPlace::Body) {
            mistakes.push(format!("arguments: expected \"query\", as {} has no body", self.method));
        }
        mistakes
    }

    /// The tool, with `call_timeout` unless it has a limit of its own.
    pub fn to_definition(&self, call_timeout: Duration) -> Result<ApiToolDefinition, String> {
        let template = Template::parse(&self.url).map_err(|mistake| format!("tools.http: {}: {mistake}", self.name))?;
        let to_query = ArgumentPlace::Query { exploded: true };
        let in_path = template.placeholders().map(|name| (name.to_owned(), ArgumentPlace::Path));
        let in_query = self.query.iter().map(|name| (name.clone(), to_query.clone()));
        let destinations = in_path.chain(in_query);
        let destinations =
            destinations.map(|(name, place)| (name.clone(), Destination { place, name })).collect::<BTreeMap<_, _>>();
        let has_body = matches!(self.method.as_str(), "POST" | "PUT" | "PATCH");
        let others = match self.arguments.unwrap_or(if has_body {
            DefaultArgumentPlace::Body
        } else {
            DefaultArgumentPlace::Query
        }) {
            DefaultArgumentPlace::Query => to_query,
            DefaultArgumentPlace::Body => ArgumentPlace::Field,
        };
        let operation = Operation { method: self.method.clone(), template, destinations, others };
        Ok(ApiToolDefinition {
            spec: ToolSpec {
                name: self.name.clone(),
                description: self.description.clone(),
                schema: self.schema.clone(),
                idempotent: self.idempotent.unwrap_or(operation.is_reading()),
                timeout: self.timeout_ms.map_or(call_timeout, Duration::from_millis),
                executor: Executor::ToolRunner,
                needs_approval: self.needs_approval,
                needs_approval_with: Vec::new(),
                acts_outside: !operation.is_reading(),
                definition: None,
            },
            operation,
            headers: Headers::new(&self.headers)?,
            result: self.result.clone(),
            max_body_bytes: self.max_body_bytes,
            trusts_content: self.trust_content,
        })
    }
}

impl OpenApiConfig {
    /// Every mistake, each after its key. What is wrong with the document is found when it is read.
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes: Vec<String> = prefix_mistake("name", &self.name).into_iter().collect();
        if self.document.as_os_str().is_empty() {
            mistakes.push("document: expected the path of an OpenAPI document".to_owned());
        }
        if let Some(Err(mistake)) = self.base_url.as_deref().map(Template::parse) {
            mistakes.push(format!("base_url: {mistake}"));
        }
        if self.base_url.as_deref().is_some_and(|url| url.contains(['{', '?'])) {
            mistakes.push("base_url: expected neither placeholders nor a query".to_owned());
        }
        mistakes.extend(Headers::new(&self.headers).err());
        if self.max_tools == 0 || self.max_document_bytes == 0 {
            mistakes.push("max_tools: must be at least 1, and so must max_document_bytes".to_owned());
        }
        mistakes.extend(zero_mistakes(self.timeout_ms, self.max_body_bytes));
        mistakes
    }
}

/// Returns why `name`, the value of `key`, cannot be the first segment of all tools of one source; `None` if it can.
pub fn prefix_mistake(key: &str, name: &str) -> Option<String> {
    if !tool_name::is_namespace(name) || name.len() > tool_name::MAX_SERVER_NAME {
        let most = tool_name::MAX_SERVER_NAME;
        return Some(format!("{key}: {name:?}, expected [a-z0-9_-], 1 to {most} characters"));
    }
    let built_in = tool_name::BUILT_IN_NAMESPACES.contains(&name);
    built_in.then(|| format!("{key}: {name:?} is kept for built-in tools, expected another one"))
}

fn namespace_mistake(namespace: &str) -> Option<String> {
    let built_in = tool_name::BUILT_IN_NAMESPACES.contains(&namespace);
    built_in
        .then(|| format!("name: names that begin with {namespace:?} are kept for built-in tools, expected another one"))
}

fn zero_mistakes(timeout_ms: Option<u64>, max_body_bytes: usize) -> impl Iterator<Item = String> {
    let timeout = (timeout_ms == Some(0)).then(|| "timeout_ms: must be at least 1".to_owned());
    let body = (max_body_bytes == 0).then(|| "max_body_bytes: must be at least 1".to_owned());
    timeout.into_iter().chain(body)
}
