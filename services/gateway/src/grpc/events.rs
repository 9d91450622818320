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
    endpoints::{Endpoint, Endpoints, translate_request},
    generated::events_server::Events,
    status::to_status,
};
use crate::{
    auth::Caller,
    http::{Gateway, access, endpoints::STREAM, stream as http},
    problem::Problem,
    watch::{WatchItem, WatchRequest},
};

const STOPPING: &str = "the gateway is stopping; ask again after the last place that was seen";

const CROWDED: &str = "others are owed one of gateway.max_streams who have fewer";

type StreamItem = Result<StreamResponse, Status>;

#[tonic::async_trait]
impl Events for Endpoints {
    type StreamStream = BoxStream<'static, StreamItem>;

    async fn stream(&self, request: tonic::Request<StreamRequest>) -> Result<Response<Self::StreamStream>, Status> {
        let shown = match read_stream_request(&self.gateway, request).await {
            Ok((caller, wish)) => http::open_stream(&self.gateway, caller, wish, encode_item).await,
            Err(problem) => Err(problem),
        };
        shown
            .map(|(shown, revoked)| Response::new(build_response_stream(&self.gateway, shown, revoked)))
            .map_err(|problem| to_status(&problem))
    }
}

/// Authenticates the caller and reads the streams they ask for.
async fn read_stream_request(
    gateway: &Gateway,
    request: tonic::Request<StreamRequest>,
) -> Result<(Caller, WatchRequest), Problem> {
    let request = translate_request(Endpoint { method: Method::GET, route: STREAM, body: None }, request)?;
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)), |peer| peer.0);
    let brought = access::identify_caller(gateway, request.headers(), Some(STREAM)).await;
    let caller = access::admit_caller(gateway, peer, Some(STREAM), &request, brought)?;
    Ok((caller, http::parse_query(request.uri().query(), None)?))
}

/// Builds the response stream: the events shown, a keep-alive after each silent heartbeat interval, and the reason for
/// its end as the last item.
fn build_response_stream(
    gateway: &Gateway,
    shown: mpsc::Receiver<StreamItem>,
    revoked: CancellationToken,
) -> BoxStream<'static, StreamItem> {
    let heartbeat = Duration::from_millis(gateway.config.heartbeat_ms);
    let shutdown = gateway.shutdown.clone();
    let next = move |shown: Option<mpsc::Receiver<StreamItem>>| {
        let shutdown = shutdown.clone();
        let revoked = revoked.clone();
        async move {
            let mut shown = shown?;
            let told = match timeout(heartbeat, shown.recv()).await {
                Err(_) => Ok(wrap_shown(stream_response::Shown::KeepAlive(KeepAlive {}))),
                Ok(Some(told)) => told,
                Ok(None) if shutdown.is_cancelled() => Err(to_status(&Problem::unavailable(STOPPING))),
                Ok(None) if revoked.is_cancelled() => Err(to_status(&Problem::too_many_at_once(CROWDED))),
                Ok(None) => Err(to_status(&Problem::no_valid_key())),
            };
            let rest = told.is_ok().then_some(shown);
            Some((told, rest))
        }
    };
    stream::unfold(Some(shown), next).boxed()
}

fn wrap_shown(shown: stream_response::Shown) -> StreamResponse {
    StreamResponse { shown: Some(shown) }
}

fn encode_item(shown: WatchItem<'_>) -> StreamItem {
    let shown = match shown {
        WatchItem::Start(place) => stream_response::Shown::Start(place.into()),
        WatchItem::Event(event) => stream_response::Shown::Event(event.clone().into()),
        WatchItem::TurnStatus(change) => stream_response::Shown::TurnStatus(change.clone()),
        WatchItem::Live(name, data) => stream_response::Shown::Live(encode_live(name, &data)),
    };
    Ok(wrap_shown(shown))
}

fn encode_live(name: &str, data: &Value) -> Live {
    Live { name: name.to_owned(), data: Some(v1::Json { text: data.to_string() }) }
}
