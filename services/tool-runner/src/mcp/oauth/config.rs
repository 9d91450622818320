//! The configuration for signing in at an MCP server.

use kairo_core::config::Secret;
use serde::{Deserialize, Serialize};
use url::Url;

/// Scopes that may be configured.
const MAX_SCOPES: usize = 64;
/// Range of `timeout_ms`, in milliseconds.
const TIMEOUT_MS: std::ops::RangeInclusive<u64> = 100..=300_000;
/// Range of `idle_ms`, in milliseconds.
const IDLE_MS: std::ops::RangeInclusive<u64> = 1_000..=86_400_000;
/// Range of `connections`.
const CONNECTIONS: std::ops::RangeInclusive<usize> = 1..=4_096;

/// Signing in at an MCP server by OAuth 2.1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OAuthConfig {
    /// The party that signs in: a person, once, by `kairo mcp login` (`authorization_code`), or tool-runner itself
    /// (`client_credentials`). Default `authorization_code`, which needs `privacy.master_key`: tokens are sealed under
    /// it.
    pub grant: GrantType,
    /// The client's identifier at the authorization server. Default none: each sign-in registers a client (RFC 7591).
    /// `client_credentials` needs one.
    pub client_id: Option<String>,
    /// The secret of `client_id`; `env:NAME` takes it from the environment. Default none, as public clients have none.
    pub client_secret: Secret,
    /// The `https` address of a client ID metadata document, which is the identifier where the authorization server
    /// knows such documents and there is no `client_id`. Default none.
    pub client_metadata_url: Option<String>,
    /// Scopes to ask for. Default those that the server names. Further scopes the server demands are added.
    pub scopes: Vec<String>,
    /// True if the authorization server may have a private address. Loopback addresses are allowed where the MCP server
    /// has one itself. Default false.
    pub allow_private: bool,
    /// Time limit for discovery and a token request together, in milliseconds. Default 20 000.
    pub timeout_ms: u64,
    /// The owner of a sign-in: one for the `server`, with which every user's calls act, or one for each `user`.
    /// Default `server`. `user` needs the grant `authorization_code`.
    pub per: SignInOwner,
    /// With `per = "user"`, the maximum number of connections from one replica to the server, one for each user; for a
    /// further user, the connection unused for longest is closed. Default 64.
    pub connections: usize,
    /// With `per = "user"`, a connection without calls is closed after this time, in milliseconds. Default 600 000.
    pub idle_ms: u64,
}

/// The owner of a sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignInOwner {
    #[default]
    Server,
    User,
}

/// The party that signs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantType {
    #[default]
    AuthorizationCode,
    ClientCredentials,
}

impl Default for OAuthConfig {
    fn default() -> Self {
        Self {
            grant: GrantType::default(),
            client_id: None,
            client_secret: Secret::default(),
            client_metadata_url: None,
            scopes: Vec::new(),
            allow_private: false,
            timeout_ms: 20_000,
            per: SignInOwner::default(),
            connections: 64,
            idle_ms: 600_000,
        }
    }
}

impl OAuthConfig {
    /// Every mistake, after its key.
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        let id = self.client_id.as_deref();
        if id.is_some_and(str::is_empty) {
            mistakes.push("client_id: must not be empty".to_owned());
        }
        if self.grant == GrantType::ClientCredentials && (id.is_none() || self.client_secret.is_empty()) {
            mistakes.push("grant: client_credentials needs client_id and client_secret".to_owned());
        }
        if id.is_none() && !self.client_secret.is_empty() {
            mistakes.push("client_secret: needs its client_id".to_owned());
        }
        let is_document =
            |url: &str| Url::parse(url).is_ok_and(|url| url.scheme() == "https" && url.has_host() && url.path() != "/");
        if self.client_metadata_url.as_deref().is_some_and(|url| !is_document(url)) {
            mistakes.push("client_metadata_url: must be an https:// address with a path".to_owned());
        }
        let is_scope = |scope: &String| {
            !scope.is_empty() && scope.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
        };
        if self.scopes.len() > MAX_SCOPES || !self.scopes.iter().all(is_scope) {
            mistakes.push(format!("scopes: at most {MAX_SCOPES}, each without spaces and quotes"));
        }
        if !TIMEOUT_MS.contains(&self.timeout_ms) {
            let least = TIMEOUT_MS.start();
            let most = TIMEOUT_MS.end();
            mistakes.push(format!("timeout_ms: must be {least} to {most} milliseconds"));
        }
        if self.per == SignInOwner::User && self.grant == GrantType::ClientCredentials {
            mistakes.push("per: user needs the grant authorization_code".to_owned());
        }
        if !CONNECTIONS.contains(&self.connections) {
            let least = CONNECTIONS.start();
            let most = CONNECTIONS.end();
            mistakes.push(format!("connections: must be {least} to {most}"));
        }
        if !IDLE_MS.contains(&self.idle_ms) {
            let least = IDLE_MS.start();
            let most = IDLE_MS.end();
            mistakes.push(format!("idle_ms: must be {least} to {most} milliseconds"));
        }
        mistakes
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn mistakes(value: Value) -> Vec<String> {
        serde_json::from_value::<OAuthConfig>(value).unwrap().mistakes()
    }

    #[test]
    fn the_default_and_the_two_grants_are_valid() {
        for value in [
            json!({}),
            json!({"grant": "authorization_code", "client_id": "kairo", "scopes": ["read", "mcp:write"]}),
            json!({"grant": "client_credentials", "client_id": "kairo", "client_secret": "s"}),
            json!({"client_metadata_url": "https://example.com/kairo.json"}),
            json!({"per": "user", "connections": 1, "idle_ms": 1000}),
        ] {
            assert_eq!(mistakes(value.clone()), Vec::<String>::new(), "{value}");
        }
    }

    #[test]
    fn each_mistake_is_named() {
        for (value, key) in [
            (json!({"grant": "client_credentials", "client_id": "kairo"}), "grant: "),
            (json!({"client_secret": "s"}), "client_secret: "),
            (json!({"client_id": ""}), "client_id: "),
            (json!({"client_metadata_url": "http://example.com/kairo.json"}), "client_metadata_url: "),
            (json!({"client_metadata_url": "https://example.com"}), "client_metadata_url: "),
            (json!({"scopes": ["read write"]}), "scopes: "),
            (json!({"timeout_ms": 0}), "timeout_ms: "),
            (
                json!({"per": "user", "grant": "client_credentials", "client_id": "kairo", "client_secret": "s"}),
                "per: ",
            ),
            (json!({"connections": 0}), "connections: "),
            (json!({"idle_ms": 0}), "idle_ms: "),
        ] {
            let mistakes = mistakes(value.clone());
            assert!(mistakes.len() == 1 && mistakes[0].starts_with(key), "{value}: {mistakes:?}");
        }
    }
}
