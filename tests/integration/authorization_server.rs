//! The server of an issuer at which people sign in with a browser: they are known there already, and sent back with a code.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
};

use axum::{
    Json, Router,
    extract::{Query, State},
    http::{StatusCode, header},
    response::{IntoResponse, Redirect},
    routing::{get, post},
};
use data_encoding::BASE64URL_NOPAD;
use reqwest::Url;
use ring::digest::{SHA256, digest};
use serde_json::json;
use tokio::net::TcpListener;

use crate::oidc::{ISSUER, SigningKey, claims};

const CLIENT: &str = "kairo-console";
const KEY: &str = "k";

pub struct AuthorizationServer {
    url: String,
}

struct Server {
    key: SigningKey,
    /// The PKCE challenge for each code that was issued.
    challenges: Mutex<BTreeMap<String, String>>,
}

type Fields = HashMap<String, String>;

impl AuthorizationServer {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = Server { key: SigningKey::es256(), challenges: Mutex::default() };
        let router = Router::new()
            .route("/jwks", get(async |State(own): State<Arc<Server>>| Json(json!({ "keys": [own.key.jwk(KEY)] }))))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .with_state(Arc::new(server));
        tokio::spawn(axum::serve(listener, router).into_future());
        Self { url }
    }

    /// Returns the setting of a gateway that trusts this server.
    pub fn config(&self) -> String {
        let Self { url } = self;
        let issuer = json!({
            "issuer": ISSUER, "audience": ["kairo"], "jwks_url": format!("{url}/jwks"), "algorithms": ["ES256"],
            "console_client_id": CLIENT, "console_authorization_url": format!("{url}/authorize"),
            "console_token_url": format!("{url}/token"), "console_scope": "openid kairo:read kairo:write",
        });
        json!([issuer]).to_string()
    }
}

async fn authorize(State(own): State<Arc<Server>>, Query(asked): Query<Fields>) -> impl IntoResponse {
    let expected = [("response_type", "code"), ("client_id", CLIENT), ("code_challenge_method", "S256")];
    if expected.iter().any(|(name, value)| asked[*name] != *value) {
        return StatusCode::BAD_REQUEST.into_response();
    }
    let mut challenges = own.challenges.lock().unwrap();
    let code = format!("code-{}", challenges.len());
    challenges.insert(code.clone(), asked["code_challenge"].clone());
    let back = [("code", code.as_str()), ("state", &asked["state"]), ("iss", ISSUER)];
    Redirect::to(Url::parse_with_params(&asked["redirect_uri"], back).unwrap().as_str()).into_response()
}

/// Each code is good once, for whoever has what its challenge is the digest of.
async fn token(State(own): State<Arc<Server>>, form: String) -> impl IntoResponse {
    let form = Url::parse(&format!("{ISSUER}?{form}")).unwrap();
    let asked: Fields = form.query_pairs().into_owned().collect();
    let challenge = own.challenges.lock().unwrap().remove(&asked["code"]);
    let proved = BASE64URL_NOPAD.encode(digest(&SHA256, asked["code_verifier"].as_bytes()).as_ref());
    let (status, answer) = match challenge == Some(proved) && asked["client_id"] == CLIENT {
        true => {
            let token = own.key.token(KEY, &claims(json!({})));
            (StatusCode::OK, json!({ "token_type": "Bearer", "access_token": token }))
        }
        false => (StatusCode::BAD_REQUEST, json!({ "error": "invalid_grant" })),
    };
    (status, [(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*")], Json(answer))
}
