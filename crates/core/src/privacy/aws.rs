//! AWS's Key Management Service.

use async_trait::async_trait;
use base64::{Engine, prelude::BASE64_STANDARD};
use kairo_events::sealing::SealingKey;
use object_store::{
    aws::{AmazonS3Builder, AwsAuthorizer, AwsCredentialProvider},
    client::{HttpRequest, HttpRequestBody},
};
use reqwest::{Client, StatusCode, Url};
use serde_json::{Value, json};

use super::kms::{KeyManagement, KmsConfig, KmsError, read_base64, read_text, send_request};

pub struct AwsKms {
    client: Client,
    credentials: AwsCredentialProvider,
    region: String,
    url: Url,
    key: String,
}

impl AwsKms {
    pub fn new(config: &KmsConfig) -> Result<Self, KmsError> {
        // arn:aws:kms:REGION:ACCOUNT:key/ID
        let of_arn = config.key.strip_prefix("arn:").and_then(|rest| rest.split(':').nth(2)).map(str::to_owned);
        let given = Some(config.region.clone()).filter(|region| !region.is_empty()).or(of_arn);
        let of_environment = || ["AWS_REGION", "AWS_DEFAULT_REGION"].iter().find_map(|name| std::env::var(name).ok());
        let missing = || KmsError::Config("region: expected one, such as eu-central-1, or AWS_REGION".to_owned());
        let region = given.or_else(of_environment).ok_or_else(missing)?;
        // Credentials are found as they are for object storage; there is no bucket.
        let found = AmazonS3Builder::from_env().with_bucket_name("none").with_region(&region).build();
        let found = found.map_err(|error| KmsError::Config(format!("credentials: {error}")))?;
        let url = config.service_url(&format!("https://kms.{region}.amazonaws.com/"))?;
        let credentials = found.credentials().clone();
        Ok(Self { client: config.http_client()?, credentials, region, url, key: config.key.clone() })
    }

    async fn call_kms(&self, operation: &str, body: &Value) -> Result<Value, KmsError> {
        let credential = self.credentials.get_credential().await;
        let credential = credential.map_err(|error| KmsError::Unavailable(format!("its credentials: {error}")))?;
        let mut request = HttpRequest::new(HttpRequestBody::from(body.to_string()));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.url.as_str().parse().map_err(|error| KmsError::Config(format!("url: {error}")))?;
        let headers = request.headers_mut();
        headers.insert("content-type", http::HeaderValue::from_static("application/x-amz-json-1.1"));
        let target = http::HeaderValue::from_str(&format!("TrentService.{operation}"));
        headers.insert("x-amz-target", target.map_err(|error| KmsError::Config(error.to_string()))?);
        let signed = AwsAuthorizer::new(&credential, "kms", &self.region).try_authorize(&mut request, None);
        signed.map_err(|error| KmsError::Config(format!("a request cannot be signed: {error}")))?;
        let request = self.client.post(self.url.clone()).headers(request.headers().clone()).body(body.to_string());
        let (status, answer) = send_request(request).await?;
        match status.is_success() {
            true => Ok(answer),
            false => Err(error_of(status, &answer)),
        }
    }
}

/// Errors have a type, which may stand behind a namespace, and mostly status 400.
fn error_of(status: StatusCode, answer: &Value) -> KmsError {
    let kind = read_text(answer, "__type").unwrap_or_default();
    let kind = kind.rsplit('#').next().unwrap_or_default();
    let message =
        ["message", "Message"].iter().find_map(|name| read_text(answer, name).ok()).unwrap_or("without a reason");
    let said = format!("AWS KMS answers {status}: {kind}: {message}");
    let passes = ["Throttling", "LimitExceeded", "KMSInternal", "DependencyTimeout", "KeyUnavailable", "Unavailable"];
    match status.is_server_error() || passes.iter().any(|beginning| kind.starts_with(beginning)) {
        true => KmsError::Unavailable(said),
        false => KmsError::Refused(said),
    }
}

#[async_trait]
impl KeyManagement for AwsKms {
    async fn wrap(&self, key: &SealingKey) -> Result<String, KmsError> {
        let body = json!({ "KeyId": self.key, "Plaintext": BASE64_STANDARD.encode(key) });
        let answer = self.call_kms("Encrypt", &body).await?;
        read_text(&answer, "CiphertextBlob").map(str::to_owned)
    }

    async fn unwrap(&self, wrapped: &str) -> Result<Vec<u8>, KmsError> {
        let answer = self.call_kms("Decrypt", &json!({ "KeyId": self.key, "CiphertextBlob": wrapped })).await?;
        read_base64(&answer, "Plaintext")
    }
}
