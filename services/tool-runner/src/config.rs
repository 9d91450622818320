//! The configuration of the tools and their limits. Everything is off or bounded by default.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use kairo_core::{
    config::{Mistake, Secret, Validate},
    service_config,
};
use kairo_read_model::PostgresConfig;
use serde::{Deserialize, Serialize};

use crate::allow_list::AllowList;
use crate::approval_rules::{ApprovalRules, is_pattern};
pub use crate::builtin::mail::MailConfig;
pub use crate::builtin::memory::MemorySearchConfig;
pub use crate::builtin::web_search::WebSearchConfig;
pub use crate::builtin::workspace::WorkspaceConfig;
use crate::catalogue::CatalogueLimits;
pub use crate::custom::CustomToolsConfig;
pub use crate::late_answers::LateAnswersConfig;
pub use crate::mcp::oauth::{GrantType as OAuthGrant, OAuthConfig, SignInOwner as OAuthPer};
use crate::mcp::roots;
use crate::tool_name;
pub use crate::workers::config::WorkerLifecycleConfig;

service_config! {
    /// The whole configuration of tool-runner.
    Config {
        /// The tools, and their limits.
        tool_runner: ToolsConfig,
        /// The read model that memory is searched in.
        postgres: PostgresConfig,
    }
}

/// The tools of one runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolsConfig {
    /// IANA time zone of `tools.now` and `tools.date_calc` when a call names none. Default `UTC`.
    pub time_zone: String,
    /// Time limit of a call whose tool has none of its own, in milliseconds; also the time `process.cancel` and
    /// `action.cancel` wait for the end of the action they stop. Default 60 000.
    pub call_timeout_ms: u64,
    /// Longest time a call that is being stopped may take to report its end, in milliseconds. Default 1 000.
    pub cancel_grace_ms: u64,
    /// The limits for late answers of calls in doubt.
    pub late_answers: LateAnswersConfig,
    /// Calls running at once, shared among users; more wait. Control tools have the same number of their own.
    /// Default 16.
    pub parallel: usize,
    /// Largest result of a call, in bytes of JSON. Default 262 144.
    pub max_result_bytes: usize,
    /// Tools in the catalogue. Default 256.
    pub max_tools: usize,
    /// JSON Schema and description of one tool, in bytes. Default 65 536.
    pub max_schema_bytes: usize,
    /// Tools whose calls each need a human's consent, besides those that always do (`email.send`): names, or beginnings
    /// of names such as `github.*`. Default none.
    pub approval: Vec<String>,
    /// Tools that need no consent, whatever other settings require, written in the same way. Default none.
    pub no_approval: Vec<String>,
    /// The tool `http.get`.
    pub http: HttpConfig,
    /// The tool `web.search`.
    pub web_search: WebSearchConfig,
    /// The tool `memory.search`.
    pub memory_search: MemorySearchConfig,
    /// The tools on agents' own files: mail, calendar, contacts, documents.
    pub workspace: WorkspaceConfig,
    /// The tool `email.send`, and mail that comes in.
    pub mail: MailConfig,
    /// The settings for starting and restarting MCP servers.
    pub mcp_lifecycle: McpLifecycleConfig,
    /// Longest wait for a person's answer to a question of an MCP server within a call, in milliseconds; the time limit
    /// of the call does not run meanwhile. Default 600 000.
    pub question_timeout_ms: u64,
    /// The MCP servers. Default none.
    pub mcp: Vec<McpServerConfig>,
    /// The operator's own tools, without MCP.
    pub tools: CustomToolsConfig,
    /// The settings for exchanging messages with the workers of `tools.workers`.
    pub worker_lifecycle: WorkerLifecycleConfig,
}

impl Default for ToolsConfig {
    fn default() -> Self {
        Self {
            time_zone: "UTC".to_owned(),
            call_timeout_ms: 60_000,
            cancel_grace_ms: 1_000,
            late_answers: LateAnswersConfig::default(),
            parallel: 16,
            max_result_bytes: 256 * 1024,
            max_tools: 256,
            max_schema_bytes: 64 * 1024,
            approval: Vec::new(),
            no_approval: Vec::new(),
            http: HttpConfig::default(),
            web_search: WebSearchConfig::default(),
            memory_search: MemorySearchConfig::default(),
            workspace: WorkspaceConfig::default(),
            mail: MailConfig::default(),
            mcp_lifecycle: McpLifecycleConfig::default(),
            question_timeout_ms: 600_000,
            mcp: Vec::new(),
            tools: CustomToolsConfig::default(),
            worker_lifecycle: WorkerLifecycleConfig::default(),
        }
    }
}

/// The tool `http.get`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpConfig {
    /// Hosts that may be read: `example.com`, `example.com:8080`, `*.example.com` (any host
    /// below it) or `*` (any host). Default none, which removes the tool.
    pub allow_hosts: Vec<String>,
    /// Addresses and networks that are not public and may be reached all the same, such as `10.1.2.3` or `fd00::/8`,
    /// through hosts that `allow_hosts` lists without `*`. All others that are not public (loopback, private,
    /// link-local, carrier-grade NAT, metadata services of clouds) are refused, whatever name leads there.
    /// Default none.
    pub allow_private: Vec<String>,
    /// Time limit of a call with all its redirects, in milliseconds. Default 20 000.
    pub timeout_ms: u64,
    /// Maximum bytes read of a body; the rest is cut off. Default 131 072.
    pub max_body_bytes: usize,
    /// Redirects followed, each to a host of the list. Default 5.
    pub max_redirects: usize,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            allow_hosts: Vec::new(),
            allow_private: Vec::new(),
            timeout_ms: 20_000,
            max_body_bytes: 128 * 1024,
            max_redirects: 5,
        }
    }
}

impl HttpConfig {
    /// Returns the hosts and addresses that may be read.
    ///
    /// # Errors
    /// Every entry that is neither a host nor an address, after its key.
    pub fn allowed(&self) -> Result<AllowList, Vec<String>> {
        let allowed = AllowList::parse(&self.allow_hosts, &self.allow_private);
        allowed.map_err(|mistakes| mistakes.iter().map(|mistake| format!("http.{mistake}")).collect())
    }
}

/// The settings for starting and restarting MCP servers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct McpLifecycleConfig {
    /// Longest time a server may take to start and list its tools, in milliseconds. Default 30 000.
    pub start_timeout_ms: u64,
    /// Longest time a server that let a call time out may take to show that it still lives, in milliseconds; then it is
    /// restarted. Default 10 000.
    pub probe_timeout_ms: u64,
    /// Shortest wait before a restart, in milliseconds; doubles with every failure in a row.
    /// Default 500.
    pub restart_min_ms: u64,
    /// Longest wait before a restart, in milliseconds. A call cuts it short. Default 60 000.
    pub restart_max_ms: u64,
    /// Longest time all servers together may take to stop, in milliseconds. A server's standard input is closed, after
    /// 3 s it gets SIGTERM, after 3 s more SIGKILL. Default 8 000.
    pub stop_timeout_ms: u64,
}

impl Default for McpLifecycleConfig {
    fn default() -> Self {
        Self {
            start_timeout_ms: 30_000,
            probe_timeout_ms: 10_000,
            restart_min_ms: 500,
            restart_max_ms: 60_000,
            stop_timeout_ms: 8_000,
        }
    }
}

/// One MCP server: a `command` spoken to over stdio, or the `url` of a streamable HTTP endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct McpServerConfig {
    /// First segment of its tools' names: `[a-z0-9_-]`, at most 32 characters.
    pub name: String,
    /// Program to run: a path, or a name looked up in PATH. No shell is involved.
    pub command: Option<String>,
    /// Its arguments. Default none.
    pub args: Vec<String>,
    /// Its environment besides PATH and HOME. `env:NAME` takes the value from the runner's own
    /// environment, which keeps secrets out of files. Default none.
    pub env: BTreeMap<String, Secret>,
    /// Its working directory. Default the runner's.
    pub cwd: Option<PathBuf>,
    /// Endpoint of a server that runs elsewhere.
    pub url: Option<String>,
    /// HTTP headers sent with every request; `env:NAME` as above. Default none.
    pub headers: BTreeMap<String, Secret>,
    /// OAuth settings for signing in, for a `url`. Default none: there is no sign-in.
    pub oauth: Option<OAuthConfig>,
    /// Absolute folders sent to the server as its roots. Default none.
    pub roots: Vec<PathBuf>,
    /// Tools, by the server's own names, that may be called again with the same action id even
    /// though the server does not say so. Default none.
    pub idempotent: Vec<String>,
    /// True if the server's own word (`idempotentHint`, `readOnlyHint`) is enough to call one of its tools again after
    /// a crash. Default true; set false for a server that is not trusted.
    pub trust_hints: bool,
    /// True if the server's content counts as the operator's own words. Otherwise it is content from outside: agents
    /// that have seen it ask before they act outside. Default false.
    pub trust_content: bool,
    /// Digests of definitions, as `kairo status` shows them, that may be offered although they changed since the first
    /// offer. Default none.
    pub accept: Vec<String>,
    /// Time limit of its calls, in milliseconds. Default that of all tools.
    pub call_timeout_ms: Option<u64>,
}

impl Default for McpServerConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            url: None,
            headers: BTreeMap::new(),
            oauth: None,
            roots: Vec::new(),
            idempotent: Vec::new(),
            trust_hints: true,
            trust_content: false,
            accept: Vec::new(),
            call_timeout_ms: None,
        }
    }
}

impl Validate for ToolsConfig {
    fn mistakes(&self) -> Vec<Mistake> {
        let mistake = |text: String| {
            let (key, problem) = text.split_once(": ").unwrap_or(("", &text));
            Mistake::new(key, problem, "correct it, or leave it out for the default")
        };
        self.validate().into_iter().map(mistake).collect()
    }
}

impl ToolsConfig {
    /// Every mistake, each naming its key. Empty when the configuration can be used.
    pub fn validate(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        if jiff::tz::TimeZone::get(&self.time_zone).is_err() {
            mistakes.push(format!("time_zone: {:?} is no IANA time zone such as Europe/Berlin", self.time_zone));
        }
        for (key, value) in [
            ("call_timeout_ms", self.call_timeout_ms),
            ("question_timeout_ms", self.question_timeout_ms),
            ("http.timeout_ms", self.http.timeout_ms),
            ("mcp_lifecycle.start_timeout_ms", self.mcp_lifecycle.start_timeout_ms),
            ("mcp_lifecycle.probe_timeout_ms", self.mcp_lifecycle.probe_timeout_ms),
            ("mcp_lifecycle.restart_min_ms", self.mcp_lifecycle.restart_min_ms),
        ] {
            if value == 0 {
                mistakes.push(format!("{key}: must be at least 1"));
            }
        }
        for (key, value) in [
            ("parallel", self.parallel),
            ("max_result_bytes", self.max_result_bytes),
            ("max_tools", self.max_tools),
            ("max_schema_bytes", self.max_schema_bytes),
            ("http.max_body_bytes", self.http.max_body_bytes),
        ] {
            if value == 0 {
                mistakes.push(format!("{key}: must be at least 1"));
            }
        }
        if self.mcp_lifecycle.restart_max_ms < self.mcp_lifecycle.restart_min_ms {
            mistakes.push("mcp_lifecycle.restart_max_ms: must not be below restart_min_ms".into());
        }
        mistakes.extend(self.http.allowed().err().unwrap_or_default());
        mistakes.extend(self.web_search.mistakes().map(|m| format!("web_search.{m}")));
        mistakes.extend(self.memory_search.mistakes().into_iter().map(|m| format!("memory_search.{m}")));
        mistakes.extend(self.workspace.mistakes().map(|m| format!("workspace.{m}")));
        mistakes.extend(self.mail.mistakes().map(|m| format!("mail.{m}")));
        if self.workspace.root.is_none() && !self.mail.imap.is_empty() {
            mistakes.push("mail.imap: needs workspace.root, where agents' mail is kept".to_owned());
        }
        for (key, patterns) in [("approval", &self.approval), ("no_approval", &self.no_approval)] {
            if !patterns.iter().all(|pattern| is_pattern(pattern)) {
                mistakes.push(format!("{key}: must be names of tools, or their beginnings with a * behind them"));
            }
        }
        let mut names = BTreeSet::new();
        for (index, server) in self.mcp.iter().enumerate() {
            let key = format!("mcp[{index}]");
            mistakes.extend(server.validate().iter().map(|m| format!("{key}.{m}")));
            if !names.insert(&server.name) {
                mistakes.push(format!("{key}.name: {:?} is taken already", server.name));
            }
        }
        mistakes.extend(self.tools.mistakes(&self.mcp).into_iter().map(|m| format!("tools.{m}")));
        mistakes.extend(self.worker_lifecycle.mistakes().into_iter().map(|m| format!("worker_lifecycle.{m}")));
        mistakes
    }

    /// Returns the rules for which tools need a human's consent.
    pub fn approval_rules(&self) -> ApprovalRules {
        ApprovalRules::new(&self.approval, &self.no_approval)
    }

    /// Limits of the catalogue.
    pub fn catalogue_limits(&self) -> CatalogueLimits {
        CatalogueLimits { max_tools: self.max_tools, max_schema_bytes: self.max_schema_bytes }
    }

    /// Time limit of calls whose tool has none of its own.
    pub fn call_timeout(&self) -> Duration {
        Duration::from_millis(self.call_timeout_ms)
    }
}

impl McpServerConfig {
    fn validate(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        if !tool_name::is_namespace(&self.name) || self.name.len() > tool_name::MAX_SERVER_NAME {
            mistakes.push(format!(
                "name: {:?} must be [a-z0-9_-], 1 to {} characters",
                self.name,
                tool_name::MAX_SERVER_NAME
            ));
        }
        if tool_name::RESERVED_NAMESPACES.contains(&self.name.as_str()) {
            mistakes.push(format!("name: {:?} is kept for built-in tools", self.name));
        }
        match (&self.command, &self.url) {
            (Some(command), None) => {
                if command.is_empty() {
                    mistakes.push("command: must not be empty".to_owned());
                }
                if !self.headers.is_empty() {
                    mistakes.push("headers: only a server with a url has headers".to_owned());
                }
                if self.oauth.is_some() {
                    mistakes.push("oauth: only a server with a url is signed in at".to_owned());
                }
            }
            (None, Some(url)) => mistakes.extend(self.validate_endpoint(url)),
            (Some(_), Some(_)) | (None, None) => {
                mistakes.push("command: give either a command or a url".to_owned());
            }
        }
        for name in self.env.keys() {
            if name.is_empty() || name.contains(['=', '\0']) {
                mistakes.push(format!("env: {name:?} is no name of a variable"));
            }
        }
        if self.call_timeout_ms == Some(0) {
            mistakes.push("call_timeout_ms: must be at least 1".to_owned());
        }
        mistakes.extend(self.oauth.iter().flat_map(OAuthConfig::mistakes).map(|m| format!("oauth.{m}")));
        mistakes.extend(roots::mistakes(&self.roots));
        mistakes
    }

    fn validate_endpoint(&self, url: &str) -> Vec<String> {
        let mut mistakes = Vec::new();
        // The text is not repeated: a URL may carry a password.
        match url::Url::parse(url) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => {}
            Ok(_) | Err(_) => mistakes.push("url: must be http:// or https://".to_owned()),
        }
        if !self.args.is_empty() || !self.env.is_empty() || self.cwd.is_some() {
            mistakes.push("url: args, env and cwd belong to a command".to_owned());
        }
        let has_token = self.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        if has_token && self.oauth.is_some() {
            mistakes.push("headers: authorization is what oauth sends; leave out one of them".to_owned());
        }
        for name in self.headers.keys() {
            if name.parse::<reqwest::header::HeaderName>().is_err() {
                mistakes.push(format!("headers: {name:?} is no name of a header"));
            }
        }
        mistakes
    }
}
