//! Who serves a model, as OpenTelemetry's conventions for generative AI call them.

use reqwest::Url;

/// What the conventions say of whoever speaks the format of OpenAI and is not known better.
const OTHER: &str = "openai";

/// Hosts of providers, and hosts beneath them.
const PROVIDERS: [(&str, &str); 15] = [
    ("openai.com", "openai"),
    ("openai.azure.com", "azure.ai.openai"),
    ("services.ai.azure.com", "azure.ai.inference"),
    ("models.ai.azure.com", "azure.ai.inference"),
    ("anthropic.com", "anthropic"),
    ("generativelanguage.googleapis.com", "gcp.gemini"),
    ("aiplatform.googleapis.com", "gcp.vertex_ai"),
    ("cohere.ai", "cohere"),
    ("cohere.com", "cohere"),
    ("deepseek.com", "deepseek"),
    ("groq.com", "groq"),
    ("mistral.ai", "mistral_ai"),
    ("perplexity.ai", "perplexity"),
    ("ml.cloud.ibm.com", "ibm.watsonx.ai"),
    ("x.ai", "x_ai"),
];
/// Amazon's endpoints have the region in the middle of their names.
const BEDROCK: (&str, &str) = ("bedrock-runtime.", ".amazonaws.com");
/// The same of Google's, which begin with it.
const VERTEX: &str = "-aiplatform.googleapis.com";

/// The provider behind an address.
pub fn provider(base_url: &str) -> &'static str {
    let host = host(base_url);
    if host.starts_with(BEDROCK.0) && host.ends_with(BEDROCK.1) {
        return "aws.bedrock";
    }
    if host.ends_with(VERTEX) {
        return "gcp.vertex_ai";
    }
    let is_of = |name: &str| host.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    PROVIDERS.iter().find(|(name, _)| is_of(name)).map_or(OTHER, |(_, provider)| provider)
}

/// The host of an address; empty where there is none.
pub fn host(base_url: &str) -> String {
    Url::parse(base_url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
}

/// The port of an address.
pub fn port(base_url: &str) -> Option<u16> {
    Url::parse(base_url).ok()?.port_or_known_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_known_by_its_host_and_nothing_else() {
        for (base_url, expected) in [
            ("https://api.openai.com/v1", "openai"),
            ("https://mine.openai.azure.com/openai/v1", "azure.ai.openai"),
            ("https://generativelanguage.googleapis.com/v1beta/openai", "gcp.gemini"),
            ("https://europe-west4-aiplatform.googleapis.com/v1/x", "gcp.vertex_ai"),
            ("https://bedrock-runtime.eu-central-1.amazonaws.com/openai/v1", "aws.bedrock"),
            ("https://api.groq.com/openai/v1", "groq"),
            ("https://api.x.ai/v1", "x_ai"),
            ("https://api.max.ai/v1", "openai"),
            ("https://example.com/api.groq.com", "openai"),
            ("http://127.0.0.1:8080/v1", "openai"),
            ("no address", "openai"),
        ] {
            assert_eq!(provider(base_url), expected, "{base_url}");
        }
        assert_eq!((host("http://[::1]:8080/v1").as_str(), port("http://[::1]:8080/v1")), ("[::1]", Some(8080)));
        assert_eq!((host("no address").as_str(), port("https://a.example/v1")), ("", Some(443)));
    }
}
