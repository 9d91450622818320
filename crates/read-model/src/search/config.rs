//! The configuration of the search engine.

use std::time::Duration;

use kairo_core::config::{Mistake, Secret, Validate, check};
use serde::{Deserialize, Serialize};
use url::Url;

/// Section `search`, which gateway and projector share.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SearchConfig {
    /// The URL of Meilisearch, such as `http://127.0.0.1:7700`. Empty for none: Postgres then answers. Default empty.
    pub meili_url: String,
    /// Its key, where it asks for one: gateway may do with one that only searches, projector makes and fills indexes.
    /// Default empty.
    pub meili_key: Secret,
    /// The prefix of its indexes' names, so that installations can share it. Default `kairo`.
    pub index_prefix: String,
    /// Longest time that a question to it may take before Postgres answers, in milliseconds. Default 1000.
    pub timeout_ms: u64,
    /// Longest time that sending documents may take, in milliseconds. Default 30000.
    pub send_timeout_ms: u64,
    /// Longest time it may take to index documents sent to it, in milliseconds. Then they are sent again.
    /// Default 300000.
    pub task_timeout_ms: u64,
    /// Maximum number of documents sent at once. Default 500.
    pub batch: u32,
    /// Maximum size of the documents sent at once, in bytes; a single larger document is sent alone. Default 4194304.
    pub batch_bytes: usize,
    /// Longest pause before it is tried again, in milliseconds; the first one is 100. Default 10000.
    pub retry_longest_ms: u64,
}

impl Default for SearchConfig {
    fn default() -> Self {
        Self {
            meili_url: String::new(),
            meili_key: Secret::default(),
            index_prefix: "kairo".to_owned(),
            timeout_ms: 1_000,
            send_timeout_ms: 30_000,
            task_timeout_ms: 300_000,
            batch: 500,
            batch_bytes: 4 * 1024 * 1024,
            retry_longest_ms: 10_000,
        }
    }
}

impl SearchConfig {
    /// Returns true if a search engine is configured.
    pub fn is_configured(&self) -> bool {
        !self.meili_url.is_empty()
    }

    /// The name of a generation's index.
    pub fn index_name(&self, generation: i64) -> String {
        format!("{}_{generation}", self.index_prefix)
    }

    pub(super) fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    pub(super) fn send_timeout(&self) -> Duration {
        Duration::from_millis(self.send_timeout_ms)
    }

    pub(super) fn task_timeout(&self) -> Duration {
        Duration::from_millis(self.task_timeout_ms)
    }
}

impl Validate for SearchConfig {
    fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        if self.is_configured() && !is_base_url(&self.meili_url) {
            let advice = "write it as http://host:port, without a user, a query or a fragment; the key is meili_key";
            mistakes.push(Mistake::new("meili_url", "expected the URL of a Meilisearch", advice));
        }
        if !self.meili_key.expose().bytes().all(|byte| byte.is_ascii_graphic()) {
            let advice = "use printable characters without spaces";
            mistakes.push(Mistake::new("meili_key", "it cannot be sent", advice));
        }
        let named = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if !(1..=64).contains(&self.index_prefix.len()) || !self.index_prefix.bytes().all(named) {
            let advice = "use 1 to 64 letters, digits, - and _";
            mistakes.push(Mistake::new("index_prefix", "it is no beginning of a name", advice));
        }
        check(&mut mistakes, "timeout_ms", self.timeout_ms, 10..=60_000, "milliseconds");
        check(&mut mistakes, "send_timeout_ms", self.send_timeout_ms, 100..=600_000, "milliseconds");
        check(&mut mistakes, "task_timeout_ms", self.task_timeout_ms, 100..=86_400_000, "milliseconds");
        check(&mut mistakes, "batch", self.batch, 1..=10_000, "documents");
        check(&mut mistakes, "batch_bytes", self.batch_bytes as u64, 1_024..=64 * 1024 * 1024, "bytes");
        check(&mut mistakes, "retry_longest_ms", self.retry_longest_ms, 100..=600_000, "milliseconds");
        mistakes
    }
}

/// Returns true if paths can be appended to the URL.
fn is_base_url(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| {
        let plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
        matches!(url.scheme(), "http" | "https") && url.has_host() && plain && url.fragment().is_none()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_used_is_named_and_no_secret_is_shown() {
        assert!(SearchConfig::default().mistakes().is_empty());
        for good in ["http://127.0.0.1:7700", "https://search.example/meili/"] {
            assert!(SearchConfig { meili_url: good.into(), ..Default::default() }.mistakes().is_empty(), "{good}");
        }
        for bad in ["127.0.0.1:7700", "ftp://search", "http://ann:hunter2@search", "http://search?key=hunter2", "x"] {
            let mistakes = SearchConfig { meili_url: bad.into(), ..Default::default() }.mistakes();
            assert_eq!(mistakes.len(), 1, "{bad}");
            assert!(!mistakes[0].to_string().contains("hunter2"));
        }
        let key = Secret::new("hunter2 hunter2".into());
        let config = SearchConfig { meili_key: key, index_prefix: "a b".into(), batch: 0, ..Default::default() };
        let mistakes = config.mistakes();
        assert_eq!(
            mistakes.iter().map(|mistake| mistake.key.as_str()).collect::<Vec<_>>(),
            ["meili_key", "index_prefix", "batch"]
        );
        assert!(!format!("{mistakes:?}").contains("hunter2"));
    }
}
