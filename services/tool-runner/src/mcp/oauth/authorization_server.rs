//! Asking authorization servers, through the library.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rmcp::transport::AuthorizationManager;
use rmcp::transport::auth::{
    AuthError, AuthorizationMetadata, ClientCredentialsConfig, CredentialStore as _, InMemoryCredentialStore,
    OAuthTokenResponse, StateStore, StoredAuthorizationState,
};
use tokio::time::timeout;
use url::Url;

use super::config::OAuthConfig;
use super::sign_in_record::{OAuthClient, OAuthTokens, merge_scopes};

/// Name by which a client is registered.
const CLIENT_NAME: &str = "Kairo";
/// The scope by which OpenID providers give refresh tokens.
const OFFLINE_ACCESS: &str = "offline_access";
/// Longest text of an authorization server that is repeated, in characters.
const MAX_REASON_CHARS: usize = 300;

/// The authorization server of one MCP server, as it was discovered for one exchange.
pub struct AuthorizationServer {
    manager: AuthorizationManager,
    metadata: AuthorizationMetadata,
    limit: Duration,
}

impl AuthorizationServer {
    /// Finds the authorization server by what the MCP server said when it refused a request (RFC 9728), else by its
    /// well-known documents (RFC 8414, OpenID Connect Discovery).
    ///
    /// # Errors
    /// When it cannot be found, or its documents contradict each other.
    pub async fn discover(url: &Url, config: &OAuthConfig, challenge: Option<&str>) -> Result<Self, AuthError> {
        let limit = Duration::from_millis(config.timeout_ms);
        let mut manager = match config.allow_private {
            true => AuthorizationManager::new_allowing_private_addresses(url.as_str()).await?,
            false => AuthorizationManager::new(url.as_str()).await?,
        };
        let metadata = within_limit(limit, manager.resolve_metadata_from_challenge(challenge)).await?.metadata;
        manager.set_metadata(metadata.clone());
        Ok(Self { manager, metadata, limit })
    }

    pub fn issuer(&self) -> Option<String> {
        self.metadata.issuer.clone()
    }

    /// A field of its metadata that the library does not name.
    pub fn metadata_field(&self, name: &str) -> Option<&serde_json::Value> {
        self.metadata.additional_fields.get(name)
    }

    /// Returns the URL of token requests.
    pub fn token_endpoint(&self) -> &str {
        &self.metadata.token_endpoint
    }

    /// Returns true if tokens of this issuer belong to this authorization server, or one of the two is unknown.
    pub fn is_issuer(&self, issuer: Option<&str>) -> bool {
        match (issuer, self.metadata.issuer.as_deref()) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        }
    }

    /// Returns the scopes to request: the configured ones, else those that the MCP server names, and those it wanted
    /// besides.
    pub async fn select_scopes(&self, config: &OAuthConfig, wanted: &[String]) -> Vec<String> {
        let named = match config.scopes.is_empty() {
            true => self.manager.select_initial_scopes(&[]).await,
            false => config.scopes.clone(),
        };
        let scopes = merge_scopes(&named, wanted.iter().map(String::as_str));
        let is_offline_known = self.metadata.scopes_supported.iter().flatten().any(|scope| scope == OFFLINE_ACCESS);
        let offline = (is_offline_known && !scopes.is_empty()).then_some(OFFLINE_ACCESS);
        merge_scopes(&scopes, offline)
    }

    /// The client that signs in: the configured one, one that is known by its document, or one that is registered now.
    ///
    /// # Errors
    /// When the authorization server registers none.
    pub async fn obtain_client(
        &mut self,
        config: &OAuthConfig,
        redirect_uri: &str,
        scopes: &[String],
    ) -> Result<OAuthClient, AuthError> {
        let of = |id: &str, secret: Option<String>| OAuthClient {
            id: id.to_owned(),
            secret,
            redirect_uri: redirect_uri.to_owned(),
        };
        if let Some(id) = &config.client_id {
            let secret = Some(config.client_secret.expose().to_owned()).filter(|secret| !secret.is_empty());
            return Ok(of(id, secret));
        }
        let knows_documents =
            self.metadata_field("client_id_metadata_document_supported").and_then(|known| known.as_bool());
        if let (Some(document), Some(true)) = (&config.client_metadata_url, knows_documents) {
            return Ok(of(document, None));
        }
        let scopes: Vec<_> = scopes.iter().map(String::as_str).collect();
        let limit = self.limit;
        let registered = within_limit(limit, self.manager.register_client(CLIENT_NAME, redirect_uri, &scopes)).await?;
        Ok(of(&registered.client_id, registered.client_secret))
    }

    /// Returns the address where a person signs in, and the state to check the answer against.
    ///
    /// # Errors
    /// When the authorization server does not know PKCE with S256, or the code flow.
    pub async fn authorization_url(
        &mut self,
        client: &OAuthClient,
        scopes: &[String],
    ) -> Result<(String, StoredAuthorizationState), AuthError> {
        let states = StateSlot::default();
        self.manager.configure_client(client.to_client_config())?;
        self.manager.set_state_store(states.clone());
        let scopes: Vec<_> = scopes.iter().map(String::as_str).collect();
        let address = self.manager.get_authorization_url(&scopes).await?;
        let state = states.get().ok_or_else(|| AuthError::InternalError("no state was kept".to_owned()))?;
        Ok((address, state))
    }

    /// Exchanges the code that a person came back with for tokens; the scopes that were granted with them.
    ///
    /// # Errors
    /// When another issuer answered than was asked (RFC 9207), or the code is not taken.
    pub async fn exchange_code(
        &mut self,
        client: &OAuthClient,
        state: &StoredAuthorizationState,
        code: &str,
        issuer: Option<&str>,
    ) -> Result<(OAuthTokenResponse, Vec<String>), AuthError> {
        self.manager.configure_client(client.to_client_config())?;
        self.manager.set_state_store(StateSlot::with_state(state.clone()));
        let exchanged = self.manager.exchange_code_for_token_with_issuer(code, &state.csrf_token, issuer);
        let response = within_limit(self.limit, exchanged).await?;
        Ok((response, self.manager.get_current_scopes().await))
    }

    /// Renews tokens.
    ///
    /// # Errors
    /// [`AuthError::TokenRefreshRejected`] when they cannot be renewed any more.
    pub async fn renew_tokens(&mut self, tokens: &OAuthTokens) -> Result<(OAuthTokenResponse, Vec<String>), AuthError> {
        let store = InMemoryCredentialStore::new();
        store
            .save(tokens.to_stored_credentials().map_err(|error| AuthError::InternalError(error.to_string()))?)
            .await?;
        self.manager.configure_client(tokens.client.to_client_config())?;
        self.manager.set_credential_store(store);
        let response = within_limit(self.limit, self.manager.refresh_token()).await?;
        let granted = self.manager.get_current_scopes().await;
        Ok((response, if granted.is_empty() { tokens.scopes.clone() } else { granted }))
    }

    /// Signs in with the client's own credentials.
    ///
    /// # Errors
    /// When they are refused.
    pub async fn sign_in_as_client(
        &mut self,
        url: &Url,
        client: &OAuthClient,
        scopes: &[String],
    ) -> Result<(OAuthTokenResponse, Vec<String>), AuthError> {
        let mut credentials = ClientCredentialsConfig::ClientSecret {
            client_id: client.id.clone(),
            client_secret: client.secret.clone().unwrap_or_default(),
            scopes: scopes.to_vec(),
            resource: None,
        };
        self.manager.validate_client_credentials_metadata(&credentials)?;
        self.manager.configure_client_credentials(&credentials)?;
        let named = self.resource_name().await.unwrap_or_else(|| url.to_string());
        if let ClientCredentialsConfig::ClientSecret { resource, .. } = &mut credentials {
            *resource = Some(named);
        }
        let response = within_limit(self.limit, self.manager.exchange_client_credentials(&credentials)).await?;
        let granted = self.manager.get_current_scopes().await;
        Ok((response, if granted.is_empty() { scopes.to_vec() } else { granted }))
    }

    /// The name of the MCP server in its metadata, which tokens are asked for (RFC 8707). The library tells it only in the
    /// address that a person would go to.
    async fn resource_name(&self) -> Option<String> {
        let address = Url::parse(&self.manager.get_authorization_url(&[]).await.ok()?).ok()?;
        address.query_pairs().find(|(name, _)| name == "resource").map(|(_, value)| value.into_owned())
    }
}

async fn within_limit<T>(
    limit: Duration,
    exchange: impl Future<Output = Result<T, AuthError>>,
) -> Result<T, AuthError> {
    let late = |_| Err(AuthError::OAuthError(format!("no answer within {} ms", limit.as_millis())));
    timeout(limit, exchange).await.unwrap_or_else(late)
}

/// The library's state between the two halves of a sign-in, held here to be stored elsewhere.
#[derive(Clone, Default)]
struct StateSlot(Arc<Mutex<Option<StoredAuthorizationState>>>);

impl StateSlot {
    fn with_state(state: StoredAuthorizationState) -> Self {
        Self(Arc::new(Mutex::new(Some(state))))
    }

    fn get(&self) -> Option<StoredAuthorizationState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, state: Option<StoredAuthorizationState>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

#[async_trait]
impl StateStore for StateSlot {
    async fn save(&self, _: &str, state: StoredAuthorizationState) -> Result<(), AuthError> {
        self.set(Some(state));
        Ok(())
    }

    async fn load(&self, token: &str) -> Result<Option<StoredAuthorizationState>, AuthError> {
        Ok(self.get().filter(|state| state.csrf_token == token))
    }

    async fn delete(&self, _: &str) -> Result<(), AuthError> {
        self.set(None);
        Ok(())
    }
}

/// Formats an error for the operator, in at most `MAX_REASON_CHARS` characters.
pub fn describe_error(error: &AuthError) -> String {
    let text = match error {
        // Says already what to do.
        AuthError::AuthorizationFailed(text) => text.clone(),
        error => error.to_string(),
    };
    text.chars().take(MAX_REASON_CHARS).collect()
}
