//! The configuration of a token issuer.

use jsonwebtoken::Algorithm;
use kairo_core::config::{Mistake, check};
use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// An issuer of tokens that is trusted.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OidcConfig {
    /// The value of `iss` in its tokens, letter by letter. Needed.
    pub issuer: String,
    /// Accepted audiences: one value of `aud` in a token must be among these. Needed.
    pub audience: Vec<String>,
    /// URL of its keys (a JWK set): https, or http on this machine. Needed, if there is no `jwks_file`.
    pub jwks_url: String,
    /// File with its keys, read again as often as the URL would be. Default none.
    pub jwks_file: String,
    /// Algorithms that its tokens may be signed with: RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 or EdDSA.
    /// Default RS256 and ES256.
    pub algorithms: Vec<SignatureAlgorithm>,
    /// The claim that names the user the bearer is limited to; it must be a valid user name. Empty for bearers that may
    /// speak as any user. Default `sub`.
    pub user_claim: String,
    /// Prefix of its users' names, followed by a `-` and the value of the claim, to tell apart the users of several
    /// issuers: up to 32 lower-case letters, digits, `-` and `_`. Empty for the claim alone, which is the default; of
    /// several issuers without a prefix, the first has the claim alone, and names of the others' users begin with
    /// `oidc-` and a digest of `issuer`.
    pub user_prefix: String,
    /// The claim that lists the bearer's scopes: words between spaces, or a list. Default `scope`.
    pub scope_claim: String,
    /// Prefix of Kairo's scopes: `kairo:read`, `kairo:write`, `kairo:admin`. Others are ignored. Default `kairo:`.
    pub scope_prefix: String,
    /// The claim that lists the agents the bearer is limited to; a token without it is then refused. Empty for all
    /// agents, which is the default.
    pub agents_claim: String,
    /// Tolerated difference between the issuer's clock and the gateway's, in milliseconds, of which whole seconds
    /// count: a token is accepted for this long after it has expired. Default 30000.
    pub clock_skew_ms: u64,
    /// Interval between fetches of its keys, in milliseconds. Default 300000.
    pub jwks_refresh_ms: u64,
    /// Shortest time between a fetch of its keys and the next one that a token with an unknown key causes, in
    /// milliseconds. Default 30000.
    pub jwks_retry_ms: u64,
    /// Time limit for fetching its keys, in milliseconds. Default 5000.
    pub jwks_timeout_ms: u64,
    /// Time for which keys that cannot be fetched again are trusted, in milliseconds. Default 86400000.
    pub jwks_max_age_ms: u64,
    /// The client as which the console signs in at the issuer: a public one (authorization code with PKCE), sent back
    /// to `/console/signed-in`. Empty where the console does not sign in there, which is the default.
    pub console_client_id: String,
    /// URL to which the console sends users to sign in: https, or http on this machine. Needed, if there is a
    /// `console_client_id`.
    pub console_authorization_url: String,
    /// URL at which the console exchanges the authorization code for a token: https, or http on this machine. It must
    /// answer pages of the gateway (CORS). Needed, if there is a `console_client_id`.
    pub console_token_url: String,
    /// Scopes the console asks for, separated by spaces. Default `openid`.
    pub console_scope: String,
}

/// An algorithm whose signatures are checked with a key that everybody may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SignatureAlgorithm {
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    ES256,
    ES384,
    EdDSA,
}

impl SignatureAlgorithm {
    pub fn to_jwt_algorithm(self) -> Algorithm {
        match self {
            Self::RS256 => Algorithm::RS256,
            Self::RS384 => Algorithm::RS384,
            Self::RS512 => Algorithm::RS512,
            Self::PS256 => Algorithm::PS256,
            Self::PS384 => Algorithm::PS384,
            Self::PS512 => Algorithm::PS512,
            Self::ES256 => Algorithm::ES256,
            Self::ES384 => Algorithm::ES384,
            Self::EdDSA => Algorithm::EdDSA,
        }
    }
}

impl Default for OidcConfig {
    fn default() -> Self {
        Self {
            issuer: String::new(),
            audience: Vec::new(),
            jwks_url: String::new(),
            jwks_file: String::new(),
            algorithms: vec![SignatureAlgorithm::RS256, SignatureAlgorithm::ES256],
            user_claim: "sub".to_owned(),
            user_prefix: String::new(),
            scope_claim: "scope".to_owned(),
            scope_prefix: "kairo:".to_owned(),
            agents_claim: String::new(),
            clock_skew_ms: 30_000,
            jwks_refresh_ms: 300_000,
            jwks_retry_ms: 30_000,
            jwks_timeout_ms: 5_000,
            jwks_max_age_ms: 86_400_000,
            console_client_id: String::new(),
            console_authorization_url: String::new(),
            console_token_url: String::new(),
            console_scope: "openid".to_owned(),
        }
    }
}

impl OidcConfig {
    /// Returns every mistake in the configuration, each with its key.
    pub fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        let found = &mut mistakes;
        let needed = [
            ("issuer", self.issuer.is_empty(), "say what its tokens have in iss"),
            ("audience", self.audience.is_empty(), "say what its tokens for Kairo have in aud, such as [\"kairo\"]"),
            ("algorithms", self.algorithms.is_empty(), "name one, such as [\"RS256\"]"),
            ("scope_claim", self.scope_claim.is_empty(), "name the claim that says what the bearer may do"),
        ];
        let missing = needed.into_iter().filter(|(_, missing, _)| *missing);
        found.extend(missing.map(|(key, _, advice)| Mistake::new(key, "it is empty", advice)));
        if self.jwks_url.is_empty() == self.jwks_file.is_empty() {
            let advice = "say where the issuer's keys are, in jwks_url or in jwks_file";
            found.push(Mistake::new("jwks_url", "there must be one of it and jwks_file", advice));
        }
        if !self.jwks_url.is_empty() && !is_trustworthy(&self.jwks_url) {
            let advice = "use https; http is for addresses of this machine";
            found.push(Mistake::new("jwks_url", format!("{:?} cannot be trusted", self.jwks_url), advice));
        }
        if !self.console_client_id.is_empty() {
            let urls = [
                ("console_authorization_url", &self.console_authorization_url),
                ("console_token_url", &self.console_token_url),
            ];
            let wrong = urls.into_iter().filter(|(_, url)| !is_trustworthy(url));
            let advice =
                "say it as the issuer's openid-configuration does, with https; http is for addresses of this machine";
            found.extend(wrong.map(|(key, url)| Mistake::new(key, format!("{url:?} cannot be trusted"), advice)));
        }
        check(found, "clock_skew_ms", self.clock_skew_ms, 0..=600_000, "milliseconds");
        check(found, "jwks_refresh_ms", self.jwks_refresh_ms, 100..=86_400_000, "milliseconds");
        check(found, "jwks_retry_ms", self.jwks_retry_ms, 100..=86_400_000, "milliseconds");
        check(found, "jwks_timeout_ms", self.jwks_timeout_ms, 10..=60_000, "milliseconds");
        check(found, "jwks_max_age_ms", self.jwks_max_age_ms, self.jwks_refresh_ms..=2_592_000_000, "milliseconds");
        mistakes
    }
}

/// Returns true if nobody on the way can change what is fetched from `url`: https, or http on this machine.
fn is_trustworthy(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let here = match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    url.scheme() == "https" || url.scheme() == "http" && here
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_or_cannot_be_trusted_is_named() {
        let keys = |config: &OidcConfig| config.mistakes().into_iter().map(|mistake| mistake.key).collect::<Vec<_>>();
        assert_eq!(keys(&OidcConfig::default()), ["issuer", "audience", "jwks_url"]);
        let good = OidcConfig {
            issuer: "https://login.example.com".to_owned(),
            audience: vec!["kairo".to_owned()],
            jwks_url: "https://login.example.com/jwks".to_owned(),
            ..OidcConfig::default()
        };
        assert!(good.mistakes().is_empty(), "{:?}", good.mistakes());
        for url in ["http://login.example.com/jwks", "http://localhost.example.com", "ftp://127.0.0.1", "jwks"] {
            assert_eq!(keys(&OidcConfig { jwks_url: url.to_owned(), ..good.clone() }), ["jwks_url"], "{url}");
        }
        for url in ["http://127.0.0.1:1/jwks", "http://localhost/jwks", "http://[::1]/jwks"] {
            assert!(keys(&OidcConfig { jwks_url: url.to_owned(), ..good.clone() }).is_empty(), "{url}");
        }
        assert_eq!(keys(&OidcConfig { jwks_file: "keys.json".to_owned(), ..good.clone() }), ["jwks_url"]);
        // Where one signs in with a password, and where a token comes from.
        let console = OidcConfig { console_client_id: "console".to_owned(), ..good.clone() };
        assert_eq!(keys(&console), ["console_authorization_url", "console_token_url"]);
        let at = |url: &str| OidcConfig {
            console_authorization_url: url.to_owned(),
            console_token_url: "https://login.example.com/token".to_owned(),
            ..console.clone()
        };
        assert_eq!(keys(&at("http://login.example.com/authorize")), ["console_authorization_url"]);
        assert!(keys(&at("https://login.example.com/authorize")).is_empty());
        // Nothing that whoever knows the issuer's public key could sign with it.
        for algorithm in ["HS256", "none", "None"] {
            assert!(serde_json::from_value::<SignatureAlgorithm>(algorithm.into()).is_err(), "{algorithm}");
        }
    }
}
