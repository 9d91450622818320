//! Tests MCP servers whose answers break the protocol: everything readable is read, a bad tool is left out alone, and
//! an unreadable answer to a call that may have had an effect leaves the call in doubt, at once. Effects are counted
//! outside of the server.

mod http;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kairo_tool_runner::catalogue::Rejection;
use kairo_tool_runner::config::McpServerConfig;
use kairo_tool_runner::mcp::{self, HealthState, PeopleAccess, ServerHealth};
use kairo_tool_runner::tool::{Tool, ToolErrorKind};
use kairo_tool_runner::toolbox::Toolbox;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::support::{call, config, context, start, within_deadline};

/// A folder with the table of one server and the file of its effects.
struct Odd {
    folder: TempDir,
}

impl Odd {
    fn new(table: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("table.json"), table.to_string()).unwrap();
        Self { folder }
    }

    /// One with these tools, whose calls are answered with these texts. All may have an effect.
    fn calls(answers: &[(&str, &str)]) -> Self {
        let tools: Vec<Value> = answers.iter().map(|(name, _)| tool(name)).collect();
        let calls: BTreeMap<_, _> = answers.iter().copied().collect();
        Self::new(json!({"pages": [listed(&tools)], "calls": calls}))
    }

    fn config(&self) -> McpServerConfig {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/odd/server.py");
        let paths = [script, self.path("table.json"), self.path("effects")];
        McpServerConfig {
            name: "odd".to_owned(),
            command: Some("python3".to_owned()),
            args: paths.iter().map(|path| path.display().to_string()).collect(),
            ..McpServerConfig::default()
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn effects(&self, tool: &str) -> usize {
        effects(&self.path("effects"), tool)
    }
}

fn effects(file: &Path, tool: &str) -> usize {
    fs::read_to_string(file).unwrap_or_default().lines().filter(|line| *line == tool).count()
}

fn tool(name: &str) -> Value {
    json!({"name": name, "description": name, "inputSchema": {"type": "object"}})
}

/// The answer to tools/list, as a line.
fn listed(tools: &[Value]) -> String {
    result(&json!({"tools": tools}).to_string())
}

/// The answer whose result is this text.
fn result(result: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{{id}},\"result\":{result}}}\n")
}

/// The expected end of a call: the value, or the kind of its error and a part of its message.
type End = Result<Value, (ToolErrorKind, &'static str)>;

async fn assert_ends(toolbox: &Toolbox, tool: &str, expected: &End) {
    let ended = call(toolbox, tool, json!({})).await;
    match (expected, ended) {
        (Ok(value), Ok(ended)) => assert_eq!(*value, ended, "{tool}"),
        (Err((kind, part)), Err(error)) => {
            assert_eq!(*kind, error.kind, "{tool}: {error}");
            assert!(error.message.contains(part), "{tool}: {error}");
        }
        (expected, ended) => panic!("{tool}: {ended:?} instead of {expected:?}"),
    }
}

#[tokio::test]
async fn what_came_of_a_call_is_read_in_whatever_form_it_is_told() {
    let text = |text: &str| result(&format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#));
    let in_doubt = |part| Err((ToolErrorKind::InDoubt, part));
    let cases: Vec<(&str, String, End)> = vec![
        (
            "unknown",
            result(r#"{"content":[{"type":"text","text":"paid 7"},{"type":"receipt","n":7}]}"#),
            Ok(json!("paid 7\n[content of kind receipt: {\"n\":7}]")),
        ),
        ("bare", result(r#"{"receipt":7}"#), Ok(json!({"receipt": 7}))),
        ("structured", result(r#"{"content":[],"structuredContent":7}"#), Ok(json!(7))),
        ("draft", result(r#"{"toolResult":{"content":[{"type":"text","text":"old"}]}}"#), Ok(json!("old"))),
        ("bytes", text("caf\u{e9} \u{ff}"), Ok(json!("caf\u{fffd} \u{fffd}"))),
        ("surrogate", text("half \\ud83d emoji"), Ok(json!("half \u{fffd} emoji"))),
        ("control", text("tab\there"), Ok(json!("tab\there"))),
        (
            "noise",
            format!("working...\n\n  {{not json\n[]\n42\nnull\n{}", text("after noise")),
            Ok(json!("after noise")),
        ),
        ("same_line", format!("done: {}", text("a")), Ok(json!("a"))),
        ("string_id", text("a").replace("{id}", "\"{id}\""), Ok(json!("a"))),
        ("no_id", text("a").replace("\"id\":{id},", ""), Ok(json!("a"))),
        ("null_error", text("a").replace("\"result\"", "\"error\":null,\"result\""), Ok(json!("a"))),
        ("twice", format!("{}{}", text("first"), text("second")), Ok(json!("first"))),
        ("batch", format!("[{}]\n", text("a").trim()), Ok(json!("a"))),
        (
            "refused",
            "{\"id\":{id},\"error\":{\"code\":\"-32000\",\"message\":{\"why\":\"no funds\"}}}\n".to_owned(),
            Err((ToolErrorKind::Failed, "no funds")),
        ),
        ("null", result("null"), in_doubt("null")),
        ("no_code", "{\"id\":{id},\"error\":{\"message\":\"lost the bank\"}}\n".to_owned(), in_doubt("lost the bank")),
        ("words", "{\"id\":{id},\"error\":\"lost the bank\"}\n".to_owned(), in_doubt("lost the bank")),
        ("neither", "{\"id\":{id},\"resultat\":\"paid 7\"}\n".to_owned(), in_doubt("paid 7")),
        ("deep", format!("{{\"id\":{{id}},\"result\":{{\"paid\":{}", "[".repeat(300) + "\n"), in_doubt("paid")),
        ("kind", result(r#"{"resultType":"partial","content":[{"type":"text","text":"half"}]}"#), in_doubt("half")),
        ("dies", "exit".to_owned(), in_doubt("lost during the call")),
    ];
    let answers: Vec<(&str, &str)> = cases.iter().map(|(name, answer, _)| (*name, answer.as_str())).collect();
    let odd = Odd::calls(&answers);
    let toolbox = start(vec![odd.config()]).await;
    for (name, _, end) in &cases {
        assert_ends(&toolbox, &format!("odd.{name}"), end).await;
        assert_eq!(odd.effects(name), 1, "{name}");
    }
    within_deadline(toolbox.stop()).await;
}

/// Starts one server; returns the tools it offers and its health.
async fn listed_by(odd: &Odd) -> (Vec<String>, ServerHealth) {
    let stop = CancellationToken::new();
    let (offered, mut offers) = tokio::sync::watch::channel(Vec::new());
    let on_tools = Box::new(move |tools: Vec<Arc<dyn Tool>>| -> Vec<Rejection> {
        offered.send_replace(tools.iter().map(|tool| tool.spec().name.clone()).collect());
        Vec::new()
    });
    let server = mcp::start(odd.config(), &config(Vec::new()), &PeopleAccess::default(), stop.clone(), on_tools);
    within_deadline(server.wait_for_first_start()).await;
    let names = offers.borrow_and_update().clone();
    let health = server.health();
    stop.cancel();
    within_deadline(server.wait_until_stopped()).await;
    (names, health)
}

#[tokio::test]
async fn one_bad_tool_leaves_out_that_tool() {
    let bad = |name: &str, schema: Value| json!({"name": name, "inputSchema": schema});
    let tools = [
        tool("a"),
        Value::Null,
        json!({"inputSchema": {"type": "object"}}),
        bad("null_schema", Value::Null),
        json!({"name": "no_schema"}),
        bad("list_schema", json!([])),
        bad("other_type", json!({"type": "string"})),
        bad("two_types", json!({"type": ["object", "null"]})),
        json!({"name": "odd_hints", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": "true"}, "icons": 3}),
        tool("a"),
        json!({"name": "a", "description": "another", "inputSchema": {"type": "object"}}),
    ];
    let odd = Odd::new(json!({"pages": [listed(&tools)], "calls": {}, "start": "Server v1.2 starts on stdio\n"}));
    let (names, health) = listed_by(&odd).await;
    assert_eq!(names, ["odd.a", "odd.odd_hints"]);
    assert_eq!((health.state, health.tools), (HealthState::Up, 2));
    let left_out: Vec<&str> = health.left_out.iter().map(|(name, _)| name.as_str()).collect();
    let numbered = ["tool 2 of the list", "tool 3 of the list"];
    let named = ["null_schema", "no_schema", "list_schema", "other_type", "two_types", "a"];
    assert_eq!(left_out, [&numbered[..], &named[..]].concat());
    assert!(health.notes.iter().any(|note| note.contains("Server v1.2")), "{:?}", health.notes);
}

#[tokio::test]
async fn a_list_of_tools_ends_with_what_there_is() {
    let page = |name: &str, next: &str| result(&format!(r#"{{"tools":[{}],"nextCursor":{next}}}"#, tool(name)));
    let empty =
        "{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{\"code\":-32000,\"message\":\"no such page\"}}\n".to_owned();
    for (pages, expected, is_noted) in [
        (vec![page("a", "\"1\""), page("b", "null")], vec!["odd.a", "odd.b"], false),
        (vec![page("a", "\"same\"")], vec!["odd.a"], true),
        (vec![page("a", "\"\"")], vec!["odd.a"], true),
        (vec![page("a", "10"), page("b", "null")], vec!["odd.a", "odd.b"], true),
        (vec![page("a", "\"1\""), empty], vec!["odd.a"], true),
        (vec![result("{\"tools\":null}")], vec![], true),
        (vec![result("{}")], vec![], true),
    ] {
        let odd = Odd::new(json!({"pages": pages, "calls": {}}));
        let (names, health) = listed_by(&odd).await;
        assert_eq!(
            (names, health.state),
            (expected.iter().map(ToString::to_string).collect(), HealthState::Up),
            "{pages:?}"
        );
        // Of each its process's end is noted, which comes later.
        assert_eq!(!health.notes.is_empty(), is_noted, "{pages:?}: {:?}", health.notes);
    }
}

#[tokio::test]
async fn the_handshake_is_read_in_whatever_form_it_has() {
    for initialize in [
        json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": true}, "serverInfo": null}),
        json!({"protocolVersion": "2025-06-18", "capabilities": null, "instructions": 7}),
        json!({"protocolVersion": "2025-06-18"}),
    ] {
        let odd = Odd::new(json!({"initialize": initialize, "pages": [listed(&[tool("a")])], "calls": {}}));
        let (names, _) = listed_by(&odd).await;
        assert_eq!(names, ["odd.a"], "{initialize}");
    }
}

#[tokio::test]
async fn the_end_of_a_server_is_in_its_health() {
    let odd = Odd::calls(&[("dies", "exit")]);
    let stop = CancellationToken::new();
    let offered: Arc<std::sync::Mutex<Vec<Arc<dyn Tool>>>> = Arc::default();
    let tools = Arc::clone(&offered);
    let on_tools = Box::new(move |offers: Vec<Arc<dyn Tool>>| -> Vec<Rejection> {
        *tools.lock().unwrap() = offers;
        Vec::new()
    });
    let server = mcp::start(odd.config(), &config(Vec::new()), &PeopleAccess::default(), stop.clone(), on_tools);
    within_deadline(server.wait_for_first_start()).await;
    let dies = offered.lock().unwrap()[0].clone();
    let ended = within_deadline(dies.call(json!({}), context())).await;
    assert_eq!(ended.unwrap_err().kind, ToolErrorKind::InDoubt);
    let mut changes = server.health_changes();
    let told = |health: &ServerHealth| {
        health.last_error.is_some() && health.notes.iter().any(|note| note.contains("exit status: 3"))
    };
    within_deadline(async {
        while !told(&server.health()) {
            changes.changed().await.unwrap();
        }
    })
    .await;
    assert!(server.health().stderr_end.contains("the disk is full"));
    stop.cancel();
    within_deadline(server.wait_until_stopped()).await;
}

#[tokio::test]
async fn over_http_the_answer_is_what_the_body_says() {
    let text = |text: &str| result(&format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#));
    let answer = |status: u16, kind: &str, body: String| (status, kind.to_owned(), body);
    let json = "application/json";
    let events = "text/event-stream";
    let in_doubt = |part| Err((ToolErrorKind::InDoubt, part));
    let failed = |part| Err((ToolErrorKind::Failed, part));
    let cases: Vec<(&str, (u16, String, String), End)> = vec![
        ("plain", answer(200, "text/plain", text("a")), Ok(json!("a"))),
        ("untyped", answer(200, "", text("a")), Ok(json!("a"))),
        ("created", answer(201, json, text("a")), Ok(json!("a"))),
        ("other_id", answer(200, json, text("a").replace("{id}", "1")), Ok(json!("a"))),
        ("no_id", answer(200, json, text("a").replace("\"id\":{id},", "")), Ok(json!("a"))),
        (
            "receipt",
            answer(200, json, result(r#"{"content":[{"type":"receipt","n":7}]}"#)),
            Ok(json!("[content of kind receipt: {\"n\":7}]")),
        ),
        (
            "batch",
            answer(200, json, format!("[{{\"method\":\"notifications/x\"}},{}]", text("a").trim())),
            Ok(json!("a")),
        ),
        (
            "events",
            answer(200, events, format!(": ping\n\nevent: message\ndata: {}\n\n", text("a").trim())),
            Ok(json!("a")),
        ),
        ("other_event", answer(200, events, format!("event: result\ndata: {}\n\n", text("a").trim())), Ok(json!("a"))),
        ("no_blank", answer(200, events, format!("data: {}\n", text("a").trim())), Ok(json!("a"))),
        (
            "odd_event",
            answer(200, events, format!("data: {}\n\n", result(r#"{"receipt":7}"#).trim())),
            Ok(json!({"receipt": 7})),
        ),
        ("stray", answer(200, events, "data: paid 7\n\n".to_owned()), in_doubt("paid 7")),
        ("no_answer", answer(200, events, ": ping\n\n".to_owned()), in_doubt("lost")),
        ("page", answer(200, "text/html", "<html><body>paid 7</body></html>".to_owned()), in_doubt("paid 7")),
        ("accepted", answer(202, "", String::new()), in_doubt("202")),
        ("no_content", answer(204, "", String::new()), in_doubt("204")),
        ("gateway", answer(502, "text/html", "<html>bad gateway</html>".to_owned()), in_doubt("bad gateway")),
        ("limited", answer(429, "text/plain", "slow down".to_owned()), failed("slow down")),
        ("moved", answer(302, "", String::new()), failed("302")),
        ("bad", answer(400, json, "{\"detail\":\"no such account\"}".to_owned()), failed("no such account")),
        (
            "error_500",
            answer(
                500,
                json,
                "{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{\"code\":-32000,\"message\":\"no funds\"}}".to_owned(),
            ),
            failed("no funds"),
        ),
        (
            "error_400",
            answer(400, json, "{\"error\":{\"code\":-32602,\"message\":\"no amount\"},\"id\":null}".to_owned()),
            Err((ToolErrorKind::InvalidArguments, "no amount")),
        ),
    ];
    let tools: Vec<Value> = cases.iter().map(|(name, ..)| tool(name)).collect();
    let answers = cases.iter().map(|(name, answer, _)| ((*name).to_owned(), answer.clone())).collect();
    let server = http::serve(listed(&tools), answers, (202, String::new(), String::new())).await;
    let odd = McpServerConfig { name: "odd".to_owned(), url: Some(server.url.clone()), ..McpServerConfig::default() };
    let toolbox = start(vec![odd]).await;
    for (name, _, end) in &cases {
        assert_ends(&toolbox, &format!("odd.{name}"), end).await;
        assert_eq!(server.effects(name), 1, "{name}");
    }
    within_deadline(toolbox.stop()).await;
}

#[tokio::test]
async fn nothing_answered_to_a_notification_is_a_reason_to_give_up() {
    for (status, kind, body) in [
        (200, "", ""),
        (200, "text/plain; charset=UTF-8", "OK"),
        (200, "application/json", "{}"),
        (200, "application/json", "not json"),
        (202, "text/html", "<html>"),
        (204, "", ""),
        (405, "", ""),
        (500, "text/html", "<html>oops</html>"),
    ] {
        let answers = [("t".to_owned(), (200, "application/json".to_owned(), result(r#"{"content":"a"}"#)))];
        let odd = (status, kind.to_owned(), body.to_owned());
        let server = http::serve(listed(&[tool("t")]), answers.into(), odd).await;
        let odd =
            McpServerConfig { name: "odd".to_owned(), url: Some(server.url.clone()), ..McpServerConfig::default() };
        let toolbox = start(vec![odd]).await;
        assert_ends(&toolbox, "odd.t", &Ok(json!("a"))).await;
        within_deadline(toolbox.stop()).await;
    }
}

/// Servers may ignore a cancel: their answer still counts.
#[tokio::test]
async fn a_server_is_told_that_a_call_is_canceled_and_its_answer_counts() {
    let paid = format!("when told {}", result(r#"{"content":[{"type":"text","text":"paid, receipt 7"}]}"#));
    let odd = Odd::calls(&[("pay", &paid)]);
    let toolbox = start(vec![odd.config()]).await;
    let ctx = context();
    let cancel = ctx.cancel.clone();
    let paying = toolbox.call("odd.pay", json!({}), ctx);
    let (outcome, ()) = within_deadline(async { tokio::join!(paying, async { cancel.cancel() }) }).await;
    assert_eq!(outcome, Ok(json!("paid, receipt 7")));
    assert_eq!(odd.effects("pay"), 1);
    within_deadline(toolbox.stop()).await;
}

#[tokio::test]
async fn a_program_that_dies_of_the_newest_handshake_is_asked_for_the_older_one() {
    let odd = Odd::new(json!({
        "dies_of": "server/discover", "pages": [listed(&[tool("t")])], "calls": {"t": result(r#"{"content":"a"}"#)},
    }));
    let toolbox = start(vec![odd.config()]).await;
    assert_ends(&toolbox, "odd.t", &Ok(json!("a"))).await;
    within_deadline(toolbox.stop()).await;
}
