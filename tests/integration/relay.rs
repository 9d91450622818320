//! A relay before a server, which holds back what the server says from the moment on at which a client says something.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::JoinHandle,
};

/// Bytes that are passed on at once.
const PIECE: usize = 64 * 1024;

/// The state of a relay towards the server's answers: not yet holding, holding them back, or released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holding {
    NotYet,
    Holds,
    Released,
}

/// It ends when this is dropped.
pub struct Relay {
    port: u16,
    holding: watch::Sender<Holding>,
    relaying: JoinHandle<()>,
}

impl Relay {
    /// To the server of this URL. Behind what is said, nothing of what the server answers comes through.
    pub async fn holding_behind(url: &str, said: &'static str) -> Self {
        let to: u16 = url.rsplit(':').next().unwrap().parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (holding, _) = watch::channel(Holding::NotYet);
        let of_all = holding.clone();
        let relaying = tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let server = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
                drop((client.set_nodelay(true), server.set_nodelay(true)));
                let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
                tokio::spawn(asking(from_client, to_server, said.as_bytes(), of_all.clone()));
                tokio::spawn(answering(from_server, to_client, of_all.subscribe()));
            }
        });
        Self { port, holding, relaying }
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Waits until it holds something back.
    pub async fn holds(&self) {
        self.holding.subscribe().wait_for(|holding| *holding == Holding::Holds).await.unwrap();
    }

    /// Passes on what it holds, and all that comes.
    pub fn release(&self) {
        self.holding.send_replace(Holding::Released);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.relaying.abort();
    }
}

async fn asking(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, said: &[u8], holding: watch::Sender<Holding>) {
    // What was said may come in pieces.
    let (mut piece, mut end) = (vec![0; PIECE], Vec::new());
    while let Ok(count @ 1..) = from.read(&mut piece).await {
        end.extend_from_slice(&piece[..count]);
        if end.windows(said.len()).any(|window| window == said) {
            // Before the server can answer.
            holding.send_if_modified(|holding| {
                let is_first = *holding == Holding::NotYet;
                if is_first {
                    *holding = Holding::Holds;
                }
                is_first
            });
            end.clear();
        }
        end.drain(..end.len().saturating_sub(said.len() - 1));
        if to.write_all(&piece[..count]).await.is_err() {
            return;
        }
    }
}

async fn answering(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut holding: watch::Receiver<Holding>) {
    let mut piece = vec![0; PIECE];
    while let Ok(count @ 1..) = from.read(&mut piece).await {
        let is_released = holding.wait_for(|holding| *holding != Holding::Holds).await.is_ok();
        if !is_released || to.write_all(&piece[..count]).await.is_err() {
            return;
        }
    }
}
