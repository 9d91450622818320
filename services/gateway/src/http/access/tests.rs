use axum::body::Body;

use super::*;
use crate::auth::tests::holder;

/// The endpoints as the router's source names them: what it routes cannot be asked of it.
fn routed() -> Vec<(&'static str, &'static str)> {
    let source = concat!(include_str!("../mod.rs"), include_str!("../openai/mod.rs"));
    let mut routed = Vec::new();
    for route in source.split(".route(").skip(1) {
        let path = route.split('"').nth(1).unwrap();
        let handlers = route.split(path).nth(1).unwrap().split('\n').next().unwrap();
        for (word, method) in [("get(", "GET"), ("post(", "POST"), ("delete(", "DELETE"), ("put(", "PUT")] {
            let starts = |(at, _): &(usize, &str)| {
                !handlers[..*at].ends_with(|before: char| before.is_alphanumeric() || before == '_')
            };
            if handlers.match_indices(word).any(|found| starts(&found)) {
                routed.push((method, path));
            }
        }
    }
    routed
}

#[test]
fn every_endpoint_says_who_may_use_it() {
    let routed = routed();
    assert!(routed.len() > 5 && routed.contains(&("POST", "/v1/objects")), "{routed:?}");
    for (method, path) in routed {
        let known = all_endpoints().filter(|row| (row.method, row.path) == (method, path)).count();
        assert_eq!(known, 1, "{method} {path} needs a row in http/access.rs");
    }
    for access in all_endpoints().filter(|access| access.path.starts_with("/v1/")) {
        assert_ne!(access.needs, KeyRequirement::Nothing, "{}", access.path);
    }
}

#[test]
fn an_endpoint_nobody_thought_of_is_for_administrators() {
    assert_eq!(endpoint_access(&Method::GET, "/v1/secret").needs, ADMIN);
    assert_eq!(endpoint_access(&Method::DELETE, "/v1/agents").needs, ADMIN);
    assert_eq!(endpoint_access(&Method::HEAD, "/v1/agents").needs, READ);
}

#[test]
fn a_key_is_a_bearer_token_or_a_subprotocol_and_nothing_else() {
    let headers = |name, value: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        headers
    };
    for value in ["Bearer k", "bearer k", "BEARER  k "] {
        assert!(
            matches!(find_credential(&headers(header::AUTHORIZATION, value), false), RequestCredential::Key("k")),
            "{value}"
        );
    }
    for value in ["Basic k", "k", "Bearer"] {
        let headers = headers(header::AUTHORIZATION, value);
        assert!(matches!(find_credential(&headers, false), RequestCredential::UnsupportedScheme), "{value}");
    }
    let offered = headers(header::SEC_WEBSOCKET_PROTOCOL, "kairo.v1, kairo.key.k");
    assert!(matches!(find_credential(&offered, true), RequestCredential::Key("k")));
    assert!(matches!(find_credential(&offered, false), RequestCredential::Nothing));
}

/// Kinds of limits: agents, and a user.
const LIMITS: [(&[&str], Option<&str>); 4] =
    [(&["bob"], None), (&["zoe", "bob"], None), (&[], Some("ann")), (&["bob"], Some("ann"))];

/// Checks this caller's request for the row with its places filled in and this query; the error is the HTTP status.
fn answered(row: &Access, caller: &Caller, [agent, user]: [&str; 2], query: &[String]) -> Result<(), u16> {
    let path = row.path.replace("{agent}", agent).replace("{model}", agent).replace("{user}", user);
    let uri = format!("{}?{}", path.replace(['{', '}'], ""), query.join("&"));
    let request = Request::builder().method(row.method).uri(uri).body(Body::empty()).unwrap();
    enforce_access(row, caller, &request).map_err(|problem| problem.status.as_u16())
}

#[test]
fn every_endpoint_holds_every_limit_wherever_somebody_is_named() {
    for row in all_endpoints().filter(|row| row.needs != KeyRequirement::Nothing) {
        let has = |places: &[&str]| row.path.split('/').any(|part| places.contains(&part));
        let names_agent = has(&["{agent}", "{model}"]);
        let names_user = has(&["{user}"]);
        let by_query = |rule: LimitRule, is_in_path: bool, query: &str| {
            (rule == Named && !is_in_path).then(|| query.to_owned()).into_iter().collect::<Vec<_>>()
        };
        let [agent, user] =
            [by_query(row.agents, names_agent, "agent=bob"), by_query(row.user, names_user, "user=ann")];
        let own = [agent.clone(), user.clone()].concat();
        for (agents, limited_to) in LIMITS {
            let caller = holder(&[Scope::Admin], agents, limited_to);
            let is_closed =
                (row.agents == Closed && !agents.is_empty()) || (row.user == Closed && limited_to.is_some());
            let told = answered(row, &caller, ["bob", "ann"], &own);
            assert_eq!(told, if is_closed { Err(403) } else { Ok(()) }, "{row:?} for {agents:?} and {limited_to:?}");
            let with =
                |more: &[&str]| own.iter().cloned().chain(more.iter().map(|it| (*it).to_owned())).collect::<Vec<_>>();
            let mut others = Vec::new();
            if !agents.is_empty() {
                others.extend(
                    ["agent=eve", "%61gent=eve", "agent=bob&agent=eve", "agent=Bob"]
                        .map(|query| (["bob", "ann"], with(&[query]))),
                );
                if names_agent {
                    let agents = ["eve", "%65ve", "bob%2Feve", "bo", "%ff"];
                    others.extend(agents.map(|agent| ([agent, "ann"], with(&[]))));
                    others.push((["eve", "ann"], with(&["agent=bob"])));
                }
                if row.agents == Named && !names_agent {
                    others.push((["bob", "ann"], user.clone()));
                    others.push((["bob", "ann"], [user.clone(), vec!["agent=".to_owned()]].concat()));
                }
            }
            if limited_to.is_some() {
                others.extend(
                    ["user=joe", "user=ann&user=joe", "us%65r=joe"].map(|query| (["bob", "ann"], with(&[query]))),
                );
                if names_user {
                    others.extend(["joe", "%6aoe"].map(|user| (["bob", user], with(&["user=ann"]))));
                }
                if row.user == Named && !names_user {
                    others.push((["bob", "ann"], agent.clone()));
                }
            }
            for (places, query) in others {
                let told = answered(row, &caller, places, &query);
                assert_eq!(told, Err(403), "{row:?} for {agents:?} and {limited_to:?}: {places:?} {query:?}");
            }
        }
        // Who is not limited names whom they want.
        let free = holder(&[Scope::Admin], &[], None);
        assert_eq!(answered(row, &free, ["eve", "joe"], &["agent=zoe".to_owned(), "user=eve".to_owned()]), Ok(()));
    }
}

#[test]
fn a_body_names_nobody_beyond_the_limits() {
    let told = |agents: &[&str], user: Option<&str>, body: &str| {
        let mut extensions = axum::http::Extensions::new();
        extensions.insert(holder(&[Scope::Write], agents, user));
        request_names::enforce_body_limits(&extensions, body.as_bytes())
            .map_err(|problem| problem.errors[0].field.clone())
    };
    let body = r#"{"agent": "eve", "user": "joe", "text": "hello"}"#;
    assert_eq!(told(&[], None, body), Ok(()));
    assert_eq!(told(&["bob"], None, body), Err("agent".to_owned()));
    assert_eq!(told(&["eve"], Some("ann"), body), Err("user".to_owned()));
    assert_eq!(told(&["eve"], Some("joe"), body), Ok(()));
    for other in
        [r#"{"\u0061gent": "eve"}"#, r#"{"agent": "bob", "agent": "eve"}"#, r#" {"x": {}, "agent":"\u0065ve"}"#]
    {
        assert_eq!(told(&["bob"], None, other), Err("agent".to_owned()), "{other}");
    }
    // The endpoint says what is wrong with these.
    for nobody in ["", "[]", "{", r#"{"agent": 7}"#, r#"{"agent": null}"#, r#"{"document": {"agent": "eve"}}"#] {
        assert_eq!(told(&["bob"], Some("ann"), nobody), Ok(()), "{nobody}");
    }
}
