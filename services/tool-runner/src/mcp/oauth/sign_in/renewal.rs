//! Renewing a token that has ended or was refused.

use kairo_core::config::Secret;
use rmcp::transport::auth::AuthError;
use tokio::time::{Instant, sleep};

use super::super::authority::Authority;
use super::super::record::{LEASE, Lease, Tokens};
use super::super::vault::{Kept, VaultError};
use super::{Challenge, Known, MAX_LOOKS, POLL, SignIn, secret, unavailable};

impl SignIn {
    /// A token in the place of one that is refused or has ended. Among replicas, one renews it and the others wait for that:
    /// refresh tokens are often good for one use.
    pub(super) async fn renew(
        &self,
        known: &mut Known,
        stale: &str,
        challenge: Option<&Challenge>,
    ) -> Result<Secret, AuthError> {
        for _ in 0..MAX_LOOKS {
            let mut kept = self.vault.load(&self.key).await.map_err(unavailable)?;
            let now = self.vault.now();
            let Some(tokens) = kept.record.grant.clone() else { return Err(self.need(known, stale, challenge).await) };
            if tokens.access_token != stale && tokens.are_fresh(now) {
                let token = secret(&tokens);
                *known = Known { tokens: Some(tokens), read: Some(Instant::now()) };
                return Ok(token);
            }
            if tokens.refresh_token.is_none() {
                return Err(self.need(known, stale, challenge).await);
            }
            if kept.record.is_leased(self.vault.holder(), now) {
                sleep(POLL).await;
                continue;
            }
            kept.record.lease = Some(Lease { holder: self.vault.holder().to_owned(), until: now + LEASE });
            match self.vault.save(&self.key, &kept).await {
                Ok(revision) => kept.revision = revision,
                Err(VaultError::Conflict) => continue,
                Err(error) => return Err(unavailable(error)),
            }
            return self.exchange(known, kept, tokens, challenge).await;
        }
        Err(AuthError::TokenRefreshFailed("another replica renews the token and does not end".to_owned()))
    }

    async fn exchange(
        &self,
        known: &mut Known,
        kept: Kept,
        tokens: Tokens,
        challenge: Option<&Challenge>,
    ) -> Result<Secret, AuthError> {
        let header = challenge.map(|challenge| challenge.header().to_owned());
        let renewed = self.renewed(header.as_deref().or(kept.record.challenge.as_deref()), &tokens).await;
        // Somebody may have signed in meanwhile, or noted a scope: only what was renewed is replaced.
        let settle = async |grant: Option<Option<&Tokens>>| {
            self.change(|record| {
                record.lease = None;
                let is_same = record.grant.as_ref().is_some_and(|held| held.access_token == tokens.access_token);
                if let Some(grant) = grant.filter(|_| is_same) {
                    record.grant = grant.cloned();
                }
            })
            .await
            .map_err(unavailable)
        };
        match renewed {
            Ok(renewed) => {
                *known = Known { tokens: Some(renewed.clone()), read: Some(Instant::now()) };
                settle(Some(Some(&renewed))).await?;
                Ok(secret(&renewed))
            }
            Err(AuthError::TokenRefreshRejected(why)) => {
                tracing::warn!(server = %self.server, why, "what was granted is not valid any more");
                settle(Some(None)).await?;
                Err(self.need(known, &tokens.access_token, challenge).await)
            }
            Err(error) => {
                settle(None).await?;
                Err(error)
            }
        }
    }

    async fn renewed(&self, challenge: Option<&str>, tokens: &Tokens) -> Result<Tokens, AuthError> {
        let mut authority = Authority::discover(&self.url, &self.config, challenge).await?;
        if !authority.is_issuer(tokens.issuer.as_deref()) {
            return Err(AuthError::TokenRefreshRejected("the server has another authorization server now".to_owned()));
        }
        let (response, scopes) = authority.renew(tokens).await?;
        let read = Tokens::read(&response, tokens.client.clone(), scopes, authority.issuer(), self.vault.now());
        read.map_err(|error| AuthError::OAuthError(error.to_string()))
    }
}
