//! The steps of a sign-in by a person: begin, return with a code, and sign out.

use rmcp::transport::auth::{AuthError, AuthorizationCallback};
use url::Url;

use super::authorization_server::{AuthorizationServer, describe_error};
use super::config::GrantType;
use super::sign_in::SignIn;
use super::sign_in_record::{LatestSignIn, OAuthTokens, PendingSignIn, SignInRecord, merge_scopes};
use super::vault::VaultError;

/// Time limit for an authorization server to revoke a token.
const REVOKING: std::time::Duration = std::time::Duration::from_secs(10);

/// The outcome of signing out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignOutOutcome {
    /// Nobody was signed in.
    Nothing,
    /// The tokens are forgotten here; the authorization server has no way to be told, or did not take it.
    Forgotten,
    /// The tokens are forgotten here, and the authorization server revoked them.
    Revoked,
}

impl SignIn {
    /// Begins a sign-in; returns the address for a person's browser, which is then redirected to `redirect_uri`.
    ///
    /// # Errors
    /// Tells the person why the sign-in cannot begin.
    pub async fn begin(&self, redirect_uri: &str) -> Result<String, String> {
        if self.config.grant == GrantType::ClientCredentials {
            return Err("tool-runner signs in there by itself (grant client_credentials)".to_owned());
        }
        if !is_loopback(redirect_uri) {
            return Err("redirect_uri: must be http:// on 127.0.0.1, [::1] or localhost".to_owned());
        }
        let record = self.load_record().await?;
        let (address, pending) =
            self.begin_authorization(&record, redirect_uri).await.map_err(|error| describe_error(&error))?;
        self.update_record(|record| record.pending = Some(pending.clone())).await.map_err(|error| error.to_string())?;
        Ok(address)
    }

    async fn begin_authorization(
        &self,
        record: &SignInRecord,
        redirect_uri: &str,
    ) -> Result<(String, PendingSignIn), AuthError> {
        let mut authority = AuthorizationServer::discover(&self.url, &self.config, record.challenge.as_deref()).await?;
        let granted = record.grant.as_ref().filter(|_| !record.wanted.is_empty()).map(|tokens| &tokens.scopes[..]);
        let wanted = merge_scopes(granted.unwrap_or_default(), record.wanted.iter().map(String::as_str));
        let scopes = authority.select_scopes(&self.config, &wanted).await;
        let client = authority.obtain_client(&self.config, redirect_uri, &scopes).await?;
        let (address, state) = authority.authorization_url(&client, &scopes).await?;
        Ok((address, PendingSignIn { client, state, begun: self.now() }))
    }

    /// Completes a sign-in with the address the browser was redirected to; returns the granted scopes.
    ///
    /// # Errors
    /// Tells the person why the sign-in failed.
    pub async fn finish(&self, address: &str) -> Result<Vec<String>, String> {
        if let Some(refused) = callback_error(address) {
            return Err(refused);
        }
        let callback = AuthorizationCallback::from_redirect_url(address)
            .map_err(|_| "the address has no code and state; begin again".to_owned())?;
        let record = self.load_record().await?;
        let pending = record.find_pending(&callback.csrf_token, self.now()).cloned();
        let pending = pending.ok_or("no sign-in waits for this answer; begin again")?;
        let tokens =
            self.exchange_callback(&record, &pending, &callback).await.map_err(|error| describe_error(&error))?;
        let scopes = tokens.scopes.clone();
        self.update_record(|record| {
            *record = SignInRecord {
                grant: Some(tokens.clone()),
                challenge: record.challenge.take(),
                latest: record.latest.take(),
                since: Some(self.now()),
                ..SignInRecord::default()
            };
        })
        .await
        .map_err(|error| error.to_string())?;
        self.record_latest().await.map_err(|error| error.to_string())?;
        Ok(scopes)
    }

    /// Notes at the server that this user was the last to sign in there.
    async fn record_latest(&self) -> Result<(), VaultError> {
        let (Some(user), Some(common)) = (&self.user, &self.common) else { return Ok(()) };
        let latest = LatestSignIn { user: user.to_string(), at: self.now() };
        common.update_record(|record| record.latest = Some(latest.clone())).await
    }

    async fn exchange_callback(
        &self,
        record: &SignInRecord,
        pending: &PendingSignIn,
        callback: &AuthorizationCallback,
    ) -> Result<OAuthTokens, AuthError> {
        let mut authority = AuthorizationServer::discover(&self.url, &self.config, record.challenge.as_deref()).await?;
        if !authority.is_issuer(pending.state.expected_issuer.as_deref()) {
            return Err(AuthError::AuthorizationFailed(
                "the server changed its authorization server meanwhile; begin again".to_owned(),
            ));
        }
        let exchanged = authority
            .exchange_code(&pending.client, &pending.state, &callback.code, callback.issuer.as_deref())
            .await?;
        let (response, scopes) = exchanged;
        let read =
            OAuthTokens::from_response(&response, pending.client.clone(), scopes, authority.issuer(), self.now());
        read.map_err(|error| AuthError::OAuthError(error.to_string()))
    }

    /// Forgets the tokens, and has the authorization server revoke them where it can (RFC 7009).
    ///
    /// # Errors
    /// When what is kept cannot be read or written.
    pub async fn sign_out(&self) -> Result<SignOutOutcome, String> {
        let record = self.load_record().await?;
        let is_of_user = self.is_of_user();
        // Of a user, nothing is left.
        self.update_record(|record| {
            let challenge = record.challenge.take();
            let latest = record.latest.take();
            *record = SignInRecord { challenge: challenge.filter(|_| !is_of_user), latest, ..SignInRecord::default() };
        })
        .await
        .map_err(|error| error.to_string())?;
        self.forget_tokens().await;
        if let (Some(user), Some(common)) = (&self.user, &self.common) {
            let is_latest = |latest: &mut LatestSignIn| *latest.user == **user;
            let forgotten = common.update_record(|record| drop(record.latest.take_if(is_latest)));
            forgotten.await.map_err(|error| error.to_string())?;
        }
        let Some(tokens) = record.grant else { return Ok(SignOutOutcome::Nothing) };
        let is_revoked = self.revoke_tokens(record.challenge.as_deref(), &tokens).await;
        Ok(if is_revoked { SignOutOutcome::Revoked } else { SignOutOutcome::Forgotten })
    }

    async fn revoke_tokens(&self, challenge: Option<&str>, tokens: &OAuthTokens) -> bool {
        let Ok(authority) = AuthorizationServer::discover(&self.url, &self.config, challenge).await else {
            return false;
        };
        let endpoint = authority.metadata_field("revocation_endpoint").and_then(|endpoint| endpoint.as_str());
        let endpoint = endpoint.and_then(|endpoint| Url::parse(endpoint).ok());
        let issuing = Url::parse(authority.token_endpoint()).ok();
        // The library looked at where tokens are asked for; they are sent to no other host.
        let endpoint = endpoint.filter(|endpoint| issuing.is_some_and(|url| url.origin() == endpoint.origin()));
        let (Some(endpoint), true) = (endpoint, authority.is_issuer(tokens.issuer.as_deref())) else { return false };
        let token = tokens.refresh_token.as_ref().unwrap_or(&tokens.access_token);
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(REVOKING).build();
        let Ok(client) = client else { return false };
        let request = client.post(endpoint);
        let mut form = vec![("token", token.as_str())];
        let request = match &tokens.client.secret {
            Some(secret) => request.basic_auth(&tokens.client.id, Some(secret)),
            None => {
                form.push(("client_id", &tokens.client.id));
                request
            }
        };
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let request = request.header("content-type", "application/x-www-form-urlencoded").body(body);
        request.send().await.is_ok_and(|answer| answer.status().is_success())
    }

    /// Returns the stored record. If it has no challenge, takes over that of the server's own record.
    async fn load_record(&self) -> Result<SignInRecord, String> {
        let kept = self.vault.load(&self.key).await.map_err(|error| error.to_string())?;
        let mut record = kept.record;
        if let (None, Some(common)) = (&record.challenge, &self.common) {
            let kept = common.vault.load(&common.key).await.map_err(|error| error.to_string())?;
            record.challenge = kept.record.challenge;
        }
        Ok(record)
    }
}

/// Returns true if the redirect leads to the browser's own machine, where only `kairo mcp login` listens.
fn is_loopback(uri: &str) -> bool {
    let Ok(uri) = Url::parse(uri) else { return false };
    let is_here = match uri.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    is_here && uri.scheme() == "http" && uri.username().is_empty() && uri.fragment().is_none()
}

/// Returns the error that the authorization server sent in place of a code (RFC 6749, section 4.1.2.1).
fn callback_error(address: &str) -> Option<String> {
    let address = Url::parse(address).ok()?;
    let field = |wanted: &str| {
        let found = address.query_pairs().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.chars().take(200).collect::<String>())
    };
    let error = field("error")?;
    let description = field("error_description").map(|text| format!(": {text}")).unwrap_or_default();
    Some(format!("the authorization server refused it: {error}{description}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_sent_back_to() {
        for uri in ["http://127.0.0.1:7/callback", "http://[::1]:7/", "http://localhost/callback"] {
            assert!(is_loopback(uri), "{uri}");
        }
        for uri in
            ["https://127.0.0.1/", "http://example.com/", "http://a@localhost/", "http://localhost.evil.org/", "x"]
        {
            assert!(!is_loopback(uri), "{uri}");
        }
    }

    #[test]
    fn a_refusal_is_told_in_the_words_of_its_server() {
        let told = callback_error("http://127.0.0.1/callback?error=access_denied&error_description=not%20you&state=s");
        assert_eq!(told.as_deref(), Some("the authorization server refused it: access_denied: not you"));
        assert_eq!(callback_error("http://127.0.0.1/callback?code=c&state=s"), None);
    }
}
