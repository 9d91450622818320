//! `POST /v1/objects` and `GET /v1/objects/{digest}`: images and audio of messages, by the digest of their bytes.
//!
//! Any caller who may read at all may read what they can name. A digest of 256 bits is not guessed: a caller who has
//! one was shown it in a message, or had the bytes before. So a key that is limited to a user or to agents needs no
//! list of objects.

use axum::{
    Extension, Json,
    extract::{Path, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use kairo_core::{media, sharing::permit_pool::Permit};
use kairo_proto::v1::Part;
use serde::Serialize;

use super::{Gateway, body};
use crate::{
    auth::Caller,
    problem::{FieldError, Problem},
};

/// A stored object, as clients see it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct UploadedObject {
    digest: String,
    media_type: String,
    size: u64,
}

impl From<Part> for UploadedObject {
    fn from(part: Part) -> Self {
        Self { digest: part.digest, media_type: part.media_type, size: part.size }
    }
}

/// 201, also when the same bytes were there already: that is nothing to whoever brings them.
pub async fn upload_object(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<(StatusCode, Json<UploadedObject>), Problem> {
    let media_type = upload_media_type(request.headers()).ok_or_else(Problem::unsupported_part_type)?;
    let permit = gateway.transfer_permit(&caller)?;
    let storing = async {
        let bytes =
            body::read_bounded(request.into_body(), gateway.config.max_part_bytes, "gateway.max_part_bytes").await?;
        store_checked(&gateway, &caller, caller.user(), media_type, &bytes, "body").await
    };
    let part = run_unless_revoked(&permit, storing).await?;
    Ok((StatusCode::CREATED, Json(part.into())))
}

/// Runs a transfer, unless its permit is revoked in favor of somebody who has fewer.
async fn run_unless_revoked<T>(
    permit: &Permit,
    transfer: impl Future<Output = Result<T, Problem>>,
) -> Result<T, Problem> {
    tokio::select! {
        biased;
        moved = transfer => moved,
        () = permit.wait_until_revoked() => Err(Problem::too_many_at_once("others are owed one of gateway.max_transfers who have fewer")),
    }
}

/// Keeps bytes that `field` of a request brings, if they are what they are said to be.
pub async fn store_checked(
    gateway: &Gateway,
    caller: &Caller,
    user: Option<&str>,
    media_type: &'static str,
    bytes: &[u8],
    field: &str,
) -> Result<Part, Problem> {
    match media_type_mismatch(media_type, bytes, field) {
        Some(error) => Err(Problem::invalid_fields(vec![error])),
        None => gateway.store_object(caller, user, media_type, bytes).await,
    }
}

/// Returns an error for bytes that do not begin like those of `media_type`.
pub fn media_type_mismatch(media_type: &'static str, bytes: &[u8], field: &str) -> Option<FieldError> {
    let found = media::sniff_type(bytes);
    (found != Some(media_type)).then(|| FieldError {
        field: field.to_owned(),
        expected: format!("the bytes of {media_type}"),
        found: Some(found.unwrap_or("bytes of no media type that is taken").to_owned()),
    })
}

/// The bytes, as a file to be kept: no browser shows as a page what a user sent.
pub async fn download_object(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    Path(digest): Path<String>,
) -> Result<Response, Problem> {
    let permit = gateway.transfer_permit(&caller)?;
    // It may have been stored when more was taken.
    let found = run_unless_revoked(&permit, async { Ok(gateway.objects.get(&digest, u64::MAX).await?) }).await?;
    let (part, bytes) = found.ok_or_else(|| Problem::not_found("there is no object of this digest"))?;
    let media_type = media::canonical_type(&part.media_type).unwrap_or("application/octet-stream");
    let tag = HeaderValue::try_from(format!("\"{}\"", part.digest)).unwrap_or(HeaderValue::from_static("W/\"\""));
    let head = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (header::ETAG, tag),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=31536000, immutable")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox")),
    ];
    Ok((head, Bytes::from(bytes)).into_response())
}

fn upload_media_type(headers: &HeaderMap) -> Option<&'static str> {
    media::canonical_type(headers.get(header::CONTENT_TYPE)?.to_str().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_must_be_what_they_are_said_to_be() {
        assert_eq!(media_type_mismatch("image/gif", b"GIF89a", "body"), None);
        let wrong = media_type_mismatch("image/png", b"GIF89a", "body").unwrap();
        assert_eq!((wrong.expected.as_str(), wrong.found.as_deref()), ("the bytes of image/png", Some("image/gif")));
        assert!(media_type_mismatch("image/png", b"", "body").is_some());
    }

    #[test]
    fn the_header_names_the_type_with_or_without_parameters() {
        let named = |text: &'static str| {
            upload_media_type(&HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(text))]))
        };
        assert_eq!(named("audio/webm;codecs=opus"), Some("audio/webm"));
        assert_eq!((named("application/json"), named("image/svg+xml")), (None, None));
        assert_eq!(upload_media_type(&HeaderMap::new()), None);
    }
}
