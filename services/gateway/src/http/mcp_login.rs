//! `/v1/mcp/{server}/login`: signing in and out at an MCP server, which tool-runner does.

use std::time::Duration;

use axum::extract::{Path, State, rejection::PathRejection};
use kairo_core::{bus::port::NoAnswer, subjects::MCP_SIGN_IN};
use kairo_proto::{
    v1::{
        BeginMcpLoginResponse, FinishMcpLoginResponse, McpLogoutResponse, McpSignInAnswer, McpSignInBegin,
        McpSignInEnd, McpSignInFinish, McpSignInRequest, mcp_sign_in_request::Ask,
    },
    words::McpSignInAnswered,
};
use prost::Message as _;

use super::{Gateway, answer::Told, body::JsonBody};
use crate::{
    fields::{Fields, at_most, text},
    problem::{FieldError, Problem},
};

/// How long tool-runner may take, which asks an authorization server about several things.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest address, in bytes.
const MAX_ADDRESS: usize = 8_192;
/// Longest name of a server, in bytes.
const MAX_NAME: usize = 32;

/// Begins to sign in.
pub async fn begin(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
    JsonBody(body): JsonBody,
) -> Result<Told<BeginMcpLoginResponse>, Problem> {
    let redirect_uri = read(&body, "redirect_uri")?;
    let answer = ask(&gateway, server(path)?, Ask::Begin(McpSignInBegin { redirect_uri })).await?;
    Ok(Told(BeginMcpLoginResponse { address: answer.address }))
}

/// Ends that.
pub async fn finish(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
    JsonBody(body): JsonBody,
) -> Result<Told<FinishMcpLoginResponse>, Problem> {
    let address = read(&body, "address")?;
    let answer = ask(&gateway, server(path)?, Ask::Finish(McpSignInFinish { address })).await?;
    Ok(Told(FinishMcpLoginResponse { scopes: answer.scopes }))
}

/// Signs out.
pub async fn end(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Told<McpLogoutResponse>, Problem> {
    let McpSignInAnswer { forgotten, revoked, .. } =
        ask(&gateway, server(path)?, Ask::End(McpSignInEnd::default())).await?;
    Ok(Told(McpLogoutResponse { forgotten, revoked }))
}

async fn ask(gateway: &Gateway, server: String, ask: Ask) -> Result<McpSignInAnswer, Problem> {
    let request = McpSignInRequest { server, ask: Some(ask) };
    let answer = gateway.bus.request(MCP_SIGN_IN, request.encode_to_vec(), PATIENCE).await.map_err(|error| {
        Problem::unavailable(match error {
            NoAnswer::Nobody => "no tool-runner is there to sign in".to_owned(),
            error => format!("tool-runner did not answer: {error}"),
        })
    })?;
    let answer = McpSignInAnswer::decode(answer)
        .map_err(|_| Problem::unavailable("tool-runner is of a build that answers in another way"))?;
    match answer.outcome_word() {
        McpSignInAnswered::Done => Ok(answer),
        McpSignInAnswered::NoServer => Err(Problem::not_found(answer.reason)),
        McpSignInAnswered::Refused | McpSignInAnswered::Unknown(_) => Err(Problem::conflict(answer.reason)),
    }
}

/// The address in this field.
pub fn read(body: &[u8], field: &'static str) -> Result<String, Problem> {
    let mut fields = Fields::from_json(body)?;
    let expected = format!("an address of at most {MAX_ADDRESS} bytes");
    let address = fields.required(field, expected, text(at_most(MAX_ADDRESS)));
    fields.complete(|| address)
}

fn server(path: Result<Path<String>, PathRejection>) -> Result<String, Problem> {
    let server = path.map(|Path(server)| server).unwrap_or_default();
    let is_name = |text: &str| {
        (1..=MAX_NAME).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte))
    };
    if is_name(&server) {
        return Ok(server);
    }
    let expected = "the name of a server in tool_runner.mcp".to_owned();
    let found = Some(server.chars().take(80).collect());
    Err(Problem::invalid(vec![FieldError { field: "server".to_owned(), expected, found }]))
}
