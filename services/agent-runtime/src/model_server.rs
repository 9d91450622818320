//! The server of a model as spans and metrics name it, by OpenTelemetry's conventions for generative AI.

use reqwest::Url;

/// The conventions' name for any other server that speaks OpenAI's format.
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
/// Prefix and suffix of Amazon Bedrock hosts; the region stands between.
const BEDROCK: (&str, &str) = ("bedrock-runtime.", ".amazonaws.com");
/// Suffix of Vertex AI hosts, behind the region.
const VERTEX: &str = "-aiplatform.googleapis.com";

/// A model server.
#[derive(Clone, Debug)]
pub struct ModelServer {
    /// As `gen_ai.provider.name`.
    pub provider: &'static str,
    /// Its host; empty where the address has none.
    pub address: String,
    pub port: Option<u16>,
}

impl ModelServer {
    /// The server behind a `base_url`.
    pub fn from_url(base_url: &str) -> Self {
        let url = Url::parse(base_url).ok();
        let address = url.as_ref().and_then(Url::host_str).unwrap_or_default().to_owned();
        Self { provider: provider(&address), address, port: url.and_then(|url| url.port_or_known_default()) }
    }
}

fn provider(host: &str) -> &'static str {
    if host.starts_with(BEDROCK.0) && host.ends_with(BEDROCK.1) {
        return "aws.bedrock";
    }
    if host.ends_with(VERTEX) {
        return "gcp.vertex_ai";
    }
    let is_of = |name: &str| host.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    PROVIDERS.iter().find(|(name, _)| is_of(name)).map_or(OTHER, |(_, provider)| provider)
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
            assert_eq!(ModelServer::from_url(base_url).provider, expected, "{base_url}");
        }
        let [local, secure, none] =
            ["http://[::1]:8080/v1", "https://a.example/v1", "no address"].map(ModelServer::from_url);
        assert_eq!((local.address.as_str(), local.port), ("[::1]", Some(8080)));
        assert_eq!((secure.port, none.address.as_str()), (Some(443), ""));
    }
}
