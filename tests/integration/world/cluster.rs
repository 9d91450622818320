//! Servers beside the first, which keep its log together with it.

use std::path::Path;

use async_nats::jetstream;
use futures::future::join_all;
use kairo_core::subjects::EVENTS_STREAM;
use kairo_local::{ClusterMember, Login, NatsOptions, NatsServer, NatsUsers, Tools, free_port};
use kairo_tests::{
    cluster::{self, name},
    login,
};
use serde_json::Value;

use super::{DEADLINE, World};

/// Makes the first server a member of a cluster and starts the others, which are returned.
pub async fn start(tools: &Tools, folder: &Path, first: &mut NatsOptions, others: usize) -> Vec<NatsServer> {
    if others == 0 {
        return Vec::new();
    }
    let users = NatsUsers::in_dir(folder.join("users")).unwrap();
    let ports: Vec<u16> = (0..=others).map(|_| free_port(None).unwrap()).collect();
    let member = |index: usize| {
        let (port, routes) = (ports[index], ports.clone());
        Some(ClusterMember { name: name(index), port, routes, is_relayed: false })
    };
    (first.users, first.cluster) = (Some(users.clone()), member(0));
    let started = (1..=others).map(|index| {
        let mut options = tools.nats_in(folder.join(name(index))).unwrap();
        (options.users, options.cluster, options.monitor) = (Some(users.clone()), member(index), first.monitor);
        NatsServer::start(options)
    });
    join_all(started).await.into_iter().collect::<Result<_, _>>().unwrap()
}

/// Waits until those of a cluster have found each other.
pub async fn found_each_other(login: &Login) {
    let urls: Vec<&str> = login.url.split(',').collect();
    let client = login::options(login).retry_on_initial_connect().connect(urls).await.unwrap();
    cluster::found_each_other(&jetstream::new(client), DEADLINE).await.expect("they never found each other");
}

impl World {
    /// Kills the server that leads the log, which is another one's from then on; which it was.
    pub async fn kill_leader(&self) -> usize {
        let index = self.leader().await;
        self.server(index).kill9().await.unwrap();
        let moved = async { while self.leader().await == index {} };
        tokio::time::timeout(DEADLINE, moved).await.expect("nobody else leads the log");
        index
    }

    /// Kills a server that does not lead the log; which it was.
    pub async fn kill_follower(&self) -> usize {
        let leader = self.leader().await;
        let index = (0..=self.others.len()).find(|index| *index != leader).unwrap();
        self.server(index).kill9().await.unwrap();
        index
    }

    /// Starts a server again that was killed, and waits until it has what the others have.
    pub async fn restart_server(&mut self, index: usize) {
        let server = if index == 0 { &mut self.nats } else { &mut self.others[index - 1] };
        server.restart().await.unwrap();
        cluster::caught_up(server, DEADLINE).await.unwrap();
    }

    /// Has a server that was killed copy from the others all that it had.
    pub async fn empty_server(&self, index: usize) {
        let name = if index == 0 { "nats".to_owned() } else { name(index) };
        tokio::fs::remove_dir_all(self.folder.path().join(name).join("jetstream")).await.unwrap();
    }

    /// Returns the first and last position of the log in each server's own copy.
    pub async fn copies(&self) -> Vec<(u64, u64)> {
        join_all((0..=self.others.len()).map(|index| self.copy(index))).await
    }

    async fn copy(&self, index: usize) -> (u64, u64) {
        let url = format!("{}/jsz?streams=true", self.server(index).monitor_url().unwrap());
        let told: Value = self.http.get(url).send().await.unwrap().json().await.unwrap();
        let streams = told["account_details"].as_array().into_iter().flatten();
        let mut streams = streams.flat_map(|account| account["stream_detail"].as_array().unwrap());
        let log = streams.find(|stream| stream["name"] == EVENTS_STREAM).map(|log| &log["state"]);
        log.map_or((0, 0), |log| (log["first_seq"].as_u64().unwrap(), log["last_seq"].as_u64().unwrap()))
    }

    fn server(&self, index: usize) -> &NatsServer {
        if index == 0 { &self.nats } else { &self.others[index - 1] }
    }

    async fn leader(&self) -> usize {
        let jetstream = &self.bus.nats().unwrap().jetstream;
        let leader = async {
            loop {
                if let Some(leader) = cluster::leader(jetstream, 1 + self.others.len()).await {
                    return leader;
                }
            }
        };
        tokio::time::timeout(DEADLINE, leader).await.expect("nobody leads the log")
    }
}
