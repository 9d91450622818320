//! MCP servers for tests, found and watched.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use jiff::Timestamp;
use kairo_core::config::Secret;
use kairo_tool_runner::config::{McpServerConfig, ToolsConfig};
use kairo_tool_runner::tool::{CallContext, CallResult, ProgressReport, ProgressReporter, ToolErrorKind};
use kairo_tool_runner::toolbox::Toolbox;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Far beyond what anything here takes: a test that reaches it hangs.
const DEADLINE: Duration = Duration::from_secs(60);
/// Variable by which a test knows its own servers.
const MARK: &str = "KAIRO_TEST_MARK";

pub async fn within_deadline<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(DEADLINE, future).await.expect("the deadline passed; something hangs")
}

pub fn time_program() -> String {
    program("KAIRO_MCP_TIME")
}

pub fn everything_program() -> String {
    program("KAIRO_MCP_EVERYTHING")
}

fn program(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set; run ./scripts/test"))
}

pub fn time(name: &str) -> McpServerConfig {
    stdio(name, time_program())
}

pub fn everything(name: &str) -> McpServerConfig {
    stdio(name, everything_program())
}

fn stdio(name: &str, program: String) -> McpServerConfig {
    McpServerConfig { name: name.to_owned(), command: Some(program), ..McpServerConfig::default() }
}

pub fn config(mcp: Vec<McpServerConfig>) -> ToolsConfig {
    let mut config = ToolsConfig { mcp, ..ToolsConfig::default() };
    config.mcp_lifecycle.restart_min_ms = 10;
    config.mcp_lifecycle.restart_max_ms = 200;
    config
}

pub async fn start(servers: Vec<McpServerConfig>) -> Toolbox {
    within_deadline(Toolbox::start(&config(servers), Vec::new())).await.unwrap()
}

pub fn context() -> CallContext {
    CallContext {
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
    }
}

pub async fn call(toolbox: &Toolbox, tool: &str, args: Value) -> CallResult {
    within_deadline(toolbox.call(tool, args, context())).await
}

/// Calls the long operation, kills the server in the middle of it, and says how the call ended.
pub async fn killed_during_a_call(
    toolbox: &Toolbox,
    processes: &Processes,
    args: Value,
) -> Result<Value, ToolErrorKind> {
    let (reporter, mut progress) = ProgressReporter::channel();
    let mut ctx = context();
    ctx.progress = reporter;
    let running = toolbox.call("all.trigger-long-running-operation", args, ctx);
    let kill_after_progress = async {
        first(&mut progress).await;
        processes.signal(Signal::KILL);
    };
    let (outcome, ()) = within_deadline(async { tokio::join!(running, kill_after_progress) }).await;
    outcome.map_err(|error| error.kind)
}

/// Waits for the first progress report of a call and returns the latest one.
pub async fn first(progress: &mut watch::Receiver<Option<ProgressReport>>) -> ProgressReport {
    progress.wait_for(Option::is_some).await.unwrap().clone().unwrap()
}

/// The processes that a test's servers are, known by a variable in their environment.
pub struct Processes(String);

impl Processes {
    pub fn new() -> Self {
        Self(uuid::Uuid::new_v4().to_string())
    }

    pub fn mark(&self, mut server: McpServerConfig) -> McpServerConfig {
        let mark = Secret::new(self.0.clone());
        server.env.insert(MARK.to_owned(), mark);
        server
    }

    fn pids(&self) -> BTreeMap<i32, String> {
        let entry = format!("{MARK}={}", self.0);
        let processes = fs::read_dir("/proc").unwrap().flatten();
        processes
            .filter_map(|process| {
                let pid: i32 = process.file_name().to_str()?.parse().ok()?;
                let environment = fs::read(process.path().join("environ")).ok()?;
                let marked = environment.split(|byte| *byte == 0).any(|variable| variable == entry.as_bytes());
                let command = fs::read_to_string(process.path().join("cmdline")).ok()?;
                marked.then(|| (pid, command.replace('\0', " ")))
            })
            .collect()
    }

    pub fn signal(&self, signal: Signal) {
        let pids = self.pids();
        assert!(!pids.is_empty(), "there is no process to signal");
        for pid in pids.into_keys() {
            // It may be gone already.
            let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
        }
    }

    pub fn assert_gone(&self) {
        let left = self.pids();
        assert!(left.is_empty(), "left behind: {left:?}");
    }
}
