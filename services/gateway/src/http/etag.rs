//! Answers that a client has already (RFC 9110, 8.8.3 and 13.1.2): their tag, and 304 instead of the same once more.

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::Response,
};
use data_encoding::BASE64URL_NOPAD;
use sha2::{Digest, Sha256};

/// Bytes of a digest that are told: enough that no two answers have the same by chance.
const TOLD: usize = 16;

/// The tag of what is the same byte by byte.
pub fn strong(content: &[u8]) -> HeaderValue {
    digest_tag("", content)
}

/// The tag of an answer that means the same as long as this part of it is the same.
pub fn weak(content: &[u8]) -> HeaderValue {
    digest_tag("W/", content)
}

fn digest_tag(prefix: &str, content: &[u8]) -> HeaderValue {
    let digest = Sha256::digest(content);
    let told = BASE64URL_NOPAD.encode(digest.get(..TOLD).unwrap_or(&digest));
    // Nothing but letters, digits, - and _ between the quotes.
    HeaderValue::try_from(format!("{prefix}\"{told}\"")).unwrap_or(HeaderValue::from_static("W/\"\""))
}

/// Answers 304, without a body, whoever has the answer already.
pub async fn answer_not_modified(request: Request, next: Next) -> Response {
    let asks = matches!(*request.method(), Method::GET | Method::HEAD);
    let held = asks.then(|| if_none_match_values(request.headers())).filter(|held| !held.is_empty());
    let response = next.run(request).await;
    let (Some(held), StatusCode::OK) = (held, response.status()) else { return response };
    let tag = response.headers().get(header::ETAG).and_then(|tag| tag.to_str().ok());
    if !tag.is_some_and(|tag| held.iter().any(|held| matches_tag(held, tag))) {
        return response;
    }
    let (mut head, _) = response.into_parts();
    head.status = StatusCode::NOT_MODIFIED;
    head.headers.remove(header::CONTENT_TYPE);
    head.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(head, Body::empty())
}

/// The values of `If-None-Match`.
fn if_none_match_values(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(header::IF_NONE_MATCH).iter();
    values.filter_map(|value| value.to_str().ok()).map(str::to_owned).collect()
}

/// Returns true if a list of tags, or `*` for any, holds this one, whether or not one of the two is weak. Anything
/// after an element that is no tag is ignored.
fn matches_tag(list: &str, tag: &str) -> bool {
    let opaque = tag.strip_prefix("W/").unwrap_or(tag);
    list.trim() == "*" || parse_tags(list).any(|held| held == opaque)
}

/// The tags of a list with their quotes, which may hold commas, and without their weakness.
fn parse_tags(list: &str) -> impl Iterator<Item = &str> {
    let mut rest = list;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        rest = rest.strip_prefix("W/").unwrap_or(rest);
        let length = rest.strip_prefix('"')?.find('"')? + 2;
        let (tag, behind) = rest.split_at_checked(length)?;
        rest = behind;
        Some(tag)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_has_the_same_tag_and_nothing_else_has() {
        let tag = |content: &[u8]| strong(content).to_str().unwrap().to_owned();
        assert_eq!(tag(b"a"), tag(b"a"));
        assert_ne!(tag(b"a"), tag(b"b"));
        assert_eq!(weak(b"a").to_str().unwrap(), format!("W/{}", tag(b"a")));
        assert_eq!(tag(b"a").len(), 24);
    }

    #[test]
    fn tags_are_compared_weakly() {
        for list in [r#""a""#, r#"W/"a""#, r#""b", "a""#, r#""b,"  ,,W/"a","c""#, "*", " * "] {
            assert!(matches_tag(list, r#""a""#) && matches_tag(list, r#"W/"a""#), "{list}");
        }
        for list in ["", "a", r#""A""#, r#""b", "c""#, r#""b,a""#, r#""a"#, r#"w/"a""#, r#"x "a""#, r#""*""#, "*, *"] {
            assert!(!matches_tag(list, r#""a""#), "{list}");
        }
        assert!(matches_tag(r#""x", "a,b""#, r#""a,b""#));
    }
}
