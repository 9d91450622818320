//! The last requests received, for tests and the curious.

use std::collections::VecDeque;

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

use crate::wire::response::json_bytes;

/// A ring of requests, bounded in number and in bytes: beyond either the oldest are forgotten.
pub struct Recorder {
    requests: VecDeque<RecordedRequest>,
    bytes: usize,
    total: u64,
    limits: RecorderLimits,
}

/// Limits of a [`Recorder`].
#[derive(Clone, Copy, Debug)]
pub struct RecorderLimits {
    pub requests: usize,
    /// Of all request bodies together.
    pub bytes: usize,
}

/// A request as it came, and which rule answered it. Headers are left out: they hold the API key.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    /// The rule that answered; none if no rule matched or the request could not be read.
    pub rule: Option<String>,
    pub body: Bytes,
}

#[derive(Serialize)]
struct RequestView<'a> {
    /// Counts from 1 in the order of arrival.
    sequence: u64,
    rule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Value>,
    /// In place of `body` if that was not JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

#[derive(Serialize)]
struct RequestsPage<'a> {
    /// Requests received since the server started.
    total: u64,
    requests: Vec<RequestView<'a>>,
}

impl Recorder {
    #[must_use]
    pub fn new(limits: RecorderLimits) -> Self {
        Self { requests: VecDeque::new(), bytes: 0, total: 0, limits }
    }

    pub fn record(&mut self, request: RecordedRequest) {
        self.total += 1;
        self.bytes += request.body.len();
        self.requests.push_back(request);
        while self.requests.len() > self.limits.requests || self.bytes > self.limits.bytes {
            let Some(oldest) = self.requests.pop_front() else { break };
            self.bytes -= oldest.body.len();
        }
    }

    /// Returns the number of recorded requests, and the last `limit` of those still held, oldest first.
    #[must_use]
    pub fn last(&self, limit: usize) -> (u64, Vec<RecordedRequest>) {
        let skipped = self.requests.len().saturating_sub(limit);
        (self.total, self.requests.iter().skip(skipped).cloned().collect())
    }
}

/// The body of `GET /v1/requests`.
#[must_use]
pub fn page(total: u64, requests: &[RecordedRequest]) -> Bytes {
    let first = (total + 1).saturating_sub(requests.len() as u64);
    let requests = (first..)
        .zip(requests)
        .map(|(sequence, request)| {
            let body: Option<Value> = serde_json::from_slice(&request.body).ok();
            let text = || String::from_utf8_lossy(&request.body).into_owned();
            RequestView { sequence, rule: request.rule.as_deref(), text: body.is_none().then(text), body }
        })
        .collect();
    json_bytes(&RequestsPage { total, requests })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(body: &'static str) -> RecordedRequest {
        RecordedRequest { rule: None, body: Bytes::from_static(body.as_bytes()) }
    }

    fn bodies(recorder: &Recorder, limit: usize) -> Vec<Bytes> {
        recorder.last(limit).1.into_iter().map(|request| request.body).collect()
    }

    #[test]
    fn it_is_bounded_in_number_and_in_bytes() {
        let mut recorder = Recorder::new(RecorderLimits { requests: 3, bytes: 10 });
        for body in ["1", "2", "3", "4"] {
            recorder.record(recorded(body));
        }
        assert_eq!(bodies(&recorder, 9), ["2", "3", "4"]);
        assert_eq!(bodies(&recorder, 1), ["4"]);
        recorder.record(recorded("ten bytes."));
        assert_eq!(bodies(&recorder, 9), ["ten bytes."]);
        recorder.record(recorded("more than ten bytes"));
        assert_eq!((bodies(&recorder, 9).len(), recorder.last(0).0), (0, 6));
    }

    #[test]
    fn a_body_that_is_not_json_is_shown_as_text() {
        let page = page(7, &[recorded(r#"{"z":1, "a":1.0}"#), recorded("{oops")]);
        assert_eq!(
            serde_json::from_slice::<Value>(&page).expect("it is JSON"),
            serde_json::json!({ "total": 7, "requests": [
                { "sequence": 6, "rule": null, "body": { "z": 1, "a": 1.0 } },
                { "sequence": 7, "rule": null, "text": "{oops" },
            ] }),
        );
    }
}
