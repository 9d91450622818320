//! Drains the unread rest of a body when its request is answered early: a client without a key or permission, or one
//! that asks too often or sends too much, is answered before the body has come. Over HTTP/1 the connection would then
//! break under a client that sends all of it before it looks for an answer, as most do, and the reason would be lost.
//! So the rest is read and thrown away, within bounds, before the answer goes out. HTTP/2 ends the one request and
//! needs none of this.

use std::{
    mem,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::{Request, State},
    http::{
        HeaderValue, Version,
        header::{CONNECTION, EXPECT},
    },
    middleware::Next,
    response::Response,
};
use futures::StreamExt;
use http_body::{Frame, SizeHint};
use tokio::time::timeout;

use super::Gateway;

/// Answers when the rest of the body has come, or when more of it is not waited for: then the connection ends with the answer.
pub async fn drain_unread_body(State(gateway): State<Gateway>, request: Request, next: Next) -> Response {
    if request.version() >= Version::HTTP_2 || request.body().is_end_stream() {
        return next.run(request).await;
    }
    // Such a client sends nothing until it is asked to, which reading its body does.
    let waits = request.headers().contains_key(EXPECT);
    let left = BodySlot::default();
    let request = request.map(|body| Body::new(LentBody { body, is_begun: !waits, left: left.clone() }));
    let mut response = next.run(request).await;
    if let Some(rest) = left.take() {
        let within = Duration::from_millis(gateway.config.unread_body_ms);
        if !drain_to_end(rest, gateway.config.unread_body_bytes, within).await {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
    response
}

/// Reads a body to its end, if that is not too far.
async fn drain_to_end(body: Body, limit: usize, within: Duration) -> bool {
    let mut pieces = body.into_data_stream();
    let read = async {
        let mut bytes = 0;
        while let Some(piece) = pieces.next().await {
            bytes += piece.map_or(usize::MAX, |piece| piece.len()).min(limit + 1);
            if bytes > limit {
                return false;
            }
        }
        true
    };
    timeout(within, read).await.unwrap_or(false)
}

/// The slot to which a body returns when it is dropped before its end.
#[derive(Clone, Default)]
struct BodySlot(Arc<Mutex<Option<Body>>>);

impl BodySlot {
    fn put_back(&self, body: Body) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(body);
    }

    /// None while it is still being read, as by what is answered piece by piece.
    fn take(&self) -> Option<Body> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The body as the handler of the request sees it.
struct LentBody {
    body: Body,
    /// True if the client sends the body: at once without `Expect`, else from the first read on.
    is_begun: bool,
    left: BodySlot,
}

impl HttpBody for LentBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        this.is_begun = true;
        Pin::new(&mut this.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for LentBody {
    fn drop(&mut self) {
        if self.is_begun && !self.body.is_end_stream() {
            self.left.put_back(mem::take(&mut self.body));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    fn endless() -> Body {
        Body::from_stream(stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(&[b' '; 1_000]))))
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_is_read_to_its_end_within_bounds() {
        const SECOND: Duration = Duration::from_secs(1);
        assert!(drain_to_end(Body::from(vec![b' '; 5_000]), 5_000, SECOND).await);
        assert!(!drain_to_end(Body::from(vec![b' '; 5_001]), 5_000, SECOND).await);
        assert!(!drain_to_end(endless(), 5_000, SECOND).await);
        let silent = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        assert!(!drain_to_end(silent, 5_000, SECOND).await);
        let broken = Body::from_stream(stream::iter([Err::<Bytes, _>(std::io::Error::other("it broke off"))]));
        assert!(!drain_to_end(broken, 5_000, SECOND).await);
    }

    #[tokio::test]
    async fn what_is_let_go_of_before_its_end_comes_back() {
        let lend = |body, is_begun| {
            let left = BodySlot::default();
            (Body::new(LentBody { body, is_begun, left: left.clone() }), left)
        };
        let (body, left) = lend(endless(), true);
        let mut pieces = body.into_data_stream();
        pieces.next().await.unwrap().unwrap();
        assert!(left.take().is_none(), "it is still being read");
        drop(pieces);
        assert!(left.take().is_some());

        // Nobody has asked the client to go on.
        let (body, left) = lend(endless(), false);
        drop(body);
        assert!(left.take().is_none());
        let (body, left) = lend(endless(), false);
        body.into_data_stream().next().await.unwrap().unwrap();
        assert!(left.take().is_some());

        let (body, left) = lend(Body::from("whole"), true);
        assert_eq!(axum::body::to_bytes(body, 100).await.unwrap(), "whole");
        assert!(left.take().is_none());
    }
}
