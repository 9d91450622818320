//! Renewing a token that has ended or was refused.

use kairo_core::config::Secret;
use rmcp::transport::auth::AuthError;
use tokio::time::{Instant, sleep};

use super::super::authorization_server::AuthorizationServer;
use super::super::sign_in_record::{LEASE, OAuthTokens, RenewalLease};
use super::super::vault::{StoredRecord, VaultError};
use super::{AuthChallenge, MAX_LOOKS, POLL, SignIn, TokenCache, to_secret, vault_error};

impl SignIn {
    /// A token in the place of one that is refused or has ended. Among replicas, one renews it and the others wait for that:
    /// refresh tokens are often good for one use.
    pub(super) async fn renew_token(
        &self,
        known: &mut TokenCache,
        stale: &str,
        challenge: Option<&AuthChallenge>,
    ) -> Result<Secret, AuthError> {
        for _ in 0..MAX_LOOKS {
            let mut kept = self.vault.load(&self.key).await.map_err(vault_error)?;
            let now = self.vault.now();
            let Some(tokens) = kept.record.grant.clone() else {
                return Err(self.require_person(known, stale, challenge).await);
            };
            if tokens.access_token != stale && tokens.are_fresh(now) {
                let token = to_secret(&tokens);
                *known = TokenCache { tokens: Some(tokens), read: Some(Instant::now()) };
                return Ok(token);
            }
            if tokens.refresh_token.is_none() {
                return Err(self.require_person(known, stale, challenge).await);
            }
            if kept.record.is_leased(self.vault.holder(), now) {
                sleep(POLL).await;
                continue;
            }
            kept.record.lease = Some(RenewalLease { holder: self.vault.holder().to_owned(), until: now + LEASE });
            match self.vault.save(&self.key, &kept).await {
                Ok(revision) => kept.revision = revision,
                Err(VaultError::Conflict) => continue,
                Err(error) => return Err(vault_error(error)),
            }
            return self.renew_under_lease(known, kept, tokens, challenge).await;
        }
        Err(AuthError::TokenRefreshFailed("another replica renews the token and does not end".to_owned()))
    }

    async fn renew_under_lease(
        &self,
        known: &mut TokenCache,
        kept: StoredRecord,
        tokens: OAuthTokens,
        challenge: Option<&AuthChallenge>,
    ) -> Result<Secret, AuthError> {
        let header = challenge.map(|challenge| challenge.header().to_owned());
        let renewed = self.request_renewal(header.as_deref().or(kept.record.challenge.as_deref()), &tokens).await;
        // Somebody may have signed in meanwhile, or noted a scope: only what was renewed is replaced.
        let settle = async |grant: Option<Option<&OAuthTokens>>| {
            self.update_record(|record| {
                record.lease = None;
                let is_same = record.grant.as_ref().is_some_and(|held| held.access_token == tokens.access_token);
                if let Some(grant) = grant.filter(|_| is_same) {
                    record.grant = grant.cloned();
                }
            })
            .await
            .map_err(vault_error)
        };
        match renewed {
            Ok(renewed) => {
                *known = TokenCache { tokens: Some(renewed.clone()), read: Some(Instant::now()) };
                settle(Some(Some(&renewed))).await?;
                Ok(to_secret(&renewed))
            }
            Err(AuthError::TokenRefreshRejected(why)) => {
                tracing::warn!(server = %self.server, why, "what was granted is not valid any more");
                settle(Some(None)).await?;
                Err(self.require_person(known, &tokens.access_token, challenge).await)
            }
            Err(error) => {
                settle(None).await?;
                Err(error)
            }
        }
    }

    async fn request_renewal(&self, challenge: Option<&str>, tokens: &OAuthTokens) -> Result<OAuthTokens, AuthError> {
        let mut authority = AuthorizationServer::discover(&self.url, &self.config, challenge).await?;
        if !authority.is_issuer(tokens.issuer.as_deref()) {
            return Err(AuthError::TokenRefreshRejected("the server has another authorization server now".to_owned()));
        }
        let (response, scopes) = authority.renew_tokens(tokens).await?;
        let read =
            OAuthTokens::from_response(&response, tokens.client.clone(), scopes, authority.issuer(), self.vault.now());
        read.map_err(|error| AuthError::OAuthError(error.to_string()))
    }
}
