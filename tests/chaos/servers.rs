//! nats-server, or three of them that are a cluster. What strikes a cluster strikes the one that leads the log, or the one that
//! it names.

mod disk;
mod links;

use std::{path::Path, time::Duration};

use async_nats::jetstream;
use futures::future::select_all;
use kairo_core::{ids::Name, permissions::NatsIdentity};
use kairo_local::{ClusterMember, LocalError, Login, NatsServer, NatsUsers, Stack, TlsFiles, Tools, free_port};
use tokio::time::{sleep, timeout};

use self::{disk::Disk, links::Links};
use super::{
    Outcome,
    peers::Peer,
    plan::{Blow, Course, Settings},
    victim::Victim,
};
use crate::{
    certificates::Authority,
    cluster::{self, caught_up, leader, name},
    login,
};

/// The longest time until a newly started cluster answers.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
/// The longest time until a server has caught up with the others: one that was cut off asks again and again.
const CAUGHT_UP_WITHIN: Duration = Duration::from_secs(120);
/// The longest that a cluster is asked who leads: it may be without a leader.
const LEADER_WITHIN: Duration = Duration::from_secs(2);
/// The longest that a lame duck takes until it ends: the least that the server can be given, and time to close its files.
const ENDS_WITHIN: Duration = Duration::from_secs(60);

pub struct Servers {
    all: Vec<NatsServer>,
    users: NatsUsers,
    /// The TLS files with which the servers of a cluster prove their identity to clients and to each other.
    tls: Option<TlsFiles>,
    /// Asks who leads; none where there is nobody else.
    cluster: Option<jetstream::Context>,
    /// Between them, where they can be cut.
    links: Option<Links>,
    /// Of each, where they can be filled.
    disks: Vec<Disk>,
}

impl Servers {
    /// The name under which the journal counts them.
    pub const KIND: &str = "nats-server";

    /// Starts so many in `folder`, and waits until they answer.
    pub async fn start(tools: &Tools, folder: &Path, settings: &Settings) -> Outcome<Self> {
        let mut users = NatsUsers::in_dir(folder.join("users"))?;
        users.add_worker(&Name::parse(Peer::Clerk.name())?)?;
        let is_trial = !matches!(settings.course, Course::Chaos | Course::Walk | Course::SideBySide);
        if settings.servers == 1 {
            let mut options = tools.nats_in(folder.join("nats"))?;
            options.users = Some(users.clone());
            let server = NatsServer::start(options).await?;
            return Ok(Self { all: vec![server], users, tls: None, cluster: None, links: None, disks: Vec::new() });
        }
        let tls = Authority::create(folder.join("authority.pem"))?.server(folder)?;
        let ports = (0..settings.servers).map(|_| free_port(None)).collect::<Result<Vec<_>, _>>()?;
        let links = if settings.course == Course::Partition { Some(Links::between(&ports).await?) } else { None };
        let (mut all, mut disks) = (Vec::new(), Vec::new());
        for (index, port) in ports.iter().enumerate() {
            let name = name(index);
            let mut options = tools.nats_in(folder.join(&name))?;
            if settings.course == Course::DiskFull {
                disks.push(Disk::mount(&options.data_dir.join("jetstream"))?);
            }
            options.users = Some(users.clone());
            options.tls = Some(tls.clone());
            // As in earnest.
            options.sync_always = is_trial;
            options.monitor = true;
            // One that names nobody is none of a cluster.
            let routes =
                links.as_ref().map_or_else(|| ports.clone(), |links| [links.routes_of(index), vec![*port]].concat());
            options.cluster = Some(ClusterMember { name, port: *port, routes, is_relayed: links.is_some() });
            all.push(NatsServer::start(options).await?);
        }
        let mut this = Self { all, users, tls: Some(tls), cluster: None, links, disks };
        let mut cluster = jetstream::new(this.client().await?);
        cluster.set_timeout(LEADER_WITHIN);
        cluster::found_each_other(&cluster, ANSWERS_WITHIN).await?;
        this.cluster = Some(cluster);
        Ok(this)
    }

    /// All of them, as services are told.
    pub fn url(&self) -> String {
        self.all.iter().map(NatsServer::url).collect::<Vec<_>>().join(",")
    }

    /// All of them, as who may do everything.
    pub fn operator(&self) -> Login {
        let (user, password) =
            (NatsIdentity::Provision.name().to_owned(), self.users.password(NatsIdentity::Provision).to_owned());
        Login { url: self.url(), user, password, tls_ca: self.authority().map(Path::to_owned) }
    }

    /// All of them, as the tool worker of the load.
    pub fn worker(&self) -> Outcome<Login> {
        let (user, password) =
            self.users.worker_login(&Name::parse(Peer::Clerk.name())?).ok_or("no user for the worker")?;
        Ok(Login { user, password: password.to_owned(), ..self.operator() })
    }

    /// A client that may do everything.
    pub async fn client(&self) -> Outcome<async_nats::Client> {
        let urls: Vec<String> = self.all.iter().map(NatsServer::url).collect();
        Ok(login::options(&self.operator()).retry_on_initial_connect().connect(urls).await?)
    }

    /// Has services of this stack go to them as who they are.
    pub fn are_for(&self, stack: &mut Stack) {
        stack.use_nats(&self.url(), &self.users);
        if let Some(authority) = self.authority() {
            stack.trust(authority);
        }
    }

    /// Returns the path of the authority that vouches for the servers' certificates, if they use TLS.
    fn authority(&self) -> Option<&Path> {
        self.tls.as_ref().map(|files| files.authority.as_path())
    }

    /// Returns the number of servers, which is the most copies a stream can have.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// The one that is struck: that which leads the log, or else the first.
    async fn struck(&self) -> Option<&NatsServer> {
        let leader = match &self.cluster {
            None => None,
            Some(cluster) => timeout(LEADER_WITHIN, leader(cluster, self.len())).await.ok().flatten(),
        };
        self.all.get(leader.unwrap_or(0))
    }
}

impl Victim for Servers {
    fn kind(&self) -> &'static str {
        Self::KIND
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

    async fn suffer(&mut self, blow: Blow) -> Outcome<()> {
        match blow {
            Blow::LameDuck { server } => {
                let server = self.all.get_mut(server).ok_or("no such server")?;
                server.leave(ENDS_WITHIN).await?;
                server.restart().await?;
                caught_up(server, CAUGHT_UP_WITHIN).await?;
            }
            Blow::CutOff { server, lasts } => {
                let links = self.links.as_ref().ok_or("their links cannot be cut")?;
                links.cut(server, true);
                sleep(lasts).await;
                links.cut(server, false);
                caught_up(self.all.get(server).ok_or("no such server")?, CAUGHT_UP_WITHIN).await?;
            }
            Blow::FillDisk { server, lasts } => {
                let disk = self.disks.get(server).ok_or("its disk cannot be filled")?;
                disk.fill()?;
                sleep(lasts).await;
                disk.free()?;
                // It has given up its store, and takes it up again when it is started.
                let server = self.all.get_mut(server).ok_or("no such server")?;
                server.restart().await?;
                caught_up(server, CAUGHT_UP_WITHIN).await?;
            }
            _ => {}
        }
        Ok(())
    }

    async fn ended(&self) -> String {
        select_all(self.all.iter().map(|server| Box::pin(server.process().wait_for_exit()))).await.0.to_string()
    }
}
