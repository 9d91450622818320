//! Tokens of issuers that the operator trusts (OpenID Connect): JWTs, beside API keys.
//!
//! A token names its issuer, and is trusted only if one of that issuer's keys ([`jwks`]) has signed it with one of the
//! algorithms configured for the issuer, all of them asymmetric. The configured claims state the rights of the bearer
//! ([`claims`]).

pub mod claims;
pub mod config;
mod crypto;
mod jwks;
pub mod names;

use std::{collections::HashSet, sync::Arc};

use jiff::Timestamp;
use jsonwebtoken::{Algorithm, Header, Validation, dangerous::insecure_decode, decode, decode_header};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::Caller;
use crate::problem::Problem;
use claims::BearerToken;
use config::OidcConfig;
use jwks::Jwks;
use names::UserNaming;

/// The first characters of every JWT header: `{"`, in base64.
const BEGINNING: &str = "eyJ";
/// Longest token that is looked at, in bytes.
const MAX_TOKEN: usize = 16_384;
const MS_PER_S: u64 = 1_000;

/// The issuers that are trusted. Cloning it is cheap.
#[derive(Clone)]
pub struct TrustedIssuers(Arc<[TrustedIssuer]>);

struct TrustedIssuer {
    config: OidcConfig,
    /// The naming of its users.
    names: UserNaming,
    jwks: Arc<Jwks>,
}

/// The claims read from a token before it is verified.
#[derive(Deserialize)]
struct UnverifiedClaims {
    iss: String,
}

impl TrustedIssuers {
    /// Fetches issuers' keys now, and anew as long as the gateway runs.
    ///
    /// # Errors
    /// When no HTTP client can be made on this machine.
    pub fn open(configs: &[OidcConfig], shutdown: &CancellationToken) -> reqwest::Result<Self> {
        crypto::install_provider();
        let issuers = configs.iter().zip(UserNaming::for_issuers(configs)).map(|(config, names)| {
            let jwks = Arc::new(Jwks::new(config)?);
            let fetching = jwks.clone();
            let shutdown = shutdown.clone();
            tokio::spawn(async move { shutdown.run_until_cancelled(fetching.keep_fresh()).await });
            Ok(TrustedIssuer { config: config.clone(), names, jwks })
        });
        Ok(Self(issuers.collect::<reqwest::Result<_>>()?))
    }

    /// Returns true if issuers are configured and the text looks like a token, not an API key.
    pub fn is_token(&self, text: &str) -> bool {
        !self.0.is_empty() && text.starts_with(BEGINNING)
    }

    /// Returns the bearer of the token; none if it is not in force, for whatever reason.
    ///
    /// # Errors
    /// If the keys of its issuer cannot be fetched.
    pub async fn authenticate_token(&self, text: &str, now: Timestamp) -> Result<Option<Caller>, Problem> {
        if text.len() > MAX_TOKEN {
            return Ok(None);
        }
        let (Ok(header), Ok(unverified)) = (decode_header(text), insecure_decode::<UnverifiedClaims>(text)) else {
            return Ok(None);
        };
        let Some(issuer) = self.0.iter().find(|issuer| issuer.config.issuer == unverified.claims.iss) else {
            return Ok(None);
        };
        let token = issuer.verify_token(text, &header).await?.filter(|token| now < token.expires_at);
        Ok(token.map(|token| Caller::Bearer(Arc::new(token))))
    }

    /// Returns the caller for a ticket that stands for the bearer of a token; none if the token has expired or its
    /// issuer is no longer trusted.
    pub fn renew_caller(&self, token: &BearerToken, now: Timestamp) -> Option<Caller> {
        let is_trusted = self.0.iter().any(|issuer| issuer.config.issuer == token.issuer);
        (is_trusted && now < token.expires_at).then(|| Caller::Bearer(Arc::new(token.clone())))
    }
}

impl TrustedIssuer {
    async fn verify_token(&self, text: &str, header: &Header) -> Result<Option<BearerToken>, Problem> {
        if !self.config.algorithms.iter().any(|allowed| allowed.to_jwt_algorithm() == header.alg) {
            return Ok(self.log_refusal("its algorithm is not one that is configured"));
        }
        let Some(key) = self.jwks.find_or_fetch_key(header.kid.as_deref(), header.alg).await? else {
            return Ok(self.log_refusal("none of its issuer's keys is the one it names"));
        };
        let claims = match decode::<Map<String, Value>>(text, &key, &self.build_validation(header.alg)) {
            Ok(decoded) => decoded.claims,
            // Which says what is wrong, and nothing of what the token says.
            Err(error) => return Ok(self.log_refusal(&error.to_string())),
        };
        match BearerToken::from_claims(&self.config, &self.names, &claims) {
            Ok(token) => Ok(Some(token)),
            Err(reason) => Ok(self.log_refusal(&reason)),
        }
    }

    fn build_validation(&self, algorithm: Algorithm) -> Validation {
        let mut validation = Validation::new(algorithm);
        validation.leeway = self.config.clock_skew_ms / MS_PER_S;
        validation.validate_nbf = true;
        validation.required_spec_claims = HashSet::from(["exp", "iss", "aud"].map(str::to_owned));
        validation.set_issuer(&[&self.config.issuer]);
        validation.set_audience(&self.config.audience);
        validation
    }

    /// For the operator, who wonders why somebody is not let in; whoever sent it is not told.
    fn log_refusal<T>(&self, reason: &str) -> Option<T> {
        tracing::debug!(issuer = self.config.issuer, reason, "a token is refused");
        None
    }
}
