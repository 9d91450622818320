//! An authorization server and an MCP server that takes its tokens, in one process, strict as the specifications allow:
//! PKCE with S256, exact redirect URIs, the resource in each request, codes and refresh tokens good for one use,
//! revocation.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use axum::{Form, Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use url::Url;

type Fields = HashMap<String, String>;

/// Settings that a test changes, and counters that it reads.
#[derive(Debug, Default)]
pub struct Knobs {
    /// The scope that a call needs.
    pub wanted_scope: Option<String>,
    /// The value of `iss` that replaces the issuer.
    pub issuer_in_answer: Option<String>,
    /// The value of `resource` in the metadata that replaces the server's address.
    pub resource: Option<String>,
    /// True if the person denies the request.
    pub denies: bool,
    /// True if the credentials of clients are refused.
    pub refuses_clients: bool,
    /// The announced lifetime of a token, in seconds.
    pub lifetime: Option<u64>,
    /// Requests for tokens that were granted, by their grant types.
    pub granted: BTreeMap<String, usize>,
    /// Calls that were carried out.
    pub calls: usize,
    /// Clients that were registered.
    pub registered: usize,
    pub revoked: usize,
    /// The scope needed to list the server's tools; none if it takes no scope.
    pub listing_scope: Option<String>,
    codes: HashMap<String, Code>,
    access: HashMap<String, Token>,
    refresh: HashMap<String, Token>,
    last: u64,
}

/// The grant behind a token.
#[derive(Debug, Clone, Default)]
struct Token {
    scope: String,
    /// The person who signed in: the field `as` of the address that the browser visits; empty for nobody in particular.
    person: String,
}

#[derive(Debug)]
struct Code {
    person: String,
    challenge: String,
    redirect_uri: String,
    scope: String,
    client: String,
}

#[derive(Clone)]
pub struct Provider {
    pub url: String,
    knobs: Arc<Mutex<Knobs>>,
}

impl Provider {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let provider = Self { url, knobs: Arc::default() };
        let router = Router::new()
            .route("/mcp", post(mcp).get(async || StatusCode::METHOD_NOT_ALLOWED))
            .route("/.well-known/oauth-protected-resource/mcp", get(resource))
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/revoke", post(revoke))
            .with_state(provider.clone());
        tokio::spawn(axum::serve(listener, router).into_future());
        provider
    }

    pub fn knobs(&self) -> MutexGuard<'_, Knobs> {
        self.knobs.lock().unwrap()
    }

    /// No access token is valid any more, as after their time.
    pub fn expire(&self) {
        self.knobs().access.clear();
    }

    /// No access token of this person is valid any more.
    pub fn expire_of(&self, person: &str) {
        self.knobs().access.retain(|_, token| token.person != person);
    }

    /// Nothing that this person granted is valid any more.
    pub fn revoke_of(&self, person: &str) {
        let mut knobs = self.knobs();
        knobs.access.retain(|_, token| token.person != person);
        knobs.refresh.retain(|_, token| token.person != person);
    }

    /// Nothing that was granted is valid any more.
    pub fn revoke_all(&self) {
        let mut knobs = self.knobs();
        knobs.access.clear();
        knobs.refresh.clear();
    }

    pub fn granted(&self, grant: &str) -> usize {
        self.knobs().granted.get(grant).copied().unwrap_or_default()
    }

    fn mcp(&self) -> String {
        format!("{}/mcp", self.url)
    }
}

impl Knobs {
    fn fresh(&mut self, what: &str) -> String {
        self.last += 1;
        format!("{what}-{}", self.last)
    }

    fn grant(&mut self, grant: &str, token: Token, with_refresh: bool) -> Response {
        *self.granted.entry(grant.to_owned()).or_default() += 1;
        let access = self.fresh("access");
        let refresh = self.fresh("refresh");
        self.access.insert(access.clone(), token.clone());
        let mut answer = json!({ "access_token": access, "token_type": "Bearer", "scope": token.scope });
        answer["expires_in"] = json!(self.lifetime.unwrap_or(3_600));
        if with_refresh {
            self.refresh.insert(refresh.clone(), token);
            answer["refresh_token"] = json!(refresh);
        }
        Json(answer).into_response()
    }
}

async fn resource(State(own): State<Provider>) -> Json<Value> {
    let resource = own.knobs().resource.clone().unwrap_or_else(|| own.mcp());
    Json(json!({ "resource": resource, "authorization_servers": [own.url], "scopes_supported": ["read"] }))
}

async fn metadata(State(own): State<Provider>) -> Json<Value> {
    let at = |path: &str| format!("{}/{path}", own.url);
    Json(json!({
        "issuer": own.url, "authorization_endpoint": at("authorize"), "token_endpoint": at("token"),
        "registration_endpoint": at("register"), "revocation_endpoint": at("revoke"),
        "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
        "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
        "authorization_response_iss_parameter_supported": true,
    }))
}

async fn register(State(own): State<Provider>, Json(asked): Json<Value>) -> Response {
    own.knobs().registered += 1;
    let uris = asked["redirect_uris"].clone();
    (StatusCode::CREATED, Json(json!({ "client_id": "registered", "redirect_uris": uris }))).into_response()
}

async fn authorize(State(own): State<Provider>, Query(asked): Query<Fields>) -> Response {
    let field = |name: &str| asked.get(name).cloned().unwrap_or_default();
    let is_right = field("response_type") == "code"
        && field("code_challenge_method") == "S256"
        && field("resource") == own.mcp()
        && !field("state").is_empty();
    if !is_right {
        return (StatusCode::BAD_REQUEST, format!("{asked:?}")).into_response();
    }
    let mut back = Url::parse(&field("redirect_uri")).unwrap();
    let mut knobs = own.knobs();
    let answer = match knobs.denies {
        true => ("error", "access_denied".to_owned()),
        false => ("code", knobs.fresh("code")),
    };
    let code = Code {
        person: field("as"),
        challenge: field("code_challenge"),
        redirect_uri: field("redirect_uri"),
        scope: field("scope"),
        client: field("client_id"),
    };
    knobs.codes.insert(answer.1.clone(), code);
    let issuer = knobs.issuer_in_answer.clone().unwrap_or_else(|| own.url.clone());
    back.query_pairs_mut().append_pair(answer.0, &answer.1).append_pair("state", &field("state"));
    back.query_pairs_mut().append_pair("iss", &issuer);
    Redirect::to(back.as_str()).into_response()
}

async fn token(State(own): State<Provider>, headers: HeaderMap, Form(asked): Form<Fields>) -> Response {
    let field = |name: &str| asked.get(name).cloned().unwrap_or_default();
    let refused = |error: &str| (StatusCode::BAD_REQUEST, Json(json!({ "error": error }))).into_response();
    let resource = own.mcp();
    let mut knobs = own.knobs();
    if field("resource") != resource {
        return refused("invalid_target");
    }
    match field("grant_type").as_str() {
        "authorization_code" => {
            let Some(code) = knobs.codes.remove(&field("code")) else { return refused("invalid_grant") };
            let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(field("code_verifier")));
            let is_right = challenge == code.challenge
                && field("redirect_uri") == code.redirect_uri
                && field("client_id") == code.client;
            let token = Token { scope: code.scope, person: code.person };
            if is_right { knobs.grant("authorization_code", token, true) } else { refused("invalid_grant") }
        }
        "refresh_token" => match knobs.refresh.remove(&field("refresh_token")) {
            Some(token) => knobs.grant("refresh_token", token, true),
            None => refused("invalid_grant"),
        },
        "client_credentials" => {
            let basic = format!("Basic {}", STANDARD.encode("robot:s3cret"));
            let by_header = headers.get(header::AUTHORIZATION).is_some_and(|value| value == basic.as_str());
            let by_body = field("client_id") == "robot" && field("client_secret") == "s3cret";
            if knobs.refuses_clients || !(by_header || by_body) {
                return (StatusCode::UNAUTHORIZED, Json(json!({ "error": "invalid_client" }))).into_response();
            }
            knobs.grant("client_credentials", Token { scope: field("scope"), person: String::new() }, false)
        }
        _ => refused("unsupported_grant_type"),
    }
}

async fn revoke(State(own): State<Provider>, Form(asked): Form<Fields>) -> StatusCode {
    let mut knobs = own.knobs();
    if let Some(revoked) = asked.get("token").and_then(|token| knobs.refresh.remove(token)) {
        knobs.revoked += 1;
        knobs.access.retain(|_, token| token.person != revoked.person);
    }
    StatusCode::OK
}

/// The MCP server: of 2025-06-18, without sessions.
async fn mcp(State(own): State<Provider>, headers: HeaderMap, Json(asked): Json<Value>) -> Response {
    let mut knobs = own.knobs();
    let token = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token =
        token.and_then(|value| value.strip_prefix("Bearer ")).and_then(|token| knobs.access.get(token).cloned());
    let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", own.url);
    let challenge = |status: StatusCode, more: &str| {
        let value = format!("Bearer resource_metadata=\"{metadata}\"{more}");
        (status, [(header::WWW_AUTHENTICATE, value)]).into_response()
    };
    let Some(Token { scope, person }) = token else { return challenge(StatusCode::UNAUTHORIZED, "") };
    let method = asked["method"].as_str().unwrap_or_default();
    let wanted = match method {
        "tools/list" => knobs.listing_scope.clone(),
        "tools/call" => knobs.wanted_scope.clone(),
        _ => None,
    };
    if let Some(wanted) = wanted.filter(|wanted| !scope.split(' ').any(|had| had == wanted)) {
        return challenge(StatusCode::FORBIDDEN, &format!(", error=\"insufficient_scope\", scope=\"{wanted}\""));
    }
    let result = match method {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
            "serverInfo": { "name": "guarded", "version": "1" },
        }),
        "tools/list" => json!({ "tools": [{ "name": "pay", "inputSchema": { "type": "object" } }] }),
        "tools/call" => {
            knobs.calls += 1;
            let payer = if person.is_empty() { String::new() } else { format!(" by {person}") };
            json!({ "content": [{ "type": "text", "text": format!("paid {}{payer}", knobs.calls) }] })
        }
        _ if asked["id"].is_null() => return StatusCode::ACCEPTED.into_response(),
        _ => {
            let error = json!({ "code": -32601, "message": "Method not found" });
            return Json(json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error })).into_response();
        }
    };
    Json(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result })).into_response()
}
