//! The stored record of a sign-in: pure data.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use rmcp::transport::auth::{OAuthClientConfig, OAuthTokenResponse, StoredAuthorizationState, StoredCredentials};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A token that ends within this time is renewed first.
const EARLY: SignedDuration = SignedDuration::from_secs(30);
/// A renewal that began so long ago is somebody's who is gone.
pub const LEASE: SignedDuration = SignedDuration::from_secs(60);
/// So long a person may take to sign in.
pub const PATIENCE: SignedDuration = SignedDuration::from_mins(15);

/// All that is kept of the sign-in at one server.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SignInRecord {
    /// Tokens that a person granted.
    pub grant: Option<OAuthTokens>,
    /// The `WWW-Authenticate` header of a request that the server refused: it locates the authorization server.
    pub challenge: Option<String>,
    /// Scopes that the server wanted besides what was granted.
    pub wanted: Vec<String>,
    /// A sign-in that has begun and waits for its person.
    pub pending: Option<PendingSignIn>,
    /// The replica that renews the token now.
    pub lease: Option<RenewalLease>,
    /// The sign-in of a user at this server that was the last to end; in the record of the server.
    pub latest: Option<LatestSignIn>,
    /// When a person granted what is granted.
    pub since: Option<Timestamp>,
}

/// A sign-in of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatestSignIn {
    pub user: String,
    pub at: Timestamp,
}

/// A client as the authorization server knows it.
#[derive(Clone, Serialize, Deserialize)]
pub struct OAuthClient {
    pub id: String,
    pub secret: Option<String>,
    pub redirect_uri: String,
}

/// Tokens issued by the authorization server.
#[derive(Clone, Serialize, Deserialize)]
pub struct OAuthTokens {
    pub client: OAuthClient,
    pub access_token: String,
    pub refresh_token: Option<String>,
    /// `None` if the authorization server did not say.
    pub expires_at: Option<Timestamp>,
    pub scopes: Vec<String>,
    /// The issuer of the tokens: nobody else is shown them.
    pub issuer: Option<String>,
}

/// A sign-in that has begun.
#[derive(Clone, Serialize, Deserialize)]
pub struct PendingSignIn {
    pub client: OAuthClient,
    pub state: StoredAuthorizationState,
    pub begun: Timestamp,
}

/// The lease of the replica that renews a token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RenewalLease {
    pub holder: String,
    pub until: Timestamp,
}

// What they hold is secret.
impl fmt::Debug for SignInRecord {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("record of a sign-in")
    }
}

impl fmt::Debug for OAuthClient {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "client {}", self.id)
    }
}

impl fmt::Debug for OAuthTokens {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "tokens of {:?}", self.client)
    }
}

impl fmt::Debug for PendingSignIn {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "pending sign-in of {:?}", self.client)
    }
}

/// The fields of a token response that are kept.
#[derive(Deserialize)]
struct TokenResponse {
    access_token: String,
    refresh_token: Option<String>,
    expires_in: Option<i64>,
}

impl OAuthClient {
    /// As the library wants it.
    pub fn to_client_config(&self) -> OAuthClientConfig {
        let config = OAuthClientConfig::new(self.id.clone(), self.redirect_uri.clone());
        match &self.secret {
            Some(secret) => config.with_client_secret(secret.clone()),
            None => config,
        }
    }
}

impl OAuthTokens {
    /// Reads what the authorization server answered at this time.
    ///
    /// # Errors
    /// When it does not hold what a token's response must.
    pub fn from_response(
        response: &OAuthTokenResponse,
        client: OAuthClient,
        scopes: Vec<String>,
        issuer: Option<String>,
        now: Timestamp,
    ) -> Result<Self, serde_json::Error> {
        let TokenResponse { access_token, refresh_token, expires_in } =
            serde_json::from_value(serde_json::to_value(response)?)?;
        let expires_at = expires_in.and_then(|seconds| now.checked_add(SignedDuration::from_secs(seconds)).ok());
        Ok(Self { client, access_token, refresh_token, expires_at, scopes, issuer })
    }

    /// As the library keeps them, to be renewed.
    ///
    /// # Errors
    /// When the library reads them in another way.
    pub fn to_stored_credentials(&self) -> Result<StoredCredentials, serde_json::Error> {
        let response = json!({
            "access_token": self.access_token, "token_type": "bearer", "refresh_token": self.refresh_token,
        });
        let response = serde_json::from_value(response)?;
        let stored = StoredCredentials::new(self.client.id.clone(), Some(response), self.scopes.clone(), None);
        Ok(stored.with_issuer(self.issuer.clone()))
    }

    /// Returns true if the tokens do not expire within `EARLY` from now.
    pub fn are_fresh(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| now.duration_until(end) > EARLY)
    }
}

impl SignInRecord {
    /// Returns true if the record holds no state of a sign-in.
    pub fn is_empty(&self) -> bool {
        let Self { grant, challenge, wanted, pending, lease, latest, since: _ } = self;
        let is_granted = grant.is_some() || pending.is_some();
        !is_granted && challenge.is_none() && wanted.is_empty() && lease.is_none() && latest.is_none()
    }

    /// Returns true if another replica holds the lease to renew the token.
    pub fn is_leased(&self, holder: &str, now: Timestamp) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.holder != holder && lease.until > now)
    }

    /// Returns the pending sign-in with this `state`, unless it is older than `PATIENCE`.
    pub fn find_pending(&self, state: &str, now: Timestamp) -> Option<&PendingSignIn> {
        let pending = self.pending.as_ref()?;
        let is_young = pending.begun.duration_until(now) < PATIENCE;
        (is_young && pending.state.csrf_token == state).then_some(pending)
    }

    /// Adds scopes that the server wants.
    pub fn add_wanted_scopes(&mut self, scopes: &str) {
        self.wanted = merge_scopes(&self.wanted, scopes.split_whitespace());
    }
}

/// These scopes and those, each once, in the order in which they came.
pub fn merge_scopes<'s>(scopes: &[String], more: impl IntoIterator<Item = &'s str>) -> Vec<String> {
    let mut all = scopes.to_vec();
    for scope in more {
        if !all.iter().any(|known| known == scope) {
            all.push(scope.to_owned());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client() -> OAuthClient {
        OAuthClient {
            id: "kairo".into(),
            secret: Some("s3cret".into()),
            redirect_uri: "http://127.0.0.1:1/callback".into(),
        }
    }

    fn tokens(response: serde_json::Value, now: Timestamp) -> OAuthTokens {
        let response: OAuthTokenResponse = serde_json::from_value(response).unwrap();
        OAuthTokens::from_response(&response, client(), vec!["read".into()], Some("https://issuer".into()), now)
            .unwrap()
    }

    #[test]
    fn tokens_are_fresh_until_shortly_before_their_end() {
        let now = Timestamp::UNIX_EPOCH;
        let later = |seconds| now + SignedDuration::from_secs(seconds);
        let an_hour = tokens(json!({"access_token": "a", "token_type": "Bearer", "expires_in": 3600}), now);
        assert!(an_hour.are_fresh(now) && an_hour.are_fresh(later(3569)));
        assert!(!an_hour.are_fresh(later(3571)) && !an_hour.are_fresh(later(9999)));
        let without_end = tokens(json!({"access_token": "a", "token_type": "bearer"}), now);
        assert!(without_end.are_fresh(later(999_999)));
    }

    #[test]
    fn the_library_reads_what_is_kept() {
        let response = json!({"access_token": "a", "token_type": "bearer", "refresh_token": "r"});
        let stored = tokens(response, Timestamp::UNIX_EPOCH).to_stored_credentials().unwrap();
        assert_eq!((stored.client_id.as_str(), stored.issuer.as_deref()), ("kairo", Some("https://issuer")));
        let response = serde_json::to_value(stored.token_response).unwrap();
        assert_eq!((&response["access_token"], &response["refresh_token"]), (&json!("a"), &json!("r")));
    }

    #[test]
    fn nothing_secret_is_shown() {
        let response = json!({"access_token": "t0ken", "token_type": "bearer", "refresh_token": "t0ken"});
        let tokens = tokens(response, Timestamp::UNIX_EPOCH);
        let record = SignInRecord { grant: Some(tokens.clone()), ..SignInRecord::default() };
        for shown in [format!("{tokens:?}"), format!("{record:?}"), format!("{:?}", client())] {
            assert!(!shown.contains("t0ken") && !shown.contains("s3cret"), "{shown}");
        }
    }

    #[test]
    fn a_lease_ends_and_hinders_only_others() {
        let now = Timestamp::UNIX_EPOCH;
        let lease = RenewalLease { holder: "one".into(), until: now + LEASE };
        let record = SignInRecord { lease: Some(lease), ..SignInRecord::default() };
        assert!(record.is_leased("two", now) && !record.is_leased("one", now));
        assert!(!record.is_leased("two", now + LEASE));
        assert!(!SignInRecord::default().is_leased("two", now));
    }

    #[test]
    fn scopes_are_united_in_order() {
        let mut record = SignInRecord { wanted: vec!["a".into()], ..SignInRecord::default() };
        record.add_wanted_scopes("b a  c");
        assert_eq!(record.wanted, ["a", "b", "c"]);
    }
}
