//! MCP servers that are signed in at by OAuth, against a strict authorization server.

use std::sync::Arc;

use kairo_core::config::Secret;
use kairo_tool_runner::config::{McpServerConfig, OAuthConfig, OAuthGrant};
use kairo_tool_runner::mcp::PeopleAccess;
use kairo_tool_runner::mcp::oauth::{MemoryVault, SignIn, SignInVault, SignOutOutcome};
use kairo_tool_runner::tool::{ToolError, ToolErrorKind};
use kairo_tool_runner::toolbox::Toolbox;
use serde_json::{Value, json};

use crate::provider::Provider;
use crate::support::{call, config, within_deadline};

pub const REDIRECT_URI: &str = "http://127.0.0.1:7/callback";
const LOGIN: &str = "kairo mcp login bank";

pub fn guarded(provider: &Provider, oauth: OAuthConfig) -> McpServerConfig {
    McpServerConfig {
        name: "bank".to_owned(),
        url: Some(format!("{}/mcp", provider.url)),
        oauth: Some(oauth),
        ..McpServerConfig::default()
    }
}

fn robot() -> OAuthConfig {
    OAuthConfig {
        grant: OAuthGrant::ClientCredentials,
        client_id: Some("robot".to_owned()),
        client_secret: Secret::new("s3cret".to_owned()),
        ..OAuthConfig::default()
    }
}

async fn start(provider: &Provider, oauth: OAuthConfig, vault: &Arc<dyn SignInVault>) -> Toolbox {
    let config = config(vec![guarded(provider, oauth)]);
    within_deadline(Toolbox::start_with(&config, Vec::new(), PeopleAccess { vault: vault.clone(), questions: None }))
        .await
        .unwrap()
}

fn vault() -> Arc<dyn SignInVault> {
    Arc::new(MemoryVault::default())
}

fn sign_in(toolbox: &Toolbox) -> Arc<SignIn> {
    toolbox.sign_ins().find(|(name, _)| name == "bank").unwrap().1.unwrap().for_user(None).unwrap()
}

async fn pay(toolbox: &Toolbox) -> Result<Value, ToolError> {
    call(toolbox, "bank.pay", json!({})).await
}

/// Visits the address like a browser, and returns the address of the redirect.
pub async fn browse(address: &str) -> String {
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let answer = client.get(address).send().await.unwrap();
    let back = answer.headers().get("location").map(|value| value.to_str().unwrap().to_owned());
    back.unwrap_or_else(|| panic!("no redirect but {}", answer.status()))
}

async fn log_in(toolbox: &Toolbox) -> Result<Vec<String>, String> {
    let sign_in = sign_in(toolbox);
    let address = within_deadline(sign_in.begin(REDIRECT_URI)).await?;
    within_deadline(sign_in.finish(&browse(&address).await)).await
}

async fn offers(toolbox: &Toolbox) {
    within_deadline(toolbox.watch().wait_for(|catalogue| catalogue.get("bank.pay").is_some())).await.unwrap();
}

fn wants_login(outcome: Result<Value, ToolError>) {
    let error = outcome.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Failed, "{error}");
    assert!(error.message.contains(LOGIN), "{error}");
}

#[tokio::test]
async fn a_runner_signs_in_by_itself_and_again_when_its_token_has_ended() {
    let provider = Provider::start().await;
    let toolbox = start(&provider, robot(), &vault()).await;
    assert_eq!(pay(&toolbox).await, Ok(json!("paid 1")));
    assert_eq!(provider.granted("client_credentials"), 1);
    provider.expire();
    assert_eq!(pay(&toolbox).await, Ok(json!("paid 2")));
    assert_eq!(provider.granted("client_credentials"), 2);
    within_deadline(toolbox.stop()).await;
}

#[tokio::test]
async fn a_runner_asks_for_the_scope_that_lacks_once() {
    let provider = Provider::start().await;
    let toolbox = start(&provider, robot(), &vault()).await;
    provider.knobs().wanted_scope = Some("pay".to_owned());
    assert_eq!(pay(&toolbox).await, Ok(json!("paid 1")));
    assert_eq!(pay(&toolbox).await, Ok(json!("paid 2")));
    assert_eq!(provider.granted("client_credentials"), 2);
    within_deadline(toolbox.stop()).await;
}

#[tokio::test]
async fn a_call_of_a_client_that_is_refused_failed_and_was_not_carried_out() {
    let provider = Provider::start().await;
    let toolbox = start(&provider, robot(), &vault()).await;
    provider.knobs().refuses_clients = true;
    provider.expire();
    let error = pay(&toolbox).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Failed, "{error}");
    assert_eq!(provider.knobs().calls, 0);
    within_deadline(toolbox.stop()).await;
}

#[tokio::test]
async fn a_person_signs_in_and_the_server_is_there() {
    let provider = Provider::start().await;
    let toolbox = start(&provider, OAuthConfig::default(), &vault()).await;
    assert!(toolbox.server_protocols().all(|(_, protocol)| protocol.is_none()));
    assert_eq!(log_in(&toolbox).await.unwrap(), ["read"]);
    offers(&toolbox).await;
    assert_eq!(pay(&toolbox).await, Ok(json!("paid 1")));
    assert_eq!(provider.granted("authorization_code"), 1);
    assert_eq!(provider.knobs().registered, 1);
    within_deadline(toolbox.stop()).await;
}

#[tokio::test]
async fn a_token_that_has_ended_is_renewed_once_among_replicas() {
    let provider = Provider::start().await;
    let shared = MemoryVault::default();
    let of = |holder: &str| -> Arc<dyn SignInVault> { Arc::new(shared.for_replica(holder)) };
    let one = start(&provider, OAuthConfig::default(), &of("one")).await;
    log_in(&one).await.unwrap();
    let two = start(&provider, OAuthConfig::default(), &of("two")).await;
    offers(&one).await;
    offers(&two).await;
    provider.expire();
    let (first, second) = tokio::join!(pay(&one), pay(&two));
    assert!(first.is_ok() && second.is_ok(), "{first:?} {second:?}");
    // A refresh token is good for one use: the second renewal would be refused.
    assert_eq!(provider.granted("refresh_token"), 1);
    provider.expire();
    assert!(pay(&one).await.is_ok());
    assert_eq!(provider.granted("refresh_token"), 2);
    within_deadline(one.stop()).await;
    within_deadline(two.stop()).await;
}

#[tokio::test]
async fn a_token_is_renewed_before_its_time_is_over() {
    let provider = Provider::start().await;
    let vault = vault();
    let toolbox = start(&provider, OAuthConfig::default(), &vault).await;
    provider.knobs().lifetime = Some(5);
    log_in(&toolbox).await.unwrap();
    provider.knobs().lifetime = None;
    offers(&toolbox).await;
    assert_eq!(provider.granted("refresh_token"), 1);
    within_deadline(toolbox.stop()).await;
}

#[tokio::test]
async fn what_was_revoked_wants_a_person_again() {
    let provider = Provider::start().await;
    let toolbox = start(&provider, OAuthConfig::default(), &vault()).await;
    log_in(&toolbox).await.unwrap();
    offers(&toolbox).await;
    provider.revoke_all();
    wants_login(pay(&toolbox).await);
    wants_login(pay(&toolbox).await);
    assert_eq!(provider.knobs().calls, 0);
    log_in(&toolbox).await.unwrap();
    within_deadline(async { while pay(&toolbox).await.is_err() {} }).await;
    within_deadline(toolbox.stop()).await;
}

#[tokio::test]
async fn a_server_that_lacks_a_scope_to_start_waits_for_a_person() {
    let provider = Provider::start().await;
    let toolbox = start(&provider, OAuthConfig::default(), &vault()).await;
    provider.knobs().listing_scope = Some("list".to_owned());
    log_in(&toolbox).await.unwrap();
    let is_told = |health: &kairo_tool_runner::mcp::ServerHealth| {
        health.last_error.as_deref().is_some_and(|error| error.contains("scope list") && error.contains(LOGIN))
    };
    let mut changes = toolbox.mcp_changes().remove(0);
    within_deadline(changes.wait_for(|_| is_told(&toolbox.mcp_health()[0].1))).await.unwrap();
    // It is not started again and again: the server is asked for nothing more.
    assert_eq!(log_in(&toolbox).await.unwrap(), ["list", "read"]);
    offers(&toolbox).await;
    assert_eq!(pay(&toolbox).await, Ok(json!("paid 1")));
    within_deadline(toolbox.stop()).await;
}

#[tokio::test]
async fn a_scope_that_lacks_is_granted_by_the_next_sign_in() {
    let provider = Provider::start().await;
    let toolbox = start(&provider, OAuthConfig::default(), &vault()).await;
    log_in(&toolbox).await.unwrap();
    offers(&toolbox).await;
    provider.knobs().wanted_scope = Some("pay".to_owned());
    let refused = pay(&toolbox).await;
    assert!(refused.as_ref().unwrap_err().message.contains("scope pay"), "{refused:?}");
    wants_login(refused);
    assert_eq!(log_in(&toolbox).await.unwrap(), ["pay", "read"]);
    within_deadline(async { while pay(&toolbox).await.is_err() {} }).await;
    within_deadline(toolbox.stop()).await;
}

#[tokio::test]
async fn whoever_signs_out_has_the_tokens_revoked() {
    let provider = Provider::start().await;
    let toolbox = start(&provider, OAuthConfig::default(), &vault()).await;
    assert_eq!(sign_in(&toolbox).sign_out().await, Ok(SignOutOutcome::Nothing));
    log_in(&toolbox).await.unwrap();
    offers(&toolbox).await;
    assert_eq!(within_deadline(sign_in(&toolbox).sign_out()).await, Ok(SignOutOutcome::Revoked));
    assert_eq!(provider.knobs().revoked, 1);
    wants_login(pay(&toolbox).await);
    within_deadline(toolbox.stop()).await;
}

#[tokio::test]
async fn answers_that_are_not_those_that_were_waited_for_are_refused() {
    let provider = Provider::start().await;
    let toolbox = start(&provider, OAuthConfig::default(), &vault()).await;
    let sign_in = sign_in(&toolbox);

    provider.knobs().denies = true;
    let denied = log_in(&toolbox).await.unwrap_err();
    assert!(denied.contains("access_denied"), "{denied}");
    provider.knobs().denies = false;

    provider.knobs().issuer_in_answer = Some("https://evil.example".to_owned());
    let mixed = log_in(&toolbox).await.unwrap_err();
    assert!(mixed.contains("issuer mismatch"), "{mixed}");
    provider.knobs().issuer_in_answer = None;

    let address = sign_in.begin(REDIRECT_URI).await.unwrap();
    let answer = browse(&address).await;
    let forged = answer.replace("state=", "state=x");
    assert!(sign_in.finish(&forged).await.unwrap_err().contains("no sign-in waits"));
    assert_eq!(sign_in.finish(&answer).await.unwrap(), ["read"]);
    let again = sign_in.finish(&answer).await.unwrap_err();
    assert!(again.contains("no sign-in waits"), "{again}");

    let elsewhere = sign_in.begin("https://evil.example/callback").await.unwrap_err();
    assert!(elsewhere.contains("redirect_uri"), "{elsewhere}");
    within_deadline(toolbox.stop()).await;
}

#[tokio::test]
async fn a_server_that_names_another_resource_is_not_signed_in_at() {
    let provider = Provider::start().await;
    provider.knobs().resource = Some("https://evil.example/mcp".to_owned());
    let toolbox = start(&provider, OAuthConfig::default(), &vault()).await;
    assert!(sign_in(&toolbox).begin(REDIRECT_URI).await.is_err());
    let robot = start(&provider, robot(), &vault()).await;
    assert!(robot.server_protocols().all(|(_, protocol)| protocol.is_none()));
    assert_eq!(provider.granted("client_credentials"), 0);
    within_deadline(toolbox.stop()).await;
    within_deadline(robot.stop()).await;
}
