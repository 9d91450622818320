//! `Events.Stream`: what a client watches, as `GET /v1/events/stream` shows it.

use std::{net::SocketAddr, time::Duration};

use axum::{extract::ConnectInfo, http::Method};
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use kairo_proto::v1::{self, KeepAlive, Live, StreamRequest, StreamResponse, stream_response};
use serde_json::Value;
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;
use tonic::{Response, Status};

use super::{
    endpoints::{Endpoints, translated},
    generated::events_server::Events,
    status::status,
};
use crate::{
    auth::Caller,
    http::{Gateway, access, endpoints::STREAM, stream as http},
    problem::Problem,
    watch::{Shown, Wish},
};

const STOPPING: &str = "the gateway is stopping; ask again after the last place that was seen";

const CROWDED: &str = "others are owed one of gateway.max_streams who have fewer";

type Told = Result<StreamResponse, Status>;

#[tonic::async_trait]
impl Events for Endpoints {
    type StreamStream = BoxStream<'static, Told>;

    async fn stream(&self, request: tonic::Request<StreamRequest>) -> Result<Response<Self::StreamStream>, Status> {
        let shown = match begun(&self.gateway, request).await {
            Ok((caller, wish)) => http::open(&self.gateway, caller, wish, message).await,
            Err(problem) => Err(problem),
        };
        shown
            .map(|(shown, revoked)| Response::new(told(&self.gateway, shown, revoked)))
            .map_err(|problem| status(&problem))
    }
}

/// Authenticates the caller and reads the streams they ask for.
async fn begun(gateway: &Gateway, request: tonic::Request<StreamRequest>) -> Result<(Caller, Wish), Problem> {
    let request = translated(Method::GET, STREAM, request)?;
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)), |peer| peer.0);
    let brought = access::brought(gateway, request.headers(), Some(STREAM)).await;
    let caller = access::admitted(gateway, peer, Some(STREAM), &request, brought)?;
    Ok((caller, http::read(request.uri().query(), None)?))
}

/// Builds the response stream: the events shown, a keep-alive after each silent heartbeat interval, and the reason for
/// its end as the last item.
fn told(gateway: &Gateway, shown: mpsc::Receiver<Told>, revoked: CancellationToken) -> BoxStream<'static, Told> {
    let heartbeat = Duration::from_millis(gateway.config.heartbeat_ms);
    let shutdown = gateway.shutdown.clone();
    let next = move |shown: Option<mpsc::Receiver<Told>>| {
        let (shutdown, revoked) = (shutdown.clone(), revoked.clone());
        async move {
            let mut shown = shown?;
            let told = match timeout(heartbeat, shown.recv()).await {
                Err(_) => Ok(response(stream_response::Shown::KeepAlive(KeepAlive {}))),
                Ok(Some(told)) => told,
                Ok(None) if shutdown.is_cancelled() => Err(status(&Problem::unavailable(STOPPING))),
                Ok(None) if revoked.is_cancelled() => Err(status(&Problem::too_many_at_once(CROWDED))),
                Ok(None) => Err(status(&Problem::unauthorized())),
            };
            let rest = told.is_ok().then_some(shown);
            Some((told, rest))
        }
    };
    stream::unfold(Some(shown), next).boxed()
}

fn response(shown: stream_response::Shown) -> StreamResponse {
    StreamResponse { shown: Some(shown) }
}

fn message(shown: Shown<'_>) -> Told {
    let shown = match shown {
        Shown::Start(place) => stream_response::Shown::Start(place.into()),
        Shown::Event(event) => stream_response::Shown::Event(event.clone().into()),
        Shown::TurnStatus(change) => stream_response::Shown::TurnStatus(change.clone()),
        Shown::Live(name, data) => stream_response::Shown::Live(live(name, &data)),
    };
    Ok(response(shown))
}

fn live(name: &str, data: &Value) -> Live {
    Live { name: name.to_owned(), data: Some(v1::Json { text: data.to_string() }) }
}
