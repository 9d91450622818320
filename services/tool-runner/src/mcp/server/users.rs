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

pub use self::connections::{Connections, InUse};
use super::super::handle::{Handle, State};
use super::super::health::Notes;
use super::super::oauth::UserSignIns;
use super::{Limits, OnTools, SIGN_IN_POLL};
use crate::config::McpServerConfig;
use crate::questions::Questions;

/// Between two looks for connections that are idle, at most.
const SWEEP: Duration = Duration::from_secs(30);

/// Looks after a server and its users' connections.
pub struct Users {
    connections: Arc<Connections>,
    sign_ins: Arc<UserSignIns>,
    state: watch::Sender<State>,
    notes: Notes,
    name: String,
}

impl Users {
    /// One that has not begun, and the state of the server.
    pub fn new(
        server: McpServerConfig,
        limits: Limits,
        questions: Option<Arc<Questions>>,
        notes: Notes,
        sign_ins: Arc<UserSignIns>,
        on_tools: OnTools,
    ) -> (Self, watch::Receiver<State>) {
        let (state, observer) = watch::channel(State::Starting);
        let name = server.name.clone();
        let connections =
            Arc::new(Connections::new(server, limits, questions, notes.clone(), sign_ins.clone(), on_tools));
        (Self { connections, sign_ins, state, notes, name }, observer)
    }

    pub async fn run(self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            never = self.look_after() => match never {},
            never = self.sweep() => match never {},
        }
        self.connections.close().await;
        self.enter(State::Stopped);
    }

    fn enter(&self, state: State) {
        self.state.send_replace(state);
        self.notes.announce();
    }

    fn go_down(&self, reason: &str) {
        if matches!(&*self.state.borrow(), State::Down { reason: before, .. } if **before == *reason) {
            return;
        }
        tracing::warn!(server = %self.name, reason, "MCP server is down");
        self.notes.fail(reason);
        self.enter(State::Down { reason: reason.into(), attempts: 1 });
    }

    /// Closes connections that are idle, for ever.
    async fn sweep(&self) -> std::convert::Infallible {
        let mut ticks = interval(self.connections.idle().div_f64(2.0).min(SWEEP));
        loop {
            ticks.tick().await;
            self.connections.close_idle();
        }
    }

    /// Has one of the signed-in users list the tools, for ever.
    async fn look_after(&self) -> std::convert::Infallible {
        // Those who must sign in again, as of the last sign-in.
        let (mut failed, mut latest, mut reason) = (BTreeSet::new(), None, None);
        loop {
            let newest = self.sign_ins.latest().await.ok().flatten();
            if newest != latest {
                failed.clear();
                (latest, reason) = (newest, None);
            }
            match self.lister(&failed).await {
                Ok(Some(user)) => {
                    if let Over::Failed(why) = self.list_as(&user).await {
                        failed.insert(user);
                        reason = Some(why);
                    }
                    continue;
                }
                Ok(None) => {
                    self.connections.set_lister(None);
                    let nobody = || format!("nobody has signed in; run kairo mcp login {} --user NAME", self.name);
                    self.go_down(&reason.clone().unwrap_or_else(nobody));
                }
                Err(reason) => self.go_down(&reason),
            }
            self.pause().await;
        }
    }

    /// Waits until it may have changed who is signed in.
    async fn pause(&self) {
        tokio::select! {
            () = sleep(SIGN_IN_POLL) => {}
            () = self.sign_ins.changed() => {}
        }
    }

    /// The user who signed in last and is good for it, or else the one before.
    async fn lister(&self, failed: &BTreeSet<Name>) -> Result<Option<Name>, String> {
        let latest = self.sign_ins.latest().await.map_err(|error| error.to_string())?;
        let latest = latest.and_then(|latest| Name::parse(&latest.user).ok());
        if let Some(user) = latest.filter(|user| !failed.contains(user))
            && self.sign_ins.of(&user).is_granted().await.map_err(|error| error.to_string())?
        {
            return Ok(Some(user));
        }
        let signed_in = self.sign_ins.list().await.map_err(|error| error.to_string())?;
        Ok(signed_in.into_iter().map(|signed_in| signed_in.user).find(|user| !failed.contains(user)))
    }

    /// Shows the state of this user's connection as that of the server, until somebody else signs in or this user's sign-in is
    /// good for nothing any more.
    async fn list_as(&self, user: &Name) -> Over {
        let sign_in = self.sign_ins.of(user);
        let began = self.sign_ins.latest().await.ok();
        self.connections.set_lister(Some(user.clone()));
        // In use as long as its user lists: so the server can say that its tools changed.
        let Ok((Handle { mut state, suspected, .. }, _in_use)) = self.connections.open(user, &sign_in) else {
            // All are in use by calls.
            self.pause().await;
            return Over::Changed;
        };
        // A connection that was open before has told its tools to nobody.
        suspected.notify_one();
        loop {
            let shown = state.borrow_and_update().clone();
            match &shown {
                State::Down { reason, .. } if sign_in.is_needed() => return Over::Failed(reason.to_string()),
                State::Stopped => return Over::Changed,
                State::Starting => {}
                State::Up(_) | State::Down { .. } => self.enter(shown),
            }
            tokio::select! {
                changed = state.changed() => if changed.is_err() { return Over::Changed },
                () = self.pause() => {
                    let is_granted = sign_in.is_granted().await.unwrap_or(true);
                    if !is_granted || self.sign_ins.latest().await.ok() != began {
                        return Over::Changed;
                    }
                }
            }
        }
    }
}

/// The reason a user's connection no longer lists the tools.
#[derive(Debug, PartialEq, Eq)]
enum Over {
    /// Somebody signed in or out.
    Changed,
    /// The user must sign in again, and why.
    Failed(String),
}
