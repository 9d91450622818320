//! Read consistency: how fresh an answer of the read model must be, and how fresh it is.
//!
//! A command is answered with its place in the log. A query that names it, as `at_least` or in the header
//! `Kairo-At-Least`, sees what the command did: it waits until the read model has come as far. Every answer names the
//! position at which all of it was read, in the header `Kairo-Position` and as `position`.

use std::{convert::Infallible, time::Duration};

use axum::{
    extract::FromRequestParts,
    http::{HeaderName, HeaderValue, header, request::Parts},
    response::{IntoResponse, Response},
};
use kairo_core::sharing::QuotaHolder;
use kairo_read_model::{NotFresh, ReadSnapshot};
use serde::Serialize;
use url::form_urlencoded;

use super::{Gateway, etag, query};
use crate::{
    config::GatewayConfig,
    fields::{RequestFields, parse_text, query_value},
    problem::{FieldError, Problem},
};

/// The header of an answer that names its position.
pub const POSITION: HeaderName = HeaderName::from_static("kairo-position");
/// The header of a request that stands for the field `at_least`.
pub const AT_LEAST: &str = "Kairo-At-Least";
const SEQUENCE: &str = "a sequence";
/// The holder of requests for which no caller was let in.
const NOBODY: &str = "nobody";

/// A request that is answered from the read model.
#[derive(Debug)]
pub struct ReadRequest {
    /// The URL's query, without the fields that are read here.
    query: String,
    /// The sequence that the answer must take account of; 0 for an answer as things stand.
    at_least: u64,
    /// The longest time to wait for that sequence.
    wait: Duration,
    /// The holder whose share of the read model's connections is used.
    holder: QuotaHolder,
    /// Errors in the fields that are read here.
    errors: Vec<FieldError>,
}

impl FromRequestParts<Gateway> for ReadRequest {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, Infallible> {
        let header = parts.headers.get(AT_LEAST).map(|sequence| sequence.to_str().unwrap_or("unreadable"));
        let holder = parts.extensions.get::<QuotaHolder>().cloned();
        let asked = Self::from_parts(parts.uri.query(), header, &gateway.config);
        Ok(Self { holder: holder.unwrap_or(asked.holder), ..asked })
    }
}

impl ReadRequest {
    fn from_parts(url_query: Option<&str>, header: Option<&str>, config: &GatewayConfig) -> Self {
        let mut fresh = form_urlencoded::Serializer::new(String::new());
        let mut rest = form_urlencoded::Serializer::new(String::new());
        for (field, value) in form_urlencoded::parse(url_query.unwrap_or_default().as_bytes()) {
            let is_here = matches!(field.as_ref(), "at_least" | "wait_ms");
            if is_here { &mut fresh } else { &mut rest }.append_pair(&field, &value);
        }
        let mut fields = RequestFields::from_query(Some(&fresh.finish()));
        let at_least = fields.optional("at_least", SEQUENCE, query_value(parse_text));
        let longest = config.freshness_wait_ms;
        let fits = |text: &str| parse_text(text).filter(|wait: &u64| *wait <= longest);
        let wait = fields.optional("wait_ms", format!("0 to {longest}"), query_value(fits));
        let named = header.filter(|text| !text.is_empty()).map(parse_text);
        if named == Some(None) {
            fields.reject(AT_LEAST, SEQUENCE);
        }
        Self {
            query: rest.finish(),
            // Who names two wants both.
            at_least: at_least.max(named.flatten()).unwrap_or(0),
            wait: Duration::from_millis(wait.unwrap_or(longest)),
            holder: QuotaHolder::for_group(NOBODY),
            errors: fields.complete(|| Some(())).map_or_else(|problem| problem.errors, |()| Vec::new()),
        }
    }

    /// Returns what `read` makes of the other fields, or all errors together.
    pub fn parse_with<T>(&self, read: impl FnOnce(Option<&str>) -> Result<T, Problem>) -> Result<T, Problem> {
        match read(Some(&self.query)) {
            Ok(_) if !self.errors.is_empty() => Err(Problem::invalid_fields(self.errors.clone())),
            Err(problem) if !problem.errors.is_empty() => {
                Err(Problem::invalid_fields([problem.errors, self.errors.clone()].concat()))
            }
            read => read,
        }
    }

    /// There are no other fields.
    pub fn reject_other_fields(&self) -> Result<(), Problem> {
        self.parse_with(|query| RequestFields::from_query(query).complete(|| Some(())))
    }

    /// The sequence that the answer must take account of, and how long to wait for it.
    pub fn freshness(&self) -> (u64, Duration) {
        (self.at_least, self.wait)
    }

    /// Returns the holder whose share of the read model's connections is used.
    pub fn holder(&self) -> &QuotaHolder {
        &self.holder
    }

    /// Returns the snapshot to read the answer from, once it is as fresh as the request asks for.
    pub async fn snapshot(&self, gateway: &Gateway) -> Result<ReadSnapshot, Problem> {
        if self.at_least == 0 {
            let model = gateway.read_model.for_holder(self.holder.clone());
            return query::await_answer(gateway, model.snapshot()).await;
        }
        snapshot_at_least(gateway, &self.holder, self.at_least, self.wait).await
    }
}

/// The read model, for whoever asks, once it takes account of the message of this sequence, which is waited for no longer than
/// `wait`.
pub async fn snapshot_at_least(
    gateway: &Gateway,
    holder: &QuotaHolder,
    sequence: u64,
    wait: Duration,
) -> Result<ReadSnapshot, Problem> {
    let limit = wait + Duration::from_millis(gateway.config.query_timeout_ms);
    let model = gateway.read_model.for_holder(holder.clone());
    await_fresh_answer(gateway, limit, model.snapshot_at_least(sequence, wait)).await
}

/// Waits up to `limit` for an answer that is as fresh as the request asks for.
pub async fn await_fresh_answer<T>(
    gateway: &Gateway,
    limit: Duration,
    asked: impl Future<Output = Result<T, NotFresh>>,
) -> Result<T, Problem> {
    match tokio::time::timeout(limit, asked).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(NotFresh::Behind { position, wanted })) => Err(Problem::read_model_behind(position, wanted)),
        Ok(Err(NotFresh::Unanswered(error))) => Err(query::read_error_problem(gateway, &error)),
        Err(late) => Err(Problem::read_model_unavailable(&late)),
    }
}

/// An answer that says how fresh it is.
#[derive(Debug)]
pub struct PositionedResponse<T> {
    answer: T,
    position: u64,
}

impl<T: Serialize> PositionedResponse<T> {
    /// Builds an answer read from the snapshot; `answer` must serialize to a JSON object.
    pub fn from_snapshot(snapshot: &ReadSnapshot, answer: T) -> Self {
        Self::at_position(snapshot.position(), answer)
    }

    /// Builds an answer that covers the log up to this position; `answer` must serialize to a JSON object.
    pub fn at_position(position: u64, answer: T) -> Self {
        Self { answer, position }
    }

    /// Returns the body, and a tag of the answer without its position, so that it stays the same while the log goes on.
    fn body_and_tag(&self) -> serde_json::Result<(Vec<u8>, HeaderValue)> {
        let mut body = serde_json::to_vec(&self.answer)?;
        let tag = etag::weak(&body);
        body.pop();
        let comma = if body.len() > 1 { "," } else { "" };
        body.extend_from_slice(format!("{comma}\"position\":{}}}", self.position).as_bytes());
        Ok((body, tag))
    }
}

impl<T: Serialize> IntoResponse for PositionedResponse<T> {
    fn into_response(self) -> Response {
        match self.body_and_tag() {
            Ok((body, tag)) => {
                let json = HeaderValue::from_static("application/json");
                let position = HeaderValue::from(self.position);
                ([(header::CONTENT_TYPE, json), (header::ETAG, tag), (POSITION, position)], body).into_response()
            }
            Err(error) => Problem::internal(&error).into_response(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_request(query: &str, header: Option<&str>) -> ReadRequest {
        ReadRequest::from_parts(Some(query), header, &GatewayConfig::default())
    }

    fn wrong(asked: &ReadRequest) -> Vec<String> {
        let read = |query: Option<&str>| {
            let mut fields = RequestFields::from_query(query);
            fields.optional("limit", "a number", query_value(parse_text::<u32>));
            fields.complete(|| Some(()))
        };
        asked.parse_with(read).unwrap_err().errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn the_other_fields_are_left() {
        let asked = read_request("agent=a%2Db&at_least=7&user=an%26n&wait_ms=50", None);
        assert_eq!((asked.at_least, asked.wait), (7, Duration::from_millis(50)));
        assert_eq!(asked.query, "agent=a-b&user=an%26n");
        assert_eq!(asked.errors, []);
    }

    #[test]
    fn nothing_given_waits_for_nothing() {
        for query in ["", "at_least=&wait_ms="] {
            let asked = read_request(query, Some(""));
            assert_eq!((asked.at_least, asked.wait), (0, Duration::from_millis(2_000)));
            assert!(asked.reject_other_fields().is_ok());
        }
    }

    #[test]
    fn the_later_of_two_places_counts() {
        assert_eq!(read_request("", Some("9")).at_least, 9);
        assert_eq!(read_request("at_least=7", Some("9")).at_least, 9);
        assert_eq!(read_request("at_least=11", Some("9")).at_least, 11);
    }

    #[test]
    fn everything_wrong_is_named() {
        assert_eq!(
            wrong(&read_request("limit=x&at_least=-1&wait_ms=2001", Some("y"))),
            ["limit", "at_least", "wait_ms", AT_LEAST]
        );
        assert_eq!(wrong(&read_request("at_least=1&at_least=2", None)), ["at_least"]);
        assert_eq!(wrong(&read_request("at_least=18446744073709551616", None)), ["at_least"]);
        assert_eq!(wrong(&read_request("colour=red", None)), ["colour"]);
        assert!(read_request("limit=7", None).reject_other_fields().is_err());
    }

    #[test]
    fn an_answer_names_its_position() {
        let told = |answer, position| PositionedResponse { answer, position }.body_and_tag().unwrap();
        assert_eq!(told(json!({ "tasks": [] }), 7).0, br#"{"tasks":[],"position":7}"#);
        assert_eq!(told(json!({}), 7).0, br#"{"position":7}"#);
    }

    #[test]
    fn the_tag_of_an_answer_is_that_of_what_it_says() {
        let tag = |answer, position| PositionedResponse { answer, position }.body_and_tag().unwrap().1;
        assert_eq!(tag(json!({ "tasks": [] }), 7), tag(json!({ "tasks": [] }), 8));
        assert_ne!(tag(json!({ "tasks": [] }), 7), tag(json!({ "tasks": [1] }), 7));
    }
}
