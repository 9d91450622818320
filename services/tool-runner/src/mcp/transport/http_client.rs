//! The connection to a server over streamable HTTP: what goes out, and which answers of HTTP are ones of the protocol.
//!
//! Nothing that a server answers to a notification, or to being asked for a stream, is a reason to give the connection up.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::stream::BoxStream;
use futures::{StreamExt as _, stream};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{RequestBuilder, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;

use super::super::health::HealthNotes;
use super::super::reader::{MessageReader, OutputReading, UnreadableAnswer, page_text};
use super::message_stream::MessageStream;
use super::response::{ResponseBody, check_authorization, header_text, is_event_stream, read_body, redirect_policy};

/// Largest body of an answer, in bytes.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;
/// Largest body of an answer that refuses, in bytes; the rest is not read.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;
/// The media types of answers.
const ACCEPTED: &str = "text/event-stream, application/json";
/// The header with the session.
const SESSION_ID: &str = "mcp-session-id";
/// The header with the last event that was seen.
const LAST_EVENT_ID: &str = "last-event-id";
/// The error by which a refusal of HTTP is passed on: of the range that JSON-RPC leaves to servers.
const REFUSED: ErrorCode = ErrorCode(-32_000);

type HttpClientError = StreamableHttpError<reqwest::Error>;
type SseEventStream = BoxStream<'static, Result<Sse, SseError>>;

/// Sends messages, and reads what is answered.
#[derive(Clone)]
pub struct McpHttpClient {
    client: reqwest::Client,
    pub(super) reader: Arc<Mutex<MessageReader>>,
    pub(super) notes: HealthNotes,
    /// Streams that are open, on which answers may come that are not in the body of their own request.
    pub(super) listening: Arc<AtomicUsize>,
}

/// The parts of requests that are the same for all of them.
struct CommonHeaders {
    session: Option<Arc<str>>,
    token: Option<String>,
    headers: HashMap<HeaderName, HeaderValue>,
}

impl McpHttpClient {
    /// # Errors
    /// When the client cannot be set up.
    pub fn new(notes: HealthNotes) -> Result<Self, reqwest::Error> {
        // Connections are not kept: bodies that were not read to their end delay what comes after them.
        let client = reqwest::Client::builder().pool_max_idle_per_host(0).redirect(redirect_policy()).build()?;
        Ok(Self { client, reader: Arc::default(), notes, listening: Arc::default() })
    }

    pub(super) fn lock_reader(&self) -> MutexGuard<'_, MessageReader> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a body or the data of an event.
    pub(super) fn read_messages(&self, bytes: &[u8], expected: Option<&RequestId>) -> Vec<ServerJsonRpcMessage> {
        let OutputReading { messages, notes, left_out } = self.lock_reader().read(bytes, expected);
        self.notes.record_oddities(&notes, &left_out);
        messages
    }

    async fn send_request(&self, request: RequestBuilder, common: CommonHeaders) -> Result<Response, HttpClientError> {
        let mut request = request;
        if let Some(token) = common.token {
            request = request.bearer_auth(token);
        }
        if let Some(session) = common.session {
            request = request.header(SESSION_ID, session.as_ref());
        }
        let response = request.headers(common.headers.into_iter().collect()).send().await?;
        check_authorization(&response)?;
        Ok(response)
    }

    async fn post_and_read(
        &self,
        uri: &str,
        message: ClientJsonRpcMessage,
        common: CommonHeaders,
        max_event_bytes: usize,
    ) -> Result<StreamableHttpPostResponse, HttpClientError> {
        let request = match &message {
            ClientJsonRpcMessage::Request(request) => Some((request.id.clone(), request_kind(&request.request))),
            _ => None,
        };
        self.lock_reader().track_sent(&message);
        let has_session = common.session.is_some();
        let sent = self.send_request(self.client.post(uri).header(ACCEPT, ACCEPTED).json(&message), common).await;
        let response = sent.inspect_err(|_| {
            if let Some((id, _)) = &request {
                self.lock_reader().forget_request(id);
            }
        })?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let Some((id, kind)) = request else {
            if !status.is_success() {
                self.notes.add_note(&format!("HTTP {} to a notification", status.as_u16()));
            }
            return Ok(StreamableHttpPostResponse::Accepted);
        };
        let session = header_text(&response, SESSION_ID);
        if status.is_success() && is_event_stream(&response) {
            let events = MessageStream::new(self.clone(), Some(id), response, max_event_bytes).into_events();
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        self.read_answer(id, kind, response, session).await
    }

    /// Reads the one answer that is the whole body.
    async fn read_answer(
        &self,
        id: RequestId,
        kind: HttpRequestKind,
        response: Response,
        session: Option<String>,
    ) -> Result<StreamableHttpPostResponse, HttpClientError> {
        let status = response.status();
        let content_type = header_text(&response, CONTENT_TYPE.as_str()).unwrap_or_default();
        let retry_after = header_text(&response, RETRY_AFTER.as_str());
        let body = read_body(response, if status.is_success() { MAX_BODY_BYTES } else { MAX_REFUSAL_BYTES }).await;
        let messages = self.read_messages(&body.bytes, Some(&id));
        if status.is_success() && !messages.is_empty() && !content_type.starts_with("application/json") {
            self.notes.add_note(&format!("an answer of the type {content_type:?}"));
        }
        let is_answered = messages.iter().any(|message| is_answer_to(message, &id));
        // One that does not know us is not heard on what it says of the request.
        let is_heard = !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if is_answered && is_heard {
            return Ok(to_post_response(messages, session));
        }
        if status.is_success() && body.is_empty() && self.listening.load(Ordering::Relaxed) > 0 {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        self.end_request(id, kind, status, &body, retry_after).map(|answer| to_post_response(vec![answer], session))
    }

    /// Ends a request that was answered with something else than an answer of the protocol.
    fn end_request(
        &self,
        id: RequestId,
        kind: HttpRequestKind,
        status: StatusCode,
        body: &ResponseBody,
        retry_after: Option<String>,
    ) -> Result<ServerJsonRpcMessage, HttpClientError> {
        self.lock_reader().forget_request(&id);
        let words = page_text(&String::from_utf8_lossy(&body.bytes));
        let reason = match &body.failure {
            Some(failure) => format!("with HTTP {} and {failure}", status.as_u16()),
            None if body.is_empty() => format!("with HTTP {} and an empty body", status.as_u16()),
            None => format!("with HTTP {} and what is no answer", status.as_u16()),
        };
        self.notes.add_note(&format!("it answered {reason}: {words}"));
        let is_refusal = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let refused = |code, message: String| {
            Ok(ServerJsonRpcMessage::error(ErrorData::new(code, message, None), Some(id.clone())))
        };
        match kind {
            // A server that does not know the request is of the older protocol, however it says so.
            HttpRequestKind::Discover if !is_refusal => {
                refused(ErrorCode::METHOD_NOT_FOUND, format!("HTTP {}", status.as_u16()))
            }
            // Refused before anything was begun.
            HttpRequestKind::Call if is_refusal_status(status) => {
                let wait = retry_after.map(|wait| format!("; try again after {wait} s")).unwrap_or_default();
                refused(REFUSED, format!("HTTP {}: {words}{wait}", status.as_u16()))
            }
            HttpRequestKind::Call => {
                Ok(ServerJsonRpcMessage::response(UnreadableAnswer::new(reason, &words).into_result(), id))
            }
            HttpRequestKind::Discover | HttpRequestKind::Other
                if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS =>
            {
                Err(HttpStatusError::new(status.as_u16(), retry_after).into())
            }
            HttpRequestKind::Discover | HttpRequestKind::Other => {
                Err(StreamableHttpError::UnexpectedServerResponse(format!("it answered {reason}: {words}").into()))
            }
        }
    }

    async fn open_stream(
        &self,
        uri: &str,
        last_event: Option<String>,
        common: CommonHeaders,
        max_event_bytes: usize,
    ) -> Result<SseEventStream, HttpClientError> {
        let mut request = self.client.get(uri).header(ACCEPT, ACCEPTED);
        if let Some(last_event) = last_event {
            request = request.header(LAST_EVENT_ID, last_event);
        }
        let response = self.send_request(request, common).await?;
        let status = response.status();
        if status.is_success() && is_event_stream(&response) {
            return Ok(MessageStream::new(self.clone(), None, response, max_event_bytes).into_events());
        }
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return Err(HttpStatusError::new(status.as_u16(), header_text(&response, RETRY_AFTER.as_str())).into());
        }
        // The usual way to say that there is none.
        if status != StatusCode::METHOD_NOT_ALLOWED {
            self.notes.add_note(&format!("HTTP {} without events to being asked for a stream", status.as_u16()));
        }
        Err(StreamableHttpError::ServerDoesNotSupportSse)
    }
}

/// Returns true if a status says that nothing was begun; false for a timeout or a failure of the server.
fn is_refusal_status(status: StatusCode) -> bool {
    status.is_redirection() || status.is_client_error() && status != StatusCode::REQUEST_TIMEOUT
}

/// Requests as far as their ends differ.
#[derive(Clone, Copy)]
enum HttpRequestKind {
    Discover,
    Call,
    Other,
}

fn request_kind(request: &ClientRequest) -> HttpRequestKind {
    match request {
        ClientRequest::DiscoverRequest(_) => HttpRequestKind::Discover,
        ClientRequest::CallToolRequest(_) => HttpRequestKind::Call,
        _ => HttpRequestKind::Other,
    }
}

pub(super) fn is_answer_to(message: &ServerJsonRpcMessage, id: &RequestId) -> bool {
    match message {
        ServerJsonRpcMessage::Response(answer) => answer.id == *id,
        ServerJsonRpcMessage::Error(answer) => answer.id.as_ref() == Some(id),
        ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => false,
    }
}

/// One message as it is, several as a stream.
fn to_post_response(mut messages: Vec<ServerJsonRpcMessage>, session: Option<String>) -> StreamableHttpPostResponse {
    match messages.pop() {
        Some(only) if messages.is_empty() => StreamableHttpPostResponse::Json(only, session),
        last => {
            let events: Vec<_> = messages.iter().chain(last.iter()).map(|message| Ok(to_sse_event(message))).collect();
            StreamableHttpPostResponse::Sse(stream::iter(events).boxed(), session)
        }
    }
}

/// A message as an event that the library reads.
pub(super) fn to_sse_event(message: &ServerJsonRpcMessage) -> Sse {
    Sse { data: serde_json::to_string(message).ok(), ..Sse::default() }
}

impl StreamableHttpClient for McpHttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpClientError> {
        let common = CommonHeaders { session: session_id, token: auth_header, headers: custom_headers };
        self.post_and_read(&uri, message, common, MAX_BODY_BYTES).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<StreamableHttpPostResponse, HttpClientError> {
        let common = CommonHeaders { session: session_id, token: auth_header, headers: custom_headers };
        self.post_and_read(&uri, message, common, max_sse_event_size).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpClientError> {
        let common = CommonHeaders { session: Some(session_id), token: auth_header, headers: custom_headers };
        // Whatever it says to that: the session is of no use any more.
        self.send_request(self.client.delete(uri.as_ref()), common).await.map(drop)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<SseEventStream, HttpClientError> {
        let common = CommonHeaders { session: session_id, token: auth_header, headers: custom_headers };
        self.open_stream(&uri, last_event_id, common, MAX_BODY_BYTES).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<SseEventStream, HttpClientError> {
        let common = CommonHeaders { session: session_id, token: auth_header, headers: custom_headers };
        self.open_stream(&uri, last_event_id, common, max_sse_event_size).await
    }
}
