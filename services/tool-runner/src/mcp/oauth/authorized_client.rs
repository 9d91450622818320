//! An HTTP client of the library that sends a token with each request and does what the server's answer wants.

use std::collections::HashMap;
use std::sync::Arc;

use futures::stream::BoxStream;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse};
use sse_stream::{Error as SseError, Sse};

use super::sign_in::{AuthChallenge, SignIn};

/// Tokens that are tried for one request: the one that is there, a renewed one, and one with more scopes.
const MAX_TOKENS: usize = 3;

/// A client that signs its requests, if it has something to sign with.
#[derive(Clone, Debug)]
pub struct AuthorizedClient<C> {
    client: C,
    sign_in: Option<Arc<SignIn>>,
}

impl<C> AuthorizedClient<C> {
    pub fn new(client: C, sign_in: Option<Arc<SignIn>>) -> Self {
        Self { client, sign_in }
    }
}

impl<C: StreamableHttpClient> AuthorizedClient<C> {
    async fn send_with_token<T, F>(
        &self,
        token: Option<String>,
        send: impl Fn(Option<String>) -> F,
    ) -> Result<T, StreamableHttpError<C::Error>>
    where
        F: Future<Output = Result<T, StreamableHttpError<C::Error>>>,
    {
        let Some(sign_in) = self.sign_in.as_ref().filter(|_| token.is_none()) else { return send(token).await };
        let mut token = sign_in.current_token().await?;
        let mut tokens = 1;
        loop {
            let sent = send(token.as_ref().map(|token| token.expose().to_owned())).await;
            let challenge = match sent {
                Err(error) => challenge_of(&error).filter(|_| tokens < MAX_TOKENS).ok_or(error)?,
                answer => return answer,
            };
            tokens += 1;
            token = Some(sign_in.answer_challenge(&challenge, token.as_ref()).await?);
        }
    }
}

/// Returns the challenge if the error asks for a token.
fn challenge_of<E: std::error::Error + Send + Sync + 'static>(error: &StreamableHttpError<E>) -> Option<AuthChallenge> {
    match error {
        StreamableHttpError::AuthRequired(refused) => {
            Some(AuthChallenge::Token(refused.www_authenticate_header.clone()))
        }
        StreamableHttpError::InsufficientScope(refused) => Some(AuthChallenge::Scope {
            header: refused.www_authenticate_header.clone(),
            scope: refused.required_scope.clone()?,
        }),
        // Without the header that RFC 9110 wants.
        StreamableHttpError::UnexpectedServerResponse(text) if text.starts_with("HTTP 401") => {
            Some(AuthChallenge::Token(String::new()))
        }
        _ => None,
    }
}

impl<C: StreamableHttpClient + Send + Sync> StreamableHttpClient for AuthorizedClient<C> {
    type Error = C::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_token: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<Self::Error>> {
        self.send_with_token(auth_token, |token| {
            let uri = uri.clone();
            let session = session_id.clone();
            let headers = custom_headers.clone();
            self.client.post_message(uri, message.clone(), session, token, headers)
        })
        .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_token: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<Self::Error>> {
        self.send_with_token(auth_token, |token| {
            let uri = uri.clone();
            let session = session_id.clone();
            let headers = custom_headers.clone();
            let message = message.clone();
            self.client.post_message_with_max_sse_event_size(uri, message, session, token, headers, max_sse_event_size)
        })
        .await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_token: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), StreamableHttpError<Self::Error>> {
        self.send_with_token(auth_token, |token| {
            self.client.delete_session(uri.clone(), session_id.clone(), token, custom_headers.clone())
        })
        .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_token: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, StreamableHttpError<Self::Error>> {
        self.send_with_token(auth_token, |token| {
            let uri = uri.clone();
            let session = session_id.clone();
            let headers = custom_headers.clone();
            self.client.get_stream(uri, session, last_event_id.clone(), token, headers)
        })
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_token: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, StreamableHttpError<Self::Error>> {
        self.send_with_token(auth_token, |token| {
            let uri = uri.clone();
            let session = session_id.clone();
            let headers = custom_headers.clone();
            let last = last_event_id.clone();
            self.client.get_stream_with_max_sse_event_size(uri, session, last, token, headers, max_sse_event_size)
        })
        .await
    }
}
