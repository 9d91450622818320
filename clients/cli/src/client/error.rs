//! Errors of requests to the gateway.

use std::fmt;

use reqwest::StatusCode;
use serde::{Deserialize, Serialize};

/// Every text says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("{address:?} is not the address of a gateway: give one such as http://127.0.0.1:7420")]
    Address { address: String },

    #[error("cannot set up HTTP: {0}")]
    Setup(#[source] reqwest::Error),

    #[error(
        "no answer from the gateway at {url} ({}): start Kairo with ./scripts/up, or name a running gateway with --url or KAIRO_URL",
        root_cause(source)
    )]
    Unreachable {
        url: String,
        #[source]
        source: reqwest::Error,
    },

    #[error("{problem}")]
    Refused { status: u16, problem: Box<Problem> },

    #[error("the gateway at {url} answered what cannot be read ({reason}): use a kairo and a gateway of one version")]
    Answer { url: String, reason: String },
}

/// The gateway's refusal as RFC 9457 problem details; any part of them may be missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Problem {
    pub title: String,
    pub detail: String,
    /// Every field that is wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<WrongField>,
}

/// One field of a request that is wrong.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WrongField {
    pub field: String,
    pub expected: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
}

impl Problem {
    /// Reads the problem details of a refusal; without any, the title is the status.
    pub(super) fn from_response(status: StatusCode, body: &[u8]) -> Self {
        let problem: Self = serde_json::from_slice(body).unwrap_or_default();
        if problem.title.is_empty() && problem.detail.is_empty() {
            return Self { title: status.to_string(), ..problem };
        }
        problem
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.title)?;
        if self.errors.is_empty() {
            let colon = if self.title.is_empty() || self.detail.is_empty() { "" } else { ": " };
            return write!(out, "{colon}{}", self.detail);
        }
        for (index, WrongField { field, expected, found }) in self.errors.iter().enumerate() {
            let before = if index == 0 { ": " } else { "; " };
            write!(out, "{before}{field}: expected {expected}")?;
            found.iter().try_for_each(|found| write!(out, ", found {found:?}"))?;
        }
        Ok(())
    }
}

/// Returns the root cause, which HTTP libraries wrap in descriptions of their own.
fn root_cause(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    match error.is_timeout() {
        true => "it took too long".to_owned(),
        false => innermost.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_every_wrong_field() {
        let body = br#"{"type": "urn:x", "title": "invalid request", "status": 400, "detail": "correct these fields: user",
            "errors": [{"field": "user", "expected": "a name", "found": "Ann"}, {"field": "text", "expected": "words"}]}"#;
        let problem = Problem::from_response(StatusCode::BAD_REQUEST, body);
        assert_eq!(problem.to_string(), "invalid request: user: expected a name, found \"Ann\"; text: expected words");
    }

    #[test]
    fn a_problem_without_fields_says_its_detail() {
        let problem =
            Problem::from_response(StatusCode::NOT_FOUND, br#"{"title": "unknown path", "detail": "GET / lists"}"#);
        assert_eq!(problem.to_string(), "unknown path: GET / lists");
    }

    #[test]
    fn a_refusal_without_details_says_its_status() {
        assert_eq!(Problem::from_response(StatusCode::BAD_GATEWAY, b"<html>").to_string(), "502 Bad Gateway");
    }
}
