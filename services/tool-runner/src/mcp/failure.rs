//! The failures of calls without an answer, and what each implies about the effect.

use std::error::Error;

use rmcp::ServiceError;
use rmcp::model::ErrorCode;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::oauth;
use super::reader::{UnreadableAnswer, shorten_text};
use crate::tool::ToolError;

/// Longest text of a server that is repeated in an error, in characters.
const MAX_REASON_CHARS: usize = 500;

/// Prefix of the library's error for a session that ended before an answer came.
const LOST_SESSION: &str = "streamable HTTP session was re-initialized";

/// The failure of a call before its server answered, or in place of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallFailure {
    /// The server answered with an error of the protocol.
    Refused(ToolError),
    /// The request never left: nothing was begun.
    NotSent(String),
    /// The connection is gone and took the request with it: it may or may not have been carried
    /// out.
    Lost(String),
    /// The server answered, and the answer does not say what came of the call.
    Unreadable(UnreadableAnswer),
    /// Stopped on request.
    Canceled,
}

impl CallFailure {
    /// Converts the failure into the error that the agent sees. A lost call of a tool that can be repeated leaves no
    /// doubt worth a human's time: it failed, and can be called again.
    pub fn into_error(self, server: &str, idempotent: bool) -> ToolError {
        match self {
            Self::Refused(error) => error,
            Self::NotSent(reason) => {
                ToolError::failed(format!("the MCP server {server} could not be reached: {reason}; try again later"))
            }
            Self::Lost(reason) if idempotent => ToolError::failed(format!(
                "the MCP server {server} was lost during the call: {reason}; it can be called again"
            )),
            Self::Lost(reason) => ToolError::in_doubt(format!(
                "the MCP server {server} was lost during the call: {reason}; check whether it had its effect before calling again"
            )),
            Self::Unreadable(answer) if idempotent => ToolError::failed(format!(
                "the MCP server {server} answered {}; it can be called again",
                describe_unreadable(&answer)
            )),
            Self::Unreadable(answer) => ToolError::in_doubt(format!(
                "the MCP server {server} answered {}; check whether it had its effect before calling again",
                describe_unreadable(&answer)
            )),
            Self::Canceled => ToolError::canceled("the MCP server was told to stop; what it did until then stays done"),
        }
    }
}

/// Formats the reason an answer cannot be read, with the text that could be read.
fn describe_unreadable(answer: &UnreadableAnswer) -> String {
    match answer.text.is_empty() {
        true => answer.reason.clone(),
        false => format!("{}, which says: {}", answer.reason, answer.text),
    }
}

/// Classifies the errors of a request that was handed to the connection.
pub fn classify_error(error: &ServiceError) -> CallFailure {
    match error {
        // The library's own words: the call went out in a session that the server does not know any more.
        ServiceError::McpError(error) if error.message.starts_with(LOST_SESSION) => {
            CallFailure::Lost(shorten_text(&error.message, MAX_REASON_CHARS))
        }
        ServiceError::McpError(error) => {
            let message = shorten_text(&error.message, MAX_REASON_CHARS);
            CallFailure::Refused(if error.code == ErrorCode::INVALID_PARAMS {
                ToolError::invalid_arguments(message)
            } else {
                ToolError::failed(message)
            })
        }
        // A request without a valid token is not carried out.
        ServiceError::TransportSend(error) if oauth::refusal_reason(error).is_some() => {
            CallFailure::Refused(ToolError::failed(oauth::refusal_reason(error).unwrap_or_default()))
        }
        ServiceError::TransportSend(error) if never_connected(error) => CallFailure::NotSent(innermost_cause(error)),
        ServiceError::Cancelled { reason } => CallFailure::Refused(ToolError::failed(format!(
            "the server gave the call up: {}",
            reason.as_deref().unwrap_or("it did not say why")
        ))),
        ServiceError::UnexpectedResponse | ServiceError::InputRequiredRoundsExceeded { .. } => {
            CallFailure::Unreadable(UnreadableAnswer::new("with something other than a result", ""))
        }
        ServiceError::TransportSend(error) if needs_sign_in(error) => {
            CallFailure::Refused(ToolError::failed("the server wants to know who calls: give it a valid authorization"))
        }
        // Anything else, also what later versions of the library add: nobody knows.
        error => CallFailure::Lost(innermost_cause(error)),
    }
}

/// Returns true if the connection for the request could not be made at all.
fn never_connected(error: &(dyn Error + 'static)) -> bool {
    error_chain(error).any(|cause| cause.downcast_ref::<reqwest::Error>().is_some_and(reqwest::Error::is_connect))
}

/// Returns true if the server refused the request for lack of a sign-in or a scope.
fn needs_sign_in(error: &(dyn Error + 'static)) -> bool {
    error_chain(error).any(|cause| {
        let http = cause.downcast_ref::<StreamableHttpError<reqwest::Error>>();
        matches!(http, Some(StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_)))
    })
}

/// The innermost cause, which says what happened. The outer ones repeat the URL of the request,
/// and a URL may hold a secret.
pub fn innermost_cause(error: &(dyn Error + 'static)) -> String {
    let cause = error_chain(error).last().unwrap_or(error);
    match cause.downcast_ref::<reqwest::Error>() {
        Some(error) if error.is_timeout() => "the HTTP request timed out".to_owned(),
        Some(_) => "the HTTP request failed".to_owned(),
        None => shorten_text(&cause.to_string(), MAX_REASON_CHARS),
    }
}

fn error_chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
}

#[cfg(test)]
mod tests {
    use rmcp::model::ErrorData;

    use super::*;
    use crate::tool::ToolErrorKind;

    fn kind(error: &ServiceError, idempotent: bool) -> ToolErrorKind {
        classify_error(error).into_error("s", idempotent).kind
    }

    #[test]
    fn a_lost_call_is_in_doubt_unless_it_can_be_repeated() {
        let lost = ServiceError::TransportClosed;
        assert_eq!(kind(&lost, false), ToolErrorKind::InDoubt);
        assert_eq!(kind(&lost, true), ToolErrorKind::Failed);
    }

    #[test]
    fn an_answered_call_is_never_in_doubt() {
        let error = |code| ServiceError::McpError(ErrorData::new(code, "no", None));
        let invalid = error(ErrorCode::INVALID_PARAMS);
        assert_eq!(kind(&invalid, false), ToolErrorKind::InvalidArguments);
        let internal = error(ErrorCode::INTERNAL_ERROR);
        assert_eq!(kind(&internal, false), ToolErrorKind::Failed);
    }

    #[test]
    fn a_call_of_a_session_that_ended_is_in_doubt() {
        let message = format!("{LOST_SESSION} before the response arrived");
        let lost = ServiceError::McpError(ErrorData::new(ErrorCode::INTERNAL_ERROR, message, None));
        assert_eq!(kind(&lost, false), ToolErrorKind::InDoubt);
        assert_eq!(kind(&lost, true), ToolErrorKind::Failed);
    }

    #[test]
    fn an_answer_that_cannot_be_read_says_what_could_be() {
        let unreadable = || CallFailure::Unreadable(UnreadableAnswer::new("with HTTP 502", "bad gateway"));
        let error = unreadable().into_error("s", false);
        assert_eq!(error.kind, ToolErrorKind::InDoubt);
        assert!(error.message.contains("bad gateway"), "{error}");
        assert_eq!(unreadable().into_error("s", true).kind, ToolErrorKind::Failed);
    }

    #[test]
    fn a_call_that_was_never_sent_failed() {
        let error = CallFailure::NotSent("refused".into()).into_error("s", false);
        assert_eq!(error.kind, ToolErrorKind::Failed);
    }
}
