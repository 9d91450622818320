//! The time limit for the body of a request: a client that sends a byte now and then holds nobody up for long.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use http_body::{Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use super::Gateway;

const OVER: &str = "it took longer than gateway.body_timeout_ms";

/// Breaks the body off when its time is over.
pub async fn limit_body_time(State(gateway): State<Gateway>, request: Request, next: Next) -> Response {
    let request = match request.body().is_end_stream() {
        true => request,
        false => {
            let within = Duration::from_millis(gateway.config.body_timeout_ms);
            request.map(|body| Body::new(TimedBody::new(body, within)))
        }
    };
    next.run(request).await
}

/// As long as the body says it is, since whoever reads it refuses one that is too long before it comes.
struct TimedBody {
    body: Body,
    time: Pin<Box<Sleep>>,
    is_over: bool,
}

impl TimedBody {
    fn new(body: Body, within: Duration) -> Self {
        Self { body, time: Box::pin(sleep(within)), is_over: false }
    }
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        if this.is_over {
            return Poll::Ready(None);
        }
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        ready!(this.time.as_mut().poll(cx));
        this.is_over = true;
        Poll::Ready(Some(Err(axum::Error::new(OVER))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use futures::stream;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_body_that_takes_too_long_breaks_off_and_says_why() {
        let whole = Body::new(TimedBody::new(Body::from("whole"), MINUTE));
        assert_eq!(whole.size_hint().exact(), Some(5));
        assert_eq!(to_bytes(whole, 100).await.unwrap(), "whole");
        let drop_by_drop = stream::unfold((), |()| async {
            sleep(Duration::from_secs(1)).await;
            Some((Ok::<_, std::io::Error>("x"), ()))
        });
        let body = Body::new(TimedBody::new(Body::from_stream(drop_by_drop), MINUTE));
        let error = to_bytes(body, usize::MAX).await.unwrap_err();
        assert!(error.to_string().contains("gateway.body_timeout_ms"), "{error}");
    }
}
