//! A stream of events over HTTP, each of which is read as a message.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::stream::BoxStream;
use futures::{StreamExt as _, stream};
use reqwest::Response;
use rmcp::model::RequestId;
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::Sse;

use super::super::reader::UnreadableAnswer;
use super::http_client::{McpHttpClient, is_answer_to, to_sse_event};
use super::sse_parser::{SseEvent, SseParser};

/// Longest text that is kept of events that are no messages, in bytes.
const MAX_STRAY_BYTES: usize = 2_000;

/// A stream while it is read.
pub struct MessageStream {
    http: McpHttpClient,
    /// The request whose answer comes on it; none on the stream of what the server says unasked.
    request: Option<RequestId>,
    body: BoxStream<'static, Result<Vec<u8>, reqwest::Error>>,
    events: SseParser,
    ready: VecDeque<Sse>,
    /// Data of events that are no messages.
    stray: Vec<u8>,
    /// True if the stream can be resumed after its end.
    can_resume: bool,
    is_ended: bool,
    _listening: Option<OpenStreamGuard>,
}

/// Counts a stream on which answers to any request may come, as long as it is open.
struct OpenStreamGuard(Arc<AtomicUsize>);

impl OpenStreamGuard {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for OpenStreamGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl MessageStream {
    pub fn new(http: McpHttpClient, request: Option<RequestId>, response: Response, max_event_bytes: usize) -> Self {
        let listening = request.is_none().then(|| OpenStreamGuard::new(&http.listening));
        Self {
            http,
            request,
            body: response.bytes_stream().map(|piece| piece.map(|piece| piece.to_vec())).boxed(),
            events: SseParser::new(max_event_bytes),
            ready: VecDeque::new(),
            stray: Vec::new(),
            can_resume: false,
            is_ended: false,
            _listening: listening,
        }
    }

    /// The messages, as events that the library reads.
    pub fn into_events(self) -> BoxStream<'static, Result<Sse, SseError>> {
        stream::unfold(
            self,
            |mut streaming| async move { streaming.next_event().await.map(|event| (event, streaming)) },
        )
        .boxed()
    }

    async fn next_event(&mut self) -> Option<Result<Sse, SseError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if self.is_ended {
                return None;
            }
            match self.body.next().await {
                Some(Ok(piece)) => match self.events.parse_piece(&piece) {
                    Ok(events) => events.into_iter().for_each(|event| self.take_event(event)),
                    Err(too_long) => {
                        self.http.notes.add_note(&too_long.to_string());
                        self.end_request(&too_long.to_string());
                    }
                },
                Some(Err(error)) => {
                    self.is_ended = true;
                    return Some(Err(SseError::Body(Box::new(error))));
                }
                None => {
                    let last = self.events.finish();
                    last.into_iter().for_each(|event| self.take_event(event));
                    self.end_request("a stream that ended before its answer");
                }
            }
        }
    }

    /// Ends the request at once if it is known that its answer comes no more.
    fn end_request(&mut self, reason: &str) {
        self.is_ended = true;
        let Some(id) = self.request.clone().filter(|_| !self.can_resume && !self.stray.is_empty()) else { return };
        let unreadable = UnreadableAnswer::new(format!("with {reason}"), &String::from_utf8_lossy(&self.stray));
        let answer = self.http.lock_reader().give_up(&id, unreadable);
        self.ready.extend(answer.as_ref().map(to_sse_event));
    }

    fn take_event(&mut self, SseEvent { kind: _, id, retry, data }: SseEvent) {
        self.can_resume |= id.is_some();
        let frame = Sse { id, retry, ..Sse::default() };
        let data = data.unwrap_or_default();
        let messages = self.http.read_messages(&data, self.request.as_ref());
        if messages.is_empty() {
            let room = MAX_STRAY_BYTES.saturating_sub(self.stray.len());
            self.stray.extend_from_slice(data.get(..data.len().min(room)).unwrap_or_default());
            self.ready.push_back(frame);
            return;
        }
        if self.request.as_ref().is_some_and(|id| messages.iter().any(|message| is_answer_to(message, id))) {
            self.stray.clear();
        }
        for (place, message) in messages.iter().enumerate() {
            // All belong to one event: who has the first has it.
            let frame = if place == 0 { frame.clone() } else { Sse::default() };
            self.ready.push_back(Sse { data: to_sse_event(message).data, ..frame });
        }
    }
}
