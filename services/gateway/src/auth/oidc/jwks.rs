//! The keys of an issuer, as it publishes them (RFC 7517), and fetched anew: now and then, and when a token names one that
//! is not known, which is how a key that the issuer has just begun to use is first heard of. Anybody can make up names of
//! keys, so for that they are fetched only so often.

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use futures::StreamExt;
use jsonwebtoken::{
    Algorithm, DecodingKey,
    jwk::{Jwk, PublicKeyUse},
};
use serde_json::Value;
use tokio::{
    sync::Mutex,
    time::{Instant, sleep, timeout},
};

use super::config::OidcConfig;
use crate::problem::Problem;

/// Largest set of keys that is read, in bytes.
const MAX_BYTES: usize = 262_144;

/// The signing keys of an issuer, as last fetched.
pub struct Jwks {
    issuer: String,
    source: JwksSource,
    known: RwLock<Option<Arc<KeySet>>>,
    /// When they were fetched last, or that was tried. Whoever has it fetches.
    tried: Mutex<Option<Instant>>,
    times: FetchTiming,
}

struct FetchTiming {
    refresh: Duration,
    retry: Duration,
    timeout: Duration,
    max_age: Duration,
}

enum JwksSource {
    Url(reqwest::Client, String),
    File(String),
}

struct KeySet {
    keys: Vec<VerificationKey>,
    fetched: Instant,
}

struct VerificationKey {
    id: Option<String>,
    /// The only one it is for, if it says so.
    algorithm: Option<String>,
    key: DecodingKey,
}

/// The failure to fetch the keys of an issuer.
#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("{0}")]
    Http(#[from] reqwest::Error),
    #[error("{0}")]
    File(#[from] std::io::Error),
    #[error("it is no JWK set: {0}")]
    NotJson(#[from] serde_json::Error),
    #[error("it is larger than {MAX_BYTES} bytes")]
    TooLarge,
    #[error("there is no key in it that can be used")]
    Empty,
    #[error("it took longer than jwks_timeout_ms")]
    TooSlow,
}

impl Jwks {
    pub fn new(config: &OidcConfig) -> reqwest::Result<Self> {
        let source = match config.jwks_file.as_str() {
            "" => {
                // Where it is configured to be, and nowhere else.
                let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
                JwksSource::Url(client.build()?, config.jwks_url.clone())
            }
            file => JwksSource::File(file.to_owned()),
        };
        let [refresh, retry, timeout, max_age] =
            [config.jwks_refresh_ms, config.jwks_retry_ms, config.jwks_timeout_ms, config.jwks_max_age_ms]
                .map(Duration::from_millis);
        let times = FetchTiming { refresh, retry, timeout, max_age };
        Ok(Self { issuer: config.issuer.clone(), source, known: RwLock::default(), tried: Mutex::default(), times })
    }

    /// Fetches them for ever.
    pub async fn keep_fresh(self: Arc<Self>) {
        loop {
            let mut tried = self.tried.lock().await;
            self.fetch_keys(&mut tried).await;
            drop(tried);
            // Without any, nobody is let in: it is tried as often as it may be.
            let pause = if self.fresh_keys().is_some() { self.times.refresh } else { self.times.retry };
            sleep(pause.min(self.times.refresh)).await;
        }
    }

    /// The key of this name for this algorithm, fetched if it is not known yet; none if there is none.
    ///
    /// # Errors
    /// When there are no keys, or none that are young enough.
    pub async fn find_or_fetch_key(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Option<DecodingKey>, Problem> {
        let known = || self.fresh_keys().and_then(|set| set.find_key(id, algorithm));
        if let Some(key) = known() {
            return Ok(Some(key));
        }
        let mut tried = self.tried.lock().await;
        // Whoever had it before may have fetched it.
        if known().is_none() && tried.is_none_or(|tried| tried.elapsed() >= self.times.retry) {
            self.fetch_keys(&mut tried).await;
        }
        drop(tried);
        match self.fresh_keys() {
            Some(set) => Ok(set.find_key(id, algorithm)),
            None => Err(Problem::unavailable("the keys of the token's issuer cannot be fetched; try again")),
        }
    }

    /// Those that are known, and young enough to be trusted.
    fn fresh_keys(&self) -> Option<Arc<KeySet>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner).clone();
        known.filter(|set| set.fetched.elapsed() < self.times.max_age)
    }

    async fn fetch_keys(&self, tried: &mut Option<Instant>) {
        *tried = Some(Instant::now());
        let fetched = timeout(self.times.timeout, self.read_source()).await.unwrap_or(Err(FetchError::TooSlow));
        match fetched.and_then(|text| KeySet::parse(&text)) {
            Ok(set) => *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(set)),
            Err(error) => tracing::warn!(issuer = self.issuer, %error, "the keys of an issuer cannot be fetched"),
        }
    }

    async fn read_source(&self) -> Result<Vec<u8>, FetchError> {
        let (client, url) = match &self.source {
            JwksSource::Url(client, url) => (client, url),
            JwksSource::File(path) => {
                let text = tokio::fs::read(path).await?;
                return if text.len() <= MAX_BYTES { Ok(text) } else { Err(FetchError::TooLarge) };
            }
        };
        let mut pieces = client.get(url).send().await?.error_for_status()?.bytes_stream();
        let mut text = Vec::new();
        while let Some(piece) = pieces.next().await.transpose()? {
            if text.len() + piece.len() > MAX_BYTES {
                return Err(FetchError::TooLarge);
            }
            text.extend_from_slice(&piece);
        }
        Ok(text)
    }
}

impl KeySet {
    /// Keys that are for something else, or of a kind that is not known, are passed over.
    fn parse(text: &[u8]) -> Result<Self, FetchError> {
        let set: Value = serde_json::from_slice(text)?;
        let listed = set.get("keys").and_then(Value::as_array).cloned().unwrap_or_default();
        let keys: Vec<VerificationKey> = listed.into_iter().filter_map(VerificationKey::from_listed).collect();
        match keys.is_empty() {
            true => Err(FetchError::Empty),
            false => Ok(Self { keys, fetched: Instant::now() }),
        }
    }

    /// A token that names no key is signed with the only one there is.
    fn find_key(&self, id: Option<&str>, algorithm: Algorithm) -> Option<DecodingKey> {
        let found = match (id, self.keys.as_slice()) {
            (Some(id), keys) => keys.iter().find(|key| key.id.as_deref() == Some(id)),
            (None, [only]) => Some(only),
            (None, _) => None,
        };
        found.filter(|key| key.is_for(algorithm)).map(|key| key.key.clone())
    }
}

impl VerificationKey {
    fn from_listed(listed: Value) -> Option<Self> {
        let algorithm = listed.get("alg").and_then(Value::as_str).map(str::to_owned);
        let jwk: Jwk = serde_json::from_value(listed).ok()?;
        let signs = jwk.common.public_key_use.as_ref().is_none_or(|used| *used == PublicKeyUse::Signature);
        let key = DecodingKey::from_jwk(&jwk).ok().filter(|_| signs)?;
        Some(Self { id: jwk.common.key_id, algorithm, key })
    }

    fn is_for(&self, algorithm: Algorithm) -> bool {
        let named = |named: &String| format!("{algorithm:?}") == *named;
        self.key.family() == algorithm.family() && self.algorithm.as_ref().is_none_or(named)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The point of RFC 7517's example of an elliptic curve key.
    fn ec(id: Option<&str>, more: Value) -> Value {
        let mut key = json!({
            "kty": "EC", "crv": "P-256", "kid": id,
            "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM",
        });
        key.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        key
    }

    fn read(keys: Value) -> Result<KeySet, FetchError> {
        KeySet::parse(json!({ "keys": keys }).to_string().as_bytes())
    }

    #[test]
    fn keys_are_found_by_their_names_and_for_what_they_are_for() {
        let one = read(json!([ec(Some("a"), json!({}))])).unwrap();
        assert!(one.find_key(Some("a"), Algorithm::ES256).is_some() && one.find_key(None, Algorithm::ES256).is_some());
        assert!(one.find_key(Some("b"), Algorithm::ES256).is_none());
        // Never checked otherwise than its kind of key is: not as if it were a secret, above all.
        for algorithm in [Algorithm::HS256, Algorithm::RS256, Algorithm::EdDSA] {
            assert!(one.find_key(Some("a"), algorithm).is_none(), "{algorithm:?}");
        }
        let two =
            read(json!([ec(Some("a"), json!({ "alg": "ES384" })), ec(Some("b"), json!({ "use": "sig" }))])).unwrap();
        assert!(two.find_key(None, Algorithm::ES256).is_none() && two.find_key(Some("b"), Algorithm::ES256).is_some());
        assert!(two.find_key(Some("a"), Algorithm::ES256).is_none());
    }

    #[test]
    fn what_cannot_be_used_is_passed_over() {
        let odd = json!([{ "kty": "new" }, 7, ec(Some("e"), json!({ "use": "enc" })), ec(Some("a"), json!({}))]);
        let set = read(odd).unwrap();
        assert_eq!(set.keys.len(), 1);
        assert!(set.find_key(Some("a"), Algorithm::ES256).is_some());
        for nothing in [json!([]), json!([{ "kty": "new" }]), Value::Null] {
            assert!(matches!(read(nothing), Err(FetchError::Empty)));
        }
        assert!(matches!(KeySet::parse(b"<html>"), Err(FetchError::NotJson(_))));
    }
}
