//! What a chat client is told when it gets no answer, in the form of OpenAI's API.

use axum::{
    Json,
    body::to_bytes,
    extract::Request,
    http::{HeaderMap, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use crate::problem::Problem;

/// Largest problem of the gateway that is told in this form, in bytes: far more than any has.
const MAX_PROBLEM_BYTES: usize = 1024 * 1024;

/// `{"error": {"message", "type", "param", "code"}}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub status: StatusCode,
    kind: &'static str,
    /// What happened and what to do, for people.
    message: String,
    /// The field that is wrong.
    pub param: Option<String>,
    code: Option<String>,
    /// What it was before: its headers are told, too.
    problem: Option<Box<Problem>>,
}

impl Error {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>, code: Option<&str>) -> Self {
        let code = code.map(str::to_owned);
        Self { status, kind, message: message.into(), param: None, code, problem: None }
    }

    /// The request is wrong.
    pub fn invalid(param: Option<&str>, message: impl Into<String>) -> Self {
        let error = Self::new(StatusCode::BAD_REQUEST, INVALID, message, None);
        Self { param: param.map(str::to_owned), ..error }
    }

    /// The request asks for what there is not.
    pub fn unsupported(param: &str, message: impl Into<String>) -> Self {
        let error = Self::new(StatusCode::BAD_REQUEST, INVALID, message, Some("unsupported_parameter"));
        Self { param: Some(param.to_owned()), ..error }
    }

    pub fn model_not_found(reason: impl Into<String>) -> Self {
        let error = Self::new(StatusCode::NOT_FOUND, INVALID, reason, Some("model_not_found"));
        Self { param: Some("model".to_owned()), ..error }
    }

    pub fn timeout(waited_ms: u64) -> Self {
        let message = format!(
            "no answer within gateway.openai_wait_ms, which is {waited_ms} ms; the agent goes on, the same request \
             again waits for the same answer"
        );
        Self::new(StatusCode::GATEWAY_TIMEOUT, SERVER, message, Some("timeout"))
    }

    /// What was streamed is not what was committed.
    pub fn began_anew() -> Self {
        let message = "the agent began its answer anew, and what was sent so far is not its beginning; the same request \
                       again gets the answer";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, SERVER, message, Some("answer_began_anew"))
    }

    pub fn body(&self) -> Value {
        let Self { message, kind, param, code, .. } = self;
        json!({ "error": { "message": message, "type": kind, "param": param, "code": code } })
    }

    /// A problem, as it is told to other clients.
    fn of(status: StatusCode, problem: &Value) -> Self {
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

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        let error = Self::of(problem.status, &serde_json::to_value(&problem).unwrap_or_default());
        Self { problem: Some(Box::new(problem)), ..error }
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        match self.problem {
            // Is translated on its way out.
            Some(problem) => problem.into_response(),
            None => (self.status, Json(self.body())).into_response(),
        }
    }
}

/// Whether this is a path of chat clients.
pub fn is_theirs(path: &str) -> bool {
    path.starts_with("/v1/chat/") || path == "/v1/models" || path.starts_with("/v1/models/")
}

/// Tells chat clients in their form what any part of the gateway has to object to.
pub async fn translate(request: Request, next: Next) -> Response {
    let theirs = is_theirs(request.uri().path());
    let response = next.run(request).await;
    let is_problem = |headers: &HeaderMap| {
        headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes() == b"application/problem+json")
    };
    if !theirs || !is_problem(response.headers()) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let problem = to_bytes(body, MAX_PROBLEM_BYTES).await.unwrap_or_default();
    let error = Error::of(parts.status, &serde_json::from_slice(&problem).unwrap_or_default());
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
        let body = Error::from(Problem::invalid(vec![wrong])).body();
        assert_eq!(
            body,
            json!({ "error": {
                "message": "correct these fields: user; user: expected a name",
                "type": "invalid_request_error",
                "param": "user",
                "code": "invalid",
            } })
        );
        let away = Error::from(Problem::unavailable("nats does not answer"));
        assert_eq!((away.kind, away.code.as_deref()), ("server_error", Some("unavailable")));
        assert_eq!(away.into_response().headers()["retry-after"], "1");
    }
}
