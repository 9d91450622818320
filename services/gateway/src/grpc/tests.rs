//! The protos say what is said by hand elsewhere: of the stream's endpoint, and of profiles.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;
use prost_types::{DescriptorProto, FileDescriptorSet, ServiceDescriptorProto};
use serde_json::Value;

use crate::{
    config::GatewayConfig,
    http::{endpoints::STREAM, openapi},
};

struct Protos {
    services: Vec<ServiceDescriptorProto>,
    messages: BTreeMap<String, DescriptorProto>,
}

impl Protos {
    fn new() -> Self {
        let files = FileDescriptorSet::decode(kairo_proto::DESCRIPTORS).unwrap().file;
        let own = || files.iter().filter(|file| file.package() == "kairo.v1");
        let messages = own().flat_map(|file| &file.message_type).map(|it| (it.name().to_owned(), it.clone()));
        Self { services: own().flat_map(|file| file.service.clone()).collect(), messages: messages.collect() }
    }

    fn fields(&self, message: &str) -> BTreeSet<&str> {
        self.messages[message].field.iter().map(|field| field.name()).collect()
    }

    /// Every rpc, with the names of its request and its answer.
    fn rpcs(&self, service: &str) -> BTreeMap<String, (String, String)> {
        let service = self.services.iter().find(|it| it.name() == service).unwrap();
        let rpc = |rpc: &prost_types::MethodDescriptorProto| {
            (snake(rpc.name()), (local(rpc.input_type()), local(rpc.output_type())))
        };
        service.method.iter().map(rpc).collect()
    }
}

fn local(type_name: &str) -> String {
    type_name.rsplit('.').next().unwrap().to_owned()
}

fn snake(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

struct Document(Value);

impl Document {
    /// Returns the value, or the target of its `$ref`.
    fn seen<'a>(&'a self, value: &'a Value) -> &'a Value {
        match value["$ref"].as_str() {
            Some(reference) => self.seen(self.0.pointer(&reference[1..]).unwrap()),
            None => value,
        }
    }

    /// The operation of a route, whose parts in braces may be named otherwise.
    fn operation(&self, method: &str, route: &str) -> &Value {
        let paths = self.0["paths"].as_object().unwrap();
        let path = paths.keys().find(|path| unnamed(path) == unnamed(route)).unwrap_or_else(|| panic!("{route}"));
        &paths[path][method.to_lowercase()]
    }

    /// The fields that a request of the operation may have.
    fn asked<'a>(&'a self, operation: &'a Value) -> BTreeSet<&'a str> {
        let body = &operation["requestBody"];
        let body = self.properties(&self.seen(body)["content"]["application/json"]["schema"]);
        let parameters = operation["parameters"].as_array().into_iter().flatten().map(|it| self.seen(it));
        let parameters = parameters.filter(|it| it["in"] == "query").map(|it| it["name"].as_str().unwrap());
        parameters.chain(body.into_keys()).collect()
    }

    fn properties<'a>(&'a self, schema: &'a Value) -> BTreeMap<&'a str, &'a Value> {
        let schema = self.seen(schema);
        let parts = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|of| schema[of].as_array().into_iter().flatten());
        let mut found: BTreeMap<_, _> = parts.flat_map(|part| self.properties(part)).collect();
        let own = schema["properties"].as_object().into_iter().flatten();
        found.extend(own.map(|(name, schema)| (name.as_str(), schema)));
        found
    }
}

fn unnamed(route: &str) -> Vec<&str> {
    route.split('/').map(|part| if part.starts_with('{') { "{}" } else { part }).collect()
}

fn document() -> Document {
    let document = openapi::yaml_to_json(&openapi::build_document(&GatewayConfig::default()));
    Document(serde_json::from_str(&document).unwrap())
}

#[test]
fn a_stream_takes_what_the_endpoint_takes() {
    let protos = Protos::new();
    let document = document();
    let mut asked = document.asked(document.operation("GET", STREAM));
    // It stands for a header, where clients cannot send one.
    asked.remove("ticket");
    assert_eq!(protos.fields("StreamRequest"), asked);
    assert_eq!(protos.rpcs("Events").len(), 1);
}

#[test]
fn whoever_defines_an_agent_says_all_that_its_profile_holds() {
    let protos = Protos::new();
    let of_teams = BTreeSet::from(["team", "lead"]);
    let beside = BTreeSet::from(["version", "dry_run"]);
    let given = &protos.fields("DefineAgentRequest") - &beside;
    let profile = protos.fields("AgentProfile");
    assert_eq!(&given | &of_teams, profile);
    // What a team's agents are is said of all of them together.
    // Members of a team have none of their own, and look at nothing.
    let of_others = BTreeSet::from(["members", "environment"]);
    let given = &given - &of_others;
    let of_all = BTreeSet::from(["agent", "conduct", "mission", "owner"]);
    assert_eq!(&protos.fields("GivenLead") | &of_all, given);
    let of_workers = BTreeSet::from(["agent", "conduct", "mission", "owner", "next_run_after", "name"]);
    assert_eq!(&protos.fields("GivenWorker") | &of_workers, &given | &BTreeSet::from(["name"]));
}
