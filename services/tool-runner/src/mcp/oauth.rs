//! Signing in at MCP servers by OAuth 2.1, as the protocol's authorization specification (2026-07-28) wants it.
//!
//! A server's HTTP client adds the token to each request ([`authorized_client`]). The server's answer decides what happens next
//! ([`sign_in`]): a refused token is renewed, a missing scope is requested, and if only a person can help, the server
//! is down until somebody runs `kairo mcp login`, whose two steps are [`login`]. The library `rmcp` does the discovery,
//! PKCE and the token requests ([`authorization_server`]). A person's grant is a [`sign_in_record`] in a [`vault`] that all replicas
//! share. If each user signs in, each has a sign-in and a record of their own ([`user_sign_ins`]).

mod authorization_server;
mod authorized_client;
mod config;
mod login;
mod sign_in;
mod sign_in_record;
mod sign_in_requests;
mod user_sign_ins;
mod vault;

pub use self::authorized_client::AuthorizedClient;
pub use self::config::{GrantType, OAuthConfig, SignInOwner};
pub use self::login::SignOutOutcome;
pub use self::sign_in::SignIn;
pub use self::sign_in_requests::SignInResponder;
pub use self::user_sign_ins::{SignIns, SignedInUser, UserSignIns};
pub use self::vault::{BucketVault, MemoryVault, SignInVault};

use std::error::Error;

use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::{AuthRequiredError, InsufficientScopeError};

/// Returns the reason a server refused a request for lack of a valid token, if it did: it was not carried out.
pub fn refusal_reason(error: &(dyn Error + 'static)) -> Option<String> {
    std::iter::successors(Some(error), |error| (*error).source()).find_map(|cause| {
        if let Some(error) = cause.downcast_ref::<AuthError>() {
            return Some(authorization_server::describe_error(error));
        }
        if cause.is::<AuthRequiredError>() {
            return Some("it wants a token (HTTP 401); configure its oauth, or its headers".to_owned());
        }
        let refused = cause.downcast_ref::<InsufficientScopeError>()?;
        let scope = refused.required_scope.as_deref().map(|scope| format!(", it names the scope {scope}"));
        Some(format!("it forbids this (HTTP 403){}; configure its oauth, or its headers", scope.unwrap_or_default()))
    })
}
