//! Access control: asks for a key, and checks what it allows against the table of endpoints.
//!
//! A key that is limited to agents or a user may name no others, in the path, the query or the body ([`request_names`]). Where
//! the limit depends on what is found, endpoints themselves ask the [`Caller`]. An endpoint that is not in the table is
//! for keys of the scope admin without limits.

pub mod request_names;

use std::net::SocketAddr;

use axum::{
    extract::{ConnectInfo, MatchedPath, Request, State},
    http::{HeaderMap, Method, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use jiff::Timestamp;
use kairo_core::sharing::permit_pool::NoPermit;
use tokio_util::sync::CancellationToken;

use super::{
    Gateway, body, endpoints, openai,
    tickets::{PresentedTicket, WEBSOCKET},
};
use crate::{
    auth::{
        Caller, Scope,
        limits::{self, InFlightRequest, UNREAD},
        secret,
    },
    problem::Problem,
};
use request_names::NameKind;

/// An endpoint, and who may use it.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub method: &'static str,
    pub path: &'static str,
    pub needs: KeyRequirement,
    /// The rule for a key that is limited to some agents.
    pub agents: LimitRule,
    /// The rule for a key that is limited to a user.
    pub user: LimitRule,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyRequirement {
    /// Open to everybody: whether the gateway lives, and documents.
    Nothing,
    /// Any key; the endpoint asks for scopes itself.
    Key,
    Scope(Scope),
    /// Both scopes.
    Both(Scope, Scope),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitRule {
    /// It says nothing of anybody.
    Free,
    /// The path or the query must name what the key allows.
    Named,
    /// They need not name it, and the endpoint looks itself at whose what it finds is.
    Asked,
    /// The endpoint cannot tell whose what it shows is, so such a key may not use it.
    Closed,
}

pub use LimitRule::{Asked, Closed, Free, Named};

const NOTHING: KeyRequirement = KeyRequirement::Nothing;
pub const KEY: KeyRequirement = KeyRequirement::Key;
pub const READ: KeyRequirement = KeyRequirement::Scope(Scope::Read);
pub const WRITE: KeyRequirement = KeyRequirement::Scope(Scope::Write);
pub const BOTH: KeyRequirement = KeyRequirement::Both(Scope::Read, Scope::Write);
pub const ADMIN: KeyRequirement = KeyRequirement::Scope(Scope::Admin);

/// It shows all that was said to an agent, as a replay does, and says something besides, which may cost.
const FORK: KeyRequirement = KeyRequirement::Both(Scope::Admin, Scope::Write);

pub const fn row(
    method: &'static str,
    path: &'static str,
    needs: KeyRequirement,
    agents: LimitRule,
    user: LimitRule,
) -> Access {
    Access { method, path, needs, agents, user }
}

/// The endpoints that are no rpc.
const TABLE: &[Access] = &[
    row("GET", "/", NOTHING, Free, Free),
    row("GET", "/healthz", NOTHING, Free, Free),
    row("GET", "/readyz", NOTHING, Free, Free),
    row("GET", "/asyncapi.yaml", NOTHING, Free, Free),
    row("GET", "/openapi.json", NOTHING, Free, Free),
    row("GET", "/openapi.yaml", NOTHING, Free, Free),
    row("POST", "/v1/objects", WRITE, Free, Free),
    // Nobody guesses a digest of 256 bits: who can name an object was shown it.
    row("GET", "/v1/objects/{digest}", READ, Free, Free),
    // All that was said to an agent, by whomever.
    row("POST", "/v1/agents/{agent}/forks", FORK, Closed, Closed),
    row("GET", "/v1/forks", ADMIN, Closed, Closed),
    row("GET", "/v1/forks/{fork}", FORK, Closed, Closed),
    row("DELETE", "/v1/forks/{fork}", FORK, Closed, Closed),
    row("POST", "/v1/forks/{fork}/answers", FORK, Closed, Closed),
    row("POST", "/v1/forks/{fork}/approvals", FORK, Closed, Closed),
    row("GET", "/v1/forks/{fork}/events", FORK, Closed, Closed),
    row("POST", "/v1/forks/{fork}/messages", FORK, Closed, Closed),
    row("POST", "/v1/forks/{fork}/wait", FORK, Closed, Closed),
    row("POST", "/v1/agents/{agent}/replay", ADMIN, Closed, Closed),
    row("GET", "/v1/agents/{agent}/requests", ADMIN, Closed, Closed),
    row("GET", "/v1/agents/{agent}/state", ADMIN, Closed, Closed),
    row("POST", "/v1/agents/{agent}/whatif", ADMIN, Closed, Closed),
    row("GET", "/v1/incidents/{agent}", ADMIN, Closed, Closed),
    // It answers with what the agent says.
    row("POST", "/v1/chat/completions", BOTH, Asked, Asked),
    row("GET", "/v1/models", READ, Asked, Free),
    row("GET", "/v1/models/{model}", READ, Asked, Free),
    row("GET", "/v1/whoami", KEY, Free, Free),
    row("GET", "/v1/ws", KEY, Asked, Asked),
];

/// The row for an endpoint that is missing from the table.
const OTHERS: Access = row("", "", ADMIN, Closed, Closed);

/// In front of the key among the subprotocols that a browser offers for a WebSocket, where it can send no other header.
const PROTOCOL: &str = "kairo.key.";

/// Lets in who may do what is asked, and tells the endpoint who that is.
pub async fn authorize_request(
    State(gateway): State<Gateway>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map(MatchedPath::as_str);
    let admitted = match PresentedTicket::from_request(&request).filter(|_| !is_openly_missing(&gateway, route)) {
        Some(ticket) => match ticket.redeem(&gateway, peer).await {
            Ok((caller, stay)) => authorize_caller(&caller, route, &request).map(|()| (caller, stay)),
            Err(problem) => Err(problem),
        },
        None => {
            let brought = identify_caller(&gateway, request.headers(), route).await;
            admit_caller(&gateway, peer, route, &request, brought).map(|caller| (caller, None))
        }
    };
    let permitted = admitted.and_then(|(caller, stay)| {
        let permit = match is_open(route, &request) {
            true => gateway.open_permit(peer.ip())?,
            false => gateway.request_permit(&caller, named_user(&caller, route, &request).as_deref())?,
        };
        Ok((caller, stay, permit))
    });
    match permitted {
        Ok((caller, stay, permit)) => {
            let revoked = permit.revocation_token();
            let user = named_user(&caller, route, &request);
            let dealing = InFlightRequest::new(&gateway, &caller, user.as_deref() != Some(UNREAD), permit);
            request.extensions_mut().insert(limits::holder_for_caller(&caller, user.as_deref()));
            request.extensions_mut().insert(caller);
            request.extensions_mut().insert(stay);
            request.extensions_mut().insert(dealing.clone());
            respond_unless_revoked(next.run(request), &revoked, &dealing).await
        }
        Err(problem) => problem.into_response(),
    }
}

/// Returns the answer to a request, unless its permit is revoked in favor of somebody who has fewer.
async fn respond_unless_revoked(
    answer: impl Future<Output = Response>,
    revoked: &CancellationToken,
    dealing: &InFlightRequest,
) -> Response {
    let answer = tokio::select! {
        biased;
        answer = answer => answer,
        () = revoked.cancelled() => Gateway::request_permit_problem(NoPermit::Own).into_response(),
    };
    dealing.release_permit();
    answer
}

/// The user whom a request speaks for: whom the path or the query names first, or somebody whom its body may name.
fn named_user(caller: &Caller, route: Option<&str>, request: &Request) -> Option<String> {
    let named =
        request_names::names_in_request(NameKind::User, route.unwrap_or_default(), request.uri()).into_iter().next();
    let may_name = || caller.user().is_none() && body::is_json(request.headers());
    named.or_else(|| may_name().then(|| UNREAD.to_owned()))
}

/// Lets in whoever asks for what is open to everybody and has no row, such as the console's files, within the same bounds.
pub async fn admit_open_request(
    State(gateway): State<Gateway>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    match count_visit(&gateway, peer).and_then(|()| gateway.open_permit(peer.ip())) {
        Ok(_permit) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Counts a visit to an open endpoint against the rate limit of the peer's address, where keys are required.
fn count_visit(gateway: &Gateway, peer: SocketAddr) -> Result<(), Problem> {
    match gateway.config.requires_key() {
        true => {
            gateway.limits.count_request(&limits::holder_for_visitor(peer.ip())).map_err(Problem::too_many_requests)
        }
        false => Ok(()),
    }
}

/// Returns the caller whose key or token is in these headers; none if it is not in force.
///
/// # Errors
/// If a token cannot be checked because the keys of its issuer are unavailable.
pub async fn identify_caller(
    gateway: &Gateway,
    headers: &HeaderMap,
    route: Option<&str>,
) -> Result<Option<Caller>, Problem> {
    let nobody = || gateway.keys.authenticate_key(None, Timestamp::now());
    match find_credential(headers, route == Some(WEBSOCKET)) {
        RequestCredential::Nothing => Ok(nobody()),
        RequestCredential::Key(token) if gateway.oidc.is_token(token) => {
            gateway.oidc.authenticate_token(token, Timestamp::now()).await
        }
        RequestCredential::Key(key) => {
            let placeholder = || secret::key_id(key).is_none() && route.is_some_and(openai::is_chat_path);
            let known = gateway.keys.authenticate_key(Some(key), Timestamp::now());
            // Chat clients must have a key to send, whether one is required or not.
            Ok(known.or_else(|| nobody().filter(|_| placeholder())))
        }
        RequestCredential::UnsupportedScheme => Ok(None),
    }
}

/// Returns the caller, if they may use the endpoint of that route. `brought` is the caller that the headers identify; a
/// `route` of none is a path without an endpoint.
pub fn admit_caller(
    gateway: &Gateway,
    peer: SocketAddr,
    route: Option<&str>,
    request: &Request,
    brought: Result<Option<Caller>, Problem>,
) -> Result<Caller, Problem> {
    if is_open(route, request) {
        return count_visit(gateway, peer).map(|()| gateway.keys.loopback_caller());
    }
    if is_openly_missing(gateway, route) {
        return Ok(gateway.keys.loopback_caller());
    }
    let caller = brought.as_ref().ok().and_then(Option::as_ref);
    match caller {
        None => {
            gateway.limits.count_request(&limits::holder_for_peer(peer.ip())).map_err(Problem::too_many_requests)?
        }
        Some(caller) => gateway.limits.count_caller(caller, named_user(caller, route, request).as_deref())?,
    }
    let caller = brought?.ok_or_else(Problem::no_valid_key)?;
    authorize_caller(&caller, route, request)?;
    Ok(caller)
}

/// Returns true if the endpoint is open to everybody.
fn is_open(route: Option<&str>, request: &Request) -> bool {
    route.is_some_and(|route| endpoint_access(request.method(), route).needs == KeyRequirement::Nothing)
}

/// Returns true if the path has no endpoint, and anybody may know. Where a key is required, a caller without one does
/// not learn which paths are missing; where none is, even a caller with a key that is not in force does.
fn is_openly_missing(gateway: &Gateway, route: Option<&str>) -> bool {
    route.is_none() && !gateway.config.requires_key()
}

/// Holds a caller to the row of the endpoint.
fn authorize_caller(caller: &Caller, route: Option<&str>, request: &Request) -> Result<(), Problem> {
    route.map_or(Ok(()), |route| enforce_access(&endpoint_access(request.method(), route), caller, request))
}

/// Every endpoint: the rpcs, as they are declared, and the others.
pub fn all_endpoints() -> impl Iterator<Item = &'static Access> {
    endpoints::ACCESS.iter().chain(TABLE)
}

/// The row of an endpoint.
pub fn endpoint_access(method: &Method, route: &str) -> Access {
    let method = if method == Method::HEAD { "GET" } else { method.as_str() };
    all_endpoints().find(|row| row.method == method && row.path == route).copied().unwrap_or(OTHERS)
}

fn enforce_access(access: &Access, caller: &Caller, request: &Request) -> Result<(), Problem> {
    match access.needs {
        KeyRequirement::Nothing | KeyRequirement::Key => {}
        KeyRequirement::Scope(scope) => caller.require_scope(scope)?,
        KeyRequirement::Both(one, other) => caller.require_scope(one).and_then(|()| caller.require_scope(other))?,
    }
    let closed = |to: &str| Problem::forbidden(format!("a key that is limited to {to} may not use this"));
    if access.agents == Closed && caller.agents().is_some() {
        return Err(closed("some agents"));
    }
    if access.user == Closed && caller.user().is_some() {
        return Err(closed("a user"));
    }
    request_names::enforce_request_limits(NameKind::Agent, caller, access.path, access.agents == Named, request)?;
    request_names::enforce_request_limits(NameKind::User, caller, access.path, access.user == Named, request)
}

/// The credential in the headers of a request.
enum RequestCredential<'a> {
    Nothing,
    Key(&'a str),
    UnsupportedScheme,
}

fn find_credential(headers: &HeaderMap, websocket: bool) -> RequestCredential<'_> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let words = value.to_str().ok().and_then(|value| value.split_once(' '));
        return match words {
            Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => RequestCredential::Key(key.trim()),
            _ => RequestCredential::UnsupportedScheme,
        };
    }
    let protocols = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).into_iter().filter(|_| websocket);
    let mut offered = protocols.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    offered
        .find_map(|protocol| protocol.trim().strip_prefix(PROTOCOL))
        .map_or(RequestCredential::Nothing, RequestCredential::Key)
}

#[cfg(test)]
mod tests;
