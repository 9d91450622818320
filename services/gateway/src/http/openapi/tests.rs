//! The document says what the code says. What a running gateway answers is held to it by `tests/integration/openapi.rs`.

use std::collections::{BTreeMap, BTreeSet};

use kairo_core::ids::Name;
use kairo_proto::v1::AgentProfile;
use serde_json::{Value, json};

use super::{GatewayConfig, build_document, yaml_to_json};
use crate::{
    config::RequireKey,
    fields::RequestFields,
    http::{
        access, agent_replay, agent_whatif, agents, approval_verdicts::ApprovalInput, choices::ChoiceInput,
        commands::CommandInput, conversations, forgetting, forks, ingest::UserInput, keys, mcp_login,
        messages::MessageInput, questions, task_queueing::TaskInput, teams,
    },
    problem::Problem,
};

pub fn parsed() -> Value {
    serde_json::from_str(&yaml_to_json(&build_document(&GatewayConfig::default()))).unwrap()
}

fn methods(path: &Value) -> impl Iterator<Item = (&String, &Value)> {
    path.as_object().unwrap().iter()
}

/// Every operation, by method and path.
fn operations(document: &Value) -> BTreeMap<(String, String), &Value> {
    let paths = document["paths"].as_object().unwrap().iter();
    paths.flat_map(|(path, item)| methods(item).map(|(method, it)| ((method.clone(), path.clone()), it))).collect()
}

#[test]
fn every_route_is_in_the_document_and_nothing_else() {
    let routes =
        access::all_endpoints().map(|row| (row.method.to_lowercase(), row.path.to_owned())).collect::<BTreeSet<_>>();
    let document = parsed();
    assert_eq!(operations(&document).into_keys().collect::<BTreeSet<_>>(), routes);
}

#[test]
fn every_operation_says_what_it_is() {
    let document = parsed();
    let tags: BTreeSet<_> = document["tags"].as_array().unwrap().iter().map(|tag| tag["name"].as_str()).collect();
    let mut ids = BTreeSet::new();
    for (at, operation) in operations(&document) {
        assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{at:?}");
        assert!(operation["summary"].as_str().is_some_and(|summary| !summary.ends_with('.')), "{at:?}");
        assert!(
            tags.contains(&operation["tags"][0].as_str()) && operation["tags"].as_array().unwrap().len() == 1,
            "{at:?}"
        );
        let answers = operation["responses"].as_object().unwrap();
        assert!(answers.contains_key("403") && answers.contains_key("405"), "{at:?}");
        for part in at.1.split('{').skip(1) {
            let name = part.split('}').next().unwrap();
            let named = |it: &Value| {
                let it =
                    it["$ref"].as_str().and_then(|shared| document.pointer(shared.strip_prefix('#')?)).unwrap_or(it);
                it["name"] == name && it["in"] == "path" && it["required"] == true
            };
            assert!(operation["parameters"].as_array().unwrap().iter().any(named), "{at:?}");
        }
    }
}

#[test]
fn every_reference_leads_somewhere_and_everything_shared_is_used() {
    let document = parsed();
    let mut references = BTreeSet::new();
    collect(&document, &mut references);
    for reference in &references {
        assert!(document.pointer(reference.strip_prefix('#').unwrap()).is_some(), "{reference}");
    }
    for (kind, parts) in document["components"].as_object().unwrap() {
        for name in parts.as_object().unwrap().keys() {
            // Schemes are named, not referred to.
            let used = kind == "securitySchemes" || references.contains(&format!("#/components/{kind}/{name}"));
            assert!(used, "{kind} {name}");
        }
    }
}

fn collect(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| collect(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| collect(value, found)),
        _ => {}
    }
}

#[test]
fn limits_are_those_of_the_configuration() {
    let config = GatewayConfig {
        max_text_bytes: 4_001,
        max_part_bytes: 4_011,
        max_parts: 41,
        max_prompt_bytes: 4_002,
        max_body_bytes: 4_003,
        default_limit: 44,
        max_limit: 45,
        max_streams: 4_006,
        heartbeat_ms: 4_007,
        status_wait_ms: 4_008,
        freshness_wait_ms: 4_009,
        rate_per_s: 4_010,
        ticket_ttl_ms: 4_011,
        ticket_reconnect_ms: 4_012,
        ..Default::default()
    };
    let text = build_document(&config);
    let document: Value = serde_json::from_str(&yaml_to_json(&text)).unwrap();
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["SendMessageRequest"]["properties"]["text"]["maxLength"], 4_001);
    assert_eq!(schemas["SendMessageRequest"]["properties"]["parts"]["maxItems"], 41);
    assert_eq!(schemas["ApproveRequest"]["properties"]["note"]["maxLength"], 4_001);
    assert_eq!(schemas["DefineAgentRequest"]["properties"]["prompt"]["maxLength"], 4_002);
    let limit = json!({ "type": "integer", "minimum": 1, "maximum": 45, "default": 44 });
    assert_eq!(document["components"]["parameters"]["limit"]["schema"], limit);
    assert_eq!(document["components"]["parameters"]["latest"]["schema"]["maximum"], 45);
    assert_eq!(document["components"]["parameters"]["waitMs"]["schema"]["maximum"], 4_009);
    for said in ["4010 times", "4003 bytes", "4006 streams", "4011 bytes", "4007 ms", "4008 ms", "4011 ms", "4012"] {
        assert!(text.contains(said), "{said}");
    }
    for left in ["<max", "<default", "<version", "_ms>", "_s>", "# and what", "# and of", "# and how"] {
        assert!(!text.contains(left), "{left}");
    }
}

#[test]
fn an_operation_says_who_may_use_it() {
    let security = |config: &GatewayConfig, operation: &str| {
        let document: Value = serde_json::from_str(&yaml_to_json(&build_document(config))).unwrap();
        let found = operations(&document).into_values().find(|it| it["operationId"] == operation).cloned().unwrap();
        (found["security"].clone(), found["responses"]["401"].is_object())
    };
    let open = GatewayConfig::default();
    let closed = GatewayConfig { require_key: RequireKey::Always, ..GatewayConfig::default() };
    assert_eq!(security(&open, "sendMessage"), (json!([{ "apiKey": ["write"] }, {}]), true));
    assert_eq!(security(&closed, "sendMessage"), (json!([{ "apiKey": ["write"] }]), true));
    assert_eq!(security(&closed, "connect"), (json!([{ "apiKey": [] }]), true));
    assert_eq!(security(&closed, "makeKey"), (json!([{ "apiKey": ["admin"] }]), true));
    assert_eq!(security(&closed, "changeAgent"), (json!([{ "apiKey": ["admin"] }]), true));
    assert_eq!(security(&closed, "isAlive"), (json!([]), false));
}

/// Reads the body of an operation as its endpoint does.
fn read(operation: &str, body: &Value) -> Result<(), Problem> {
    fn parse_body<E: UserInput>(body: &[u8]) -> Result<(), Problem> {
        E::from_fields(RequestFields::from_json(body)?, &GatewayConfig::default()).map(drop)
    }
    let body = body.to_string().into_bytes();
    match operation {
        "sendMessage" => parse_body::<MessageInput>(&body),
        "choose" => parse_body::<ChoiceInput>(&body),
        "approve" => parse_body::<ApprovalInput>(&body),
        "command" => parse_body::<CommandInput>(&body),
        "makeKey" => keys::parse_body(&body, "2026-11-21T10:00:00Z".parse().unwrap()).map(drop),
        "defineAgent" => agents::parse_agent(&body, &GatewayConfig::default()).map(drop),
        "changeAgent" => apply_change(&body),
        "rollBackAgent" => agents::RollbackRequest::parse(&body).map(drop),
        "queueTask" => parse_body::<TaskInput>(&body),
        "createTeam" => teams::parse_team(&body, &GatewayConfig::default()).map(drop),
        "answerQuestion" => questions::parse_body(&body).map(drop),
        "beginMcpLogin" => mcp_login::parse_body(&body, "redirect_uri").map(drop),
        "finishMcpLogin" => mcp_login::parse_body(&body, "address").map(drop),
        "forgetUser" => forgetting::parse_dry_run(&body).map(drop),
        "replayAgent" => agent_replay::parse_body(&body, &GatewayConfig::default()).map(drop),
        "askWhatIf" => agent_whatif::parse_body(&body).map(drop),
        "forkAgent" => forks::parse_fork_wish(&body, &GatewayConfig::default()).map(drop),
        "sayInFork" => forks::parse_message(&body, &GatewayConfig::default()).map(drop),
        "answerInFork" => forks::parse_answer(&body).map(drop),
        "approveInFork" => forks::parse_approval(&body).map(drop),
        "waitInFork" => forks::parse_wait(&body).map(drop),
        "importConversation" => conversations::import_document::parse(&body).map(drop),
        other => panic!("a body of {other} is described, and nothing reads it here"),
    }
}

/// Changes an agent that has nothing but a prompt.
fn apply_change(body: &[u8]) -> Result<(), Problem> {
    let agent = Name::parse("cook").unwrap();
    let before = AgentProfile { prompt: "You are a cook.".to_owned(), ..AgentProfile::default() };
    agents::ProfilePatch::parse(body)?.apply(&before, &agent, &GatewayConfig::default()).map(drop)
}

/// The bodies that are described: operation, its examples, its schema.
fn bodies(document: &Value) -> Vec<(String, Vec<Value>, Value)> {
    let described = operations(document).into_values().filter(|operation| {
        // Clients of OpenAI's API send much that is not described here; its own tests read their requests.
        !operation["requestBody"].is_null()
            && operation["operationId"] != "completeChat"
            && !operation["requestBody"]["content"]["application/json"].is_null()
    });
    let bodies = described.map(|operation| {
        let content = &operation["requestBody"]["content"]["application/json"];
        let examples = content["examples"].as_object().unwrap().values().map(|example| example["value"].clone());
        let schema = content["schema"]["$ref"].as_str().unwrap().strip_prefix('#').unwrap();
        let schema = document.pointer(schema).unwrap().clone();
        (operation["operationId"].as_str().unwrap().to_owned(), examples.collect(), schema)
    });
    bodies.collect()
}

#[test]
fn every_example_of_a_body_is_taken() {
    let document = parsed();
    for (operation, examples, _) in bodies(&document) {
        assert!(!examples.is_empty(), "{operation}");
        for example in examples {
            assert_eq!(read(&operation, &example), Ok(()), "{example}");
        }
    }
}

#[test]
fn bodies_have_the_fields_that_are_read_and_no_others() {
    for (operation, _, schema) in bodies(&parsed()) {
        let described: BTreeSet<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        let problem = read(&operation, &json!({ "no_such_field": 1 })).unwrap_err();
        let unknown = problem.errors.iter().find(|error| error.field == "no_such_field").unwrap();
        let known: BTreeSet<&str> = unknown.expected.strip_prefix("one of the fields ").unwrap().split(", ").collect();
        assert_eq!(described, known, "{operation}");
        let missing: BTreeSet<&str> =
            problem.errors.iter().map(|error| error.field.as_str()).filter(|field| *field != "no_such_field").collect();
        let mut required: BTreeSet<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if operation == "command" {
            // One of several, of which the first is named.
            required.insert("action_id");
        }
        if operation == "rollBackAgent" {
            // Or version.
            required.insert("sequence");
        }
        if operation == "sendMessage" {
            // Or parts.
            required.insert("text");
        }
        assert_eq!(required, missing, "{operation}");
    }
}

#[test]
fn every_word_of_a_choice_is_taken_and_others_are_not() {
    for (operation, examples, schema) in bodies(&parsed()) {
        let Some(example) = examples.first() else { continue };
        for (field, described) in schema["properties"].as_object().unwrap() {
            let Some(words) = described["enum"].as_array() else { continue };
            for word in words.iter().chain([&json!("somehow")]) {
                let mut body = example.clone();
                body[field] = word.clone();
                let wrong = read(&operation, &body).err().map(|problem| problem.errors).unwrap_or_default();
                // What an order may be about depends on the order; that is another field's error.
                let refused = wrong.iter().any(|error| error.field == *field);
                assert_eq!(refused, word == "somehow", "{operation} {field} {word}");
            }
        }
    }
}

#[test]
fn bounds_of_bodies_are_where_the_readers_draw_them() {
    for (operation, examples, schema) in bodies(&parsed()) {
        let Some(example) = examples.first() else { continue };
        let taken = |field: &str, value: Value| {
            let mut body = example.clone();
            body[field] = value;
            !read(&operation, &body).is_err_and(|problem| problem.errors.iter().any(|error| error.field == field))
        };
        for (field, described) in schema["properties"].as_object().unwrap() {
            let at = |key: &str| described[key].as_u64();
            if let Some(most) = at("maxLength") {
                let text = |length: u64| json!("x".repeat(usize::try_from(length).unwrap()));
                assert!(taken(field, text(most)) && !taken(field, text(most + 1)), "{operation} {field}");
            }
            if let Some(most) = at("maximum") {
                assert!(taken(field, json!(most)) && !taken(field, json!(most + 1)), "{operation} {field}");
            }
            if let Some(most) = at("maxItems") {
                let list = |length: u64| {
                    let item = |number: u64| match field.as_str() {
                        "scopes" => json!("read"),
                        "commands" => json!({ "value": format!("c{number}"), "label": "Cook" }),
                        _ => json!("cook"),
                    };
                    (0..length).map(item).collect::<Value>()
                };
                assert!(taken(field, list(most)) && !taken(field, list(most + 1)), "{operation} {field}");
            }
        }
    }
}
