//! The tokens of one server: having one, renewing it, and knowing when a person is needed.

mod renewal;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use kairo_core::config::Secret;
use kairo_core::ids::Name;
use rmcp::transport::auth::AuthError;
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;
use url::Url;

use super::authorization_server::AuthorizationServer;
use super::config::{GrantType, OAuthConfig};
use super::sign_in_record::{OAuthClient, OAuthTokens, SignInRecord, merge_scopes};
use super::vault::{SignInVault, VaultError, user_key};

/// So long what was read from the vault is gone by.
const AGE: Duration = Duration::from_secs(10);
/// Between two looks whether another replica has renewed a token.
const POLL: Duration = Duration::from_millis(250);
/// Looks and attempts at one renewal, so that it ends.
const MAX_LOOKS: usize = 300;
/// Attempts to write a record that others write, too.
const MAX_TRIES: usize = 10;

/// A sign-in at one server: the server's, or that of one user.
#[derive(Debug)]
pub struct SignIn {
    pub(super) server: Arc<str>,
    /// Of which user; none of the server's.
    pub(super) user: Option<Arc<str>>,
    /// That of the server, of a user's.
    pub(super) common: Option<Arc<SignIn>>,
    /// The key of its record in the vault.
    pub(super) key: String,
    pub(super) url: Url,
    pub(super) config: OAuthConfig,
    pub(super) vault: Arc<dyn SignInVault>,
    /// Locked while a token is renewed, so that requests of this process renew it once.
    known: Mutex<TokenCache>,
    is_needed: AtomicBool,
    needed: Notify,
    /// True if a request was refused for lack of a scope that only a person can grant.
    lacks_scope: AtomicBool,
}

#[derive(Debug, Default)]
struct TokenCache {
    tokens: Option<OAuthTokens>,
    read: Option<Instant>,
}

/// The server's demand for a token in place of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthChallenge {
    /// It wants a token, or another one (HTTP 401).
    Token(String),
    /// It wants a token with this scope (HTTP 403, `insufficient_scope`).
    Scope { header: String, scope: String },
}

impl AuthChallenge {
    fn header(&self) -> &str {
        match self {
            Self::Token(header) | Self::Scope { header, .. } => header,
        }
    }
}

impl SignIn {
    /// Builds the sign-in at a server; `None` if the server takes none, or has no valid address.
    pub fn new(server: &str, url: &str, config: &OAuthConfig, vault: Arc<dyn SignInVault>) -> Option<Self> {
        Some(Self {
            server: server.into(),
            user: None,
            common: None,
            key: server.to_owned(),
            url: Url::parse(url).ok()?,
            config: config.clone(),
            vault,
            known: Mutex::default(),
            is_needed: AtomicBool::new(false),
            needed: Notify::new(),
            lacks_scope: AtomicBool::new(false),
        })
    }

    /// That of a user at the same server.
    #[must_use]
    pub fn for_user(self: &Arc<Self>, user: &Name) -> Self {
        Self {
            server: self.server.clone(),
            user: Some(user.as_str().into()),
            common: Some(Arc::clone(self)),
            key: user_key(&self.server, user.as_str()),
            url: self.url.clone(),
            config: self.config.clone(),
            vault: self.vault.clone(),
            known: Mutex::default(),
            is_needed: AtomicBool::new(false),
            needed: Notify::new(),
            lacks_scope: AtomicBool::new(false),
        }
    }

    /// Returns true if the sign-in belongs to one user, not to the server as a whole.
    pub fn is_of_user(&self) -> bool {
        self.user.is_some()
    }

    /// Returns true if a person has signed in and not signed out since.
    ///
    /// # Errors
    /// When the stored record cannot be read.
    pub async fn is_granted(&self) -> Result<bool, VaultError> {
        let mut known = self.known.lock().await;
        if known.tokens.is_none() || known.read.is_none_or(|read| read.elapsed() >= AGE) {
            let kept = self.vault.load(&self.key).await?;
            *known = TokenCache { tokens: kept.record.grant, read: Some(Instant::now()) };
        }
        Ok(known.tokens.is_some())
    }

    /// Returns the granted scopes and the time of the sign-in; none if nobody is signed in.
    ///
    /// # Errors
    /// When the stored record cannot be read.
    pub async fn load_grant(&self) -> Result<Option<(Vec<String>, Option<Timestamp>)>, VaultError> {
        let SignInRecord { grant, since, .. } = self.vault.load(&self.key).await?.record;
        Ok(grant.map(|tokens| (tokens.scopes, since)))
    }

    /// Marks a person as needed if a server failed to start for lack of a scope. Returns false if that was not the
    /// reason.
    pub fn mark_needed_for_scope(&self) -> bool {
        let is_needed = self.lacks_scope.load(Ordering::Relaxed);
        self.is_needed.fetch_or(is_needed, Ordering::Relaxed);
        is_needed
    }

    /// Waits until a person is needed.
    pub async fn wait_until_needed(&self) {
        self.needed.notified().await;
    }

    /// Returns true if nothing can go on until a person signs in.
    pub fn is_needed(&self) -> bool {
        self.is_needed.load(Ordering::Relaxed)
    }

    /// Returns true if a person has signed in since one was needed.
    pub async fn is_done(&self) -> bool {
        let Ok(kept) = self.vault.load(&self.key).await else { return false };
        // A sign-in that ends leaves no scopes that are wanted.
        let is_granted = !self.lacks_scope.load(Ordering::Relaxed) || kept.record.wanted.is_empty();
        let is_done = kept.record.grant.is_some() && is_granted;
        if is_done {
            *self.known.lock().await = TokenCache::default();
            self.is_needed.store(false, Ordering::Relaxed);
            self.lacks_scope.store(false, Ordering::Relaxed);
        }
        is_done
    }

    /// The token for the next request; none before the server asked for one.
    ///
    /// # Errors
    /// When one that has ended cannot be renewed.
    pub async fn current_token(&self) -> Result<Option<Secret>, AuthError> {
        let mut known = self.known.lock().await;
        if self.config.grant == GrantType::AuthorizationCode && known.read.is_none_or(|read| read.elapsed() >= AGE) {
            let kept = self.vault.load(&self.key).await.map_err(vault_error)?;
            *known = TokenCache { tokens: kept.record.grant, read: Some(Instant::now()) };
        }
        let Some(tokens) = &known.tokens else { return Ok(None) };
        if tokens.are_fresh(self.vault.now()) {
            return Ok(Some(to_secret(tokens)));
        }
        let stale = tokens.access_token.clone();
        match self.config.grant {
            // The server is asked without one, and says what it wants.
            GrantType::ClientCredentials => Ok(None),
            GrantType::AuthorizationCode if tokens.refresh_token.is_none() => Ok(None),
            GrantType::AuthorizationCode => self.renew_token(&mut known, &stale, None).await.map(Some),
        }
    }

    /// A token that may do what was refused to the one that was sent.
    ///
    /// # Errors
    /// When there is none without a person, or none at all.
    pub async fn answer_challenge(
        &self,
        challenge: &AuthChallenge,
        sent: Option<&Secret>,
    ) -> Result<Secret, AuthError> {
        let mut known = self.known.lock().await;
        if let Some(tokens) = known.tokens.as_ref().filter(|tokens| tokens.are_fresh(self.vault.now()))
            && sent.is_none_or(|sent| sent.expose() != tokens.access_token)
        {
            // Another request got one meanwhile.
            return Ok(to_secret(tokens));
        }
        match (self.config.grant, challenge) {
            (GrantType::ClientCredentials, challenge) => self.fetch_client_token(&mut known, challenge).await,
            (GrantType::AuthorizationCode, AuthChallenge::Scope { scope, .. }) => {
                if let Some(token) = self.newer_token(&mut known, sent).await? {
                    return Ok(token);
                }
                self.record_challenge(challenge, |record| record.add_wanted_scopes(scope)).await?;
                self.lacks_scope.store(true, Ordering::Relaxed);
                Err(AuthError::AuthorizationFailed(format!(
                    "it wants the scope {scope}; grant it with: {}",
                    self.login_command()
                )))
            }
            (GrantType::AuthorizationCode, AuthChallenge::Token(_)) => {
                let sent = sent.map(|sent| sent.expose().to_owned()).unwrap_or_default();
                self.renew_token(&mut known, &sent, Some(challenge)).await
            }
        }
    }

    /// The token of whoever signed in since this one was read.
    async fn newer_token(&self, known: &mut TokenCache, sent: Option<&Secret>) -> Result<Option<Secret>, AuthError> {
        let kept = self.vault.load(&self.key).await.map_err(vault_error)?;
        let tokens = kept.record.grant.filter(|tokens| {
            tokens.are_fresh(self.vault.now()) && sent.is_none_or(|sent| sent.expose() != tokens.access_token)
        });
        let Some(tokens) = tokens else { return Ok(None) };
        let token = to_secret(&tokens);
        *known = TokenCache { tokens: Some(tokens), read: Some(Instant::now()) };
        Ok(Some(token))
    }

    /// Signs in with the client's own credentials, for the scopes it had and the one that lacks.
    async fn fetch_client_token(&self, known: &mut TokenCache, challenge: &AuthChallenge) -> Result<Secret, AuthError> {
        let had = known.tokens.take().map(|tokens| tokens.scopes).unwrap_or_default();
        let wanted = match challenge {
            AuthChallenge::Token(_) => had,
            AuthChallenge::Scope { scope, .. } => {
                let wanted = merge_scopes(&had, scope.split_whitespace());
                if wanted == had {
                    // A token with this very scope was refused: another one would be, too.
                    return Err(AuthError::AuthorizationFailed(format!(
                        "it forbids this although the token has the scope {scope}"
                    )));
                }
                wanted
            }
        };
        let mut authority = AuthorizationServer::discover(&self.url, &self.config, Some(challenge.header())).await?;
        let scopes = authority.select_scopes(&self.config, &wanted).await;
        let client = OAuthClient {
            id: self.config.client_id.clone().unwrap_or_default(),
            secret: Some(self.config.client_secret.expose().to_owned()),
            redirect_uri: String::new(),
        };
        let (response, granted) = authority.sign_in_as_client(&self.url, &client, &scopes).await?;
        let tokens = OAuthTokens::from_response(&response, client, granted, authority.issuer(), self.vault.now());
        let tokens = tokens.map_err(|error| AuthError::OAuthError(error.to_string()))?;
        let token = to_secret(&tokens);
        known.tokens = Some(tokens);
        Ok(token)
    }

    /// Notes that a person is needed, and that this token is good for nothing any more; what they are told.
    async fn require_person(
        &self,
        known: &mut TokenCache,
        stale: &str,
        challenge: Option<&AuthChallenge>,
    ) -> AuthError {
        *known = TokenCache::default();
        let noted = self.update_record(|record| {
            record.grant.take_if(|tokens| tokens.access_token == stale);
            if let Some(challenge) = challenge {
                record.challenge = Some(challenge.header().to_owned());
            }
        });
        if let Err(error) = noted.await {
            tracing::warn!(server = %self.server, %error, "what the server wants was not noted");
        }
        self.is_needed.store(true, Ordering::Relaxed);
        self.needed.notify_one();
        AuthError::AuthorizationFailed(self.sign_in_advice())
    }

    /// Returns the instruction for the person who has to sign in.
    pub fn sign_in_advice(&self) -> String {
        match &self.user {
            Some(user) => format!("it wants {user} to sign in: {}", self.login_command()),
            None => format!("it wants somebody to sign in: {}", self.login_command()),
        }
    }

    /// The command by which a person signs in.
    fn login_command(&self) -> String {
        let user = self.user.as_ref().map(|user| format!(" --user {user}")).unwrap_or_default();
        format!("kairo mcp login {}{user}", self.server)
    }

    /// Notes what the server wants, for whoever signs in.
    async fn record_challenge(
        &self,
        challenge: &AuthChallenge,
        add: impl Fn(&mut SignInRecord),
    ) -> Result<(), AuthError> {
        let noted = self.update_record(|record| {
            record.challenge = Some(challenge.header().to_owned());
            add(record);
        });
        noted.await.map_err(vault_error)
    }

    /// Changes what is kept, also while others do.
    pub(super) async fn update_record(&self, change: impl Fn(&mut SignInRecord)) -> Result<(), VaultError> {
        for _ in 0..MAX_TRIES {
            let mut kept = self.vault.load(&self.key).await?;
            change(&mut kept.record);
            if kept.record.is_empty() && kept.revision == 0 {
                return Ok(());
            }
            match self.vault.save(&self.key, &kept).await {
                Ok(_) => return Ok(()),
                Err(VaultError::Conflict) => {}
                Err(error) => return Err(error),
            }
        }
        Err(VaultError::Conflict)
    }

    /// Forgets what this replica knows of the tokens.
    pub(super) async fn forget_tokens(&self) {
        *self.known.lock().await = TokenCache::default();
    }

    pub(super) fn now(&self) -> Timestamp {
        self.vault.now()
    }
}

fn to_secret(tokens: &OAuthTokens) -> Secret {
    Secret::new(tokens.access_token.clone())
}

pub(super) fn vault_error(error: VaultError) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}
