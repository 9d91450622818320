//! Reads HTTP responses: their bodies, and the authorization they ask for.

use futures::StreamExt as _;
use reqwest::header::{CONTENT_TYPE, HeaderMap, WWW_AUTHENTICATE};
use reqwest::{Response, StatusCode};
use rmcp::transport::streamable_http_client::{AuthRequiredError, InsufficientScopeError, StreamableHttpError};

/// Redirects followed, each on the same host and with the same method.
const MAX_REDIRECTS: usize = 10;
const EVENT_STREAM: &str = "text/event-stream";

/// The part of a body that was read.
pub struct ResponseBody {
    pub bytes: Vec<u8>,
    /// The reason the body is incomplete; none if it is whole.
    pub failure: Option<String>,
}

impl ResponseBody {
    pub fn is_empty(&self) -> bool {
        self.failure.is_none() && self.bytes.trim_ascii().is_empty()
    }
}

pub async fn read_body(response: Response, max_bytes: usize) -> ResponseBody {
    let mut pieces = response.bytes_stream();
    let mut body = ResponseBody { bytes: Vec::new(), failure: None };
    while let Some(piece) = pieces.next().await {
        match piece {
            Ok(piece) => body.bytes.extend_from_slice(&piece),
            Err(_) => {
                body.failure = Some("a body that broke off".to_owned());
                break;
            }
        }
        if body.bytes.len() > max_bytes {
            body.bytes.truncate(max_bytes);
            body.failure = Some(format!("a body longer than {max_bytes} bytes"));
            break;
        }
    }
    body
}

/// A challenge to sign in is passed on as one.
pub fn check_authorization(response: &Response) -> Result<(), StreamableHttpError<reqwest::Error>> {
    let challenge = || header_text(response, WWW_AUTHENTICATE.as_str());
    match response.status() {
        // Also without the header that RFC 9110 wants: nothing was carried out.
        StatusCode::UNAUTHORIZED => {
            Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge().unwrap_or_default())))
        }
        StatusCode::FORBIDDEN => match challenge() {
            Some(challenge) => {
                let scope = scope_of(&challenge);
                Err(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(challenge, scope)))
            }
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// The scope that a challenge asks for.
fn scope_of(challenge: &str) -> Option<String> {
    let (_, scope) = challenge.split_once("scope=")?;
    let scope = match scope.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => scope.split([',', ' ']).next(),
    };
    scope.filter(|scope| !scope.is_empty()).map(str::to_owned)
}

pub fn is_event_stream(response: &Response) -> bool {
    header_text(response, CONTENT_TYPE.as_str())
        .is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with(EVENT_STREAM))
}

pub fn header_text(response: &Response, name: &str) -> Option<String> {
    let headers: &HeaderMap = response.headers();
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// A redirect to another origin would carry the session and the operator's headers there, and one that changes the method
/// loses the message: both are answers as any other.
pub fn redirect_policy() -> reqwest::redirect::Policy {
    reqwest::redirect::Policy::custom(|attempt| {
        let keeps_body = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        let first = attempt.previous().first();
        let same_origin = first.is_some_and(|first| first.origin() == attempt.url().origin());
        if !(keeps_body && same_origin) {
            attempt.stop()
        } else if attempt.previous().len() > MAX_REDIRECTS {
            attempt.error("too many redirects")
        } else {
            attempt.follow()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scope_of_a_challenge() {
        for (challenge, scope) in [
            (
                r#"Bearer error="insufficient_scope", scope="files:read files:write", realm="x""#,
                Some("files:read files:write"),
            ),
            ("Bearer scope=files:read, realm=x", Some("files:read")),
            ("Bearer scope=\"\"", None),
            ("Bearer", None),
        ] {
            assert_eq!(scope_of(challenge).as_deref(), scope, "{challenge}");
        }
    }

    #[test]
    fn blanks_are_an_empty_body() {
        let body = |text: &str, failure: Option<&str>| ResponseBody {
            bytes: text.into(),
            failure: failure.map(str::to_owned),
        };
        assert!(body(" \r\n", None).is_empty());
        assert!(!body("x", None).is_empty() && !body("", Some("it broke off")).is_empty());
    }
}
