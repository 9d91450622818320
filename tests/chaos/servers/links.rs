//! The links between servers of a cluster, which can be cut: each server reaches those behind it through a relay each, and is
//! reached through one by those before it. Were both to reach out, they would close each other's links as doubles.

use std::io;

use kairo_local::free_port;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};

use super::Outcome;

/// The relays between all of them.
pub struct Links {
    relays: Vec<Relay>,
}

/// From one server to another.
struct Relay {
    from: usize,
    to: usize,
    port: u16,
    cut: watch::Sender<bool>,
}

impl Links {
    /// Between servers that listen for each other on these ports.
    pub async fn between(ports: &[u16]) -> Outcome<Self> {
        let mut relays = Vec::new();
        for (to, to_port) in ports.iter().enumerate() {
            for from in 0..to {
                let port = free_port(None)?;
                let listener = TcpListener::bind(("127.0.0.1", port)).await?;
                let (cut, is_cut) = watch::channel(false);
                tokio::spawn(relay(listener, *to_port, is_cut));
                relays.push(Relay { from, to, port, cut });
            }
        }
        Ok(Self { relays })
    }

    /// Returns the ports at which a server reaches the others.
    pub fn routes_of(&self, server: usize) -> Vec<u16> {
        self.relays.iter().filter(|relay| relay.from == server).map(|relay| relay.port).collect()
    }

    /// Cuts a server off from all others, or connects it again.
    pub fn cut(&self, server: usize, is_cut: bool) {
        let of_it = self.relays.iter().filter(|relay| relay.from == server || relay.to == server);
        of_it.for_each(|relay| _ = relay.cut.send_replace(is_cut));
    }
}

/// Passes on what comes, each connection by itself, until the links are gone. While it is cut, connections end as they begin.
async fn relay(listener: TcpListener, to: u16, mut is_cut: watch::Receiver<bool>) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            gone = gone(&mut is_cut) => return gone,
        };
        let Ok((from, _)) = accepted else { continue };
        if !*is_cut.borrow() {
            tokio::spawn(connection(from, to, is_cut.clone()));
        }
    }
}

async fn gone(is_cut: &mut watch::Receiver<bool>) {
    while is_cut.changed().await.is_ok() {}
}

async fn connection(mut from: TcpStream, to: u16, mut is_cut: watch::Receiver<bool>) {
    let passed_on = async {
        let mut to = TcpStream::connect(("127.0.0.1", to)).await?;
        drop((from.set_nodelay(true), to.set_nodelay(true)));
        copy_bidirectional(&mut from, &mut to).await
    };
    // How it ends is the servers' affair.
    let _: io::Result<_> = tokio::select! {
        passed_on = passed_on => passed_on,
        _ = is_cut.wait_for(|is_cut| *is_cut) => Ok((0, 0)),
    };
}
