//! Conversations that anybody may have, key or not: about the gateway's health, and what services there are. Clients
//! decide how long these last and need not say a word, so they have permits of their own, a few for each address, and end
//! when their time is over.

use std::{
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    BoxError,
    body::{Body, Bytes, HttpBody},
    extract::{ConnectInfo, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures::StreamExt;
use http_body::Frame;
use kairo_core::sharing::permit_pool::Permit;
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};
use tonic::Status;

use super::status::to_status;
use crate::http::Gateway;

const OVER: &str = "gateway.open_request_ms are over; ask again";

/// Holds a conversation to its permit and its time.
pub async fn limit_conversation(
    State(gateway): State<Gateway>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    let permit = match gateway.open_permit(peer.ip()) {
        Ok(permit) => permit,
        Err(problem) => return refusal_response(&to_status(&problem)),
    };
    let ends = Instant::now() + Duration::from_millis(gateway.config.open_request_ms);
    let (parts, said) = request.into_parts();
    // What the client says ends with the gateway, too: it would be listened to for as long as it keeps silent.
    let stopping = gateway.shutdown.clone().cancelled_owned();
    let said = Body::from_stream(said.into_data_stream().take_until(stopping));
    match timeout_at(ends, next.run(Request::from_parts(parts, said))).await {
        Ok(answer) => answer.map(|body| Body::new(ConversationBody::new(body, ends, permit))),
        Err(_) => refusal_response(&deadline_exceeded()),
    }
}

fn deadline_exceeded() -> Status {
    Status::deadline_exceeded(OVER)
}

fn refusal_response(status: &Status) -> Response {
    status.clone().into_http::<Body>().into_response()
}

/// An answer that ends when its time is over, and holds its permit until then.
struct ConversationBody {
    answer: Body,
    ends: Pin<Box<Sleep>>,
    is_over: bool,
    _permit: Permit,
}

impl ConversationBody {
    fn new(answer: Body, ends: Instant, permit: Permit) -> Self {
        Self { answer, ends: Box::pin(sleep_until(ends)), is_over: false, _permit: permit }
    }
}

impl HttpBody for ConversationBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        if let Poll::Ready(frame) = Pin::new(&mut self.answer).poll_frame(context) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        if self.ends.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        self.is_over = true;
        let mut trailers = axum::http::HeaderMap::new();
        let told = deadline_exceeded().add_header(&mut trailers);
        Poll::Ready(told.is_ok().then(|| Ok(Frame::trailers(trailers))))
    }
}
