//! Who asks: API keys and tokens, what they allow, and the caller of a request.
//!
//! A key says what its holder may do ([`Scope`]), and may be limited to some agents and to one user. Keys are kept
//! hashed in a bucket that every gateway watches ([`store`]); whose use of them is counted together, and how often they are used, is in
//! [`limits`]. Where a browser cannot send one, a ticket stands for it ([`tickets`]).
//! Tokens are those of issuers that are configured ([`oidc`]).

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
use oidc::claims::Token;
use secret::Hash;

/// What a key allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// To see what there is and follow what happens.
    Read,
    /// To speak as a user: messages, choices, approvals and orders.
    Write,
    /// Everything, among it agents, keys, dead letters and the read model.
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

/// What somebody may do.
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
pub struct Key {
    pub key_id: String,
    /// Of whoever was given it, for people.
    pub name: String,
    #[serde(flatten)]
    pub rights: Rights,
    pub created: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// What may be spent on models for what is sent with it; none for any amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caps: Option<Caps>,
}

/// In the log, whoever has `gateway.admin_key`; no id of a key.
const ADMINISTRATOR: &str = "gateway.admin_key";

/// A key that is in force until it is revoked or expires.
#[derive(Debug)]
pub struct Held {
    pub key: Key,
    hash: Hash,
    revoked: CancellationToken,
}

impl Held {
    fn is_in_force(&self, now: Timestamp) -> bool {
        self.key.expires_at.is_none_or(|at| now < at) && !self.revoked.is_cancelled()
    }
}

/// Who sent a request.
#[derive(Clone, Debug)]
pub enum Caller {
    /// Somebody on this machine who brings no key where none is required, and what they may do.
    Anyone(Arc<Rights>),
    /// Whoever has `gateway.admin_key`.
    Administrator,
    /// Whoever has this key.
    Holder(Arc<Held>),
    /// Whoever has this token of an issuer that is trusted.
    Bearer(Arc<Token>),
}

impl Caller {
    /// None of who may do everything.
    fn rights(&self) -> Option<&Rights> {
        match self {
            Self::Anyone(rights) => Some(rights),
            Self::Holder(held) => Some(&held.key.rights),
            Self::Bearer(token) => Some(&token.rights),
            Self::Administrator => None,
        }
    }

    /// The API key that was brought, if it is one of those that were made.
    pub fn key(&self) -> Option<&Key> {
        match self {
            Self::Holder(held) => Some(&held.key),
            Self::Anyone(_) | Self::Administrator | Self::Bearer(_) => None,
        }
    }

    pub fn may(&self, scope: Scope) -> bool {
        self.rights().is_none_or(|rights| rights.scopes.iter().any(|has| *has == scope || *has == Scope::Admin))
    }

    /// The error tells what is missing.
    pub fn require(&self, scope: Scope) -> Result<(), Problem> {
        match (self.may(scope), self) {
            (true, _) => Ok(()),
            (false, Self::Anyone(_)) => Err(Problem::needs_key(scope.name())),
            (false, _) => Err(Problem::forbidden(format!("this needs a key of the scope {}", scope.name()))),
        }
    }

    /// As [`Caller::require`], for what is not done by whoever happens to be on this machine, such as consenting in the name of a
    /// user.
    pub fn require_key(&self, scope: Scope) -> Result<(), Problem> {
        match self {
            Self::Anyone(_) if !self.may(Scope::Admin) => Err(Problem::needs_key(scope.name())),
            _ => self.require(scope),
        }
    }

    /// Who they are, for the log.
    pub fn principal(&self) -> Principal {
        match self {
            Self::Anyone(_) => Principal::loopback(),
            Self::Administrator => Principal::api_key(ADMINISTRATOR),
            Self::Holder(held) => Principal::api_key(&held.key.key_id),
            Self::Bearer(token) => token.principal(),
        }
    }

    /// Whose stored bytes are bounded; none of who is on this machine, and of the administrator.
    pub fn bounded(&self) -> Option<String> {
        match self {
            Self::Anyone(_) | Self::Administrator => None,
            Self::Holder(_) | Self::Bearer(_) => Some(self.principal().to_string()),
        }
    }

    /// The agents it is limited to; none when it is not.
    pub fn agents(&self) -> Option<&[String]> {
        self.rights().map(|rights| rights.agents.as_slice()).filter(|agents| !agents.is_empty())
    }

    /// The user it is limited to.
    pub fn user(&self) -> Option<&str> {
        self.rights()?.user.as_deref()
    }

    /// When it is over with what they may do; none when nothing says so.
    pub fn expires_at(&self) -> Option<Timestamp> {
        match self {
            Self::Anyone(_) | Self::Administrator => None,
            Self::Holder(held) => held.key.expires_at,
            Self::Bearer(token) => Some(token.expires_at),
        }
    }

    /// Refuses to name another agent, or none, where the key is limited to some.
    pub fn act_on_agent(&self, agent: Option<&str>) -> Result<(), Problem> {
        match self.agents() {
            Some(agents) if !agent.is_some_and(|agent| agents.iter().any(|one| one == agent)) => {
                let expected = format!("one of {}, to which the key is limited", agents.join(", "));
                Err(Problem::beyond_key("agent", expected, agent))
            }
            _ => Ok(()),
        }
    }

    /// As [`Caller::act_on_agent`], for the user.
    pub fn act_as_user(&self, user: Option<&str>) -> Result<(), Problem> {
        match self.user() {
            Some(own) if user != Some(own) => {
                Err(Problem::beyond_key("user", format!("{own}, to whom the key is limited"), user))
            }
            _ => Ok(()),
        }
    }

    /// Whether something of this agent and user may be shown. What may not be is as good as not there, so that nobody
    /// finds out by its id that it is.
    pub fn sees(&self, agent: &str, user: Option<&str>) -> bool {
        self.act_on_agent(Some(agent)).is_ok() && self.act_as_user(user).is_ok()
    }

    /// Waits until the key is revoked or has expired, or the token has: what goes on for long ends then.
    pub async fn ended(&self) {
        match self {
            Self::Anyone(_) | Self::Administrator => pending().await,
            Self::Bearer(_) => passed(self.expires_at()).await,
            Self::Holder(held) => tokio::select! {
                () = held.revoked.cancelled() => {}
                () = passed(self.expires_at()) => {}
            },
        }
    }
}

/// Waits until this time has passed; for ever if there is none.
async fn passed(time: Option<Timestamp>) {
    let Some(time) = time else { return pending().await };
    tokio::time::sleep(Duration::try_from(time.duration_since(Timestamp::now())).unwrap_or_default()).await;
}

#[cfg(test)]
pub mod tests;
