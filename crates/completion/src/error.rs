//! Errors of endpoints: classified by HTTP status first, by body second, whatever its form.

mod body;
mod classification;
mod context_overflow;
mod refused_feature;
mod retry_after;
mod words;

use jiff::Timestamp;
use kairo_proto::v1::CompletionError;
use serde_json::Value;

use self::{body::ErrorBody, context_overflow::Overflow};
pub use self::{refused_feature::RefusedFeature, words::readable_text};

/// The kind of failure of a model call. Each kind has one policy, which `docs/endpoints.md` describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    Unauthorized,
    OutOfCredit,
    NotFound,
    ContextTooLong,
    RateLimited,
    Overloaded,
    Unavailable,
    Timeout,
    SchemaRefused,
    Filtered,
    Refused,
    MalformedAnswer,
}

impl ErrorKind {
    /// As in `CompletionError.kind`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unauthorized => "model_unauthorized",
            Self::OutOfCredit => "model_out_of_credit",
            Self::NotFound => "model_not_found",
            Self::ContextTooLong => "context_too_long",
            Self::RateLimited => "model_rate_limited",
            Self::Overloaded => "model_overloaded",
            Self::Unavailable => "model_unavailable",
            Self::Timeout => "model_timeout",
            Self::SchemaRefused => "schema_refused",
            Self::Filtered => "model_filtered",
            Self::Refused => "model_refused",
            Self::MalformedAnswer => "malformed_answer",
        }
    }

    /// Returns true if the same request may succeed at the same endpoint later.
    pub fn is_transient(self) -> bool {
        match self {
            Self::RateLimited | Self::Overloaded | Self::Unavailable | Self::Timeout | Self::MalformedAnswer => true,
            Self::Unauthorized
            | Self::OutOfCredit
            | Self::NotFound
            | Self::ContextTooLong
            | Self::SchemaRefused
            | Self::Filtered
            | Self::Refused => false,
        }
    }
}

/// The reason there is no answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelError {
    pub kind: ErrorKind,
    /// For people: no markup, but not yet bounded, and with whatever keys the endpoint quotes.
    pub message: String,
    /// The HTTP status; 0 where there was none.
    pub status: u16,
    /// Time that the endpoint asks to wait before the next try, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// Tokens that the model takes at once, as the endpoint says.
    pub context_tokens: Option<u64>,
    /// Tokens that the endpoint takes in a minute, if the request by itself is more: to wait is of no use.
    pub minute_tokens: Option<u64>,
    /// The feature of the request that the endpoint refuses: without it, it may answer.
    pub refused: Option<RefusedFeature>,
    /// The answer ended without any sign that it was whole.
    pub is_unmarked_end: bool,
}

impl ModelError {
    pub fn new(kind: ErrorKind, message: String) -> Self {
        Self {
            kind,
            message,
            status: 0,
            retry_after_ms: None,
            context_tokens: None,
            minute_tokens: None,
            refused: None,
            is_unmarked_end: false,
        }
    }
}

impl From<ModelError> for CompletionError {
    fn from(error: ModelError) -> Self {
        Self {
            kind: error.kind.word().to_owned(),
            message: error.message,
            transient: error.kind.is_transient(),
            status: error.status.into(),
            retry_after_ms: error.retry_after_ms.unwrap_or_default(),
            context_tokens: error.context_tokens.unwrap_or_default(),
        }
    }
}

/// Reads the error from an HTTP answer that is no success. `headers` are pairs of a name in lower case and a value;
/// `now` is the time at which it came, which dates within it are compared with.
pub fn from_http<'h>(
    status: u16,
    headers: impl IntoIterator<Item = (&'h str, &'h str)>,
    body: &[u8],
    now: Option<Timestamp>,
) -> ModelError {
    let said = ErrorBody::from_bytes(body);
    let headers: Vec<_> = headers.into_iter().collect();
    let mut error = error_from_body(status, &said);
    if error.kind.is_transient() {
        error.retry_after_ms = retry_after::from_headers(&headers, now).or(error.retry_after_ms);
    }
    let reason = words::status_reason(status);
    error.message = match said.message.is_empty() {
        true => format!("the endpoint answered {status}{reason}"),
        false => format!("the endpoint answered {status}{reason}: {}", said.message),
    };
    error
}

/// The error within an answer that was to be a success; none where it is not one.
pub(crate) fn in_band_error(value: &Value, event: &str) -> Option<ModelError> {
    let said = ErrorBody::find_in_band(value, event)?;
    let mut error = error_from_body(0, &said);
    let message = if said.message.is_empty() { "no reason is given" } else { &said.message };
    error.message = format!("the endpoint broke off: {message}");
    Some(error)
}

fn error_from_body(status: u16, said: &ErrorBody) -> ModelError {
    let overflow = context_overflow::overflow(said);
    let kind = classification::kind(status, said, &overflow);
    let mut error = ModelError::new(kind, String::new());
    error.status = if status == 0 { said.status } else { status };
    if kind.is_transient() {
        error.retry_after_ms = retry_after::from_body(said);
    }
    if let Overflow::Request { limit, .. } = overflow {
        error.context_tokens = limit.filter(|_| kind == ErrorKind::ContextTooLong);
    }
    if let Overflow::Minute { limit, asked } = overflow {
        error.minute_tokens =
            limit.filter(|limit| kind == ErrorKind::RateLimited && asked.is_some_and(|asked| asked > *limit));
    }
    if matches!(kind, ErrorKind::SchemaRefused | ErrorKind::Refused | ErrorKind::NotFound) {
        error.refused = refused_feature::find(said);
    } else if kind == ErrorKind::Unavailable {
        // llama.cpp answers 500 where a chat template refuses a conversation.
        error.refused = refused_feature::find(said).filter(RefusedFeature::is_form);
    }
    error
}

#[cfg(test)]
mod tests;
