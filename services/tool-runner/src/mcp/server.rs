//! Keeps one MCP server running: starts it, lists its tools, watches it, and starts it again
//! when it died or fell silent. Every server has a task of its own, so none disturbs another.

mod connecting;

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ServerNotification, SubscriptionFilter, Tool as McpToolInfo};
use rmcp::service::{Peer, RoleClient, RunningService, Subscription};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::People;
use super::asking::Asking;
use super::client::Client;
use super::convert;
use super::failure::innermost;
use super::handle::{Connection, Handle, State};
use super::health::{Health, HealthState, Notes};
use super::listing;
use super::oauth::{self, SignIn};
use super::resource::{self, ResourceRead};
use super::tool::McpTool;
use crate::catalogue::Rejection;
use crate::config::{McpServerConfig, ToolsConfig};
use crate::tool::Tool;

/// Told all tools of a server whenever they may have changed; says which of all tools are left out.
pub type OnTools = Box<dyn Fn(Vec<Arc<dyn Tool>>) -> Vec<Rejection> + Send + Sync>;

/// Between two looks whether a person signed in.
const SIGN_IN_POLL: Duration = Duration::from_secs(2);

type Running = RunningService<RoleClient, Client>;

/// A server that is being kept running until it is stopped.
#[derive(Debug)]
pub struct McpServer {
    name: Arc<str>,
    state: watch::Receiver<State>,
    notes: Notes,
    sign_in: Option<Arc<SignIn>>,
    task: JoinHandle<()>,
}

impl McpServer {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits until the first start succeeded or failed.
    pub async fn first_start(&self) {
        let mut state = self.state.clone();
        // An error means that the task is gone, which is an outcome too.
        let _ = state.wait_for(|state| !matches!(state, State::Starting)).await;
    }

    /// The version of the protocol that is spoken with it; none while it is down.
    pub fn protocol(&self) -> Option<String> {
        match &*self.state.borrow() {
            State::Up(connection) => {
                let info = connection.peer.peer_info()?;
                Some(info.protocol_version.to_string())
            }
            State::Starting | State::Down { .. } | State::Stopped => None,
        }
    }

    /// How it is now.
    pub fn health(&self) -> Health {
        let state = match &*self.state.borrow() {
            State::Starting => HealthState::Starting,
            State::Up(_) => HealthState::Up,
            State::Down { .. } => HealthState::Down,
            State::Stopped => HealthState::Stopped,
        };
        self.notes.health(state, self.protocol())
    }

    /// Tells when its health changed, except for its standard error.
    pub fn health_changes(&self) -> watch::Receiver<u64> {
        self.notes.changes()
    }

    /// How it is signed in at; none where that is not configured.
    pub fn sign_in(&self) -> Option<Arc<SignIn>> {
        self.sign_in.clone()
    }

    /// Waits until the server has ended; to be called after its token was canceled.
    pub async fn stopped(self) {
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the task of an MCP server ended badly");
        }
    }
}

/// Begins to keep a server running until `stop` is canceled.
pub fn start(
    server: McpServerConfig,
    config: &ToolsConfig,
    people: &People,
    stop: CancellationToken,
    on_tools: OnTools,
) -> McpServer {
    let oauth = server.oauth.as_ref().zip(server.url.as_deref());
    let sign_in =
        oauth.and_then(|(oauth, url)| SignIn::new(&server.name, url, oauth, people.vault.clone())).map(Arc::new);
    let asking = Asking::new(server.name.as_str().into(), people.questions.clone());
    let (state, observer) = watch::channel(State::Starting);
    let notes = Notes::default();
    let keeper = Keeper {
        handle: Handle {
            name: server.name.as_str().into(),
            state: observer.clone(),
            wanted: Arc::new(Notify::new()),
            suspected: Arc::new(Notify::new()),
        },
        server,
        sign_in: sign_in.clone(),
        asking,
        start_timeout: Duration::from_millis(config.mcp_lifecycle.start_timeout_ms),
        probe_timeout: Duration::from_millis(config.mcp_lifecycle.probe_timeout_ms),
        restart_min: Duration::from_millis(config.mcp_lifecycle.restart_min_ms),
        restart_max: Duration::from_millis(config.mcp_lifecycle.restart_max_ms),
        call_timeout: config.call_timeout(),
        parallel: config.parallel,
        max_tools: config.max_tools,
        max_result_bytes: config.max_result_bytes,
        state,
        notes: notes.clone(),
        stop,
        on_tools,
    };
    let name = Arc::clone(&keeper.handle.name);
    McpServer { name, state: observer, notes, sign_in, task: tokio::spawn(keeper.run()) }
}

struct Keeper {
    server: McpServerConfig,
    sign_in: Option<Arc<SignIn>>,
    asking: Asking,
    handle: Handle,
    start_timeout: Duration,
    probe_timeout: Duration,
    restart_min: Duration,
    restart_max: Duration,
    call_timeout: Duration,
    parallel: usize,
    max_tools: usize,
    max_result_bytes: usize,
    state: watch::Sender<State>,
    notes: Notes,
    stop: CancellationToken,
    on_tools: OnTools,
}

/// How attending a running server ended.
enum Ended {
    Stopped,
    Lost(&'static str),
}

impl Keeper {
    async fn run(self) {
        let mut attempts = 0;
        let mut failures = 0;
        let mut generation = 0;
        while !self.stop.is_cancelled() {
            let reason = match self.stop.run_until_cancelled(self.start()).await {
                None => break,
                Some(Err(reason)) => {
                    attempts += 1;
                    reason
                }
                Some(Ok((service, tools))) => {
                    generation += 1;
                    let since = Instant::now();
                    let ended = self.attend(service, tools, generation).await;
                    // One that lived for a while has proved that it can.
                    if since.elapsed() >= self.restart_max {
                        failures = 0;
                    }
                    match ended {
                        Ended::Stopped => break,
                        Ended::Lost(reason) => reason.to_owned(),
                    }
                }
            };
            failures += 1;
            let needed = self.sign_in.as_ref().filter(|sign_in| sign_in.is_needed());
            let reason = needed.map_or(reason, |sign_in| sign_in.advice());
            tracing::warn!(server = %self.handle.name, reason, failures, "MCP server is down");
            self.notes.fail(&reason);
            self.enter(State::Down { reason: reason.as_str().into(), attempts });
            match needed {
                Some(sign_in) => self.wait_for_sign_in(sign_in, &reason, &mut attempts).await,
                None => self.wait_before_restart(failures).await,
            }
        }
        self.enter(State::Stopped);
    }

    fn enter(&self, state: State) {
        self.state.send_replace(state);
        self.notes.announce();
    }

    /// Waits the whole delay, or until a call wants the server, but never less than the shortest
    /// one, so that a server that cannot start is not started in a circle.
    async fn wait_before_restart(&self, failures: u32) {
        let rest = restart_delay(failures, self.restart_min, self.restart_max).saturating_sub(self.restart_min);
        let wait = async {
            sleep(self.restart_min).await;
            tokio::select! {
                () = sleep(rest) => {}
                () = self.handle.wanted.notified() => {}
            }
        };
        self.stop.run_until_cancelled(wait).await;
    }

    /// Waits until a person signed in: to start it again before would be in vain. A call that wants it meanwhile is told so.
    async fn wait_for_sign_in(&self, sign_in: &SignIn, reason: &str, attempts: &mut u64) {
        let wait = async {
            // A server that refuses every token is not tried in a circle.
            sleep(self.restart_min).await;
            while !sign_in.is_done().await {
                tokio::select! {
                    () = sleep(SIGN_IN_POLL) => {}
                    () = self.handle.wanted.notified() => {
                        if sign_in.is_done().await {
                            return;
                        }
                        *attempts += 1;
                        self.enter(State::Down { reason: reason.into(), attempts: *attempts });
                    }
                }
            }
        };
        self.stop.run_until_cancelled(wait).await;
    }

    async fn start(&self) -> Result<(Running, Vec<McpToolInfo>), String> {
        timeout(self.start_timeout, async {
            let service = self.connect().await?;
            match self.list_tools(service.peer()).await {
                Ok(tools) => Ok((service, tools)),
                Err(reason) => {
                    let _ = service.cancel().await;
                    Err(reason)
                }
            }
        })
        .await
        .unwrap_or_else(|_| Err(format!("it did not start within {} ms", self.start_timeout.as_millis())))
    }

    /// Publishes the tools and looks after the server until it ends.
    async fn attend(&self, service: Running, tools: Vec<McpToolInfo>, generation: u64) -> Ended {
        let peer = service.peer().clone();
        let client = service.service().clone();
        tracing::info!(
            server = %self.handle.name,
            protocol = peer.peer_info().map(|info| info.protocol_version.to_string()),
            tools = tools.len(),
            "MCP server is up"
        );
        self.publish(&peer, &tools);
        self.enter(State::Up(Connection {
            peer: peer.clone(),
            progress: client.progress.clone(),
            asking: client.asking.clone(),
            roots: client.roots.clone(),
            generation,
        }));
        let close = service.cancellation_token();
        let mut closed = std::pin::pin!(service.waiting());
        let mut changes = self.subscribe(&peer).await;
        let ended = loop {
            let check = tokio::select! {
                _ = &mut closed => return Ended::Lost("its connection closed"),
                () = self.stop.cancelled() => break Ended::Stopped,
                () = client.tools_changed.notified() => false,
                () = tool_list_changed(&mut changes) => false,
                () = self.handle.suspected.notified() => true,
                () = sign_in_needed(self.sign_in.as_deref()) => break Ended::Lost("what was granted is not valid any more"),
            };
            let listing = timeout(self.probe_timeout, self.list_tools(&peer));
            match self.stop.run_until_cancelled(listing).await {
                None => break Ended::Stopped,
                Some(Ok(Ok(tools))) => self.publish(&peer, &tools),
                Some(Ok(Err(_)) | Err(_)) if check => break Ended::Lost("it does not answer"),
                Some(Ok(Err(_)) | Err(_)) => {
                    tracing::warn!(server = %self.handle.name, "changed tools could not be listed");
                }
            }
        };
        // Over stdio: closes its input, then SIGTERM, then SIGKILL to the whole group.
        close.cancel();
        let _ = closed.await;
        ended
    }

    fn publish(&self, peer: &Peer<RoleClient>, tools: &[McpToolInfo]) {
        let reading = self.resource_read(peer, tools);
        let tools = tools
            .iter()
            .map(|tool| {
                let spec = convert::tool_spec(&self.server, tool, self.call_timeout);
                let name = tool.name.to_string();
                let tool = McpTool::new(spec, name, &self.server, self.handle.clone());
                Arc::new(tool) as Arc<dyn Tool>
            })
            .chain(reading)
            .collect::<Vec<_>>();
        let listed = tools.len();
        let own = format!("{}.", self.handle.name);
        let rejected = (self.on_tools)(tools);
        let rejected = rejected.iter().filter_map(|tool| Some((tool.name.strip_prefix(&own)?, &tool.reason)));
        let left_out = rejected.inspect(|(name, reason)| self.notes.leave_out(name, reason)).count();
        self.notes.offer(listed.saturating_sub(left_out));
    }

    /// The tool that reads resources, of a server that has any and no tool of that name.
    fn resource_read(&self, peer: &Peer<RoleClient>, tools: &[McpToolInfo]) -> Option<Arc<dyn Tool>> {
        let has_any = peer.peer_info()?.capabilities.resources.is_some();
        let is_free = tools.iter().all(|tool| tool.name != resource::NAME);
        let reading = || ResourceRead::new(&self.server, self.call_timeout, self.max_result_bytes, self.handle.clone());
        (has_any && is_free).then(|| Arc::new(reading()) as Arc<dyn Tool>)
    }

    async fn list_tools(&self, peer: &Peer<RoleClient>) -> Result<Vec<McpToolInfo>, String> {
        listing::list(peer, self.start_timeout, self.max_tools, &self.notes).await
    }

    /// Servers of the newer protocol tell only subscribers that their tools changed.
    async fn subscribe(&self, peer: &Peer<RoleClient>) -> Option<Subscription> {
        let info = peer.peer_info()?;
        let announces = info.capabilities.tools.as_ref()?.list_changed == Some(true);
        if !announces || info.protocol_version.has_initialize() {
            return None;
        }
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let listening = timeout(self.probe_timeout, peer.listen(filter));
        let answer = self.stop.run_until_cancelled(listening).await;
        answer?.ok()?.ok()
    }
}

/// Pending for ever when there is no subscription, or when it ended: a server that matters will
/// be restarted, and then there is a new one.
async fn tool_list_changed(subscription: &mut Option<Subscription>) {
    while let Some(active) = subscription {
        match active.next().await {
            Ok(Some(ServerNotification::ToolListChangedNotification(_))) => return,
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => *subscription = None,
        }
    }
    std::future::pending().await
}

/// Pending for ever where nobody signs in.
async fn sign_in_needed(sign_in: Option<&SignIn>) {
    match sign_in {
        Some(sign_in) => sign_in.needed().await,
        None => std::future::pending().await,
    }
}

/// Why a server does not answer as it should.
fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    oauth::refusal(error).unwrap_or_else(|| innermost(error))
}

/// Doubles with every failure in a row.
fn restart_delay(failures: u32, min: Duration, max: Duration) -> Duration {
    let doublings = failures.saturating_sub(1).min(31);
    min.saturating_mul(1_u32 << doublings).min(max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_become_rarer_and_stay_bounded() {
        let delay = |failures| restart_delay(failures, Duration::from_millis(500), Duration::from_secs(60)).as_millis();
        assert_eq!([0, 1, 2, 3, 7, 8, u32::MAX].map(delay), [500, 500, 1000, 2000, 32_000, 60_000, 60_000]);
    }
}
