//! All tools of this runner, and the one way to call them.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use kairo_core::{
    metrics::{
        Metrics,
        table::{TOOLS_IN_FLIGHT, TOOLS_LIMIT},
    },
    outside,
    sharing::{
        QuotaHolder,
        permit_pool::{Permit, PermitPool},
    },
};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::builtin::{date_calc::DateCalc, http_get::HttpGet, now::NowTool, web_search::WebSearch, workspace};
use crate::catalogue::{Catalogue, Rejection};
use crate::config::ToolsConfig;
use crate::late_answers::{LateAnswer, LateAnswers, OngoingCall};
use crate::mcp::{self, McpServer, PeopleAccess, ServerHealth, oauth::SignIns};
use crate::outcome::{Exchange, MissingAnswer, missing_answer_error};
use crate::plan::NOT_BEGUN;
use crate::registry::Registry;
use crate::tool::{Attachment, CallContext, CallResult, Tool, ToolError, ToolErrorKind};
use crate::web_api;

/// Longest message of an error, in characters: it becomes part of an event.
const MAX_MESSAGE_CHARS: usize = 4096;

/// Owner of the tools that are requests to web APIs: sorts behind the built-in ones and before every server.
const WEB_APIS: &str = "+web";

/// The errors that keep the toolbox from starting.
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
    places: PermitPool,
    control_places: PermitPool,
    cancel_grace: Duration,
    stop_timeout: Duration,
    max_result_bytes: usize,
    late_answers: LateAnswers,
    stop: CancellationToken,
    servers: Vec<McpServer>,
}

/// Everything a call needs to begin: its tool, valid arguments, and a place among the running calls. Taken before the
/// ledger records the call as begun, so that a call that only waits is not in doubt when this process dies.
pub struct Admission {
    tool: Arc<dyn Tool>,
    args: Value,
    _place: Permit,
}

/// The outcome of a tool call.
pub struct CallOutcome {
    pub result: CallResult,
    /// Outside sources of the content in the result.
    pub outside: Vec<String>,
    /// An answer that may still come, where the result says `in_doubt`.
    pub late: Option<LateAnswer>,
    /// Images and audio that came with it.
    pub attachments: Vec<Attachment>,
}

impl std::fmt::Debug for CallOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outcome").field("result", &self.result).field("outside", &self.outside).finish_non_exhaustive()
    }
}

impl From<CallResult> for CallOutcome {
    fn from(result: CallResult) -> Self {
        Self { result, outside: Vec::new(), late: None, attachments: Vec::new() }
    }
}

impl Admission {
    /// Returns the outside sources of the messages that a call reports while it runs.
    pub fn outside_sources(&self) -> Vec<String> {
        outside::limit_marks(self.tool.outside_sources(&self.args, &Ok(Value::Null)).iter().map(String::as_str))
    }
}

impl Toolbox {
    /// Makes the built-in tools, `further` ones among them, and starts the MCP servers. Returns when each of them
    /// started or failed to; the failed ones go on trying in the background.
    ///
    /// # Errors
    /// When the configuration has mistakes. A server that does not start is not an error.
    pub async fn start(config: &ToolsConfig, further: Vec<Arc<dyn Tool>>) -> Result<Self, ToolboxError> {
        Self::start_with(config, further, PeopleAccess::default()).await
    }

    /// Starts the tools as [`Toolbox::start`] does, with a way to the people that MCP servers need.
    ///
    /// # Errors
    /// As [`Toolbox::start`].
    pub async fn start_with(
        config: &ToolsConfig,
        further: Vec<Arc<dyn Tool>>,
        people: PeopleAccess,
    ) -> Result<Self, ToolboxError> {
        let mistakes = config.validate();
        if !mistakes.is_empty() {
            return Err(ToolboxError::Configuration(mistakes));
        }
        let builtin = builtin_tools(config)?.into_iter().chain(further).collect();
        let mut toolbox = Self::only(config, builtin);
        toolbox.registry.replace_tools(WEB_APIS, web_api::tools(config)?);
        toolbox.servers = config
            .mcp
            .iter()
            .map(|server| {
                let registry = Arc::clone(&toolbox.registry);
                let name = server.name.clone();
                let on_tools = Box::new(move |tools| registry.replace_tools(&name, tools));
                mcp::start(server.clone(), config, &people, toolbox.stop.clone(), on_tools)
            })
            .collect();
        join_all(toolbox.servers.iter().map(McpServer::wait_for_first_start)).await;
        Ok(toolbox)
    }

    /// One that has these tools and no others.
    pub fn only(config: &ToolsConfig, tools: Vec<Arc<dyn Tool>>) -> Self {
        Self {
            registry: Arc::new(Registry::new(tools, config.catalogue_limits())),
            parallel: config.parallel,
            places: PermitPool::with_capacity(config.parallel),
            control_places: PermitPool::with_capacity(config.parallel),
            cancel_grace: Duration::from_millis(config.cancel_grace_ms),
            stop_timeout: Duration::from_millis(config.mcp_lifecycle.stop_timeout_ms),
            max_result_bytes: config.max_result_bytes,
            late_answers: LateAnswers::new(&config.late_answers),
            stop: CancellationToken::new(),
            servers: Vec::new(),
        }
    }

    /// Has metrics say how many calls are under way, and may be; those of control tools have places of their own.
    pub fn observe(self: &Arc<Self>, metrics: &Metrics) {
        let toolbox = Arc::downgrade(self);
        metrics.observe(&TOOLS_IN_FLIGHT, move |say| {
            if let Some(toolbox) = toolbox.upgrade() {
                say(toolbox.places.in_use() as f64, &[]);
            }
        });
        let parallel = self.parallel;
        metrics.observe(&TOOLS_LIMIT, move |say| say(parallel as f64, &[]));
    }

    /// Replaces all tools of an owner, and says which of all tools are left out.
    pub fn offer_tools(&self, owner: &str, tools: Vec<Arc<dyn Tool>>) -> Vec<Rejection> {
        self.registry.replace_tools(owner, tools)
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
    pub fn server_protocols(&self) -> impl Iterator<Item = (&str, Option<String>)> {
        self.servers.iter().map(|server| (server.name(), server.protocol_version()))
    }

    /// The MCP servers and how it is with each.
    pub fn mcp_health(&self) -> Vec<(String, ServerHealth)> {
        self.servers.iter().map(|server| (server.name().to_owned(), server.health())).collect()
    }

    /// Returns a receiver for each MCP server that signals changes of its health.
    pub fn mcp_changes(&self) -> Vec<watch::Receiver<u64>> {
        self.servers.iter().map(McpServer::health_changes).collect()
    }

    /// Returns the tools left out of the catalogue, from all owners.
    pub fn rejections(&self) -> Vec<Rejection> {
        self.registry.rejections()
    }

    /// Returns the sign-ins of each MCP server by name; none if sign-in is not configured.
    pub fn sign_ins(&self) -> impl Iterator<Item = (String, Option<SignIns>)> {
        self.servers.iter().map(|server| (server.name().to_owned(), server.sign_ins()))
    }

    /// Checks the arguments, and waits for a place within the holder's share, and for what the tool itself waits for. Calls of control
    /// tools have places of their own.
    ///
    /// # Errors
    /// When the call fails without anything having begun.
    pub async fn admit(&self, holder: &QuotaHolder, name: &str, args: Value) -> Result<Admission, ToolError> {
        let tool = self.registry.find_for_call(name, &args)?;
        let places = if tool.is_control() { &self.control_places } else { &self.places };
        let _place = places.acquire(holder).await;
        let limit = tool.spec().timeout;
        tokio::time::timeout(limit, tool.ready()).await.unwrap_or_else(|_| Err(too_slow(limit)))?;
        Ok(Admission { tool, args, _place })
    }

    /// Carries out a call that was admitted: keeps the time limit and the size limit. Always comes back with exactly one
    /// outcome, also when the tool panics.
    pub async fn carry_out(&self, admission: Admission, ctx: CallContext) -> CallOutcome {
        let Admission { tool, args, _place } = admission;
        if ctx.cancel.is_cancelled() {
            return Err(ToolError::canceled(NOT_BEGUN)).into();
        }
        let again = ctx.clone();
        let (result, late) = self.run_call(&tool, args.clone(), ctx).await;
        let attachments = tool.take_attachments(&again.action_id);
        let is_in_doubt = matches!(&result, Err(error) if error.kind == ToolErrorKind::InDoubt);
        let late = late.or_else(|| is_in_doubt.then(|| self.rejoin_tool(&tool, args.clone(), again))?);
        let result = bounded(result, self.max_result_bytes, tool.is_repeatable());
        let outside = outside::limit_marks(tool.outside_sources(&args, &result).iter().map(String::as_str));
        CallOutcome { result, outside, late, attachments }
    }

    /// Hears how a call ends that a runner began which is gone. None where its tool cannot tell.
    pub fn rejoin(&self, name: &str, arguments: Value, ctx: CallContext) -> Option<LateAnswer> {
        let tool = self.registry.find_for_call(name, &arguments).ok()?;
        self.rejoin_tool(&tool, arguments, ctx)
    }

    /// Returns true if an agent may call this tool again without harm; false for an unknown tool.
    pub fn is_repeatable(&self, name: &str) -> bool {
        self.registry.find_by_name(name).is_some_and(|tool| tool.is_repeatable())
    }

    fn rejoin_tool(&self, tool: &Arc<dyn Tool>, arguments: Value, mut ctx: CallContext) -> Option<LateAnswer> {
        let stop = CancellationToken::new();
        let exchange = Exchange::default();
        (ctx.cancel, ctx.exchange) = (stop.clone(), exchange.clone());
        let holder = ctx.holder();
        let call = Arc::clone(tool).rejoin(ctx)?;
        self.expect_late_answer(OngoingCall { call, stop, exchange, holder, tool: Arc::clone(tool), arguments })
    }

    fn expect_late_answer(&self, running: OngoingCall) -> Option<LateAnswer> {
        self.late_answers.expect_answer(running, self.cancel_grace, self.max_result_bytes)
    }

    /// Admits a call and carries it out, for whoever keeps no ledger.
    ///
    /// # Errors
    /// Each kind of [`ToolError`].
    pub async fn call(&self, name: &str, args: Value, ctx: CallContext) -> CallResult {
        let admission = ctx.cancel.run_until_cancelled(self.admit(&ctx.holder(), name, args)).await;
        let canceled = || Err(ToolError::canceled(NOT_BEGUN));
        self.carry_out(admission.unwrap_or_else(canceled)?, ctx).await.result
    }

    /// Lets the tool run until it ends, its time is up or it is canceled. In the last two cases it has a moment left: what
    /// it still manages to say is the truth. A call that cannot be repeated and says nothing is in doubt, and goes on for
    /// its answer.
    async fn run_call(
        &self,
        tool: &Arc<dyn Tool>,
        arguments: Value,
        mut ctx: CallContext,
    ) -> (CallResult, Option<LateAnswer>) {
        let canceled = ctx.cancel.clone();
        let exchange = ctx.exchange.clone();
        let limit = tool.spec().timeout;
        let stop = canceled.child_token();
        let waiting = ctx.progress.waiting().clone();
        let holder = ctx.holder();
        ctx.cancel = stop.clone();
        let mut call = begin_call(Arc::clone(tool), arguments.clone(), ctx);
        let missing = tokio::select! {
            biased;
            outcome = &mut call => return (outcome, None),
            () = canceled.cancelled() => MissingAnswer::Canceled,
            () = waiting.own_time_elapsed(limit) => MissingAnswer::TimeLimit(limit),
        };
        let is_repeatable = tool.is_repeatable();
        match missing {
            // What is told to stop may tell nothing any more, so a call whose answer matters is told when nobody waits.
            MissingAnswer::TimeLimit(_) if !is_repeatable && exchange.may_have_left() => exchange.overdue().cancel(),
            _ => stop.cancel(),
        }
        let ended = tokio::time::timeout(self.cancel_grace, &mut call).await;
        let without = || missing_answer_error(&missing, is_repeatable, exchange.may_have_left());
        match ended {
            Ok(Ok(value)) => (Ok(value), None),
            Ok(Err(error)) => (Err(error_after_stop(error, &missing, is_repeatable, &exchange)), None),
            Err(_) if is_repeatable || !exchange.may_have_left() => (Err(without()), None),
            Err(_) => {
                let running =
                    OngoingCall { call, stop, exchange: exchange.clone(), holder, tool: Arc::clone(tool), arguments };
                (Err(without()), self.expect_late_answer(running))
            }
        }
    }

    /// Stops the MCP servers. Calls in flight are told so; let them end before.
    pub async fn stop(self) {
        self.stop.cancel();
        let stopped = join_all(self.servers.into_iter().map(McpServer::wait_until_stopped));
        if tokio::time::timeout(self.stop_timeout, stopped).await.is_err() {
            tracing::warn!("MCP servers are still running; they are killed when this process ends");
        }
    }
}

fn builtin_tools(config: &ToolsConfig) -> Result<Vec<Arc<dyn Tool>>, ToolboxError> {
    let timeout = config.call_timeout();
    let mut tools: Vec<Arc<dyn Tool>> =
        vec![Arc::new(NowTool::new(&config.time_zone, timeout)), Arc::new(DateCalc::new(&config.time_zone, timeout))];
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
    missing_answer_error(&MissingAnswer::TimeLimit(limit), true, false)
}

/// A call that has begun. It may leave a tool's own state half changed, but no one else's: tools are shared by reference
/// and have no more interior than a client that mends itself.
fn begin_call(tool: Arc<dyn Tool>, arguments: Value, ctx: CallContext) -> BoxFuture<'static, CallResult> {
    let is_repeatable = tool.is_repeatable();
    let exchange = ctx.exchange.clone();
    let panicked = move || {
        let missing = MissingAnswer::Lost("the tool panicked".to_owned());
        Err(missing_answer_error(&missing, is_repeatable, exchange.may_have_left()))
    };
    AssertUnwindSafe(async move { tool.call(arguments, ctx).await })
        .catch_unwind()
        .map(move |outcome| outcome.unwrap_or_else(|_| panicked()))
        .boxed()
}

/// Builds the error of a call that failed after its time limit passed or it was canceled. Only an answer of the peer
/// that carried it out counts: a tool that gave up by itself knows nothing of its effect.
fn error_after_stop(error: ToolError, missing: &MissingAnswer, is_repeatable: bool, exchange: &Exchange) -> ToolError {
    let is_stop = error.kind == ToolErrorKind::Canceled;
    match (exchange.is_answered(), missing) {
        // Its peer says that it stopped.
        (true, MissingAnswer::TimeLimit(limit)) if is_stop => ToolError::timed_out(format!(
            "no answer came within {} ms, and it was stopped: {}",
            limit.as_millis(),
            error.message
        )),
        (true, _) => error,
        (false, _) if error.kind == ToolErrorKind::InDoubt => error,
        (false, _) => missing_answer_error(missing, is_repeatable, exchange.may_have_left()),
    }
}

/// A result within the limits of an event.
pub(crate) fn bounded(outcome: CallResult, max_bytes: usize, is_repeatable: bool) -> CallResult {
    match outcome {
        Ok(value) => {
            let text = value.to_string();
            let size = text.len();
            match size > max_bytes {
                true => Err(too_large(size, max_bytes, &text, is_repeatable)),
                false => Ok(value),
            }
        }
        Err(mut error) => {
            if let Some((end, _)) = error.message.char_indices().nth(MAX_MESSAGE_CHARS) {
                error.message.truncate(end);
            }
            Err(error)
        }
    }
}

/// A call that ran, whose result of so many bytes is too large. One that cannot be repeated has happened: it must not look
/// as if it could be called again for less.
pub(crate) fn too_large(size: usize, most: usize, beginning: &str, is_repeatable: bool) -> ToolError {
    let why = format!("the tool ran, but its result takes {size} bytes of at most {most}");
    match is_repeatable {
        true => ToolError::too_large(format!("{why}; ask for less")),
        false => missing_answer_error(&MissingAnswer::unusable(why, beginning), false, true),
    }
}

#[cfg(test)]
mod tests;
