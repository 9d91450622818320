//! The OpenAPI document that the gateway serves, and whether the gateway does as it says.

use std::collections::BTreeSet;

use kairo_local::Service;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::{
    validator,
    world::{Wanted, World, scenario::USUAL},
};

/// Operations that Schemathesis does not try.
const NOT_TRIED: [&str; 5] = [
    // Its answer has no end.
    "streamEvents",
    // Its answer is not one of HTTP.
    "connect",
    // Every right one takes an answer of an agent.
    "completeChat",
    // It waits for as long as it is asked to: `queued_tasks` tries it.
    "awaitTask",
    // Its body is no JSON: `multimodal` tries it.
    "storeObject",
];
/// The checks that Schemathesis applies to answers.
const CHECKS: &str = "no_failure,status_code_conformance,content_type_conformance,\
                      response_schema_conformance,response_headers_conformance";
/// The source of the first of these checks.
const HOOKS: &str = include_str!("../openapi/hooks.py");
const UUID: &str = "0c4d2fd1-9b9c-5b3a-8d5e-3b1c9a4d7e21";

/// The document as it is served, as YAML.
async fn document(world: &World) -> String {
    let answer = reqwest::get(world.url("/openapi.yaml")).await.unwrap().error_for_status().unwrap();
    assert_eq!(answer.headers()["content-type"], "application/yaml");
    answer.text().await.unwrap()
}

/// Returns the linter's verdict on the document; none on a machine where it is not installed.
async fn verdict(document: &str) -> Option<(bool, String)> {
    validator::verdict("KAIRO_OPENAPI_VALIDATE", document).await
}

#[tokio::test]
async fn the_document_is_valid_openapi_in_both_forms() {
    let world = Wanted::new(USUAL).start().await;
    let text = document(&world).await;
    let parsed: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(world.get("/openapi.json").await, (200, parsed.clone()));
    assert_eq!(parsed["info"]["version"], env!("CARGO_PKG_VERSION"));
    match verdict(&text).await {
        Some((valid, said)) => assert!(valid, "{said}"),
        None => eprintln!("skipped: the OpenAPI linter is not installed, since there is no Node 20.19 here"),
    }
    world.end().await;
}

#[tokio::test]
async fn a_document_with_a_mistake_is_not_valid() {
    let broken = "openapi: 3.1.1\ninfo: { title: Broken, version: '1' }\npaths: { /a: { get: { responses: 7 } } }\n";
    match verdict(broken).await {
        Some((valid, said)) => assert!(!valid && said.contains("#/paths/~1a/get/responses"), "{said}"),
        None => eprintln!("skipped: the OpenAPI linter is not installed, since there is no Node 20.19 here"),
    }
}

/// An operation of the document.
struct Operation {
    method: Method,
    path: String,
    described: Value,
}

fn operations(document: &Value) -> Vec<Operation> {
    let paths = document["paths"].as_object().unwrap().iter();
    let operations = paths.flat_map(|(path, methods)| {
        methods.as_object().unwrap().iter().map(|(method, described)| Operation {
            method: method.to_uppercase().parse().unwrap(),
            path: path.clone(),
            described: described.clone(),
        })
    });
    operations.collect()
}

impl Operation {
    fn name(&self) -> &str {
        self.described["operationId"].as_str().unwrap()
    }

    fn documents(&self, status: u16) -> bool {
        self.described["responses"].get(status.to_string()).is_some()
    }

    fn takes_a_body(&self) -> bool {
        !self.described["requestBody"].is_null()
    }

    /// A request to a place that there may be, with this query.
    fn request(&self, world: &World, query: &str) -> RequestBuilder {
        let path =
            self.path.replace("{agent}", "cook").replace("{thread_id}", "dinner").replace("{key_id}", &"a".repeat(16));
        let path = path.replace("{chain_id}", UUID).replace("{task_id}", UUID).replace("{model}", "nobody");
        let path = path.replace("{action_id}", UUID).replace("{process_id}", UUID).replace("{turn_id}", UUID);
        let path = path.replace("{memory_id}", UUID).replace("{team}", "nobody").replace("{user}", "nobody");
        let path =
            path.replace("{digest}", &"a".repeat(64)).replace("{projection}", "nothing").replace("{generation}", "1");
        let path = path.replace("{letter}", "1").replace("{fork}", UUID).replace("{question_id}", UUID);
        let path = path.replace("{server}", "nobody").replace("{tool}", "nobody");
        Client::new().request(self.method.clone(), world.url(&format!("{path}{query}")))
    }

    /// The fields of the query that are described.
    fn fields(&self, document: &Value) -> BTreeSet<String> {
        let parameters = self.described["parameters"].as_array().cloned().unwrap_or_default();
        let resolved = parameters.iter().map(|parameter| match parameter["$ref"].as_str() {
            Some(reference) => document.pointer(reference.trim_start_matches('#')).unwrap(),
            None => parameter,
        });
        let in_query = resolved.filter(|parameter| parameter["in"] == "query");
        in_query.map(|parameter| parameter["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// That the answer is the one expected, and as the document says.
async fn assert_answered(operation: &Operation, status: u16, answer: Response) -> Value {
    let what = format!("{} {}", operation.method, operation.path);
    assert_eq!(answer.status().as_u16(), status, "{what}");
    assert!(operation.documents(status), "{what} does not document {status}");
    let form = if operation.described["tags"][0] == "chat" { "application/json" } else { "application/problem+json" };
    assert_eq!(answer.headers()["content-type"], form, "{what}");
    answer.json().await.unwrap()
}

/// The answers documented for faulty requests do occur. Failures of other servers are tested in `faults`, and rate
/// limits with the tests of keys.
#[tokio::test]
async fn what_is_wrong_with_a_request_is_answered_as_documented() {
    let world = Wanted::new(USUAL).start().await;
    let document: Value = serde_saphyr::from_str(&document(&world).await).unwrap();
    for operation in operations(&document) {
        let foreign = operation.request(&world, "").header("origin", "https://example.com").send().await.unwrap();
        assert_answered(&operation, 403, foreign).await;
        let other = Operation { method: Method::TRACE, path: operation.path.clone(), described: json!(null) };
        let other = other.request(&world, "").send().await.unwrap();
        let allowed = other.headers()["allow"].to_str().unwrap().to_owned();
        assert!(allowed.split(',').any(|method| method == operation.method.as_str()), "{}: {allowed}", operation.path);
        assert_answered(&operation, 405, other).await;
        // Clients of OpenAI's API always send a key, so where none is required any will do.
        if operation.documents(401) && operation.described["tags"][0] != "chat" {
            let stranger = operation.request(&world, "").bearer_auth("nobody").send().await.unwrap();
            assert!(stranger.headers().contains_key("www-authenticate"), "{}", operation.path);
            assert_answered(&operation, 401, stranger).await;
        }
        if operation.takes_a_body() {
            let media_type = if operation.name() == "storeObject" { "image/png" } else { "application/json" };
            let json = |body: String| operation.request(&world, "").header("content-type", media_type).body(body);
            assert_answered(&operation, 400, json(r#"{"no_such_field": 1}"#.to_owned()).send().await.unwrap()).await;
            // Chat clients send their whole history each time, and a document is one.
            let too_much = match operation.name() {
                "completeChat" | "importConversation" => 9_000_000,
                "storeObject" => 11_000_000,
                _ => 600_000,
            };
            assert_answered(&operation, 413, json(" ".repeat(too_much)).send().await.unwrap()).await;
            assert_answered(&operation, 415, operation.request(&world, "").body("{}").send().await.unwrap()).await;
        }
        // A conversation that nobody had is empty; what a body names is not found by its path.
        if operation.documents(404) && operation.name() != "getConversation" && !operation.takes_a_body() {
            let query = match operation.name() {
                "getInnerStateHistory" => "?key=nothing",
                "getAgentRequests" => "?at=1",
                "awaitTask" => "?timeout_ms=0",
                _ => "",
            };
            assert_answered(&operation, 404, operation.request(&world, query).send().await.unwrap()).await;
        }
    }
    world.end().await;
}

#[tokio::test]
async fn queries_have_the_fields_that_are_read_and_no_others() {
    let world = Wanted::new(USUAL).start().await;
    let document: Value = serde_saphyr::from_str(&document(&world).await).unwrap();
    let mut compared = 0;
    for operation in operations(&document) {
        let mut described = operation.fields(&document);
        // Taken out of the URL before anybody reads it.
        described.remove("ticket");
        if operation.method != Method::GET || !operation.documents(400) || operation.name() == "connect" {
            let is_answered = described.is_empty() || operation.documents(400);
            assert!(is_answered, "{} documents fields and no answer to wrong ones", operation.path);
            continue;
        }
        let answer = operation.request(&world, "?no_such_field=1").send().await.unwrap();
        let problem = assert_answered(&operation, 400, answer).await;
        let errors = problem["errors"].as_array().unwrap();
        let unknown = errors.iter().find(|error| error["field"] == "no_such_field").unwrap();
        let known = unknown["expected"].as_str().unwrap().strip_prefix("one of the fields").unwrap();
        let mut known: BTreeSet<String> =
            known.split(',').map(|field| field.trim().to_owned()).filter(|field| !field.is_empty()).collect();
        // Every query that is answered from the read model has these besides.
        if described.contains("at_least") {
            known.extend(["at_least", "wait_ms"].map(str::to_owned));
        }
        assert_eq!(described, known, "{}", operation.path);
        compared += 1;
    }
    assert!(compared > 10);
    world.end().await;
}

/// Something of each kind that can be had without an answer of a user.
async fn fill(world: &World) {
    world.define("cook").await;
    world.define("default").await;
    assert_eq!(world.ask("cook", "hello").await, "You said: hello");
    world.ask("default", "the time please").await;
    world.settled().await;
}

/// Requests that are right, and wrong in every way the document lets a program think of.
#[tokio::test]
async fn schemathesis_finds_no_answer_that_is_not_documented() {
    let Some(program) = std::env::var_os("KAIRO_SCHEMATHESIS") else { panic!("run ./scripts/setup --tests") };
    // Most of what it asks to be as fresh as never comes.
    let wanted = Wanted::new(USUAL).env(Service::Gateway, "KAIRO_GATEWAY__FRESHNESS_WAIT_MS", "20");
    let world = wanted.start().await;
    fill(&world).await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("hooks.py"), HOOKS).unwrap();
    let mut trying = Command::new(program);
    trying
        .arg("run")
        .arg(world.url("/openapi.yaml"))
        .args(NOT_TRIED.iter().flat_map(|it| ["--exclude-operation-id", it]));
    trying.args(["--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--max-examples", "20"]);
    // One worker: Python 3.11 cannot parse in two threads at once (python/cpython#106905).
    trying.args(["--seed", "20261121", "--workers", "1", "--generation-database", "none", "--warnings", "off"]);
    let trying = trying.current_dir(folder.path()).env("SCHEMATHESIS_HOOKS", "hooks").kill_on_drop(true);
    let output = trying.output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("No issues found"), "{said}");
    // And it lives on.
    assert_eq!(world.ask("cook", "still there?").await, "You said: still there?");
    world.end().await;
}
