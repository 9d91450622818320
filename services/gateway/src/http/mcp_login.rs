//! `/v1/mcp`: signing in and out at an MCP server, which tool-runner does, and who is signed in.

use std::time::Duration;

use axum::{
    Extension,
    extract::{Path, RawQuery, State, rejection::PathRejection},
};
use kairo_core::{bus::port::NoAnswer, ids::Name, subjects::MCP_SIGN_IN};
use kairo_proto::{
    v1::{
        BeginMcpLoginResponse, FinishMcpLoginResponse, ListMcpSignInsResponse, McpLogoutResponse, McpSignInAnswer,
        McpSignInBegin, McpSignInEnd, McpSignInFinish, McpSignInForget, McpSignInList, McpSignInRequest,
        mcp_sign_in_request::Ask,
    },
    words::McpSignInAnswered,
};
use prost::Message as _;

use super::{Gateway, body::JsonBody, sorted_json::SortedJson};
use crate::{
    auth::{Caller, Scope},
    fields::{NAME, RequestFields, bounded_text, json_text, parse_name, query_value},
    problem::{FieldError, Problem},
};

/// The time limit for tool-runner, which sends several requests to an authorization server.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest address, in bytes.
const MAX_ADDRESS: usize = 8_192;
/// Longest name of a server, in bytes.
const MAX_NAME: usize = 32;

/// Begins to sign in.
pub async fn begin_mcp_login(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    JsonBody(body): JsonBody,
) -> Result<SortedJson<BeginMcpLoginResponse>, Problem> {
    let (redirect_uri, user) = parse_body(&body, "redirect_uri")?;
    check_sign_in(&caller, user.as_ref())?;
    let answer =
        ask_tool_runner(&gateway, path_server(path)?, user, Ask::Begin(McpSignInBegin { redirect_uri })).await?;
    Ok(SortedJson(BeginMcpLoginResponse { address: answer.address }))
}

/// Ends that.
pub async fn finish_mcp_login(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    JsonBody(body): JsonBody,
) -> Result<SortedJson<FinishMcpLoginResponse>, Problem> {
    let (address, user) = parse_body(&body, "address")?;
    check_sign_in(&caller, user.as_ref())?;
    let answer = ask_tool_runner(&gateway, path_server(path)?, user, Ask::Finish(McpSignInFinish { address })).await?;
    Ok(SortedJson(FinishMcpLoginResponse { scopes: answer.scopes }))
}

/// Signs out.
pub async fn end_mcp_login(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<SortedJson<McpLogoutResponse>, Problem> {
    let user = parse_user_query(query.as_deref())?;
    check_sign_in(&caller, user.as_ref())?;
    let answer = ask_tool_runner(&gateway, path_server(path)?, user, Ask::End(McpSignInEnd::default())).await?;
    let McpSignInAnswer { forgotten, revoked, .. } = answer;
    Ok(SortedJson(McpLogoutResponse { forgotten, revoked }))
}

/// Lists the users' sign-ins at MCP servers.
pub async fn list_mcp_sign_ins(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<SortedJson<ListMcpSignInsResponse>, Problem> {
    let user = parse_user_query(query.as_deref())?;
    match &user {
        Some(user) => caller.require_user(Some(user.as_str()))?,
        None => require_unlimited_admin(&caller)?,
    }
    let answer = ask_tool_runner(&gateway, String::new(), user, Ask::List(McpSignInList::default())).await?;
    Ok(SortedJson(ListMcpSignInsResponse { sign_ins: answer.sign_ins }))
}

/// Signs a user out at all servers, as far as there is a tool-runner to do so.
///
/// # Errors
/// When one is there and did not do it.
pub async fn forget_sign_ins(gateway: &Gateway, user: &Name) -> Result<(), Problem> {
    ask_tool_runner(gateway, String::new(), Some(user.clone()), Ask::Forget(McpSignInForget::default())).await.map(drop)
}

/// Refuses to sign in for others than the key may act as.
fn check_sign_in(caller: &Caller, user: Option<&Name>) -> Result<(), Problem> {
    let Some(user) = user else { return require_unlimited_admin(caller) };
    caller.require_user(Some(user.as_str()))?;
    // What was granted serves all agents.
    if caller.user().is_none() { caller.require_agent(None) } else { Ok(()) }
}

/// Refuses what concerns all users to whoever may not do everything: they have to name a user.
fn require_unlimited_admin(caller: &Caller) -> Result<(), Problem> {
    let may_all = caller.require_user(None).and_then(|()| caller.require_agent(None));
    may_all.and_then(|()| caller.require_scope(Scope::Admin)).map_err(|_| {
        let expected = "a user, as only a key with the scope admin and without limits acts for all".to_owned();
        Problem::invalid_fields(vec![FieldError { field: "user".to_owned(), expected, found: None }])
    })
}

async fn ask_tool_runner(
    gateway: &Gateway,
    server: String,
    user: Option<Name>,
    ask: Ask,
) -> Result<McpSignInAnswer, Problem> {
    let user = user.map(|user| user.to_string()).unwrap_or_default();
    let request = McpSignInRequest { server, user, ask: Some(ask) };
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

/// The address in this field, and who signs in.
pub fn parse_body(body: &[u8], field: &'static str) -> Result<(String, Option<Name>), Problem> {
    let mut fields = RequestFields::from_json(body)?;
    let expected = format!("an address of at most {MAX_ADDRESS} bytes");
    let address = fields.required(field, expected, json_text(bounded_text(MAX_ADDRESS)));
    let user = fields.optional("user", NAME, json_text(parse_name));
    fields.complete(|| Some((address?, user)))
}

fn parse_user_query(query: Option<&str>) -> Result<Option<Name>, Problem> {
    let mut fields = RequestFields::from_query(query);
    let user = fields.optional("user", NAME, query_value(parse_name));
    fields.complete(|| Some(user))
}

fn path_server(path: Result<Path<String>, PathRejection>) -> Result<String, Problem> {
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
    Err(Problem::invalid_fields(vec![FieldError { field: "server".to_owned(), expected, found }]))
}
