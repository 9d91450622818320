//! Tests an MCP server at which each user signs in: nobody acts with another user's grant.

use std::sync::Arc;

use futures::future::join_all;
use kairo_core::ids::Name;
use kairo_tool_runner::config::{OAuthConfig, OAuthPer};
use kairo_tool_runner::mcp::oauth::{MemoryVault, SignInVault, SignIns, SignOutOutcome, UserSignIns};
use kairo_tool_runner::mcp::{HealthState, PeopleAccess, ServerHealth};
use kairo_tool_runner::tool::{CallContext, CallResult, ToolErrorKind};
use kairo_tool_runner::toolbox::Toolbox;
use serde_json::json;

use crate::oauth::{REDIRECT_URI, browse, guarded};
use crate::provider::Provider;
use crate::support::{config, context, within_deadline};

fn per_user() -> OAuthConfig {
    OAuthConfig { per: OAuthPer::User, ..OAuthConfig::default() }
}

async fn start(provider: &Provider, oauth: OAuthConfig, vault: &Arc<dyn SignInVault>) -> Toolbox {
    let config = config(vec![guarded(provider, oauth)]);
    let people = PeopleAccess { vault: vault.clone(), questions: None };
    within_deadline(Toolbox::start_with(&config, Vec::new(), people)).await.unwrap()
}

fn vault() -> Arc<dyn SignInVault> {
    Arc::new(MemoryVault::default())
}

fn name(user: &str) -> Name {
    Name::parse(user).unwrap()
}

fn users(toolbox: &Toolbox) -> Arc<UserSignIns> {
    match toolbox.sign_ins().next().unwrap().1.unwrap() {
        SignIns::Users(users) => users,
        SignIns::Server(_) => panic!("one sign-in for all"),
    }
}

async fn log_in(toolbox: &Toolbox, user: &str) {
    let users = users(toolbox);
    let sign_in = users.for_user(&name(user));
    let address = within_deadline(sign_in.begin(REDIRECT_URI)).await.unwrap();
    within_deadline(sign_in.finish(&browse(&format!("{address}&as={user}")).await)).await.unwrap();
    users.announce_change();
}

fn as_user(user: Option<&str>) -> CallContext {
    CallContext { user: user.map(str::to_owned), ..context() }
}

async fn pay(toolbox: &Toolbox, user: &str) -> CallResult {
    within_deadline(toolbox.call("bank.pay", json!({}), as_user(Some(user)))).await
}

/// Pays as the user and returns the person whose token the call carried.
async fn payer(toolbox: &Toolbox, user: &str) -> String {
    let paid = pay(toolbox, user).await.unwrap();
    paid.as_str().unwrap().rsplit(' ').next().unwrap().to_owned()
}

async fn offers(toolbox: &Toolbox) {
    within_deadline(toolbox.watch().wait_for(|catalogue| catalogue.get("bank.pay").is_some())).await.unwrap();
}

async fn is_down_as(toolbox: &Toolbox, words: &str) {
    let is_so = |health: &ServerHealth| {
        health.state == HealthState::Down && health.last_error.as_deref().is_some_and(|error| error.contains(words))
    };
    let mut changes = toolbox.mcp_changes().remove(0);
    within_deadline(changes.wait_for(|_| is_so(&toolbox.mcp_health()[0].1))).await.unwrap();
}

fn wants_login(outcome: CallResult, user: &str) {
    let error = outcome.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Failed, "{error}");
    assert!(error.message.contains(&format!("kairo mcp login bank --user {user}")), "{error}");
}

#[tokio::test]
async fn each_user_acts_with_their_own_sign_in_and_nobody_with_anothers() {
    let provider = Provider::start().await;
    let toolbox = start(&provider, per_user(), &vault()).await;
    is_down_as(&toolbox, "nobody has signed in; run kairo mcp login bank --user NAME").await;

    log_in(&toolbox, "ann").await;
    offers(&toolbox).await;
    wants_login(pay(&toolbox, "bob").await, "bob");
    for nobody in [None, Some(""), Some("not a name")] {
        let refused = within_deadline(toolbox.call("bank.pay", json!({}), as_user(nobody))).await.unwrap_err();
        assert!(refused.message.contains("on nobody's behalf"), "{refused}");
    }
    assert_eq!(provider.knobs().calls, 0);

    log_in(&toolbox, "bob").await;
    let calls = (0..20).map(|number| {
        let user = if number % 2 == 0 { "ann" } else { "bob" };
        let toolbox = &toolbox;
        let provider = &provider;
        async move {
            if number % 5 == 0 {
                provider.expire_of(user);
            }
            assert_eq!(payer(toolbox, user).await, user);
        }
    });
    join_all(calls).await;
    assert_eq!(provider.knobs().calls, 20);
    within_deadline(toolbox.stop()).await;
}

#[tokio::test]
async fn what_one_user_loses_no_other_loses() {
    let provider = Provider::start().await;
    let toolbox = start(&provider, per_user(), &vault()).await;
    for user in ["ann", "bob"] {
        log_in(&toolbox, user).await;
    }
    offers(&toolbox).await;
    assert_eq!((payer(&toolbox, "ann").await, payer(&toolbox, "bob").await), ("ann".into(), "bob".into()));

    // Bob, who signed in last, tells the tools; without Bob, Ann does.
    provider.revoke_of("bob");
    // A call that is under way when the connection ends for that is in doubt, as any other.
    let is_in_doubt = |outcome: &CallResult| matches!(outcome, Err(error) if error.kind == ToolErrorKind::InDoubt);
    let refused = within_deadline(async {
        loop {
            let outcome = pay(&toolbox, "bob").await;
            if !is_in_doubt(&outcome) {
                return outcome;
            }
        }
    });
    wants_login(refused.await, "bob");
    wants_login(pay(&toolbox, "bob").await, "bob");
    assert_eq!(payer(&toolbox, "ann").await, "ann");
    log_in(&toolbox, "bob").await;
    within_deadline(async { while pay(&toolbox, "bob").await.is_err() {} }).await;

    assert_eq!(users(&toolbox).sign_out(&name("ann")).await, Ok(SignOutOutcome::Revoked));
    wants_login(pay(&toolbox, "ann").await, "ann");
    assert_eq!(payer(&toolbox, "bob").await, "bob");
    let signed_in: Vec<_> = users(&toolbox).list_signed_in().await.unwrap().into_iter().map(|one| one.user).collect();
    assert_eq!(signed_in, [name("bob")]);

    assert_eq!(users(&toolbox).sign_out(&name("bob")).await, Ok(SignOutOutcome::Revoked));
    assert_eq!(users(&toolbox).sign_out(&name("bob")).await, Ok(SignOutOutcome::Nothing));
    is_down_as(&toolbox, "nobody has signed in").await;
    within_deadline(toolbox.stop()).await;
}

#[tokio::test]
async fn replicas_and_those_that_come_after_share_the_sign_ins() {
    let provider = Provider::start().await;
    let shared = MemoryVault::default();
    let of = |holder: &str| -> Arc<dyn SignInVault> { Arc::new(shared.for_replica(holder)) };
    let one = start(&provider, per_user(), &of("one")).await;
    let two = start(&provider, per_user(), &of("two")).await;
    log_in(&one, "ann").await;
    log_in(&two, "bob").await;
    offers(&one).await;
    offers(&two).await;
    assert_eq!((payer(&one, "bob").await, payer(&two, "ann").await), ("bob".into(), "ann".into()));

    provider.expire();
    let renewed = provider.granted("refresh_token");
    let calls = [(&one, "ann"), (&two, "ann"), (&one, "bob"), (&two, "bob"), (&one, "ann"), (&two, "bob")];
    let payers = join_all(calls.map(async |(toolbox, user)| (payer(toolbox, user).await, user))).await;
    assert!(payers.iter().all(|(payer, user)| payer == user), "{payers:?}");
    assert_eq!(provider.granted("refresh_token"), renewed + 2, "each user's token is renewed once");

    // One that dies tells nobody anything.
    drop(one);
    let three = start(&provider, per_user(), &of("three")).await;
    offers(&three).await;
    assert_eq!((payer(&three, "ann").await, payer(&three, "bob").await), ("ann".into(), "bob".into()));
    within_deadline(two.stop()).await;
    within_deadline(three.stop()).await;
}

#[tokio::test]
async fn connections_are_few_and_the_longest_unused_is_closed() {
    let provider = Provider::start().await;
    let few = OAuthConfig { connections: 2, ..per_user() };
    let toolbox = start(&provider, few, &vault()).await;
    for user in ["ann", "bob", "cid"] {
        log_in(&toolbox, user).await;
    }
    offers(&toolbox).await;
    for _ in 0..2 {
        for user in ["ann", "bob", "cid"] {
            assert_eq!(payer(&toolbox, user).await, user);
        }
    }
    within_deadline(toolbox.stop()).await;
}
