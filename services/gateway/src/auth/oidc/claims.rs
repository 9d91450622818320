//! Reads the rights of a bearer from the claims of the token. Pure. Rights that no claim states are not granted.

use jiff::Timestamp;
use kairo_core::{ids::Name, principal::Principal};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    super::{Rights, Scope},
    config::OidcConfig,
    names::UserNaming,
};

/// Longest `sub`, in bytes, as OpenID Connect has it.
const MAX_SUBJECT: usize = 255;
/// Agents a bearer is limited to at most.
const MAX_AGENTS: usize = 256;

/// A token that was believed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BearerToken {
    pub issuer: String,
    pub subject: String,
    pub rights: Rights,
    /// When it is no longer good, clocks that differ taken into account.
    pub expires_at: Timestamp,
}

impl BearerToken {
    /// Builds the token from the claims of this issuer.
    ///
    /// # Errors
    /// The reason the claims are missing or malformed.
    pub fn from_claims(config: &OidcConfig, names: &UserNaming, claims: &Map<String, Value>) -> Result<Self, String> {
        let subject = text_claim(claims, "sub")?;
        if subject.is_empty() || subject.len() > MAX_SUBJECT {
            return Err(format!("sub has not 1 to {MAX_SUBJECT} bytes"));
        }
        let user = match config.user_claim.as_str() {
            "" => None,
            claim => Some(names.user_name(claim, text_claim(claims, claim)?)?.to_string()),
        };
        let agents = match config.agents_claim.as_str() {
            "" => Vec::new(),
            claim => granted_agents(claim, claims)?,
        };
        let expires = claims.get("exp").and_then(Value::as_f64).ok_or("exp is no number")?;
        // A time that is too far away to be one is as good as none.
        let expires = Timestamp::from_second(expires as i64).map_err(|_| "exp is no time")?;
        let skew = std::time::Duration::from_millis(config.clock_skew_ms);
        let expires_at = expires.checked_add(skew).unwrap_or(Timestamp::MAX);
        let rights = Rights { scopes: granted_scopes(config, claims), agents, user };
        Ok(Self { issuer: config.issuer.clone(), subject: subject.to_owned(), rights, expires_at })
    }

    pub fn principal(&self) -> Principal {
        Principal::app_user(&self.issuer, &self.subject)
    }
}

fn text_claim<'c>(claims: &'c Map<String, Value>, claim: &str) -> Result<&'c str, String> {
    claims.get(claim).and_then(Value::as_str).ok_or_else(|| format!("it has no text in {claim}"))
}

fn parse_name(claim: &str, text: &str) -> Result<String, String> {
    Name::parse(text).map(|name| name.to_string()).map_err(|error| format!("{claim}: {error}"))
}

/// None at all would stand for every agent.
fn granted_agents(claim: &str, claims: &Map<String, Value>) -> Result<Vec<String>, String> {
    let listed = claims.get(claim).and_then(Value::as_array).filter(|listed| (1..=MAX_AGENTS).contains(&listed.len()));
    let listed = listed.ok_or_else(|| format!("{claim} is no list of 1 to {MAX_AGENTS} agents"))?;
    listed.iter().map(|agent| parse_name(claim, agent.as_str().unwrap_or_default())).collect()
}

fn granted_scopes(config: &OidcConfig, claims: &Map<String, Value>) -> Vec<Scope> {
    let words: Vec<&str> = match claims.get(&config.scope_claim) {
        Some(Value::String(words)) => words.split(' ').collect(),
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let granted =
        |scope: &Scope| words.iter().any(|word| word.strip_prefix(&config.scope_prefix) == Some(scope.name()));
    Scope::ALL.into_iter().filter(granted).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(config: &OidcConfig, change: Value) -> Result<BearerToken, String> {
        let mut claims = json!({ "sub": "ann", "exp": 1_000, "scope": "openid kairo:read kairo:write" });
        claims.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        BearerToken::from_claims(config, &UserNaming::default(), claims.as_object().unwrap())
    }

    #[test]
    fn claims_say_who_somebody_is_and_what_they_may_do() {
        let config = OidcConfig { issuer: "https://login".to_owned(), ..OidcConfig::default() };
        let token = read(&config, json!({})).unwrap();
        assert_eq!(token.rights.scopes, [Scope::Read, Scope::Write]);
        assert_eq!((token.rights.user.as_deref(), token.rights.agents.is_empty()), (Some("ann"), true));
        assert_eq!(token.expires_at, Timestamp::from_second(1_030).unwrap());
        assert_eq!(token.principal().to_string(), "app_user:https://login|ann");
        assert_eq!(read(&config, json!({ "scope": ["kairo:admin"] })).unwrap().rights.scopes, [Scope::Admin]);
        for none in
            [json!({ "scope": null }), json!({ "scope": "admin read" }), json!({ "scope": { "kairo:admin": 1 } })]
        {
            assert!(read(&config, none.clone()).unwrap().rights.scopes.is_empty(), "{none}");
        }
        for bad in [
            json!({ "sub": "" }),
            json!({ "sub": 7 }),
            json!({ "sub": "x".repeat(256) }),
            json!({ "sub": "Ann" }),
            json!({ "exp": "noon" }),
            json!({ "exp": 1e300 }),
        ] {
            assert!(read(&config, bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn other_claims_are_read_where_they_are_configured() {
        let config = OidcConfig {
            user_claim: "preferred_username".to_owned(),
            scope_claim: "roles".to_owned(),
            scope_prefix: String::new(),
            agents_claim: "agents".to_owned(),
            ..OidcConfig::default()
        };
        let full = json!({ "sub": "7|X", "preferred_username": "ann", "roles": ["read"], "agents": ["bob"] });
        let token = read(&config, full.clone()).unwrap();
        let user = Some("ann".to_owned());
        let agents = vec!["bob".to_owned()];
        assert_eq!(token.rights, Rights { scopes: vec![Scope::Read], agents, user });
        for (claim, value) in [
            ("preferred_username", Value::Null),
            ("agents", Value::Null),
            ("agents", json!([])),
            ("agents", json!("bob")),
            ("agents", json!(["bob", 7])),
        ] {
            let mut less = full.clone();
            less[claim] = value;
            assert!(read(&config, less.clone()).is_err(), "{less}");
        }
        let anybody = OidcConfig { user_claim: String::new(), ..OidcConfig::default() };
        assert_eq!(read(&anybody, json!({ "sub": "7|X" })).unwrap().rights.user, None);
    }
}
