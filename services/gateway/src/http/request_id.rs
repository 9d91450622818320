//! An id for each request, by which a client and whoever reads the logs speak of the same one.

use axum::{
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, header},
    middleware::Next,
    response::Response,
};
use serde::Serialize;
use uuid::Uuid;

use crate::problem::Problem;

const HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// Longest id that a client may choose, in bytes.
const MAX_BYTES: usize = 128;

/// The id of a request.
#[derive(Clone, Debug)]
pub struct RequestId(pub String);

/// A problem, and the request it happened in: a URN of Kairo's own.
#[derive(Serialize)]
struct ProblemInstance<'a> {
    #[serde(flatten)]
    problem: &'a Problem,
    instance: String,
}

/// Takes the client's id or makes one, and tells it with the answer.
pub async fn assign_request_id(mut request: Request, next: Next) -> Response {
    let id = client_request_id(request.headers()).unwrap_or_else(|| Uuid::now_v7().to_string());
    request.extensions_mut().insert(RequestId(id.clone()));
    let mut response = next.run(request).await;
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        let instance = format!("urn:kairo:request:{id}");
        let body = serde_json::to_vec(&ProblemInstance { problem: &problem, instance }).unwrap_or_default();
        *response.body_mut() = body.into();
        response.headers_mut().remove(header::CONTENT_LENGTH);
    }
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(HEADER, id);
    }
    response
}

/// The client's, if it may stand in logs and in a URN as it is.
fn client_request_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(HEADER)?.to_str().ok()?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    ((1..=MAX_BYTES).contains(&id.len()) && id.bytes().all(allowed)).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_that_can_be_written_anywhere_are_taken() {
        let chosen = |id: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HEADER, HeaderValue::from_bytes(id.as_bytes()).unwrap());
            client_request_id(&headers)
        };
        for good in ["r-1", "019a:b_c.d", &"x".repeat(128)] {
            assert_eq!(chosen(good).as_deref(), Some(good));
        }
        for bad in ["", "a b", "ü", "a\"b", "a<b", &"x".repeat(129)] {
            assert_eq!(chosen(bad), None, "{bad}");
        }
    }
}
