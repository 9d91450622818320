//! All tools of this runner, and the one way to call them.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::join_all;
use kairo_core::{
    metrics::{
        Metrics,
        table::{TOOLS_IN_FLIGHT, TOOLS_LIMIT},
    },
    outside,
};
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio_util::sync::CancellationToken;

use crate::builtin::{date_calc::DateCalc, http_get::HttpGet, now::Now, web_search::WebSearch, workspace};
use crate::catalogue::{Catalogue, Rejection};
use crate::config::ToolsConfig;
use crate::mcp::{self, Health, McpServer};
use crate::registry::Registry;
use crate::tool::{CallContext, CallResult, Tool, ToolError};
use crate::web_api;

/// Longest message of an error, in characters: it becomes part of an event.
const MAX_MESSAGE_CHARS: usize = 4096;

/// Owner of the tools that are requests to web APIs: sorts behind the built-in ones and before every server.
const WEB_APIS: &str = "+web";

/// Why no tools could be offered.
#[derive(Debug, thiserror::Error)]
pub enum ToolboxError {
    #[error("the configuration of the tools has mistakes: {}", .0.join("; "))]
    Configuration(Vec<String>),
    #[error("the HTTP client could not be set up: {0}")]
    HttpClient(#[from] reqwest::Error),
}

/// All tools of this runner.
#[derive(Debug)]
pub struct Toolbox {
    registry: Arc<Registry>,
    /// Calls that run at once at most.
    parallel: usize,
    permits: Semaphore,
    control_permits: Semaphore,
    cancel_grace: Duration,
    stop_timeout: Duration,
    max_result_bytes: usize,
    stop: CancellationToken,
    servers: Vec<McpServer>,
}

/// What a call needs to begin: its tool, arguments that fit, and a place among the calls that run. Taken before a call is
/// entered in the ledger as begun, so that what only waits is not in doubt when this process dies.
pub struct Admission<'t> {
    tool: Arc<dyn Tool>,
    args: Value,
    _place: SemaphorePermit<'t>,
}

/// What came of a call.
#[derive(Debug)]
pub struct Outcome {
    pub result: CallResult,
    /// Where content in it comes from that nobody here wrote.
    pub outside: Vec<String>,
}

impl From<CallResult> for Outcome {
    fn from(result: CallResult) -> Self {
        Self { result, outside: Vec::new() }
    }
}

impl Admission<'_> {
    /// Where words come from that it says while it runs and that nobody here wrote.
    pub fn outside(&self) -> Vec<String> {
        outside::bounded(self.tool.outside(&self.args, &Ok(Value::Null)).iter().map(String::as_str))
    }
}

impl Toolbox {
    /// Makes the built-in tools, `further` ones among them, and starts the MCP servers. Returns when each of them
    /// started or failed to; the failed ones go on trying in the background.
    ///
    /// # Errors
    /// When the configuration has mistakes. A server that does not start is not an error.
    pub async fn start(config: &ToolsConfig, further: Vec<Arc<dyn Tool>>) -> Result<Self, ToolboxError> {
        let mistakes = config.validate();
        if !mistakes.is_empty() {
            return Err(ToolboxError::Configuration(mistakes));
        }
        let builtin = builtin_tools(config)?.into_iter().chain(further).collect();
        let mut toolbox = Self::only(config, builtin);
        toolbox.registry.replace(WEB_APIS, web_api::tools(config)?);
        toolbox.servers = config
            .mcp
            .iter()
            .map(|server| {
                let (registry, name) = (Arc::clone(&toolbox.registry), server.name.clone());
                let on_tools = Box::new(move |tools| drop(registry.replace(&name, tools)));
                mcp::start(server.clone(), config, toolbox.stop.clone(), on_tools)
            })
            .collect();
        join_all(toolbox.servers.iter().map(McpServer::first_start)).await;
        Ok(toolbox)
    }

    /// One that has these tools and no others.
    pub fn only(config: &ToolsConfig, tools: Vec<Arc<dyn Tool>>) -> Self {
        Self {
            registry: Arc::new(Registry::new(tools, config.catalogue_limits())),
            parallel: config.parallel,
            permits: Semaphore::new(config.parallel),
            control_permits: Semaphore::new(config.parallel),
            cancel_grace: Duration::from_millis(config.cancel_grace_ms),
            stop_timeout: Duration::from_millis(config.mcp_lifecycle.stop_timeout_ms),
            max_result_bytes: config.max_result_bytes,
            stop: CancellationToken::new(),
            servers: Vec::new(),
        }
    }

    /// Has metrics say how many calls are under way, and may be; those of control tools have places of their own.
    pub fn observe(self: &Arc<Self>, metrics: &Metrics) {
        let toolbox = Arc::downgrade(self);
        metrics.observe(&TOOLS_IN_FLIGHT, move |say| {
            if let Some(toolbox) = toolbox.upgrade() {
                say(toolbox.parallel.saturating_sub(toolbox.permits.available_permits()) as f64, &[]);
            }
        });
        let parallel = self.parallel;
        metrics.observe(&TOOLS_LIMIT, move |say| say(parallel as f64, &[]));
    }

    /// Replaces all tools of an owner, and says which of all tools are left out.
    pub fn offer(&self, owner: &str, tools: Vec<Arc<dyn Tool>>) -> Vec<Rejection> {
        self.registry.replace(owner, tools)
    }

    /// The tools on offer now.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.registry.watch().borrow())
    }

    /// The tools on offer, now and whenever they change.
    pub fn watch(&self) -> watch::Receiver<Arc<Catalogue>> {
        self.registry.watch()
    }

    /// The MCP servers and the version of the protocol spoken with each; none for one that is
    /// down.
    pub fn servers(&self) -> impl Iterator<Item = (&str, Option<String>)> {
        self.servers.iter().map(|server| (server.name(), server.protocol()))
    }

    /// The MCP servers and how it is with each.
    pub fn mcp_health(&self) -> Vec<(String, Health)> {
        self.servers.iter().map(|server| (server.name().to_owned(), server.health())).collect()
    }

    /// What tells when the health of an MCP server changed, for each of them.
    pub fn mcp_changes(&self) -> Vec<watch::Receiver<u64>> {
        self.servers.iter().map(McpServer::health_changes).collect()
    }

    /// The tools of all owners that are left out of the catalogue.
    pub fn rejections(&self) -> Vec<Rejection> {
        self.registry.rejections()
    }

    /// Checks the arguments, and waits for a free place, first come first served, and for what the tool itself waits for.
    /// Calls of control tools have places of their own.
    ///
    /// # Errors
    /// When the call fails without anything having begun.
    pub async fn admit(&self, name: &str, args: Value) -> Result<Admission<'_>, ToolError> {
        let tool = self.registry.find(name, &args)?;
        let places = if tool.is_control() { &self.control_permits } else { &self.permits };
        let place = places.acquire().await;
        let _place = place.map_err(|_| ToolError::unavailable("this runner takes no more calls"))?;
        let limit = tool.spec().timeout;
        tokio::time::timeout(limit, tool.ready()).await.unwrap_or_else(|_| Err(too_slow(limit)))?;
        Ok(Admission { tool, args, _place })
    }

    /// Carries out a call that was admitted: keeps the time limit and the size limit. Always comes back with exactly one
    /// outcome, also when the tool panics.
    pub async fn carry_out(&self, admission: Admission<'_>, ctx: CallContext) -> Outcome {
        let Admission { tool, args, _place } = admission;
        if ctx.cancel.is_cancelled() {
            return Err(ToolError::canceled("it was canceled before it began")).into();
        }
        let result = self.run(tool.as_ref(), args.clone(), ctx).await;
        let result = bounded(result, self.max_result_bytes);
        let outside = outside::bounded(tool.outside(&args, &result).iter().map(String::as_str));
        Outcome { result, outside }
    }

    /// Admits a call and carries it out, for whoever keeps no ledger.
    ///
    /// # Errors
    /// Each kind of [`ToolError`].
    pub async fn call(&self, name: &str, args: Value, ctx: CallContext) -> CallResult {
        let admission = ctx.cancel.run_until_cancelled(self.admit(name, args)).await;
        let canceled = || Err(ToolError::canceled("it was canceled before it began"));
        self.carry_out(admission.unwrap_or_else(canceled)?, ctx).await.result
    }

    /// Lets the tool run until it ends, its time is up or it is canceled. In the last two cases
    /// it is told, and granted a moment: what it still manages to say is the truth.
    async fn run(&self, tool: &dyn Tool, args: Value, mut ctx: CallContext) -> CallResult {
        let canceled = ctx.cancel.clone();
        let interrupt = canceled.child_token();
        ctx.cancel = interrupt.clone();
        let limit = tool.spec().timeout;
        // The call may leave a tool's own state half changed, but no one else's: tools are shared
        // by reference and have no more interior than a client that mends itself.
        let mut call = AssertUnwindSafe(async move { tool.call(args, ctx).await })
            .catch_unwind()
            .map(|outcome| outcome.unwrap_or_else(|_| Err(ToolError::failed("the tool panicked"))))
            .boxed();
        let interrupted = tokio::select! {
            biased;
            outcome = &mut call => return outcome,
            () = canceled.cancelled() => ToolError::canceled("it was stopped on request"),
            () = tokio::time::sleep(limit) => too_slow(limit),
        };
        interrupt.cancel();
        match tokio::time::timeout(self.cancel_grace, call).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(_)) | Err(_) => Err(interrupted),
        }
    }

    /// Stops the MCP servers. Calls in flight are told so; let them end before.
    pub async fn stop(self) {
        self.stop.cancel();
        let stopped = join_all(self.servers.into_iter().map(McpServer::stopped));
        if tokio::time::timeout(self.stop_timeout, stopped).await.is_err() {
            tracing::warn!("MCP servers are still running; they are killed when this process ends");
        }
    }
}

fn builtin_tools(config: &ToolsConfig) -> Result<Vec<Arc<dyn Tool>>, ToolboxError> {
    let timeout = config.call_timeout();
    let mut tools: Vec<Arc<dyn Tool>> =
        vec![Arc::new(Now::new(&config.time_zone, timeout)), Arc::new(DateCalc::new(&config.time_zone, timeout))];
    let allowed = config.http.allowed().map_err(ToolboxError::Configuration)?;
    if !allowed.is_empty() {
        tools.push(Arc::new(HttpGet::new(&config.http, allowed)?));
    }
    if let Some(search) = WebSearch::new(&config.web_search)? {
        tools.push(Arc::new(search));
    }
    tools.extend(workspace::tools(config).map_err(|mistake| ToolboxError::Configuration(vec![mistake]))?);
    Ok(tools)
}

fn too_slow(limit: Duration) -> ToolError {
    ToolError::timed_out(format!("it did not end within {} ms; ask for less or raise the limit", limit.as_millis()))
}

fn bounded(outcome: CallResult, max_bytes: usize) -> CallResult {
    match outcome {
        Ok(value) => {
            let size = value.to_string().len();
            if size > max_bytes {
                return Err(ToolError::too_large(format!(
                    "the tool ran, but its result takes {size} bytes of at most {max_bytes}; ask for less"
                )));
            }
            Ok(value)
        }
        Err(mut error) => {
            if let Some((end, _)) = error.message.char_indices().nth(MAX_MESSAGE_CHARS) {
                error.message.truncate(end);
            }
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::future::BoxFuture;
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::tool::{Executor, ProgressReporter, ToolErrorKind, ToolSpec};

    /// What the tool under test does when it is called.
    type Behavior = fn(CallContext) -> BoxFuture<'static, CallResult>;

    struct Scripted(ToolSpec, Behavior);

    impl Tool for Scripted {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        fn call(&self, _args: Value, ctx: CallContext) -> BoxFuture<'_, CallResult> {
            (self.1)(ctx)
        }
    }

    fn scripted(name: &str, behavior: Behavior) -> Arc<dyn Tool> {
        let spec = ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            schema: json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
            idempotent: false,
            timeout: Duration::from_secs(60),
            executor: Executor::ToolRunner,
            needs_approval: false,
            needs_approval_with: Vec::new(),
            acts_outside: false,
            definition: None,
        };
        Arc::new(Scripted(spec, behavior))
    }

    async fn toolbox(parallel: usize, behavior: Behavior) -> Toolbox {
        let config = ToolsConfig { parallel, max_result_bytes: 20, ..ToolsConfig::default() };
        let toolbox = Toolbox::start(&config, Vec::new()).await.unwrap();
        toolbox.registry.replace("s", vec![scripted("s.tool", behavior)]);
        toolbox
    }

    fn context() -> CallContext {
        CallContext {
            user: Some("ann".to_owned()),
            action_id: "action".to_owned(),
            now: Timestamp::UNIX_EPOCH,
            begun: Timestamp::now(),
            agent: "agent".to_owned(),
            target: None,
            thread_id: String::new(),
            decision_sequence: 0,
            target_after: 0,
            cancel: CancellationToken::new(),
            progress: ProgressReporter::discard(),
        }
    }

    async fn outcome(behavior: Behavior) -> CallResult {
        let toolbox = toolbox(1, behavior).await;
        toolbox.call("s.tool", json!({}), context()).await
    }

    #[tokio::test]
    async fn a_panic_is_a_failure() {
        let error = outcome(|_| Box::pin(async { panic!("on purpose") })).await;
        assert_eq!(error.unwrap_err().kind, ToolErrorKind::Failed);
        // Also one before the first await.
        let error = outcome(|_| panic!("on purpose")).await;
        assert_eq!(error.unwrap_err().kind, ToolErrorKind::Failed);
    }

    #[tokio::test]
    async fn a_result_that_is_too_large_is_refused() {
        let small = outcome(|_| Box::pin(async { Ok(json!("x".repeat(18))) })).await;
        assert!(small.is_ok());
        let large = outcome(|_| Box::pin(async { Ok(json!("x".repeat(19))) })).await;
        assert_eq!(large.unwrap_err().kind, ToolErrorKind::TooLarge);
    }

    #[tokio::test]
    async fn long_messages_are_cut_between_characters() {
        let error = outcome(|_| Box::pin(async { Err(ToolError::failed("é".repeat(9000))) })).await;
        assert_eq!(error.unwrap_err().message.chars().count(), MAX_MESSAGE_CHARS);
    }

    #[tokio::test]
    async fn arguments_are_checked_before_the_call() {
        let toolbox = toolbox(1, |_| panic!("must not be called")).await;
        let call = toolbox.call("s.tool", json!({"n": "one"}), context());
        assert_eq!(call.await.unwrap_err().kind, ToolErrorKind::InvalidArguments);
        let call = toolbox.call("s.other", json!({}), context());
        assert_eq!(call.await.unwrap_err().kind, ToolErrorKind::NotFound);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_limit_holds_for_a_tool_that_ignores_it() {
        let error = outcome(|_| Box::pin(std::future::pending())).await;
        assert_eq!(error.unwrap_err().kind, ToolErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_stopped_tool_still_did_is_its_result() {
        let done = outcome(|ctx| {
            Box::pin(async move {
                ctx.cancel.cancelled().await;
                Ok(json!("done"))
            })
        });
        assert_eq!(done.await, Ok(json!("done")));
        let given_up = outcome(|ctx| {
            Box::pin(async move {
                ctx.cancel.cancelled().await;
                Err(ToolError::failed("gave up"))
            })
        });
        assert_eq!(given_up.await.unwrap_err().kind, ToolErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_canceled_call_is_canceled_whether_it_runs_or_waits() {
        let toolbox = toolbox(1, |_| Box::pin(std::future::pending())).await;
        let (running, waiting) = (context(), context());
        let tokens = [running.cancel.clone(), waiting.cancel.clone()];
        let calls = join_all([toolbox.call("s.tool", json!({}), running), toolbox.call("s.tool", json!({}), waiting)]);
        let cancel = async { tokens.iter().for_each(CancellationToken::cancel) };
        let (outcomes, ()) = tokio::join!(calls, cancel);
        for outcome in outcomes {
            assert_eq!(outcome.unwrap_err().kind, ToolErrorKind::Canceled);
        }
    }

    #[tokio::test]
    async fn the_catalogue_is_watched_and_built_in_tools_win() {
        let toolbox = Toolbox::start(&ToolsConfig::default(), Vec::new()).await.unwrap();
        let mut watch = toolbox.watch();
        watch.mark_unchanged();
        let fake = scripted("tools.now", |_| panic!("must not be called"));
        toolbox.registry.replace("tools", vec![fake]);
        assert!(watch.has_changed().unwrap(), "what is left out is told, too");
        assert!(toolbox.call("tools.now", json!({}), context()).await.is_ok());
        let more = || vec![scripted("s.more", |_| panic!("must not be called"))];
        toolbox.registry.replace("s", more());
        assert!(watch.has_changed().unwrap());
        assert_eq!(watch.borrow_and_update().len(), 3);
        toolbox.registry.replace("s", more());
        assert!(!watch.has_changed().unwrap());
        toolbox.registry.replace("s", Vec::new());
        assert_eq!(watch.borrow_and_update().len(), 2);
    }

    #[tokio::test]
    async fn a_wrong_configuration_is_refused() {
        let config = ToolsConfig { parallel: 0, ..ToolsConfig::default() };
        assert!(matches!(
            Toolbox::start(&config, Vec::new()).await,
            Err(ToolboxError::Configuration(mistakes)) if mistakes.len() == 1
        ));
    }
}
