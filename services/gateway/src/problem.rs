//! Error responses to clients: RFC 9457, problem details.

use std::{num::NonZeroU32, time::Duration};

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use kairo_core::{
    bus::{
        BusError,
        congestion::{Congestion, InputQueue, QueueScope},
    },
    media,
};
use serde::Serialize;

use crate::{http::POSITION, log_position::LogPosition};

/// An `application/problem+json` answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Names the kind of problem for programs: a URN of Kairo's own.
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub title: &'static str,
    #[serde(serialize_with = "as_number")]
    pub status: StatusCode,
    /// Description of this occurrence and of how to fix it, for people.
    pub detail: String,
    /// Every field that is wrong, when the request is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// The position of the read model in the log, if it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// The position in the log that the request required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wanted: Option<u64>,
    /// Seconds after which the client may try again, for a header.
    #[serde(skip)]
    pub retry_after: Option<NonZeroU32>,
}

/// One wrong field of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldError {
    pub field: String,
    pub expected: String,
    /// The beginning of the value that was sent; none if the field was absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
}

/// Seconds after which a client may try again when nothing better is known.
const RETRY_AFTER: NonZeroU32 = NonZeroU32::MIN;
/// Seconds after which a congested agent may take messages again: about the interval at which congestion is reported.
const CONGESTED_RETRY_AFTER: u32 = 5;
/// The `www-authenticate` challenge of a 401 response.
const CHALLENGE: &str = r#"Bearer realm="kairo""#;
/// Characters of a wrong value that are shown again.
const FOUND_CHARS: usize = 80;

impl Problem {
    fn new(kind: &'static str, title: &'static str, status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            kind,
            title,
            status,
            detail: detail.into(),
            errors: Vec::new(),
            position: None,
            wanted: None,
            retry_after: None,
        }
    }

    /// The request was understood, but these fields of it are wrong.
    pub fn invalid_fields(errors: Vec<FieldError>) -> Self {
        let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        let detail = format!("correct these fields: {}", fields.join(", "));
        let problem = Self::new("urn:kairo:problem:invalid", "invalid request", StatusCode::BAD_REQUEST, detail);
        Self { errors, ..problem }
    }

    pub fn malformed_request(detail: impl Into<String>) -> Self {
        Self::new("urn:kairo:problem:malformed", "malformed request", StatusCode::BAD_REQUEST, detail)
    }

    pub fn unsupported_media_type() -> Self {
        let kind = "urn:kairo:problem:unsupported-media-type";
        let title = "unsupported media type";
        let detail = "send the header content-type: application/json";
        Self::new(kind, title, StatusCode::UNSUPPORTED_MEDIA_TYPE, detail)
    }

    /// The media type of an uploaded part is not one of [`media::TYPES`].
    pub fn unsupported_part_type() -> Self {
        let detail = format!("send the header content-type: one of {}", media::TYPES.join(", "));
        Self { detail, ..Self::unsupported_media_type() }
    }

    /// The object store has reached its size limit.
    pub fn storage_full() -> Self {
        let kind = "urn:kairo:problem:full";
        let title = "no room";
        let detail = "the object store holds as many bytes as it may (nats.objects_max_bytes)";
        Self::new(kind, title, StatusCode::INSUFFICIENT_STORAGE, detail)
    }

    /// The caller has reached its own storage limit.
    pub fn quota_exceeded(detail: &str) -> Self {
        Self { detail: detail.to_owned(), ..Self::storage_full() }
    }

    pub fn too_large(detail: impl Into<String>) -> Self {
        Self::new("urn:kairo:problem:too-large", "request too large", StatusCode::PAYLOAD_TOO_LARGE, detail)
    }

    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new("urn:kairo:problem:forbidden", "forbidden", StatusCode::FORBIDDEN, detail)
    }

    /// A caller on this machine without a key asked for more than `gateway.loopback_scopes` allows.
    pub fn needs_key(scope: &str) -> Self {
        Self::forbidden(format!(
            "this needs a key of the scope {scope}, also on this machine: bring gateway.admin_key, or a key that was made with it \
             (`kairo` finds the key of a `kairo dev` in the same folder; else set KAIRO_API_KEY; \
             gateway.loopback_scopes says what needs none)"
        ))
    }

    /// The key is limited, and this field of the request goes beyond it.
    pub fn exceeds_key_limits(field: &str, expected: String, found: Option<&str>) -> Self {
        let found = found.map(|found| found.chars().take(FOUND_CHARS).collect());
        let errors = vec![FieldError { field: field.to_owned(), expected, found }];
        Self { errors, ..Self::forbidden(format!("the API key does not allow this {field}")) }
    }

    /// The key is missing or not valid. The response is the same in every case, so that it gives no hint about the key.
    pub fn no_valid_key() -> Self {
        let detail = "send an API key that is in force, as the header authorization: Bearer <key>";
        Self::new("urn:kairo:problem:unauthorized", "unauthorized", StatusCode::UNAUTHORIZED, detail)
    }

    pub fn too_many_requests(wait: Duration) -> Self {
        let kind = "urn:kairo:problem:too-many-requests";
        let title = "too many requests";
        let detail = "more than gateway.rate_per_s requests; the header retry-after says in how many seconds to go on";
        let problem = Self::new(kind, title, StatusCode::TOO_MANY_REQUESTS, detail);
        // Rounded up, so that the next one is allowed.
        let seconds = u32::try_from(wait.as_secs()).unwrap_or(u32::MAX);
        Self { retry_after: Some(NonZeroU32::MIN.saturating_add(seconds)), ..problem }
    }

    /// The caller has reached its limit of concurrent work.
    pub fn too_many_at_once(what: &str) -> Self {
        let kind = "urn:kairo:problem:too-many-at-once";
        let title = "too much at once";
        let detail = format!("{what}; try again when some of it is over");
        let problem = Self::new(kind, title, StatusCode::TOO_MANY_REQUESTS, detail);
        Self { retry_after: Some(RETRY_AFTER), ..problem }
    }

    /// A cap on model spending is reached. `anew` is the number of seconds until it resets, if it resets by itself.
    pub fn cap_reached(detail: String, anew: Option<i64>) -> Self {
        let kind = "urn:kairo:problem:cap-reached";
        let title = "a cap on spending is reached";
        let problem = Self::new(kind, title, StatusCode::TOO_MANY_REQUESTS, detail);
        let seconds = anew.and_then(|seconds| u32::try_from(seconds.saturating_add(1)).ok());
        Self { retry_after: seconds.and_then(NonZeroU32::new), ..problem }
    }

    /// The queue of an agent is longer than its limit.
    pub fn agent_congested(queue: &InputQueue, Congestion { pending, limit }: Congestion) -> Self {
        let InputQueue { agent, of } = queue;
        let waiting = match of {
            QueueScope::Line(user) | QueueScope::Share(user) => {
                format!("{pending} messages of {user} wait for the agent {agent}, which takes no more of them")
            }
            QueueScope::Everybody => format!("{pending} inputs wait for the agent {agent}, which takes no messages"),
        };
        let detail = format!(
            "{waiting} while more than {limit} do; send the message again after the seconds that the header retry-after \
             says; orders are taken all the same"
        );
        let kind = "urn:kairo:problem:congested";
        let title = "too many inputs are waiting";
        let problem = Self::new(kind, title, StatusCode::TOO_MANY_REQUESTS, detail);
        Self { retry_after: NonZeroU32::new(CONGESTED_RETRY_AFTER), ..problem }
    }

    /// The request contradicts the current state.
    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new("urn:kairo:problem:conflict", "conflict", StatusCode::CONFLICT, detail)
    }

    /// A different request with the same id was sent before.
    pub fn id_reused(kind: &str, field: &str, id: &str, sequence: u64) -> Self {
        let detail = format!(
            "{field}: another {kind} was sent with {id:?} before, which is message {sequence} of the log; send what was sent then, or \
             choose another {field}"
        );
        let errors = vec![FieldError {
            field: field.to_owned(),
            expected: format!("an id that no other {kind} has"),
            found: Some(id.chars().take(FOUND_CHARS).collect()),
        }];
        Self { errors, ..Self::conflict(detail) }
    }

    pub fn unknown_path() -> Self {
        let detail = "there is nothing here; GET / lists what there is";
        Self::new("urn:kairo:problem:unknown-path", "unknown path", StatusCode::NOT_FOUND, detail)
    }

    /// The resource that the path names does not exist, or is not known yet.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new("urn:kairo:problem:not-found", "not found", StatusCode::NOT_FOUND, detail)
    }

    pub fn method_not_allowed() -> Self {
        let kind = "urn:kairo:problem:method-not-allowed";
        let title = "method not allowed";
        let detail = "the header allow names the methods of this path";
        Self::new(kind, title, StatusCode::METHOD_NOT_ALLOWED, detail)
    }

    /// A dependency is away; the same request may succeed later.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        let kind = "urn:kairo:problem:unavailable";
        let title = "temporarily unavailable";
        Self::new(kind, title, StatusCode::SERVICE_UNAVAILABLE, detail)
    }

    /// The log cannot be reached. The cause goes to the gateway's own log: it may hold addresses.
    pub fn log_unavailable(error: &impl std::error::Error) -> Self {
        tracing::warn!(%error, "nats did not do what was asked");
        Self::unavailable("nats does not answer; try again")
    }

    /// The read model cannot be reached.
    pub fn read_model_unavailable(error: &impl std::error::Error) -> Self {
        tracing::warn!(%error, "the read model did not answer");
        Self::unavailable("the read model does not answer; what is published meanwhile is not lost, try again")
    }

    /// The gateway's Postgres role lacks a privilege that it needs.
    pub fn read_model_denied(error: &impl std::error::Error, role: &str) -> Self {
        tracing::error!(%error, role, "the read model may not be asked");
        Self::unavailable(
            "the read model may not be asked by the gateway's role; the log of the gateway says what is missing",
        )
    }

    /// The read model did not reach the position that the client asked for within the wait.
    pub fn read_model_behind(position: u64, wanted: u64) -> Self {
        let kind = "urn:kairo:problem:behind";
        let title = "not as far yet";
        let detail = format!(
            "the read model takes account of the log up to {position}, and {wanted} was asked for; try again in a moment"
        );
        let problem = Self::new(kind, title, StatusCode::SERVICE_UNAVAILABLE, detail);
        Self { wanted: Some(wanted), ..problem.with_position(position) }
    }

    /// Adds the position of the read model at which the request was answered.
    pub fn with_position(self, position: u64) -> Self {
        Self { position: Some(position), ..self }
    }

    /// Returns the seconds after which the client may try again; none if retrying does not help.
    pub fn retry_after(&self) -> Option<NonZeroU32> {
        let unavailable = (self.status == StatusCode::SERVICE_UNAVAILABLE).then_some(RETRY_AFTER);
        self.retry_after.or(unavailable)
    }

    /// An agent's part of the log is longer than `gateway.max_replay_bytes`.
    pub fn log_too_long() -> Self {
        let kind = "urn:kairo:problem:log-too-long";
        let title = "the log is too long";
        let detail = "the agent's part of the log is longer than gateway.max_replay_bytes; name an earlier place, or read it with \
                      `kairo state` or `kairo incident export`, which have no such bound";
        Self::new(kind, title, StatusCode::PAYLOAD_TOO_LARGE, detail)
    }

    /// The messages that the request needs were trimmed, and this gateway has no archive of them.
    pub fn no_archive(begins: u64) -> Self {
        let detail = format!(
            "the log begins at message {begins}, and nothing that is known of an agent follows from what is left of it: name the archive \
             of what was trimmed in archive.folder of the gateway, or read it with `kairo state` and its like, which take --archive"
        );
        Self::no_longer_in_log(detail)
    }

    /// Messages right after this place were trimmed, so a watch cannot resume from it.
    pub fn position_trimmed(after: LogPosition, begins: u64) -> Self {
        Self::no_longer_in_log(format!(
            "after: the log begins at message {begins}, and what stood between {after} and there was trimmed; read on with GET \
             /v1/events?after={after}, and watch from the last of that"
        ))
    }

    fn no_longer_in_log(detail: String) -> Self {
        Self::new("urn:kairo:problem:gone", "no longer in the log", StatusCode::GONE, detail)
    }

    /// The images, audio and video of an incident file, together with its messages, exceed `gateway.max_replay_bytes`.
    pub fn objects_too_long() -> Self {
        let detail = "the incident file would be longer than gateway.max_replay_bytes; leave out images, audio and video with \
                      objects=false, name an earlier place, or use `kairo incident export`, which has no such bound";
        Self { detail: detail.to_owned(), ..Self::log_too_long() }
    }

    /// The log cannot be replayed: an entry does not follow from those before it, or needs a newer build.
    pub fn unreplayable(broken: &impl std::error::Error) -> Self {
        let kind = "urn:kairo:problem:unreplayable";
        let title = "the log cannot be followed";
        Self::new(kind, title, StatusCode::CONFLICT, broken.to_string())
    }

    /// The log can be replayed, but this decision cannot be made again.
    pub fn decision_unreplayable(why: &str) -> Self {
        let kind = "urn:kairo:problem:unreplayable";
        let title = "the log cannot be followed";
        Self::new(kind, title, StatusCode::CONFLICT, format!("the decision cannot be made again: {why}"))
    }

    /// Retrying does not help: an operator has to act.
    fn needs_operator(error: &impl std::error::Error) -> Self {
        tracing::error!(%error, "a request cannot be answered until an operator sees to it");
        let kind = "urn:kairo:problem:internal";
        let title = "internal error";
        Self::new(kind, title, StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    }

    /// A defect, of the gateway or of one of its dependencies.
    pub fn internal(error: &impl std::error::Error) -> Self {
        tracing::error!(%error, "a request could not be answered");
        let kind = "urn:kairo:problem:internal";
        let title = "internal error";
        let detail = "this is not the request's fault; the gateway's log says what went wrong";
        Self::new(kind, title, StatusCode::INTERNAL_SERVER_ERROR, detail)
    }
}

impl From<BusError> for Problem {
    fn from(error: BusError) -> Self {
        match error {
            BusError::TooLarge { .. } => Self::too_large(error.to_string()),
            BusError::Conflict { .. } => Self::unavailable("somebody else changed it at the same time; try again"),
            BusError::Unavailable { .. } => Self::log_unavailable(&error),
            BusError::Refused(_) => Self::needs_operator(&error),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (self.status, [(header::CONTENT_TYPE, "application/problem+json")], body).into_response();
        if let Some(seconds) = self.retry_after() {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds.get()));
        }
        if let Some(position) = self.position {
            response.headers_mut().insert(POSITION, HeaderValue::from(position));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(CHALLENGE));
        }
        // For whoever knows the request's id.
        response.extensions_mut().insert(self);
        response
    }
}

// Serde hands over a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn as_number<S: serde::Serializer>(status: &StatusCode, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_u16(status.as_u16())
}
