//! The body of a request that must be JSON.

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};
use bytes::BytesMut;
use futures::StreamExt;

use super::{Gateway, access::request_names};
use crate::problem::Problem;

/// The media types of JSON bodies; the second one is that of RFC 7396.
const JSON_TYPES: [&str; 2] = ["application/json", "application/merge-patch+json"];

/// The bytes of a body said to be JSON, within the limit.
pub struct JsonBody(pub Bytes);

impl FromRequest<Gateway> for JsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, gateway: &Gateway) -> Result<Self, Problem> {
        read_json(request, gateway.config.max_body_bytes, "gateway.max_body_bytes").await.map(Self)
    }
}

/// The bytes of a body said to be JSON, within the limit that this setting sets. It names nobody beyond the limits of a key.
pub async fn read_json(request: Request, limit: usize, setting: &str) -> Result<Bytes, Problem> {
    if !is_json(request.headers()) {
        return Err(Problem::unsupported_media_type());
    }
    let (parts, body) = request.into_parts();
    let body = read_bounded(body, limit, setting).await?;
    request_names::enforce_body_limits(&parts.extensions, &body)?;
    Ok(body)
}

/// The whole body, if it is at most so many bytes long.
pub async fn read_bounded(body: Body, limit: usize, setting: &str) -> Result<Bytes, Problem> {
    // What the client says of the length, if it says it.
    let said = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if said > limit {
        return Err(too_large(limit, setting));
    }
    let mut pieces = body.into_data_stream();
    let mut read = BytesMut::new();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| Problem::malformed_request(format!("the body broke off: {error}")))?;
        if read.len() + piece.len() > limit {
            return Err(too_large(limit, setting));
        }
        read.extend_from_slice(&piece);
    }
    Ok(read.freeze())
}

fn too_large(limit: usize, setting: &str) -> Problem {
    Problem::too_large(format!("the body is larger than {setting}, which is {limit} bytes"))
}

/// Besides being right, it keeps web pages out: a browser asks before it sends another site JSON, and is told no.
pub fn is_json(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = media_type.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
    JSON_TYPES.iter().any(|json| media_type.eq_ignore_ascii_case(json))
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    /// A body of so many bytes whose length is not said, in pieces.
    fn unsaid(length: usize) -> Body {
        let piece = move |at| Ok::<_, std::io::Error>(vec![b' '; 1_000.min(length - at)]);
        Body::from_stream(stream::iter((0..length).step_by(1_000).map(piece)))
    }

    #[tokio::test]
    async fn a_body_may_be_as_large_as_the_limit_and_no_larger() {
        assert_eq!(read_bounded(unsaid(5_000), 5_000, "gateway.max_body_bytes").await.unwrap().len(), 5_000);
        assert_eq!(
            read_bounded(Body::from(vec![b' '; 5_000]), 5_000, "gateway.max_body_bytes").await.unwrap().len(),
            5_000
        );
        assert!(read_bounded(Body::empty(), 5_000, "gateway.max_body_bytes").await.unwrap().is_empty());
        for body in [unsaid(5_001), unsaid(1_000_000), Body::from(vec![b' '; 5_001])] {
            let problem = read_bounded(body, 5_000, "gateway.max_body_bytes").await.unwrap_err();
            assert_eq!(problem.status.as_u16(), 413);
            assert_eq!(problem.detail, "the body is larger than gateway.max_body_bytes, which is 5000 bytes");
        }
    }

    #[tokio::test]
    async fn a_body_without_end_is_not_read_to_its_end() {
        let endless = stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(&[b' '; 65_536])));
        assert_eq!(
            read_bounded(Body::from_stream(endless), 5_000, "gateway.max_body_bytes")
                .await
                .unwrap_err()
                .status
                .as_u16(),
            413
        );
    }
}
