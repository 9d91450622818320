use super::*;

/// Returns a caller with a key of these scopes and limits.
pub fn holder(scopes: &[Scope], agents: &[&str], user: Option<&str>) -> Caller {
    let key = ApiKey {
        caps: None,
        key_id: "a".repeat(16),
        name: "test".to_owned(),
        rights: Rights {
            scopes: scopes.to_vec(),
            agents: agents.iter().map(|agent| (*agent).to_owned()).collect(),
            user: user.map(str::to_owned),
        },
        created: Timestamp::UNIX_EPOCH,
        expires_at: None,
    };
    Caller::Holder(Arc::new(ActiveKey { key, hash: SecretHash::of("x"), revoked: CancellationToken::new() }))
}

#[test]
fn admin_is_everything_and_the_others_are_what_they_say() {
    for (scopes, allowed) in [
        (&[Scope::Read][..], [true, false, false]),
        (&[Scope::Write], [false, true, false]),
        (&[Scope::Read, Scope::Write], [true, true, false]),
        (&[Scope::Admin], [true, true, true]),
        (&[], [false, false, false]),
    ] {
        assert_eq!(Scope::ALL.map(|scope| holder(scopes, &[], None).has_scope(scope)), allowed, "{scopes:?}");
    }
    assert!(Scope::ALL.iter().all(|scope| Caller::Administrator.has_scope(*scope)));
    assert_eq!(Scope::ALL.map(|scope| Scope::parse(scope.name())), Scope::ALL.map(Some));
    assert_eq!(Scope::parse("all"), None);
}

#[test]
fn who_brings_no_key_consents_only_where_they_may_do_everything() {
    let anyone = |scopes: &[Scope]| {
        Caller::Loopback(Arc::new(Rights { scopes: scopes.to_vec(), agents: Vec::new(), user: None }))
    };
    let program = anyone(&[Scope::Read, Scope::Write]);
    assert!(program.require_scope(Scope::Write).is_ok() && program.require_key(Scope::Write).is_err());
    assert!(program.require_scope(Scope::Admin).unwrap_err().detail.contains("kairo dev"));
    assert!(anyone(&[Scope::Admin]).require_key(Scope::Write).is_ok());
    assert!(holder(&[Scope::Write], &[], None).require_key(Scope::Write).is_ok());
    assert!(holder(&[Scope::Read], &[], None).require_key(Scope::Write).is_err());
    assert!(Caller::Administrator.require_key(Scope::Write).is_ok());
}

#[test]
fn a_limited_key_names_its_own() {
    let limited = holder(&[Scope::Admin], &["bob", "eve"], Some("ann"));
    for agent in [Some("bob"), Some("eve")] {
        assert!(limited.require_agent(agent).is_ok());
    }
    for agent in [Some("default"), Some("bo"), Some(""), None] {
        let problem = limited.require_agent(agent).unwrap_err();
        assert_eq!((problem.status.as_u16(), problem.errors[0].field.as_str()), (403, "agent"));
    }
    assert!(limited.require_user(Some("ann")).is_ok());
    assert_eq!(limited.require_user(None).unwrap_err().errors[0].field, "user");
    assert!(limited.can_see("bob", Some("ann")));
    assert!(
        !limited.can_see("bob", Some("joe")) && !limited.can_see("bob", None) && !limited.can_see("x", Some("ann"))
    );
    let free = holder(&[Scope::Read], &[], None);
    assert!(free.can_see("any", None) && free.require_agent(None).is_ok());
}

#[tokio::test(start_paused = true)]
async fn what_goes_on_ends_with_the_key() {
    let caller = holder(&[Scope::Read], &[], None);
    let Caller::Holder(held) = &caller else { unreachable!() };
    assert!(tokio::time::timeout(Duration::from_secs(3_600), caller.wait_for_expiry()).await.is_err());
    held.revoked.cancel();
    caller.wait_for_expiry().await;
    let key = ApiKey { expires_at: Some(Timestamp::UNIX_EPOCH), ..held.key.clone() };
    Caller::Holder(Arc::new(ActiveKey { key, hash: SecretHash::of("x"), revoked: CancellationToken::new() }))
        .wait_for_expiry()
        .await;
}
