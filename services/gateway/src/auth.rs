//! Authentication and authorization: API keys, tokens, their rights, and the caller of a request.
//!
//! A key has scopes ([`Scope`]), and may be limited to some agents and to one user. Keys are kept hashed in a bucket
//! that every gateway watches ([`store`]); rate limits, and which callers share one, are in [`limits`]. Where a
//! browser cannot send a key, a ticket stands for it ([`tickets`]).
//! Tokens are accepted from configured issuers ([`oidc`]).

pub mod limits;
pub mod oidc;
pub mod secret;
pub mod store;
pub mod tickets;

use std::{future::pending, sync::Arc, time::Duration};

use jiff::Timestamp;
use kairo_core::principal::Principal;
use kairo_proto::words;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::{caps::Caps, problem::Problem};
use oidc::claims::BearerToken;
use secret::SecretHash;

/// A scope of a key; [`Scope::Admin`] includes the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Reading state and following events.
    Read,
    /// Acting as a user: messages, choices, approvals and orders.
    Write,
    /// Everything, including agents, keys, dead letters and the read model.
    Admin,
}

impl Scope {
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Admin];

    pub fn name(self) -> &'static str {
        match self {
            Self::Read => words::Scope::Read,
            Self::Write => words::Scope::Write,
            Self::Admin => words::Scope::Admin,
        }
        .known_word()
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == text)
    }
}

/// The rights of a caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rights {
    pub scopes: Vec<Scope>,
    /// The agents they are limited to; none for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// The user they are limited to; none for every user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

/// An API key, as it is shown: everything but the secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    pub key_id: String,
    /// A display name for the holder of the key.
    pub name: String,
    #[serde(flatten)]
    pub rights: Rights,
    pub created: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Caps on model spending for messages sent with the key; none for no cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caps: Option<Caps>,
}

/// The principal in the log of the holder of `gateway.admin_key`; never the id of a key.
const ADMINISTRATOR: &str = "gateway.admin_key";

/// A key that is in force until it is revoked or expires.
#[derive(Debug)]
pub struct ActiveKey {
    pub key: ApiKey,
    hash: SecretHash,
    revoked: CancellationToken,
}

impl ActiveKey {
    fn is_in_force(&self, now: Timestamp) -> bool {
        self.key.expires_at.is_none_or(|at| now < at) && !self.revoked.is_cancelled()
    }
}

/// The sender of a request.
#[derive(Clone, Debug)]
pub enum Caller {
    /// A client on this machine without a key, where none is required, with its rights.
    Loopback(Arc<Rights>),
    /// The holder of `gateway.admin_key`.
    Administrator,
    /// The holder of this API key.
    Holder(Arc<ActiveKey>),
    /// The bearer of this token from a trusted issuer.
    Bearer(Arc<BearerToken>),
}

impl Caller {
    /// Returns the caller's rights; none for the administrator, who may do everything.
    fn rights(&self) -> Option<&Rights> {
        match self {
            Self::Loopback(rights) => Some(rights),
            Self::Holder(held) => Some(&held.key.rights),
            Self::Bearer(token) => Some(&token.rights),
            Self::Administrator => None,
        }
    }

    /// Returns the API key of the request; none for other callers, the administrator among them.
    pub fn key(&self) -> Option<&ApiKey> {
        match self {
            Self::Holder(held) => Some(&held.key),
            Self::Loopback(_) | Self::Administrator | Self::Bearer(_) => None,
        }
    }

    pub fn has_scope(&self, scope: Scope) -> bool {
        self.rights().is_none_or(|rights| rights.scopes.iter().any(|has| *has == scope || *has == Scope::Admin))
    }

    /// Returns an error that names the scope if the caller lacks it.
    pub fn require_scope(&self, scope: Scope) -> Result<(), Problem> {
        match (self.has_scope(scope), self) {
            (true, _) => Ok(()),
            (false, Self::Loopback(_)) => Err(Problem::needs_key(scope.name())),
            (false, _) => Err(Problem::forbidden(format!("this needs a key of the scope {}", scope.name()))),
        }
    }

    /// Like [`Caller::require_scope`], but refuses a caller without a key even if it has the scope (unless that is
    /// [`Scope::Admin`]), for actions such as consenting in the name of a user.
    pub fn require_key(&self, scope: Scope) -> Result<(), Problem> {
        match self {
            Self::Loopback(_) if !self.has_scope(Scope::Admin) => Err(Problem::needs_key(scope.name())),
            _ => self.require_scope(scope),
        }
    }

    /// Returns the caller's identity for the log.
    pub fn principal(&self) -> Principal {
        match self {
            Self::Loopback(_) => Principal::loopback(),
            Self::Administrator => Principal::api_key(ADMINISTRATOR),
            Self::Holder(held) => Principal::api_key(&held.key.key_id),
            Self::Bearer(token) => token.principal(),
        }
    }

    /// Returns the identity whose stored bytes are bounded; none for callers without a key and for the administrator.
    pub fn quota_identity(&self) -> Option<String> {
        match self {
            Self::Loopback(_) | Self::Administrator => None,
            Self::Holder(_) | Self::Bearer(_) => Some(self.principal().to_string()),
        }
    }

    /// Returns the agents to which the caller is limited; none if it is not limited.
    pub fn agents(&self) -> Option<&[String]> {
        self.rights().map(|rights| rights.agents.as_slice()).filter(|agents| !agents.is_empty())
    }

    /// Returns the user to whom the caller is limited, if any.
    pub fn user(&self) -> Option<&str> {
        self.rights()?.user.as_deref()
    }

    /// Returns the time at which the caller's rights expire; none if they do not.
    pub fn expires_at(&self) -> Option<Timestamp> {
        match self {
            Self::Loopback(_) | Self::Administrator => None,
            Self::Holder(held) => held.key.expires_at,
            Self::Bearer(token) => Some(token.expires_at),
        }
    }

    /// Returns an error if the key is limited to some agents and `agent` is none or not one of them.
    pub fn require_agent(&self, agent: Option<&str>) -> Result<(), Problem> {
        match self.agents() {
            Some(agents) if !agent.is_some_and(|agent| agents.iter().any(|one| one == agent)) => {
                let expected = format!("one of {}, to which the key is limited", agents.join(", "));
                Err(Problem::exceeds_key_limits("agent", expected, agent))
            }
            _ => Ok(()),
        }
    }

    /// Like [`Caller::require_agent`], for the user.
    pub fn require_user(&self, user: Option<&str>) -> Result<(), Problem> {
        match self.user() {
            Some(own) if user != Some(own) => {
                Err(Problem::exceeds_key_limits("user", format!("{own}, to whom the key is limited"), user))
            }
            _ => Ok(()),
        }
    }

    /// Returns true if the caller may see a resource of this agent and user. Report one it may not see as not found, so
    /// that its id does not reveal that it exists.
    pub fn can_see(&self, agent: &str, user: Option<&str>) -> bool {
        self.require_agent(Some(agent)).is_ok() && self.require_user(user).is_ok()
    }

    /// Waits until the key is revoked or the key or token has expired; long-lived responses end then.
    pub async fn wait_for_expiry(&self) {
        match self {
            Self::Loopback(_) | Self::Administrator => pending().await,
            Self::Bearer(_) => wait_until(self.expires_at()).await,
            Self::Holder(held) => tokio::select! {
                () = held.revoked.cancelled() => {}
                () = wait_until(self.expires_at()) => {}
            },
        }
    }
}

/// Waits until this time has passed; forever if it is none.
async fn wait_until(time: Option<Timestamp>) {
    let Some(time) = time else { return pending().await };
    tokio::time::sleep(Duration::try_from(time.duration_since(Timestamp::now())).unwrap_or_default()).await;
}

#[cfg(test)]
pub mod tests;
