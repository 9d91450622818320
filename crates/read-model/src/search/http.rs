//! The HTTP transport of the search engine's client: the project's own HTTP client, never without a time limit.

use std::time::Duration;

use async_trait::async_trait;
use futures::io::{AsyncRead, AsyncReadExt};
use kairo_core::config::Secret;
use meilisearch_sdk::{
    errors::Error,
    request::{HttpClient, Method, parse_response},
};
use reqwest::{Client, RequestBuilder, header};
use serde::{Serialize, de::DeserializeOwned};

/// Sends what the client asks for.
#[derive(Clone, Debug)]
pub struct MeiliHttpClient {
    client: Client,
    key: Secret,
}

impl MeiliHttpClient {
    /// # Errors
    /// When no HTTP client can be made on this machine.
    pub fn new(key: Secret, timeout: Duration) -> reqwest::Result<Self> {
        let client = Client::builder().timeout(timeout).connect_timeout(timeout);
        // It stands in the same network; its answers to one question are not redirected.
        let client = client.no_proxy().redirect(reqwest::redirect::Policy::none()).build()?;
        Ok(Self { client, key })
    }

    fn prepare_request<Q, B>(&self, url: &str, method: &Method<Q, B>) -> RequestBuilder {
        let request = match method {
            Method::Get { .. } => self.client.get(url),
            Method::Post { .. } => self.client.post(url),
            Method::Patch { .. } => self.client.patch(url),
            Method::Put { .. } => self.client.put(url),
            Method::Delete { .. } => self.client.delete(url),
        };
        match self.key.is_empty() {
            true => request,
            false => request.bearer_auth(self.key.expose()),
        }
    }
}

#[async_trait]
impl HttpClient for MeiliHttpClient {
    async fn stream_request<Query, Body, Output>(
        &self,
        url: &str,
        method: Method<Query, Body>,
        content_type: &str,
        expected_status_code: u16,
    ) -> Result<Output, Error>
    where
        Query: Serialize + Send + Sync,
        Body: AsyncRead + Send + Sync + 'static,
        Output: DeserializeOwned + 'static,
    {
        let url = with_query(url, method.query())?;
        let mut request = self.prepare_request(&url, &method);
        if let Some(body) = method.into_body() {
            let mut bytes = Vec::new();
            std::pin::pin!(body).read_to_end(&mut bytes).await.map_err(to_sdk_error)?;
            request = request.header(header::CONTENT_TYPE, content_type).body(bytes);
        }
        let response = request.send().await.map_err(|error| to_sdk_error(error.without_url()))?;
        let status = response.status().as_u16();
        let body = response.text().await.map_err(|error| to_sdk_error(error.without_url()))?;
        let body = if body.is_empty() { "null" } else { &body };
        parse_response(status, expected_status_code, body, url)
    }

    fn is_tokio(&self) -> bool {
        true
    }
}

/// Texts and numbers of the query behind the address; it has no others.
fn with_query(url: &str, query: &impl Serialize) -> Result<String, Error> {
    let serde_json::Value::Object(fields) = serde_json::to_value(query)? else { return Ok(url.to_owned()) };
    let mut pairs = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        pairs.append_pair(name, &text);
    }
    Ok(format!("{url}?{}", pairs.finish()))
}

fn to_sdk_error(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Other(Box::new(error))
}
