//! The connections of a server's users.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kairo_core::ids::Name;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::super::super::health::HealthNotes;
use super::super::super::oauth::{SignIn, UserSignIns};
use super::super::super::server_handle::McpServerHandle;
use super::super::tool_offering::ToolDestination;
use super::super::{ConnectionKeeper, KeeperParts, OnTools, ServerLimits};
use crate::catalogue::Rejection;
use crate::config::McpServerConfig;
use crate::questions::Questions;
use crate::tool::{CallContext, Tool, ToolError};

/// One connection for each user who calls, as many as are configured.
pub struct UserConnections {
    server: McpServerConfig,
    limits: ServerLimits,
    questions: Option<Arc<Questions>>,
    notes: HealthNotes,
    sign_ins: Arc<UserSignIns>,
    on_tools: OnTools,
    open: Mutex<OpenConnections>,
    most: usize,
    idle: Duration,
    tasks: TaskTracker,
    stop: CancellationToken,
}

#[derive(Default)]
struct OpenConnections {
    of_users: BTreeMap<Name, UserConnection>,
    /// The user whose connection tells the tools.
    lister: Option<Name>,
}

struct UserConnection {
    handle: McpServerHandle,
    stop: CancellationToken,
    usage: Arc<LastUse>,
}

struct LastUse(Mutex<Instant>);

impl LastUse {
    fn lock_time(&self) -> MutexGuard<'_, Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says that a connection is in use, until it is dropped.
pub struct ConnectionUse(Arc<LastUse>);

impl Drop for ConnectionUse {
    fn drop(&mut self) {
        *self.0.lock_time() = Instant::now();
    }
}

impl UserConnection {
    fn begin_use(&self) -> (McpServerHandle, ConnectionUse) {
        (self.handle.clone(), ConnectionUse(self.usage.clone()))
    }

    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.usage) > 1
    }
}

impl UserConnections {
    pub fn new(
        server: McpServerConfig,
        limits: ServerLimits,
        questions: Option<Arc<Questions>>,
        notes: HealthNotes,
        sign_ins: Arc<UserSignIns>,
        on_tools: OnTools,
    ) -> Self {
        let oauth = server.oauth.clone().unwrap_or_default();
        let most = oauth.connections;
        let idle = Duration::from_millis(oauth.idle_ms);
        let open = Mutex::default();
        let tasks = TaskTracker::new();
        let stop = CancellationToken::new();
        Self { server, limits, questions, notes, sign_ins, on_tools, open, most, idle, tasks, stop }
    }

    /// Returns the time a connection stays open without calls.
    pub fn idle_time(&self) -> Duration {
        self.idle
    }

    /// Returns the connection of the user of a call.
    ///
    /// # Errors
    /// `failed` when the call is nobody's, its user has not signed in, or all connections are in use. Nothing was sent.
    pub async fn open_for_call(
        self: &Arc<Self>,
        ctx: &CallContext,
    ) -> Result<(McpServerHandle, ConnectionUse), ToolError> {
        let name = &self.server.name;
        let user = ctx.user.as_deref().and_then(|user| Name::parse(user).ok()).ok_or_else(|| {
            ToolError::failed(format!(
                "each user acts for themselves at the MCP server {name}, and this call is on nobody's behalf; nothing was sent"
            ))
        })?;
        let sign_in = self.sign_ins.for_user(&user);
        let is_granted = sign_in.is_granted().await.map_err(|error| {
            ToolError::failed(format!(
                "it could not be read whether {user} is signed in at the MCP server {name}: {error}"
            ))
        })?;
        if !is_granted {
            return Err(ToolError::failed(format!(
                "{user} is not signed in at the MCP server {name}; nothing was sent. Tell {user} to run: kairo mcp login {name} --user {user}"
            )));
        }
        self.open_for_user(&user, &sign_in)
    }

    /// The connection of a user, which is opened if there is none.
    ///
    /// # Errors
    /// `failed` when all connections are in use, or no more are opened.
    pub fn open_for_user(
        self: &Arc<Self>,
        user: &Name,
        sign_in: &Arc<SignIn>,
    ) -> Result<(McpServerHandle, ConnectionUse), ToolError> {
        let name = &self.server.name;
        let mut open = self.lock();
        if self.stop.is_cancelled() {
            return Err(ToolError::failed(format!("the MCP server {name} is not running: it was stopped")));
        }
        if let Some(entry) = open.of_users.get(user) {
            return Ok(entry.begin_use());
        }
        if open.of_users.len() >= self.most {
            let free = open.of_users.iter().filter(|(_, entry)| !entry.is_in_use());
            let oldest = free.min_by_key(|(_, entry)| *entry.usage.lock_time()).map(|(user, _)| user.clone());
            let oldest = oldest.ok_or_else(|| {
                let most = self.most;
                ToolError::failed(format!(
                    "all {most} connections to the MCP server {name} are in use; nothing was sent, try again later"
                ))
            })?;
            stop_connection(open.of_users.remove(&oldest));
        }
        let entry = self.start_keeper(user, sign_in);
        let begun = entry.begin_use();
        open.of_users.insert(user.clone(), entry);
        Ok(begun)
    }

    fn start_keeper(self: &Arc<Self>, user: &Name, sign_in: &Arc<SignIn>) -> UserConnection {
        let stop = self.stop.child_token();
        let (keeper, handle) = ConnectionKeeper::new(KeeperParts {
            server: self.server.clone(),
            limits: self.limits,
            sign_in: Some(sign_in.clone()),
            questions: self.questions.clone(),
            notes: self.notes.clone(),
            stop: stop.clone(),
            offering: ToolDestination::User(Arc::downgrade(self), user.clone()),
        });
        self.tasks.spawn(keeper.run());
        UserConnection { handle, stop, usage: Arc::new(LastUse(Mutex::new(Instant::now()))) }
    }

    /// Has the connection of this user tell the tools.
    pub fn set_lister(&self, user: Option<Name>) {
        self.lock().lister = user;
    }

    pub fn is_lister(&self, user: &Name) -> bool {
        self.lock().lister.as_ref() == Some(user)
    }

    /// Offers the tools of the server.
    pub fn offer_tools(&self, tools: Vec<Arc<dyn Tool>>) -> Vec<Rejection> {
        (self.on_tools)(tools)
    }

    /// Closes connections without calls.
    pub fn close_idle(&self) {
        let mut open = self.lock();
        let is_idle = |entry: &UserConnection| !entry.is_in_use() && entry.usage.lock_time().elapsed() >= self.idle;
        let idle: Vec<_> =
            open.of_users.iter().filter(|(_, entry)| is_idle(entry)).map(|(user, _)| user.clone()).collect();
        for user in idle {
            stop_connection(open.of_users.remove(&user));
        }
    }

    /// Closes all, and waits until they are closed.
    pub async fn close_all(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.lock().of_users.clear();
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stop_connection(entry: Option<UserConnection>) {
    if let Some(entry) = entry {
        entry.stop.cancel();
    }
}
