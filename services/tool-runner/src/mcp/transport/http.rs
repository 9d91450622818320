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

use super::super::health::Notes;
use super::super::reader::{Reader, Reading, Unreadable, words_of_page};
use super::response::{Body, check_authorization, header, is_event_stream, read_body, redirects};
use super::streaming::Streaming;

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

type Error = StreamableHttpError<reqwest::Error>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// Sends messages, and reads what is answered.
#[derive(Clone)]
pub struct Http {
    client: reqwest::Client,
    pub(super) reader: Arc<Mutex<Reader>>,
    pub(super) notes: Notes,
    /// Streams that are open, on which answers may come that are not in the body of their own request.
    pub(super) listening: Arc<AtomicUsize>,
}

/// The parts of requests that are the same for all of them.
struct Common {
    session: Option<Arc<str>>,
    token: Option<String>,
    headers: HashMap<HeaderName, HeaderValue>,
}

impl Http {
    /// # Errors
    /// When the client cannot be set up.
    pub fn new(notes: Notes) -> Result<Self, reqwest::Error> {
        // Connections are not kept: bodies that were not read to their end delay what comes after them.
        let client = reqwest::Client::builder().pool_max_idle_per_host(0).redirect(redirects()).build()?;
        Ok(Self { client, reader: Arc::default(), notes, listening: Arc::default() })
    }

    pub(super) fn reader(&self) -> MutexGuard<'_, Reader> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a body or the data of an event.
    pub(super) fn read(&self, bytes: &[u8], expected: Option<&RequestId>) -> Vec<ServerJsonRpcMessage> {
        let Reading { messages, notes, left_out } = self.reader().read(bytes, expected);
        self.notes.take(&notes, &left_out);
        messages
    }

    async fn send(&self, request: RequestBuilder, common: Common) -> Result<Response, Error> {
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

    async fn post(
        &self,
        uri: &str,
        message: ClientJsonRpcMessage,
        common: Common,
        max_event_bytes: usize,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let request = match &message {
            ClientJsonRpcMessage::Request(request) => Some((request.id.clone(), kind_of(&request.request))),
            _ => None,
        };
        self.reader().send(&message);
        let has_session = common.session.is_some();
        let sent = self.send(self.client.post(uri).header(ACCEPT, ACCEPTED).json(&message), common).await;
        let response = sent.inspect_err(|_| {
            if let Some((id, _)) = &request {
                self.reader().forget(id);
            }
        })?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let Some((id, kind)) = request else {
            if !status.is_success() {
                self.notes.note(&format!("HTTP {} to a notification", status.as_u16()));
            }
            return Ok(StreamableHttpPostResponse::Accepted);
        };
        let session = header(&response, SESSION_ID);
        if status.is_success() && is_event_stream(&response) {
            let events = Streaming::new(self.clone(), Some(id), response, max_event_bytes).events();
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        self.read_answer(id, kind, response, session).await
    }

    /// Reads the one answer that is the whole body.
    async fn read_answer(
        &self,
        id: RequestId,
        kind: Kind,
        response: Response,
        session: Option<String>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let status = response.status();
        let content_type = header(&response, CONTENT_TYPE.as_str()).unwrap_or_default();
        let retry_after = header(&response, RETRY_AFTER.as_str());
        let body = read_body(response, if status.is_success() { MAX_BODY_BYTES } else { MAX_REFUSAL_BYTES }).await;
        let messages = self.read(&body.bytes, Some(&id));
        if status.is_success() && !messages.is_empty() && !content_type.starts_with("application/json") {
            self.notes.note(&format!("an answer of the type {content_type:?}"));
        }
        let is_answered = messages.iter().any(|message| answers(message, &id));
        // One that does not know us is not heard on what it says of the request.
        let is_heard = !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if is_answered && is_heard {
            return Ok(respond(messages, session));
        }
        if status.is_success() && body.is_empty() && self.listening.load(Ordering::Relaxed) > 0 {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        self.end(id, kind, status, &body, retry_after).map(|answer| respond(vec![answer], session))
    }

    /// Ends a request that was answered with something else than an answer of the protocol.
    fn end(
        &self,
        id: RequestId,
        kind: Kind,
        status: StatusCode,
        body: &Body,
        retry_after: Option<String>,
    ) -> Result<ServerJsonRpcMessage, Error> {
        self.reader().forget(&id);
        let words = words_of_page(&String::from_utf8_lossy(&body.bytes));
        let reason = match &body.failure {
            Some(failure) => format!("with HTTP {} and {failure}", status.as_u16()),
            None if body.is_empty() => format!("with HTTP {} and an empty body", status.as_u16()),
            None => format!("with HTTP {} and what is no answer", status.as_u16()),
        };
        self.notes.note(&format!("it answered {reason}: {words}"));
        let is_refusal = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let refused = |code, message: String| {
            Ok(ServerJsonRpcMessage::error(ErrorData::new(code, message, None), Some(id.clone())))
        };
        match kind {
            // A server that does not know the request is of the older protocol, however it says so.
            Kind::Discover if !is_refusal => refused(ErrorCode::METHOD_NOT_FOUND, format!("HTTP {}", status.as_u16())),
            // Refused before anything was begun.
            Kind::Call if is_refusal_of(status) => {
                let wait = retry_after.map(|wait| format!("; try again after {wait} s")).unwrap_or_default();
                refused(REFUSED, format!("HTTP {}: {words}{wait}", status.as_u16()))
            }
            Kind::Call => Ok(ServerJsonRpcMessage::response(Unreadable::new(reason, &words).into_result(), id)),
            Kind::Discover | Kind::Other if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                Err(HttpStatusError::new(status.as_u16(), retry_after).into())
            }
            Kind::Discover | Kind::Other => {
                Err(StreamableHttpError::UnexpectedServerResponse(format!("it answered {reason}: {words}").into()))
            }
        }
    }

    async fn listen(
        &self,
        uri: &str,
        last_event: Option<String>,
        common: Common,
        max_event_bytes: usize,
    ) -> Result<Events, Error> {
        let mut request = self.client.get(uri).header(ACCEPT, ACCEPTED);
        if let Some(last_event) = last_event {
            request = request.header(LAST_EVENT_ID, last_event);
        }
        let response = self.send(request, common).await?;
        let status = response.status();
        if status.is_success() && is_event_stream(&response) {
            return Ok(Streaming::new(self.clone(), None, response, max_event_bytes).events());
        }
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return Err(HttpStatusError::new(status.as_u16(), header(&response, RETRY_AFTER.as_str())).into());
        }
        // The usual way to say that there is none.
        if status != StatusCode::METHOD_NOT_ALLOWED {
            self.notes.note(&format!("HTTP {} without events to being asked for a stream", status.as_u16()));
        }
        Err(StreamableHttpError::ServerDoesNotSupportSse)
    }
}

/// Returns true if a status says that nothing was begun; false for a timeout or a failure of the server.
fn is_refusal_of(status: StatusCode) -> bool {
    status.is_redirection() || status.is_client_error() && status != StatusCode::REQUEST_TIMEOUT
}

/// Requests as far as their ends differ.
#[derive(Clone, Copy)]
enum Kind {
    Discover,
    Call,
    Other,
}

fn kind_of(request: &ClientRequest) -> Kind {
    match request {
        ClientRequest::DiscoverRequest(_) => Kind::Discover,
        ClientRequest::CallToolRequest(_) => Kind::Call,
        _ => Kind::Other,
    }
}

pub(super) fn answers(message: &ServerJsonRpcMessage, id: &RequestId) -> bool {
    match message {
        ServerJsonRpcMessage::Response(answer) => answer.id == *id,
        ServerJsonRpcMessage::Error(answer) => answer.id.as_ref() == Some(id),
        ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => false,
    }
}

/// One message as it is, several as a stream.
fn respond(mut messages: Vec<ServerJsonRpcMessage>, session: Option<String>) -> StreamableHttpPostResponse {
    match messages.pop() {
        Some(only) if messages.is_empty() => StreamableHttpPostResponse::Json(only, session),
        last => {
            let events: Vec<_> = messages.iter().chain(last.iter()).map(|message| Ok(event(message))).collect();
            StreamableHttpPostResponse::Sse(stream::iter(events).boxed(), session)
        }
    }
}

/// A message as an event that the library reads.
pub(super) fn event(message: &ServerJsonRpcMessage) -> Sse {
    Sse { data: serde_json::to_string(message).ok(), ..Sse::default() }
}

impl StreamableHttpClient for Http {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let common = Common { session: session_id, token: auth_header, headers: custom_headers };
        self.post(&uri, message, common, MAX_BODY_BYTES).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let common = Common { session: session_id, token: auth_header, headers: custom_headers };
        self.post(&uri, message, common, max_sse_event_size).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Error> {
        let common = Common { session: Some(session_id), token: auth_header, headers: custom_headers };
        // Whatever it says to that: the session is of no use any more.
        self.send(self.client.delete(uri.as_ref()), common).await.map(drop)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, Error> {
        let common = Common { session: session_id, token: auth_header, headers: custom_headers };
        self.listen(&uri, last_event_id, common, MAX_BODY_BYTES).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<Events, Error> {
        let common = Common { session: session_id, token: auth_header, headers: custom_headers };
        self.listen(&uri, last_event_id, common, max_sse_event_size).await
    }
}
