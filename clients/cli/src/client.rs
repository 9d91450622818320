//! The gateway's API over HTTP.

mod error;
mod event_follower;
mod messages;

use std::time::Duration;

use kairo_core::config::Secret;
use reqwest::{Method, RequestBuilder, Response, header};
use serde::{Serialize, de::DeserializeOwned};
use url::{Host, Url};

pub use error::{ClientError, Problem, WrongField};
pub use event_follower::{EventFollower, StreamUpdate};
pub use messages::{
    AcceptedMessage, AcceptedOrder, EventFilter, EventPage, NewApproval, NewChoice, NewCommand, NewLead, NewMessage,
    NewPart, NewSubmodule, NewTeam, NewWorker, ProfileCommand, ProfileMember, ProfilePerception, SessionBounds,
    StoredObject,
};

const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

/// The longest time an answer other than a stream may take.
const ANSWER_DEADLINE: Duration = Duration::from_secs(30);
/// The longest time storing an image or a piece of audio may take.
const UPLOAD_DEADLINE: Duration = Duration::from_secs(300);
/// The longest time an answer that reads all of the read models may take.
const PATIENT_DEADLINE: Duration = Duration::from_secs(900);

/// One gateway.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    key: Option<Secret>,
    at_least: Option<u64>,
}

impl Client {
    /// The gateway at this address; nothing is sent yet.
    pub fn new(address: &str) -> Result<Self, ClientError> {
        let base = Url::parse(address)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| ClientError::Address { address: address.to_owned() })?;
        let mut builder = reqwest::Client::builder().connect_timeout(CONNECT_DEADLINE);
        if is_local(&base) {
            builder = builder.no_proxy();
        }
        Ok(Self { http: builder.build().map_err(ClientError::Setup)?, base, key: None, at_least: None })
    }

    /// Sets the API key, which goes with every request.
    #[must_use]
    pub fn with_key(self, key: Secret) -> Self {
        Self { key: Some(key), ..self }
    }

    /// The API key that goes with every request.
    pub fn key(&self) -> Option<&Secret> {
        self.key.as_ref()
    }

    /// Has answers take account of the log up to this sequence at least.
    #[must_use]
    pub fn with_at_least(self, sequence: Option<u64>) -> Self {
        Self { at_least: sequence, ..self }
    }

    /// Its address, without a trailing slash.
    pub fn url(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// Sends a message; returns when it is in the log.
    pub async fn send(&self, message: &NewMessage) -> Result<AcceptedMessage, ClientError> {
        self.post("v1/messages", message).await
    }

    /// Stores an image or a piece of audio for a message.
    pub async fn store_object(&self, media_type: &'static str, bytes: Vec<u8>) -> Result<StoredObject, ClientError> {
        let request = self.request(Method::POST, "v1/objects", &[])?.header(header::CONTENT_TYPE, media_type);
        self.fetch_json(request.body(bytes).timeout(UPLOAD_DEADLINE)).await
    }

    /// An image or a piece of audio by its digest, and its media type; none where it is not stored, or larger than so many bytes.
    pub async fn fetch_object(&self, digest: &str, longest: u64) -> Result<Option<(String, Vec<u8>)>, ClientError> {
        let request = self.request(Method::GET, &format!("v1/objects/{digest}"), &[])?.timeout(UPLOAD_DEADLINE);
        let mut response = match self.send_checked(request).await {
            Err(ClientError::Refused { status: 404, .. }) => return Ok(None),
            response => response?,
        };
        let media_type = response.headers().get(header::CONTENT_TYPE).and_then(|name| name.to_str().ok());
        let media_type = media_type.unwrap_or_default().to_owned();
        let mut bytes = Vec::new();
        while let Some(more) = response.chunk().await.map_err(|source| self.unreachable(source))? {
            bytes.extend_from_slice(&more);
            if bytes.len() as u64 > longest {
                return Ok(None);
            }
        }
        Ok(Some((media_type, bytes)))
    }

    /// Events that are in the log, oldest first.
    pub async fn events(&self, filter: &EventFilter) -> Result<EventPage, ClientError> {
        self.get("v1/events", &filter.query()).await
    }

    /// Events as they come; `live` adds what is never stored.
    pub fn follow(&self, filter: EventFilter, live: bool) -> EventFollower {
        EventFollower::new(self.clone(), filter, live)
    }

    /// GET of a path such as `v1/agents`.
    pub async fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, String)]) -> Result<T, ClientError> {
        let mut request = self.request(Method::GET, path, query)?;
        if let Some(sequence) = self.at_least {
            request = request.header("Kairo-At-Least", sequence);
        }
        self.fetch_answer(request).await
    }

    /// GET of what takes long to find out.
    pub async fn get_patiently<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        let request = self.request(Method::GET, path, &[])?.timeout(PATIENT_DEADLINE);
        self.fetch_json(request).await
    }

    /// POST of a JSON body.
    pub async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, ClientError> {
        let request = self.request(Method::POST, path, &[])?.json(body);
        self.fetch_answer(request).await
    }

    /// PATCH with a JSON body.
    pub async fn patch<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let request = self.request(Method::PATCH, path, query)?.json(body);
        self.fetch_answer(request).await
    }

    /// DELETE of a path.
    pub async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        let request = self.request(Method::DELETE, path, &[])?;
        self.fetch_answer(request).await
    }

    fn request(&self, method: Method, path: &str, query: &[(&str, String)]) -> Result<RequestBuilder, ClientError> {
        let address = format!("{}/{path}", self.url());
        let mut url = Url::parse(&address).map_err(|_| ClientError::Address { address })?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = self.http.request(method, url);
        Ok(match &self.key {
            Some(key) => request.bearer_auth(key.expose()),
            None => request,
        })
    }

    async fn fetch_answer<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ClientError> {
        self.fetch_json(request.timeout(ANSWER_DEADLINE)).await
    }

    async fn fetch_json<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ClientError> {
        let request = request.header(header::ACCEPT, "application/json");
        let response = self.send_checked(request).await?;
        let body = response.bytes().await.map_err(|source| self.unreachable(source))?;
        serde_json::from_slice(&body).map_err(|error| self.unreadable(error))
    }

    /// The response, if it is not an error.
    async fn send_checked(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let response = request.send().await.map_err(|source| self.unreachable(source))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = response.bytes().await.unwrap_or_default();
        Err(ClientError::Refused { status: status.as_u16(), problem: Box::new(Problem::from_response(status, &body)) })
    }

    /// An answer of this gateway is not what was expected.
    pub(crate) fn unreadable(&self, reason: impl ToString) -> ClientError {
        ClientError::Answer { url: self.url().to_owned(), reason: reason.to_string() }
    }

    fn unreachable(&self, source: reqwest::Error) -> ClientError {
        ClientError::Unreachable { url: self.url().to_owned(), source }
    }
}

/// A proxy meant for the internet cannot reach this machine's loopback.
fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_http_and_has_a_host() {
        assert_eq!(Client::new("http://127.0.0.1:7420/").unwrap().url(), "http://127.0.0.1:7420");
        for address in ["", "7420", "127.0.0.1:7420", "ftp://127.0.0.1", "http://"] {
            assert!(matches!(Client::new(address), Err(ClientError::Address { .. })), "{address:?}");
        }
    }

    #[test]
    fn proxies_are_for_other_machines() {
        for (url, local) in [("http://localhost:1", true), ("http://[::1]:1", true), ("https://kairo.example", false)] {
            assert_eq!(is_local(&Url::parse(url).unwrap()), local, "{url}");
        }
    }
}
