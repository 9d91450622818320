//! Sending a request, and getting the answer as it is: what of it can be read is not for the client of the format to say.

use std::sync::{Arc, Mutex, PoisonError};

use async_openai::{Client, config::OpenAIConfig, error::OpenAIError, middleware::HttpRequestFactory};
use jiff::Timestamp;
use kairo_completion::error::{ErrorKind, ModelError, from_http};
use reqwest::Response;
use serde::Serialize;
use serde_json::Value;
use tower::service_fn;

/// Longest body of an error that is read, in bytes.
const ERROR_BYTES: usize = 1 << 20;

/// Whatever an endpoint answers to this request, its status aside.
pub async fn post(
    client: &Client<OpenAIConfig>,
    http: &reqwest::Client,
    body: impl Serialize,
) -> Result<Response, ModelError> {
    let slot: Arc<Mutex<Option<Response>>> = Arc::default();
    let http = http.clone();
    let kept = slot.clone();
    // The client is told of an empty success, so that it reads nothing itself.
    let service = service_fn(move |request: HttpRequestFactory| {
        let http = http.clone();
        let kept = kept.clone();
        async move {
            let response = http.execute(request.build().await?).await?;
            kept.lock().unwrap_or_else(PoisonError::into_inner).replace(response);
            Ok::<_, OpenAIError>(Response::from(http::Response::new("{}")))
        }
    });
    let client = client.clone().with_http_service(service);
    let told = client.chat().create_byot::<_, Value>(body).await;
    let response = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (response, told) {
        (Some(response), _) => Ok(response),
        (None, Err(error)) => Err(failure(&error)),
        (None, Ok(_)) => Err(ModelError::new(ErrorKind::Unavailable, "the endpoint gave no answer".to_owned())),
    }
}

/// Builds the error of a request that got no response.
fn failure(error: &OpenAIError) -> ModelError {
    match error {
        OpenAIError::Reqwest(cause) if cause.is_timeout() => ModelError::new(ErrorKind::Timeout, root_cause(cause)),
        OpenAIError::Reqwest(cause) if cause.is_builder() || cause.is_redirect() => {
            ModelError::new(ErrorKind::Refused, root_cause(cause))
        }
        OpenAIError::Reqwest(cause) => ModelError::new(ErrorKind::Unavailable, root_cause(cause)),
        other => ModelError::new(ErrorKind::Refused, other.to_string()),
    }
}

/// Reads the error from a response that is not a success.
pub async fn read_error(mut response: Response) -> ModelError {
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let mut body = Vec::new();
    // Of a body that breaks off, what has arrived says enough.
    while let Ok(Some(bytes)) = response.chunk().await {
        body.extend_from_slice(
            bytes.get(..bytes.len().min(ERROR_BYTES.saturating_sub(body.len()))).unwrap_or_default(),
        );
        if body.len() >= ERROR_BYTES {
            break;
        }
    }
    let headers = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    from_http(status, headers, &body, Some(Timestamp::now()))
}

/// The innermost cause, which says more than "error sending request".
pub fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
