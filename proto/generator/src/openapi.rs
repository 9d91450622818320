//! Generates the part of the document of the HTTP interface that follows from the protos: the requests and answers of
//! rpcs, and the messages in JSON. The gateway replaces lines that begin with `#` by the parts that many endpoints
//! share.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use anyhow::Context;
use prost_reflect::{Cardinality, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, Value};

use crate::{
    Generated,
    contract::{Contract, comment, flag, list, messages as messages_of, number, text, texts},
    rpcs::{Rpc, RpcBody},
    vocabularies,
};

/// The message whose schema is written by hand, as its JSON is a text.
const PLACE: &str = "Place";
/// The messages that may be any JSON.
const ANY: [&str; 2] = ["Json", "AgentProfile"];
const SCHEMAS: &str = "#/components/schemas";
/// Answers that the gateway describes, for operations that name them.
const OTHERS: [(u32, &str); 5] =
    [(400, "Invalid"), (404, "NotFound"), (409, "Conflict"), (500, "Internal"), (507, "Full")];
/// Fields of every query, which the gateway describes.
pub const FRESHNESS: [&str; 2] = ["at_least", "wait_ms"];

/// The messages sent as the data of server-sent events.
const STREAMED: [&str; 2] = ["Event", "TurnStatus"];

pub fn files(contract: &Contract) -> anyhow::Result<Vec<Generated>> {
    let mut paths: BTreeMap<String, String> = BTreeMap::new();
    let mut messages = Vec::new();
    let mut changes = Vec::new();
    let mut in_paths = BTreeSet::new();
    for rpc in crate::rpcs::all(contract)? {
        // The stream is described by hand: its answer has a form of its own.
        let Some(operation) = contract.option("kairo.options.operation", &rpc.method.options())? else {
            let answer = rpc.method.output();
            let shown = answer.fields().filter_map(|field| field.kind().as_message().cloned());
            messages.extend(shown.filter(|message| STREAMED.contains(&message.name())));
            continue;
        };
        write_operation(contract, paths.entry(rpc.path.clone()).or_default(), &rpc, &operation)?;
        messages.push(rpc.method.output());
        messages.extend((rpc.body == RpcBody::Rest).then(|| rpc.method.input()));
        changes.extend(body_changes(contract, &rpc)?);
        in_paths.extend(
            rpc.method
                .input()
                .fields()
                .filter(|field| is_in_path(&rpc, field))
                .map(|field| field.full_name().to_owned()),
        );
    }
    let paths: String = paths.into_iter().map(|(path, operations)| format!("  {path}:\n{operations}")).collect();
    let mut schemas = schemas(contract, messages, &in_paths)?;
    changes.iter().try_for_each(|change| write_changes(contract, &mut schemas, change))?;
    Ok(vec![
        ("services/gateway/src/openapi/generated/paths.yaml".to_owned(), paths.into_bytes()),
        ("services/gateway/src/openapi/generated/schemas.yaml".to_owned(), schemas.into_bytes()),
    ])
}

/// A body that changes some fields of another message.
struct BodyChanges {
    /// The name of its schema.
    name: String,
    description: String,
    fields: Vec<FieldDescriptor>,
}

/// Returns the changes that the body of an rpc makes, if it is such a body. Fields that the request has itself are not
/// among them.
fn body_changes(contract: &Contract, rpc: &Rpc) -> anyhow::Result<Option<BodyChanges>> {
    let RpcBody::Field(body) = &rpc.body else { return Ok(None) };
    let input = rpc.method.input();
    let body = input.get_field_by_name(body).with_context(|| format!("{} has no {body}", input.name()))?;
    let option = option(contract, &body)?.with_context(|| format!("{} has no changes_of", body.full_name()))?;
    let changed = format!("{}.{}", crate::contract::PACKAGE, text(&option, "changes_of"));
    let changed = contract.pool.get_message_by_name(&changed).with_context(|| format!("no message {changed}"))?;
    let fields = changed.fields().filter(|field| input.get_field_by_name(field.name()).is_none()).collect();
    let description = comment(&input.parent_file(), body.path());
    Ok(Some(BodyChanges { name: changes_name(rpc), description, fields }))
}

fn changes_name(rpc: &Rpc) -> String {
    rpc.method.input().name().trim_end_matches("Request").to_owned() + "Body"
}

fn write_changes(contract: &Contract, out: &mut String, changes: &BodyChanges) -> anyhow::Result<()> {
    writeln!(out, "    {}:\n      type: object", changes.name)?;
    writeln!(out, "      description: {}", quoted(&changes.description))?;
    writeln!(out, "      additionalProperties: false\n      properties:")?;
    for field in &changes.fields {
        let words = comment(&field.parent_message().parent_file(), field.path());
        writeln!(out, "        {}: {{ {} }}", field.name(), nullable_schema(contract, field, &words)?)?;
    }
    Ok(())
}

fn write_operation(contract: &Contract, out: &mut String, rpc: &Rpc, operation: &DynamicMessage) -> anyhow::Result<()> {
    let words = comment(&rpc.method.parent_file(), rpc.method.path());
    let (summary, description) = words.split_once(". ").unwrap_or((words.trim_end_matches('.'), ""));
    let verb = rpc.verb.to_lowercase();
    let id = text(operation, "id");
    let id = if id.is_empty() { uncapitalized(rpc.method.name()) } else { id };
    writeln!(out, "    {verb}:\n      tags: [{}]\n      operationId: {id}", text(operation, "tag"))?;
    writeln!(out, "      summary: {}", quoted(summary))?;
    if !description.is_empty() {
        writeln!(out, "      description: {}", quoted(description))?;
    }
    if rpc.body != RpcBody::Nothing {
        // What enters the log goes on with the trace of who asks.
        let is_entered = rpc.method.output().get_field_by_name("sequence").is_some();
        let is_parameter = |field: &FieldDescriptor| match &rpc.body {
            RpcBody::Field(body) => field.name() != body,
            RpcBody::Nothing | RpcBody::Rest => is_in_path(rpc, field),
        };
        let beside: Vec<_> = rpc.method.input().fields().filter(is_parameter).collect();
        if is_entered || !beside.is_empty() {
            writeln!(out, "      parameters:")?;
        }
        beside.iter().try_for_each(|field| parameter(contract, out, rpc, field))?;
        if is_entered {
            writeln!(out, "        - $ref: '#/components/parameters/traceparent'")?;
        }
        writeln!(out, "      requestBody:\n        required: true\n        content:\n          application/json:")?;
        let schema = match rpc.body {
            RpcBody::Field(_) => changes_name(rpc),
            RpcBody::Nothing | RpcBody::Rest => rpc.method.input().name().to_owned(),
        };
        writeln!(out, "            schema: {{ $ref: '{SCHEMAS}/{schema}' }}\n            examples:")?;
        for example in messages_of(operation, "examples") {
            writeln!(out, "              {}: {{ value: {} }}", text(&example, "name"), text(&example, "value"))?;
        }
    } else {
        parameters(contract, out, rpc)?;
    }
    answers(out, rpc, operation)
}

fn parameters(contract: &Contract, out: &mut String, rpc: &Rpc) -> anyhow::Result<()> {
    if rpc.method.input().fields().len() > 0 {
        writeln!(out, "      parameters:")?;
    }
    for field in rpc.method.input().fields().filter(|field| !FRESHNESS.contains(&field.name())) {
        let option = option(contract, &field)?;
        let shared = option.as_ref().map(|option| text(option, "parameter")).unwrap_or_default();
        if !shared.is_empty() {
            writeln!(out, "        - $ref: '#/components/parameters/{shared}'")?;
            continue;
        }
        parameter(contract, out, rpc, &field)?;
    }
    if rpc.method.input().get_field_by_name(FRESHNESS[0]).is_some() {
        writeln!(out, "        # and how fresh the answer is to be")?;
    }
    Ok(())
}

/// Returns true if the field is a parameter in the path of the rpc's endpoint.
fn is_in_path(rpc: &Rpc, field: &FieldDescriptor) -> bool {
    rpc.path.contains(&format!("{{{}}}", field.name()))
}

fn parameter(contract: &Contract, out: &mut String, rpc: &Rpc, field: &FieldDescriptor) -> anyhow::Result<()> {
    let place = if is_in_path(rpc, field) { "path\n          required: true" } else { "query" };
    writeln!(out, "        - name: {}\n          in: {place}", field.name())?;
    let words = comment(&field.parent_message().parent_file(), field.path());
    if !words.is_empty() {
        writeln!(out, "          description: {}", quoted(&words))?;
    }
    let schema = schema(contract, field, "")?;
    writeln!(out, "          schema: {{ {schema} }}")?;
    if schema.starts_with("type: array") {
        writeln!(out, "          style: form\n          explode: false")?;
    }
    Ok(())
}

fn answers(out: &mut String, rpc: &Rpc, operation: &DynamicMessage) -> anyhow::Result<()> {
    let answer = rpc.method.output();
    let usual = if rpc.verb == "GET" { 200 } else { 202 };
    let status = Some(number(operation, "status")).filter(|status| *status > 0).unwrap_or(usual);
    let others: Vec<u32> = list(operation, "answers").iter().filter_map(Value::as_u32).collect();
    writeln!(out, "      responses:")?;
    for status in [status].into_iter().chain(others.iter().copied().filter(|status| *status < 300)) {
        let words = comment(&answer.parent_file(), answer.path());
        let words = if others.contains(&status) { "It was not there before." } else { words.as_str() };
        writeln!(out, "        '{status}':\n          description: {}", quoted(words))?;
        if flag(operation, "secret") {
            writeln!(
                out,
                "          headers: {{ Cache-Control: {{ required: true, schema: {{ const: no-store }} }} }}"
            )?;
        }
        if answer.get_field_by_name("position").is_some() {
            writeln!(out, "          headers: {{ Kairo-Position: {{ $ref: '#/components/headers/KairoPosition' }} }}")?;
        }
        writeln!(out, "          content:\n            application/json:")?;
        writeln!(out, "              schema: {{ $ref: '{SCHEMAS}/{}' }}", answer.name())?;
    }
    if rpc.verb == "GET" && rpc.method.input().fields().len() > 0 {
        writeln!(out, "        '400': {{ $ref: '#/components/responses/Invalid' }}")?;
    }
    for (status, name) in OTHERS {
        if others.contains(&status) {
            writeln!(out, "        '{status}': {{ $ref: '#/components/responses/{name}' }}")?;
        }
    }
    let rest =
        if rpc.body != RpcBody::Nothing { "and what is wrong with something said" } else { "and of every query" };
    Ok(writeln!(out, "        # {rest}")?)
}

/// Returns the schemas of messages, and of the messages they hold, without the fields in the path of an endpoint.
fn schemas(
    contract: &Contract,
    mut messages: Vec<MessageDescriptor>,
    in_paths: &BTreeSet<String>,
) -> anyhow::Result<String> {
    let mut out = String::new();
    let mut written = BTreeSet::new();
    messages.reverse();
    while let Some(message) = messages.pop() {
        let name = message.name().to_owned();
        let elsewhere = name == PLACE || ANY.contains(&name.as_str());
        if elsewhere || !message.full_name().starts_with("kairo.") || !written.insert(name.clone()) {
            continue;
        }
        let asked = name.ends_with("Request");
        writeln!(out, "    {name}:\n      type: object")?;
        let words = comment(&message.parent_file(), message.path());
        if !words.is_empty() {
            writeln!(out, "      description: {}", quoted(&words))?;
        }
        let mut required = Vec::new();
        let mut properties = String::new();
        for field in message.fields().filter(|field| !in_paths.contains(field.full_name())) {
            let option = option(contract, &field)?;
            let says = |what: &str| option.as_ref().is_some_and(|option| flag(option, what));
            if if asked { says("required") } else { !says("absent") } {
                required.push(field.name().to_owned());
            }
            let words = comment(&message.parent_file(), field.path());
            writeln!(properties, "        {}: {{ {} }}", field.name(), schema(contract, &field, &words)?)?;
            if let (Kind::Message(held), false) = (field.kind(), field.is_map()) {
                messages.push(held);
            }
        }
        if !required.is_empty() {
            writeln!(out, "      required: [{}]", required.join(", "))?;
        }
        if asked {
            writeln!(out, "      additionalProperties: false")?;
        }
        // Each keyword on a line of its own.
        let more = contract.option_text("kairo.options.schema", &message.options())?;
        let mut more = more.split(";; ").filter(|keyword| !keyword.is_empty());
        more.try_for_each(|keyword| writeln!(out, "      {}", keyword.trim()))?;
        writeln!(out, "      properties:\n{properties}")?;
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    Ok(out)
}

/// The keywords of a field, in YAML's flow style.
fn schema(contract: &Contract, field: &FieldDescriptor, words: &str) -> anyhow::Result<String> {
    let asked = field.parent_message().name().ends_with("Request");
    let is_optional = field.cardinality() == Cardinality::Optional && field.field_descriptor_proto().proto3_optional();
    keywords(contract, field, words, !asked && is_optional)
}

/// The keywords of a field that may also be null.
fn nullable_schema(contract: &Contract, field: &FieldDescriptor, words: &str) -> anyhow::Result<String> {
    keywords(contract, field, words, true)
}

fn keywords(contract: &Contract, field: &FieldDescriptor, words: &str, nullable: bool) -> anyhow::Result<String> {
    let option = option(contract, field)?;
    let own = |what: &str| option.as_ref().map(|option| text(option, what)).unwrap_or_default();
    let vocabulary = match own("vocabulary").as_str() {
        "" => Vec::new(),
        vocabulary => vocabularies::words_of(contract, vocabulary)?,
    };
    let words = if words.is_empty() { meanings(&vocabulary) } else { words.to_owned() };
    let mut values: Vec<String> = vocabulary.into_iter().map(|(word, _)| word).collect();
    values.extend(option.as_ref().map(|option| texts(option, "values")).unwrap_or_default());
    let mut keywords = Vec::new();
    let element = one(field, &own("form"), &values, nullable && !field.is_list());
    if option.as_ref().is_some_and(|option| flag(option, "words")) {
        keywords.push("type: string".to_owned());
    } else if field.is_list() {
        keywords.push(if nullable { "type: [array, 'null']" } else { "type: array" }.to_owned());
        if !own("schema").contains("items:") {
            keywords.push(format!("items: {{ {element} }}"));
        }
    } else if field.is_map() {
        let held = field.kind().as_message().map(MessageDescriptor::map_entry_value_field);
        let held = held.map(|held| one(&held, "", &[], false)).unwrap_or_default();
        keywords.push(format!("type: object, additionalProperties: {{ {held} }}"));
    } else {
        keywords.push(element);
    }
    keywords.extend((!own("schema").is_empty()).then(|| own("schema")));
    keywords.extend((!words.is_empty()).then(|| format!("description: {}", quoted(&words))));
    Ok(keywords.join(", "))
}

/// Returns the meanings of a vocabulary's words, to describe a field that has no description of its own.
fn meanings(vocabulary: &[(String, String)]) -> String {
    let told = vocabulary.iter().filter(|(_, meaning)| !meaning.is_empty());
    told.map(|(word, meaning)| format!("{word}: {meaning}")).collect::<Vec<_>>().join(" ")
}

/// Returns the schema of one value of a field.
fn one(field: &FieldDescriptor, form: &str, values: &[String], nullable: bool) -> String {
    let typed = |name: &str| if nullable { format!("type: [{name}, 'null']") } else { format!("type: {name}") };
    match field.kind() {
        Kind::String if !values.is_empty() => {
            let values: Vec<String> =
                values.iter().map(|value| quoted(value)).chain(nullable.then(|| "null".to_owned())).collect();
            format!("enum: [{}]", values.join(", "))
        }
        Kind::String => match (form, nullable) {
            ("", _) => typed("string"),
            ("Uuid", true) => format!("{}, format: uuid", typed("string")),
            (_, true) => typed("string"),
            (form, false) => format!("$ref: '{SCHEMAS}/{form}'"),
        },
        Kind::Bool => typed("boolean"),
        Kind::Double | Kind::Float => typed("number"),
        Kind::Bytes => format!("{}, contentEncoding: base64", typed("string")),
        Kind::Message(message) => match message.name() {
            "Timestamp" => format!("{}, format: date-time", typed("string")),
            name if ANY.contains(&name) => format!("$ref: '{SCHEMAS}/Json'"),
            // A whole message is its number.
            "Place" if nullable => "type: [integer, string, 'null']".to_owned(),
            name if nullable => format!("anyOf: [{{ $ref: '{SCHEMAS}/{name}' }}, {{ type: 'null' }}]"),
            name => format!("$ref: '{SCHEMAS}/{name}'"),
        },
        _ => typed("integer"),
    }
}

fn option(contract: &Contract, field: &FieldDescriptor) -> anyhow::Result<Option<DynamicMessage>> {
    contract.option("kairo.options.field", &field.options())
}

fn quoted(words: &str) -> String {
    format!("'{}'", words.replace('\'', "''"))
}

fn uncapitalized(name: &str) -> String {
    name.get(..1).unwrap_or_default().to_lowercase() + name.get(1..).unwrap_or_default()
}
