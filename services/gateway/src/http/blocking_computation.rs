//! Long, blocking computations, which run only as long as their client waits.

use kairo_core::ids::Name;
use kairo_proto::v1::LogMessage;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use super::{Gateway, log};
use crate::problem::Problem;

/// Tells a computation whether its client still waits.
pub struct WaitingClient(CancellationToken);

impl WaitingClient {
    /// Yields these until nobody waits any more. The incomplete result is then told to nobody.
    pub fn while_waiting<T>(&self, all: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
        all.into_iter().take_while(|_| !self.0.is_cancelled())
    }
}

/// Computes something of an agent's part of the log up to a place, of which so much is held in memory meanwhile, and for so many clients,
/// as is configured.
pub async fn compute_on_agent_log<T: Send + 'static>(
    gateway: &Gateway,
    agent: &Name,
    to: u64,
    compute: impl FnOnce(&[LogMessage], &WaitingClient) -> T + Send + 'static,
) -> Result<T, Problem> {
    let permit = gateway.replay_permit()?;
    let messages = log::read_agent_log(gateway, agent, to).await?;
    let compute = move |wanted: &WaitingClient| {
        let _held = permit;
        compute(&messages, wanted)
    };
    compute_while_waiting(compute).await
}

/// Computes on a thread of its own; nothing else would go on meanwhile. A request that is no longer waited for is dropped, and with it
/// this.
pub async fn compute_while_waiting<T: Send + 'static>(
    compute: impl FnOnce(&WaitingClient) -> T + Send + 'static,
) -> Result<T, Problem> {
    let gone = CancellationToken::new();
    let wanted = WaitingClient(gone.clone());
    let _leaving = gone.drop_guard();
    spawn_blocking(move || compute(&wanted)).await.map_err(|error| Problem::internal(&error))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::{Router, routing::get};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::{TcpListener, TcpStream},
        sync::mpsc,
    };

    use super::*;
    use crate::{config::GatewayConfig, connections};

    const DEADLINE: Duration = Duration::from_secs(30);

    /// Serves what `compute` comes to, which says when it has begun and when it is over.
    async fn client_of(
        compute: impl Fn(&WaitingClient) -> usize + Clone + Send + Sync + 'static,
    ) -> (TcpStream, mpsc::UnboundedReceiver<&'static str>) {
        let (tell, told) = mpsc::unbounded_channel();
        let answer = move || {
            let compute = compute.clone();
            let tell = tell.clone();
            compute_while_waiting(move |wanted| {
                let _ = tell.send("begun");
                let counted = compute(wanted);
                let _ = tell.send("over");
                counted.to_string()
            })
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = Router::new().route("/", get(answer));
        let serving = async move {
            connections::serve(listener, app, &GatewayConfig::default(), connections::ShutdownSignals::default()).await
        };
        tokio::spawn(serving);
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        (client, told)
    }

    #[tokio::test]
    async fn whoever_leaves_has_nothing_computed_any_more() {
        let (client, mut told) = client_of(|wanted| wanted.while_waiting(std::iter::repeat(())).count()).await;
        assert_eq!(told.recv().await, Some("begun"));
        drop(client);
        let over = tokio::time::timeout(DEADLINE, told.recv()).await;
        assert_eq!(over.expect("it goes on for nobody"), Some("over"));
    }

    #[tokio::test]
    async fn whoever_waits_is_answered_with_all_of_it() {
        let (mut client, _told) = client_of(|wanted| wanted.while_waiting(0..100_000).count()).await;
        let mut answer = String::new();
        tokio::time::timeout(DEADLINE, client.read_to_string(&mut answer)).await.unwrap().unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("100000"), "{answer}");
    }
}
