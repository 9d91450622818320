//! The transit engine of Vault and OpenBao, whose HTTP interfaces are the same.

use async_trait::async_trait;
use base64::{Engine, prelude::BASE64_STANDARD};
use kairo_events::sealing::SealingKey;
use reqwest::{Client, StatusCode, Url, header::HeaderValue};
use serde_json::{Value, json};

use super::kms::{KeyManagement, KmsConfig, KmsError, read_base64, read_text, send_request};

pub struct VaultTransit {
    client: Client,
    url: Url,
    mount: String,
    key: String,
    token: HeaderValue,
    namespace: Option<HeaderValue>,
}

impl VaultTransit {
    pub fn new(config: &KmsConfig) -> Result<Self, KmsError> {
        let header = |field: &str, text: &str| {
            let mut value = HeaderValue::from_str(text.trim())
                .map_err(|_| KmsError::Config(format!("{field}: not a header's value")))?;
            value.set_sensitive(true);
            Ok::<_, KmsError>(value)
        };
        let namespace = Some(config.namespace.as_str()).filter(|name| !name.is_empty());
        Ok(Self {
            client: config.http_client()?,
            url: config.service_url("")?,
            mount: config.mount.clone(),
            key: config.key.clone(),
            token: header("token", config.token.expose())?,
            namespace: namespace.map(|name| header("namespace", name)).transpose()?,
        })
    }

    /// Sends a request to the transit engine, and returns the `data` of the answer.
    async fn call_transit(&self, operation: &str, body: &Value) -> Result<Value, KmsError> {
        let mut url = self.url.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            let mount = self.mount.split('/').filter(|part| !part.is_empty());
            path.pop_if_empty().push("v1").extend(mount).extend([operation, &self.key]);
        }
        let mut request = self.client.post(url).header("x-vault-token", self.token.clone()).json(body);
        if let Some(namespace) = &self.namespace {
            request = request.header("x-vault-namespace", namespace.clone());
        }
        let (status, answer) = send_request(request).await?;
        match status {
            status if status.is_success() => Ok(answer.get("data").cloned().unwrap_or_default()),
            // Sealed, a standby that cannot forward, or too much asked of it.
            status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                Err(KmsError::Unavailable(describe_failure(status, &answer)))
            }
            status => Err(KmsError::Refused(describe_failure(status, &answer))),
        }
    }
}

fn describe_failure(status: StatusCode, answer: &Value) -> String {
    let errors = answer.get("errors").and_then(Value::as_array).into_iter().flatten();
    let reasons: Vec<&str> = errors.filter_map(Value::as_str).collect();
    let reason = if reasons.is_empty() { "without a reason".to_owned() } else { reasons.join("; ") };
    format!("Vault answers {status}: {reason}")
}

#[async_trait]
impl KeyManagement for VaultTransit {
    async fn wrap(&self, key: &SealingKey) -> Result<String, KmsError> {
        let data = self.call_transit("encrypt", &json!({ "plaintext": BASE64_STANDARD.encode(key) })).await?;
        read_text(&data, "ciphertext").map(str::to_owned)
    }

    async fn unwrap(&self, wrapped: &str) -> Result<Vec<u8>, KmsError> {
        let data = self.call_transit("decrypt", &json!({ "ciphertext": wrapped })).await?;
        read_base64(&data, "plaintext")
    }
}
