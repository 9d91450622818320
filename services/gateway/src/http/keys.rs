//! `/v1/keys`: the API keys of the gateway. A key's text is told once, when it is made; only its hash is kept.

use std::collections::BTreeSet;

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use jiff::Timestamp;
use kairo_core::ids::Name;
use kairo_proto::{
    time,
    v1::{self, KeyRow, ListKeysResponse, MakeKeyResponse, RevokeKeyResponse},
};
use serde_json::Value;

use super::{Gateway, agents::caps, body::JsonBody, sorted_json::SortedJson};
use crate::{
    auth::{
        ApiKey, Rights, Scope,
        secret::{self, is_key_id},
    },
    caps::Caps,
    fields::{NAME, RequestFields, TIME, bounded_text, json_text, parse_name, parse_text},
    problem::{FieldError, Problem},
};

/// Longest name of a key, in bytes.
const MAX_NAME: usize = 128;
/// Agents that a key can be limited to.
const MAX_AGENTS: usize = 256;

const SCOPES: &str = "a list of at least one of read, write, admin";
const AGENTS: &str = "a list of at most 256 names of agents";
const KEY_ID: &str = "the key_id of a key, which is the part between its underscores";

/// Makes a key.
pub async fn make_key(State(gateway): State<Gateway>, JsonBody(body): JsonBody) -> Result<Response, Problem> {
    let now = Timestamp::now();
    let wanted = parse_body(&body, now)?;
    let (key_id, key) = secret::generate_key().map_err(|error| Problem::internal(&error))?;
    caps::require_key_prices(&gateway, wanted.caps.as_ref().map(v1::Caps::from).as_ref()).await?;
    let described = ApiKey { key_id, ..wanted };
    gateway.keys.create(described.clone(), &key).await?;
    tracing::info!(key_id = described.key_id, name = described.name, "made an API key");
    let mut response = (StatusCode::CREATED, Json(make_key_response(key_row(described), key))).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The answer, with the key's text, which nobody can be told again.
fn make_key_response(row: KeyRow, key: String) -> MakeKeyResponse {
    let KeyRow { key_id, name, scopes, agents, user, created, expires_at, caps } = row;
    MakeKeyResponse { key_id, name, scopes, agents, user, created, expires_at, key, caps }
}

fn key_row(key: ApiKey) -> KeyRow {
    let ApiKey { key_id, name, rights, created, expires_at, caps } = key;
    let Rights { scopes, agents, user } = rights;
    let scopes = scopes.into_iter().map(|scope| scope.name().to_owned()).collect();
    let created = Some(time::message(created));
    let expires_at = expires_at.map(time::message);
    let caps = caps.as_ref().map(v1::Caps::from);
    KeyRow { key_id, name, scopes, agents, user, created, expires_at, caps }
}

pub fn parse_body(body: &[u8], now: Timestamp) -> Result<ApiKey, Problem> {
    let mut fields = RequestFields::from_json(body)?;
    let called = fields.required("name", format!("text of 1 to {MAX_NAME} bytes"), json_text(bounded_text(MAX_NAME)));
    let scopes = fields.required("scopes", SCOPES, parse_scopes);
    let agents = fields.optional("agents", AGENTS, parse_agents);
    let user = fields.optional("user", NAME, json_text(parse_name));
    let expected = format!("{TIME}, in the future");
    let future = |text: &str| parse_text(text).filter(|at: &Timestamp| *at > now);
    let expires_at = fields.optional("expires_at", expected, json_text(future));
    let caps = caps::parse(&mut fields);
    fields.complete(|| {
        Some(ApiKey {
            key_id: String::new(),
            name: called?,
            rights: Rights {
                scopes: scopes?,
                agents: agents.unwrap_or_default(),
                user: user.map(|user| user.to_string()),
            },
            created: now,
            expires_at,
            caps: caps.as_ref().map(Caps::from),
        })
    })
}

fn parse_scopes(value: &Value) -> Option<Vec<Scope>> {
    let scopes = value.as_array().filter(|scopes| (1..=Scope::ALL.len()).contains(&scopes.len()))?;
    let scopes: Option<BTreeSet<Scope>> = scopes.iter().map(|scope| scope.as_str().and_then(Scope::parse)).collect();
    Some(scopes?.into_iter().collect())
}

/// An empty list would be taken for no limit by some, and for nothing at all by others: it is wrong.
fn parse_agents(value: &Value) -> Option<Vec<String>> {
    let agents = value.as_array().filter(|agents| (1..=MAX_AGENTS).contains(&agents.len()))?;
    let agents: Option<BTreeSet<Name>> = agents.iter().map(|agent| agent.as_str().and_then(parse_name)).collect();
    Some(agents?.iter().map(Name::to_string).collect())
}

/// Every key, the newest first.
pub async fn list_keys(State(gateway): State<Gateway>) -> SortedJson<ListKeysResponse> {
    SortedJson(ListKeysResponse { keys: gateway.keys.list().into_iter().map(key_row).collect() })
}

/// Revokes a key.
pub async fn revoke_key(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
) -> Result<SortedJson<RevokeKeyResponse>, Problem> {
    let given = path.map(|Path(given)| given).unwrap_or_default();
    if !is_key_id(&given) {
        // What was given is not sent back: it may be a whole key.
        let wrong = FieldError { field: "key_id".to_owned(), expected: KEY_ID.to_owned(), found: None };
        return Err(Problem::invalid_fields(vec![wrong]));
    }
    if !gateway.keys.revoke(&given).await? {
        return Err(Problem::not_found(format!("there is no key {given}; GET /v1/keys lists those there are")));
    }
    tracing::info!(key_id = given, "revoked an API key");
    Ok(SortedJson(RevokeKeyResponse { key_id: given, revoked: true }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ask(body: &Value) -> Result<ApiKey, Problem> {
        parse_body(body.to_string().as_bytes(), "2026-11-21T10:00:00Z".parse().unwrap())
    }

    #[test]
    fn a_key_is_read_field_by_field() {
        let key = ask(&json!({
            "name": "the shop", "scopes": ["write", "read", "write"], "agents": ["eve", "bob"], "user": "ann",
            "expires_at": "2026-12-21T10:00:00Z",
            "caps": { "tokens_per_day": 1000, "cost_in_total": "2.50" },
        }))
        .unwrap();
        assert_eq!(
            (key.rights.scopes, key.rights.agents),
            (vec![Scope::Read, Scope::Write], vec!["bob".to_owned(), "eve".to_owned()])
        );
        assert_eq!((key.name.as_str(), key.rights.user.as_deref()), ("the shop", Some("ann")));
        assert!(key.expires_at.is_some());
        let caps = v1::Caps::from(&key.caps.unwrap());
        assert_eq!((caps.tokens_per_day, caps.cost_in_total.as_str()), (1_000, "2.5"));
    }

    #[test]
    fn every_wrong_field_is_named() {
        let problem = ask(&json!({
            "name": "", "scopes": ["all"], "agents": [], "user": "Ann", "expires_at": "2026-11-21T09:00:00Z", "colour": 1,
            "caps": { "cost_per_day": 2, "mood": 1 },
        }));
        let fields: Vec<_> = problem.unwrap_err().errors.into_iter().map(|error| error.field).collect();
        assert_eq!(
            fields,
            ["name", "scopes", "agents", "user", "expires_at", "caps.cost_per_day", "caps.mood", "colour"]
        );
        assert_eq!(ask(&json!({ "name": "x", "scopes": [] })).unwrap_err().errors.len(), 1);
        assert_eq!(ask(&json!({ "name": "x", "scopes": vec!["read"; 10_000] })).unwrap_err().errors.len(), 1);
    }
}
