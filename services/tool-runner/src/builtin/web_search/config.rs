//! The configuration of the search service.

use serde::{Deserialize, Serialize};
use url::Url;

/// The tool `web.search`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebSearchConfig {
    /// Address of a search service with SearXNG's interface, such as `http://127.0.0.1:8888`; `/search` is appended
    /// unless it ends so. Without user or password, which configuration that is printed would show. The service must
    /// offer the format `json`. Default none, which removes the tool.
    pub url: Option<String>,
    /// Time limit of a search, in milliseconds. Default 15 000.
    pub timeout_ms: u64,
    /// Maximum number of results of one call. Default 20.
    pub max_results: usize,
    /// Longest answer of the service, in bytes. Default 2 097 152.
    pub max_body_bytes: usize,
}

impl Default for WebSearchConfig {
    fn default() -> Self {
        Self { url: None, timeout_ms: 15_000, max_results: 20, max_body_bytes: 2 * 1024 * 1024 }
    }
}

impl WebSearchConfig {
    /// Returns the address searches are sent to; `None` if `url` is missing or cannot be used.
    pub(super) fn endpoint(&self) -> Option<Url> {
        let mut url = Url::parse(self.url.as_deref()?).ok()?;
        let has_user = !url.username().is_empty() || url.password().is_some();
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() || has_user {
            return None;
        }
        let path = url.path().trim_end_matches('/').to_owned();
        let path = if path.ends_with("/search") { path } else { format!("{path}/search") };
        url.set_path(&path);
        Some(url)
    }

    /// Every mistake, each naming its key.
    pub fn mistakes(&self) -> impl Iterator<Item = String> {
        // The text is not repeated: it may hold a password.
        let unusable = self.url.is_some() && self.endpoint().is_none();
        let zeros = [
            ("timeout_ms", self.timeout_ms == 0),
            ("max_results", self.max_results == 0),
            ("max_body_bytes", self.max_body_bytes == 0),
        ];
        unusable
            .then(|| "url: must be http:// or https://, without user or password".to_owned())
            .into_iter()
            .chain(zeros.into_iter().filter(|(_, zero)| *zero).map(|(key, _)| format!("{key}: must be at least 1")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_may_be_the_services_or_its_searchs() {
        for (given, expected) in [
            ("http://127.0.0.1:8888", "http://127.0.0.1:8888/search"),
            ("https://search.example/", "https://search.example/search"),
            ("https://example.org/searx/search", "https://example.org/searx/search"),
        ] {
            let config = WebSearchConfig { url: Some(given.to_owned()), ..WebSearchConfig::default() };
            assert_eq!(config.endpoint().unwrap().as_str(), expected);
            assert_eq!(config.mistakes().count(), 0);
        }
        let secret = WebSearchConfig { url: Some("http://a:b@x".to_owned()), ..WebSearchConfig::default() };
        assert_eq!(secret.mistakes().count(), 1);
        let wrong = WebSearchConfig { url: Some("ftp://x".to_owned()), timeout_ms: 0, ..WebSearchConfig::default() };
        assert_eq!(
            wrong.mistakes().collect::<Vec<_>>(),
            ["url: must be http:// or https://, without user or password", "timeout_ms: must be at least 1"]
        );
    }
}
