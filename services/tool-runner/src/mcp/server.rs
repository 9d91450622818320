//! Keeps one MCP server running: starts it, lists its tools, watches it, and starts it again
//! when it died or fell silent. Every server has a task of its own, so none disturbs another.

mod connection_setup;
mod mcp_server;
pub(super) mod per_user_server;
mod tool_offering;

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ServerNotification, SubscriptionFilter, Tool as McpToolInfo};
use rmcp::service::{Peer, RoleClient, RunningService, Subscription};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

pub use self::mcp_server::McpServer;
use self::mcp_server::ServerLimits;
use self::tool_offering::ToolDestination;
use super::PeopleAccess;
use super::client::McpClient;
use super::elicitation::ElicitationRouter;
use super::failure::innermost_cause;
use super::health::HealthNotes;
use super::oauth::{self, SignIn, SignInOwner, SignIns, UserSignIns};
use super::server_handle::{McpConnection, McpServerHandle, McpServerState};
use super::tool_listing;
use crate::catalogue::Rejection;
use crate::config::{McpServerConfig, ToolsConfig};
use crate::questions::Questions;
use crate::tool::Tool;

/// Told all tools of a server whenever they may have changed; says which of all tools are left out.
pub type OnTools = Box<dyn Fn(Vec<Arc<dyn Tool>>) -> Vec<Rejection> + Send + Sync>;

/// Between two looks whether a person signed in.
const SIGN_IN_POLL: Duration = Duration::from_secs(2);

type McpService = RunningService<RoleClient, McpClient>;

/// Begins to keep a server running until `stop` is canceled.
pub fn start(
    server: McpServerConfig,
    config: &ToolsConfig,
    people: &PeopleAccess,
    stop: CancellationToken,
    on_tools: OnTools,
) -> McpServer {
    let name = Arc::<str>::from(server.name.as_str());
    let limits = ServerLimits::from_config(config);
    let notes = HealthNotes::default();
    let oauth = server.oauth.as_ref().zip(server.url.as_deref());
    let sign_in =
        oauth.and_then(|(oauth, url)| SignIn::new(&server.name, url, oauth, people.vault.clone())).map(Arc::new);
    let questions = people.questions.clone();
    let per_user = server.oauth.as_ref().is_some_and(|oauth| oauth.per == SignInOwner::User);
    if let Some(common) = sign_in.clone().filter(|_| per_user) {
        let sign_ins = Arc::new(UserSignIns::new(common));
        let (users, state) =
            per_user_server::PerUserServer::new(server, limits, questions, notes.clone(), sign_ins.clone(), on_tools);
        let task = tokio::spawn(users.run(stop));
        return McpServer { name, state, notes, sign_ins: Some(SignIns::Users(sign_ins)), task };
    }
    let offering = ToolDestination::for_server(on_tools);
    let sign_ins = sign_in.clone().map(SignIns::Server);
    let parts = KeeperParts { server, limits, sign_in, questions, notes: notes.clone(), stop, offering };
    let (keeper, handle) = ConnectionKeeper::new(parts);
    McpServer { name, state: handle.state, notes, sign_ins, task: tokio::spawn(keeper.run()) }
}

/// Keeps one connection to a server.
pub(super) struct ConnectionKeeper {
    server: McpServerConfig,
    sign_in: Option<Arc<SignIn>>,
    asking: ElicitationRouter,
    handle: McpServerHandle,
    limits: ServerLimits,
    state: watch::Sender<McpServerState>,
    notes: HealthNotes,
    stop: CancellationToken,
    offering: ToolDestination,
}

/// The parts to build a keeper from.
pub(super) struct KeeperParts {
    pub server: McpServerConfig,
    pub limits: ServerLimits,
    pub sign_in: Option<Arc<SignIn>>,
    pub questions: Option<Arc<Questions>>,
    pub notes: HealthNotes,
    pub stop: CancellationToken,
    pub offering: ToolDestination,
}

/// The reason a running server is no longer attended.
enum ConnectionEnd {
    Stopped,
    Lost(&'static str),
}

impl ConnectionKeeper {
    /// Creates a keeper that has not begun, and the handle for calls.
    pub(super) fn new(parts: KeeperParts) -> (Self, McpServerHandle) {
        let KeeperParts { server, limits, sign_in, questions, notes, stop, offering } = parts;
        let (state, observer) = watch::channel(McpServerState::Starting);
        let handle = McpServerHandle {
            name: server.name.as_str().into(),
            state: observer,
            wanted: Arc::new(Notify::new()),
            suspected: Arc::new(Notify::new()),
        };
        let asking = ElicitationRouter::new(handle.name.clone(), questions);
        (Self { server, sign_in, asking, handle: handle.clone(), limits, state, notes, stop, offering }, handle)
    }

    pub(super) async fn run(self) {
        let mut attempts = 0;
        let mut failures = 0;
        let mut generation = 0;
        while !self.stop.is_cancelled() {
            let reason = match self.stop.run_until_cancelled(self.start_service()).await {
                None => break,
                Some(Err(reason)) => {
                    attempts += 1;
                    // Only a person can grant what lacks: to start it again before is in vain.
                    self.sign_in.as_ref().map(|sign_in| sign_in.mark_needed_for_scope());
                    reason
                }
                Some(Ok((service, tools))) => {
                    generation += 1;
                    let since = Instant::now();
                    let ended = self.attend_service(service, tools, generation).await;
                    // One that lived for a while has proved that it can.
                    if since.elapsed() >= self.limits.restart_max {
                        failures = 0;
                    }
                    match ended {
                        ConnectionEnd::Stopped => break,
                        ConnectionEnd::Lost(reason) => reason.to_owned(),
                    }
                }
            };
            failures += 1;
            let needed = self.sign_in.as_ref().filter(|sign_in| sign_in.is_needed());
            let reason = match needed.filter(|sign_in| !sign_in.mark_needed_for_scope()) {
                Some(sign_in) => sign_in.sign_in_advice(),
                None => reason,
            };
            tracing::warn!(server = %self.handle.name, reason, failures, "MCP server is down");
            // What one user lacks is not the server's.
            if needed.is_none_or(|sign_in| !sign_in.is_of_user()) {
                self.notes.record_failure(&reason);
            }
            self.set_state(McpServerState::Down { reason: reason.as_str().into(), attempts });
            match needed {
                Some(sign_in) => self.wait_for_sign_in(sign_in, &reason, &mut attempts).await,
                None => self.wait_before_restart(failures).await,
            }
        }
        self.set_state(McpServerState::Stopped);
    }

    fn set_state(&self, state: McpServerState) {
        self.state.send_replace(state);
        self.notes.announce_change();
    }

    /// Waits the whole delay, or until a call wants the server, but never less than the shortest
    /// one, so that a server that cannot start is not started in a circle.
    async fn wait_before_restart(&self, failures: u32) {
        let rest = restart_delay(failures, self.limits.restart_min, self.limits.restart_max)
            .saturating_sub(self.limits.restart_min);
        let wait = async {
            sleep(self.limits.restart_min).await;
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
            sleep(self.limits.restart_min).await;
            while !sign_in.is_done().await {
                tokio::select! {
                    () = sleep(SIGN_IN_POLL) => {}
                    () = self.handle.wanted.notified() => {
                        if sign_in.is_done().await {
                            return;
                        }
                        *attempts += 1;
                        self.set_state(McpServerState::Down { reason: reason.into(), attempts: *attempts });
                    }
                }
            }
        };
        self.stop.run_until_cancelled(wait).await;
    }

    async fn start_service(&self) -> Result<(McpService, Vec<McpToolInfo>), String> {
        timeout(self.limits.start_timeout, async {
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
        .unwrap_or_else(|_| Err(format!("it did not start within {} ms", self.limits.start_timeout.as_millis())))
    }

    /// Publishes the tools and looks after the server until it ends.
    async fn attend_service(&self, service: McpService, tools: Vec<McpToolInfo>, generation: u64) -> ConnectionEnd {
        let peer = service.peer().clone();
        let client = service.service().clone();
        tracing::info!(
            server = %self.handle.name,
            protocol = peer.peer_info().map(|info| info.protocol_version.to_string()),
            tools = tools.len(),
            "MCP server is up"
        );
        self.publish_tools(&peer, &tools);
        self.set_state(McpServerState::Up(McpConnection {
            peer: peer.clone(),
            progress: client.progress.clone(),
            asking: client.asking.clone(),
            roots: client.roots.clone(),
            generation,
        }));
        let close = service.cancellation_token();
        let mut closed = std::pin::pin!(service.waiting());
        let mut changes = self.subscribe_to_tools(&peer).await;
        let ended = loop {
            let check = tokio::select! {
                _ = &mut closed => return ConnectionEnd::Lost("its connection closed"),
                () = self.stop.cancelled() => break ConnectionEnd::Stopped,
                () = client.tools_changed.notified() => false,
                () = tool_list_changed(&mut changes) => false,
                () = self.handle.suspected.notified() => true,
                () = sign_in_needed(self.sign_in.as_deref()) => break ConnectionEnd::Lost("what was granted is not valid any more"),
            };
            let listing = timeout(self.limits.probe_timeout, self.list_tools(&peer));
            match self.stop.run_until_cancelled(listing).await {
                None => break ConnectionEnd::Stopped,
                Some(Ok(Ok(tools))) => self.publish_tools(&peer, &tools),
                Some(Ok(Err(_)) | Err(_)) if check => break ConnectionEnd::Lost("it does not answer"),
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

    async fn list_tools(&self, peer: &Peer<RoleClient>) -> Result<Vec<McpToolInfo>, String> {
        tool_listing::list_tools(peer, self.limits.start_timeout, self.limits.max_tools, &self.listing_notes()).await
    }

    /// Servers of the newer protocol tell only subscribers that their tools changed.
    async fn subscribe_to_tools(&self, peer: &Peer<RoleClient>) -> Option<Subscription> {
        let info = peer.peer_info()?;
        let announces = info.capabilities.tools.as_ref()?.list_changed == Some(true);
        if !announces || info.protocol_version.has_initialize() {
            return None;
        }
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let listening = timeout(self.limits.probe_timeout, peer.listen(filter));
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
        Some(sign_in) => sign_in.wait_until_needed().await,
        None => std::future::pending().await,
    }
}

/// Returns the reason a server does not answer as it should.
fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    oauth::refusal_reason(error).unwrap_or_else(|| innermost_cause(error))
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
