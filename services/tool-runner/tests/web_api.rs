//! Tools that are requests to web APIs, against a real server on loopback.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

use std::{collections::BTreeMap, path::Path};

use jiff::Timestamp;
use kairo_core::config::Secret;
use kairo_tool_runner::config::{CustomToolsConfig, HttpConfig, ToolsConfig};
use kairo_tool_runner::custom::{HttpToolConfig, OpenApiConfig, WorkerConfig};
use kairo_tool_runner::tool::{CallContext, CallResult, ProgressReporter, ToolErrorKind};
use kairo_tool_runner::toolbox::{Toolbox, ToolboxError};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const SECRET: &str = "sesame-4711";

#[cfg(test)]
mod api {
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
    use tokio::net::{TcpListener, TcpStream};

    /// Serves a few paths on loopback and echoes the requests; returns its port. Ends with the runtime of the test.
    pub async fn serve() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(answer(connection));
            }
        });
        port
    }

    /// True once the first request to `/lost-first` was dropped without a response.
    static WAS_LOST: AtomicBool = AtomicBool::new(false);

    async fn answer(connection: TcpStream) {
        let mut connection = BufReader::new(connection);
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            connection.read_line(&mut line).await.unwrap();
            match line.trim_end() {
                "" => break,
                line => head.push(line.to_owned()),
            }
        }
        let length = head.iter().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        connection.read_exact(&mut body).await.unwrap();
        let path = head[0].split(' ').nth(1).unwrap().to_owned();
        let echo = serde_json::json!({
            "request": head[0], "headers": head[1..], "body": String::from_utf8(body).unwrap(), "items": [{"n": 1}],
        });
        let redirect = |to: &str| ("302 Found\r\nlocation: ".to_owned() + to, String::new());
        let (status, body) = match path.as_str() {
            "/missing" => ("404 Not Found".to_owned(), format!("no such thing for {}", super::SECRET)),
            "/broken" => ("500 Oops".to_owned(), "x".repeat(100_000)),
            "/large" => ("200 OK".to_owned(), "x".repeat(100_000)),
            "/words" => ("200 OK".to_owned(), "just words".to_owned()),
            "/proxy" => ("504 Gateway Timeout".to_owned(), "the server took too long".to_owned()),
            "/moved" => redirect("/echo"),
            "/nothing" => ("204 No Content".to_owned(), String::new()),
            "/here" => redirect("/echo?moved"),
            "/elsewhere" => redirect("http://localhost:1/"),
            "/loop" => redirect("/loop"),
            // The connection closes without an answer.
            "/lost" => return,
            "/lost-first" if !WAS_LOST.swap(true, Ordering::SeqCst) => return,
            "/never" => return std::future::pending().await,
            _ => ("200 OK".to_owned(), echo.to_string()),
        };
        let missing = if path == "/cut" { 7 } else { 0 };
        let answer =
            format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len() + missing);
        // The client may have hung up.
        let _ = connection.write_all(answer.as_bytes()).await;
        let _ = connection.shutdown().await;
    }
}

fn config(tools: CustomToolsConfig) -> ToolsConfig {
    let http = HttpConfig { allow_private: vec!["127.0.0.1".to_owned()], ..HttpConfig::default() };
    ToolsConfig { tools, http, ..ToolsConfig::default() }
}

fn tool(method: &str, url: String) -> HttpToolConfig {
    HttpToolConfig {
        name: "shop.it".to_owned(),
        description: "does it".to_owned(),
        method: method.to_owned(),
        url,
        headers: BTreeMap::from([("Authorization".to_owned(), Secret::new(format!("Bearer {SECRET}")))]),
        max_body_bytes: 4_096,
        ..HttpToolConfig::default()
    }
}

async fn offering(tool: HttpToolConfig) -> Toolbox {
    Toolbox::start(&config(CustomToolsConfig { http: vec![tool], ..Default::default() }), Vec::new()).await.unwrap()
}

fn context() -> CallContext {
    CallContext {
        user: None,
        action_id: "action-1".to_owned(),
        now: Timestamp::UNIX_EPOCH,
        begun: Timestamp::UNIX_EPOCH,
        agent: "agent".to_owned(),
        target: None,
        thread_id: String::new(),
        decision_sequence: 0,
        target_after: 0,
        cancel: CancellationToken::new(),
        progress: ProgressReporter::discard(),
        exchange: Default::default(),
    }
}

async fn called(tool: HttpToolConfig, arguments: Value) -> CallResult {
    let toolbox = offering(tool).await;
    toolbox.call("shop.it", arguments, context()).await
}

async fn refused(method: &str, port: u16, path: &str) -> (ToolErrorKind, String) {
    let error = called(tool(method, format!("http://127.0.0.1:{port}{path}")), json!({})).await.unwrap_err();
    (error.kind, error.message)
}

fn has(echo: &Value, header: &str) -> bool {
    echo["headers"].as_array().unwrap().iter().any(|line| line.as_str().unwrap().starts_with(header))
}

#[tokio::test]
async fn arguments_go_where_the_entry_says_and_secrets_do_not_come_back() {
    let port = api::serve().await;
    let schema = json!({"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}});
    let get =
        HttpToolConfig { schema: schema.clone(), ..tool("GET", format!("http://127.0.0.1:{port}/orders/{{id}}")) };
    let echo = called(get, json!({"id": "../a b", "expand": ["x", "y"]})).await.unwrap();
    assert_eq!(echo["request"], "GET /orders/..%2Fa%20b?expand=x&expand=y HTTP/1.1");
    assert!(has(&echo, "authorization: ") && has(&echo, "idempotency-key: action-1"), "{echo}");
    assert!(!echo.to_string().contains(SECRET), "{echo}");

    let post = HttpToolConfig {
        schema,
        query: vec!["dry".to_owned()],
        result: "/items/0/n".to_owned(),
        ..tool("POST", format!("http://127.0.0.1:{port}/orders/{{id}}"))
    };
    let whole = HttpToolConfig { result: String::new(), ..post.clone() };
    let arguments = json!({"id": "7", "dry": true, "note": {"a": [1, null]}});
    assert_eq!(called(post, arguments.clone()).await, Ok(json!(1)));
    let echo = called(whole, arguments).await.unwrap();
    assert_eq!(echo["request"], "POST /orders/7?dry=true HTTP/1.1");
    assert_eq!(echo["body"], r#"{"note":{"a":[1,null]}}"#);
    assert!(has(&echo, "content-type: application/json") && !has(&echo, "idempotency-key"), "{echo}");
}

#[tokio::test]
async fn failures_name_status_and_body_within_bounds() {
    let port = api::serve().await;
    let (kind, message) = refused("GET", port, "/missing").await;
    assert_eq!((kind, message.as_str()), (ToolErrorKind::Failed, "HTTP 404: no such thing for <redacted>"));
    let (_, message) = refused("GET", port, "/broken").await;
    assert!(message.starts_with("HTTP 500: xxx") && message.len() < 1_100, "{message}");
    assert_eq!(refused("GET", port, "/large").await.0, ToolErrorKind::TooLarge);
    let nothing_there =
        HttpToolConfig { result: "/a".to_owned(), ..tool("GET", format!("http://127.0.0.1:{port}/words")) };
    assert!(called(nothing_there, json!({})).await.unwrap_err().message.contains("/a"));
    let words = called(tool("GET", format!("http://127.0.0.1:{port}/words")), json!({})).await;
    assert_eq!(words, Ok(json!("just words")));
    let nothing = called(tool("DELETE", format!("http://127.0.0.1:{port}/nothing")), json!({})).await;
    assert_eq!(nothing, Ok(json!({"status": 204})));
}

#[tokio::test]
async fn a_request_with_a_key_whose_answer_was_lost_is_sent_again_under_it() {
    let port = api::serve().await;
    let keyed =
        HttpToolConfig { idempotent: Some(true), ..tool("POST", format!("http://127.0.0.1:{port}/lost-first")) };
    let echo = called(keyed, json!({})).await.unwrap();
    let headers = echo["headers"].as_array().unwrap();
    assert!(headers.contains(&json!("idempotency-key: action-1")), "{echo}");
}

#[tokio::test]
async fn a_request_whose_answer_was_lost_is_in_doubt_unless_it_can_be_repeated() {
    let port = api::serve().await;
    assert_eq!(refused("POST", port, "/lost").await.0, ToolErrorKind::InDoubt);
    assert_eq!(refused("GET", port, "/lost").await.0, ToolErrorKind::Failed);
    let safe = HttpToolConfig { idempotent: Some(true), ..tool("POST", format!("http://127.0.0.1:{port}/lost")) };
    // Another call of an agent has another key.
    assert_eq!(called(safe, json!({})).await.unwrap_err().kind, ToolErrorKind::InDoubt);
    // Nobody is there: nothing was sent.
    assert_eq!(refused("POST", 1, "/").await.0, ToolErrorKind::Failed);
    let slow = HttpToolConfig { timeout_ms: Some(50), ..tool("POST", format!("http://127.0.0.1:{port}/never")) };
    assert_eq!(called(slow.clone(), json!({})).await.unwrap_err().kind, ToolErrorKind::InDoubt);
    let reading = HttpToolConfig { method: "GET".to_owned(), ..slow };
    assert_eq!(called(reading, json!({})).await.unwrap_err().kind, ToolErrorKind::TimedOut);
    // What has happened is not said to have failed.
    for path in ["/large", "/proxy", "/moved", "/cut"] {
        let (kind, message) = refused("POST", port, path).await;
        assert_eq!(kind, ToolErrorKind::InDoubt, "{path}: {message}");
        let read = called(tool("GET", format!("http://127.0.0.1:{port}{path}")), json!({})).await;
        assert!(read.is_ok() || read.unwrap_err().kind != ToolErrorKind::InDoubt, "{path}");
    }
    let (kind, message) = called(
        HttpToolConfig { result: "/a".to_owned(), ..tool("POST", format!("http://127.0.0.1:{port}/words")) },
        json!({}),
    )
    .await
    .map_err(|error| (error.kind, error.message))
    .unwrap_err();
    assert!(kind == ToolErrorKind::InDoubt && message.contains("just words"), "{message}");
}

#[tokio::test]
async fn redirects_are_followed_on_the_host_and_by_what_reads() {
    let port = api::serve().await;
    let here = called(tool("GET", format!("http://127.0.0.1:{port}/here")), json!({})).await.unwrap();
    assert_eq!(here["request"], "GET /echo?moved HTTP/1.1");
    assert!(refused("POST", port, "/here").await.1.starts_with("HTTP 302"));
    assert!(refused("GET", port, "/elsewhere").await.1.starts_with("HTTP 302"));
    assert!(refused("GET", port, "/loop").await.1.contains("redirects"));
}

#[tokio::test]
async fn addresses_that_are_not_public_are_refused_unless_they_are_allowed() {
    let port = api::serve().await;
    for host in ["127.0.0.1", "localhost"] {
        let http = vec![tool("GET", format!("http://{host}:{port}/words"))];
        let mut config = config(CustomToolsConfig { http, ..Default::default() });
        config.http.allow_private.clear();
        let toolbox = Toolbox::start(&config, Vec::new()).await.unwrap();
        let error = toolbox.call("shop.it", json!({}), context()).await.unwrap_err();
        assert!(error.message.contains("http.allow_private"), "{error}");
    }
}

#[tokio::test]
async fn what_others_write_is_marked_and_what_writes_acts_outside() {
    let port = api::serve().await;
    let url = format!("http://127.0.0.1:{port}/missing");
    for (method, acts_outside) in [("GET", false), ("HEAD", false), ("POST", true), ("DELETE", true)] {
        let toolbox = offering(tool(method, url.clone())).await;
        let admission = toolbox.admit(&context().holder(), "shop.it", json!({})).await.unwrap();
        let outcome = toolbox.carry_out(admission, context()).await;
        assert_eq!(outcome.outside, [format!("web:http://127.0.0.1:{port}")], "also where it failed");
        let catalogue = toolbox.catalogue();
        let spec = catalogue.get("shop.it").unwrap();
        assert_eq!((spec.acts_outside, spec.idempotent), (acts_outside, !acts_outside), "{method}");
    }
    let toolbox = offering(HttpToolConfig { trust_content: true, ..tool("GET", url) }).await;
    let admission = toolbox.admit(&context().holder(), "shop.it", json!({})).await.unwrap();
    assert!(toolbox.carry_out(admission, context()).await.outside.is_empty());
}

fn write(folder: &Path, name: &str, text: &str) -> OpenApiConfig {
    let document = folder.join(name);
    std::fs::write(&document, text).unwrap();
    OpenApiConfig { name: "shop".to_owned(), document, ..OpenApiConfig::default() }
}

#[tokio::test]
async fn an_openapi_document_is_a_source_of_tools() {
    let port = api::serve().await;
    let folder = tempfile::tempdir().unwrap();
    let yaml = "
openapi: 3.1.0
info: {title: Shop, version: '1'}
paths:
  /orders/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    get: {operationId: getOrder, summary: One order}
    put:
      operationId: putOrder
      requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Order'}}}}
    delete: {operationId: deleteOrder}
  /upload:
    post: {operationId: upload, requestBody: {required: true, content: {text/csv: {}}}}
components:
  schemas:
    Order: {type: object, required: [lines], properties: {lines: {type: integer, minimum: 1}}}
";
    let source = OpenApiConfig {
        base_url: Some(format!("http://127.0.0.1:{port}/api/")),
        exclude: vec!["delete*".to_owned()],
        needs_approval: vec!["put*".to_owned()],
        headers: BTreeMap::from([("X-Key".to_owned(), Secret::new(SECRET.to_owned()))]),
        ..write(folder.path(), "shop.yaml", yaml)
    };
    let config = config(CustomToolsConfig { openapi: vec![source.clone()], ..Default::default() });
    let toolbox = Toolbox::start(&config, Vec::new()).await.unwrap();
    let catalogue = toolbox.catalogue();
    let names: Vec<_> =
        catalogue.specs().map(|spec| spec.name.as_str()).filter(|name| name.starts_with("shop")).collect();
    assert_eq!(names, ["shop.getOrder", "shop.putOrder"], "the others are excluded or cannot be offered");
    assert!(catalogue.get("shop.putOrder").is_some_and(|spec| spec.needs_approval && spec.acts_outside));
    let echo = toolbox.call("shop.getOrder", json!({"id": "7"}), context()).await.unwrap();
    assert_eq!(echo["request"], "GET /api/orders/7 HTTP/1.1");
    assert!(has(&echo, "x-key: <redacted>"), "{echo}");
    let echo = toolbox.call("shop.putOrder", json!({"id": "7", "body": {"lines": 2}}), context()).await.unwrap();
    assert_eq!(echo["body"], r#"{"lines":2}"#);
    let error = toolbox.call("shop.putOrder", json!({"id": "7", "body": {"lines": 0}}), context()).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::InvalidArguments);

    let few = CustomToolsConfig { openapi: vec![OpenApiConfig { max_tools: 1, ..source }], ..Default::default() };
    let toolbox = Toolbox::start(&ToolsConfig { tools: few, ..config }, Vec::new()).await.unwrap();
    assert!(toolbox.catalogue().get("shop.putOrder").is_none());
}

#[tokio::test]
async fn documents_that_cannot_be_read_are_told_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let old = write(folder.path(), "old.json", r#"{"swagger": "2.0"}"#);
    let torn = OpenApiConfig { name: "torn".to_owned(), ..write(folder.path(), "torn.json", "{") };
    let gone = OpenApiConfig { name: "gone".to_owned(), document: folder.path().join("gone"), ..old.clone() };
    let long = OpenApiConfig { name: "long".to_owned(), max_document_bytes: 3, ..old.clone() };
    let config = config(CustomToolsConfig { openapi: vec![old, torn, gone, long], ..Default::default() });
    let Err(ToolboxError::Configuration(mistakes)) = Toolbox::start(&config, Vec::new()).await else {
        panic!("started")
    };
    for at in 0..4 {
        let key = format!("tools.openapi[{at}].document: ");
        assert!(mistakes.iter().any(|mistake| mistake.starts_with(&key)), "{key} in {mistakes:#?}");
    }
}

#[test]
fn mistakes_are_named_with_what_was_expected() {
    let good = || tool("GET", "https://h/a".to_owned());
    let named = |name: &str| HttpToolConfig { name: name.to_owned(), ..good() };
    let header = |name: &str, value: &str| {
        let headers = BTreeMap::from([(name.to_owned(), Secret::new(value.to_owned()))]);
        HttpToolConfig { name: "h.bad".to_owned(), headers, ..good() }
    };
    let http = vec![
        good(),
        named("tools.now"),
        named("task.mine"),
        named("Bad name"),
        named("shop.it"),
        named("api.mine"),
        HttpToolConfig { name: "a.b".to_owned(), url: "https://h/{id}".to_owned(), ..good() },
        HttpToolConfig { name: "c".to_owned(), url: "h/a".to_owned(), method: "get".to_owned(), ..good() },
        HttpToolConfig { name: "d".to_owned(), description: " ".to_owned(), result: "a".to_owned(), ..good() },
        HttpToolConfig { name: "e".to_owned(), schema: json!({"type": "object", "properties": 3}), ..good() },
        HttpToolConfig { name: "f".to_owned(), timeout_ms: Some(0), max_body_bytes: 0, ..good() },
        header("X-Key", "sesame\n4711"),
    ];
    let api = OpenApiConfig { name: "api".to_owned(), document: "/a".into(), ..Default::default() };
    let openapi =
        vec![api.clone(), api, OpenApiConfig { base_url: Some("https://{h}".to_owned()), ..Default::default() }];
    let worker = |name: &str, prefix: &str| WorkerConfig {
        name: name.to_owned(),
        prefix: prefix.to_owned(),
        ..WorkerConfig::default()
    };
    let workers = vec![worker("w", ""), worker("w", "x"), worker("W", ""), worker("t", "tools"), worker("o", "api")];
    let mut config = config(CustomToolsConfig { http, openapi, workers });
    config.worker_lifecycle.silence_ms = 1;
    let mistakes = config.validate();
    assert!(mistakes.iter().any(|mistake| mistake.starts_with("worker_lifecycle.silence_ms: ")), "{mistakes:#?}");
    for key in [
        "http[1].name: ",
        "http[2].name: ",
        "http[3].name: ",
        "http[4].name: ",
        "http[5].name: ",
        "http[6].schema: ",
        "http[7].url: ",
        "http[7].method: ",
        "http[8].description: ",
        "http[8].result: ",
        "http[9].schema: ",
        "http[10].timeout_ms: ",
        "http[10].max_body_bytes: ",
        "http[11].headers.X-Key: ",
        "openapi[1].name: ",
        "openapi[2].name: ",
        "openapi[2].document: ",
        "openapi[2].base_url: ",
        "workers[1].name: ",
        "workers[2].name: ",
        "workers[3].prefix: ",
        "workers[4].prefix: ",
    ] {
        let key = format!("tools.{key}");
        assert!(mistakes.iter().any(|mistake| mistake.starts_with(&key)), "{key} in {mistakes:#?}");
    }
    assert!(
        !mistakes.iter().any(|mistake| mistake.starts_with("tools.http[0]") || mistake.contains("sesame")),
        "{mistakes:#?}"
    );
}
