//! nats-server, or three of them that are a cluster. What strikes a cluster strikes the one that leads the log.

use std::{path::Path, time::Duration};

use async_nats::jetstream;
use futures::future::select_all;
use kairo_core::{permissions::Identity, subjects::EVENTS_STREAM};
use kairo_local::{ClusterMember, LocalError, Login, NatsServer, Tools, Users, free_port};
use tokio::time::{Instant, sleep, timeout};

use super::{Outcome, victim::Victim};
use crate::login;

/// How long it may take until a cluster that has just started answers.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
/// Between two times it is asked.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// The longest that a cluster is asked who leads: it may be without a leader.
const LEADER_WITHIN: Duration = Duration::from_secs(2);

pub struct Servers {
    all: Vec<NatsServer>,
    users: Users,
    /// Asks who leads; none where there is nobody else.
    cluster: Option<jetstream::Context>,
}

impl Servers {
    /// Starts so many in `folder`, and waits until they answer.
    pub async fn start(tools: &Tools, folder: &Path, servers: usize) -> Outcome<Self> {
        let users = Users::in_dir(folder.join("users"))?;
        if servers == 1 {
            let mut options = tools.nats_in(folder.join("nats"))?;
            options.users = Some(users.clone());
            let server = NatsServer::start(options).await?;
            return Ok(Self { all: vec![server], users, cluster: None });
        }
        let ports = (0..servers).map(|_| free_port(None)).collect::<Result<Vec<_>, _>>()?;
        let mut all = Vec::new();
        for (index, port) in ports.iter().enumerate() {
            let name = name(index);
            let mut options = tools.nats_in(folder.join(&name))?;
            options.users = Some(users.clone());
            options.cluster = Some(ClusterMember { name, port: *port, routes: ports.clone() });
            all.push(NatsServer::start(options).await?);
        }
        let urls: Vec<String> = all.iter().map(NatsServer::url).collect();
        let operator = all.first().map(NatsServer::operator).ok_or("no servers")?;
        let client = login::options(&operator).retry_on_initial_connect().connect(urls).await?;
        let mut cluster = jetstream::new(client);
        cluster.set_timeout(LEADER_WITHIN);
        let deadline = Instant::now() + ANSWERS_WITHIN;
        while let Err(error) = cluster.query_account().await {
            if Instant::now() > deadline {
                return Err(error.into());
            }
            sleep(ASK_AGAIN).await;
        }
        Ok(Self { all, users, cluster: Some(cluster) })
    }

    /// All of them, as services are told.
    pub fn url(&self) -> String {
        self.all.iter().map(NatsServer::url).collect::<Vec<_>>().join(",")
    }

    /// All of them, as who may do everything.
    pub fn operator(&self) -> Login {
        let password = self.users.password(Identity::Provision).to_owned();
        Login { url: self.url(), user: Identity::Provision.name().to_owned(), password }
    }

    /// Who may do what.
    pub fn users(&self) -> &Users {
        &self.users
    }

    /// How many copies of streams there can be.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// The one that is struck: that which leads the log, or else the first.
    async fn struck(&self) -> Option<&NatsServer> {
        let leader = match &self.cluster {
            None => None,
            Some(cluster) => timeout(LEADER_WITHIN, leader(cluster)).await.ok().flatten(),
        };
        let index = leader.and_then(|leader| (0..self.all.len()).find(|index| name(*index) == leader));
        self.all.get(index.unwrap_or(0))
    }
}

fn name(index: usize) -> String {
    format!("nats-{index}")
}

async fn leader(cluster: &jetstream::Context) -> Option<String> {
    cluster.get_stream(EVENTS_STREAM).await.ok()?.cached_info().cluster.as_ref()?.leader.clone()
}

impl Victim for Servers {
    fn kind(&self) -> &'static str {
        "nats-server"
    }

    fn name(&self) -> String {
        self.kind().to_owned()
    }

    async fn kill9(&self) -> Result<(), LocalError> {
        match self.struck().await {
            Some(server) => server.kill9().await.map(drop),
            None => Ok(()),
        }
    }

    async fn freeze(&self) {
        if let Some(server) = self.struck().await {
            server.process().freeze();
        }
    }

    fn thaw(&self) {
        self.all.iter().for_each(|server| server.process().thaw());
    }

    /// Starts those that have ended.
    async fn restart(&mut self) -> Result<(), LocalError> {
        for server in &mut self.all {
            if server.process().exit().is_some() {
                server.restart().await?;
            }
        }
        Ok(())
    }

    async fn ended(&self) -> String {
        select_all(self.all.iter().map(|server| Box::pin(server.process().exited()))).await.0.to_string()
    }
}
