//! Signing in at MCP servers by OAuth 2.1, as the protocol's authorization specification (2026-07-28) wants it.
//!
//! A server's HTTP client adds the token to each request ([`http`]). The server's answer decides what happens next
//! ([`sign_in`]): a refused token is renewed, a missing scope is requested, and if only a person can help, the server
//! is down until somebody runs `kairo mcp login`, whose two steps are [`login`]. The library `rmcp` does the discovery,
//! PKCE and the token requests ([`authority`]). A person's grant is a [`record`] in a [`vault`] that all replicas
//! share. If each user signs in, each has a sign-in and a record of their own ([`users`]).

mod authority;
mod config;
mod http;
mod login;
mod record;
mod requests;
mod sign_in;
mod users;
mod vault;

pub use self::config::{Grant, OAuthConfig, Per};
pub use self::http::Authorized;
pub use self::login::SignedOut;
pub use self::requests::Answering;
pub use self::sign_in::SignIn;
pub use self::users::{SignIns, SignedIn, UserSignIns};
pub use self::vault::{BucketVault, MemoryVault, Vault};

use std::error::Error;

use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::{AuthRequiredError, InsufficientScopeError};

/// Returns the reason a server refused a request for lack of a valid token, if it did: it was not carried out.
pub fn refusal(error: &(dyn Error + 'static)) -> Option<String> {
    std::iter::successors(Some(error), |error| (*error).source()).find_map(|cause| {
        if let Some(error) = cause.downcast_ref::<AuthError>() {
            return Some(authority::told(error));
        }
        if cause.is::<AuthRequiredError>() {
            return Some("it wants a token (HTTP 401); configure its oauth, or its headers".to_owned());
        }
        let refused = cause.downcast_ref::<InsufficientScopeError>()?;
        let scope = refused.required_scope.as_deref().map(|scope| format!(", it names the scope {scope}"));
        Some(format!("it forbids this (HTTP 403){}; configure its oauth, or its headers", scope.unwrap_or_default()))
    })
}
