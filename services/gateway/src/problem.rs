//! What a client is told when it does not get what it asked for: RFC 9457, problem details.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use kairo_core::bus::BusError;
use serde::Serialize;

/// An `application/problem+json` answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Names the kind of problem for programs: a URN of Kairo's own.
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub title: &'static str,
    #[serde(serialize_with = "as_number")]
    pub status: StatusCode,
    /// What happened this time and what to do, for people.
    pub detail: String,
    /// Every field that is wrong, when the request is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
}

/// One wrong field of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldError {
    pub field: String,
    pub expected: String,
    /// The beginning of what was there instead; none when nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
}

/// Seconds after which a client that was turned away may try again.
const RETRY_AFTER: &str = "1";

impl Problem {
    fn new(kind: &'static str, title: &'static str, status: StatusCode, detail: impl Into<String>) -> Self {
        Self { kind, title, status, detail: detail.into(), errors: Vec::new() }
    }

    /// The request is understood, and these fields of it are wrong.
    pub fn invalid(errors: Vec<FieldError>) -> Self {
        let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        let detail = format!("correct these fields: {}", fields.join(", "));
        let problem = Self::new("urn:kairo:problem:invalid", "invalid request", StatusCode::BAD_REQUEST, detail);
        Self { errors, ..problem }
    }

    pub fn malformed(detail: impl Into<String>) -> Self {
        Self::new("urn:kairo:problem:malformed", "malformed request", StatusCode::BAD_REQUEST, detail)
    }

    pub fn unsupported_media_type() -> Self {
        let (kind, title) = ("urn:kairo:problem:unsupported-media-type", "unsupported media type");
        let detail = "send the header content-type: application/json";
        Self::new(kind, title, StatusCode::UNSUPPORTED_MEDIA_TYPE, detail)
    }

    pub fn too_large(detail: impl Into<String>) -> Self {
        Self::new("urn:kairo:problem:too-large", "request too large", StatusCode::PAYLOAD_TOO_LARGE, detail)
    }

    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new("urn:kairo:problem:forbidden", "forbidden", StatusCode::FORBIDDEN, detail)
    }

    pub fn unknown_path() -> Self {
        let detail = "there is nothing here; GET / lists what there is";
        Self::new("urn:kairo:problem:unknown-path", "unknown path", StatusCode::NOT_FOUND, detail)
    }

    pub fn method_not_allowed() -> Self {
        let (kind, title) = ("urn:kairo:problem:method-not-allowed", "method not allowed");
        let detail = "the header allow names the methods of this path";
        Self::new(kind, title, StatusCode::METHOD_NOT_ALLOWED, detail)
    }

    /// Something that is needed is away; the same request may succeed later.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        let (kind, title) = ("urn:kairo:problem:unavailable", "temporarily unavailable");
        Self::new(kind, title, StatusCode::SERVICE_UNAVAILABLE, detail)
    }

    /// The log cannot be reached. The cause goes to the gateway's own log: it may hold addresses.
    pub fn no_log(error: &impl std::error::Error) -> Self {
        tracing::warn!(%error, "nats did not do what was asked");
        Self::unavailable("nats does not answer; try again")
    }

    /// The read model cannot be reached.
    pub fn no_read_model(error: &impl std::error::Error) -> Self {
        tracing::warn!(%error, "the read model did not answer");
        Self::unavailable("the read model does not answer; what is published meanwhile is not lost, try again")
    }

    /// A defect, of the gateway or of what it works with.
    pub fn internal(error: &impl std::error::Error) -> Self {
        tracing::error!(%error, "a request could not be answered");
        let (kind, title) = ("urn:kairo:problem:internal", "internal error");
        let detail = "this is not the request's fault; the gateway's log says what went wrong";
        Self::new(kind, title, StatusCode::INTERNAL_SERVER_ERROR, detail)
    }
}

impl From<BusError> for Problem {
    fn from(error: BusError) -> Self {
        match error {
            BusError::TooLarge { .. } => Self::too_large(error.to_string()),
            BusError::Conflict { .. } => Self::unavailable("somebody else changed it at the same time; try again"),
            BusError::Unavailable { .. } => Self::no_log(&error),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (self.status, [(header::CONTENT_TYPE, "application/problem+json")], body).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
        }
        response
    }
}

// Serde hands over a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn as_number<S: serde::Serializer>(status: &StatusCode, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_u16(status.as_u16())
}
