//! Real MCP servers as the registries have them, by their packages: each lists its tools, and one of them is called. Those of time and
//! everything are tried in `mcp.rs`, the latter also over streamable HTTP.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::{fs, path::Path, process::Command, time::Duration};

use jiff::Timestamp;
use kairo_core::config::Secret;
use kairo_tool_runner::{
    config::{McpServerConfig, ToolsConfig},
    mcp::HealthState,
    tool::{CallContext, ProgressReporter},
    toolbox::Toolbox,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_util::sync::CancellationToken;

/// Far beyond what anything here takes: a test that reaches it hangs.
const DEADLINE: Duration = Duration::from_secs(60);

/// Starts a server with these arguments and environment. None, with a word, where it is not installed.
async fn start(variable: &str, args: &[&str], env: &[(&str, &str)]) -> Option<Toolbox> {
    let Ok(program) = std::env::var(variable) else {
        println!("skipped: {variable} is not set; run scripts/setup --tests");
        return None;
    };
    let server = McpServerConfig {
        name: "server".to_owned(),
        command: Some(program),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: env.iter().map(|(name, value)| ((*name).to_owned(), Secret::new((*value).to_owned()))).collect(),
        ..McpServerConfig::default()
    };
    let config = ToolsConfig { mcp: vec![server], ..ToolsConfig::default() };
    let toolbox = tokio::time::timeout(DEADLINE, Toolbox::start(&config, Vec::new())).await.unwrap().unwrap();
    let (_, health) = toolbox.mcp_health().pop().unwrap();
    assert_eq!(health.state, HealthState::Up, "{health:?}");
    assert!(health.left_out.is_empty() && health.protocol.is_some() && health.tools > 0, "{health:?}");
    assert_eq!(toolbox.rejections(), []);
    Some(toolbox)
}

async fn call(toolbox: &Toolbox, tool: &str, args: Value) -> String {
    let context = CallContext {
        user: None,
        action_id: uuid::Uuid::now_v7().to_string(),
        now: Timestamp::now(),
        begun: Timestamp::now(),
        agent: "tester".to_owned(),
        target: None,
        thread_id: String::new(),
        decision_sequence: 0,
        target_after: 0,
        cancel: CancellationToken::new(),
        progress: ProgressReporter::discard(),
        exchange: Default::default(),
    };
    let name = format!("server.{tool}");
    let called = toolbox.call(&name, args, context);
    let outcome = tokio::time::timeout(DEADLINE, called).await.unwrap();
    outcome.unwrap_or_else(|error| panic!("{tool}: {error}")).to_string()
}

async fn stop(toolbox: Toolbox) {
    tokio::time::timeout(DEADLINE, toolbox.stop()).await.unwrap();
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[tokio::test]
async fn files_are_written_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let Some(toolbox) = start("KAIRO_MCP_FILESYSTEM", &[text(&folder)], &[]).await else { return };
    let file = folder.join("note.txt");
    call(&toolbox, "write_file", json!({"path": text(&file), "content": "buy milk"})).await;
    assert_eq!(fs::read_to_string(&file).unwrap(), "buy milk");
    let read = call(&toolbox, "read_text_file", json!({"path": text(&file)})).await;
    assert!(read.contains("buy milk"), "{read}");
    stop(toolbox).await;
}

#[tokio::test]
async fn a_graph_is_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("memory.jsonl");
    let Some(toolbox) = start("KAIRO_MCP_MEMORY", &[], &[("MEMORY_FILE_PATH", text(&file))]).await else { return };
    let entity = json!({"name": "Ann", "entityType": "person", "observations": ["likes tea"]});
    call(&toolbox, "create_entities", json!({"entities": [entity]})).await;
    let found = call(&toolbox, "search_nodes", json!({"query": "tea"})).await;
    assert!(found.contains("Ann"), "{found}");
    stop(toolbox).await;
}

#[tokio::test]
async fn a_repository_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let git = |args: &[&str]| {
        let done = Command::new("git").current_dir(&folder).args(args).output().unwrap();
        assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "--quiet"]);
    let identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"];
    git(&[&identity[..], &["commit", "--quiet", "--allow-empty", "--message", "the first word"]].concat());
    let Some(toolbox) = start("KAIRO_MCP_GIT", &["--repository", text(&folder)], &[]).await else { return };
    let log = call(&toolbox, "git_log", json!({"repo_path": text(&folder)})).await;
    assert!(log.contains("the first word"), "{log}");
    stop(toolbox).await;
}

#[tokio::test]
async fn a_page_is_fetched() {
    let Some(toolbox) = start("KAIRO_MCP_FETCH", &["--ignore-robots-txt", "--allow-private-ips"], &[]).await else {
        return;
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/page", listener.local_addr().unwrap());
    let serving = async {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await;
            let page = "<html><body><h1>Opening hours</h1><p>from nine</p></body></html>";
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                page.len()
            );
            let _ = stream.write_all((head + page).as_bytes()).await;
        }
    };
    let fetching = call(&toolbox, "fetch", json!({"url": url, "raw": true}));
    let page = tokio::select! {
        page = fetching => page,
        () = serving => unreachable!("it serves for ever"),
    };
    assert!(page.contains("Opening hours"), "{page}");
    stop(toolbox).await;
}
