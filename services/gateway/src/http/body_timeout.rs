//! How long the body of a request may take: whoever sends a byte now and then holds nobody up for long.

use std::time::Duration;

use axum::{
    body::{Body, HttpBody},
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use futures::{StreamExt, stream};
use tokio::time::{Instant, timeout_at};

use super::Gateway;

const OVER: &str = "it took longer than gateway.body_timeout_ms";

/// Breaks the body off when its time is over.
pub async fn bound(State(gateway): State<Gateway>, request: Request, next: Next) -> Response {
    let request = match request.body().is_end_stream() {
        true => request,
        false => {
            let ends = Instant::now() + Duration::from_millis(gateway.config.body_timeout_ms);
            request.map(|body| bounded(body, ends))
        }
    };
    next.run(request).await
}

fn bounded(body: Body, ends: Instant) -> Body {
    let pieces = stream::unfold(Some(body.into_data_stream()), move |pieces| async move {
        let mut pieces = pieces?;
        match timeout_at(ends, pieces.next()).await {
            Ok(piece) => Some((piece?, Some(pieces))),
            Err(_) => Some((Err(axum::Error::new(OVER)), None)),
        }
    });
    Body::from_stream(pieces)
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_that_takes_too_long_breaks_off_and_says_why() {
        let ends = || Instant::now() + Duration::from_secs(60);
        let whole = bounded(Body::from("whole"), ends());
        assert_eq!(to_bytes(whole, 100).await.unwrap(), "whole");
        let drop_by_drop = stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Some((Ok::<_, std::io::Error>("x"), ()))
        });
        let error = to_bytes(bounded(Body::from_stream(drop_by_drop), ends()), usize::MAX).await.unwrap_err();
        assert!(error.to_string().contains("gateway.body_timeout_ms"), "{error}");
    }
}
