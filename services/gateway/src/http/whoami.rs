//! `GET /v1/whoami`: whom the gateway takes a caller for, and what they may do. A page shows by it what is of use to whoever
//! looks; what they may do is checked where it is done.

use axum::{
    Extension, Json,
    http::{HeaderName, header},
};
use jiff::Timestamp;
use serde::Serialize;

use crate::auth::{Caller, Scope};

/// The answer.
#[derive(Debug, Serialize)]
pub struct CallerIdentity {
    /// As events name it that are entered for the caller.
    principal: String,
    scopes: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agents: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
}

/// Forbids caching: the answer at this address differs for each caller.
const KEPT_NOWHERE: [(HeaderName, &str); 1] = [(header::CACHE_CONTROL, "no-store")];

pub async fn get_whoami(
    Extension(caller): Extension<Caller>,
) -> ([(HeaderName, &'static str); 1], Json<CallerIdentity>) {
    (KEPT_NOWHERE, Json(describe_caller(&caller)))
}

fn describe_caller(caller: &Caller) -> CallerIdentity {
    CallerIdentity {
        principal: caller.principal().to_string(),
        scopes: Scope::ALL.into_iter().filter(|scope| caller.has_scope(*scope)).map(Scope::name).collect(),
        agents: caller.agents().map(<[String]>::to_vec),
        user: caller.user().map(str::to_owned),
        expires_at: caller.expires_at(),
    }
}
