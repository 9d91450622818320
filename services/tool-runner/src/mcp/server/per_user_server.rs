//! A server at which each user signs in: a connection for each user who calls, opened by the first call and closed when it
//! was idle for long. Its tools are those that one of the signed-in users is told of, the one who signed in last.

mod connections;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kairo_core::ids::Name;
use tokio::sync::watch;
use tokio::time::{interval, sleep};
use tokio_util::sync::CancellationToken;

pub use self::connections::{ConnectionUse, UserConnections};
use super::super::health::HealthNotes;
use super::super::oauth::UserSignIns;
use super::super::server_handle::{McpServerHandle, McpServerState};
use super::{OnTools, SIGN_IN_POLL, ServerLimits};
use crate::config::McpServerConfig;
use crate::questions::Questions;

/// Between two looks for connections that are idle, at most.
const SWEEP: Duration = Duration::from_secs(30);

/// Looks after a server and its users' connections.
pub struct PerUserServer {
    connections: Arc<UserConnections>,
    sign_ins: Arc<UserSignIns>,
    state: watch::Sender<McpServerState>,
    notes: HealthNotes,
    name: String,
}

impl PerUserServer {
    /// One that has not begun, and the state of the server.
    pub fn new(
        server: McpServerConfig,
        limits: ServerLimits,
        questions: Option<Arc<Questions>>,
        notes: HealthNotes,
        sign_ins: Arc<UserSignIns>,
        on_tools: OnTools,
    ) -> (Self, watch::Receiver<McpServerState>) {
        let (state, observer) = watch::channel(McpServerState::Starting);
        let name = server.name.clone();
        let connections =
            Arc::new(UserConnections::new(server, limits, questions, notes.clone(), sign_ins.clone(), on_tools));
        (Self { connections, sign_ins, state, notes, name }, observer)
    }

    pub async fn run(self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            never = self.keep_listing() => match never {},
            never = self.close_idle_connections() => match never {},
        }
        self.connections.close_all().await;
        self.set_state(McpServerState::Stopped);
    }

    fn set_state(&self, state: McpServerState) {
        self.state.send_replace(state);
        self.notes.announce_change();
    }

    fn mark_down(&self, reason: &str) {
        if matches!(&*self.state.borrow(), McpServerState::Down { reason: before, .. } if **before == *reason) {
            return;
        }
        tracing::warn!(server = %self.name, reason, "MCP server is down");
        self.notes.record_failure(reason);
        self.set_state(McpServerState::Down { reason: reason.into(), attempts: 1 });
    }

    /// Closes connections that are idle, for ever.
    async fn close_idle_connections(&self) -> std::convert::Infallible {
        let mut ticks = interval(self.connections.idle_time().div_f64(2.0).min(SWEEP));
        loop {
            ticks.tick().await;
            self.connections.close_idle();
        }
    }

    /// Has one of the signed-in users list the tools, for ever.
    async fn keep_listing(&self) -> std::convert::Infallible {
        // Those who must sign in again, as of the last sign-in.
        let mut failed = BTreeSet::new();
        let mut latest = None;
        let mut reason = None;
        loop {
            let newest = self.sign_ins.latest_sign_in().await.ok().flatten();
            if newest != latest {
                failed.clear();
                (latest, reason) = (newest, None);
            }
            match self.choose_lister(&failed).await {
                Ok(Some(user)) => {
                    if let ListingEnd::Failed(why) = self.list_as(&user).await {
                        failed.insert(user);
                        reason = Some(why);
                    }
                    continue;
                }
                Ok(None) => {
                    self.connections.set_lister(None);
                    let nobody = || format!("nobody has signed in; run kairo mcp login {} --user NAME", self.name);
                    self.mark_down(&reason.clone().unwrap_or_else(nobody));
                }
                Err(reason) => self.mark_down(&reason),
            }
            self.wait_for_sign_in_change().await;
        }
    }

    /// Waits until it may have changed who is signed in.
    async fn wait_for_sign_in_change(&self) {
        tokio::select! {
            () = sleep(SIGN_IN_POLL) => {}
            () = self.sign_ins.wait_for_change() => {}
        }
    }

    /// The user who signed in last and is good for it, or else the one before.
    async fn choose_lister(&self, failed: &BTreeSet<Name>) -> Result<Option<Name>, String> {
        let latest = self.sign_ins.latest_sign_in().await.map_err(|error| error.to_string())?;
        let latest = latest.and_then(|latest| Name::parse(&latest.user).ok());
        if let Some(user) = latest.filter(|user| !failed.contains(user))
            && self.sign_ins.for_user(&user).is_granted().await.map_err(|error| error.to_string())?
        {
            return Ok(Some(user));
        }
        let signed_in = self.sign_ins.list_signed_in().await.map_err(|error| error.to_string())?;
        Ok(signed_in.into_iter().map(|signed_in| signed_in.user).find(|user| !failed.contains(user)))
    }

    /// Shows the state of this user's connection as that of the server, until somebody else signs in or this user's sign-in is
    /// good for nothing any more.
    async fn list_as(&self, user: &Name) -> ListingEnd {
        let sign_in = self.sign_ins.for_user(user);
        let began = self.sign_ins.latest_sign_in().await.ok();
        self.connections.set_lister(Some(user.clone()));
        // In use as long as its user lists: so the server can say that its tools changed.
        let Ok((McpServerHandle { mut state, suspected, .. }, _in_use)) =
            self.connections.open_for_user(user, &sign_in)
        else {
            // All are in use by calls.
            self.wait_for_sign_in_change().await;
            return ListingEnd::Changed;
        };
        // A connection that was open before has told its tools to nobody.
        suspected.notify_one();
        loop {
            let shown = state.borrow_and_update().clone();
            match &shown {
                McpServerState::Down { reason, .. } if sign_in.is_needed() => {
                    return ListingEnd::Failed(reason.to_string());
                }
                McpServerState::Stopped => return ListingEnd::Changed,
                McpServerState::Starting => {}
                McpServerState::Up(_) | McpServerState::Down { .. } => self.set_state(shown),
            }
            tokio::select! {
                changed = state.changed() => if changed.is_err() { return ListingEnd::Changed },
                () = self.wait_for_sign_in_change() => {
                    let is_granted = sign_in.is_granted().await.unwrap_or(true);
                    if !is_granted || self.sign_ins.latest_sign_in().await.ok() != began {
                        return ListingEnd::Changed;
                    }
                }
            }
        }
    }
}

/// The reason a user's connection no longer lists the tools.
#[derive(Debug, PartialEq, Eq)]
enum ListingEnd {
    /// Somebody signed in or out.
    Changed,
    /// The user must sign in again, and why.
    Failed(String),
}
