//! The agents and users that a request names: in the places of its route, in its query and in its body. A limited key
//! is held to its limits only here; in addition, endpoints check the owner of what they find.

use std::collections::BTreeMap;

use axum::{
    extract::{MatchedPath, Request},
    http::{Extensions, Uri},
};
use percent_encoding::percent_decode_str;
use serde_json::value::RawValue;
use url::form_urlencoded;

use super::openai;
use crate::{
    auth::{Caller, limits::InFlightRequest},
    problem::Problem,
};

/// The kind of name in a request, to which a key may be limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    Agent,
    User,
}

impl NameKind {
    /// The field of a query or a body.
    const fn field_name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::User => "user",
        }
    }

    /// Returns its placeholders in the patterns of routes. A model of a chat client is an agent.
    const fn route_placeholders(self) -> &'static [&'static str] {
        match self {
            Self::Agent => &["{agent}", "{model}"],
            Self::User => &["{user}"],
        }
    }

    /// Refuses what is beyond the key's limit, and where nothing is named, what is not limited.
    pub fn enforce_limit(self, caller: &Caller, named: Option<&str>) -> Result<(), Problem> {
        match self {
            Self::Agent => caller.require_agent(named),
            Self::User => caller.require_user(named),
        }
    }
}

/// All that the path and the query of a request name, where the route has this pattern.
pub fn names_in_request(whom: NameKind, pattern: &str, uri: &Uri) -> Vec<String> {
    let places =
        pattern.split('/').zip(uri.path().split('/')).filter(|(place, _)| whom.route_placeholders().contains(place));
    // As endpoints are given it. What is no text names nobody, who is as much beyond a limit as anybody.
    let in_path = places.map(|(_, given)| percent_decode_str(given).decode_utf8_lossy().into_owned());
    let query = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    // An empty one is as good as absent.
    let in_query = query.filter(|(field, value)| field == whom.field_name() && !value.is_empty());
    in_path.chain(in_query.map(|(_, value)| value.into_owned())).collect()
}

/// Checks the names in a body against a limited key, and counts the request for the user whom the body names. A body
/// that is no JSON object, or names nobody, is for the endpoint to judge.
///
/// # Errors
/// If the body names somebody else, or somebody who has asked too often.
pub fn enforce_body_limits(extensions: &Extensions, body: &[u8]) -> Result<(), Problem> {
    let caller = extensions.get::<Caller>().filter(|it| it.agents().is_some() || it.user().is_some());
    let dealing = extensions.get::<InFlightRequest>();
    if caller.is_none() && dealing.is_none() {
        return Ok(());
    }
    // What clients of OpenAI call a user is another thing, and is looked at there.
    if extensions.get::<MatchedPath>().is_some_and(|route| openai::is_chat_path(route.as_str())) {
        return Ok(());
    }
    // Of a field that is given twice, the last one counts, as it does for endpoints.
    let Ok(fields) = serde_json::from_slice::<BTreeMap<String, &RawValue>>(body) else { return Ok(()) };
    let given = |whom: NameKind| serde_json::from_str::<String>(fields.get(whom.field_name())?.get()).ok();
    if let Some(dealing) = dealing {
        dealing.attribute_to(given(NameKind::User).as_deref())?;
    }
    for (whom, caller) in [NameKind::Agent, NameKind::User].into_iter().zip([caller, caller]) {
        if let (Some(caller), Some(given)) = (caller, given(whom)) {
            whom.enforce_limit(caller, Some(&given))?;
        }
    }
    Ok(())
}

/// Holds a caller to their limit, where the request must or may name an agent or a user.
///
/// # Errors
/// If the request names somebody else, or must name somebody and does not.
pub fn enforce_request_limits(
    whom: NameKind,
    caller: &Caller,
    pattern: &str,
    is_needed: bool,
    request: &Request,
) -> Result<(), Problem> {
    let named = names_in_request(whom, pattern, request.uri());
    if is_needed && named.is_empty() {
        return whom.enforce_limit(caller, None);
    }
    named.iter().try_for_each(|named| whom.enforce_limit(caller, Some(named)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agents(pattern: &str, uri: &str) -> Vec<String> {
        names_in_request(NameKind::Agent, pattern, &uri.parse().unwrap())
    }

    #[test]
    fn agents_are_named_wherever_the_route_says_and_in_the_query() {
        for (pattern, uri) in [
            ("/v1/agents/{agent}", "/v1/agents/bob"),
            ("/v1/agents/{agent}/thoughts", "/v1/agents/bob/thoughts?module=eve"),
            ("/v1/conversations/{agent}/import", "/v1/conversations/bob/import"),
            ("/v1/memories/{agent}/{memory_id}/history", "/v1/memories/bob/eve/history"),
            ("/v1/models/{model}", "/v1/models/bob"),
            ("/v1/threads", "/v1/threads?agent=bob&agent=&user=eve"),
            ("/v1/agents/{agent}", "/v1/agents/%62%6f%62"),
            ("/v1/threads", "/v1/threads?%61gent=b%6fb"),
        ] {
            assert_eq!(agents(pattern, uri), ["bob"], "{uri}");
        }
        assert_eq!(
            agents("/v1/conversations/{agent}/import", "/v1/conversations/eve/import?agent=bob"),
            ["eve", "bob"]
        );
        assert_eq!(agents("/v1/threads", "/v1/threads?agent=bob&agent=eve"), ["bob", "eve"]);
        assert_eq!(agents("/v1/threads", "/v1/threads"), [""; 0]);
        assert_ne!(agents("/v1/agents/{agent}", "/v1/agents/b%ffob"), ["bob"]);
        let users = |pattern, uri: &str| names_in_request(NameKind::User, pattern, &uri.parse().unwrap());
        assert_eq!(users("/v1/users/{user}/export", "/v1/users/ann/export?user=joe"), ["ann", "joe"]);
    }
}
