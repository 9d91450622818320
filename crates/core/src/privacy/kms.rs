//! Master keys that a key management service has wrapped: what is configured opens nothing, and each service has its key
//! unwrapped when it starts (envelope encryption). The key itself is in memory only.

use std::time::Duration;

use async_trait::async_trait;
use base64::{Engine, prelude::BASE64_STANDARD};
use kairo_events::sealing::{SealingError, SealingKey};
use reqwest::{Certificate, Client, RequestBuilder, StatusCode, Url, redirect::Policy};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{aws::AwsKms, vault::VaultTransit};
use crate::config::{Mistake, Secret, check};

/// Prefix of a configured key that a key management service has wrapped.
pub const WRAPPED: &str = "wrapped:";
/// Longest answer that is read, in bytes.
const LONGEST_ANSWER: usize = 64 * 1024;

/// The key management service that wraps master keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KmsConfig {
    /// `vault` (the transit engine of Vault or OpenBao) or `aws`; empty where master keys are not wrapped. Default empty.
    pub kind: String,
    /// The name of the key in Vault; in AWS its id, its ARN or its alias. Default empty.
    pub key: String,
    /// Address of Vault, such as `https://vault.example:8200`; for AWS, an address that replaces its own if not empty.
    /// Default empty.
    pub url: String,
    /// Token for Vault. AWS credentials come from the same sources as for its own tools: variables, a container's role,
    /// a web identity or the machine's role. Default empty.
    pub token: Secret,
    /// Mount path of the transit engine in Vault. Default `transit`.
    pub mount: String,
    /// The namespace in Vault. Default empty.
    pub namespace: String,
    /// The region in AWS; that of the ARN, or of `AWS_REGION`, where it is empty. Default empty.
    pub region: String,
    /// A PEM file of authorities that vouch for `url`; those of the system where it is empty. Default empty.
    pub tls_ca: String,
    /// Longest wait for one answer, in milliseconds. Default 10000.
    pub timeout_ms: u64,
}

impl Default for KmsConfig {
    fn default() -> Self {
        Self {
            kind: String::new(),
            key: String::new(),
            url: String::new(),
            token: Secret::default(),
            mount: "transit".to_owned(),
            namespace: String::new(),
            region: String::new(),
            tls_ca: String::new(),
            timeout_ms: 10_000,
        }
    }
}

/// The errors of wrapping or unwrapping a master key.
#[derive(Debug, thiserror::Error)]
pub enum KmsError {
    /// It may succeed later.
    #[error("the key management service does not answer: {0}")]
    Unavailable(String),
    /// It will not, until somebody changes something.
    #[error("the key management service refuses: {0}")]
    Refused(String),
    #[error("privacy.kms: {0}")]
    Config(String),
    #[error("what the key management service unwrapped is no master key: {0}")]
    NotAKey(#[from] SealingError),
}

/// Wraps master keys, and unwraps them.
#[async_trait]
pub trait KeyManagement: Send + Sync {
    /// Encrypts a master key. The text is ciphertext in the form that the service itself gives it.
    async fn wrap(&self, key: &SealingKey) -> Result<String, KmsError>;
    /// Decrypts the text that [`wrap`](Self::wrap) returned, to bytes that may be no key: 32 are to be expected.
    async fn unwrap(&self, wrapped: &str) -> Result<Vec<u8>, KmsError>;
}

impl KmsConfig {
    /// # Errors
    /// Returns an error if the configuration names no service, or a file it names cannot be read.
    pub fn open(&self) -> Result<Box<dyn KeyManagement>, KmsError> {
        match self.kind.as_str() {
            "vault" => Ok(Box::new(VaultTransit::new(self)?)),
            "aws" => Ok(Box::new(AwsKms::new(self)?)),
            _ => Err(KmsError::Config("kind: expected vault or aws".to_owned())),
        }
    }

    pub(super) fn http_client(&self) -> Result<Client, KmsError> {
        // Whoever is sent elsewhere would show the token there.
        let mut client = Client::builder().redirect(Policy::none()).timeout(Duration::from_millis(self.timeout_ms));
        if !self.tls_ca.is_empty() {
            let wrong = |error: &dyn std::fmt::Display| KmsError::Config(format!("tls_ca: {}: {error}", self.tls_ca));
            let file = std::fs::read(&self.tls_ca).map_err(|error| wrong(&error))?;
            let authorities = Certificate::from_pem_bundle(&file).map_err(|error| wrong(&error))?;
            client = client.tls_certs_only(authorities);
        }
        client.build().map_err(|error| KmsError::Config(error.to_string()))
    }

    /// Returns the address of the service: `url`, or `otherwise` if `url` is empty.
    pub(super) fn service_url(&self, otherwise: &str) -> Result<Url, KmsError> {
        let given = if self.url.is_empty() { otherwise } else { &self.url };
        let url = given.parse::<Url>().ok().filter(|url| ["http", "https"].contains(&url.scheme()));
        url.ok_or_else(|| {
            KmsError::Config(format!("url: expected one such as https://vault.example:8200, found {given:?}"))
        })
    }

    /// Returns the missing or wrong settings, if a key is wrapped or any setting is present.
    pub(super) fn mistakes(&self, is_needed: bool) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        let mut needs = |field: &'static str, is_given: bool, help: &'static str| {
            if !is_given {
                mistakes.push(Mistake::new(field, "expected a value".to_owned(), help));
            }
        };
        match self.kind.as_str() {
            "" if is_needed => needs("kms.kind", false, "it names what has wrapped the master key: vault or aws"),
            "" => {}
            "vault" => {
                needs("kms.key", !self.key.is_empty(), "the name of a key of the transit engine");
                needs("kms.url", !self.url.is_empty(), "where Vault answers, such as https://vault.example:8200");
                needs(
                    "kms.token",
                    !self.token.is_empty(),
                    "a token of Vault that may use the key, such as file:/run/secrets/token",
                );
            }
            "aws" => needs("kms.key", !self.key.is_empty(), "the id, the ARN or the alias of a key"),
            other => {
                let problem = format!("expected vault or aws, found {other:?}");
                mistakes.push(Mistake::new("kms.kind", problem, "empty where no master key is wrapped"));
            }
        }
        // A token, or the key itself, would be read on the way.
        let url = Url::parse(&self.url).ok();
        let is_far = |url: &Url| !matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        if url.is_some_and(|url| url.scheme() == "http" && is_far(&url)) {
            let problem = "it is reached in plain text, and not on this machine".to_owned();
            mistakes.push(Mistake::new("kms.url", problem, "set an https:// URL"));
        }
        check(&mut mistakes, "kms.timeout_ms", self.timeout_ms, 100..=120_000, "milliseconds");
        mistakes
    }
}

/// Asks, and reads what is answered as JSON, whatever the status.
pub(super) async fn send_request(request: RequestBuilder) -> Result<(StatusCode, Value), KmsError> {
    let unavailable = |error: reqwest::Error| KmsError::Unavailable(message_with_causes(&error.without_url()));
    let mut response = request.send().await.map_err(unavailable)?;
    let status = response.status();
    let mut body = Vec::new();
    let elsewhere = response.headers().get("location").filter(|_| status.is_redirection());
    if let Some(elsewhere) = elsewhere.and_then(|to| to.to_str().ok()) {
        return Err(KmsError::Refused(format!(
            "it sends on to {elsewhere}: set privacy.kms.url to what answers itself"
        )));
    }
    while let Some(piece) = response.chunk().await.map_err(unavailable)? {
        body.extend_from_slice(&piece);
        if body.len() > LONGEST_ANSWER {
            return Err(KmsError::Refused(format!("its answer is longer than {LONGEST_ANSWER} bytes")));
        }
    }
    Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
}

/// An error of reqwest says what happened in its causes only.
fn message_with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// A text of an answer.
pub(super) fn read_text<'v>(answer: &'v Value, name: &str) -> Result<&'v str, KmsError> {
    let missing = || KmsError::Refused(format!("its answer holds no {name}"));
    answer.get(name).and_then(Value::as_str).ok_or_else(missing)
}

/// The bytes of an answer that are in base64.
pub(super) fn read_base64(answer: &Value, name: &str) -> Result<Vec<u8>, KmsError> {
    let decoded = BASE64_STANDARD.decode(read_text(answer, name)?);
    decoded.map_err(|_| KmsError::Refused(format!("its answer holds no {name} in base64")))
}
