//! Errors for a chat client that gets no answer, in the form of OpenAI's API.

use axum::{
    Json,
    body::to_bytes,
    extract::Request,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use super::turn::TurnFailure;
use crate::problem::Problem;

/// Largest problem of the gateway that is told in this form, in bytes: far more than any has.
const MAX_PROBLEM_BYTES: usize = 1024 * 1024;

/// `{"error": {"message", "type", "param", "code"}}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatError {
    pub status: StatusCode,
    kind: &'static str,
    /// The error and its remedy, for people.
    message: String,
    /// The field that is wrong.
    pub param: Option<String>,
    code: Option<String>,
    /// Seconds after which the same request may succeed.
    retry_after: Option<u64>,
    /// The gateway's problem that it was made from, whose headers are sent, too.
    problem: Option<Box<Problem>>,
}

/// By this header clients' libraries are told whether to send the same request again by themselves.
const SHOULD_RETRY: &str = "x-should-retry";
/// Seconds after which a client may retry if no other time is known.
const RETRY_AFTER: u64 = 5;
/// The longest that a client is told to wait, in seconds.
const LONGEST_RETRY_AFTER: u64 = 86_400;

impl ChatError {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>, code: Option<&str>) -> Self {
        let code = code.map(str::to_owned);
        Self { status, kind, message: message.into(), param: None, code, retry_after: None, problem: None }
    }

    /// The request is wrong.
    pub fn invalid(param: Option<&str>, message: impl Into<String>) -> Self {
        let error = Self::new(StatusCode::BAD_REQUEST, INVALID, message, None);
        Self { param: param.map(str::to_owned), ..error }
    }

    /// The request asks for what there is not.
    pub fn unsupported_parameter(param: &str, message: impl Into<String>) -> Self {
        let error = Self::new(StatusCode::BAD_REQUEST, INVALID, message, Some("unsupported_parameter"));
        Self { param: Some(param.to_owned()), ..error }
    }

    pub fn model_not_found(reason: impl Into<String>) -> Self {
        let error = Self::new(StatusCode::NOT_FOUND, INVALID, reason, Some("model_not_found"));
        Self { param: Some("model".to_owned()), ..error }
    }

    /// The key was sent before, with another request.
    pub fn reused_key(key: &str) -> Self {
        let message = format!(
            "header idempotency-key: another request was sent with {key:?} before; send what was sent then, or choose another key"
        );
        let error = Self::new(StatusCode::CONFLICT, INVALID, message, Some("conflict"));
        Self { param: Some("idempotency-key".to_owned()), ..error }
    }

    pub fn timeout(waited_ms: u64) -> Self {
        let message = format!(
            "no answer within gateway.openai_wait_ms, which is {waited_ms} ms; the agent goes on, the same request \
             again waits for the same answer"
        );
        Self::new(StatusCode::GATEWAY_TIMEOUT, SERVER, message, Some("timeout"))
    }

    /// A turn that ended without an answer.
    pub fn from_failure(failed: &TurnFailure) -> Self {
        let (status, kind, code, passes) = match failed.kind.as_str() {
            "model_rate_limited" => (StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", "rate_limit_exceeded", true),
            kind @ ("model_overloaded" | "model_unavailable" | "model_timeout" | "too_many_turns"
            | "too_many_chains" | "thread_moved_on") => (StatusCode::SERVICE_UNAVAILABLE, SERVER, kind, true),
            "context_too_long" => (StatusCode::BAD_REQUEST, INVALID, "context_length_exceeded", false),
            "model_out_of_credit" | "cap_reached" | "team_over_budget" | "too_many_model_calls" => {
                (StatusCode::TOO_MANY_REQUESTS, "insufficient_quota", "insufficient_quota", false)
            }
            "model_filtered" => (StatusCode::BAD_REQUEST, INVALID, "content_filter", false),
            kind @ ("team_paused" | "team_archived") => (StatusCode::CONFLICT, INVALID, kind, false),
            kind @ "unknown_thread" => (StatusCode::NOT_FOUND, INVALID, kind, false),
            kind @ ("model_unauthorized"
            | "model_not_found"
            | "model_refused"
            | "malformed_answer"
            | "malformed_tool_call"
            | "schema_refused") => (StatusCode::BAD_GATEWAY, SERVER, kind, false),
            kind => (StatusCode::INTERNAL_SERVER_ERROR, SERVER, kind, false),
        };
        let seconds = failed.retry_after_ms.div_ceil(1_000).clamp(1, LONGEST_RETRY_AFTER);
        let seconds = if failed.retry_after_ms == 0 { RETRY_AFTER } else { seconds };
        let param = (code == "context_length_exceeded").then(|| "messages".to_owned());
        let error = Self::new(status, kind, failed.text.clone(), Some(code));
        Self { param, retry_after: passes.then_some(seconds), ..error }
    }

    /// There is no such endpoint here: says what to use instead.
    fn unknown_path(path: &str) -> Self {
        let advice = match path.split('/').nth(2).unwrap_or_default() {
            "responses" => {
                "the Responses API is not served here; use POST /v1/chat/completions, which OpenAI's libraries call \
                            chat.completions"
            }
            "completions" => {
                "legacy completions are not served here; use POST /v1/chat/completions, which OpenAI's libraries call \
                              chat.completions"
            }
            "embeddings" => {
                "embeddings are not served here; ask a model server for them directly. An agent's memory is searched \
                             with GET /v1/search"
            }
            _ => "this part of OpenAI's API is not served here; use POST /v1/chat/completions and GET /v1/models",
        };
        Self::new(StatusCode::NOT_FOUND, INVALID, advice, Some("unknown_url"))
    }

    /// Builds the error for a stream whose text is not the beginning of the committed answer.
    pub fn answer_restarted() -> Self {
        let message = "the agent began its answer anew, and what was sent so far is not its beginning; the same request \
                       again gets the answer";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, SERVER, message, Some("answer_began_anew"))
    }

    pub fn body(&self) -> Value {
        let Self { message, kind, param, code, .. } = self;
        json!({ "error": { "message": message, "type": kind, "param": param, "code": code } })
    }

    /// A problem, as it is told to other clients.
    fn from_problem_json(status: StatusCode, problem: &Value) -> Self {
        let text = |name: &str| problem.get(name).and_then(Value::as_str).unwrap_or_default();
        let errors = problem.get("errors").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let of_field = |error: &Value| {
            let text = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            (text("field"), text("expected"))
        };
        let fields: Vec<(String, String)> = errors.iter().map(of_field).collect();
        let mut message = text("detail").to_owned();
        for (field, expected) in &fields {
            message.push_str(&format!("; {field}: expected {expected}"));
        }
        let code = text("type").rsplit(':').next().unwrap_or_default().replace('-', "_");
        let kind = match status.as_u16() {
            401 => "authentication_error",
            403 => "permission_error",
            429 => "rate_limit_error",
            500.. => SERVER,
            _ => INVALID,
        };
        let error = Self::new(status, kind, message, Some(code.as_str()).filter(|code| !code.is_empty()));
        Self { param: fields.into_iter().next().map(|(field, _)| field), ..error }
    }
}

const INVALID: &str = "invalid_request_error";
const SERVER: &str = "server_error";

impl From<Problem> for ChatError {
    fn from(problem: Problem) -> Self {
        let error = Self::from_problem_json(problem.status, &serde_json::to_value(&problem).unwrap_or_default());
        Self { problem: Some(Box::new(problem)), ..error }
    }
}

impl IntoResponse for ChatError {
    fn into_response(self) -> Response {
        match self.problem {
            // Is translated on its way out.
            Some(problem) => problem.into_response(),
            None => {
                let mut response = (self.status, Json(self.body())).into_response();
                let is_passing = self.retry_after.is_some();
                if let Some(seconds) = self.retry_after {
                    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
                }
                // What trying again cannot help costs nobody another turn. Clients try again what is answered with one of these.
                let is_tried_again = match self.status {
                    StatusCode::GATEWAY_TIMEOUT => false,
                    StatusCode::TOO_MANY_REQUESTS | StatusCode::CONFLICT => true,
                    status => !status.is_client_error(),
                };
                if is_tried_again && !is_passing {
                    response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("false"));
                }
                response
            }
        }
    }
}

/// Returns true for a path of chat clients.
pub fn is_chat_path(path: &str) -> bool {
    path.starts_with("/v1/chat/") || path == "/v1/models" || path.starts_with("/v1/models/")
}

/// Parts of OpenAI's API that are not served: their clients are told so in their form.
const ELSEWHERE: [&str; 14] = [
    "responses",
    "completions",
    "embeddings",
    "moderations",
    "images",
    "audio",
    "files",
    "uploads",
    "batches",
    "fine_tuning",
    "assistants",
    "vector_stores",
    "realtime",
    "engines",
];

fn is_unserved_path(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.next() == Some("") && parts.next() == Some("v1") && parts.next().is_some_and(|part| ELSEWHERE.contains(&part))
}

/// Tells chat clients in their form what any part of the gateway has to object to.
pub async fn translate_problems(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let elsewhere = is_unserved_path(path).then(|| ChatError::unknown_path(path));
    let theirs = is_chat_path(path) || elsewhere.is_some();
    let response = next.run(request).await;
    let is_problem = |headers: &HeaderMap| {
        headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes() == b"application/problem+json")
    };
    if !theirs || !is_problem(response.headers()) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let problem = to_bytes(body, MAX_PROBLEM_BYTES).await.unwrap_or_default();
    let told = ChatError::from_problem_json(parts.status, &serde_json::from_slice(&problem).unwrap_or_default());
    let error = elsewhere.filter(|_| parts.status == StatusCode::NOT_FOUND).unwrap_or(told);
    parts.headers.remove(header::CONTENT_TYPE);
    parts.headers.remove(header::CONTENT_LENGTH);
    (parts.status, parts.headers, Json(error.body())).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::FieldError;

    #[test]
    fn a_problem_is_told_in_the_form_of_the_api() {
        let wrong = FieldError { field: "user".to_owned(), expected: "a name".to_owned(), found: None };
        let body = ChatError::from(Problem::invalid_fields(vec![wrong])).body();
        assert_eq!(
            body,
            json!({ "error": {
                "message": "correct these fields: user; user: expected a name",
                "type": "invalid_request_error",
                "param": "user",
                "code": "invalid",
            } })
        );
        let away = ChatError::from(Problem::unavailable("nats does not answer"));
        assert_eq!((away.kind, away.code.as_deref()), ("server_error", Some("unavailable")));
        assert_eq!(away.into_response().headers()["retry-after"], "1");
    }

    #[test]
    fn a_failed_turn_is_told_by_its_kind() {
        for (kind, retry_after_ms, status, code, retry_after) in [
            ("model_rate_limited", 3_500, 429, "rate_limit_exceeded", Some("4")),
            ("model_rate_limited", 0, 429, "rate_limit_exceeded", Some("5")),
            ("model_overloaded", 1, 503, "model_overloaded", Some("1")),
            ("model_timeout", u64::MAX, 503, "model_timeout", Some("86400")),
            ("context_too_long", 9, 400, "context_length_exceeded", None),
            ("model_out_of_credit", 9, 429, "insufficient_quota", None),
            ("cap_reached", 0, 429, "insufficient_quota", None),
            ("team_over_budget", 0, 429, "insufficient_quota", None),
            ("team_paused", 0, 409, "team_paused", None),
            ("model_unauthorized", 0, 502, "model_unauthorized", None),
            ("unknown_thread", 0, 404, "unknown_thread", None),
            ("too_many_turns", 0, 503, "too_many_turns", Some("5")),
            ("invalid_chain", 0, 500, "invalid_chain", None),
        ] {
            let failed = TurnFailure { kind: kind.to_owned(), text: "why".to_owned(), retry_after_ms };
            let error = ChatError::from_failure(&failed);
            assert_eq!((error.status.as_u16(), error.code.as_deref()), (status, Some(code)));
            assert_eq!(error.body()["error"]["message"], "why");
            let response = error.into_response();
            let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
            assert_eq!(header("retry-after").as_deref(), retry_after, "{kind}");
            let is_final = retry_after.is_none() && !matches!(status, 400 | 404);
            assert_eq!(header(SHOULD_RETRY).as_deref(), is_final.then_some("false"), "{kind}");
        }
    }

    #[test]
    fn parts_of_the_api_that_are_not_served_are_known() {
        for (path, expected) in [
            ("/v1/responses", true),
            ("/v1/responses/x", true),
            ("/v1/embeddings", true),
            ("/v1/search", false),
            ("/v1", false),
        ] {
            assert_eq!(is_unserved_path(path), expected, "{path}");
        }
        assert!(ChatError::unknown_path("/v1/responses").message.contains("/v1/chat/completions"));
    }
}
